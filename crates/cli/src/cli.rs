//! Command lines.

pub(crate) mod doctor;
mod file_modes;
mod generate;
mod how_to;
pub(crate) mod http;
pub(crate) mod iperf2;
pub(crate) mod iperf3;
pub(crate) mod links;
mod man;
pub(crate) mod native;
mod roff;
pub(crate) mod serve;
pub(crate) mod sweep;
mod try_self;
