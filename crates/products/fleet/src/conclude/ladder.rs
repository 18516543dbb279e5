//! Findings from the steps of a ladder.

use std::collections::{BTreeMap, BTreeSet};

use super::findings::{self, because, read};
use super::groups::scale;
use super::hash_collision::{self, QueueEstimate, occupied};
use crate::plan::ladder::Step;
use linerate_model::finding::{Confidence, Finding};
use linerate_model::fleet::{Cell, HostId, LadderDirection, Measurement, Task};
pub use linerate_model::fleet::{LadderRow, Poisoning};
use linerate_model::numbers::rate;
use linerate_model::stats::median;

/// Cells by their tasks.
pub type Cells = BTreeMap<Task, Cell>;

/// Hosts of a step with their measurements.
type Measured<'a> = Vec<(&'a HostId, &'a Measurement)>;

/// Key of the steps of one ladder: direction, path and variant.
type Ladder<'a> = (LadderDirection, &'a str, &'a str);

/// Rows of the ladders, one for each direction, path, variant and level. A step in which a host has
/// no usable cell is left out.
pub fn rows(steps: &[Step], cells: &Cells) -> Vec<LadderRow> {
    let mut levels: BTreeMap<(Ladder<'_>, usize), Vec<Measured<'_>>> = BTreeMap::new();
    for step in steps {
        let measured = measured(step, cells);
        // A sum with a host missing is not comparable with sums of complete steps of the same
        // level.
        if measured.len() == step.tasks.len() {
            let key = (of_step(step), step.level);
            levels.entry(key).or_default().push(measured);
        }
    }

    let mut rows = Vec::new();
    for ((ladder, level), steps) in levels {
        rows.push(row(ladder, level, &steps));
    }

    rows
}

fn of_step(step: &Step) -> Ladder<'_> {
    (step.direction, &step.path, &step.variant)
}

fn of_row(row: &LadderRow) -> Ladder<'_> {
    (row.direction, &row.path, &row.variant)
}

fn row((direction, path, variant): Ladder<'_>, level: usize, steps: &[Measured<'_>]) -> LadderRow {
    let mut of_host: BTreeMap<&HostId, Vec<f64>> = BTreeMap::new();
    let mut sums_bps = Vec::new();
    let mut fairness = Vec::new();
    let mut rtt = Vec::new();
    let mut retransmits: Option<u64> = None;
    for step in steps {
        let mut rates = Vec::new();
        for (host, of) in step {
            rates.push(of.goodput_bps);
            of_host.entry(host).or_default().push(of.goodput_bps);
            rtt.extend(of.rtt_us.map(|us| us as f64));
            if let Some(count) = of.retransmits {
                retransmits = Some(retransmits.unwrap_or(0).saturating_add(count));
            }
        }

        // A step of one host has no sum that differs from its rate, and its index is always 1.
        if level > 1 {
            sums_bps.push(rates.iter().sum());
            fairness.extend(jain(&rates));
        }
    }

    let mut hosts_bps = Vec::new();
    for (host, rates) in of_host {
        hosts_bps.extend(median(&rates).map(|bps| (host.clone(), bps)));
    }

    LadderRow {
        direction,
        path: path.to_owned(),
        variant: variant.to_owned(),
        level,
        sums_bps,
        hosts_bps,
        jain: median(&fairness),
        retransmits,
        rtt_us: median(&rtt).map(|rtt| rtt.round() as u64),
    }
}

/// Rates of the hosts of a row.
pub(crate) fn host_rates(row: &LadderRow) -> Vec<f64> {
    row.hosts_bps.iter().map(|(_, rate)| *rate).collect()
}

/// Usable measurements of a step with the host that is not the hub.
fn measured<'a>(step: &Step, cells: &'a Cells) -> Measured<'a> {
    let mut measured = Vec::new();
    for cell in step.tasks.iter().filter_map(|task| cells.get(task)) {
        let host = match step.direction {
            LadderDirection::Incast => &cell.task.source,
            LadderDirection::Fanout => &cell.task.sink,
        };
        measured.extend(cell.usable().map(|of| (host, of)));
    }

    measured
}

/// Hosts that reach less than half of the median alone, by the direction in which they do.
pub fn suspects(rows: &[LadderRow]) -> BTreeSet<(LadderDirection, HostId)> {
    let mut suspects = BTreeSet::new();
    // Alone a host is slow by itself; at higher levels others may be the cause.
    for row in rows.iter().filter(|row| row.level == 1) {
        for (host, _) in slow_hosts(row) {
            suspects.insert((row.direction, host.clone()));
        }
    }

    suspects
}

/// Hosts of a row that reach less than half of its median, the slowest first.
pub(crate) fn slow_hosts(row: &LadderRow) -> Vec<&(HostId, f64)> {
    // Without rates the limit is 0, which no rate is below.
    let limit = SUSPECT_SHARE * median(&host_rates(row)).unwrap_or(0.0);
    let mut slow: Vec<&(HostId, f64)> = row.hosts_bps.iter().collect();
    slow.retain(|(_, bps)| *bps < limit);
    slow.sort_by(|(_, a), (_, b)| a.total_cmp(b));
    slow
}

/// Part of the median of all alone below which a host is a suspect.
const SUSPECT_SHARE: f64 = 0.5;

/// Compares the steps of [`poison`](crate::plan::ladder::poison) of one suspect; `None`
/// without all of their cells.
pub fn poisoning(
    steps: &[Step],
    suspect: &HostId,
    cells: &Cells,
) -> Option<(Poisoning, Option<Finding>)> {
    let mut with = Vec::new();
    let mut without = Vec::new();
    let mut own = Vec::new();
    for step in steps {
        let measured = measured(step, cells);
        // Sums of incomplete steps would show the missing host, not the effect of the suspect.
        if measured.len() < step.tasks.len() {
            return None;
        }

        let mut others = 0.0;
        let mut of_suspect = None;
        for (host, of) in measured {
            if host == suspect {
                of_suspect = Some(of.goodput_bps);
            } else {
                others += of.goodput_bps;
            }
        }

        own.extend(of_suspect);
        match of_suspect {
            Some(_) => with.push(others),
            None => without.push(others),
        }
    }

    let found = compare(&with, &without, &own)?;
    let finding = found.is_found().then(|| poison_finding(&found, suspect));
    Some((found, finding))
}

fn poison_finding(found: &Poisoning, suspect: &HostId) -> Finding {
    let next = format!(
        "on {suspect}: `linerate doctor --window 5s`; its link first, then flow control (PAU-04)"
    );
    let finding = findings::POISON.about(suspect.as_str(), Confidence::High, next);
    let without = format!("{} without it", rate(found.without_bps));
    let with = rate(found.with_bps);
    let finding = read(finding, "sum of the others with it", with, without);

    let expected = rate(found.gain_explained_bps);
    let expected = format!("expected change without it: {expected}");
    read(
        finding,
        "gain of the others",
        rate(found.gain_bps),
        expected,
    )
}

/// Largest index of an unfair sharing.
const JAIN_UNFAIR: f64 = 0.9;
/// Part of the median alone that every host reaches, for the sharing to be the cause.
const ALONE_MIN: f64 = 0.9;

/// Findings from the rows of the ladders of a hub: sharing and queues.
pub fn findings(hub: &HostId, rows: &[LadderRow]) -> Vec<Finding> {
    let mut found = Vec::new();
    // Rows of a ladder are in the order of their levels.
    for ladder in rows.chunk_by(|a, b| of_row(a) == of_row(b)) {
        // The last level is that of all hosts, whose flows share the queues.
        let [alone, .., all] = ladder else { continue };
        if alone.level == 1 {
            let shared = queues(all, alone).filter(QueueEstimate::has_collisions);
            // Flows that share a queue have less than others.
            found.extend(match shared {
                Some(shared) => Some(shared_queues(hub, &shared)),
                None => unfair(hub, alone, all),
            });
        }
    }

    found
}

/// The cells of each host alone, one list for each ladder.
pub fn alone<'a>(steps: &[Step], cells: &'a Cells) -> Vec<Vec<&'a Cell>> {
    let mut ladders: BTreeMap<Ladder<'_>, Vec<&Cell>> = BTreeMap::new();
    for step in steps.iter().filter(|step| step.level == 1) {
        let of_ladder = ladders.entry(of_step(step)).or_default();
        of_ladder.extend(step.tasks.iter().filter_map(|task| cells.get(task)));
    }

    ladders.into_values().collect()
}

fn unfair(hub: &HostId, alone: &LadderRow, all: &LadderRow) -> Option<Finding> {
    let rates = host_rates(alone);
    let middle = median(&rates)?;
    let index = all.jain.filter(|index| *index < JAIN_UNFAIR)?;

    // A slow host alone explains an unequal sharing; the finding is about flows that could be
    // equal.
    if rates.iter().any(|rate| *rate < ALONE_MIN * middle) {
        return None;
    }

    let next =
        format!("on {hub}: `linerate doctor --window 5s` while `linerate fleet run` sends load");
    let finding = findings::UNFAIR.about(hub.as_str(), Confidence::Medium, next);
    let threshold = "1 is equal sharing, below 0.9 is unfair".to_owned();
    let finding = read(finding, "index of Jain", format!("{index:.2}"), threshold);

    let mut sorted: Vec<&(HostId, f64)> = all.hosts_bps.iter().collect();
    sorted.sort_by(|(_, a), (_, b)| a.total_cmp(b));
    let (low, low_bps) = sorted.first()?;
    let (high, high_bps) = sorted.last()?;
    let low_bps = rate(*low_bps);
    let high_bps = rate(*high_bps);
    let statements = [
        format!("from {low} {low_bps} to {high} {high_bps}"),
        format!("each alone about {}", rate(middle)),
    ];
    Some(because(finding, statements))
}

/// Estimate of the queues from the sums of a full step.
pub fn queues(all: &LadderRow, alone: &LadderRow) -> Option<QueueEstimate> {
    let single_bps = median(&host_rates(alone))?;
    let flows = u32::try_from(all.level).ok()?;
    hash_collision::estimate(&all.sums_bps, single_bps, flows)
}

fn shared_queues(hub: &HostId, estimate: &QueueEstimate) -> Finding {
    let next = format!(
        "on {hub}: `linerate doctor --window 5s` (CHN-02), and compare with its number of queues"
    );
    let finding = findings::QUEUES.about(hub.as_str(), Confidence::Medium, next);
    let multiples: Vec<String> = estimate.multiples.iter().map(u32::to_string).collect();
    let flows = estimate.flows;
    let single = rate(estimate.single_bps);
    let multiples = multiples.join(", ");
    let mut statements = vec![format!(
        "sums are {multiples} times {single}, with {flows} flows"
    )];

    if let Some(queues) = estimate.queues {
        let least = estimate.queues_min;
        let range = match estimate.queues_max {
            Some(most) => format!("{least} to {most}"),
            None => format!("{least} or more"),
        };
        let expected = occupied(flows, queues);
        statements.push(format!(
            "as with {queues} queues ({range}), of which {flows} flows use {expected:.1} on average"
        ));
    }

    because(finding, statements)
}

/// Least part of the line that the fast direction reaches, and most that the slow one does.
const FAST_MIN: f64 = 0.95;
const SLOW_MAX: f64 = 0.80;

/// Compares the full steps of both directions of a hub with the rate of its line in bit/s, for each
/// path and variant.
pub fn asymmetries(hub: &HostId, rows: &[LadderRow], line_bps: f64) -> Vec<Finding> {
    let mut sums: BTreeMap<_, (Option<f64>, Option<f64>)> = BTreeMap::new();
    // Rows of a ladder are in the order of their levels, so that the last one is that of all hosts.
    for row in rows {
        if let Some(sum) = median(&row.sums_bps) {
            let (incast, fanout) = sums
                .entry((row.path.as_str(), row.variant.as_str()))
                .or_default();
            match row.direction {
                LadderDirection::Incast => *incast = Some(sum),
                LadderDirection::Fanout => *fanout = Some(sum),
            }
        }
    }

    let mut found = Vec::new();
    for (incast, fanout) in sums.into_values() {
        // Without both directions there is nothing to compare.
        if let Some(incast) = incast
            && let Some(fanout) = fanout
        {
            found.extend(asymmetry(hub, incast, fanout, line_bps));
        }
    }

    found
}

/// Compares the sums of an incast and a fanout of the same hub, both in bit/s, with the rate of its
/// line.
pub fn asymmetry(hub: &HostId, incast_bps: f64, fanout_bps: f64, line_bps: f64) -> Option<Finding> {
    let incast = incast_bps / line_bps;
    let fanout = fanout_bps / line_bps;
    let is_one_way = |fast: f64, slow: f64| fast >= FAST_MIN && slow < SLOW_MAX;
    let slow = match () {
        () if is_one_way(incast, fanout) => "sends",
        () if is_one_way(fanout, incast) => "receives",
        () => return None,
    };
    let next = format!("on {hub}: `linerate doctor --window 5s` (PAU-03, CHN-02) while it {slow}");
    let finding = findings::ASYMMETRY.about(hub.as_str(), Confidence::Medium, next);
    let line = format!("{} of line rate", rate(line_bps));
    let finding = read(finding, "it receives", rate(incast_bps), line.clone());

    Some(read(finding, "it sends", rate(fanout_bps), line))
}

/// Part of the sum by which it differs from one repetition to the next at least.
const SUM_SHARE: f64 = 0.02;
const SCALES: f64 = 3.0;

/// Compares repetitions: the sums of the others with the suspect, those without it, and its own
/// rates. `None` where one is lacking.
pub fn compare(with_bps: &[f64], without_bps: &[f64], own_bps: &[f64]) -> Option<Poisoning> {
    let with = median(with_bps)?;
    let without = median(without_bps)?;
    let own = median(own_bps)?;
    let deviation = scale(with_bps)?.max(scale(without_bps)?);
    let noise = (SUM_SHARE * without).max(SCALES * deviation);
    Some(Poisoning {
        with_bps: with,
        without_bps: without,
        own_bps: own,
        gain_bps: without - with,
        // Its absence alone, and the spread of the repetitions.
        gain_explained_bps: own + noise,
    })
}

/// Index of Jain, Chiu and Hawe (DEC-TR-301, 1984): the square of the sum over the number times the
/// sum of the squares. 1 where all rates are equal, 1/n where one has everything; `None` of nothing
/// and of zeros.
pub fn jain(rates: &[f64]) -> Option<f64> {
    let sum: f64 = rates.iter().sum();
    let squares: f64 = rates.iter().map(|rate| rate * rate).sum();
    let index = sum * sum / (rates.len() as f64 * squares);
    // No rates and rates of 0 make the index 0/0.
    index.is_finite().then_some(index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_gain_the_share_of_a_harmless_host_and_more_of_a_harmful_one() {
        let harmless =
            compare(&[3730.0, 3728.0], &[3826.0, 3824.0], &[96.0, 96.0]).expect("repetitions");
        assert!(!harmless.is_found(), "{harmless:?}");
        let harmful =
            compare(&[700.0, 690.0], &[8550.0, 8560.0], &[96.0, 96.0]).expect("repetitions");
        assert!(
            harmful.is_found() && (harmful.gain_bps - 7860.0).abs() < 1.0,
            "{harmful:?}"
        );

        let noisy =
            compare(&[5000.0, 7000.0], &[7500.0, 6700.0], &[96.0, 96.0]).expect("repetitions");
        assert!(!noisy.is_found(), "{noisy:?}");
        assert_eq!(compare(&[], &[1.0], &[1.0]), None);
    }
}

#[cfg(test)]
mod fairness_tests {
    use super::*;

    #[test]
    fn index_has_its_published_ends() {
        assert_eq!(jain(&[]), None);
        assert_eq!(jain(&[0.0, 0.0]), None);
        assert_eq!(jain(&[3.0; 7]), Some(1.0));
        assert_eq!(jain(&[5.0, 0.0, 0.0, 0.0]), Some(0.25));
    }
}
