//! Signatures: which effects together name which part of a fleet.

use std::collections::BTreeMap;

use linerate_model::finding::{Confidence, Finding};
use linerate_model::fleet::{EndEffect, HostEffect, HostId, PairEffect, PairSuspect};
use linerate_model::numbers::change;
use linerate_model::outliers::HOSTS_SURE_MIN;

use super::blocks::SlowUplink;
use super::effects::{Analysis, is_slow, strength};
use super::findings::{self, Template, because};

/// Findings about hosts, pairs and racks, strongest first.
pub fn findings(analysis: &Analysis, racks: &BTreeMap<HostId, String>) -> Vec<Finding> {
    let hosts = &analysis.effects.hosts;
    let mut slow: Vec<&HostEffect> = hosts.iter().filter(|host| is_slow(host)).collect();
    slow.sort_by(|a, b| strength(a).total_cmp(&strength(b)));

    let mut found = Vec::new();
    for host in slow {
        found.push(of_host(host, hosts.len()));
    }
    for uplink in &analysis.uplinks {
        found.push(of_uplink(uplink, racks));
    }

    found.extend(of_pairs(analysis, racks));
    findings::ranked(found)
}

fn of_host(host: &HostEffect, hosts: usize) -> Finding {
    let template: Template = match (host.sends.is_slow, host.receives.is_slow) {
        (true, true) => findings::HOST,
        // Both are false for no host here: hosts without a slow end have no finding.
        (false, _) => findings::RECEIVES,
        (true, false) => findings::SENDS,
    };
    let name = &host.host;
    let statement = |end: &EndEffect, verb: &str, preposition: &str| match end.effect {
        Some(_) if end.is_cleared => format!("{name} {verb} as fast as the reference"),
        Some(effect) => {
            let effect = change(effect);
            let cells = end.cells;
            format!("{name} {verb} {effect} {preposition} {cells} good hosts")
        }
        None => format!("no cell decides what {name} {verb}"),
    };
    let mut statements = vec![
        statement(&host.sends, "sends", "to"),
        statement(&host.receives, "receives", "from"),
    ];

    let mut confidence = Confidence::High;
    if hosts < HOSTS_SURE_MIN {
        confidence = Confidence::Medium;
        statements.push(format!(
            "probably: {hosts} hosts leave one other pair as the reference"
        ));
    }
    let next =
        format!("on {name}: `linerate doctor --window 5s` while `linerate fleet run` sends load");
    because(template.about(name.as_str(), confidence, next), statements)
}

fn of_uplink(uplink: &SlowUplink, racks: &BTreeMap<HostId, String>) -> Finding {
    let blocks = &uplink.blocks;

    let is_named = |rack: &String| blocks.iter().any(|(from, to)| from == rack || to == rack);
    let hosts = racks.values().filter(|rack| is_named(rack)).count();
    let blocks: Vec<String> = blocks.iter().map(|(a, b)| format!("{a} to {b}")).collect();
    let blocks = blocks.join(", ");
    let effect = change(uplink.effect);
    let statements = [
        format!("{blocks}: {effect} of the reference"),
        format!("the {hosts} hosts of these racks are good elsewhere"),
    ];

    let next = "`linerate fleet run mesh --mode rack-safe`, and the counters of the uplink on the \
                switches";
    let finding = findings::UPLINK.about(uplink.name(), Confidence::High, next);
    because(finding, statements)
}

/// Slow pairs without those that a slow uplink explains, both directions of a pair as one finding.
fn of_pairs(analysis: &Analysis, racks: &BTreeMap<HostId, String>) -> Vec<Finding> {
    let mut both_ways: BTreeMap<(&HostId, &HostId), Vec<&PairEffect>> = BTreeMap::new();
    for pair in &analysis.effects.pairs {
        let source = &pair.source;
        let sink = &pair.sink;
        let from = racks.get(source);
        let to = racks.get(sink);
        if analysis
            .uplinks
            .iter()
            .any(|uplink| uplink.carries(from, to))
        {
            continue;
        }
        // Both directions of a pair have one key, whichever host is the source.
        let key = (source.min(sink), source.max(sink));
        both_ways.entry(key).or_default().push(pair);
    }

    let mut pairs: Vec<_> = both_ways.into_iter().collect();
    // Effects of slow pairs are negative, so the least one is the strongest.
    let strongest =
        |pairs: &[&PairEffect]| pairs.iter().map(|pair| pair.effect).fold(0.0, f64::min);
    pairs.sort_by(|(_, a), (_, b)| strongest(a).total_cmp(&strongest(b)));
    if pairs.len() > PAIRS_LISTED_MAX {
        return vec![of_many_pairs(&pairs)];
    }

    let third = analysis.references().into_iter().next();
    let mut found = Vec::new();
    for ((a, b), pairs) in pairs {
        found.push(of_pair(a, b, &pairs, third.as_ref()));
    }

    found
}

/// Pairs that have a finding each; of more, the cause is no single path.
const PAIRS_LISTED_MAX: usize = 8;

fn of_many_pairs(pairs: &[((&HostId, &HostId), Vec<&PairEffect>)]) -> Finding {
    let next = "name the racks in the inventory, and `linerate fleet run mesh --mode isolated`: \
                pairs that are fast alone share a part of the network";
    let subject = format!("{} pairs", pairs.len());
    let mut finding = findings::PAIR.about(subject, Confidence::Medium, next);
    finding.title = "Many pairs are slow, and their hosts are not".to_owned();

    let worst = pairs.iter().take(PAIRS_LISTED_MAX);
    because(finding, worst.map(|(_, pairs)| of_direction(pairs[0])))
}

/// `h1 to h2: -50 %`
fn of_direction(pair: &PairEffect) -> String {
    format!("{} to {}: {}", pair.source, pair.sink, change(pair.effect))
}

fn of_pair(a: &HostId, b: &HostId, pairs: &[&PairEffect], third: Option<&HostId>) -> Finding {
    let statements = pairs.iter().map(|pair| of_direction(pair));
    // A pair between good hosts is decided; another one may be slow by either of its hosts.
    if pairs.iter().any(|pair| pair.suspect == PairSuspect::Pair) {
        let next = format!(
            "`linerate fleet run pairs --pairs {a}:{b} -P 8`: two clusters of rates are one bad \
             member of a group"
        );
        let finding = findings::PAIR.about(format!("{a} and {b}"), Confidence::High, next);
        return because(finding, statements);
    }

    let next = match third {
        Some(third) => format!("`linerate fleet run pairs --pairs {a}:{third},{b}:{third}`"),
        None => format!("test {a} and {b} each with a third host: `linerate fleet run mesh`"),
    };
    let mut finding = findings::HOST.about(format!("{a} or {b}"), Confidence::Low, next);
    finding.title = "One of two hosts is slow".to_owned();
    finding.explanation =
        "Neither of them was measured with a host that is known to be good.".to_owned();

    because(finding, statements)
}
