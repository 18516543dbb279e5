//! Load of one end, as trials read it.

/// Cumulative totals of one end of a test.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LoadSample {
    pub at_ns: u64,
    /// Payload of all streams, both directions.
    pub bytes: u64,
    /// CPU time of the workers.
    pub cpu_ns: u64,
    /// Number of times that workers had nothing to do: they have slept, paused or polled.
    pub waits: u64,
    /// Segments that were sent again or received out of order.
    pub disturbed_segments: u64,
    /// A receiver that polls takes the CPU from what delivers the data, or from other receivers:
    /// data arrives on the only CPU of the workers, or there are more receivers than CPUs.
    pub polling_competes: bool,
}
