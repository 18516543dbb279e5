//! Boundaries of TLS records in a stream of ciphertext.

/// Counts the records of a stream by their headers (RFC 8446, section 5.1): type, version, and
/// length of the body.
#[derive(Default)]
pub(super) struct RecordCounter {
    /// Bytes of the present header that have arrived.
    header: [u8; HEADER_LEN],
    header_len: usize,
    /// Bytes of the present body that have not arrived.
    body_left: usize,
}

const HEADER_LEN: usize = 5;

impl RecordCounter {
    /// Returns how many records begin in `bytes`, which follow those of the call before.
    pub(super) fn count(&mut self, mut bytes: &[u8]) -> u64 {
        let mut records = 0;

        while let Some((first, rest)) = bytes.split_first() {
            if self.body_left > 0 {
                let (_, behind) = bytes.split_at(self.body_left.min(bytes.len()));
                self.body_left -= bytes.len() - behind.len();
                bytes = behind;
                continue;
            }

            records += u64::from(self.header_len == 0);
            self.take_header_byte(*first);
            bytes = rest;
        }

        records
    }

    fn take_header_byte(&mut self, byte: u8) {
        // `header_len` is below `HEADER_LEN` here: the last byte of a header sets it to 0.
        if let Some(place) = self.header.get_mut(self.header_len) {
            *place = byte;
        }

        self.header_len += 1;

        if self.header_len == HEADER_LEN {
            let [_, _, _, high, low] = self.header;
            // After a body of 0 bytes the next byte begins a header.
            self.body_left = usize::from(u16::from_be_bytes([high, low]));
            self.header_len = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(body_len: u16) -> Vec<u8> {
        let mut record = vec![23, 3, 3];
        record.extend(body_len.to_be_bytes());
        record.resize(HEADER_LEN + usize::from(body_len), 0);
        record
    }

    #[test]
    fn records_are_counted_once_in_any_segmentation() {
        let lengths = [0, 1, 17, 300, 0, 16_640, 2];
        let stream: Vec<u8> = lengths.into_iter().flat_map(record).collect();

        for piece_len in [1, 2, 5, 6, 7, 100, 4096, stream.len()] {
            let mut counter = RecordCounter::default();
            let counted: u64 = stream
                .chunks(piece_len)
                .map(|piece| counter.count(piece))
                .sum();
            assert_eq!(counted, lengths.len() as u64, "pieces of {piece_len} bytes");
        }
    }
}
