//! Capabilities of this kernel, probed once.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::OnceLock;

use crate::error::Result;
use crate::poll;
use crate::socket::{self, Protocol};
use crate::sockopt;

/// Features that not every kernel, or not every configuration of one, has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// IPv6 sockets can be bound to the loopback address.
    pub ipv6: bool,
    /// Trains of datagrams are cut by the kernel (`UDP_SEGMENT`, Linux 4.18).
    pub udp_gso: bool,
    /// Trains of datagrams are joined by the kernel (`UDP_GRO`, Linux 5.0).
    pub udp_gro: bool,
    /// Multipath TCP (Linux 5.6, `net.mptcp.enabled`).
    pub mptcp: bool,
    /// SCTP; the kernel loads its module on demand, if it has one.
    pub sctp: bool,
    /// Readiness timeouts with nanoseconds (Linux 5.11).
    pub epoll_pwait2: bool,
}

impl Capabilities {
    /// The kernel's features. Asked at the first call, with sockets that are closed again, and remembered.
    #[must_use]
    pub fn probe() -> &'static Self {
        static PROBED: OnceLock<Capabilities> = OnceLock::new();
        PROBED.get_or_init(Self::ask)
    }

    fn ask() -> Self {
        Self {
            ipv6: ipv6().is_ok(),
            udp_gso: udp_gso().is_ok(),
            udp_gro: udp_gro().is_ok(),
            mptcp: socket::open(&V4, Protocol::Mptcp).is_ok(),
            sctp: socket::open(&V4, Protocol::Sctp).is_ok(),
            epoll_pwait2: poll::has_fine_timeout(),
        }
    }

    /// Names of the features that are absent.
    #[must_use]
    pub fn missing(&self) -> Vec<&'static str> {
        let features = [
            ("ipv6", self.ipv6),
            ("udp_gso", self.udp_gso),
            ("udp_gro", self.udp_gro),
            ("mptcp", self.mptcp),
            ("sctp", self.sctp),
            ("epoll_pwait2", self.epoll_pwait2),
        ];
        features.into_iter().filter(|(_, present)| !present).map(|(name, _)| name).collect()
    }
}

fn ipv6() -> Result<()> {
    let loopback = SocketAddr::new(Ipv6Addr::LOCALHOST.into(), 0);
    socket::bind(socket::open(&loopback, Protocol::Udp)?, &loopback)
}

fn udp_gso() -> Result<()> {
    sockopt::set_udp_segment(socket::open(&V4, Protocol::Udp)?, 1000)
}

fn udp_gro() -> Result<()> {
    sockopt::set_udp_gro(socket::open(&V4, Protocol::Udp)?, true)
}

const V4: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_lists_exactly_what_is_absent() {
        let all =
            Capabilities { ipv6: true, udp_gso: true, udp_gro: true, mptcp: true, sctp: true, epoll_pwait2: true };
        assert!(all.missing().is_empty());
        assert_eq!(Capabilities { sctp: false, udp_gso: false, ..all }.missing(), ["udp_gso", "sctp"]);
    }

    #[test]
    fn probing_twice_gives_the_same_answer_at_the_same_place() {
        assert!(std::ptr::eq(Capabilities::probe(), Capabilities::probe()));
    }
}
