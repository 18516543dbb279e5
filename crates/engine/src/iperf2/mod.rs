//! Tests of the dialect without a control connection: every TCP connection and every UDP flow is a test of its own, and
//! begins with a header that says what it is.
//!
//! The protocol is in `linerate-iperf2`. A `Channel` joins one of its machines with a socket, a `Leg` joins channels
//! with a clock, workers and a report, and the owners of legs, [`client`] and [`server`], open and accept.

mod arrived;
mod bounce;
mod burst_reports;
mod channel;
pub mod client;
mod connect;
mod connect_only;
mod datagrams;
mod dialogue;
mod frame_rows;
mod frame_sizes;
mod framed_datagrams;
mod leg;
mod pumps;
mod reads;
pub mod server;
mod shaped;
mod sockets;
