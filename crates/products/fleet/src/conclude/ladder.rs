//! Findings from the steps of a ladder.

use std::collections::{BTreeMap, BTreeSet};

use linerate_model::finding::{Confidence, Finding};
pub use linerate_model::fleet::LadderRow;
use linerate_model::fleet::{Cell, HostId, LadderDirection, Measurement, Task};
use linerate_model::numbers::rate;

use super::fairness::jain;
use super::findings::{self, because, read};
use super::hash_collision::{self, QueueEstimate, occupied};
use super::interference::{self, Poisoning};
use crate::plan::ladder::Step;
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
            levels
                .entry((of_step(step), step.level))
                .or_default()
                .push(measured);
        }
    }

    levels
        .into_iter()
        .map(|((ladder, level), steps)| row(ladder, level, &steps))
        .collect()
}

fn of_step(step: &Step) -> Ladder<'_> {
    (step.direction, &step.path, &step.variant)
}

fn of_row(row: &LadderRow) -> Ladder<'_> {
    (row.direction, &row.path, &row.variant)
}

fn row((direction, path, variant): Ladder<'_>, level: usize, steps: &[Measured<'_>]) -> LadderRow {
    let all = || steps.iter().flatten();
    let mut of_host: BTreeMap<&HostId, Vec<f64>> = BTreeMap::new();
    all().for_each(|(host, of)| of_host.entry(host).or_default().push(of.goodput_bps));

    let middle = |(host, rates): (&HostId, Vec<f64>)| Some((host.clone(), median(&rates)?));
    let hosts_bps: Vec<(HostId, f64)> = of_host.into_iter().filter_map(middle).collect();
    let fairness: Vec<f64> = steps.iter().filter_map(|step| jain(&rates(step))).collect();
    let rtt: Vec<f64> = all()
        .filter_map(|(_, of)| of.rtt_us)
        .map(|rtt| rtt as f64)
        .collect();
    let sums = || steps.iter().map(|step| rates(step).iter().sum());
    // A step of one host has no sum that differs from the rate of that host.
    let is_alone = level < 2;
    LadderRow {
        direction,
        path: path.to_owned(),
        variant: variant.to_owned(),
        level,
        sums_bps: if is_alone {
            Vec::new()
        } else {
            sums().collect()
        },
        hosts_bps,
        // The index of a single flow is always 1.
        jain: median(&fairness).filter(|_| !is_alone),
        retransmits: all()
            .filter_map(|(_, of)| of.retransmits)
            .reduce(u64::saturating_add),
        rtt_us: median(&rtt).map(|rtt| rtt.round() as u64),
    }
}

fn rates(step: &[(&HostId, &Measurement)]) -> Vec<f64> {
    step.iter().map(|(_, of)| of.goodput_bps).collect()
}

/// Rates of the hosts of a row.
pub(crate) fn host_rates(row: &LadderRow) -> Vec<f64> {
    row.hosts_bps.iter().map(|(_, rate)| *rate).collect()
}

/// Usable measurements of a step with the host that is not the hub.
fn measured<'a>(step: &Step, cells: &'a Cells) -> Measured<'a> {
    let of_task = |task: &Task| {
        let cell = cells.get(task)?;
        let host = match step.direction {
            LadderDirection::Incast => &cell.task.source,
            LadderDirection::Fanout => &cell.task.sink,
        };
        Some((host, cell.usable()?))
    };
    step.tasks.iter().filter_map(of_task).collect()
}

/// Hosts that reach less than half of the median alone, by the direction in which they do.
pub fn suspects(rows: &[LadderRow]) -> BTreeSet<(LadderDirection, HostId)> {
    let of_row = |row: &LadderRow| {
        let rates = host_rates(row);
        let slow = interference::suspects(&rates).into_iter();
        let named = slow
            .filter_map(|at| row.hosts_bps.get(at))
            .map(|(host, _)| (row.direction, host.clone()));
        named.collect::<Vec<_>>()
    };
    rows.iter()
        // Alone a host is slow by itself; at higher levels others may be the cause.
        .filter(|row| row.level == 1)
        .flat_map(of_row)
        .collect()
}

/// Compares the steps of [`poison`](crate::plan::ladder::poison) of one suspect; `None`
/// without all of their cells.
pub fn poisoning(
    steps: &[Step],
    suspect: &HostId,
    cells: &Cells,
) -> Option<(Poisoning, Option<Finding>)> {
    let (mut with, mut without, mut own) = (Vec::new(), Vec::new(), Vec::new());
    for step in steps {
        let measured = measured(step, cells);
        // Sums of incomplete steps would show the missing host, not the effect of the suspect.
        if measured.len() < step.tasks.len() {
            return None;
        }

        let others: f64 = measured
            .iter()
            .filter(|(host, _)| *host != suspect)
            .map(|(_, of)| of.goodput_bps)
            .sum();
        let suspect = measured.iter().find(|(host, _)| *host == suspect);
        own.extend(suspect.map(|(_, of)| of.goodput_bps));

        if suspect.is_some() {
            with.push(others);
        } else {
            without.push(others);
        }
    }

    let found = interference::compare(&with, &without, &own)?;
    let finding = found.is_found().then(|| poison_finding(&found, suspect));
    Some((found, finding))
}

fn poison_finding(found: &Poisoning, suspect: &HostId) -> Finding {
    let next = format!(
        "on {suspect}: `linerate doctor --window 5s`; its link first, then flow control (PAU-04)"
    );
    let finding = findings::POISON.about(suspect.as_str(), Confidence::High, next);
    let threshold = format!("{} without it", rate(found.without_bps));

    let finding = read(
        finding,
        "sum of the others with it",
        rate(found.with_bps),
        threshold,
    );
    let threshold = format!(
        "expected change without it: {}",
        rate(found.gain_explained_bps)
    );
    read(
        finding,
        "gain of the others",
        rate(found.gain_bps),
        threshold,
    )
}

/// Largest index of an unfair sharing.
const JAIN_UNFAIR: f64 = 0.9;
/// Part of the median alone that every host reaches, for the sharing to be the cause.
const ALONE_MIN: f64 = 0.9;

/// Findings from the rows of the ladders of a hub: sharing and queues.
pub fn findings(hub: &HostId, rows: &[LadderRow]) -> Vec<Finding> {
    let mut found = Vec::new();
    for ladder in rows.iter().map(of_row).collect::<BTreeSet<_>>() {
        let of: Vec<&LadderRow> = rows.iter().filter(|row| of_row(row) == ladder).collect();
        let alone = of.iter().find(|row| row.level == 1);

        // The last level is that of all hosts, whose flows share the queues.
        let all = of
            .iter()
            .filter(|row| row.level > 1)
            .max_by_key(|row| row.level);
        if let Some((alone, all)) = alone.zip(all) {
            let shared = queues(all, alone).filter(QueueEstimate::has_collisions);
            // Flows that share a queue have less than others.
            let sharing = shared
                .map(|shared| shared_queues(hub, &shared))
                .or_else(|| unfair(hub, alone, all));
            found.extend(sharing);
        }
    }

    found
}

/// The cells of each host alone, one list for each ladder.
pub fn alone<'a>(steps: &[Step], cells: &'a Cells) -> Vec<Vec<&'a Cell>> {
    let mut ladders: BTreeMap<Ladder<'_>, Vec<&Cell>> = BTreeMap::new();
    for step in steps.iter().filter(|step| step.level == 1) {
        ladders
            .entry(of_step(step))
            .or_default()
            .extend(step.tasks.iter().filter_map(|task| cells.get(task)));
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
    let finding = read(
        finding,
        "index of Jain",
        format!("{index:.2}"),
        "1 is equal sharing, below 0.9 is unfair".to_owned(),
    );

    let together = |(host, rate_bps): &(HostId, f64)| format!("{host} {}", rate(*rate_bps));
    let mut sorted: Vec<&(HostId, f64)> = all.hosts_bps.iter().collect();
    sorted.sort_by(|(_, a), (_, b)| a.total_cmp(b));

    let ends = sorted
        .first()
        .zip(sorted.last())
        .map(|(low, high)| format!("from {} to {}", together(low), together(high)));
    Some(because(
        finding,
        ends.into_iter()
            .chain([format!("each alone about {}", rate(middle))]),
    ))
}

/// Estimate of the queues from the sums of a full step.
pub fn queues(all: &LadderRow, alone: &LadderRow) -> Option<QueueEstimate> {
    let rates = host_rates(alone);
    hash_collision::estimate(
        &all.sums_bps,
        median(&rates)?,
        u32::try_from(all.level).ok()?,
    )
}

fn shared_queues(hub: &HostId, estimate: &QueueEstimate) -> Finding {
    let next = format!(
        "on {hub}: `linerate doctor --window 5s` (CHN-02), and compare with its number of queues"
    );
    let finding = findings::QUEUES.about(hub.as_str(), Confidence::Medium, next);
    let multiples: Vec<String> = estimate.multiples.iter().map(u32::to_string).collect();
    let single = rate(estimate.single_bps);
    let sums = format!(
        "sums are {} times {single}, with {} flows",
        multiples.join(", "),
        estimate.flows
    );

    let range = match estimate.queues_max {
        Some(most) => format!("{} to {most}", estimate.queues_min),
        None => format!("{} or more", estimate.queues_min),
    };
    let queues = estimate.queues.map(|queues| {
        let expected = occupied(estimate.flows, queues);
        format!(
            "as with {queues} queues ({range}), of which {} flows use {expected:.1} on average",
            estimate.flows
        )
    });
    because(finding, std::iter::once(sums).chain(queues))
}

/// Least part of the line that the fast direction reaches, and most that the slow one does.
const FAST_MIN: f64 = 0.95;
const SLOW_MAX: f64 = 0.80;

/// Compares the full steps of both directions of a hub with the rate of its line in bit/s, for each
/// path and variant.
pub fn asymmetries(hub: &HostId, rows: &[LadderRow], line_bps: f64) -> Vec<Finding> {
    let mut sums: BTreeMap<(&str, &str), BTreeMap<LadderDirection, f64>> = BTreeMap::new();
    // Rows of a ladder are in the order of their levels, so that the last one is that of all hosts.
    for row in rows {
        if let Some(sum) = median(&row.sums_bps) {
            sums.entry((&row.path, &row.variant))
                .or_default()
                .insert(row.direction, sum);
        }
    }

    let of_both = |sums: BTreeMap<LadderDirection, f64>| {
        let [incast, fanout] =
            [LadderDirection::Incast, LadderDirection::Fanout].map(|way| sums.get(&way).copied());
        // Without both directions there is nothing to compare.
        asymmetry(hub, incast?, fanout?, line_bps)
    };
    sums.into_values().filter_map(of_both).collect()
}

/// Compares the sums of an incast and a fanout of the same hub, both in bit/s, with the rate of its
/// line.
pub fn asymmetry(hub: &HostId, incast_bps: f64, fanout_bps: f64, line_bps: f64) -> Option<Finding> {
    let (incast, fanout) = (incast_bps / line_bps, fanout_bps / line_bps);
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
