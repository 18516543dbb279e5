//! Memory that is sent again and again.

use std::io::{self, IoSlice};
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use linerate_sys::PageBuffer;
use linerate_sys::page_buffer::PAGE_ALIGNMENT;
use linerate_sys::stream_io::{self, Followed, GATHERED_COPIES_MAX};

/// A block whose end is followed by its beginning. Each call reads on from [`STEP_BYTES`] behind the end of the last one.
///
/// The kernel copies what a thread sends into pages that it fills one behind the other, and blocks are mostly multiples of a
/// page. Calls that continued where the last one ended would keep the distance of destination and source modulo 4096 until
/// another stream writes. A few distances make each copy slow ([`linerate_sys::page_buffer`]); a step changes them with each call.
pub(crate) struct RepeatedBlock {
    memory: Arc<PageBuffer>,
    /// Where the next call begins to read.
    position: usize,
}

/// An odd number of cache lines of 64 bytes: 64 calls meet each distance that is a multiple of a line once, and what was
/// aligned to lines stays so.
const STEP_BYTES: usize = 17 * 64;

impl RepeatedBlock {
    pub(crate) fn new(memory: Arc<PageBuffer>) -> Self {
        Self { memory, position: 0 }
    }

    /// Sends `want` bytes or fewer in one call: what the socket takes, and at most [`GATHERED_COPIES_MAX`] slices.
    ///
    /// # Errors
    /// As [`stream_io::send`].
    pub(crate) fn send(&mut self, fd: BorrowedFd<'_>, want: usize) -> io::Result<usize> {
        let rest = &self.memory[self.position..];
        let sent = match rest.get(..want) {
            Some(portion) => stream_io::send(fd, portion),
            None => send_gathered(fd, rest, &self.memory, want),
        }?;
        self.position = (self.position + sent + self.step()) % self.memory.len();
        Ok(sent)
    }

    /// A block shorter than a page changes the distance without a step, and would only be divided.
    fn step(&self) -> usize {
        if self.memory.len() > PAGE_ALIGNMENT { STEP_BYTES } else { 0 }
    }
}

/// Sends `rest` and then `block` as often as `want` bytes need it.
fn send_gathered(fd: BorrowedFd<'_>, rest: &[u8], block: &[u8], mut want: usize) -> io::Result<usize> {
    let mut slices = [IoSlice::new(&[]); GATHERED_COPIES_MAX];
    let mut count = 0;
    let mut part = rest;
    while want > 0 && count < slices.len() {
        part = &part[..part.len().min(want)];
        slices[count] = IoSlice::new(part);
        count += 1;
        want -= part.len();
        part = block;
    }
    stream_io::send_slices(fd, &slices[..count], Followed::No)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::os::fd::AsFd;

    use linerate_model::spec::Payload;

    use super::super::tests::connected;
    use super::*;
    use crate::data::payload;

    const CACHE_LINE_BYTES: usize = 64;

    /// Places in the block from which each of `calls` writes of `want` bytes was read; the content of the block does not repeat.
    fn places(block: &Arc<PageBuffer>, calls: usize, want: usize) -> Vec<usize> {
        let (sender, receiver) = connected();
        let mut repeated = RepeatedBlock::new(Arc::clone(block));
        let mut buffer = vec![0; want + 1];
        let place = |_| {
            assert_eq!(repeated.send(sender.as_fd(), want).expect("room"), want);
            assert_eq!(receiver.recv(&mut buffer).expect("a datagram"), want, "one write");
            let place = (0..block.len()).find(|at| buffer.starts_with(&block[*at..(at + 8).min(block.len())]));
            let place = place.expect("content of the block");
            assert!(
                block.iter().cycle().skip(place).take(want).eq(&buffer[..want]),
                "its end is followed by its beginning"
            );
            place
        };
        (0..calls).map(place).collect()
    }

    #[test]
    fn no_distance_of_destination_and_source_lasts() {
        let block = Arc::new(payload::block(Payload::Random, 131_072).expect("memory"));
        let want = 2 * PAGE_ALIGNMENT;
        let places = places(&block, PAGE_ALIGNMENT / CACHE_LINE_BYTES, want);
        let distance = |(call, place): (usize, &usize)| (call * want).wrapping_sub(*place) % PAGE_ALIGNMENT;
        let distances: BTreeSet<usize> = places.iter().enumerate().map(distance).collect();
        assert_eq!(distances.len(), places.len(), "each once");
        assert!(distances.iter().all(|distance| distance % CACHE_LINE_BYTES == 0));
    }

    #[test]
    fn short_block_is_not_divided() {
        let block = Arc::new(payload::block(Payload::Random, 1_000).expect("memory"));
        assert_eq!(places(&block, 3, 1_000), [0, 0, 0]);
        assert_eq!(places(&block, 3, 1_500), [0, 500, 0]);
    }
}
