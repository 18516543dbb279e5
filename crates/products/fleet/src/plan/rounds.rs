//! Tasks without a result into rounds.

use std::collections::{BTreeMap, BTreeSet};

use super::colour::{Resources, Unit, colour, resources};
use super::fleet_plan::FleetPlan;
use super::tournament::Draw;
use super::variants::order;
use fastrand::Rng;
use linerate_model::fleet::{FleetMode, HostId, PairDirection, Round, Task};

/// Rounds of these tasks, each task once. Tasks of hosts that are not alive are left out. The same
/// input gives the same rounds, so that a run which is resumed recomputes them from the tasks
/// without a result.
///
/// With several paths or variants, all repetitions of a pair run one after another in balanced
/// order; otherwise each repetition is a pass over all pairs.
pub fn rounds(tasks: &[Task], alive: &BTreeSet<HostId>, plan: &FleetPlan) -> Vec<Round> {
    // Hosts that left keep their places, so that the others meet in the rounds of the whole
    // tournament.
    let mut hosts = alive.clone();
    let mut treatments: BTreeSet<(&str, &str)> = BTreeSet::new();
    let mut runnable = Vec::new();
    for task in tasks {
        let source = &task.source;
        let sink = &task.sink;
        hosts.extend([source.clone(), sink.clone()]);
        if source != sink && alive.contains(source) && alive.contains(sink) {
            treatments.insert(treatment(task));
            runnable.push(task);
        }
    }

    let draw = Draw::new(&hosts, plan.seed);
    let treatments: Vec<(&str, &str)> = treatments.into_iter().collect();
    let mut rng = Rng::with_seed(plan.seed);
    let mut rounds = Vec::new();
    for pass in passes(runnable, treatments.len()) {
        let units = units(&pass, &draw, plan);
        for matching in matchings(&units, &draw, plan, &mut rng) {
            let matched: Vec<&Unit<'_>> = matching.into_iter().map(|unit| &units[unit]).collect();
            slots(&mut rounds, &matched, &treatments, plan.mode);
        }
    }

    rounds
}

fn treatment(task: &Task) -> (&str, &str) {
    (&task.path, &task.variant)
}

fn passes(tasks: Vec<&Task>, treatments: usize) -> Vec<Vec<&Task>> {
    let mut passes: BTreeMap<u32, Vec<&Task>> = BTreeMap::new();
    for task in tasks {
        // Treatments of a pair are compared with each other, so they follow each other closely in
        // time: all repetitions are one pass.
        let pass = match treatments {
            0 | 1 => task.repetition,
            _ => 0,
        };
        passes.entry(pass).or_default().push(task);
    }

    passes.into_values().collect()
}

/// Units that run at the same time.
fn matchings(units: &[Unit<'_>], draw: &Draw, plan: &FleetPlan, rng: &mut Rng) -> Vec<Vec<usize>> {
    let resources = || resources(units, draw.len(), plan);
    match plan.mode {
        FleetMode::Isolated => {
            let all = tournament(units, draw).into_iter().flatten();
            all.map(|unit| vec![unit]).collect()
        }
        FleetMode::RackSafe => rack_safe(tournament(units, draw), &resources(), rng),
        FleetMode::Rounds => shorter(tournament(units, draw), &resources(), rng),
        _ => at_once(units, &plan.targets()),
    }
}

/// All units in one round, but those of a target one after another.
fn at_once(units: &[Unit<'_>], targets: &BTreeSet<&HostId>) -> Vec<Vec<usize>> {
    let mut seen: BTreeMap<&HostId, usize> = BTreeMap::new();
    let mut rounds: BTreeMap<usize, Vec<usize>> = BTreeMap::new();

    for (unit, Unit { hosts: (a, b), .. }) in units.iter().enumerate() {
        let mut number = 0;
        // The first test of each target runs in round 0, the next ones later: a target has one at a
        // time.
        if let Some(target) = [*a, *b].into_iter().find(|host| targets.contains(host)) {
            let next = seen.entry(target).or_default();
            number = *next;
            *next += 1;
        }
        rounds.entry(number).or_default().push(unit);
    }

    rounds.into_values().collect()
}

/// The shortest of the rounds of the tournament, if the uplinks carry them, and greedy schedules.
/// Where racks have an even number of hosts, an odd number of crossing pairs leaves two hosts
/// without a partner, so that a smaller limit may be better.
fn rack_safe(tournament: Vec<Vec<usize>>, resources: &Resources, rng: &mut Rng) -> Vec<Vec<usize>> {
    let rounds_min = resources.rounds_min();
    let mut best = tournament;
    if !resources.allow(&best) {
        best = colour(resources, rng);
    }

    for limits in [resources, &resources.reduced()] {
        if best.len() <= rounds_min {
            break;
        }

        let other = colour(limits, rng);
        if other.len() < best.len() {
            best = other;
        }
    }

    best
}

/// Steps of a greedy schedule that take a second or so. Of more pairs, the rounds of the tournament
/// are nearly full.
const GREEDY_STEPS_MAX: usize = 10_000_000;

/// The rounds of the tournament, or a greedy schedule where that has fewer.
fn shorter(tournament: Vec<Vec<usize>>, resources: &Resources, rng: &mut Rng) -> Vec<Vec<usize>> {
    let rounds_min = resources.rounds_min();
    // The product bounds the time of a greedy schedule, which tries each unit in each round.
    if tournament.len() <= rounds_min
        || rounds_min.saturating_mul(resources.uses.len()) > GREEDY_STEPS_MAX
    {
        return tournament;
    }

    let greedy = colour(resources, rng);
    if greedy.len() < tournament.len() {
        greedy
    } else {
        tournament
    }
}

/// Units by the rounds in which their hosts meet. The second direction of a pair, where it is a
/// unit of its own, follows in another round.
fn tournament(units: &[Unit<'_>], draw: &Draw) -> Vec<Vec<usize>> {
    let mut rounds: BTreeMap<(usize, usize), Vec<usize>> = BTreeMap::new();
    let mut seen: BTreeMap<(usize, usize), usize> = BTreeMap::new();

    for (unit, of) in units.iter().enumerate() {
        let (a, b) = of.positions;
        let direction = seen.entry((a.min(b), a.max(b))).or_default();
        // The two directions of a pair have the same round of the draw; the counter separates them.
        let round = (draw.round_of(a, b), *direction);
        rounds.entry(round).or_default().push(unit);
        *direction += 1;
    }

    rounds.into_values().collect()
}

/// The rounds of units that run at the same time: one per repetition and treatment.
fn slots(
    rounds: &mut Vec<Round>,
    units: &[&Unit<'_>],
    treatments: &[(&str, &str)],
    mode: FleetMode,
) {
    let all = || units.iter().flat_map(|unit| &unit.tasks);
    let repetitions: BTreeSet<u32> = all().map(|task| task.repetition).collect();
    for repetition in repetitions {
        for place in order(treatments.len(), repetition) {
            let mut tasks = Vec::new();
            for task in all() {
                if task.repetition == repetition && treatment(task) == treatments[place] {
                    tasks.push((*task).clone());
                }
            }
            if !tasks.is_empty() {
                rounds.push(Round::new(tasks, mode));
            }
        }
    }
}

/// Units of these tasks.
pub(super) fn units<'a>(tasks: &[&'a Task], draw: &Draw, plan: &FleetPlan) -> Vec<Unit<'a>> {
    let targets = plan.targets();
    let mut units: BTreeMap<(&HostId, &HostId), Unit<'a>> = BTreeMap::new();
    for task in tasks {
        let mut hosts = (&task.source, &task.sink);
        let has_target = targets.contains(hosts.0) || targets.contains(hosts.1);
        // A server without an agent has one test at a time, so its directions follow each other.
        let is_both = plan.direction == PairDirection::Both && !has_target;
        // Both directions of a pair have one key, so that they become one unit.
        if is_both && hosts.1 < hosts.0 {
            hosts = (hosts.1, hosts.0);
        }
        let Some(positions) = draw.position(hosts.0).zip(draw.position(hosts.1)) else {
            continue;
        };

        let unit = units.entry(hosts).or_insert_with(|| Unit {
            hosts,
            positions,
            tasks: Vec::new(),
        });
        unit.tasks.push(task);
    }

    units.into_values().collect()
}
