//! Two groups of hosts whose rates differ.

use std::collections::BTreeMap;

use super::findings::{self, because};
use super::matrix::{Entry, KnownGood, Matrix};
use linerate_model::finding::{Confidence, Finding};
use linerate_model::fleet::{Cell, HostId};
use linerate_model::numbers::change;
use linerate_model::outliers::MEDIAN_FACTOR;
pub(super) use linerate_model::outliers::scale;
use linerate_model::stats::median;
use serde::Serialize;

/// Two groups.
#[derive(Debug, PartialEq, Serialize)]
pub struct Groups {
    /// Hosts of the faster group, in the order of their ids.
    pub fast: Vec<HostId>,
    /// Hosts of the slower group, in the order of their ids.
    pub slow: Vec<HostId>,
    /// Median of the slower group against that of the faster one, minus 1.
    pub effect: f64,
    /// Gap between the groups in the natural logarithm.
    pub gap_ln: f64,
    /// Larger scale of the two groups in the natural logarithm.
    pub scale_ln: f64,
}

const SCALES_MIN: f64 = 4.0;
const MEMBERS_MIN: usize = 2;

/// Splits hosts at the widest gap between their rates, in any unit, each with a standard error in
/// the logarithm. `None` where the gap is below 5 % or below four times the scale inside a group or
/// the error, and where a group has fewer than two hosts.
pub(super) fn split(rates: &[(HostId, f64)], error: f64) -> Option<Groups> {
    // In the logarithm a gap is a ratio, the same for links of any rate.
    let mut sorted: Vec<(&HostId, f64)> =
        rates.iter().map(|(host, rate)| (host, rate.ln())).collect();
    if sorted.iter().any(|(_, ln)| !ln.is_finite()) {
        return None;
    }

    sorted.sort_by(|(_, a), (_, b)| a.total_cmp(b));
    let gaps = sorted.windows(2).map(|pair| pair[1].1 - pair[0].1);
    let (at, gap_ln) = gaps.enumerate().max_by(|(_, a), (_, b)| a.total_cmp(b))?;
    let (slow, fast) = sorted.split_at_checked(at + 1)?;
    let values =
        |group: &[(&HostId, f64)]| -> Vec<f64> { group.iter().map(|(_, ln)| *ln).collect() };
    let low = values(slow);
    let high = values(fast);
    // The larger scale counts: one wide group makes the gap less clear.
    let scale_ln = scale(&low)?.max(scale(&high)?);
    let is_clear = gap_ln > GAP_MIN_LN.max(SCALES_MIN * scale_ln.max(error));
    if !is_clear || slow.len() < MEMBERS_MIN || fast.len() < MEMBERS_MIN {
        return None;
    }

    let hosts = |group: &[(&HostId, f64)]| -> Vec<HostId> {
        let mut hosts: Vec<HostId> = group.iter().map(|(host, _)| (*host).clone()).collect();
        hosts.sort_unstable();
        hosts
    };
    Some(Groups {
        fast: hosts(fast),
        slow: hosts(slow),
        effect: (median(&low)? - median(&high)?).exp_m1(),
        gap_ln,
        scale_ln,
    })
}

/// Repetitions that each show the groups, for a high confidence.
const REPETITIONS_SURE: usize = 3;

/// The two groups that the hosts of a mesh, or the hosts around the hub of a ladder, form.
pub fn finding(cells: &[&Cell], hub: Option<&HostId>) -> Option<(Groups, Finding)> {
    let groups = groups_of(cells, hub)?;
    let mut repetitions: BTreeMap<u32, Vec<&Cell>> = BTreeMap::new();
    for cell in cells {
        let of = repetitions.entry(cell.task.repetition).or_default();
        of.push(cell);
    }

    let mut shown = 0;
    for of in repetitions.values() {
        // The same slow hosts in each repetition exclude a gap by chance.
        if groups_of(of, hub).is_some_and(|found| found.slow == groups.slow) {
            shown += 1;
        }
    }
    let confidence = match repetitions.len() {
        all @ REPETITIONS_SURE.. if shown == all => Confidence::High,
        _ => Confidence::Medium,
    };

    let slow = groups.slow.first()?;
    let fast = groups.fast.first()?;
    let next = format!(
        "on {slow} and {fast}: `linerate doctor --save FILE`, then `linerate doctor --diff A B` of \
         both files"
    );
    let names = |hosts: &[HostId]| {
        let names: Vec<&str> = hosts.iter().map(HostId::as_str).collect();
        names.join(", ")
    };
    let slow = names(&groups.slow);
    let statements = [
        format!("faster: {}", names(&groups.fast)),
        format!("slower, {}: {slow}", change(groups.effect)),
        format!(
            "gap {:.1} %, scale inside {:.1} %",
            groups.gap_ln.exp_m1() * 100.0,
            groups.scale_ln * 100.0
        ),
        format!("{shown} of {} repetitions show them", repetitions.len()),
    ];
    let finding = findings::GROUPS.about(slow, confidence, next);
    Some((groups, because(finding, statements)))
}

/// Cells of a host that show how far they lie apart.
const CELLS_MIN: usize = 3;

/// Splits hosts by the median of their rates with good others; of a ladder, with the hub.
fn groups_of(cells: &[&Cell], hub: Option<&HostId>) -> Option<Groups> {
    let matrix = Matrix::of(cells);
    let mut middles = Vec::new();
    let mut errors = Vec::new();
    for (host, rates) in matrix.hosts.iter().zip(host_rates(&matrix, hub)?) {
        if let Some(middle) = median(&rates) {
            middles.push((host.clone(), middle.exp()));
        }
        if rates.len() >= CELLS_MIN {
            errors.extend(median_error(&rates));
        }
    }

    split(&middles, median(&errors).unwrap_or(0.0))
}

/// Logarithms of the rates of each host that count for it.
fn host_rates(matrix: &Matrix, hub: Option<&HostId>) -> Option<Vec<Vec<f64>>> {
    let clearance = KnownGood::of(matrix)?;
    let mut rates = vec![Vec::new(); matrix.hosts.len()];

    for entry in &matrix.entries {
        let Entry { source, sink, ln } = *entry;
        // A cell with a slow partner says nothing about this host.
        let ends = [
            (source, sink, clearance.sinks[sink]),
            (sink, source, clearance.sources[source]),
        ];
        for (own, other, is_good) in ends {
            let is_counted = match hub {
                Some(hub) => matrix.hosts[other] == *hub,
                None => is_good,
            };
            if is_counted {
                rates[own].push(ln);
            }
        }
    }

    Some(rates)
}

/// Narrowest gap between two groups of rates: 5 %, in the logarithm.
pub(super) const GAP_MIN_LN: f64 = 0.048_790_164_169_432;

/// Standard error of the median; `None` without values.
fn median_error(values: &[f64]) -> Option<f64> {
    Some(MEDIAN_FACTOR * scale(values)? / (values.len() as f64).sqrt())
}
