//! A connected stream of a run.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use linerate_model::Stream;

use super::settings::PumpBuilder;
use crate::measure::counters::StreamCounters;

/// A connected stream and its state.
pub(super) struct OpenStream {
    pub stream: Stream,
    pub fd: Arc<OwnedFd>,
    pub counters: Arc<StreamCounters>,
    pub peer_coalesces: bool,
    /// Present until start for streams with a dialect-specific pump.
    pub build_pump: Option<PumpBuilder>,
    pub has_own_pump: bool,
    /// The sender used up its amount, or the receiver read to the end.
    pub ended: bool,
}
