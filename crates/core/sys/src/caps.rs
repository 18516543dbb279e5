//! Capabilities of this kernel, probed once.

use std::sync::OnceLock;

#[cfg(not(target_os = "linux"))]
use crate::other_system::capabilities;
#[cfg(target_os = "linux")]
use crate::sockets::capabilities;

/// Features that not every kernel, or not every configuration of one, has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
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
    /// The kernel's features, queried at the first call.
    pub fn probe() -> &'static Self {
        static PROBED: OnceLock<Capabilities> = OnceLock::new();
        PROBED.get_or_init(capabilities)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probing_twice_gives_the_same_answer_at_the_same_place() {
        assert!(std::ptr::eq(Capabilities::probe(), Capabilities::probe()));
    }
}
