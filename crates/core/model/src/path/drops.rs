//! Drops of a host while datagrams or new connections pass through it.

use std::net::IpAddr;
use std::rc::Rc;

/// Counters of a host since its boot, for all traffic. One that the kernel does not report is
/// absent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HostDrops {
    /// Packets dropped by the queueing discipline of the interface towards the other end (tc(8)).
    pub qdisc: Option<u64>,
    /// Packets dropped by the NIC of that interface (`rx_missed_errors`) and by the packet backlog
    /// (`/proc/net/softnet_stat`).
    pub nic: Option<u64>,
    /// Connections dropped because an accept queue was full (`ListenOverflows`).
    pub accept_queue: Option<u64>,
    /// Connections dropped because a queue of half-open ones was full (`TCPReqQFullDrop`).
    pub syn_queue: Option<u64>,
    /// Packets dropped by connection tracking.
    pub conntrack: Option<u64>,
}

/// Reads the counters of this host for the interface towards a peer.
pub type HostDropsReader = Rc<dyn Fn(IpAddr) -> HostDrops>;

impl HostDrops {
    /// Growth since an earlier reading; absent where either is, or where the counter was reset.
    pub fn since(&self, before: &Self) -> Self {
        // A counter that fell was reset: its growth is not known.
        let growth = |now: Option<u64>, before: Option<u64>| now?.checked_sub(before?);
        Self {
            qdisc: growth(self.qdisc, before.qdisc),
            nic: growth(self.nic, before.nic),
            accept_queue: growth(self.accept_queue, before.accept_queue),
            syn_queue: growth(self.syn_queue, before.syn_queue),
            conntrack: growth(self.conntrack, before.conntrack),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_of_an_unknown_or_reset_counter_is_unknown() {
        let before = HostDrops {
            qdisc: Some(3),
            nic: None,
            accept_queue: Some(9),
            ..HostDrops::default()
        };
        let now = HostDrops {
            qdisc: Some(10),
            nic: Some(4),
            accept_queue: Some(1),
            ..HostDrops::default()
        };
        assert_eq!(
            now.since(&before),
            HostDrops {
                qdisc: Some(7),
                ..HostDrops::default()
            }
        );
    }
}
