//! Collects the text of one message after the other.

use super::fault::Fault;

/// Collects frames. Memory grows with the bytes that arrived, never with the length that the peer
/// announces.
#[derive(Debug)]
pub struct FrameReader {
    max_bytes: u32,
    length: Vec<u8>,
    text: Vec<u8>,
}

impl FrameReader {
    /// A reader for frames of at most `max_bytes` of text.
    pub fn new(max_bytes: u32) -> Self {
        Self {
            max_bytes,
            length: Vec::with_capacity(LENGTH_LEN),
            text: Vec::new(),
        }
    }

    /// Takes bytes from the front of `input` up to the end of a frame and returns its text when it
    /// is complete.
    ///
    /// # Errors
    /// When the announced length is 0 or beyond the bound; the connection is useless then.
    pub fn read(&mut self, input: &mut &[u8]) -> Result<Option<Vec<u8>>, Fault> {
        take(input, &mut self.length, LENGTH_LEN);
        let Some(length) = self.length.first_chunk() else {
            return Ok(None);
        };
        let length = u32::from_be_bytes(*length);
        if length == 0 || length > self.max_bytes {
            let text = format!(
                "{length} bytes announced, from 1 to {} are allowed",
                self.max_bytes
            );
            return Err(Fault::new("length", text));
        }

        take(input, &mut self.text, length as usize);
        if self.text.len() < length as usize {
            return Ok(None);
        }

        self.length.clear();
        Ok(Some(std::mem::take(&mut self.text)))
    }

    /// Bytes of an unfinished frame.
    pub fn buffered_bytes(&self) -> usize {
        self.length.len() + self.text.len()
    }
}

const LENGTH_LEN: usize = 4;

/// Moves bytes from the front of `input` until `into` has `len` of them.
fn take(input: &mut &[u8], into: &mut Vec<u8>, len: usize) {
    let (taken, rest) = input.split_at(len.saturating_sub(into.len()).min(input.len()));
    into.extend_from_slice(taken);
    *input = rest;
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn frame(text: &[u8]) -> Vec<u8> {
        [&(text.len() as u32).to_be_bytes()[..], text].concat()
    }

    #[test]
    fn lengths_are_checked_before_anything_is_stored() {
        for length in [0_u32, 17, 0x8000_0000, u32::MAX] {
            let mut reader = FrameReader::new(16);
            let fault = reader
                .read(&mut &length.to_be_bytes()[..])
                .expect_err("out of bounds");
            assert_eq!(fault.member, "length");
            assert!(fault.text.contains(&length.to_string()), "{fault}");
        }

        let mut reader = FrameReader::new(16);
        assert_eq!(
            reader.read(&mut &frame(&[b'x'; 16])[..]),
            Ok(Some(vec![b'x'; 16]))
        );
    }

    #[test]
    fn an_announced_length_alone_allocates_nothing() {
        let mut reader = FrameReader::new(1 << 20);
        assert_eq!(reader.read(&mut &[0, 16, 0, 0, b'{'][..]), Ok(None));
        assert!(reader.text.capacity() < 1024);
        assert_eq!(reader.buffered_bytes(), 5);
    }

    proptest! {
        #[test]
        fn any_segmentation_gives_the_same_texts(
            texts in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..50), 0..9),
            cut in 1_usize..70,
        ) {
            let wire: Vec<u8> = texts.iter().flat_map(|text| frame(text)).collect();
            let (mut reader, mut found) = (FrameReader::new(50), Vec::new());
            for mut piece in wire.chunks(cut) {
                while !piece.is_empty() {
                    found.extend(reader.read(&mut piece).expect("lengths within the bound"));
                }
            }
            prop_assert_eq!(found, texts);
            prop_assert_eq!(reader.buffered_bytes(), 0);
        }
    }
}
