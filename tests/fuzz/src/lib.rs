//! What fuzz targets check. The unit tests of the protocol crates include the modules and run them
//! on random input.

pub mod fleet;
pub mod iperf2;
pub mod iperf3;
pub mod native;
mod script;
