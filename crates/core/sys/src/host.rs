//! Clocks, CPUs, memory, random numbers and files of this host.

pub mod clock;
pub mod cpu;
pub mod file_access;
pub mod file_system;
pub mod memory;
pub mod random;
pub mod timer;
