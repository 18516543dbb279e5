//! Drops of this host during one phase.

use std::net::IpAddr;

use linerate_model::path::{EndpointPhase, HostDrops, HostDropsReader};

/// Counters at the start of a phase, to be compared with those at its end.
pub(super) struct DropMeter {
    read: HostDropsReader,
    peer: IpAddr,
    before: HostDrops,
}

impl DropMeter {
    pub(super) fn start(read: &HostDropsReader, peer: IpAddr) -> Self {
        Self {
            read: HostDropsReader::clone(read),
            peer,
            before: read(peer),
        }
    }

    /// Adds what was dropped since the start.
    pub(super) fn fill(self, phase: &mut EndpointPhase) {
        let drops = (self.read)(self.peer).since(&self.before);
        phase.qdisc_drops = drops.qdisc;
        phase.host_drops = drops.nic;
        phase.accept_queue_drops = drops.accept_queue;
        phase.syn_queue_drops = drops.syn_queue;
        phase.conntrack_drops = drops.conntrack;
    }
}
