//! iperf3: a control connection per test, in [`client`] and [`server`].

pub mod client;
mod control_connection;
mod error;
mod keepalive;
pub mod server;
mod udp_headers;
