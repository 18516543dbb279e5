//! Sockets: options, byte streams, batched datagrams, error queues and the state of TCP.

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

use std::net::{Ipv4Addr, SocketAddr};

use crate::caps::Capabilities;
use socket::Protocol;

const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// Queries the kernel with sockets that are closed again.
pub(crate) fn capabilities() -> Capabilities {
    let udp = || socket::open(&LOOPBACK, Protocol::Udp);
    Capabilities {
        udp_gso: udp().is_ok_and(|fd| sockopt::UDP_SEGMENT.set(fd, 1000).is_ok()),
        udp_gro: udp().is_ok_and(|fd| sockopt::UDP_GRO.set(fd, true).is_ok()),
        mptcp: socket::open(&LOOPBACK, Protocol::Mptcp).is_ok(),
        sctp: socket::open(&LOOPBACK, Protocol::Sctp).is_ok(),
    }
}
