//! Reading headers. A header is valid only if flags, length and version agree.

use super::{
    CONGESTION_LEN_MAX, DATAGRAM_PREFIX_LEN, FrameSettings, Header, HeaderError, HeaderTail, Mode,
    NARROW_LEN, PERMIT_KEY_LEN_MAX, Rate, TCP_TAIL, UDP_LEN_MAX, UDP_TAIL, WIDE_LEN, at,
};
use crate::wire::amount::Amount;
use crate::wire::header::{first, lower, upper};
use crate::wire::stamp::Timestamp;
use crate::wire::version::Version;
use crate::wire::{half, take, word};

/// Collects the header of a TCP connection as its bytes arrive. Memory is bounded by what the
/// format allows.
#[derive(Debug, Default)]
pub struct TcpHeaderReader {
    bytes: Vec<u8>,
}

impl TcpHeaderReader {
    /// Bytes that are still missing as far as is known: never more than belong to the header.
    ///
    /// # Errors
    /// When what has arrived is the beginning of no header.
    pub fn missing(&self) -> Result<usize, HeaderError> {
        let mut needed = 4;
        if let Some(flags) = word(&self.bytes, at::FLAGS) {
            needed = announced_len(flags)?;
            if flags & first::KEY != 0 && self.bytes.len() >= needed {
                needed += key_len(&self.bytes, needed)?;
            }
        }

        Ok(needed.saturating_sub(self.bytes.len()))
    }

    /// Takes bytes of the header from the front of `input` and returns it when it is complete, with
    /// its length.
    ///
    /// # Errors
    /// When the bytes are no header.
    pub fn read(&mut self, input: &mut &[u8]) -> Result<Option<(Header, usize)>, HeaderError> {
        loop {
            let missing = self.missing()?;
            if missing == 0 {
                return parse_tcp(&self.bytes).map(|header| Some((header, self.bytes.len())));
            }
            if input.is_empty() {
                return Ok(None);
            }

            let len = self.bytes.len() + missing;
            take(input, &mut self.bytes, len);
        }
    }

    /// Bytes received so far.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// Reads the header of a TCP connection, which must be complete.
///
/// # Errors
/// When the bytes are no header.
pub fn parse_tcp(bytes: &[u8]) -> Result<Header, HeaderError> {
    let flags = word(bytes, at::FLAGS).ok_or(HeaderError::Short)?;
    let len = announced_len(flags)?;
    let head = bytes.get(..len).ok_or(HeaderError::Short)?;

    // These bits belong to datagrams; over TCP they are no header of ours.
    if flags & (first::UDP_TESTS | first::WIDE_NUMBERS) != 0 {
        return Err(HeaderError::Flags(flags));
    }

    let has_key = flags & first::KEY != 0;
    let parts = if has_key { &head[..len - 2] } else { head };
    let mut header = Parts {
        bytes: parts,
        flags,
    }
    .header(TCP_TAIL)?;

    if has_key {
        let key = bytes
            .get(len..len + key_len(bytes, len)?)
            .ok_or(HeaderError::Short)?;
        header.permit_key = Some(key.to_vec());
    }

    Ok(header)
}

/// Reads the header inside a datagram.
///
/// # Errors
/// When there is none; the datagram may be valid all the same.
pub fn parse_udp(datagram: &[u8]) -> Result<Header, HeaderError> {
    let bytes = datagram
        .get(DATAGRAM_PREFIX_LEN..)
        .ok_or(HeaderError::Short)?;
    let flags = word(bytes, at::FLAGS).ok_or(HeaderError::Short)?;
    if flags & (first::KEY | first::DETECT_PEER) != 0 || flags & first::WIDE_NUMBERS == 0 {
        return Err(HeaderError::Flags(flags));
    }

    // Here the length counts the number and the time as well, and leaves out what follows the
    // isochronous words.
    let len = announced_len(flags)?;
    if len < DATAGRAM_PREFIX_LEN + NARROW_LEN || len > datagram.len() {
        return Err(HeaderError::Length(len));
    }

    // Payload behind the header must not be read as fields of it.
    let head = bytes.get(..UDP_LEN_MAX).unwrap_or(bytes);
    Parts { bytes: head, flags }.header(UDP_TAIL)
}

/// The length a first word announces, if it is that of a header.
fn announced_len(flags: u32) -> Result<usize, HeaderError> {
    let needed = first::EXTENDED | first::LENGTH;
    if flags & needed != needed || flags & !first::KNOWN != 0 {
        return Err(HeaderError::Flags(flags));
    }

    let len = ((flags & first::LENGTH_FIELD) >> 1) as usize;
    let key_field = if flags & first::KEY != 0 { 2 } else { 0 };
    if len < NARROW_LEN + key_field {
        return Err(HeaderError::Length(len));
    }

    Ok(len)
}

/// Length of the key behind a header of `len` bytes, whose last two hold it.
fn key_len(bytes: &[u8], len: usize) -> Result<usize, HeaderError> {
    let announced = usize::from(half(bytes, len - 2).ok_or(HeaderError::Short)?);
    if (1..=PERMIT_KEY_LEN_MAX).contains(&announced) {
        Ok(announced)
    } else {
        Err(HeaderError::Key(announced))
    }
}

/// The bytes of a header as far as they were sent.
struct Parts<'a> {
    bytes: &'a [u8],
    flags: u32,
}

impl Parts<'_> {
    fn header(&self, tail: HeaderTail) -> Result<Header, HeaderError> {
        let upper_word = self.word(at::VERSION);
        let lower_word = self.word(at::VERSION + 4);
        let version = Version::from_words(upper_word, lower_word)
            .ok_or(HeaderError::Version(upper_word, lower_word))?;
        // A release of the wide layout sends all of it, or the bytes are damaged.
        if version.has_wide_header() && self.bytes.len() < WIDE_LEN {
            return Err(HeaderError::Length(self.bytes.len()));
        }

        let upper = half(self.bytes, at::UPPER).unwrap_or_default();
        let lower = half(self.bytes, at::LOWER).unwrap_or_default();
        let streams = self.word(at::STREAMS);
        let transfer_id = (streams & TRANSFER != 0).then_some((streams >> 20) as u16 & 0x7ff);
        let amount = Amount::from_word(self.word(at::AMOUNT));
        let port = u16::try_from(self.word(at::PORT)).unwrap_or_default();
        let has_frames = upper & (upper::ISOCHRONOUS_SETTINGS | upper::BURSTS) != 0;
        let start = Timestamp::read(self.bytes, tail.start).filter(|time| !time.is_unset());

        Ok(Header {
            mode: self.mode(upper, transfer_id.is_some()),
            streams: if transfer_id.is_some() {
                streams & STREAMS_OF_TRANSFER
            } else {
                streams
            },
            transfer_id,
            block_len_bytes: Some(self.word(at::BLOCK_LEN)).filter(|len| *len > 0),
            tos: half(self.bytes, at::TOS).unwrap_or_default() as u8,
            rate: self.rate(upper),
            unsent_limit_bytes: (upper & upper::UNSENT_LIMIT != 0)
                .then(|| self.word(at::UNSENT_LIMIT)),
            quick_ack: upper & upper::QUICK_ACK != 0,
            detect_peer: self.flags & first::DETECT_PEER != 0,
            without_final_report: upper & upper::NO_FINAL_REPORT != 0,
            trip_times: upper & upper::TRIP_TIMES != 0,
            isochronous: upper & upper::ISOCHRONOUS != 0,
            bursts: upper & upper::BURSTS != 0,
            start,
            start_is_scheduled: upper & upper::START_TIME != 0,
            fq_rate_bytes_per_s: (upper & upper::FQ_RATE != 0)
                .then(|| self.long(tail.fq_rate))
                .filter(|rate| *rate > 0),
            frames: if has_frames {
                self.frames(tail.frames)
            } else {
                None
            },
            barrier_us: (version.has_wide_header() && lower & lower::BARRIER != 0)
                .then(|| self.word(at::BARRIER)),
            congestion: if lower & lower::CONGESTION != 0 {
                self.congestion()
            } else {
                None
            },
            ..Header::new(version, port, amount)
        })
    }

    /// A sync id borrows the bit of the connection back, so that old servers do not wonder.
    fn mode(&self, upper: u16, is_transfer: bool) -> Mode {
        let second = self.flags & first::SECOND_GENERATION != 0;
        if second && upper & upper::FULL_DUPLEX != 0 {
            Mode::FullDuplex
        } else if second && upper & upper::REVERSE != 0 {
            Mode::Reverse
        } else if self.flags & first::CONNECT_BACK == 0 || is_transfer {
            Mode::Forward
        } else if self.flags & first::AT_ONCE != 0 {
            Mode::Dual
        } else {
            Mode::TradeOff
        }
    }

    fn rate(&self, upper: u16) -> Option<Rate> {
        let rate = self.long(at::RATE);
        match rate {
            0 => None,
            rate if upper & upper::DATAGRAMS_PER_S != 0 => Some(Rate::DatagramsPerSecond(rate)),
            rate => Some(Rate::BitsPerSecond(rate)),
        }
    }

    fn frames(&self, offset: usize) -> Option<FrameSettings> {
        let settings = FrameSettings {
            per_s: self.decimal(offset),
            mean: self.decimal(offset + 8),
            variance: self.decimal(offset + 16),
            gap_s: self.decimal(offset + 24),
        };
        // The period of the frames is its reciprocal.
        (settings.per_s > 0.0).then_some(settings)
    }

    fn congestion(&self) -> Option<String> {
        let len = usize::from(half(self.bytes, at::CONGESTION)?);
        if !(1..=CONGESTION_LEN_MAX).contains(&len) {
            return None;
        }

        let name = self.bytes.get(at::CONGESTION + 2..)?.get(..len)?;
        let name = std::str::from_utf8(name).ok()?.trim_end_matches('\0');
        // The name goes into a system call and into reports.
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        (!name.is_empty() && name.chars().all(is_name)).then(|| name.to_owned())
    }

    /// Absent parts read as 0, as a real peer reads them.
    fn word(&self, offset: usize) -> u32 {
        word(self.bytes, offset).unwrap_or_default()
    }

    /// 56 bits in two words, the upper ones shifted by eight.
    fn long(&self, offset: usize) -> u64 {
        u64::from(self.word(offset)) | u64::from(self.word(offset + 4) >> 8) << 32
    }

    /// An integer and its millionths.
    fn decimal(&self, offset: usize) -> f64 {
        f64::from(self.word(offset)) + f64::from(self.word(offset + 4)) / 1e6
    }
}

/// Marks a number of streams that carries a transfer id.
const TRANSFER: u32 = 0x8000_0000;
/// The streams in such a number.
const STREAMS_OF_TRANSFER: u32 = 0x000f_ffff;
