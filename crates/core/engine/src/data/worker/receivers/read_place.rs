//! Where in its buffer a receiver puts what it reads.

use std::ops::Range;

use linerate_sys::page_buffer::PAGE_ALIGNMENT;

use crate::data::worker::senders::repeated_block::STEP_BYTES;

/// The place of the next read.
///
/// A few distances of destination and source modulo 4096 make each copy slow
/// ([`linerate_sys::page_buffer`]). Most senders fill pages one behind the other, and sendfile(2)
/// sends pages of a file, but a read may end anywhere in a page. Reads that all begin at one place
/// get another distance each time, until one is slow: the queue is not emptied then, reads are of
/// whole pages, and the distance stays. So a read begins where its position in the stream is in a
/// page, which keeps the distance, and long queues show whether another one is faster.
#[derive(Default)]
pub(crate) struct ReadPlace {
    shift: usize,
    /// Time per byte of the fastest long queue so far, ps.
    fastest_ps: Option<u64>,
}

/// Bytes that a buffer has behind its longest read.
pub(crate) const PLACES_BYTES: usize = PAGE_ALIGNMENT;
/// Copies at a slow distance take three to five times as long.
const SLOW_FACTOR: u64 = 2;

impl ReadPlace {
    /// Where in the buffer to read `len` bytes that follow the first `total` bytes of the stream.
    pub(crate) fn range(&self, total: u64, len: usize) -> Range<usize> {
        // Source pages of the sender begin at multiples of the page size of the stream, so this
        // keeps the distance modulo 4096 constant while reads end anywhere.
        let start = ((total % PAGE_ALIGNMENT as u64) as usize + self.shift) % PAGE_ALIGNMENT;
        start..start + len
    }

    /// Takes how long it took to read this number of bytes of a queue that was not emptied. The
    /// next distance is tried after the first one, and after a slow one.
    pub(crate) fn take(&mut self, elapsed_ns: u64, bytes: usize) {
        let ps = elapsed_ns.saturating_mul(1_000) / (bytes as u64).max(1);
        let is_slow = self
            .fastest_ps
            .is_none_or(|fastest_ps| ps > SLOW_FACTOR * fastest_ps);
        if is_slow {
            self.shift = (self.shift + STEP_BYTES) % PAGE_ALIGNMENT;
        }

        self.fastest_ps = Some(self.fastest_ps.map_or(ps, |fastest_ps| ps.min(fastest_ps)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEN: usize = 1 << 18;

    #[test]
    fn the_distance_to_pages_of_the_stream_stays() {
        let place = ReadPlace::default();
        for total in [0, 1, 4095, 4096, 65_160, u64::MAX] {
            let range = place.range(total, LEN);
            assert_eq!(
                (range.start as u64 % 4096, range.len()),
                (total % 4096, LEN)
            );
            assert!(range.end <= LEN + PLACES_BYTES);
        }
    }

    #[test]
    fn a_slow_distance_is_left_and_a_fast_one_is_kept() {
        // (ns for each read of a long queue, whether the next one has another distance)
        for reads in [
            // The first distance has nothing to compare with.
            &[(4000, true), (1000, false), (1100, false), (900, false)][..],
            &[(1000, true), (4000, true), (1000, false)][..],
            // Another program has the CPU for a while.
            &[(1000, true), (1000, false), (9000, true), (1000, false)][..],
        ] {
            let mut place = ReadPlace::default();
            for (elapsed_ns, is_left) in reads {
                let before = place.range(0, LEN);
                place.take(*elapsed_ns, LEN);
                assert_eq!(
                    place.range(0, LEN) != before,
                    *is_left,
                    "{elapsed_ns} ns of {reads:?}"
                );
            }
        }
    }

    #[test]
    fn a_buffer_has_room_for_every_place() {
        let mut place = ReadPlace::default();
        for _ in 0..PAGE_ALIGNMENT {
            place.fastest_ps = None;
            place.take(1, 1);
            assert!(place.range(4095, LEN).end <= LEN + PLACES_BYTES);
        }
    }
}
