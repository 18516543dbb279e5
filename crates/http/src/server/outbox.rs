//! Answers on their way into a socket, in order.
//!
//! Heads and small bodies stand in one buffer, so that an answer of a kilobyte, or many of them, leave in one plain
//! write. Larger bodies are never copied into it: they are references to the block they consist of.

use std::collections::VecDeque;
use std::io::{self, IoSlice};

use linerate_sys::source_file::SourceFile;
use linerate_sys::stream_io::Followed;

use super::body_path::BodyPath;
use super::chunks::Chunks;
use super::content::{BLOCK_BYTES, Block, Content, Filling};

/// What has not been sent yet.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    /// Heads and small bodies.
    bytes: Vec<u8>,
    /// How many of these have been sent.
    bytes_sent: usize,
    parts: VecDeque<Part>,
    /// Everything that is left.
    left_bytes: u64,
}

#[derive(Debug)]
enum Part {
    /// The next bytes of the buffer.
    Bytes(usize),
    /// A body, or the rest of one.
    Body(Body),
    /// A body in chunks.
    Chunks(Box<Chunks>),
}

/// A stretch of a block's endless repetition.
#[derive(Debug, Clone, Copy)]
struct Body {
    filling: Filling,
    offset: u64,
    len: u64,
    path: BodyPath,
}

/// Where answers go. A socket, or a test's memory.
pub(crate) trait Wire {
    /// As [`linerate_sys::stream_io::send_slices`].
    fn send(&mut self, slices: &[IoSlice<'_>], followed: Followed) -> io::Result<usize>;
    /// As [`linerate_sys::stream_io::send_file`] from a position of its own.
    fn send_file(&mut self, file: &SourceFile, offset: u64, len: usize) -> io::Result<usize>;
}

/// How far a flush came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Flushed {
    /// Bytes the wire took.
    pub(crate) bytes: u64,
    /// Nothing is left.
    pub(crate) is_done: bool,
}

impl Outbox {
    /// Whether everything has been sent.
    pub(crate) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Whether it is time to send before more is added.
    pub(crate) fn is_full(&self) -> bool {
        self.left_bytes > LEFT_BYTES_MAX || self.parts.len() >= PARTS_MAX || self.bytes.len() >= BUFFER_BYTES_MAX
    }

    /// The buffer, to write a head to its end.
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

    /// Adds the first `len` bytes of a filling.
    pub(crate) fn push_body(&mut self, content: &Content, filling: Filling, len: u64, path: BodyPath) {
        if len == 0 {
            return;
        }
        if len <= COPIED_BYTES_MAX {
            let run = content.block(filling).run(0, len);
            return self.write(|bytes| bytes.extend_from_slice(run));
        }
        self.left_bytes += len;
        self.parts.push_back(Part::Body(Body {
            filling,
            offset: 0,
            len,
            path,
        }));
    }

    /// Adds a body in chunks.
    pub(crate) fn push_chunks(&mut self, chunks: Chunks) {
        self.left_bytes += chunks.left_bytes();
        self.parts.push_back(Part::Chunks(Box::new(chunks)));
    }

    /// Sends until everything is sent or the wire takes no more.
    ///
    /// # Errors
    /// The wire's, apart from its being full.
    pub(crate) fn flush(&mut self, wire: &mut impl Wire, content: &Content) -> io::Result<Flushed> {
        let mut bytes = 0;
        let is_done = loop {
            let (wanted, sent) = match self.send_some(wire, content) {
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
            // The rest would be refused: asking costs a system call, and readiness will tell.
            if sent < wanted && !self.is_empty() {
                break false;
            }
        };
        if is_done {
            self.clear();
        }
        Ok(Flushed { bytes, is_done })
    }

    /// One call: how much it was given and how much it took; `None` when nothing is left.
    fn send_some(&mut self, wire: &mut impl Wire, content: &Content) -> io::Result<Option<(usize, usize)>> {
        let progress = match self.parts.front_mut() {
            None => return Ok(None),
            Some(Part::Body(body)) if body.path != BodyPath::Copy => body.send(wire, content)?,
            Some(Part::Chunks(chunks)) => {
                let staged = chunks.staged(content);
                (staged.len(), wire.send(&[IoSlice::new(staged)], Followed::No)?)
            }
            Some(Part::Bytes(_) | Part::Body(_)) => self.send_gathered(wire, content)?,
        };
        Ok(Some(progress))
    }

    /// Sends all that can be named by slices, up to what cannot.
    fn send_gathered(&self, wire: &mut impl Wire, content: &Content) -> io::Result<(usize, usize)> {
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
                    for run in body.runs(content.block(body.filling)) {
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
        let sent = wire.send(slices.get(..count).unwrap_or_default(), followed)?;
        Ok((wanted, sent))
    }

    /// Takes `sent` bytes off the front.
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

    /// What is left, in a memory of its own that is as small as it can be; nothing is left here.
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

    /// Forgets what was sent and keeps the buffer for the next answers.
    fn clear(&mut self) {
        self.bytes.clear();
        self.bytes_sent = 0;
        self.left_bytes = 0;
    }
}

/// Adds a slice; `false` when there is no room.
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
    /// The slices it consists of.
    fn runs(self, block: &Block) -> impl Iterator<Item = &[u8]> {
        let mut done = 0;
        std::iter::from_fn(move || {
            let run = block.run(self.offset + done, self.len - done);
            done += run.len() as u64;
            (!run.is_empty()).then_some(run)
        })
    }

    /// Sends from the file, where the system had room for one.
    fn send(&self, wire: &mut impl Wire, content: &Content) -> io::Result<(usize, usize)> {
        let block = content.block(self.filling);
        let run = block.run(self.offset, self.len);
        let sent = match block.file() {
            Some(file) => wire.send_file(file, self.offset % BLOCK_BYTES as u64, run.len())?,
            None => wire.send(&[IoSlice::new(run)], Followed::No)?,
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

/// Bodies up to this size are copied behind their head: that costs less than a second slice.
const COPIED_BYTES_MAX: u64 = 4096;
/// Slices of one call.
const SLICES_MAX: usize = 64;
/// Parts after which it is time to send.
const PARTS_MAX: usize = 64;
/// Buffered bytes after which it is time to send.
const BUFFER_BYTES_MAX: usize = 128 * 1024;
/// Bytes of answers after which it is time to send, and no request is read before they are gone.
const LEFT_BYTES_MAX: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes at most `room` bytes in total, and at most `bite` per call.
    struct Memory<'a> {
        content: &'a Content,
        taken: Vec<u8>,
        room: usize,
        bite: usize,
        followed: Vec<Followed>,
    }

    impl Memory<'_> {
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

    impl Wire for Memory<'_> {
        fn send(&mut self, slices: &[IoSlice<'_>], followed: Followed) -> io::Result<usize> {
            self.followed.push(followed);
            let all: Vec<u8> = slices.iter().flat_map(|slice| slice.to_vec()).collect();
            self.take(&all)
        }

        fn send_file(&mut self, _: &SourceFile, offset: u64, len: usize) -> io::Result<usize> {
            self.take(self.content.block(Filling::Pattern).run(offset, len as u64))
        }
    }

    fn filled(content: &Content, path: BodyPath) -> (Outbox, Vec<u8>) {
        let mut outbox = Outbox::default();
        let mut expected = Vec::new();
        for len in [10, 5000, 0, BLOCK_BYTES as u64 * 2 + 77, 4096] {
            outbox.write(|bytes| bytes.extend_from_slice(b"head"));
            outbox.push_body(content, Filling::Pattern, len, path);
            expected.extend_from_slice(b"head");
            let mut done = 0;
            while done < len {
                let run = content.block(Filling::Pattern).run(done, len - done);
                expected.extend_from_slice(run);
                done += run.len() as u64;
            }
        }
        (outbox, expected)
    }

    #[test]
    fn what_was_put_in_comes_out_in_order_whatever_the_wire_takes_at_once() {
        let content = Content::default();
        for path in [BodyPath::Copy, BodyPath::Sendfile, BodyPath::SendfileApart] {
            for (bite, room) in [(usize::MAX, usize::MAX), (1000, usize::MAX), (4099, 10_000)] {
                let (mut outbox, expected) = filled(&content, path);
                let mut wire = Memory {
                    content: &content,
                    taken: Vec::new(),
                    room,
                    bite,
                    followed: Vec::new(),
                };
                let mut sent = 0;
                while !outbox.is_empty() {
                    let flushed = outbox.flush(&mut wire, &content).expect("memory does not fail");
                    sent += flushed.bytes;
                    assert_eq!(flushed.is_done, outbox.is_empty());
                    wire.room = room;
                }
                assert!(wire.taken == expected, "{path:?} {bite} {room}");
                assert_eq!(sent, expected.len() as u64);
            }
        }
    }

    #[test]
    fn a_head_waits_for_its_body_unless_they_leave_apart() {
        let content = Content::default();
        for (path, followed) in [
            (BodyPath::Sendfile, Followed::Soon),
            (BodyPath::SendfileApart, Followed::No),
        ] {
            let mut outbox = Outbox::default();
            outbox.write(|bytes| bytes.extend_from_slice(b"head"));
            outbox.push_body(&content, Filling::Pattern, 100_000, path);
            let mut wire = Memory {
                content: &content,
                taken: Vec::new(),
                room: usize::MAX,
                bite: usize::MAX,
                followed: Vec::new(),
            };
            let flushed = outbox.flush(&mut wire, &content).expect("memory does not fail");
            assert!(flushed.is_done);
            assert_eq!(wire.followed, [followed], "{path:?}");
        }
    }

    #[test]
    fn an_outbox_is_full_in_bytes_or_in_parts() {
        let content = Content::default();
        let mut large = Outbox::default();
        large.push_body(&content, Filling::Pattern, LEFT_BYTES_MAX + 1, BodyPath::Copy);
        assert!(large.is_full());
        let mut many = Outbox::default();
        for _ in 0..PARTS_MAX / 2 {
            assert!(!many.is_full());
            many.write(|bytes| bytes.push(b'x'));
            many.push_body(&content, Filling::Pattern, COPIED_BYTES_MAX + 1, BodyPath::Copy);
        }
        assert!(many.is_full());
    }
}
