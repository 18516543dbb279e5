//! Two groups of hosts whose rates differ.

use linerate_model::finding::{Confidence, Finding};
use linerate_model::fleet::{Cell, HostId};
use linerate_model::numbers::change;
use serde::Serialize;

use super::findings::{self, because};
use super::known_good::KnownGood;
use super::matrix::Matrix;
use super::spread::{GAP_MIN_LN, median_error, scale};
use linerate_model::stats::median;

/// Two groups.
#[derive(Debug, Clone, PartialEq, Serialize)]
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
    let gaps = sorted
        .iter()
        .zip(sorted.iter().skip(1))
        .map(|((_, low), (_, high))| high - low);
    let (at, gap_ln) = gaps.enumerate().max_by(|(_, a), (_, b)| a.total_cmp(b))?;
    let (slow, fast) = sorted.split_at_checked(at + 1)?;
    let values =
        |group: &[(&HostId, f64)]| -> Vec<f64> { group.iter().map(|(_, ln)| *ln).collect() };
    let (low, high) = (values(slow), values(fast));
    // The larger scale counts: one wide group makes the gap less clear.
    let scale_ln = scale(&low)?.max(scale(&high)?);
    let is_clear = gap_ln > GAP_MIN_LN.max(SCALES_MIN * scale_ln.max(error));

    let hosts = |group: &[(&HostId, f64)]| -> Vec<HostId> {
        let mut hosts: Vec<HostId> = group.iter().map(|(host, _)| (*host).clone()).collect();
        hosts.sort_unstable();
        hosts
    };
    let effect = (median(&low)? - median(&high)?).exp_m1();
    let is_split = is_clear && slow.len() >= MEMBERS_MIN && fast.len() >= MEMBERS_MIN;

    is_split.then(|| Groups {
        fast: hosts(fast),
        slow: hosts(slow),
        effect,
        gap_ln,
        scale_ln,
    })
}

/// Repetitions that each show the groups, for a high confidence.
const REPETITIONS_SURE: usize = 3;

/// The two groups that the hosts of a mesh, or the hosts around the hub of a ladder, form.
pub fn finding(cells: &[&Cell], hub: Option<&HostId>) -> Option<(Groups, Finding)> {
    let groups = groups_of(cells, hub)?;
    let mut repetitions: Vec<u32> = cells.iter().map(|cell| cell.task.repetition).collect();
    repetitions.sort_unstable();
    repetitions.dedup();

    let shown = repetitions.iter().filter(|repetition| {
        let of: Vec<&Cell> = cells
            .iter()
            .filter(|cell| cell.task.repetition == **repetition)
            .copied()
            .collect();
        // The same slow hosts in each repetition exclude a gap by chance.
        groups_of(&of, hub).is_some_and(|found| found.slow == groups.slow)
    });
    let shown = shown.count();
    let is_sure = shown >= REPETITIONS_SURE && shown == repetitions.len();
    let confidence = if is_sure {
        Confidence::High
    } else {
        Confidence::Medium
    };

    let (Some(slow), Some(fast)) = (groups.slow.first(), groups.fast.first()) else {
        return None;
    };
    let next = format!(
        "on {slow} and {fast}: `linerate doctor --save FILE`, then `linerate doctor --diff A B` of \
         both files"
    );

    let names = |hosts: &[HostId]| {
        hosts
            .iter()
            .map(HostId::as_str)
            .collect::<Vec<_>>()
            .join(", ")
    };
    let statements = [
        format!("faster: {}", names(&groups.fast)),
        format!("slower, {}: {}", change(groups.effect), names(&groups.slow)),
        format!(
            "gap {:.1} %, scale inside {:.1} %",
            groups.gap_ln.exp_m1() * 100.0,
            groups.scale_ln * 100.0
        ),
        format!("{shown} of {} repetitions show them", repetitions.len()),
    ];
    let finding = because(
        findings::GROUPS.about(names(&groups.slow), confidence, next),
        statements,
    );

    Some((groups, finding))
}

/// Cells of a host that show how far they lie apart.
const CELLS_MIN: usize = 3;

/// Splits hosts by the median of their rates with good others; of a ladder, with the hub.
fn groups_of(cells: &[&Cell], hub: Option<&HostId>) -> Option<Groups> {
    let matrix = Matrix::of(cells);
    let rates = host_rates(&matrix, hub)?;
    let named = matrix.hosts.iter().zip(&rates);
    let middles: Vec<(HostId, f64)> = named
        .filter_map(|(host, rates)| Some((host.clone(), median(rates)?.exp())))
        .collect();

    let errors = rates
        .iter()
        .filter(|rates| rates.len() >= CELLS_MIN)
        .filter_map(|rates| median_error(rates));
    let error = median(&errors.collect::<Vec<_>>()).unwrap_or(0.0);
    split(&middles, error)
}

/// Logarithms of the rates of each host that count for it.
fn host_rates(matrix: &Matrix, hub: Option<&HostId>) -> Option<Vec<Vec<f64>>> {
    // A cell with a slow partner says nothing about this host.
    let clearance = KnownGood::of(matrix)?;
    let is_hub = |at: usize| matrix.hosts.get(at) == hub;
    let mut rates = vec![Vec::new(); matrix.hosts.len()];

    for entry in &matrix.entries {
        let ends = [
            (entry.source, entry.sink, clearance.has_sink(entry)),
            (entry.sink, entry.source, clearance.has_source(entry)),
        ];
        for (own, other, is_good) in ends {
            let is_counted = if hub.is_some() {
                is_hub(other)
            } else {
                is_good
            };
            if let Some(rates) = rates.get_mut(own).filter(|_| is_counted) {
                rates.push(entry.ln);
            }
        }
    }

    Some(rates)
}
