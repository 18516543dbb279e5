//! Helpers for live tests: start the linerate program and the original iperf3 on loopback, and look at what they say.
//!
//! Two environment variables choose the programs: `LINERATE_BIN` (default: the program of this build) and
//! `IPERF3_BIN` (default `/usr/bin/iperf3`, the Debian package, 3.12).

#![forbid(unsafe_code)]

mod cases;
mod deadline;
pub mod iperf2;
mod keys;
pub mod namespaces;
mod net;
mod pairing;
mod process;
mod program;
mod report;
mod service;
mod session;
mod sockets;
mod status;
mod transcript;
mod wire;

pub use cases::{patiently, run_cases, skip};
pub use deadline::{PATIENCE, wait_for};
pub use keys::Keys;
pub use net::{free_port, free_port_run, has_ipv6, is_bound_udp, is_bound_udp_beside, listens, listens_beside};
pub use pairing::Pairing;
pub use process::{Finished, Process, Signal};
pub use program::{Program, original, ours};
pub use report::Report;
pub use service::Service;
pub use session::{Pair, Server, run_pair, run_pair_at};
pub use sockets::established;
pub use status::Status;
pub use transcript::{difference, normalise};
pub use wire::{Answer, Control, cookie, frame, fresh_cookie, state};
