//! Tests of the dialect without a control connection: every TCP connection and every UDP flow is a
//! test of its own, and begins with a header that describes it.
//!
//! The protocol is in `linerate-iperf2`. A `Connection` joins one of its machines with a socket, a
//! `Session` joins connections with a clock, workers and a report, and the owners of sessions,
//! [`client`] and [`server`], open and accept connections.

mod bounce;
mod burst_reports;
mod burst_sender;
pub mod client;
mod connect;
mod connect_only;
mod connection;
mod datagram_reader;
mod datagrams;
mod frame_rows;
mod frame_sizes;
mod framed_datagrams;
mod machine;
mod pumps;
mod read_observer;
mod received_bursts;
pub mod server;
mod session;
mod sockets;
