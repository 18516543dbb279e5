//! Steering of a load while it runs.

use linerate_macros::{sparse, stored};

use super::{Confidence, LoadSample};

/// Steers a load while it runs.
pub trait LoadControl {
    /// Streams per direction at its start, at least one.
    fn first_streams(&self) -> u32;

    /// Ten times a second: what was moved so far, and the newest round trip of a probe.
    fn sample(&mut self, sample: &LoadSample, newest_rtt_ns: Option<i64>) -> LoadDecision;
}

/// Decision on a running load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadDecision {
    /// It continues.
    Continue,
    /// A number of streams per direction joins it.
    AddStreams(u32),
    /// It ends.
    End,
}

/// Counts of a receiver of datagrams since its previous report.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CapacityFeedback {
    /// Time that it covers, ns.
    pub elapsed_ns: u64,
    /// Bytes of IP packets.
    pub bytes: u64,
    /// Datagrams.
    pub datagrams: u64,
    /// Datagrams lost or reordered.
    pub errors: u64,
    /// Largest delay above the smallest of the phase, ns.
    pub delay_range_ns: u64,
}

/// Decides on the rate of datagrams while they are sent.
pub trait RateControl {
    /// Rate to send at, bit/s of IP packets.
    fn rate_bps(&self) -> u64;
    /// A report of the receiver, or the absence of one that was due.
    fn take(&mut self, feedback: Option<&CapacityFeedback>);
}

/// Control of a load, and the part of it that counts.
#[sparse(Vec)]
#[stored(Eq)]
pub struct LoadOutcome {
    /// Confidence of its rate and delays.
    pub confidence: Confidence,
    /// Why it ended.
    pub ended_by: LoadEnd,
    /// Streams per direction at the end.
    pub streams: u32,
    /// Part with one stream, without its slow start; absent where the load began with several.
    pub single: Option<LoadWindow>,
    /// Part over which rate and delays count.
    pub window: LoadWindow,
    /// Where the load differs from what was planned: `max-bytes`, `stream-lost`, `interrupted`.
    pub deviations: Vec<String>,
}

/// Why a load ended.
#[stored(Copy, Eq)]
pub enum LoadEnd {
    /// Rate and responsiveness were stable.
    Stable,
    /// Its time had ended.
    Time,
    /// It moved as many bytes as it was allowed.
    Bytes,
    /// It was stopped from outside.
    Stopped,
}

/// Part of a load, since its start.
#[stored(Copy, Default, Eq)]
pub struct LoadWindow {
    /// Start in ns.
    pub start_ns: u64,
    /// End in ns.
    pub end_ns: u64,
}
