//! Measures a test: counters, samples on the interval grid, statistics of streams.

pub(crate) mod counters;
pub(crate) mod cpu_usage;
pub(crate) mod observations;
pub(crate) mod overflow;
pub(crate) mod sampler;
pub(crate) mod stream_stats;
pub(crate) mod timeline;
