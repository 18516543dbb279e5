//! Facts that only some dialects measure or show. They travel in an event of their own, directly in front of the event
//! they belong to, so that neither engines nor writers of other dialects need to know them.

use std::net::{IpAddr, SocketAddr};

use crate::interval::{StreamInterval, TcpInterval};
use crate::stream::EffectiveOptions;

/// Facts that belong to the next event of another kind. Each is optional, each field of each is optional.
#[derive(Debug, Clone, PartialEq)]
pub enum Details {
    /// Before `TestAccepted` of a client: its first data socket, not yet connected.
    Socket(SocketFacts),
    /// A socket listens: a server's, or that of a client which waits for connections back.
    Listener(ListenerFacts),
    /// A server is about to open a connection or flow back to its client.
    ConnectingBack {
        /// Address of the client.
        remote: SocketAddr,
        /// The socket, not yet connected.
        socket: SocketFacts,
    },
    /// Before `StreamOpened`.
    Stream(Box<StreamFacts>),
    /// Before `Interval`: one for each of its rows, in the same order.
    Interval(Vec<Measured>),
    /// Bursts or frames that have arrived, in the order of their ends.
    Bursts(Vec<BurstRow>),
    /// Before `Summary`: one for each of its streams, in the same order.
    Totals(Vec<Totals>),
    /// What a server's answer says about the two clocks.
    ClockCheck {
        /// Number of the stream.
        number: u32,
        /// One-way delay of the question in ns, as far as the clocks agree.
        send_ns: i64,
        /// One-way delay of the answer in ns.
        answer_ns: i64,
    },
    /// Sending waits for its time.
    StartsLater {
        /// Number of the stream.
        number: u32,
        /// Whole seconds to wait.
        in_s: u64,
        /// The time in µs since 1970.
        at_unix_us: u64,
        /// Now, in µs since 1970.
        now_unix_us: u64,
    },
    /// At the end of a test: the times of all attempts to connect.
    Connects(ConnectTimes),
}

/// A burst or frame that has arrived.
#[derive(Debug, Clone, PartialEq)]
pub struct BurstRow {
    /// Its stream, times and bytes.
    pub interval: StreamInterval,
    /// Everything else.
    pub measured: Measured,
}

/// A socket before it is used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SocketFacts {
    /// Options as the kernel reports them.
    pub effective: EffectiveOptions,
    /// Maximum segment size in bytes (`TCP_MAXSEG`).
    pub mss_bytes: Option<u32>,
}

/// A listening socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListenerFacts {
    /// First port.
    pub port: u16,
    /// Last port of a range.
    pub last_port: Option<u16>,
    /// The socket.
    pub socket: SocketFacts,
    /// It takes IPv6.
    pub is_v6: bool,
    /// Multicast group it has joined.
    pub group: Option<IpAddr>,
}

/// A stream that was opened.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StreamFacts {
    /// Number in reports, from 1. Both directions of a shared connection have the same.
    pub number: u32,
    /// File descriptor.
    pub descriptor: Option<u32>,
    /// Device of the local address.
    pub device: Option<String>,
    /// When it was opened, in µs since 1970.
    pub opened_at_unix_us: Option<u64>,
    /// Time `connect(2)` took in µs.
    pub connect_us: Option<u32>,
    /// Congestion window directly after connecting, in bytes.
    pub initial_cwnd_bytes: Option<u64>,
    /// Maximum segment size in bytes.
    pub mss_bytes: Option<u32>,
    /// Smoothed round-trip time directly after connecting, in µs.
    pub initial_rtt_us: Option<u32>,
    /// Release of the peer.
    pub peer_version: Option<String>,
    /// The connection was made by the server.
    pub is_connected_back: bool,
}

/// What was measured of a stream over an interval or over the whole test.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Measured {
    /// Calls that wrote.
    pub writes: Option<WriteCounts>,
    /// Calls that read.
    pub reads: Option<ReadCounts>,
    /// Last reading of TCP_INFO; for totals, whose summary has only extremes. `retransmits` is that of the whole test.
    pub tcp: Option<TcpInterval>,
    /// Sent and not yet acknowledged, in bytes.
    pub in_flight_bytes: Option<u64>,
    /// The same in segments.
    pub in_flight_segments: Option<u32>,
    /// Congestion window in segments.
    pub cwnd_segments: Option<u32>,
    /// Datagrams per second.
    pub datagrams_per_s: Option<f64>,
    /// Datagrams that arrived.
    pub datagrams_received: Option<u64>,
    /// One-way delays in s, of datagrams or of bursts.
    pub one_way: Option<Distribution>,
    /// Mean size in bytes of the bursts whose delays these are.
    pub burst_mean_bytes: Option<u64>,
    /// Times in s from the first byte of a burst to the last.
    pub burst_transfer: Option<Distribution>,
    /// Share of the time, 0..=1, in which bursts were arriving.
    pub burst_duty_cycle: Option<f64>,
    /// Times in s that writes took.
    pub write_times: Option<Distribution>,
    /// Requests and replies.
    pub bounces: Option<Bounces>,
    /// Frames of an isochronous sender or receiver.
    pub frames: Option<FrameCounts>,
    /// Delays in s of whole frames.
    pub frame_delay: Option<Distribution>,
    /// Distributions.
    pub histograms: Vec<Histogram>,
}

/// The whole test, of one stream.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Totals {
    /// What this end measured.
    pub local: Measured,
    /// What the peer reported.
    pub peer: Measured,
}

/// Calls that wrote.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WriteCounts {
    /// Calls that wrote something.
    pub calls: u64,
    /// Calls that could not.
    pub errors: u64,
    /// Waits for room that ended without.
    pub timeouts: u64,
}

/// Calls that read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReadCounts {
    /// Calls that read something.
    pub calls: u64,
    /// The same by size: eighths of the block length.
    pub bins: [u64; 8],
    /// Waits for data that ended without.
    pub timeouts: u64,
    /// Datagrams that were cut.
    pub truncated: u64,
}

/// A series of numbers, summed up.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Distribution {
    /// How many.
    pub count: u64,
    /// Mean.
    pub mean: f64,
    /// Smallest.
    pub min: f64,
    /// Largest.
    pub max: f64,
    /// Standard deviation of a sample.
    pub deviation: f64,
}

/// Requests and replies.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Bounces {
    /// Round-trip times in s.
    pub round_trip: Distribution,
    /// One-way delays of requests in s, if the clocks agree.
    pub out: Option<Distribution>,
    /// One-way delays of replies in s.
    pub back: Option<Distribution>,
    /// Differences of the two in s.
    pub asymmetry: Option<Distribution>,
    /// Bytes of requests.
    pub sent_bytes: u64,
    /// Bytes of replies.
    pub received_bytes: u64,
}

/// Frames.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FrameCounts {
    /// Sent, or received.
    pub done: u64,
    /// Not sent in time, or lost.
    pub missed: u64,
    /// Times a sender fell behind its schedule.
    pub slips: u64,
}

/// What a distribution is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HistogramKind {
    /// One-way delays of datagrams.
    Datagrams,
    /// One-way delays of bursts or frames.
    Bursts,
    /// Times that writes took.
    Writes,
    /// Round-trip times of requests.
    RoundTrips,
    /// One-way delays of requests.
    Out,
    /// One-way delays of replies.
    Back,
    /// Jitter of datagrams.
    Jitter,
}

/// A distribution as counts in bins of equal width. Bin k covers k−1 to k times the width.
#[derive(Debug, Clone, PartialEq)]
pub struct Histogram {
    /// What it is of.
    pub kind: HistogramKind,
    /// Width of a bin in µs.
    pub bin_width_us: u32,
    /// Bins that are not empty, in order: number from 1 and count.
    pub bins: Vec<(u32, u64)>,
    /// Percentages for which a bin is named, and those bins.
    pub percentiles: [(f64, u32); 3],
    /// Values far beyond the others.
    pub outliers: u64,
    /// Values below the first bin.
    pub below: u64,
    /// Values beyond the last bin.
    pub beyond: u64,
    /// Largest value in s, and when it was seen in s since 1970.
    pub largest: Option<(f64, f64)>,
}

/// Attempts to connect.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ConnectTimes {
    /// Those that succeeded, in s.
    pub times: Distribution,
    /// Those that did not.
    pub errors: u64,
}
