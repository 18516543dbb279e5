//! Memory that is sent again and again.

use std::io::{self, IoSlice};
use std::os::fd::AsFd;
use std::sync::Arc;

use linerate_sys::PageBuffer;
use linerate_sys::page_buffer::PAGE_ALIGNMENT;
use linerate_sys::stream_io::{self, Followed, GATHERED_COPIES_MAX};

/// A block that is sent again and again. Its memory is longer: each call takes the block from
/// another place of it.
///
/// The kernel copies what a thread sends into pages that it fills one behind the other, and blocks
/// are mostly multiples of a page. Calls that read the block at one place would keep the distance
/// of destination and source modulo 4096 until another stream writes. A few distances make each
/// copy slow ([`linerate_sys::page_buffer`]); a shift changes them with each call.
pub(crate) struct RepeatedBlock {
    memory: Arc<PageBuffer>,
    len: usize,
    /// Where the block of the next call begins.
    shift: usize,
}

/// An odd number of cache lines of 64 bytes: what is aligned to lines stays so, and 64 shifts meet
/// each distance once. A multiple of ten as well, after which a repeating payload is the same.
pub(crate) const STEP_BYTES: usize = 5 * 64;
/// Bytes behind the block that shifts need.
const SHIFTS_BYTES: usize = STEP_BYTES * 64;

impl RepeatedBlock {
    /// The first `len` bytes of the memory. Without [`RepeatedBlock::room_for_shifts`] behind them
    /// they are sent from one place.
    pub(crate) fn new(memory: Arc<PageBuffer>, len: usize) -> Self {
        Self {
            memory,
            len,
            shift: 0,
        }
    }

    /// Bytes that the memory of a block should have behind it. Blocks of less than a page change
    /// the distance by themselves.
    pub(crate) fn room_for_shifts(len: usize) -> usize {
        if len > PAGE_ALIGNMENT {
            SHIFTS_BYTES
        } else {
            0
        }
    }

    /// Sends `want` bytes or fewer in one call, from `offset` in the block on: what the socket
    /// takes, and at most [`GATHERED_COPIES_MAX`] slices.
    ///
    /// # Errors
    /// As [`stream_io::send`].
    pub(crate) fn send(&mut self, fd: impl AsFd, offset: usize, want: usize) -> io::Result<usize> {
        let block = &self.memory[self.shift..][..self.len];
        let rest = &block[offset..];
        let sent = match rest.get(..want) {
            Some(portion) => stream_io::send(&fd, portion),
            None => send_gathered(&fd, rest, block, want),
        }?;

        if self.memory.len() >= self.len + SHIFTS_BYTES {
            self.shift = (self.shift + STEP_BYTES) % SHIFTS_BYTES;
        }

        Ok(sent)
    }
}

/// Sends `rest` and then `block` as often as `want` bytes need it.
fn send_gathered(fd: impl AsFd, rest: &[u8], block: &[u8], mut want: usize) -> io::Result<usize> {
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

    stream_io::send_slices(&fd, &slices[..count], Followed::No)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use linerate_model::spec::Payload;

    use super::*;
    use crate::data::payload;
    use crate::data::worker::tests::connected;

    const LEN: usize = 2 * PAGE_ALIGNMENT;

    /// Bytes that arrive of `calls` writes of one block each.
    fn blocks(
        payload: Payload,
        memory_len: usize,
        calls: usize,
    ) -> (Arc<PageBuffer>, Vec<Vec<u8>>) {
        let memory = Arc::new(payload::block(payload, memory_len).expect("memory"));
        let (sender, receiver) = connected();
        let mut repeated = RepeatedBlock::new(Arc::clone(&memory), LEN);
        let send = |_| {
            assert_eq!(repeated.send(&sender, 0, LEN).expect("room"), LEN);
            let mut block = vec![0; LEN + 1];
            let len = receiver.recv(&mut block).expect("a datagram");
            block.truncate(len);
            block
        };
        let blocks = (0..calls).map(send).collect();

        (memory, blocks)
    }

    /// Sent blocks are multiples of a page, so the place in the memory is the distance.
    #[test]
    fn no_distance_of_destination_and_source_lasts() {
        let (memory, blocks) = blocks(Payload::Random, LEN + SHIFTS_BYTES, 64);
        let place = |block: &Vec<u8>| {
            memory
                .windows(LEN)
                .position(|window| window == block)
                .expect("from the memory")
        };
        let distances: BTreeSet<usize> = blocks
            .iter()
            .map(|block| place(block) % PAGE_ALIGNMENT)
            .collect();
        assert_eq!(distances.len(), 64, "each once");
        assert!(
            distances.iter().all(|distance| distance % 64 == 0),
            "aligned to cache lines"
        );
    }

    #[test]
    fn repeating_payload_is_the_same_in_each_call() {
        let (memory, blocks) = blocks(Payload::Repeating, LEN + SHIFTS_BYTES, 65);
        assert!(blocks.iter().all(|block| block[..] == memory[..LEN]));
    }

    #[test]
    fn memory_without_room_for_shifts_is_sent_from_one_place() {
        let (memory, blocks) = blocks(Payload::Random, LEN + SHIFTS_BYTES - 1, 3);
        assert!(blocks.iter().all(|block| block[..] == memory[..LEN]));
    }
}
