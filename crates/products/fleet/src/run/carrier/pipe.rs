//! Lines over non-blocking byte streams.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::protocol::line::LineReader;
use crate::run::carrier::HostEvent;
use linerate_sys::OsError;
use linerate_sys::child::set_nonblocking;
use linerate_sys::poll::{Epoll, Interest};

/// Bytes of one call of [`LineInput::receive`].
const READ_BYTES: usize = 64 << 10;
/// Most bytes that wait for a reader: several results in all of their parts.
const UNSENT_MAX_BYTES: usize = 16 << 20;

/// Reads lines.
#[derive(Debug)]
pub struct LineInput {
    source: File,
    reader: LineReader,
}

impl LineInput {
    /// Reads from `source`, which becomes non-blocking.
    ///
    /// # Errors
    /// The operating system's.
    pub fn new(source: impl Into<OwnedFd>) -> Result<Self, OsError> {
        let source = File::from(source.into());
        set_nonblocking(&source)?;
        Ok(Self {
            source,
            reader: LineReader::default(),
        })
    }

    /// Reads once what is there, at most 64 KiB. The end of the stream, or an error, is
    /// [`HostEvent::Lost`].
    pub fn receive(&mut self) -> Vec<HostEvent> {
        let mut chunk = vec![0; READ_BYTES];
        let mut bytes = match self.source.read(&mut chunk) {
            Ok(count @ 1..) => chunk.get(..count).unwrap_or_default(),
            Err(error) if is_temporary(&error) => return Vec::new(),
            Ok(0) | Err(_) => {
                let reason = "the input has ended".to_owned();
                return vec![HostEvent::Lost { reason }];
            }
        };

        let mut received = Vec::new();
        loop {
            match self.reader.read(&mut bytes) {
                Ok(Some(line)) => received.push(HostEvent::Line(line)),
                Ok(None) => return received,
                Err(_) => received.push(HostEvent::TooLong),
            }
        }
    }
}

impl AsFd for LineInput {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.source.as_fd()
    }
}

/// Writes lines; those that the reader does not take yet are kept, within a bound.
#[derive(Debug)]
pub struct LineOutput {
    sink: File,
    unsent: VecDeque<u8>,
    is_broken: bool,
}

impl LineOutput {
    /// Writes to `sink`, which becomes non-blocking.
    ///
    /// # Errors
    /// The operating system's.
    pub fn new(sink: impl Into<OwnedFd>) -> Result<Self, OsError> {
        let sink = File::from(sink.into());
        set_nonblocking(&sink)?;
        Ok(Self {
            sink,
            unsent: VecDeque::new(),
            is_broken: false,
        })
    }

    /// Sends a line, to which its end is added. A reader that is gone, or for whom too much waits,
    /// breaks the output for good.
    pub fn send(&mut self, line: &str) {
        if self.is_broken {
            return;
        }
        // A reader that takes nothing would let memory grow without a bound.
        if self.unsent.len().saturating_add(line.len()) > UNSENT_MAX_BYTES {
            return self.give_up();
        }

        self.unsent.extend(line.as_bytes());
        self.unsent.push_back(b'\n');
        self.flush();
    }

    /// Writes what waits, as far as the reader takes it.
    pub fn flush(&mut self) {
        while !self.unsent.is_empty() {
            // The front of a ring buffer is contiguous; the rest follows in the next pass.
            let (front, _) = self.unsent.as_slices();
            match self.sink.write(front) {
                Ok(count @ 1..) => drop(self.unsent.drain(..count)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if is_temporary(&error) => return,
                Ok(0) | Err(_) => return self.give_up(),
            }
        }
    }

    /// The reader is gone: what waits is dropped, and so is everything to come.
    pub fn give_up(&mut self) {
        self.is_broken = true;
        self.unsent = VecDeque::new();
    }

    /// Lines wait for the reader.
    pub fn has_unsent(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// Has an epoll set, in which the output has this token, report when the reader takes what
    /// waits.
    pub fn follow(&self, epoll: &Epoll, token: u64) {
        let mut interest = Interest::default();
        if self.has_unsent() {
            interest = Interest::WRITE;
        }

        // Fails only when memory is short; the next line tries again.
        let _ = epoll.modify(self, token, interest);
    }

    /// Nothing that is sent arrives any more.
    pub fn is_broken(&self) -> bool {
        self.is_broken
    }
}

impl AsFd for LineOutput {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.sink.as_fd()
    }
}

fn is_temporary(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (LineInput, LineOutput) {
        let (reader, writer) = io::pipe().expect("a pipe");
        (
            LineInput::new(reader).expect("a pipe"),
            LineOutput::new(writer).expect("a pipe"),
        )
    }

    #[test]
    fn lines_arrive_whole_and_in_order_although_the_pipe_is_full() {
        let (mut input, mut output) = pair();
        let sent: Vec<String> = (0..40)
            .map(|n| format!("{n}{}", "x".repeat(10_000)))
            .collect();
        sent.iter().for_each(|line| output.send(line));
        assert!(output.has_unsent(), "a pipe holds less than 400 kB");

        let mut received = Vec::new();
        while received.len() < sent.len() {
            received.extend(input.receive());
            output.flush();
        }

        let expected: Vec<HostEvent> = sent
            .into_iter()
            .map(|line| HostEvent::Line(line.into_bytes()))
            .collect();
        assert_eq!(received, expected);
    }

    #[test]
    fn end_of_the_writer_is_the_end_and_a_reader_that_left_breaks_the_output() {
        let (mut input, output) = pair();
        assert!(input.receive().is_empty(), "nothing was sent");
        drop(output);
        assert!(matches!(*input.receive(), [HostEvent::Lost { .. }]));

        let (input, mut output) = pair();
        drop(input);
        output.send("late");
        assert!(output.is_broken() && !output.has_unsent());
    }
}
