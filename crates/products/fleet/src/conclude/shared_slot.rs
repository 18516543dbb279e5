//! Pairs whose packets pass one card of a forwarding host twice.

use std::collections::{BTreeMap, BTreeSet};

use linerate_model::finding::{Confidence, Finding};
use linerate_model::fleet::{Cell, FleetMode, HostId};
use linerate_model::numbers::rate;

use super::findings::{self, because, read};
use super::spread::{GAP_MIN_LN, scale};
use linerate_model::stats::median;

/// A host whose bridge joins others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forwarder {
    /// The host.
    pub host: HostId,
    /// Name of the path whose addresses it joins.
    pub path: String,
    /// Its ports by the host that each leads to.
    pub ports: BTreeMap<HostId, Port>,
}

/// A port of a bridge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Port {
    /// Its device.
    pub name: String,
    /// Where its card is on the bus.
    pub slot: String,
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
    let ports = |cell: &Cell| {
        Some((
            forwarder.ports.get(&cell.task.source)?,
            forwarder.ports.get(&cell.task.sink)?,
        ))
    };
    // Tests of a ladder or of the stress mode share hosts, so their rates have other causes.
    let has_own_hosts = |cell: &&&Cell| !matches!(cell.mode, FleetMode::Ladder | FleetMode::Stress);
    let of_path = cells
        .iter()
        .filter(|cell| *cell.task.path == forwarder.path)
        .filter(has_own_hosts);
    let through =
        of_path.filter_map(|cell| Some((ports(cell)?, *cell, cell.usable()?.goodput_bps)));
    // Both hosts behind one port exchange frames at the switch and do not pass the bridge.
    let through = through.filter(|((a, b), _, bps)| a.name != b.name && *bps > 0.0);
    let (one, two): (Vec<_>, Vec<_>) = through.partition(|((a, b), _, _)| a.slot == b.slot);
    let rates = |of: &[((&Port, &Port), &Cell, f64)]| {
        of.iter().map(|(_, _, bps)| bps.ln()).collect::<Vec<f64>>()
    };
    let (own, others) = (rates(&one), rates(&two));
    let (low, high) = (
        median(&own)?,
        median(&others).filter(|_| two.len() >= OTHERS_MIN)?,
    );
    // The gap has to be larger than the noise of pairs over two cards and than the least gap.
    if high - low <= GAP_MIN_LN.max(SCALES_MIN * scale(&others)?) {
        return None;
    }

    let host = &forwarder.host;
    let next = format!(
        "on {host}: `linerate doctor` (PCI-03), and move one of the ports to a card in another slot"
    );
    let slots: BTreeSet<&str> = one
        .iter()
        .map(|((port, _), _, _)| port.slot.as_str())
        .collect();
    let finding = findings::SHARED_SLOT.about(host.as_str(), Confidence::Medium, next);

    let threshold = format!(
        "{} through two cards ({} tests)",
        rate(high.exp()),
        two.len()
    );
    let finding = read(finding, "rate through one card", rate(low.exp()), threshold);

    let pairs = one.iter().take(PAIRS_SHOWN).map(|((a, b), cell, bps)| {
        format!(
            "{} to {}: {} from {} to {}",
            cell.task.source,
            cell.task.sink,
            rate(*bps),
            a.name,
            b.name
        )
    });
    let card = format!(
        "behind {}",
        slots.into_iter().collect::<Vec<_>>().join(", ")
    );
    Some(because(finding, pairs.chain([card])))
}

/// Pairs of a finding that are listed.
const PAIRS_SHOWN: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{cell, host};

    /// h2 and h9 are on one card of h0, the others on cards of their own.
    fn forwarder() -> Forwarder {
        let port = |name: &str, slot: &str| Port {
            name: name.to_owned(),
            slot: slot.to_owned(),
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
