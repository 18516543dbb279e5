//! The header a client sends before its data: the first bytes of a TCP connection, or a part of
//! every datagram.
//!
//! The parts of a header lie at fixed offsets, but only as many bytes are sent as the parts in use
//! add up to. A part beyond that length is absent, whatever follows on the wire.

mod emit;
mod parse;

use linerate_model::EndCondition;
use thiserror::Error;

use crate::wire::amount::Amount;
use crate::wire::stamp::Timestamp;
use crate::wire::version::Version;

pub use parse::{TcpHeaderReader, parse_tcp, parse_udp};

/// Bytes before the header in a datagram: number and time.
pub const DATAGRAM_PREFIX_LEN: usize = 16;
/// Longest header of a TCP connection, key included.
pub const TCP_HEADER_LEN_MAX: usize = 255 + PERMIT_KEY_LEN_MAX;
/// Longest permit key.
pub const PERMIT_KEY_LEN_MAX: usize = 128;
/// Longest name of a congestion control algorithm, as in 2.2.1.
pub const CONGESTION_LEN_MAX: usize = 32;

/// A header that makes sense: flags, length and version agree.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Header {
    /// Who sends.
    pub mode: Mode,
    /// Streams of the test, this one included.
    pub streams: u32,
    /// Number that all streams of a transfer share (2.2.1).
    pub transfer_id: Option<u16>,
    /// Port of the server, or the one the server is to connect back to.
    pub port: u16,
    /// Block length in bytes, `None` if the user named none.
    pub block_len_bytes: Option<u32>,
    /// End condition of the test.
    pub amount: Amount,
    /// Release of the sender of this header.
    pub version: Version,
    /// TOS byte of the client's data, which the server uses for its own.
    pub tos: u8,
    /// Rate limit of a sender.
    pub rate: Option<Rate>,
    /// Bytes the server's socket may hold unsent.
    pub unsent_limit_bytes: Option<u32>,
    /// The server is to acknowledge at once.
    pub quick_ack: bool,
    /// The client waits for the server's answer before it sends.
    pub detect_peer: bool,
    /// The client wants no final report (UDP).
    pub without_final_report: bool,
    /// The data carry the sender's clock.
    pub trip_times: bool,
    /// The data come in frames on a grid.
    pub isochronous: bool,
    /// The data come in bursts.
    pub bursts: bool,
    /// Time of the first write, if it is sent.
    pub start: Option<Timestamp>,
    /// That time was chosen by the user.
    pub start_is_scheduled: bool,
    /// Kernel pacing in bytes per second.
    pub fq_rate_bytes_per_s: Option<u64>,
    /// Frames or bursts that the server is to send.
    pub frames: Option<FrameSettings>,
    /// Microseconds the client waited for its other streams (2.2.1).
    pub barrier_us: Option<u32>,
    /// Congestion control algorithm (2.2.1).
    pub congestion: Option<String>,
    /// Word the server may ask for.
    pub permit_key: Option<Vec<u8>>,
}

/// Who sends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Mode {
    /// The client.
    #[default]
    Forward,
    /// The server, on the client's connection.
    Reverse,
    /// Both, on the client's connection.
    FullDuplex,
    /// Both, the server on a connection back to the client.
    Dual,
    /// The client, and then the server on a connection back.
    TradeOff,
}

impl Mode {
    /// The client sends on its own connection.
    pub fn client_sends(self) -> bool {
        self != Self::Reverse
    }

    /// The server sends on the client's connection.
    pub fn server_sends(self) -> bool {
        matches!(self, Self::Reverse | Self::FullDuplex)
    }

    /// The server connects back.
    pub fn connects_back(self) -> bool {
        matches!(self, Self::Dual | Self::TradeOff)
    }
}

/// Rate limit of a sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rate {
    /// Payload bits per second.
    BitsPerSecond(u64),
    /// Datagrams per second.
    DatagramsPerSecond(u64),
}

/// Frames or bursts a server is to send. All numbers are finite and not negative.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct FrameSettings {
    /// Frames or bursts per second.
    pub per_s: f64,
    /// Frames: mean rate in bit/s. Bursts: bytes of each.
    pub mean: f64,
    /// Frames: variance of the rate.
    pub variance: f64,
    /// Seconds between the datagrams of a frame.
    pub gap_s: f64,
}

impl Header {
    /// A header of this release without options.
    pub fn new(version: Version, port: u16, amount: Amount) -> Self {
        Self {
            version,
            port,
            amount,
            streams: 1,
            ..Self::default()
        }
    }

    /// End condition of the test.
    pub fn end(&self) -> EndCondition {
        self.amount.to_end()
    }

    /// Data of a TCP stream are a sequence of bursts, each with a head.
    pub fn frames_tcp_data(&self) -> bool {
        self.trip_times || self.isochronous || self.bursts
    }

    /// A server answers this header of a TCP connection.
    pub fn wants_ack(&self) -> bool {
        self.detect_peer || !self.mode.server_sends()
    }

    /// The first datagram must be this long to hold the whole header.
    pub fn datagram_len_min(&self) -> usize {
        // The start lies behind the bytes that the length counts.
        let end_of_start = if self.start.is_some() {
            UDP_TAIL.fq_rate
        } else {
            0
        };
        DATAGRAM_PREFIX_LEN + self.udp_len().max(end_of_start)
    }
}

/// Bytes that are no header, though they may be data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum HeaderError {
    /// The first word has bits no header has, or lacks those every header has.
    #[error("flags {0:08x} are not those of a header")]
    Flags(u32),
    /// The announced length cannot hold the parts that every header has.
    #[error("a header of {0} bytes is not possible")]
    Length(usize),
    /// Less than was announced.
    #[error("the header ends early")]
    Short,
    /// The version is none.
    #[error("version {0:08x}.{1:08x} is unknown")]
    Version(u32, u32),
    /// The permit key is longer than any, or empty.
    #[error("a permit key of {0} bytes is not possible")]
    Key(usize),
}

/// Offsets of the parts, counted from the first byte of the header.
mod at {
    pub(super) const FLAGS: usize = 0;
    pub(super) const STREAMS: usize = 4;
    pub(super) const PORT: usize = 8;
    pub(super) const BLOCK_LEN: usize = 12;
    pub(super) const AMOUNT: usize = 20;
    pub(super) const UPPER: usize = 32;
    pub(super) const LOWER: usize = 34;
    pub(super) const VERSION: usize = 36;
    pub(super) const TOS: usize = 46;
    pub(super) const RATE: usize = 48;
    pub(super) const UNSENT_LIMIT: usize = 56;
    pub(super) const BARRIER: usize = 60;
    pub(super) const CONGESTION: usize = 112;
}

/// Offsets that differ between TCP and UDP, which has the isochronous words in between.
#[derive(Clone, Copy)]
struct HeaderTail {
    start: usize,
    fq_rate: usize,
    frames: usize,
}

const TCP_TAIL: HeaderTail = HeaderTail {
    start: 64,
    fq_rate: 72,
    frames: 80,
};
const UDP_TAIL: HeaderTail = HeaderTail {
    start: 96,
    fq_rate: 104,
    frames: 112,
};

/// Bytes of the base and the extension.
const NARROW_LEN: usize = 60;
/// The same since 2.2.
const WIDE_LEN: usize = 64;
/// Bytes of the part for frames and bursts.
const FRAMES_LEN: usize = 32;
/// Bytes of the isochronous words of a datagram.
const FRAME_WORDS_LEN: usize = 32;
/// Longest header of a datagram.
const UDP_LEN_MAX: usize = UDP_TAIL.frames + FRAMES_LEN;

/// Bits of the first word.
pub(crate) mod first {
    /// The server is to connect back.
    pub(crate) const CONNECT_BACK: u32 = 0x8000_0000;
    /// The extension is present.
    pub(crate) const EXTENDED: u32 = 0x4000_0000;
    /// UDP: the upper half word counts.
    pub(crate) const UDP_TESTS: u32 = 0x2000_0000;
    /// A permit key follows the header.
    pub(crate) const KEY: u32 = 0x1000_0000;
    /// UDP: datagram numbers are 64 bits wide.
    pub(crate) const WIDE_NUMBERS: u32 = 0x0800_0000;
    /// Reverse, both ways, or peer detection: the upper half word counts.
    pub(crate) const SECOND_GENERATION: u32 = 0x0400_0000;
    /// The client waits for the server's answer.
    pub(crate) const DETECT_PEER: u32 = 0x0200_0000;
    /// Not a header but a request of a bounce-back test.
    pub(crate) const BOUNCE_BACK: u32 = 0x0080_0000;
    /// UDP: nothing follows but the numbers are to be taken for one-way delays.
    pub(crate) const SHORT_TRIP_TIMES: u32 = 0x0002_0000;
    /// The length field counts.
    pub(crate) const LENGTH: u32 = 0x0001_0000;
    /// The length in bytes, shifted by one.
    pub(crate) const LENGTH_FIELD: u32 = 0x0000_01fe;
    /// With `CONNECT_BACK`: at once.
    pub(crate) const AT_ONCE: u32 = 0x0000_0001;

    /// Bits that a header with a length may have.
    pub(crate) const KNOWN: u32 = CONNECT_BACK
        | EXTENDED
        | UDP_TESTS
        | KEY
        | WIDE_NUMBERS
        | SECOND_GENERATION
        | DETECT_PEER
        | LENGTH
        | LENGTH_FIELD
        | AT_ONCE;
}

/// Bits of the upper half word.
pub(crate) mod upper {
    pub(crate) const ISOCHRONOUS: u16 = 0x0001;
    pub(crate) const NO_FINAL_REPORT: u16 = 0x0008;
    pub(crate) const TRIP_TIMES: u16 = 0x0010;
    pub(crate) const ISOCHRONOUS_SETTINGS: u16 = 0x0040;
    pub(crate) const DATAGRAMS_PER_S: u16 = 0x0080;
    pub(crate) const FQ_RATE: u16 = 0x0200;
    pub(crate) const REVERSE: u16 = 0x0400;
    pub(crate) const FULL_DUPLEX: u16 = 0x0800;
    pub(crate) const START_TIME: u16 = 0x1000;
    pub(crate) const BURSTS: u16 = 0x2000;
    pub(crate) const UNSENT_LIMIT: u16 = 0x4000;
    pub(crate) const QUICK_ACK: u16 = 0x8000;
}

/// Bits of the lower half word.
pub(crate) mod lower {
    pub(crate) const CONGESTION: u16 = 0x8000;
    pub(crate) const BARRIER: u16 = 0x4000;
}
