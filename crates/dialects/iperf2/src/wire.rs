//! The iperf 2 protocol without I/O: stream headers, UDP datagrams, final reports, bounce-back and
//! burst framing.
//!
//! Nothing here opens a socket, reads a clock or starts a thread. There is no control connection:
//! every TCP connection and every UDP flow is a session of its own, with one machine at each end
//! ([`client`], [`server`]). Machines are fed with bytes, local events and the current time, and
//! are polled for actions; everything else is a parser, an emitter or a table. Whatever comes from
//! the peer is bounded before it is stored and never leads to a panic.

pub mod ack;
pub mod amount;
pub mod bounceback;
pub mod burst;
mod bytes;
pub mod client;
pub mod datagram;
mod flags;
pub mod frame;
pub mod header;
pub mod machine;
pub mod opening;
pub mod report;
pub mod sequence;
pub mod server;
pub mod settings;
pub mod stamp;
pub mod version;

pub use bytes::fill_pattern;
pub use client::{FlowClient, StreamClient};
pub use datagram::DatagramHead;
pub use header::{Header, Mode};
pub use opening::{Opening, recognise};
pub use report::FinalReport;
pub use sequence::SequenceTracker;
pub use server::{FlowServer, Policy, StreamServer};
pub use stamp::Timestamp;
pub use version::Version;
