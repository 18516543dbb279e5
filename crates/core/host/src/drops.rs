//! Drops of this host, for the loss of one phase of a test by its place.

use std::net::IpAddr;

use linerate_model::path::HostDrops;
use linerate_sys::netlink::Family;

use crate::collect::identity;
use crate::kernel::HostCounters;
use crate::kernel::file::Buffer;
use crate::nic::links::{self, GET_LINK};
use crate::nic::route::device_index;
use crate::prelude::*;
use crate::tc;

/// Reads the counters, of the interface towards `peer` where they are those of an interface. Takes
/// about a millisecond.
pub fn drops(peer: IpAddr) -> HostDrops {
    let mut snapshot = identity();
    HostCounters::open().record(&mut snapshot, &mut Buffer::new());
    let index = device_index(peer);
    let total = |key: &str| snapshot.counters.get(key).map(|counter| counter.v);
    let tracking = ["insert_failed", "drop"].map(|name| total(&format!("conntrack.{name}")));

    HostDrops {
        qdisc: index.and_then(qdisc_drops),
        nic: nic_drops(index, total("softnet.dropped")),
        accept_queue: total("net.netstat.TcpExt.ListenOverflows"),
        syn_queue: total("net.netstat.TcpExt.TCPReqQFullDrop"),
        conntrack: tracking.into_iter().flatten().reduce(u64::saturating_add),
    }
}

/// Drops of the root discipline, which include those of the ones below it. An interface without one
/// drops nothing there.
fn qdisc_drops(index: u32) -> Option<u64> {
    // rtnetlink(7): a `struct tcmsg` of 20 bytes; an index of 0 selects all interfaces.
    let (payloads, error) = dump(Family::Route, tc::GET_QDISC, &[0; 20]);
    let is_root = |payload: &&Vec<u8>| {
        // The fields are `tcm_ifindex` and `tcm_parent`.
        u32_at(payload, 4) == Some(index) && u32_at(payload, 12) == Some(tc::ROOT)
    };
    match payloads.iter().find(is_root) {
        Some(root) => tc::drops(attribute(root.get(20..)?, tc::STATISTICS)?),
        None => error.is_none().then_some(0),
    }
}

fn nic_drops(index: Option<u32>, backlog: Option<u64>) -> Option<u64> {
    let mut body = [0_u8; 16];
    // The field is `ifi_index` of `struct ifinfomsg` (rtnetlink(7)).
    body[4..8].copy_from_slice(&index?.to_ne_bytes());
    let response = NetlinkClient::open(Family::Route)
        .and_then(|mut client| client.get(GET_LINK, &body))
        .ok()?;
    let link = links::link(&response)?;
    let mut counters = Snapshot::new("drops", linerate_model::snapshot::Source::Live);
    link.record_counters(&mut counters);

    let missed = counters
        .counters
        .get(&format!("nic.{}.stats64.rx_missed_errors", link.name))?
        .v;
    Some(missed.saturating_add(backlog?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_has_no_discipline_and_all_counters() {
        let found = drops(IpAddr::from([127, 0, 0, 1]));
        assert_eq!(found.qdisc, Some(0));
        assert!(
            found.nic.is_some() && found.accept_queue.is_some() && found.syn_queue.is_some(),
            "{found:?}"
        );
    }
}
