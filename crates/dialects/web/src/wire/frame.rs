//! WebSocket frames (RFC 6455, section 5): heads, messages of both ends, and a resumable reader of
//! what the other end sends.
//!
//! ```text
//! fin 1 bit | 0 3 bits | opcode 4 bits | masked 1 bit | length 7, 7 + 16 or 7 + 64 bits | mask u32
//! ```

/// Longest head: a client's, with a length of 64 bits and a mask.
pub const HEAD_BYTES_MAX: usize = 14;
/// Longest frame that is accepted, and longest message that ndt7 permits.
pub const FRAME_BYTES_MAX: u64 = 1 << 24;
/// Bit of a frame with a mask.
const MASKED: u8 = 0x80;
/// Longest payload of a control frame.
const CONTROL_BYTES_MAX: u64 = 125;

/// Kind of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opcode {
    /// Another part of a message.
    Continuation = 0,
    /// Begin of a message of text.
    Text = 1,
    /// Begin of a message of bytes.
    Binary = 2,
    /// Last frame of its direction.
    Close = 8,
    /// To be answered by a pong with the same payload.
    Ping = 9,
    /// Answer to a ping.
    Pong = 10,
}

impl Opcode {
    fn from_bits(bits: u8) -> Option<Self> {
        use Opcode::{Binary, Close, Continuation, Ping, Pong, Text};
        [Continuation, Text, Binary, Close, Ping, Pong]
            .into_iter()
            .find(|one| *one as u8 == bits)
    }

    fn is_control(self) -> bool {
        self as u8 >= Self::Close as u8
    }
}

/// Head of a whole message of a server, which does not mask.
pub fn head(opcode: Opcode, len: usize) -> ([u8; HEAD_BYTES_MAX], usize) {
    let mut bytes = [0; HEAD_BYTES_MAX];
    bytes[0] = 0x80 | opcode as u8;
    let head_len = match len {
        0..126 => {
            bytes[1] = len as u8;
            2
        }
        126..0x1_0000 => {
            bytes[1] = 126;
            bytes[2..4].copy_from_slice(&(len as u16).to_be_bytes());
            4
        }
        _ => {
            bytes[1] = 127;
            bytes[2..10].copy_from_slice(&(len as u64).to_be_bytes());
            10
        }
    };
    (bytes, head_len)
}

/// A whole message of a server.
pub fn message(opcode: Opcode, payload: &[u8]) -> Vec<u8> {
    let (head, len) = head(opcode, payload.len());
    [head.get(..len).unwrap_or_default(), payload].concat()
}

/// A whole message of a client.
pub fn masked(opcode: Opcode, payload: &[u8], mask: [u8; 4]) -> Vec<u8> {
    let (mut head, len) = head(opcode, payload.len());
    head[1] |= MASKED;
    let head = head.into_iter().take(len).chain(mask);
    let masked = payload.iter().zip(mask.iter().cycle());
    head.chain(masked.map(|(byte, mask)| byte ^ mask)).collect()
}

/// A close frame with its code (RFC 6455, section 7.4) and a reason in ASCII.
pub fn close(code: u16, reason: &str) -> Vec<u8> {
    let mut payload = [&code.to_be_bytes(), reason.as_bytes()].concat();
    payload.truncate(CONTROL_BYTES_MAX as usize);
    message(Opcode::Close, &payload)
}

/// Code of a regular end.
pub const NORMAL: u16 = 1000;
/// Code of an end by a message of the wrong kind.
pub const UNSUPPORTED: u16 = 1003;

/// Why the bytes of a client are no frames. The connection is useless from there on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// Reserved bits or an unknown opcode.
    #[error("frame with unknown bits {0:#04x}")]
    Bits(u8),
    /// A client masks all frames.
    #[error("unmasked frame")]
    Unmasked,
    /// A server masks none.
    #[error("masked frame of a server")]
    Masked,
    /// Longer than a bound.
    #[error("frame of {0} bytes")]
    Length(u64),
    /// A part of a control frame, or a continuation of nothing.
    #[error("fragment out of order")]
    Fragment,
}

impl FrameError {
    /// Code of the close frame.
    pub fn close_code(self) -> u16 {
        match self {
            Self::Length(_) => 1009,
            _ => 1002,
        }
    }
}

/// A message other than counted payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// Text, of a reader that keeps messages.
    Text(Vec<u8>),
    /// Bytes, of a reader that keeps messages.
    Binary(Vec<u8>),
    /// To be answered.
    Ping(Vec<u8>),
    /// The client ends the connection.
    Close,
}

/// Resumable reader of one direction of a connection.
#[derive(Debug, Default)]
pub struct FrameReader {
    head: [u8; HEAD_BYTES_MAX],
    head_read: usize,
    frame: Option<Frame>,
    /// Kind of the message whose last frame has not arrived.
    open: Option<Opcode>,
    /// Payload of the message, of a reader that keeps it.
    message: Vec<u8>,
    control: Vec<u8>,
    /// Longest message that is kept; 0 for a reader that counts messages.
    kept_max: usize,
    /// The other end is a server: of its messages text is kept, and bytes are counted.
    is_of_server: bool,
    failed: Option<FrameError>,
}

/// The frame under way.
#[derive(Debug, Clone, Copy)]
struct Frame {
    opcode: Opcode,
    is_last: bool,
    mask: [u8; 4],
    len: u64,
    read: u64,
}

impl Frame {
    /// Payload that has not arrived.
    fn left(self) -> usize {
        usize::try_from(self.len - self.read).unwrap_or(usize::MAX)
    }
}

impl FrameReader {
    /// A reader that counts payload and keeps none of it, but that of control frames.
    pub fn counting() -> Self {
        Self::keeping(0)
    }

    /// A reader that keeps messages of at most this length.
    pub fn keeping(kept_max: usize) -> Self {
        Self {
            kept_max,
            ..Self::default()
        }
    }

    /// A reader of a server that keeps text of at most this length, and counts bytes.
    pub fn of_server(kept_max: usize) -> Self {
        Self {
            is_of_server: true,
            ..Self::keeping(kept_max)
        }
    }

    /// The payload of the message under way is kept.
    fn is_kept(&self) -> bool {
        self.kept_max > 0 && !(self.is_of_server && self.open == Some(Opcode::Binary))
    }

    /// Payload of the frame under way that has not arrived and is counted alone.
    pub fn counted_left(&self) -> usize {
        let counted = self
            .frame
            .filter(|frame| self.kept_max == 0 && !frame.opcode.is_control());
        counted.map_or(0, Frame::left)
    }

    /// Counts payload that was discarded unread, at most [`Self::counted_left`].
    pub fn skip(&mut self, len: usize) {
        if let Some(frame) = &mut self.frame {
            frame.read = frame.len.min(frame.read + len as u64);
        }
        // A frame that is complete is finished by the next call of `feed`.
    }

    /// Takes the next bytes of a client, passes messages to `f` in their order, and returns how
    /// many of the bytes are payload of messages.
    ///
    /// # Errors
    /// When the bytes are no frames; every later call returns the same.
    pub fn feed(&mut self, bytes: &[u8], mut f: impl FnMut(Message)) -> Result<u64, FrameError> {
        let mut rest = bytes;
        let mut payload = 0;
        loop {
            let begun = match self.failed {
                Some(error) => Err(error),
                None => self.take_head(&mut rest),
            };
            if !begun.inspect_err(|error| self.failed = Some(*error))? {
                return Ok(payload);
            }

            payload += self.take_payload(&mut rest);
            if !self.finish_frame(&mut f) {
                return Ok(payload);
            }
        }
    }

    /// Reads a head unless a frame is under way. It may be cut anywhere between two reads; false if
    /// it is not complete.
    fn take_head(&mut self, rest: &mut &[u8]) -> Result<bool, FrameError> {
        while self.frame.is_none()
            && let Some((first, behind)) = rest.split_first()
        {
            if let Some(place) = self.head.get_mut(self.head_read) {
                *place = *first;
            }
            self.head_read += 1;
            *rest = behind;

            if self.head_read >= 2 && self.head_read == self.begin()? {
                self.head_read = 0;
            }
        }
        Ok(self.frame.is_some())
    }

    /// Length of the head under way. Checks what has arrived of it, and begins a frame when it is
    /// complete.
    fn begin(&mut self) -> Result<usize, FrameError> {
        let head = self.head;
        let [first, second, ..] = head;
        let opcode = Opcode::from_bits(first & 0x0f)
            .filter(|_| first & 0x70 == 0)
            .ok_or(FrameError::Bits(first))?;
        match second & MASKED == 0 {
            true if !self.is_of_server => return Err(FrameError::Unmasked),
            false if self.is_of_server => return Err(FrameError::Masked),
            _ => {}
        }

        let (extension, short) = match second & 0x7f {
            127 => (8, 0),
            126 => (2, 0),
            len => (0, u64::from(len)),
        };
        let head_len = 2 + extension + if self.is_of_server { 0 } else { 4 };
        if self.head_read < head_len {
            return Ok(head_len);
        }

        let (_, behind) = head.split_at(2);
        let (length, mask) = behind.split_at(extension);
        let len = length
            .iter()
            .fold(short, |len, byte| (len << 8) | u64::from(*byte));
        let is_last = first & 0x80 != 0;
        self.check(opcode, is_last, len)?;

        // Behind the head of a server are bytes of an earlier one.
        let mask = mask.first_chunk().filter(|_| !self.is_of_server);
        let mask = mask.copied().unwrap_or_default();
        self.frame = Some(Frame {
            opcode,
            is_last,
            mask,
            len,
            read: 0,
        });
        Ok(head_len)
    }

    fn check(&mut self, opcode: Opcode, is_last: bool, len: u64) -> Result<(), FrameError> {
        if opcode.is_control() {
            let is_whole = is_last && len <= CONTROL_BYTES_MAX;
            return is_whole.then_some(()).ok_or(FrameError::Fragment);
        }
        if (opcode == Opcode::Continuation) != self.open.is_some() {
            return Err(FrameError::Fragment);
        }

        let kept = (self.message.len() as u64).saturating_add(len);
        self.open.get_or_insert(opcode);
        if len > FRAME_BYTES_MAX || (self.is_kept() && kept > self.kept_max as u64) {
            return Err(FrameError::Length(len));
        }
        Ok(())
    }

    /// Takes payload of the frame under way; returns how much of it belongs to a message.
    fn take_payload(&mut self, rest: &mut &[u8]) -> u64 {
        let is_message_kept = self.is_kept();
        let Some(frame) = &mut self.frame else {
            return 0;
        };
        let (taken, behind) = rest.split_at(frame.left().min(rest.len()));
        *rest = behind;

        let is_control = frame.opcode.is_control();
        let kept = match (is_control, is_message_kept) {
            (true, _) => Some(&mut self.control),
            (false, false) => None,
            (false, true) => Some(&mut self.message),
        };
        // A reader that counts does not remove the mask: nothing reads the payload.
        if let Some(kept) = kept {
            let mask = frame.mask.iter().cycle().skip((frame.read % 4) as usize);
            kept.extend(taken.iter().zip(mask).map(|(byte, mask)| byte ^ mask));
        }

        frame.read += taken.len() as u64;
        // Text of a server is no payload of the test.
        if is_control || self.is_of_server && is_message_kept {
            0
        } else {
            taken.len() as u64
        }
    }

    /// Ends the frame under way; false if it is not complete.
    fn finish_frame(&mut self, f: &mut impl FnMut(Message)) -> bool {
        let Some(frame) = self.frame.take_if(|frame| frame.read == frame.len) else {
            return false;
        };
        if frame.opcode.is_control() {
            let payload = std::mem::take(&mut self.control);
            match frame.opcode {
                Opcode::Ping => f(Message::Ping(payload)),
                Opcode::Close => f(Message::Close),
                _ => {}
            }
        } else if frame.is_last {
            let is_kept = self.is_kept();
            let opcode = self.open.take();
            let payload = std::mem::take(&mut self.message);
            match opcode.filter(|_| is_kept) {
                Some(Opcode::Text) => f(Message::Text(payload)),
                Some(_) => f(Message::Binary(payload)),
                None => {}
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MASK: [u8; 4] = [7, 0, 255, 1];

    /// A client's frame.
    fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
        let (mut head, len) = head(Opcode::Text, payload.len());
        (head[0], head[1]) = (first, head[1] | 0x80);
        let masked = payload
            .iter()
            .zip(MASK.iter().cycle())
            .map(|(byte, mask)| byte ^ mask);
        head[..len]
            .iter()
            .copied()
            .chain(MASK)
            .chain(masked)
            .collect()
    }

    fn read(mut reader: FrameReader, pieces: &[&[u8]]) -> Result<(u64, Vec<Message>), FrameError> {
        let (mut messages, mut payload) = (Vec::new(), 0);
        for piece in pieces {
            payload += reader.feed(piece, |message| messages.push(message))?;
        }
        Ok((payload, messages))
    }

    #[test]
    fn messages_are_joined_from_fragments_with_control_frames_between_them() {
        let bytes = [
            frame(0x01, b"He"),
            frame(0x89, b"?"),
            frame(0x80, b"llo"),
            frame(0x82, b""),
            frame(0x88, b""),
        ]
        .concat();
        let ping = Message::Ping(b"?".to_vec());
        let kept = vec![
            ping.clone(),
            Message::Text(b"Hello".to_vec()),
            Message::Binary(vec![]),
            Message::Close,
        ];
        assert_eq!(read(FrameReader::keeping(5), &[&bytes]), Ok((5, kept)));
        assert_eq!(
            read(FrameReader::counting(), &[&bytes]),
            Ok((5, vec![ping, Message::Close]))
        );
    }

    #[test]
    fn near_misses_are_refused() {
        let longest = |len: u64| [&[0x82, 0xff][..], &len.to_be_bytes(), &MASK].concat();
        let rows = [
            ("unmasked", vec![0x82, 1, 0], FrameError::Unmasked),
            ("reserved bit", frame(0xc2, b""), FrameError::Bits(0xc2)),
            ("opcode 3", frame(0x83, b""), FrameError::Bits(0x83)),
            ("2^63 bytes", longest(1 << 63), FrameError::Length(1 << 63)),
            (
                "one byte more",
                longest(FRAME_BYTES_MAX + 1),
                FrameError::Length(FRAME_BYTES_MAX + 1),
            ),
            ("long ping", frame(0x89, &[0; 126]), FrameError::Fragment),
            ("part of a ping", frame(0x09, b""), FrameError::Fragment),
            (
                "continuation of nothing",
                frame(0x80, b""),
                FrameError::Fragment,
            ),
            (
                "text within a message",
                [frame(0x01, b""), frame(0x81, b"")].concat(),
                FrameError::Fragment,
            ),
        ];
        for (name, bytes, expected) in rows {
            assert_eq!(
                read(FrameReader::counting(), &[&bytes]),
                Err(expected),
                "{name}"
            );
        }
        let endless = frame(0x00, b"abc").repeat(3);
        assert_eq!(
            read(FrameReader::keeping(8), &[&frame(0x01, b""), &endless]),
            Err(FrameError::Length(3))
        );
        assert_eq!(
            read(FrameReader::counting(), &[&longest(FRAME_BYTES_MAX)]),
            Ok((0, vec![]))
        );
    }

    #[test]
    fn of_a_server_text_is_kept_and_bytes_are_counted() {
        let bytes = [
            message(Opcode::Binary, &[0; 70_000]),
            message(Opcode::Binary, &[0; 300]),
            message(Opcode::Text, b"{}"),
            message(Opcode::Ping, b"?"),
            close(NORMAL, ""),
        ]
        .concat();
        let kept = vec![
            Message::Text(b"{}".to_vec()),
            Message::Ping(b"?".to_vec()),
            Message::Close,
        ];
        let pieces: Vec<&[u8]> = bytes.chunks(7).collect();
        let reader = FrameReader::of_server(4);
        assert_eq!(read(reader, &pieces), Ok((70_300, kept)));

        for (bytes, expected) in [
            (masked(Opcode::Binary, b"a", MASK), FrameError::Masked),
            (message(Opcode::Text, b"abcde"), FrameError::Length(5)),
        ] {
            assert_eq!(read(FrameReader::of_server(4), &[&bytes]), Err(expected));
        }
        let own = masked(Opcode::Text, b"Hello", MASK);
        let hello = Message::Text(b"Hello".to_vec());
        assert_eq!(read(FrameReader::keeping(5), &[&own]), Ok((5, vec![hello])));
    }

    #[test]
    fn payload_may_be_skipped() {
        let mut reader = FrameReader::counting();
        let bytes = frame(0x82, &[0; 300]);
        assert_eq!(reader.feed(&bytes[..100], |_| ()), Ok(92));
        assert_eq!(reader.counted_left(), 208);
        reader.skip(208);
        assert_eq!(
            (
                reader.counted_left(),
                reader.feed(&frame(0x82, b"ab"), |_| ())
            ),
            (0, Ok(2))
        );
    }

    #[test]
    fn heads_have_the_shortest_length() {
        assert_eq!(message(Opcode::Text, b"Hello"), b"\x81\x05Hello");
        assert_eq!(head(Opcode::Binary, 256).0[..4], [0x82, 126, 1, 0]);
        assert_eq!(
            head(Opcode::Binary, 65_536).0[..10],
            [0x82, 127, 0, 0, 0, 0, 0, 1, 0, 0]
        );
        assert_eq!(close(NORMAL, &"x".repeat(200)).len(), 127);
    }

    proptest! {
        #[test]
        fn any_segmentation_gives_the_same_messages(
            texts in prop::collection::vec(".{0,200}", 0..8),
            cut in 1_usize..50,
        ) {
            let wire: Vec<u8> = texts.iter().flat_map(|text| frame(0x81, text.as_bytes())).collect();
            let pieces: Vec<&[u8]> = wire.chunks(cut).collect();
            let expected: Vec<Message> = texts.iter().map(|text| Message::Text(text.clone().into_bytes())).collect();
            let (_, messages) = read(FrameReader::keeping(4096), &pieces).expect("frames");
            prop_assert_eq!(messages, expected);
        }

        #[test]
        fn arbitrary_bytes_are_no_panic(bytes in prop::collection::vec(any::<u8>(), 0..64), cut in 1_usize..20) {
            let pieces: Vec<&[u8]> = bytes.chunks(cut).collect();
            let _ = read(FrameReader::keeping(16), &pieces);
            let _ = read(FrameReader::counting(), &pieces);
            let _ = read(FrameReader::of_server(16), &pieces);
        }
    }
}
