//! A connected stream of a run.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use linerate_model::Stream;

use super::settings::PumpBuilder;
use crate::measure::counters::StreamCounters;

/// A connected stream and its state.
pub(super) struct OpenStream {
    pub(super) stream: Stream,
    pub(super) fd: Arc<OwnedFd>,
    pub(super) counters: Arc<StreamCounters>,
    pub(super) peer_coalesces: bool,
    /// Present until start for streams with a dialect-specific pump.
    pub(super) build_pump: Option<PumpBuilder>,
    pub(super) has_own_pump: bool,
    /// The sender used up its amount, or the receiver read to the end.
    pub(super) ended: bool,
}
