//! Command lines.

pub(crate) mod doctor;
pub(crate) mod getopt;
mod help_layout;
pub(crate) mod http;
pub(crate) mod iperf2;
pub(crate) mod iperf3;
pub(crate) mod links;
pub(crate) mod native;
pub(crate) mod serve;
pub(crate) mod sharing;
mod suggest;
pub(crate) mod sweep;
