//! Differences between two hosts, or two snapshots of one, that can matter.

use std::collections::{BTreeMap, BTreeSet};

use linerate_model::finding::{Comparison, Diagnosis, Difference, Finding};
use linerate_model::network::is_software_kind;
use linerate_model::snapshot::{Fact, Snapshot, Source, Value};

use crate::derive::derive;
use crate::judge::{diagnose, scope};
use crate::observed::Observed;
use crate::period::Period;
use crate::rules;

/// Compares two observations: the findings of both, and what differs.
pub fn compare(a: &Observed, b: &Observed, only: &[String]) -> Diagnosis {
    let left = derive(a.snapshot.clone());
    let right = derive(b.snapshot.clone());
    // Counters of two texts around a test grew in it: as many overflows as lost datagrams are then
    // certain, not likely.
    let later = around_test(a, b);
    let mut diagnosis = match &later {
        Some(later) => diagnose(std::slice::from_ref(later), only),
        None => diagnose(&[a.clone(), b.clone()], only),
    };
    let b = later.as_ref().unwrap_or(b);
    let of_a = diagnose(std::slice::from_ref(a), only);
    let of_b = diagnose(std::slice::from_ref(b), only);
    let mut comparison = facts(&left, &right);
    rules_of_one(&mut comparison, &of_a.findings, &of_b.findings);
    rates(&mut comparison, &left, &right);
    add_receive_aggregation(&mut diagnosis, left, right, only);
    comparison
        .changed
        .sort_by(|x, y| y.impact.cmp(&x.impact).then_with(|| x.key.cmp(&y.key)));
    diagnosis.differences = Some(comparison.changed.clone());
    diagnosis.comparison = Some(comparison);

    diagnosis
}

/// The second of two texts of one host, with what its counters grew in the tests that it contains.
/// `None` of two hosts, and without a test between the moments.
fn around_test(a: &Observed, b: &Observed) -> Option<Observed> {
    let before = &a.snapshot;
    let after = &b.snapshot;
    let is_one_host = before.host == after.host
        && [before, after]
            .iter()
            .all(|one| one.source == Source::Import);
    // A host that was watched over a period has the growth of its counters already.
    if !is_one_host || b.period.is_some() {
        return None;
    }

    let is_length = |key: &str| key.starts_with("run.") && key.ends_with(".seconds");
    let seconds = after
        .facts
        .keys()
        .filter(|key| is_length(key))
        .filter_map(|key| after.number(key))
        .sum();
    let period = Period::around_test(before, after, seconds)?;

    Some(Observed {
        snapshot: after.clone(),
        period: Some(period),
    })
}

fn facts(a: &Snapshot, b: &Snapshot) -> Comparison {
    let left = normalised(a);
    let right = normalised(b);
    let mut comparison = Comparison::default();

    let keys: BTreeSet<&String> = left.keys().chain(right.keys()).collect();
    for key in keys {
        match (left.get(key), right.get(key)) {
            (Some(x), Some(y)) if same(x, y) => comparison.same_count += 1,
            (Some(x), Some(y)) => comparison.changed.push(difference(key, x, y)),
            (Some(_), None) => comparison.only_a.push(key.clone()),
            (None, Some(_)) => comparison.only_b.push(key.clone()),
            (None, None) => {}
        }
    }

    comparison
}

/// Facts about the host rather than about the point in time, with interfaces named by their role.
pub(crate) fn normalised(snapshot: &Snapshot) -> BTreeMap<String, Value> {
    let tested = test_interface(snapshot);
    let known = snapshot.facts.iter().filter_map(|(key, fact)| match fact {
        Fact::Known { v, .. } => Some((key, v)),
        Fact::Absent { .. } => None,
    });
    known
        .filter(|(key, _)| !is_momentary(key))
        .map(|(key, value)| (by_role(key, tested), value.clone()))
        .collect()
}

/// The interface a comparison is about: the one on the test's route, or the only one with a wire.
fn test_interface(snapshot: &Snapshot) -> Option<&str> {
    if let Some(device) = snapshot.text("route.peer.dev") {
        return Some(device);
    }

    let wired = |name: &&str| {
        let kind = snapshot
            .text(&format!("nic.{name}.net.kind"))
            .unwrap_or_default();
        !is_software_kind(kind)
    };
    let names: Vec<&str> = snapshot
        .interfaces()
        .into_iter()
        .filter(|name| *name != "lo")
        .collect();
    let with_wire: Vec<&str> = names.iter().copied().filter(wired).collect();
    match (with_wire.as_slice(), names.as_slice()) {
        ([only], _) | ([], [only]) => Some(only),
        _ => None,
    }
}

fn by_role(key: &str, tested: Option<&str>) -> String {
    // The dot after the name excludes `eth10` where `eth1` is tested.
    let own = tested.and_then(|name| {
        key.strip_prefix("nic.")?
            .strip_prefix(name)?
            .strip_prefix('.')
    });
    own.map_or_else(|| key.to_owned(), |rest| format!("nic.*.{rest}"))
}

/// Identities and momentary values, which always differ.
fn is_momentary(key: &str) -> bool {
    const PARTS: &str = "\
        .ifindex .drv.bus .irq.total .irq.busiest_cpu uptime_seconds .cur_khz .current sock. \
        .pci.addr .pci.upstream";

    PARTS.split(' ').any(|part| key.contains(part))
        || ["run.", "irq.", "mem."]
            .iter()
            .any(|group| key.starts_with(group))
}

/// Equal in effect: sizes as numbers, triples element by element.
fn same(a: &Value, b: &Value) -> bool {
    if let Some(x) = a.number()
        && let Some(y) = b.number()
    {
        return (x - y).abs() < f64::EPSILON * x.abs().max(1.0);
    }

    match (a, b) {
        // The kernel separates the elements of a triple by tabs, pasted text often by spaces.
        (Value::Text(x), Value::Text(y)) => x.split_whitespace().eq(y.split_whitespace()),
        // The order of a list, such as that of link modes, has no meaning.
        (Value::List(x), Value::List(y)) => {
            x.len() == y.len() && x.iter().all(|value| y.contains(value))
        }
        _ => a == b,
    }
}

fn difference(key: &str, a: &Value, b: &Value) -> Difference {
    let (impact, why) = impact(key);
    // A switch that is off, and one that is off for good, behave alike.
    let alike = matches!((a, b), (Value::Text(x), Value::Text(y)) if is_off(x) && is_off(y));
    let mut difference = Difference::new(
        key,
        if alike { 0 } else { impact },
        if alike {
            "off on both; only whether it can be changed differs"
        } else {
            why
        },
    );
    difference.a = Some(a.to_string());
    difference.b = Some(b.to_string());

    difference
}

fn is_off(words: &str) -> bool {
    words == "off" || words == "off [fixed]"
}

/// Effect of a fact on throughput and latency. Lines of the table have the beginning or a part of
/// its key, the effect, and why.
pub(crate) fn impact(key: &str) -> (u8, &'static str) {
    let effect = |line: &'static str| {
        let mut columns = line.split(" | ");
        let is_of_key = key.contains(columns.next()?);
        let effect = (columns.next()?.parse().ok()?, columns.next()?);
        is_of_key.then_some(effect)
    };
    let mut lines = include_str!("impacts.txt").lines();
    lines.find_map(effect).unwrap_or((0, "no known effect"))
}

fn rules_of_one(comparison: &mut Comparison, a: &[Finding], b: &[Finding]) {
    let ids = |findings: &[Finding]| {
        findings
            .iter()
            .map(|finding| finding.id.clone())
            .collect::<BTreeSet<_>>()
    };
    let a = ids(a);
    let b = ids(b);
    comparison.rules_only_a = a.difference(&b).cloned().collect();
    comparison.rules_only_b = b.difference(&a).cloned().collect();
    comparison.rules_both = a.intersection(&b).cloned().collect();
}

/// Two snapshots of one boot: counters that grew, as rates.
fn rates(comparison: &mut Comparison, a: &Snapshot, b: &Snapshot) {
    // Without the id of the boot, a restart that sets counters to 0 would stay unseen.
    if a.boot_id.is_none() || a.source == Source::Import {
        return;
    }

    let Some(period) = Period::over(&[a.clone(), b.clone()]) else {
        return;
    };
    for (key, delta) in period
        .deltas()
        .filter(|(key, delta)| delta.value > 0 && key.starts_with("nic.") && !key.contains(".irq."))
    {
        let trouble = crate::classes::looks_like_trouble(key);
        let impact = if trouble { 2 } else { 0 };
        let mut difference =
            Difference::new(key, impact, "counter that grew between the two moments");
        difference.b = Some(format!(
            "+{:.1}/s",
            crate::arithmetic::to_f64(delta.value) / period.seconds
        ));
        comparison.changed.push(difference);
    }
}

/// VIRT-02 needs both sides at once.
fn add_receive_aggregation(diagnosis: &mut Diagnosis, a: Snapshot, b: Snapshot, only: &[String]) {
    if !only.is_empty() && !only.iter().any(|id| id.eq_ignore_ascii_case("VIRT-02")) {
        return;
    }

    let snapshots = [a, b];
    let scope = scope(&snapshots, &[None, None]);
    let [left, right] = scope.hosts.as_slice() else {
        return;
    };
    let tested = |host: &crate::scope::Host<'_>| test_interface(host.snapshot).map(str::to_owned);
    let (Some(x), Some(y)) = (tested(left), tested(right)) else {
        return;
    };
    let pair = (
        left.nics().find(|nic| nic.name == x),
        right.nics().find(|nic| nic.name == y),
    );
    let (Some(x), Some(y)) = pair else { return };

    diagnosis
        .not_evaluated
        .retain(|entry| entry.id != "VIRT-02");
    let Some(rule) = rules::all().find(|(_, rule)| rule.id == "VIRT-02") else {
        return;
    };
    let subject = format!("{} against {}", left.name(), right.name());
    crate::judge::append(
        diagnosis,
        rule,
        subject,
        rules::receive_aggregation_differs(&x, &y),
    );
}
