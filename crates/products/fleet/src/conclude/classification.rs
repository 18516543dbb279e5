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
    let hosts = analysis.effects.hosts.len();
    let mut slow: Vec<&HostEffect> = analysis
        .effects
        .hosts
        .iter()
        .filter(|host| is_slow(host))
        .collect();
    slow.sort_by(|a, b| strength(a).total_cmp(&strength(b)));

    let of_hosts = slow.into_iter().map(|host| of_host(host, hosts));
    let of_racks = analysis
        .uplinks
        .iter()
        .map(|uplink| of_uplink(uplink, racks));
    let of_pairs = of_pairs(analysis, racks);

    findings::ranked(of_hosts.chain(of_racks).chain(of_pairs).collect())
}

fn of_host(host: &HostEffect, hosts: usize) -> Finding {
    let template: &Template = match (host.sends.is_slow, host.receives.is_slow) {
        (true, true) => &findings::HOST,
        // Both are false for no host here: hosts without a slow end have no finding.
        (false, _) => &findings::RECEIVES,
        (true, false) => &findings::SENDS,
    };
    let confidence = if hosts < HOSTS_SURE_MIN {
        Confidence::Medium
    } else {
        Confidence::High
    };

    let name = &host.host;
    let next =
        format!("on {name}: `linerate doctor --window 5s` while `linerate fleet run` sends load");

    let statement = |end: &EndEffect, verb: &str, preposition: &str| {
        let partners = format!("{preposition} {} good hosts", end.cells);
        match end.effect {
            Some(_) if end.is_cleared => format!("{name} {verb} as fast as the reference"),
            Some(effect) => format!("{name} {verb} {} {partners}", change(effect)),
            None => format!("no cell decides what {name} {verb}"),
        }
    };
    let statements = [
        statement(&host.sends, "sends", "to"),
        statement(&host.receives, "receives", "from"),
    ];
    let finding = because(template.about(name.as_str(), confidence, next), statements);

    match confidence {
        Confidence::High => finding,
        _ => because(
            finding,
            [format!(
                "probably: {hosts} hosts leave one other pair as the reference"
            )],
        ),
    }
}

fn of_uplink(uplink: &SlowUplink, racks: &BTreeMap<HostId, String>) -> Finding {
    let blocks: Vec<String> = uplink
        .blocks
        .iter()
        .map(|(from, to)| format!("{from} to {to}"))
        .collect();

    let hosts = racks
        .values()
        .filter(|rack| {
            uplink
                .blocks
                .iter()
                .any(|(from, to)| from == *rack || to == *rack)
        })
        .count();
    let statements = [
        format!(
            "{}: {} of the reference",
            blocks.join(", "),
            change(uplink.effect)
        ),
        format!("the {hosts} hosts of these racks are good elsewhere"),
    ];

    let next = "`linerate fleet run mesh --mode rack-safe`, and the counters of the uplink on the \
                switches";
    because(
        findings::UPLINK.about(uplink.name(), Confidence::High, next),
        statements,
    )
}

/// Slow pairs without those that a slow uplink explains, both directions of a pair as one finding.
fn of_pairs(analysis: &Analysis, racks: &BTreeMap<HostId, String>) -> Vec<Finding> {
    let is_explained = |pair: &PairEffect| {
        let (from, to) = (racks.get(&pair.source), racks.get(&pair.sink));
        let mut uplinks = analysis.uplinks.iter();
        uplinks.any(|uplink| uplink.carries(from, to))
    };
    let mut both_ways: BTreeMap<(&HostId, &HostId), Vec<&PairEffect>> = BTreeMap::new();

    for pair in analysis
        .effects
        .pairs
        .iter()
        .filter(|pair| !is_explained(pair))
    {
        let (source, sink) = (&pair.source, &pair.sink);
        // Both directions of a pair have one key, whichever host is the source.
        let key = (source.min(sink), source.max(sink));
        both_ways.entry(key).or_default().push(pair);
    }

    let mut pairs: Vec<_> = both_ways.into_iter().collect();
    // Effects of slow pairs are negative, so the least one is the strongest.
    let strongest =
        |pairs: &[&PairEffect]| pairs.iter().map(|pair| pair.effect).fold(0.0, f64::min);
    pairs.sort_by(|(_, a), (_, b)| strongest(a).total_cmp(&strongest(b)));

    let third = analysis.references().into_iter().next();
    if pairs.len() > PAIRS_LISTED_MAX {
        return vec![of_many_pairs(&pairs)];
    }

    pairs
        .into_iter()
        .map(|((a, b), pairs)| of_pair(a, b, &pairs, third.as_ref()))
        .collect()
}

/// Pairs that have a finding each; of more, the cause is no single path.
const PAIRS_LISTED_MAX: usize = 8;

fn of_many_pairs(pairs: &[((&HostId, &HostId), Vec<&PairEffect>)]) -> Finding {
    let next = "name the racks in the inventory, and `linerate fleet run mesh --mode isolated`: \
                pairs that are fast alone share a part of the network";
    let mut finding =
        findings::PAIR.about(format!("{} pairs", pairs.len()), Confidence::Medium, next);
    finding.title = "Many pairs are slow, and their hosts are not".to_owned();

    let worst = pairs
        .iter()
        .take(PAIRS_LISTED_MAX)
        .filter_map(|(_, pairs)| pairs.first());
    because(
        finding,
        worst.map(|pair| format!("{} to {}: {}", pair.source, pair.sink, change(pair.effect))),
    )
}

fn of_pair(a: &HostId, b: &HostId, pairs: &[&PairEffect], third: Option<&HostId>) -> Finding {
    let statements = pairs
        .iter()
        .map(|pair| format!("{} to {}: {}", pair.source, pair.sink, change(pair.effect)));
    // A pair between good hosts is decided; another one may be slow by either of its hosts.
    if pairs.iter().any(|pair| pair.suspect == PairSuspect::Pair) {
        let next = format!(
            "`linerate fleet run pairs --pairs {a}:{b} -P 8`: two clusters of rates are one bad \
             member of a group"
        );
        return because(
            findings::PAIR.about(format!("{a} and {b}"), Confidence::High, next),
            statements,
        );
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
