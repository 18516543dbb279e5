//! Runs a fleet: control connections, and what reads clocks and starts processes.

pub mod carrier;
