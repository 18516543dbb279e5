//! Settings of a run, and the inputs of its pumps.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use linerate_model::TestSpec;
use linerate_model::spec::LocalOptions;
use linerate_sys::OsError;

use crate::data::worker::{DatagramFormat, Pump};
use crate::measure::counters::StreamCounters;

/// Settings of a run, fixed before it starts.
#[derive(Default)]
pub(crate) struct RunSettings {
    pub spec: TestSpec,
    pub local: LocalOptions,
    /// This end decides when the test ends (clients do).
    pub decides_end: bool,
    /// CPU for the workers.
    pub cpu: Option<u32>,
    /// Streams begin and end one by one; what happens to one leaves the others alone.
    pub independent: bool,
    /// Intervals are those of the grid; what is left at the end is the last one, up to the end of
    /// each stream.
    pub keeps_grid: bool,
    /// The CPU time of the workers is a result of the test, so none is spent to wait: a receiver
    /// that spins looks saturated.
    pub measures_cpu: bool,
    /// Headers of datagrams; `None` in a dialect that builds the pumps of its flows.
    pub datagrams: Option<DatagramFormat>,
}

/// Inputs of a pump.
pub(crate) struct PumpInputs {
    pub fd: Arc<OwnedFd>,
    pub counters: Arc<StreamCounters>,
    /// When the test began, monotonic ns.
    pub start_ns: u64,
}

/// Makes the pump of a stream when its data is to flow.
pub(crate) type PumpBuilder = Box<dyn FnOnce(PumpInputs) -> Result<Box<dyn Pump>, OsError> + Send>;
