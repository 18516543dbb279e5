//! Facts of this host for a coordinator.

use std::collections::BTreeSet;
use std::net::IpAddr;

use crate::protocol::message::{FactsDepth, JsonText};
use linerate_host::{Request, collect};
use linerate_model::snapshot::Snapshot;
use linerate_sys::interfaces::device_of;

/// Quick facts of an interface: settings that explain its rate.
const QUICK: [&str; 9] = [
    "link.speed_mbps",
    "link.duplex",
    "link.up",
    "net.mtu",
    "net.kind",
    "net.master",
    "driver.name",
    "chan.combined.cur",
    "numa.node",
];
/// Longest quick facts in bytes.
const QUICK_MAX_BYTES: usize = 4 << 10;

/// A snapshot of this host and the interfaces that have these addresses; `None` where none is
/// wanted.
pub(super) fn facts(
    depth: FactsDepth,
    addresses: impl Iterator<Item = IpAddr>,
) -> Option<JsonText> {
    if depth == FactsDepth::None {
        return None;
    }

    let devices: BTreeSet<String> = addresses.filter_map(device_of).collect();
    let snapshot = collect(&Request {
        interfaces: devices.into_iter().collect(),
        ..Request::default()
    });
    let snapshot = if depth == FactsDepth::Full {
        snapshot
    } else {
        quick(snapshot)
    };
    let text = serde_json::to_string(&snapshot).ok()?;
    if depth == FactsDepth::Quick && text.len() > QUICK_MAX_BYTES {
        return None;
    }

    JsonText::new(text)
}

/// The quick part of a snapshot.
fn quick(mut snapshot: Snapshot) -> Snapshot {
    let is_quick = |key: &str| {
        let of_nic = key
            .strip_prefix("nic.")
            .and_then(|rest| QUICK.iter().find(|quick| rest.ends_with(**quick)));
        of_nic.is_some() || key == "cpu.count" || key == "cpu.model"
    };
    snapshot.facts.retain(|key, _| is_quick(key));
    snapshot.counters.clear();

    snapshot
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quick_facts_are_a_short_snapshot_and_none_are_absent() {
        let loopback = || std::iter::once(IpAddr::from([127, 0, 0, 1]));
        let facts = facts(FactsDepth::Quick, loopback()).expect("facts");
        assert!(facts.as_str().len() <= QUICK_MAX_BYTES);

        let snapshot: Snapshot = serde_json::from_str(facts.as_str()).expect("a snapshot");
        assert!(
            snapshot.whole("nic.lo.net.mtu").is_some() && snapshot.counters.is_empty(),
            "{snapshot:?}"
        );
        assert_eq!(super::facts(FactsDepth::None, loopback()), None);
    }
}
