//! Length-prefixed JSON on the control connection, read as its bytes arrive.

use thiserror::Error;

/// Longest parameter text a server accepts, as in release 3.18 and later.
pub const MAX_PARAMS_BYTES: u32 = 8192;
/// Longest results a client accepts; they may contain the server's complete report.
pub const MAX_RESULTS_BYTES_CLIENT: u32 = 64 << 20;
/// Longest results a server accepts of a test with few streams.
pub const MAX_RESULTS_BYTES_SERVER: u32 = 1 << 20;

/// Generous size of one stream in a client's results.
const RESULT_BYTES_PER_STREAM: u32 = 512;

/// Longest results a server accepts of a test with that many streams in both directions.
pub fn max_results_bytes_server(total_streams: u32) -> u32 {
    MAX_RESULTS_BYTES_SERVER.max(total_streams.saturating_mul(RESULT_BYTES_PER_STREAM))
}

/// A length that is refused before any of the text is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum FrameError {
    /// Real peers never send an empty text.
    #[error("empty JSON text announced")]
    Empty,
    /// Longer than the caller allows; includes lengths that are negative for real peers.
    #[error("JSON text of {announced_bytes} bytes announced, at most {max_bytes} are allowed")]
    TooLong {
        /// Length that the peer announced.
        announced_bytes: u32,
        /// Largest length allowed.
        max_bytes: u32,
    },
    /// This host has no memory for what has arrived.
    #[error("no memory for JSON text of {announced_bytes} bytes")]
    OutOfMemory {
        /// Length that the peer announced.
        announced_bytes: u32,
    },
}

/// Collects one frame. Memory grows with the bytes that arrived, never with the length the peer
/// announces.
#[derive(Debug)]
pub struct FrameReader {
    max_bytes: u32,
    length: [u8; 4],
    length_read: usize,
    body: Vec<u8>,
}

impl FrameReader {
    /// A reader for one frame of at most `max_bytes` of text.
    pub fn new(max_bytes: u32) -> Self {
        Self {
            // Real peers read the length as a signed number.
            max_bytes: max_bytes.min(i32::MAX as u32),
            length: [0; 4],
            length_read: 0,
            body: Vec::new(),
        }
    }

    /// Takes bytes of this frame from the front of `input` and returns the text when it is
    /// complete.
    ///
    /// # Errors
    /// When the announced length is not acceptable, or there is no memory for the text.
    pub fn read(&mut self, input: &mut &[u8]) -> Result<Option<Vec<u8>>, FrameError> {
        while self.length_read < self.length.len() {
            let Some((byte, rest)) = input.split_first() else {
                return Ok(None);
            };
            self.length[self.length_read] = *byte;
            self.length_read += 1;
            *input = rest;
        }

        let announced_bytes = u32::from_be_bytes(self.length);
        match announced_bytes {
            0 => return Err(FrameError::Empty),
            n if n > self.max_bytes => {
                let max_bytes = self.max_bytes;
                return Err(FrameError::TooLong {
                    announced_bytes,
                    max_bytes,
                });
            }
            _ => {}
        }

        let missing = announced_bytes as usize - self.body.len();
        let (taken, rest) = input.split_at(missing.min(input.len()));
        // A peer must not be able to abort the process, as a failed allocation would.
        if self.body.try_reserve(taken.len()).is_err() {
            return Err(FrameError::OutOfMemory { announced_bytes });
        }

        self.body.extend_from_slice(taken);
        *input = rest;
        Ok((taken.len() == missing).then(|| std::mem::take(&mut self.body)))
    }

    /// The only byte that arrived so far. A peer that gives up here may have sent a state instead
    /// of a frame.
    pub fn lone_byte(&self) -> Option<u8> {
        (self.length_read == 1).then_some(self.length[0])
    }
}

/// A text with its length in front.
pub fn frame(text: &[u8]) -> Vec<u8> {
    let length = u32::try_from(text.len()).expect("our own texts are far below 4 GiB");
    [&length.to_be_bytes(), text].concat()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lengths_are_checked_before_anything_is_stored() {
        let too_long = |n| FrameError::TooLong {
            announced_bytes: n,
            max_bytes: 8192,
        };
        for (length, expected) in [
            (0, FrameError::Empty),
            (8193, too_long(8193)),
            (0x8000_0000, too_long(0x8000_0000)),
            (u32::MAX, too_long(u32::MAX)),
        ] {
            let mut reader = FrameReader::new(MAX_PARAMS_BYTES);
            assert_eq!(
                reader.read(&mut &u32::to_be_bytes(length)[..]),
                Err(expected)
            );
        }
    }

    #[test]
    fn an_announced_length_alone_allocates_nothing() {
        let mut reader = FrameReader::new(MAX_RESULTS_BYTES_CLIENT);
        assert_eq!(reader.read(&mut &[4, 0, 0, 0, b'{'][..]), Ok(None));
        assert!(reader.body.capacity() < 1024);
    }

    #[test]
    fn what_follows_the_frame_is_left_alone() {
        let bytes = [&frame(b"{}")[..], &[14]].concat();
        let mut input = &bytes[..];
        assert_eq!(
            FrameReader::new(100).read(&mut input),
            Ok(Some(b"{}".to_vec()))
        );
        assert_eq!(input, [14]);
    }

    proptest! {
        #[test]
        fn any_segmentation_gives_the_same_text(text in proptest::collection::vec(any::<u8>(), 1..300), cut in 1_usize..9) {
            let bytes = frame(&text);
            let mut reader = FrameReader::new(1000);
            let mut got = None;
            for mut chunk in bytes.chunks(cut) {
                prop_assert!(got.is_none());
                got = reader.read(&mut chunk).expect("an honest length");
            }
            prop_assert_eq!(got, Some(text));
        }
    }
}
