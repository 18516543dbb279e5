//! Responses queued for a socket.
//!
//! Headers and small bodies share one buffer, so that one small response, or many, leave in one send(2). Larger bodies are
//! references to their block.

use std::collections::VecDeque;
use std::io::{self, IoSlice};

use linerate_sys::sendfile_source::SourceFile;
use linerate_sys::stream_io::Followed;

use super::body_path::BodyPath;
use super::chunks::Chunks;
use super::content::{BLOCK_BYTES, Block, BodyPattern, Content};

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
    /// The rest of a body.
    Body(Body),
    /// The rest of a chunked body.
    Chunks(Box<Chunks>),
}

/// A range of the endless repetition of a block.
#[derive(Debug, Clone, Copy)]
struct Body {
    pattern: BodyPattern,
    offset: u64,
    len: u64,
    path: BodyPath,
}

/// Where responses are sent: a socket, or memory in tests.
pub(crate) trait Transport {
    /// As [`linerate_sys::stream_io::send_slices`].
    fn send(&mut self, slices: &[IoSlice<'_>], followed: Followed) -> io::Result<usize>;
    /// As [`linerate_sys::stream_io::send_file`] at `offset`.
    fn send_file(&mut self, file: &SourceFile, offset: u64, len: usize) -> io::Result<usize>;
}

/// Result of a flush.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Flushed {
    /// Bytes sent.
    pub(crate) bytes: u64,
    /// The queue is empty.
    pub(crate) is_done: bool,
}

impl WriteQueue {
    /// Whether everything is sent.
    pub(crate) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Whether the queue must be flushed before more is added.
    pub(crate) fn is_full(&self) -> bool {
        self.left_bytes > LEFT_BYTES_MAX || self.parts.len() >= PARTS_MAX || self.bytes.len() >= BUFFER_BYTES_MAX
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
    pub(crate) fn push_body(&mut self, content: &Content, pattern: BodyPattern, len: u64, path: BodyPath) {
        if len == 0 {
            return;
        }
        if len <= COPIED_BYTES_MAX {
            let run = content.block(pattern).run(0, len);
            return self.write(|bytes| bytes.extend_from_slice(run));
        }
        self.left_bytes += len;
        self.parts.push_back(Part::Body(Body {
            pattern,
            offset: 0,
            len,
            path,
        }));
    }

    /// Queues a chunked body.
    pub(crate) fn push_chunks(&mut self, chunks: Chunks) {
        self.left_bytes += chunks.left_bytes();
        self.parts.push_back(Part::Chunks(Box::new(chunks)));
    }

    /// Sends until the queue is empty or the transport is full.
    ///
    /// # Errors
    /// The transport's, except `WouldBlock`.
    pub(crate) fn flush(&mut self, transport: &mut impl Transport, content: &Content) -> io::Result<Flushed> {
        let mut bytes = 0;
        let is_done = loop {
            let (wanted, sent) = match self.send_some(transport, content) {
                Ok(Some(progress)) => progress,
                Ok(None) => break true,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if sent == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            self.advance(sent);
            bytes += sent as u64;
            // Another call would fail with `EAGAIN`; the event loop reports when the socket is writable.
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
    fn send_some(&mut self, transport: &mut impl Transport, content: &Content) -> io::Result<Option<(usize, usize)>> {
        let progress = match self.parts.front_mut() {
            None => return Ok(None),
            Some(Part::Body(body)) if body.path != BodyPath::Copy => body.send(transport, content)?,
            Some(Part::Chunks(chunks)) => {
                let staged = chunks.staged(content);
                (staged.len(), transport.send(&[IoSlice::new(staged)], Followed::No)?)
            }
            Some(Part::Bytes(_) | Part::Body(_)) => self.send_gathered(transport, content)?,
        };
        Ok(Some(progress))
    }

    /// Sends everything up to the first part that needs another call.
    fn send_gathered(&self, transport: &mut impl Transport, content: &Content) -> io::Result<(usize, usize)> {
        let mut slices = [IoSlice::new(&[]); SLICES_MAX];
        let (mut count, mut wanted) = (0, 0);
        let mut followed = Followed::No;
        let mut rest = self.bytes.get(self.bytes_sent..).unwrap_or_default();
        'gather: for part in &self.parts {
            match part {
                Part::Bytes(len) => {
                    let Some((bytes, behind)) = rest.split_at_checked(*len) else {
                        break;
                    };
                    rest = behind;
                    if !put(&mut slices, &mut count, &mut wanted, bytes) {
                        break;
                    }
                }
                Part::Body(body) if body.path == BodyPath::Copy => {
                    for run in body.runs(content.block(body.pattern)) {
                        if !put(&mut slices, &mut count, &mut wanted, run) {
                            break 'gather;
                        }
                    }
                }
                Part::Body(body) if body.path == BodyPath::SendfileApart => break,
                Part::Body(_) | Part::Chunks(_) => {
                    followed = Followed::Soon;
                    break;
                }
            }
        }
        let sent = transport.send(slices.get(..count).unwrap_or_default(), followed)?;
        Ok((wanted, sent))
    }

    /// Removes `sent` bytes.
    fn advance(&mut self, mut sent: usize) {
        self.left_bytes = self.left_bytes.saturating_sub(sent as u64);
        while sent > 0 {
            let Some(part) = self.parts.front_mut() else { return };
            let (taken, is_over) = match part {
                Part::Bytes(len) => {
                    let taken = sent.min(*len);
                    *len -= taken;
                    self.bytes_sent += taken;
                    (taken, *len == 0)
                }
                Part::Body(body) => body.advance(sent),
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
        let bytes = self.bytes.get(self.bytes_sent..).unwrap_or_default().to_vec();
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

/// Adds a slice; `false` when the array is full.
fn put<'a>(slices: &mut [IoSlice<'a>], count: &mut usize, wanted: &mut usize, bytes: &'a [u8]) -> bool {
    let Some(slot) = slices.get_mut(*count) else {
        return false;
    };
    *slot = IoSlice::new(bytes);
    *count += 1;
    *wanted += bytes.len();
    true
}

impl Body {
    /// Contiguous slices of the body.
    fn runs(self, block: &Block) -> impl Iterator<Item = &[u8]> {
        let mut done = 0;
        std::iter::from_fn(move || {
            let run = block.run(self.offset + done, self.len - done);
            done += run.len() as u64;
            (!run.is_empty()).then_some(run)
        })
    }

    /// Sends from the file, or from memory where there is no file.
    fn send(&self, transport: &mut impl Transport, content: &Content) -> io::Result<(usize, usize)> {
        let block = content.block(self.pattern);
        let run = block.run(self.offset, self.len);
        let sent = match block.file() {
            Some(file) => transport.send_file(file, self.offset % BLOCK_BYTES as u64, run.len())?,
            None => transport.send(&[IoSlice::new(run)], Followed::No)?,
        };
        Ok((run.len(), sent))
    }

    fn advance(&mut self, sent: usize) -> (usize, bool) {
        let taken = (sent as u64).min(self.len);
        self.offset += taken;
        self.len -= taken;
        (usize::try_from(taken).unwrap_or(sent), self.len == 0)
    }
}

/// Bodies up to this size are copied behind their header: that costs less than a second slice.
const COPIED_BYTES_MAX: u64 = 4096;
/// Slices per system call.
const SLICES_MAX: usize = 64;
/// Parts after which the queue must be flushed.
const PARTS_MAX: usize = 64;
/// Buffered bytes after which the queue must be flushed.
const BUFFER_BYTES_MAX: usize = 128 * 1024;
/// Unsent bytes after which the queue must be flushed.
const LEFT_BYTES_MAX: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    /// Accepts at most `room` bytes in total, and at most `bite` per call.
    struct MemoryTransport<'a> {
        content: &'a Content,
        taken: Vec<u8>,
        room: usize,
        bite: usize,
        followed: Vec<Followed>,
    }

    impl MemoryTransport<'_> {
        fn take(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let len = bytes.len().min(self.room).min(self.bite);
            if len == 0 {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            self.taken.extend(&bytes[..len]);
            self.room -= len;
            Ok(len)
        }
    }

    impl Transport for MemoryTransport<'_> {
        fn send(&mut self, slices: &[IoSlice<'_>], followed: Followed) -> io::Result<usize> {
            self.followed.push(followed);
            let all: Vec<u8> = slices.iter().flat_map(|slice| slice.to_vec()).collect();
            self.take(&all)
        }

        fn send_file(&mut self, _: &SourceFile, offset: u64, len: usize) -> io::Result<usize> {
            self.take(self.content.block(BodyPattern::Text).run(offset, len as u64))
        }
    }

    fn filled(content: &Content, path: BodyPath) -> (WriteQueue, Vec<u8>) {
        let mut queue = WriteQueue::default();
        let mut expected = Vec::new();
        for len in [10, 5000, 0, BLOCK_BYTES as u64 * 2 + 77, 4096] {
            queue.write(|bytes| bytes.extend_from_slice(b"head"));
            queue.push_body(content, BodyPattern::Text, len, path);
            expected.extend_from_slice(b"head");
            let mut done = 0;
            while done < len {
                let run = content.block(BodyPattern::Text).run(done, len - done);
                expected.extend_from_slice(run);
                done += run.len() as u64;
            }
        }
        (queue, expected)
    }

    #[test]
    fn queue_is_sent_in_order_however_little_a_call_takes() {
        let content = Content::default();
        for path in [BodyPath::Copy, BodyPath::Sendfile, BodyPath::SendfileApart] {
            for (bite, room) in [(usize::MAX, usize::MAX), (1000, usize::MAX), (4099, 10_000)] {
                let (mut queue, expected) = filled(&content, path);
                let mut transport = MemoryTransport {
                    content: &content,
                    taken: Vec::new(),
                    room,
                    bite,
                    followed: Vec::new(),
                };
                let mut sent = 0;
                while !queue.is_empty() {
                    let flushed = queue.flush(&mut transport, &content).expect("memory does not fail");
                    sent += flushed.bytes;
                    assert_eq!(flushed.is_done, queue.is_empty());
                    transport.room = room;
                }
                assert!(transport.taken == expected, "{path:?} {bite} {room}");
                assert_eq!(sent, expected.len() as u64);
            }
        }
    }

    #[test]
    fn header_is_held_for_its_body_unless_they_are_sent_apart() {
        let content = Content::default();
        for (path, followed) in [
            (BodyPath::Sendfile, Followed::Soon),
            (BodyPath::SendfileApart, Followed::No),
        ] {
            let mut queue = WriteQueue::default();
            queue.write(|bytes| bytes.extend_from_slice(b"head"));
            queue.push_body(&content, BodyPattern::Text, 100_000, path);
            let mut transport = MemoryTransport {
                content: &content,
                taken: Vec::new(),
                room: usize::MAX,
                bite: usize::MAX,
                followed: Vec::new(),
            };
            let flushed = queue.flush(&mut transport, &content).expect("memory does not fail");
            assert!(flushed.is_done);
            assert_eq!(transport.followed, [followed], "{path:?}");
        }
    }

    #[test]
    fn queue_is_full_in_bytes_or_in_parts() {
        let content = Content::default();
        let mut large = WriteQueue::default();
        large.push_body(&content, BodyPattern::Text, LEFT_BYTES_MAX + 1, BodyPath::Copy);
        assert!(large.is_full());
        let mut many = WriteQueue::default();
        for _ in 0..PARTS_MAX / 2 {
            assert!(!many.is_full());
            many.write(|bytes| bytes.push(b'x'));
            many.push_body(&content, BodyPattern::Text, COPIED_BYTES_MAX + 1, BodyPath::Copy);
        }
        assert!(many.is_full());
    }
}
