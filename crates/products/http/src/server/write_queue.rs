//! Responses queued for a socket.
//!
//! Headers and small bodies share one buffer, so that one small response, or many, leave in one
//! send(2). Larger bodies are sent from the file of their block.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::os::fd::OwnedFd;

use linerate_sys::sendfile_source::SourceFile;
use linerate_sys::stream_io::{self, Followed};

use super::chunks::Chunks;
use super::content::{Block, BodyPattern, Content};

/// Unsent bytes.
#[derive(Debug, Default)]
pub(crate) struct WriteQueue {
    /// Headers and small bodies.
    bytes: Vec<u8>,
    /// Bytes of it already sent.
    bytes_sent: usize,
    parts: VecDeque<Part>,
    /// Total unsent bytes.
    left_bytes: u64,
}

#[derive(Debug)]
enum Part {
    /// The next bytes of the buffer.
    Bytes(usize),
    /// The rest of a large body: a range of the endless repetition of a block.
    Body {
        pattern: BodyPattern,
        offset: u64,
        len: u64,
    },
    /// The rest of a chunked body.
    Chunks(Box<Chunks>),
}

/// Where responses are sent: a socket, or memory in tests.
pub(crate) trait Transport {
    /// Sends bytes that are followed by others or not; returns how many were taken.
    fn send(&mut self, bytes: &[u8], followed: Followed) -> io::Result<usize>;
    /// As [`stream_io::send_file`] at `offset`.
    fn send_file(&mut self, file: &SourceFile, offset: u64, len: usize) -> io::Result<usize>;
}

/// A connection's socket.
pub(crate) struct SocketTransport<'a>(pub &'a OwnedFd);

impl Transport for SocketTransport<'_> {
    fn send(&mut self, bytes: &[u8], followed: Followed) -> io::Result<usize> {
        match followed {
            Followed::No => stream_io::send(self.0, bytes),
            Followed::Soon => stream_io::send_slices(self.0, &[IoSlice::new(bytes)], followed),
        }
    }

    fn send_file(&mut self, file: &SourceFile, offset: u64, len: usize) -> io::Result<usize> {
        let mut position = offset;
        stream_io::send_file(self.0, file, &mut position, len)
    }
}

/// Result of a flush.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Flushed {
    /// Bytes sent.
    pub bytes: u64,
    /// The queue is empty.
    pub is_done: bool,
}

impl WriteQueue {
    /// True if everything is sent.
    pub(crate) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// True if the queue must be flushed before more is added.
    pub(crate) fn is_full(&self) -> bool {
        self.left_bytes > LEFT_BYTES_MAX
            || self.parts.len() >= PARTS_MAX
            || self.bytes.len() >= BUFFER_BYTES_MAX
    }

    /// Appends to the buffer.
    pub(crate) fn write(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let before = self.bytes.len();
        write(&mut self.bytes);
        let added = self.bytes.len() - before;
        self.left_bytes += added as u64;

        match self.parts.back_mut() {
            Some(Part::Bytes(len)) => *len += added,
            _ => self.parts.push_back(Part::Bytes(added)),
        }
    }

    /// Queues the first `len` bytes of a pattern.
    pub(crate) fn push_body(&mut self, content: &Content, pattern: BodyPattern, len: u64) {
        if len < COPIED_BELOW_BYTES {
            let run = content.block(pattern).run(0, len);
            return self.write(|bytes| bytes.extend_from_slice(run));
        }

        self.left_bytes += len;
        self.parts.push_back(Part::Body {
            pattern,
            offset: 0,
            len,
        });
    }

    /// Queues a chunked body.
    pub(crate) fn push_chunks(&mut self, chunks: Chunks) {
        self.left_bytes += chunks.left_bytes();
        self.parts.push_back(Part::Chunks(Box::new(chunks)));
    }

    /// Sends until the queue is empty, the transport is full or the turn ends.
    ///
    /// # Errors
    /// The transport's, except `WouldBlock`.
    pub(crate) fn flush(
        &mut self,
        transport: &mut impl Transport,
        content: &Content,
        turn: &mut Turn,
    ) -> io::Result<Flushed> {
        let mut bytes = 0;
        let is_done = loop {
            // Without turns one response in chunks of one byte starved 21 of 40 connections.
            if turn.is_over() {
                break self.is_empty();
            }

            let (wanted, sent) = match self.send_some(transport, content) {
                Ok(Some(progress)) => progress,
                Ok(None) => break true,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            // sendfile(2) returns 0 at the end of its file: a truncated one would repeat this loop
            // forever.
            if sent == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }

            self.advance(sent);
            turn.charge(sent);
            bytes += sent as u64;

            // Another call would fail with `EAGAIN`; the event loop reports when the socket is
            // writable.
            if sent < wanted && !self.is_empty() {
                break false;
            }
        };
        if is_done {
            self.clear();
        }

        Ok(Flushed { bytes, is_done })
    }

    /// One system call: bytes offered and bytes sent; `None` when the queue is empty.
    fn send_some(
        &mut self,
        transport: &mut impl Transport,
        content: &Content,
    ) -> io::Result<Option<(usize, usize)>> {
        // A header waits for its body.
        // Where BBR paces loopback, a response of 100 KiB costs 42 µs of CPU with a header in a
        // segment of its own, and 36 µs otherwise.
        let followed = if self.parts.len() > 1 {
            Followed::Soon
        } else {
            Followed::No
        };
        let progress = match self.parts.front_mut() {
            None => return Ok(None),
            Some(Part::Bytes(len)) => {
                let bytes = self.bytes.get(self.bytes_sent..).unwrap_or_default();
                let bytes = bytes.get(..*len).unwrap_or_default();
                (bytes.len(), transport.send(bytes, followed)?)
            }
            Some(Part::Body {
                pattern,
                offset,
                len,
            }) => send_body(content.block(*pattern), *offset, *len, transport)?,
            Some(Part::Chunks(chunks)) => {
                let staged = chunks.staged(content);
                (staged.len(), transport.send(staged, Followed::No)?)
            }
        };
        Ok(Some(progress))
    }

    /// Removes `sent` bytes.
    fn advance(&mut self, mut sent: usize) {
        // Chunks are queued with their payload alone, and `sent` contains their framing too.
        self.left_bytes = self.left_bytes.saturating_sub(sent as u64);
        while sent > 0 {
            let Some(part) = self.parts.front_mut() else {
                return;
            };
            let (taken, is_over) = match part {
                Part::Bytes(len) => {
                    let taken = sent.min(*len);
                    *len -= taken;
                    self.bytes_sent += taken;
                    (taken, *len == 0)
                }
                Part::Body { offset, len, .. } => {
                    let taken = (sent as u64).min(*len);
                    *offset += taken;
                    *len -= taken;
                    // `taken` is at most `sent`, so it fits.
                    (usize::try_from(taken).unwrap_or(sent), *len == 0)
                }
                Part::Chunks(chunks) => chunks.advance(sent),
            };
            sent -= taken;

            if is_over {
                self.parts.pop_front();
            }
        }
    }

    /// Moves the unsent rest into a queue without spare capacity.
    pub(crate) fn take_rest(&mut self) -> Self {
        let bytes = self
            .bytes
            .get(self.bytes_sent..)
            .unwrap_or_default()
            .to_vec();
        let rest = Self {
            bytes,
            bytes_sent: 0,
            parts: self.parts.drain(..).collect(),
            left_bytes: self.left_bytes,
        };

        self.clear();
        rest
    }

    /// Resets the buffer and keeps its capacity.
    fn clear(&mut self) {
        self.bytes.clear();
        self.bytes_sent = 0;
        self.left_bytes = 0;
    }
}

/// Sends from the file of a block, or from memory where there is no file.
fn send_body(
    block: &Block,
    offset: u64,
    len: u64,
    transport: &mut impl Transport,
) -> io::Result<(usize, usize)> {
    let run = block.run(offset, len);
    let sent = match block.file() {
        Some(file) => transport.send_file(file, Block::position(offset) as u64, run.len())?,
        None => transport.send(run, Followed::No)?,
    };
    Ok((run.len(), sent))
}

/// From this size on sendfile(2) costs less than copying a body behind its header.
const COPIED_BELOW_BYTES: u64 = 32 * 1024;
/// Parts after which the queue must be flushed.
const PARTS_MAX: usize = 64;
/// Buffered bytes after which the queue must be flushed.
const BUFFER_BYTES_MAX: usize = 128 * 1024;
/// Unsent bytes after which the queue must be flushed.
const LEFT_BYTES_MAX: u64 = 1 << 20;

/// Remainder of the turn of a connection: what it sends before the next ready one of its thread is
/// served.
///
/// Reception needs no bound of its own: one call of recv(2), of a buffer or of [`super::worker`]'s
/// bytes to discard. A connection sends as long as its client takes it, and a client of the same
/// speed takes all of it.
#[derive(Debug)]
pub(crate) struct Turn {
    bytes_left: u64,
    calls_left: u32,
}

impl Turn {
    /// A turn that begins.
    pub(crate) const fn new() -> Self {
        Self {
            bytes_left: TURN_BYTES,
            calls_left: TURN_CALLS,
        }
    }

    #[cfg(test)]
    pub(crate) const fn of(bytes_left: u64, calls_left: u32) -> Self {
        Self {
            bytes_left,
            calls_left,
        }
    }

    /// True if the next connection is to be served.
    pub(crate) const fn is_over(&self) -> bool {
        self.bytes_left == 0 || self.calls_left == 0
    }

    /// Accounts for a call that sent `bytes`.
    pub(crate) fn charge(&mut self, bytes: usize) {
        self.bytes_left = self.bytes_left.saturating_sub(bytes as u64);
        self.calls_left = self.calls_left.saturating_sub(1);
    }
}

/// Bytes of a turn, but for the rest of its last call: a block of a large body, so that a turn
/// costs an epoll_wait(2) per sendfile(2) of a mebibyte.
const TURN_BYTES: u64 = 1 << 20;
/// System calls of a turn: as many as a chunked body needs for these bytes.
const TURN_CALLS: u32 = 16;

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::server::content::{BLOCK_BYTES, LINE};

    /// Accepts at most `room` bytes in total, and at most `bite` per call.
    pub(crate) struct MemoryTransport<'a> {
        content: &'a Content,
        pub taken: Vec<u8>,
        room: usize,
        bite: usize,
        followed: Vec<Followed>,
    }

    impl Transport for MemoryTransport<'_> {
        fn send(&mut self, bytes: &[u8], followed: Followed) -> io::Result<usize> {
            self.followed.push(followed);
            let len = bytes.len().min(self.room).min(self.bite);
            if len == 0 {
                return Err(io::ErrorKind::WouldBlock.into());
            }

            self.taken.extend(&bytes[..len]);
            self.room -= len;
            Ok(len)
        }

        fn send_file(&mut self, _: &SourceFile, offset: u64, len: usize) -> io::Result<usize> {
            let run = self
                .content
                .block(BodyPattern::Text)
                .run(offset, len as u64);
            self.send(run, Followed::No)
        }
    }

    pub(crate) fn transport(content: &Content, room: usize, bite: usize) -> MemoryTransport<'_> {
        MemoryTransport {
            content,
            taken: Vec::new(),
            room,
            bite,
            followed: Vec::new(),
        }
    }

    fn queue(content: &Content, lengths: &[u64]) -> WriteQueue {
        let mut queue = WriteQueue::default();
        for len in lengths {
            queue.write(|bytes| bytes.extend_from_slice(b"head"));
            queue.push_body(content, BodyPattern::Text, *len);
        }
        queue
    }

    /// A turn that allows all that is sent here.
    fn endless() -> Turn {
        Turn::of(u64::MAX, u32::MAX)
    }

    #[test]
    fn queue_is_sent_in_order_however_little_a_call_takes() {
        let content = Content::default();
        let lengths = [
            10,
            5_000,
            0,
            BLOCK_BYTES as u64 * 2 + 77,
            COPIED_BELOW_BYTES,
        ];

        let mut whole = transport(&content, usize::MAX, usize::MAX);
        queue(&content, &lengths)
            .flush(&mut whole, &content, &mut endless())
            .expect("memory does not fail");
        let heads = lengths.len() * 4;
        assert_eq!(
            whole.taken.len() as u64,
            lengths.iter().sum::<u64>() + heads as u64
        );
        assert!(whole.taken.starts_with(b"head0123456789head0123456789 abc"));
        assert!(whole.taken.ends_with(LINE));

        for (bite, room) in [(1000, usize::MAX), (4099, 10_000)] {
            let mut queue = queue(&content, &lengths);
            let mut transport = transport(&content, room, bite);
            let mut sent = 0;

            while !queue.is_empty() {
                let flushed = queue
                    .flush(&mut transport, &content, &mut endless())
                    .expect("memory does not fail");
                sent += flushed.bytes;
                assert_eq!(flushed.is_done, queue.is_empty());
                transport.room = room;
            }

            assert!(transport.taken == whole.taken, "{bite} {room}");
            assert_eq!(sent, whole.taken.len() as u64);
        }
    }

    /// Sends in turns until the queue is empty: the most bytes and calls of a turn, and the number
    /// of turns.
    fn in_turns(mut queue: WriteQueue, content: &Content) -> (u64, usize, usize) {
        let mut bytes_max = 0;
        let mut calls_max = 0;
        let mut turns = 0;
        while !queue.is_empty() {
            let mut transport = transport(content, usize::MAX, usize::MAX);
            let flushed = queue
                .flush(&mut transport, content, &mut Turn::new())
                .expect("memory does not fail");
            assert!(flushed.bytes > 0 && flushed.is_done == queue.is_empty());
            bytes_max = bytes_max.max(flushed.bytes);
            calls_max = calls_max.max(transport.followed.len());
            turns += 1;
        }

        (bytes_max, calls_max, turns)
    }

    #[test]
    fn bodies_of_every_kind_are_sent_in_turns_to_a_client_that_takes_everything() {
        let content = Content::default();
        let body_bytes = 8 * BLOCK_BYTES as u64;
        let chunked = |chunk_bytes| {
            let mut queue = WriteQueue::default();
            queue.push_chunks(Chunks::new(BodyPattern::Text, body_bytes, chunk_bytes));
            queue
        };
        let rows = [
            ("whole", queue(&content, &[body_bytes])),
            ("many", queue(&content, &[COPIED_BELOW_BYTES; 256])),
            ("chunks of 1 MiB", chunked(1 << 20)),
            ("chunks of 64 bytes", chunked(64)),
            ("chunks of one byte", chunked(1)),
        ];
        for (name, queue) in rows {
            let (bytes_max, calls_max, turns) = in_turns(queue, &content);
            assert!(
                bytes_max <= 2 * BLOCK_BYTES as u64,
                "{name}: {bytes_max} bytes"
            );
            assert!(calls_max <= 16, "{name}: {calls_max} calls");
            assert!(turns >= 4, "{name}: {turns} turns");
        }
    }

    #[test]
    fn header_leaves_with_its_body() {
        let content = Content::default();
        for (len, followed) in [
            (COPIED_BELOW_BYTES - 1, &[Followed::No][..]),
            (COPIED_BELOW_BYTES, &[Followed::Soon, Followed::No]),
        ] {
            let mut transport = transport(&content, usize::MAX, usize::MAX);
            let flushed = queue(&content, &[len]).flush(&mut transport, &content, &mut Turn::new());
            assert!(flushed.expect("memory does not fail").is_done);
            assert_eq!(transport.followed, followed, "{len}");
        }
    }

    #[test]
    fn queue_is_full_in_bytes_or_in_parts() {
        let content = Content::default();
        assert!(queue(&content, &[LEFT_BYTES_MAX + 1]).is_full());
        assert!(queue(&content, &[COPIED_BELOW_BYTES - 1; 5]).is_full());
        assert!(!queue(&content, &[COPIED_BELOW_BYTES; PARTS_MAX / 2 - 1]).is_full());
        assert!(queue(&content, &[COPIED_BELOW_BYTES; PARTS_MAX / 2]).is_full());
    }
}
