//! The time of a test cut into slices, each a scope of its own for the same rules.
//!
//! A slice takes the facts it lacks from the whole test: a rule about the rate over time, or about
//! counters of a host that reported only their sum, has the same outcome in every slice.

use linerate_model::snapshot::{Snapshot, Value};

use crate::observed::Observed;
use crate::period::{Period, STEPS_MAX, TICKS_PER_SECOND};
use crate::timeline::{TestInterval, median};

/// One slice.
#[derive(Debug)]
pub(crate) struct Slice {
    pub seconds: f64,
    pub observed: Vec<Observed>,
}

/// A sample that is later than this part of its interval is discarded.
const LATE: f64 = 1.2;

/// Cuts observations into slices. `timelines` are the intervals of each run, in the order of the
/// runs. The samples of the first host set the grid; without any, the intervals do.
pub(crate) fn slices(observed: &[Observed], timelines: &[Vec<TestInterval>]) -> Vec<Slice> {
    let steps = observed
        .first()
        .and_then(|one| one.period.as_ref())
        .map_or(&[][..], Period::steps);
    if steps.is_empty() {
        let intervals = timelines.first().map_or(&[][..], Vec::as_slice);
        let spans = intervals
            .iter()
            .take(STEPS_MAX)
            .map(|interval| (interval.start_s, interval.end_s));
        return spans
            .map(|span| slice(observed, timelines, span, |_| None))
            .collect();
    }

    let lengths: Vec<f64> = steps.iter().map(|step| step.seconds).collect();
    let grid = median(&lengths).unwrap_or(f64::INFINITY);
    let mut from = 0.0;
    let mut slices = Vec::new();

    for (index, step) in steps.iter().enumerate() {
        let span = (from, from + step.seconds);
        from = span.1;

        if step.seconds <= LATE * grid {
            slices.push(slice(observed, timelines, span, |one: &Observed| {
                one.period.as_ref()?.steps().get(index).cloned()
            }));
        }
    }

    slices
}

fn slice(
    observed: &[Observed],
    timelines: &[Vec<TestInterval>],
    (from, to): (f64, f64),
    step: impl Fn(&Observed) -> Option<Period>,
) -> Slice {
    // Samples of the host and intervals of the test begin at different times.
    let middle = f64::midpoint(from, to);
    let observed = observed.iter().map(|one| {
        let mut part = one.clone();
        if let Some(period) = step(one) {
            threads(&mut part.snapshot, &period);
            part.period = Some(period);
        }

        for (run, timeline) in timelines.iter().enumerate() {
            let covers =
                |interval: &&TestInterval| interval.start_s <= middle && middle < interval.end_s;
            for (fact, value) in timeline
                .iter()
                .find(covers)
                .into_iter()
                .flat_map(|interval| &interval.facts)
            {
                overlay(&mut part.snapshot, run, fact, value);
            }
        }

        part
    });
    Slice {
        seconds: to - from,
        observed: observed.collect(),
    }
}

/// Records what limited every run for most of the time, for the rules that explain it.
pub(crate) fn conclude(snapshot: &mut Snapshot, limit: &str) {
    for run in 0..crate::runs::count(snapshot) {
        overlay(snapshot, run, "limit", &limit.into());
    }
}

fn overlay(snapshot: &mut Snapshot, run: usize, fact: &str, value: &Value) {
    const SRC: &str = "interval";
    if snapshot.value(&format!("run.{run}.tool")).is_some() {
        snapshot.set(format!("run.{run}.{fact}"), value.clone(), SRC);
    }
}

/// Run time of the busiest thread of this end in one slice, and the time that the thread which
/// waited most waited for a CPU.
fn threads(snapshot: &mut Snapshot, step: &Period) {
    let most = |suffix: &str| {
        let of_threads = |key: &str| key.starts_with("self.thread.") && key.ends_with(suffix);
        step.deltas()
            .filter_map(|(key, delta)| of_threads(key).then_some(delta.value))
            .max()
    };
    // Ticks last 10 ms, so that the quotient can exceed 1.
    let share = |seconds: f64| (seconds / step.seconds).min(1.0);
    let shares = [
        (
            "cpu",
            most(".ticks").map(|ticks| share(crate::arithmetic::to_f64(ticks) / TICKS_PER_SECOND)),
        ),
        (
            "wait",
            most(".wait_ns").map(|ns| share(crate::arithmetic::to_f64(ns) / 1e9)),
        ),
    ];

    for run in 0..crate::runs::count(snapshot) {
        let Some(part) = snapshot.text(&format!("run.{run}.end")).map(str::to_owned) else {
            continue;
        };
        for (name, value) in &shares {
            if let Some(value) = value {
                overlay(
                    snapshot,
                    run,
                    &format!("{part}_thread_{name}"),
                    &(*value).into(),
                );
            }
        }
    }
}
