//! Clocks, CPUs, memory and events of this host.

pub mod clock;
pub mod cpu;
pub mod memory;
pub mod perf_event;
pub mod timer;
pub mod tracefs;
