//! Lines over non-blocking byte streams.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};

use crate::protocol::line::LineReader;
use linerate_sys::OsError;
use linerate_sys::child::set_nonblocking;

/// Bytes of one call of [`LineInput::receive`].
const READ_BYTES: usize = 64 << 10;
/// Most bytes that wait for a reader: several results in all of their parts.
const UNSENT_MAX_BYTES: usize = 16 << 20;

/// Content of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Received {
    /// A line without its end.
    Line(Vec<u8>),
    /// A line beyond the bound of the protocol, which is skipped.
    TooLong,
    /// The end of the stream, or an error. Nothing follows.
    End,
}

/// Reads lines.
#[derive(Debug)]
pub struct LineInput<R> {
    source: R,
    reader: LineReader,
}

impl<R: Read + AsFd> LineInput<R> {
    /// Reads from `source`, which becomes non-blocking.
    ///
    /// # Errors
    /// The operating system's.
    pub fn new(source: R) -> Result<Self, OsError> {
        set_nonblocking(&source)?;
        Ok(Self {
            source,
            reader: LineReader::default(),
        })
    }

    /// Reads once what is there, at most 64 KiB, and adds what it contains to `received`.
    pub fn receive(&mut self, received: &mut Vec<Received>) {
        let mut chunk = vec![0; READ_BYTES];
        let mut bytes = match self.source.read(&mut chunk) {
            Ok(0) => return received.push(Received::End),
            Ok(count) => chunk.get(..count).unwrap_or_default(),
            Err(error) if is_temporary(&error) => return,
            Err(_) => return received.push(Received::End),
        };

        loop {
            match self.reader.read(&mut bytes) {
                Ok(Some(line)) => received.push(Received::Line(line)),
                Ok(None) => return,
                Err(_) => received.push(Received::TooLong),
            }
        }
    }
}

impl<R: AsFd> AsFd for LineInput<R> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.source.as_fd()
    }
}

/// Writes lines; those that the reader does not take yet are kept, within a bound.
#[derive(Debug)]
pub struct LineOutput<W> {
    sink: W,
    unsent: VecDeque<u8>,
    is_broken: bool,
}

impl<W: Write + AsFd> LineOutput<W> {
    /// Writes to `sink`, which becomes non-blocking.
    ///
    /// # Errors
    /// The operating system's.
    pub fn new(sink: W) -> Result<Self, OsError> {
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
    #[must_use]
    pub fn has_unsent(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// Nothing that is sent arrives any more.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        self.is_broken
    }
}

impl<W: AsFd> AsFd for LineOutput<W> {
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

    fn pair() -> (LineInput<io::PipeReader>, LineOutput<io::PipeWriter>) {
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
            input.receive(&mut received);
            output.flush();
        }

        let expected: Vec<Received> = sent
            .into_iter()
            .map(|line| Received::Line(line.into_bytes()))
            .collect();
        assert_eq!(received, expected);
    }

    #[test]
    fn end_of_the_writer_is_the_end_and_a_reader_that_left_breaks_the_output() {
        let (mut input, output) = pair();
        let mut received = Vec::new();
        input.receive(&mut received);
        assert!(received.is_empty(), "nothing was sent");
        drop(output);
        input.receive(&mut received);
        assert_eq!(received, [Received::End]);

        let (input, mut output) = pair();
        drop(input);
        output.send("late");
        assert!(output.is_broken() && !output.has_unsent());
    }
}
