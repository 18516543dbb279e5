//! Frames of a load stream: data, and echoes between them.
//!
//! ```text
//! type u8 | 0 | stream u16 | len u32 | stamp u64     16 bytes, then len bytes of data
//! ```

use crate::wire::bytes::{Reader, Writer};

/// Bytes of a frame's head.
pub const HEAD_LEN: usize = 16;
/// Most bytes of data in one frame.
pub const DATA_MAX: u32 = 1 << 20;

/// Kind of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FrameType {
    /// Payload follows.
    Data = 1,
    /// To be answered with [`FrameType::EchoReply`] and the same stamp.
    EchoRequest = 2,
    /// Answer to an echo request.
    EchoReply = 3,
    /// Nothing follows in this direction.
    End = 4,
}

impl FrameType {
    fn from_byte(byte: u8) -> Option<Self> {
        [Self::Data, Self::EchoRequest, Self::EchoReply, Self::End]
            .into_iter()
            .find(|kind| *kind as u8 == byte)
    }
}

/// Head of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameHead {
    /// Kind of the frame.
    pub frame_type: FrameType,
    /// Number of the stream in its phase.
    pub stream: u16,
    /// Bytes of data that follow, at most [`DATA_MAX`]; 0 but for data.
    pub len: u32,
    /// Sender's monotonic clock, ns; of a reply that of its request.
    pub stamp: u64,
}

impl FrameHead {
    /// The bytes on the wire.
    pub fn encode(&self) -> [u8; HEAD_LEN] {
        let mut bytes = [0; HEAD_LEN];
        let mut writer = Writer(&mut bytes);
        writer.put(&[self.frame_type as u8, 0]);
        writer.put(&self.stream.to_be_bytes());
        writer.put(&self.len.to_be_bytes());
        writer.put(&self.stamp.to_be_bytes());
        bytes
    }

    /// Reads a head.
    ///
    /// # Errors
    /// When the type is unknown, the reserved byte is not 0, or the length does not fit the type.
    pub fn decode(bytes: &[u8; HEAD_LEN]) -> Result<Self, FrameError> {
        let mut reader = Reader(bytes);
        let mut fields = || {
            Some((
                reader.take::<2>()?,
                reader.half()?,
                reader.word()?,
                reader.long()?,
            ))
        };
        let ([type_byte, reserved], stream, len, stamp) = fields().ok_or(FrameError::Type(0))?;
        let frame_type = FrameType::from_byte(type_byte).ok_or(FrameError::Type(type_byte))?;

        if reserved != 0 {
            return Err(FrameError::Reserved(reserved));
        }

        let len_max = if frame_type == FrameType::Data {
            DATA_MAX
        } else {
            0
        };
        if len > len_max {
            return Err(FrameError::Length { frame_type, len });
        }

        Ok(Self {
            frame_type,
            stream,
            len,
            stamp,
        })
    }
}

/// Why the bytes of a stream are no frames. The stream is useless from there on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// Unknown type.
    #[error("frame of unknown type {0}")]
    Type(u8),
    /// A reserved byte is not 0.
    #[error("reserved byte of a frame is {0}")]
    Reserved(u8),
    /// Data longer than [`DATA_MAX`], or another frame with data.
    #[error("{frame_type:?} frame of {len} bytes")]
    Length {
        /// Type of the frame.
        frame_type: FrameType,
        /// Its announced length.
        len: u32,
    },
    /// Bytes behind the end of the direction.
    #[error("bytes behind the end frame")]
    AfterEnd,
}

/// A frame other than data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frame {
    /// To be answered.
    EchoRequest {
        /// Stamp to be sent back.
        stamp: u64,
    },
    /// Answer to a request of this end.
    EchoReply {
        /// Stamp of the request.
        stamp: u64,
    },
    /// Nothing follows.
    End,
}

/// Resumable parser of one direction of a stream. Holds no payload.
#[derive(Debug, Clone, Default)]
pub struct FrameReader {
    head: [u8; HEAD_LEN],
    head_read: usize,
    data_left: u32,
    ended: Option<FrameError>,
}

impl FrameReader {
    /// Takes the next bytes of the stream, passes frames other than data to `f` in their order, and
    /// returns how many of the bytes are payload.
    ///
    /// # Errors
    /// When the bytes are no frames; every later call returns the same.
    #[inline]
    pub fn feed(&mut self, bytes: &[u8], mut f: impl FnMut(Frame)) -> Result<u64, FrameError> {
        let mut rest = bytes;
        let mut payload = 0;

        loop {
            let data = rest.len().min(self.data_left as usize);
            payload += data as u64;
            // At most `data_left`, so it fits.
            self.data_left -= data as u32;
            rest = rest.get(data..).unwrap_or_default();

            if rest.is_empty() {
                return Ok(payload);
            }

            // A head may be cut anywhere between two reads.
            if let Some(head) = self.take_head(&mut rest)? {
                self.begin(&head, &mut f)?;
            }
        }
    }

    fn take_head(&mut self, rest: &mut &[u8]) -> Result<Option<[u8; HEAD_LEN]>, FrameError> {
        // The position in the stream is lost for good after an error.
        if let Some(error) = self.ended {
            return Err(error);
        }

        let missing = self.head.get_mut(self.head_read..).unwrap_or_default();
        let (taken, behind) = rest.split_at(missing.len().min(rest.len()));
        for (to, from) in missing.iter_mut().zip(taken) {
            *to = *from;
        }

        self.head_read += taken.len();
        *rest = behind;
        if self.head_read < HEAD_LEN {
            return Ok(None);
        }

        self.head_read = 0;
        Ok(Some(self.head))
    }

    fn begin(
        &mut self,
        head: &[u8; HEAD_LEN],
        f: &mut impl FnMut(Frame),
    ) -> Result<(), FrameError> {
        let FrameHead {
            frame_type,
            len,
            stamp,
            ..
        } = FrameHead::decode(head).inspect_err(|error| self.ended = Some(*error))?;
        match frame_type {
            // Payload is counted, not stored.
            FrameType::Data => self.data_left = len,
            FrameType::EchoRequest => f(Frame::EchoRequest { stamp }),
            FrameType::EchoReply => f(Frame::EchoReply { stamp }),
            FrameType::End => {
                self.ended = Some(FrameError::AfterEnd);
                f(Frame::End);
            }
        }

        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const DATA: [u8; HEAD_LEN] = [1, 0, 0, 7, 0, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2];

    fn head(frame_type: FrameType, len: u32, stamp: u64) -> [u8; HEAD_LEN] {
        FrameHead {
            frame_type,
            stream: 7,
            len,
            stamp,
        }
        .encode()
    }

    fn read(pieces: &[&[u8]]) -> Result<(u64, Vec<Frame>), FrameError> {
        let (mut reader, mut frames, mut payload) = (FrameReader::default(), Vec::new(), 0);
        for piece in pieces {
            payload += reader.feed(piece, |frame| frames.push(frame))?;
        }
        Ok((payload, frames))
    }

    #[test]
    fn a_head_has_its_fields_at_their_places() {
        let data = FrameHead {
            frame_type: FrameType::Data,
            stream: 7,
            len: DATA_MAX,
            stamp: 258,
        };
        assert_eq!(data.encode(), DATA);
        assert_eq!(FrameHead::decode(&DATA), Ok(data));
    }

    #[test]
    fn near_misses_are_refused() {
        let rows = [
            (
                "type 0",
                head(FrameType::Data, 0, 0),
                0,
                0,
                FrameError::Type(0),
            ),
            ("type 5", DATA, 0, 5, FrameError::Type(5)),
            ("reserved", DATA, 1, 1, FrameError::Reserved(1)),
            (
                "one more than 1 MiB",
                DATA,
                7,
                1,
                FrameError::Length {
                    frame_type: FrameType::Data,
                    len: DATA_MAX + 1,
                },
            ),
            (
                "echo with data",
                head(FrameType::EchoRequest, 0, 0),
                7,
                1,
                FrameError::Length {
                    frame_type: FrameType::EchoRequest,
                    len: 1,
                },
            ),
            (
                "end with data",
                head(FrameType::End, 0, 0),
                4,
                1,
                FrameError::Length {
                    frame_type: FrameType::End,
                    len: 1 << 24,
                },
            ),
        ];
        for (name, mut bytes, at, wrong, expected) in rows {
            bytes[at] = wrong;
            assert_eq!(FrameHead::decode(&bytes), Err(expected), "{name}");
            assert_eq!(read(&[&bytes]), Err(expected), "{name}");
        }
    }

    #[test]
    fn echoes_pass_between_data_and_bytes_behind_the_end_are_an_error() {
        let stream = [
            &head(FrameType::Data, 3, 0)[..],
            b"abc",
            &head(FrameType::EchoRequest, 0, 11),
            &head(FrameType::Data, 0, 0),
            &head(FrameType::EchoReply, 0, 12),
            &head(FrameType::End, 0, 0),
        ]
        .concat();
        let frames = vec![
            Frame::EchoRequest { stamp: 11 },
            Frame::EchoReply { stamp: 12 },
            Frame::End,
        ];
        assert_eq!(read(&[&stream]), Ok((3, frames)));
        assert_eq!(read(&[&stream, b"x"]), Err(FrameError::AfterEnd));
        assert_eq!(read(&[&stream, b""]).map(|(payload, _)| payload), Ok(3));
    }

    #[test]
    fn a_broken_stream_stays_broken() {
        let mut reader = FrameReader::default();
        assert_eq!(reader.feed(&[9; 16], |_| ()), Err(FrameError::Type(9)));
        assert_eq!(reader.feed(&DATA, |_| ()), Err(FrameError::Type(9)));
    }

    proptest! {
        #[test]
        fn any_segmentation_gives_the_same_frames(
            frames in prop::collection::vec((0_u8..3, 0_usize..40, any::<u64>()), 0..20),
            cut in 1_usize..50,
        ) {
            let mut wire = Vec::new();
            let (mut payload, mut expected) = (0, Vec::new());
            for (kind, len, stamp) in frames {
                match kind {
                    0 => {
                        wire.extend(head(FrameType::Data, len as u32, stamp));
                        wire.extend(vec![b'd'; len]);
                        payload += len as u64;
                    }
                    1 => {
                        wire.extend(head(FrameType::EchoRequest, 0, stamp));
                        expected.push(Frame::EchoRequest { stamp });
                    }
                    _ => {
                        wire.extend(head(FrameType::EchoReply, 0, stamp));
                        expected.push(Frame::EchoReply { stamp });
                    }
                }
            }
            let pieces: Vec<&[u8]> = wire.chunks(cut).collect();
            prop_assert_eq!(read(&pieces), Ok((payload, expected)));
        }
    }
}
