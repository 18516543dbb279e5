//! Sockets: options, byte streams, batched datagrams, error queues and the state of TCP.

pub mod caps;
pub mod icmp;
pub mod icmp_quote;
pub mod mptcp;
pub mod sendfile_source;
pub mod socket;
pub mod sockopt;
pub mod stream_io;
pub mod tcp_info;
pub mod udp;
pub mod zerocopy;
