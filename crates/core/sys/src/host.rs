//! Clocks, CPUs, memory, random numbers, files and events of this host.

pub mod clock;
pub mod cpu;
pub mod file_access;
pub mod file_system;
pub mod memory;
pub mod perf_event;
pub mod random;
pub mod timer;
pub mod tracefs;
