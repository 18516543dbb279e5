//! Workloads beyond moving blocks one way as fast as possible: shapes of traffic, shared
//! connections, and measurements that need the sender's clock in the data.
//!
//! Everything here is off by default. A dialect that cannot express a field leaves it alone.

use std::time::Duration;

use linerate_macros::stored;

/// The part of a test specification that only some dialects can express.
#[stored(Default)]
pub struct Workload {
    /// Pairing of the two directions.
    pub pairing: Pairing,
    /// When and how much a sender writes.
    pub shape: Shape,
    /// The sender writes its clock into the data, the receiver reports one-way delays.
    pub trip_times: bool,
    /// Delays are also reported as a distribution.
    pub histogram: Option<HistogramSpec>,
    /// Senders report how long their writes take.
    pub write_times: bool,
    /// Query the server's release before data flows.
    pub detect_peer: bool,
    /// Send no header: for peers that would take it for data.
    pub without_header: bool,
    /// Word that server and client must share.
    pub permit_key: Option<String>,
    /// When the first byte is written.
    pub start: Start,
    /// Streams begin to send as soon as they are connected, without waiting for each other.
    pub unsynchronised_start: bool,
    /// A UDP test ends without the server's report.
    pub without_final_report: bool,
    /// Datagrams per second of each stream, in place of a bit rate.
    pub datagrams_per_s: Option<u64>,
    /// Standard deviation in bit/s of a rate that varies around its target.
    pub rate_deviation_bps: Option<u64>,
    /// Bytes a socket may hold that are not yet sent (`TCP_NOTSENT_LOWAT`, tcp(7)).
    pub unsent_limit_bytes: Option<u32>,
    /// Receivers acknowledge at once (`TCP_QUICKACK`, tcp(7)).
    pub quick_ack: bool,
    /// Largest receive window in bytes (`TCP_WINDOW_CLAMP`, tcp(7)).
    pub window_clamp_bytes: Option<u32>,
    /// Time to live of datagrams to a multicast group (`IP_MULTICAST_TTL`, ip(7)).
    pub multicast_ttl: Option<u8>,
    /// Never through a gateway (`SO_DONTROUTE`, socket(7)).
    pub without_routing: bool,
    /// Part of the address that differs between parallel streams.
    pub fan_out: FanOut,
    /// Port on which a client awaits connections back, if it is not the server's.
    pub back_port: Option<u16>,
    /// Client and server give a stream the same number in their reports.
    pub shared_ids: bool,
    /// A read takes one block at most, because the sizes of reads are shown.
    pub exact_reads: bool,
    /// Receivers of isochronous frames report each of them instead of intervals.
    pub reports_frames: bool,
    /// Release that this end announces.
    pub release: Release,
}

/// Releases of iperf 2 that differ on the wire.
#[stored(Copy, Default, Eq)]
pub enum Release {
    /// 2.1.8.
    #[default]
    V2_1,
    /// 2.2.1, whose headers are longer and name the congestion control.
    V2_2,
}

/// Pairing of the two directions of a bidirectional test.
#[stored(Copy, Default, Eq)]
pub enum Pairing {
    /// Each direction has connections of its own, all opened by the client.
    #[default]
    Separate,
    /// Both directions use the same connections.
    Shared,
    /// The server connects back to the client and sends at the same time.
    ConnectBack,
    /// The server connects back and sends when the client has finished.
    ConnectBackAfterwards,
}

/// When and how much a sender writes.
#[stored(Default)]
pub enum Shape {
    /// Block after block, as pacing allows.
    #[default]
    Continuous,
    /// Frames on a fixed grid, their sizes drawn from a lognormal distribution.
    Isochronous(Isochronous),
    /// A fixed amount at fixed times.
    Bursts {
        /// Bytes per burst.
        size_bytes: u32,
        /// Time from one start to the next.
        #[serde(rename = "period_ns", with = "crate::units::whole_ns")]
        #[cfg_attr(feature = "schema", schemars(with = "u64"))]
        period: Duration,
    },
    /// After each write a pause of the round-trip time times this weight.
    NearCongestion {
        /// Weight, usually 0.5.
        weight: f64,
    },
    /// Requests and replies on one connection; the round trip is what is measured.
    BounceBack(BounceBack),
    /// Connections are opened and closed, nothing is sent.
    ConnectOnly {
        /// Number of connections, `None` for as many as fit the time.
        count: Option<u32>,
    },
}

/// Frames on a fixed grid.
#[stored(Copy)]
pub struct Isochronous {
    /// Frames per second.
    pub frames_per_s: f64,
    /// Mean rate in bit/s.
    pub mean_bps: f64,
    /// Standard deviation of the rate in bit/s.
    pub deviation_bps: f64,
    /// Gap between two datagrams of a frame.
    #[serde(rename = "gap_ns", with = "crate::units::whole_ns")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub gap: Duration,
}

/// Requests and replies.
#[stored]
pub struct BounceBack {
    /// Bytes of a request.
    pub request_bytes: u32,
    /// Bytes of a reply, `None` for as many as the request.
    pub reply_bytes: Option<u32>,
    /// Requests at the start of each period.
    pub burst: u32,
    /// Time between bursts, zero for one burst after the other.
    #[serde(rename = "period_ns", with = "crate::units::whole_ns")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub period: Duration,
    /// Time the server waits before it replies.
    #[serde(rename = "hold_ns", with = "crate::units::whole_ns")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub hold: Duration,
    /// Both ends acknowledge at once.
    pub quick_ack: bool,
    /// Load beside the requests.
    pub load: Option<WorkingLoad>,
}

/// Streams that load the path while something else is measured.
#[stored(Copy, Eq)]
pub struct WorkingLoad {
    /// Client to server.
    pub up: bool,
    /// Server to client.
    pub down: bool,
    /// Streams.
    pub streams: u32,
}

/// A distribution of delays.
#[stored(Copy)]
pub struct HistogramSpec {
    /// Width of a bin in µs, at least 1.
    pub bin_width_us: u32,
    /// Number of bins; longer delays share the last.
    pub bins: u32,
    /// Lower limit of the interval that is named, in percent.
    pub lower_percent: f64,
    /// Upper limit of the interval that is named, in percent.
    pub upper_percent: f64,
}

impl HistogramSpec {
    /// `bins` bins of `bin_width_us` µs; the interval from 5 % to 95 % is named.
    pub const fn new(bin_width_us: u32, bins: u32) -> Self {
        Self {
            bin_width_us,
            bins,
            lower_percent: 5.0,
            upper_percent: 95.0,
        }
    }
}

/// When the first byte is written.
#[stored(Copy, Default, Eq)]
pub enum Start {
    /// At once.
    #[default]
    Now,
    /// This long after the connection is established.
    #[serde(rename = "after_ns", with = "crate::units::whole_ns")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    After(Duration),
    /// At this time, counted from 1970.
    #[serde(rename = "at_ns", with = "crate::units::whole_ns")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    At(Duration),
    /// At this time of the monotonic clock of this end. The client connects and negotiates before
    /// it.
    #[serde(rename = "at_monotonic_ns", with = "crate::units::whole_ns")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    AtMonotonic(Duration),
}

/// Which parts of an address count up from stream to stream.
#[stored(Copy, Default, Eq)]
pub struct FanOut {
    /// The destination address.
    pub destination_address: bool,
    /// The source address.
    pub source_address: bool,
    /// The destination port.
    pub destination_port: bool,
    /// The source port.
    pub source_port: bool,
}
