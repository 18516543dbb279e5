//! Heads inside TCP data: every write (trip times), frame (isochronous) or burst begins with one.

use crate::wire::stamp::Timestamp;
use crate::wire::{put_word, take, word};

/// Bytes of a head, which are part of the burst.
pub const BURST_HEAD_LEN: usize = 92;
/// Largest burst that is accepted.
pub const BURST_LEN_MAX: u32 = 1 << 30;

/// The head of a burst.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BurstHead {
    /// Sender's clock at the start of the test.
    pub test_start: Timestamp,
    /// Sender's clock when this burst was written.
    pub written: Timestamp,
    /// Microseconds between two bursts, 0 for none planned.
    pub period_us: u32,
    /// Number of the burst, from 1.
    pub number: u32,
    /// Bytes of the burst, this head included.
    pub size_bytes: u32,
    /// Bytes of the test up to the end of this burst, as the sender counts.
    pub total_bytes: u64,
}

impl BurstHead {
    /// Reads a head; `None` for a size no burst has.
    pub fn parse(bytes: &[u8; BURST_HEAD_LEN]) -> Option<Self> {
        let word = |at| word(bytes, at).unwrap_or_default();
        let size_bytes = word(48);
        if !(BURST_HEAD_LEN as u32..=BURST_LEN_MAX).contains(&size_bytes) {
            return None;
        }

        Some(Self {
            test_start: Timestamp::read(bytes, 12)?,
            written: Timestamp::read(bytes, 20)?,
            period_us: word(40),
            number: word(44),
            size_bytes,
            total_bytes: u64::from(word(52)) | u64::from(word(56)) << 32,
        })
    }

    /// Writes the head over the start of a burst.
    pub fn write(&self, bytes: &mut [u8]) {
        if let Some(head) = bytes.get_mut(..BURST_HEAD_LEN) {
            head.fill(0);
            self.test_start.write(head, 12);
            self.written.write(head, 20);
            put_word(head, 40, self.period_us);
            put_word(head, 44, self.number);
            put_word(head, 48, self.size_bytes);
            put_word(head, 52, self.total_bytes as u32);
            put_word(head, 56, (self.total_bytes >> 32) as u32);
        }
    }
}

/// Finds the bursts in received data, from its start. Called for every block: between two heads it
/// only counts.
#[derive(Debug, Default)]
pub struct BurstReader {
    head: Vec<u8>,
    current: BurstHead,
    missing: u32,
    is_lost: bool,
}

impl BurstReader {
    /// Takes bytes up to the end of one burst from the front of `input`, and returns the head of
    /// that burst. Call it until `input` is empty.
    pub fn read(&mut self, input: &mut &[u8]) -> Option<BurstHead> {
        if self.is_lost {
            *input = &[];
            return None;
        }

        if self.missing == 0 {
            self.read_head(input)?;
        }

        let taken = input.len().min(self.missing as usize);
        *input = &input[taken..];
        self.missing -= taken as u32;

        if self.missing > 0 {
            return None;
        }

        self.head.clear();
        Some(self.current)
    }

    /// A head made no sense, so nothing behind it can be parsed.
    pub fn is_lost(&self) -> bool {
        self.is_lost
    }

    fn read_head(&mut self, input: &mut &[u8]) -> Option<()> {
        take(input, &mut self.head, BURST_HEAD_LEN);
        let Some(head) = BurstHead::parse(self.head.first_chunk()?) else {
            self.is_lost = true;
            *input = &[];
            return None;
        };
        self.missing = head.size_bytes - BURST_HEAD_LEN as u32;
        self.current = head;

        Some(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bursts(sizes: &[u32]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (size, number) in sizes.iter().zip(1..) {
            let at = bytes.len();
            bytes.resize(at + *size as usize, b'5');

            let head = BurstHead {
                number,
                size_bytes: *size,
                ..BurstHead::default()
            };
            head.write(&mut bytes[at..]);
        }

        bytes
    }

    fn read_all(reader: &mut BurstReader, mut input: &[u8]) -> Vec<BurstHead> {
        let mut found = Vec::new();
        while !input.is_empty() {
            found.extend(reader.read(&mut input));
        }
        found
    }

    #[test]
    fn a_head_that_makes_no_sense_ends_the_search() {
        let mut reader = BurstReader::default();
        let mut bytes = bursts(&[100, 100]);
        bytes[148..152].fill(0);
        assert_eq!(read_all(&mut reader, &bytes).len(), 1);
        assert!(reader.is_lost());
        assert_eq!(read_all(&mut reader, &bursts(&[100])), []);
    }

    proptest! {
        #[test]
        fn bursts_are_found_whatever_the_pieces(sizes in prop::collection::vec(92_u32..400, 0..9), piece in 1_usize..500) {
            let mut reader = BurstReader::default();
            let bytes = bursts(&sizes);
            let found: Vec<BurstHead> = bytes.chunks(piece).flat_map(|part| read_all(&mut reader, part)).collect();
            let found_sizes: Vec<u32> = found.iter().map(|head| head.size_bytes).collect();
            prop_assert_eq!(found_sizes, sizes);
        }
    }
}
