//! Pairs whose packets pass one card of a forwarding host twice.

use std::collections::{BTreeMap, BTreeSet};

use linerate_model::finding::{Confidence, Finding};
use linerate_model::fleet::{Cell, FleetMode, HostId, Task};
use linerate_model::numbers::rate;

use super::findings::{self, because, read};
use super::groups::{GAP_MIN_LN, scale};
use crate::protocol::message::BridgePort;
use linerate_model::stats::median;

/// A host whose bridge joins others.
#[derive(Debug)]
pub struct Forwarder {
    /// The host.
    pub host: HostId,
    /// Name of the path whose addresses it joins.
    pub path: String,
    /// Its ports by the host that each leads to.
    pub ports: BTreeMap<HostId, BridgePort>,
}

const SCALES_MIN: f64 = 4.0;
/// Fewest pairs over two cards.
const OTHERS_MIN: usize = 2;

/// Hosts whose pairs through one card are slower than those through two. Pairs behind one port do
/// not pass the host. Tests that share a host with others are left out.
pub fn findings(forwarders: &[Forwarder], cells: &[&Cell]) -> Vec<Finding> {
    forwarders
        .iter()
        .filter_map(|forwarder| finding(forwarder, cells))
        .collect()
}

fn finding(forwarder: &Forwarder, cells: &[&Cell]) -> Option<Finding> {
    let mut one = Vec::new();
    let mut two = Vec::new();
    let mut own = Vec::new();
    let mut others = Vec::new();
    let mut slots = BTreeSet::new();

    for cell in cells {
        // Tests of a ladder or of the stress mode share hosts, so their rates have other causes.
        let shares_hosts = matches!(cell.mode, FleetMode::Ladder | FleetMode::Stress);
        if shares_hosts || *cell.task.path != forwarder.path {
            continue;
        }
        let ports = forwarder.ports.get(&cell.task.source);
        let ports = ports.zip(forwarder.ports.get(&cell.task.sink));
        let (Some((from, to)), Some(measured)) = (ports, cell.usable()) else {
            continue;
        };
        // Both hosts behind one port exchange frames at the switch and do not pass the bridge.
        let bps = measured.goodput_bps;
        if from.name == to.name || bps <= 0.0 {
            continue;
        }

        if from.slot == to.slot {
            slots.extend(from.slot.as_deref());
            own.push(bps.ln());
            let Task { source, sink, .. } = &cell.task;
            let rate = rate(bps);
            let from = &from.name;
            let to = &to.name;
            one.push(format!("{source} to {sink}: {rate} from {from} to {to}"));
        } else {
            others.push(bps.ln());
            two.push(cell);
        }
    }

    let low = median(&own)?;
    let high = median(&others)?;
    // The gap has to be larger than the noise of pairs over two cards and than the least gap.
    let gap_min = GAP_MIN_LN.max(SCALES_MIN * scale(&others)?);
    if two.len() < OTHERS_MIN || high - low <= gap_min {
        return None;
    }

    let host = &forwarder.host;
    let next = format!(
        "on {host}: `linerate doctor` (PCI-03), and move one of the ports to a card in another slot"
    );
    let finding = findings::SHARED_SLOT.about(host.as_str(), Confidence::Medium, next);
    let high = rate(high.exp());
    let threshold = format!("{high} through two cards ({} tests)", two.len());
    let finding = read(finding, "rate through one card", rate(low.exp()), threshold);

    one.truncate(PAIRS_SHOWN);
    let slots: Vec<&str> = slots.into_iter().collect();
    one.push(format!("behind {}", slots.join(", ")));
    Some(because(finding, one))
}

/// Pairs of a finding that are listed.
const PAIRS_SHOWN: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{cell, host};

    /// h2 and h9 are on one card of h0, the others on cards of their own.
    fn forwarder() -> Forwarder {
        let port = |name: &str, slot: &str| BridgePort {
            name: name.to_owned(),
            slot: Some(slot.to_owned()),
        };
        let ports = [
            ("h1", "p1", "a"),
            ("h2", "p2", "b"),
            ("h3", "p3", "c"),
            ("h9", "p9", "b"),
            ("h8", "p9", "b"),
        ];
        let ports = ports
            .map(|(id, name, slot)| (host(id), port(name, slot)))
            .into_iter()
            .collect();

        Forwarder {
            host: host("h0"),
            path: "phys".to_owned(),
            ports,
        }
    }

    fn ids(cells: &[Cell]) -> Vec<String> {
        let cells: Vec<&Cell> = cells.iter().collect();
        let found = findings(&[forwarder()], &cells);
        for finding in &found {
            assert!(
                finding
                    .advice
                    .as_ref()
                    .is_some_and(|next| next.contains("`linerate ")),
                "{finding:?}"
            );
            assert!(
                finding.evidence[0]
                    .to_string()
                    .contains("36.2 Gbit/s, 42.2 Gbit/s"),
                "{finding:?}"
            );
        }

        found
            .iter()
            .map(|finding| format!("{} {}", finding.id, finding.subject))
            .collect()
    }

    #[test]
    fn pair_on_one_card_that_is_slower_than_pairs_on_two_names_the_forwarding_host() {
        let pairs = |slow: f64| {
            vec![
                cell("h1", "h9", 42.4e9),
                cell("h2", "h9", slow),
                cell("h3", "h9", 42.0e9),
            ]
        };
        assert_eq!(ids(&pairs(36.2e9)), ["FLT-12 h0"]);
        assert_eq!(ids(&pairs(42.1e9)), [""; 0]);

        // Packets between h8 and h9 do not pass the host, nor do its own.
        let own = vec![
            cell("h1", "h9", 42.4e9),
            cell("h8", "h9", 20e9),
            cell("h3", "h9", 42.0e9),
            cell("h0", "h9", 9e9),
        ];
        assert_eq!(ids(&own), [""; 0]);
        assert_eq!(
            ids(&pairs(36.2e9)[..2]),
            [""; 0],
            "one pair on two cards is no reference"
        );
    }
}
