//! Metrics of a stream beyond bytes: calls, delays, round trips, frames. Each group is
//! optional; a dialect or an option decides which ones exist.

use linerate_macros::stored;

use crate::tcp_interval::TcpInterval;

/// Metrics of a stream over an interval or over the whole test.
#[stored(Default)]
#[serde(default)]
pub struct StreamMetrics {
    /// Calls that wrote.
    pub writes: Option<WriteCounts>,
    /// Calls that read.
    pub reads: Option<ReadCounts>,
    /// Last reading of TCP_INFO; for totals, whose summary has only extremes. `retransmits` is that
    /// of the whole test.
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
    pub round_trips: Option<RoundTrips>,
    /// Frames of an isochronous sender or receiver.
    pub frames: Option<FrameCounts>,
    /// Delays in s: of whole frames at a receiver; at a sender, of their first byte behind the
    /// schedule.
    pub frame_delay: Option<Distribution>,
    /// Distributions.
    pub histograms: Vec<Histogram>,
}

/// Calls that wrote.
#[stored(Copy, Default, Eq)]
#[serde(default)]
pub struct WriteCounts {
    /// Calls that wrote something.
    pub calls: u64,
    /// Calls that could not.
    pub errors: u64,
    /// Waits for room that ended without.
    pub timeouts: u64,
}

/// Calls that read.
#[stored(Copy, Default, Eq)]
#[serde(default)]
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
#[stored(Copy, Default)]
#[serde(default)]
pub struct Distribution {
    /// Their number.
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
#[stored(Copy, Default)]
#[serde(default)]
pub struct RoundTrips {
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
#[stored(Copy, Default, Eq)]
#[serde(default)]
pub struct FrameCounts {
    /// Sent, or received.
    pub done: u64,
    /// Not sent in time, or lost.
    pub missed: u64,
    /// Times a sender fell behind its schedule.
    pub slips: u64,
}

/// Subject of a distribution.
#[stored(Copy, Eq)]
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
#[stored]
pub struct Histogram {
    /// Its subject.
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
#[stored(Copy, Default)]
pub struct ConnectTimes {
    /// Those that succeeded, in s.
    pub times: Distribution,
    /// Those that did not.
    pub errors: u64,
}
