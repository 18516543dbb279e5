//! Capabilities of this kernel, probed once.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::OnceLock;

use crate::socket::{self, Protocol};
use crate::sockopt;

/// Features that not every kernel, or not every configuration of one, has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// Trains of datagrams are cut by the kernel (`UDP_SEGMENT`, Linux 4.18).
    pub udp_gso: bool,
    /// Trains of datagrams are joined by the kernel (`UDP_GRO`, Linux 5.0).
    pub udp_gro: bool,
    /// Multipath TCP (Linux 5.6, `net.mptcp.enabled`).
    pub mptcp: bool,
    /// SCTP; the kernel loads its module on demand, if it has one.
    pub sctp: bool,
}

impl Capabilities {
    /// The kernel's features, queried at the first call with sockets that are closed again.
    pub fn probe() -> &'static Self {
        static PROBED: OnceLock<Capabilities> = OnceLock::new();
        PROBED.get_or_init(Self::query)
    }

    fn query() -> Self {
        let udp = || socket::open(&V4, Protocol::Udp);
        Self {
            udp_gso: udp().is_ok_and(|fd| sockopt::UDP_SEGMENT.set(fd, 1000).is_ok()),
            udp_gro: udp().is_ok_and(|fd| sockopt::UDP_GRO.set(fd, true).is_ok()),
            mptcp: socket::open(&V4, Protocol::Mptcp).is_ok(),
            sctp: socket::open(&V4, Protocol::Sctp).is_ok(),
        }
    }
}

const V4: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probing_twice_gives_the_same_answer_at_the_same_place() {
        assert!(std::ptr::eq(Capabilities::probe(), Capabilities::probe()));
    }
}
