//! Command lines.

pub(crate) mod doctor;
mod file_modes;
mod generate;
pub(crate) mod getopt;
mod help_layout;
mod how_to;
pub(crate) mod http;
pub(crate) mod iperf2;
pub(crate) mod iperf3;
pub(crate) mod links;
mod man;
pub(crate) mod native;
mod roff;
pub(crate) mod serve;
pub(crate) mod sharing;
mod suggest;
pub(crate) mod sweep;
