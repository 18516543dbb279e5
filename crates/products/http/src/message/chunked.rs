//! Chunked transfer coding (RFC 9112, section 7.1): a decoder that keeps no input.
//!
//! Decoding is strict, because different interpretations of a message are how requests are
//! smuggled: sizes are hexadecimal digits alone, lines end with CR LF, nothing folds. Bytes without
//! payload are limited: extensions and trailers are skipped, not kept.

/// Decodes one body in segments of any size. Sixteen bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Decoder {
    /// Rest of the current chunk, or the size parsed so far.
    size: u64,
    /// Bytes of extensions, then of trailers.
    ignored_bytes: u16,
    /// Hexadecimal digits of the current size.
    digits: u8,
    state: State,
}

/// The start of an input: bytes of framing, then bytes of payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Piece {
    /// Bytes of sizes, line ends, extensions and trailers at the start of the input.
    pub framing: usize,
    /// Bytes of payload behind them.
    pub payload: usize,
    /// The body is complete; the rest of the input does not belong to it.
    pub is_end: bool,
}

/// Why a chunked body is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ChunkedError {
    #[error("chunk size is not hexadecimal digits alone")]
    Size,
    #[error("chunk size has more than {SIZE_DIGITS_MAX} digits")]
    SizeTooLong,
    #[error("line in chunked body does not end with CR LF")]
    LineEnd,
    #[error("control character in a chunk extension or trailer")]
    Control,
    #[error("trailer is no field")]
    Trailer,
    #[error("chunk extensions or trailers exceed {IGNORED_BYTES_MAX} bytes")]
    TooMuchIgnored,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Size,
    Extension,
    /// After the CR of a size line.
    SizeLf,
    Data,
    DataCr,
    DataLf,
    /// At the start of a line behind the last chunk.
    TrailerStart,
    TrailerName,
    TrailerValue,
    TrailerLf,
    /// After the CR of the empty line at the end.
    EndLf,
    Done,
}

/// Digits of a chunk size: 2⁶⁰ − 1 bytes at most.
pub(crate) const SIZE_DIGITS_MAX: u8 = 15;
/// Bytes of all extensions of a body together, and of its trailers.
pub(crate) const IGNORED_BYTES_MAX: u16 = 16 * 1024;

impl Decoder {
    /// At the start of a body.
    pub(crate) const fn new() -> Self {
        Self {
            size: 0,
            ignored_bytes: 0,
            digits: 0,
            state: State::Size,
        }
    }

    /// True if the body is complete.
    pub(crate) fn is_end(&self) -> bool {
        self.state == State::Done
    }

    /// Decodes the next framing and the payload behind it. Call again with the rest until
    /// [`Piece::is_end`] or until the input is consumed; after the end it consumes nothing, and
    /// after an error the decoder is unusable.
    pub(crate) fn piece(&mut self, input: &[u8]) -> Result<Piece, ChunkedError> {
        let mut framing = 0;
        while let Some(byte) = input.get(framing) {
            if matches!(self.state, State::Data | State::Done) {
                break;
            }
            self.state = self.step(*byte)?;
            framing += 1;
        }

        let payload = self.take_data(input.len() - framing);
        Ok(Piece {
            framing,
            payload,
            is_end: self.is_end(),
        })
    }

    /// Consumes payload of the current chunk.
    fn take_data(&mut self, available: usize) -> usize {
        if self.state != State::Data {
            return 0;
        }

        let taken = self.size.min(available as u64) as usize;
        self.size -= taken as u64;

        if self.size == 0 {
            self.state = State::DataCr;
        }

        taken
    }

    /// The state after one byte of framing.
    fn step(&mut self, byte: u8) -> Result<State, ChunkedError> {
        match (self.state, byte) {
            // A size has at least one digit (RFC 9112, section 7.1).
            (State::Size, b'\r') if self.digits > 0 => Ok(State::SizeLf),
            (State::Size, b';') if self.digits > 0 => self.ignore(byte, State::Extension),
            (State::Size, digit) => self.digit(digit),
            (State::Extension, b'\r') => Ok(State::SizeLf),
            (State::Extension, other) => self.ignore(other, State::Extension),
            (State::SizeLf, b'\n') => Ok(self.size_is_known()),
            (State::DataCr, b'\r') => Ok(State::DataLf),
            (State::DataLf, b'\n') => Ok(State::Size),
            (State::TrailerStart, b'\r') => Ok(State::EndLf),
            (State::TrailerStart, other) if is_token(other) => {
                self.ignore(other, State::TrailerName)
            }
            (State::TrailerName, b':') => self.ignore(byte, State::TrailerValue),
            (State::TrailerName, other) if is_token(other) => {
                self.ignore(other, State::TrailerName)
            }
            (State::TrailerStart | State::TrailerName, _) => Err(ChunkedError::Trailer),
            (State::TrailerValue, b'\r') => Ok(State::TrailerLf),
            (State::TrailerValue, other) => self.ignore(other, State::TrailerValue),
            (State::TrailerLf, b'\n') => Ok(State::TrailerStart),
            (State::EndLf, b'\n') => Ok(State::Done),
            (
                State::SizeLf | State::DataCr | State::DataLf | State::TrailerLf | State::EndLf,
                _,
            ) => Err(ChunkedError::LineEnd),
            // `piece` stops before these states.
            (unchanged @ (State::Data | State::Done), _) => Ok(unchanged),
        }
    }

    fn digit(&mut self, byte: u8) -> Result<State, ChunkedError> {
        let digit = char::from(byte).to_digit(16).ok_or(ChunkedError::Size)?;
        // Leading zeros count as well, so that a size line is bounded.
        self.digits += 1;
        if self.digits > SIZE_DIGITS_MAX {
            return Err(ChunkedError::SizeTooLong);
        }

        // Fifteen digits are 60 bits, so the product fits.
        self.size = self.size * 16 + u64::from(digit);
        Ok(State::Size)
    }

    fn size_is_known(&mut self) -> State {
        self.digits = 0;
        if self.size > 0 {
            return State::Data;
        }

        // Trailers have the whole limit to themselves.
        self.ignored_bytes = 0;
        State::TrailerStart
    }

    /// Counts an ignored byte; blanks and visible characters only.
    fn ignore(&mut self, byte: u8, next: State) -> Result<State, ChunkedError> {
        if byte.is_ascii_control() && byte != b'\t' {
            // Some implementations end a line at a bare line feed (RFC 9112, section 2.2), others
            // do not.
            return Err(if byte == b'\n' {
                ChunkedError::LineEnd
            } else {
                ChunkedError::Control
            });
        }

        self.ignored_bytes += 1;
        if self.ignored_bytes > IGNORED_BYTES_MAX {
            return Err(ChunkedError::TooMuchIgnored);
        }

        Ok(next)
    }
}

/// Size line of a chunk, followed by its payload and CR LF. The body ends with [`LAST_CHUNK`].
pub(crate) fn head(size: u64) -> String {
    format!("{size:x}\r\n")
}

/// The last chunk.
pub(crate) const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// `tchar` of RFC 9110, section 5.6.2.
pub(crate) fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::ChunkedError::*;
    use super::*;
    use crate::fuzzing::decode;

    #[test]
    fn bodies_do_not_depend_on_segmentation() {
        for (name, body, payload) in [
            ("empty", "0\r\n\r\n", ""),
            ("one", "3\r\nabc\r\n0\r\n\r\n", "abc"),
            (
                "two, capitals",
                "3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n",
                "abc0123456789",
            ),
            ("leading zeros", "0003\r\nabc\r\n000\r\n\r\n", "abc"),
            (
                "payload that looks like framing",
                "5\r\n0\r\n\r\n\r\n0\r\n\r\n",
                "0\r\n\r\n",
            ),
            ("extensions", "3;a=b;c=\"d e\"\r\nabc\r\n0;x\r\n\r\n", "abc"),
            ("trailers", "1\r\na\r\n0\r\nX-Sum: 1\r\nY:\r\n\r\n", "a"),
        ] {
            for step in 1..=body.len() {
                let input = [body.as_bytes(), b"GET"].concat();
                let (got, used, is_end) = decode(input.chunks(step)).expect(name);
                assert_eq!(
                    (got.as_slice(), used, is_end),
                    (payload.as_bytes(), body.len(), true),
                    "{name}"
                );
            }
        }
    }

    #[test]
    fn near_misses_are_refused() {
        let long_extension = format!("1;{}\r\n", "x".repeat(usize::from(IGNORED_BYTES_MAX)));
        let long_trailer = format!("0\r\nA: {}\r\n", "x".repeat(usize::from(IGNORED_BYTES_MAX)));
        let extensions = format!("1;{}\r\na\r\n", "x".repeat(1000)).repeat(20);

        for (body, expected) in [
            ("\r\n", Size),
            (";a\r\n", Size),
            ("0x3\r\nabc", Size),
            ("+3\r\nabc", Size),
            ("-3\r\nabc", Size),
            (" 3\r\nabc", Size),
            ("3 \r\nabc", Size),
            ("3\nabc", Size),
            ("3\r\rabc", LineEnd),
            ("3;a\nabc", LineEnd),
            ("3;\0\r\n", Control),
            ("3\r\nabc0\r\n", LineEnd),
            ("3\r\nabc\n0\r\n", LineEnd),
            ("0000000000000003\r\n", SizeTooLong),
            ("ffffffffffffffff\r\n", SizeTooLong),
            ("0\r\n\n", Trailer),
            ("0\r\n folded\r\n", Trailer),
            ("0\r\nX : y\r\n", Trailer),
            ("0\r\nX: y\n\r\n", LineEnd),
            ("0\r\nX: y\0\r\n", Control),
            ("0\r\n\rx", LineEnd),
            (&long_extension, TooMuchIgnored),
            (&long_trailer, TooMuchIgnored),
            (&extensions, TooMuchIgnored),
        ] {
            for step in [1, 7, body.len()] {
                assert_eq!(
                    decode(body.as_bytes().chunks(step)),
                    Err(expected),
                    "{body:?}"
                );
            }
        }
    }

    #[test]
    fn a_decoder_is_small_and_a_head_is_what_it_reads() {
        assert_eq!(size_of::<Decoder>(), 16);
        let body = format!("{}{}\r\n", head(300), "x".repeat(300));
        let (payload, _, is_end) = decode(body.as_bytes().chunks(11)).expect("a chunk");
        assert_eq!((payload.len(), is_end), (300, false));
    }
}
