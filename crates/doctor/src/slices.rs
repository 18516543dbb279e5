//! The time of a test cut into slices, each a world of its own for the same rules.
//!
//! What a slice does not know of itself it takes from the whole: a rule about the course of a test, or about counters of a
//! host that told only their sum, answers in every slice as it does for all of them.

use linerate_model::snapshot::{Snapshot, Value};

use crate::course::Moment;
use crate::judge::Observed;
use crate::window::{STEPS_MAX, Window};

/// One slice.
#[derive(Debug)]
pub(crate) struct Slice {
    pub(crate) seconds: f64,
    pub(crate) observed: Vec<Observed>,
}

/// A reading that came later than this part of its distance says nothing about its second.
const LATE: f64 = 1.2;
/// Ticks of processor time per second, the same for every Linux (`times(2)`).
const TICKS_PER_SECOND: f64 = 100.0;

/// Cuts what was observed. `courses` are the moments of each run, in the order of the runs; the first host's readings set
/// the grid, and without any the moments do.
pub(crate) fn slices(observed: &[Observed], courses: &[Vec<Moment>]) -> Vec<Slice> {
    let steps = observed
        .first()
        .and_then(|one| one.window.as_ref())
        .map_or(&[][..], Window::steps);
    if steps.is_empty() {
        let moments = courses.first().map_or(&[][..], Vec::as_slice);
        let spans = moments
            .iter()
            .take(STEPS_MAX)
            .map(|moment| (moment.start_s, moment.end_s));
        return spans.map(|span| slice(observed, courses, span, |_| None)).collect();
    }
    let grid = usual(steps);
    let mut from = 0.0;
    let mut slices = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        let span = (from, from + step.seconds);
        from = span.1;
        if step.seconds <= LATE * grid {
            slices.push(slice(observed, courses, span, |one: &Observed| {
                one.window.as_ref()?.steps().get(index).cloned()
            }));
        }
    }
    slices
}

/// The usual distance of two readings.
fn usual(steps: &[Window]) -> f64 {
    let mut lengths: Vec<f64> = steps.iter().map(|step| step.seconds).collect();
    lengths.sort_by(f64::total_cmp);
    lengths.get(lengths.len() / 2).copied().unwrap_or(f64::INFINITY)
}

fn slice(
    observed: &[Observed],
    courses: &[Vec<Moment>],
    (from, to): (f64, f64),
    step: impl Fn(&Observed) -> Option<Window>,
) -> Slice {
    let middle = f64::midpoint(from, to);
    let observed = observed.iter().map(|one| {
        let mut part = one.clone();
        if let Some(window) = step(one) {
            threads(&mut part.snapshot, &window);
            part.window = Some(window);
        }
        for (run, course) in courses.iter().enumerate() {
            let covers = |moment: &&Moment| moment.start_s <= middle && middle < moment.end_s;
            for (fact, value) in course.iter().find(covers).into_iter().flat_map(|moment| &moment.facts) {
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

fn overlay(snapshot: &mut Snapshot, run: usize, fact: &str, value: &Value) {
    const SRC: &str = "interval";
    if snapshot.value(&format!("run.{run}.tool")).is_some() {
        snapshot.set(format!("run.{run}.{fact}"), value.clone(), SRC);
    }
}

/// The busiest thread of this end in one slice.
fn threads(snapshot: &mut Snapshot, step: &Window) {
    let ticks = step.deltas().filter_map(|(key, delta)| {
        let is_ticks = key.starts_with("self.thread.") && key.ends_with(".ticks");
        is_ticks.then_some(delta.value)
    });
    let Some(most) = ticks.max() else { return };
    let share = (crate::scope::to_f64(most) / TICKS_PER_SECOND / step.seconds).min(1.0);
    for run in 0..crate::runs::count(snapshot) {
        let part = snapshot.text(&format!("run.{run}.end")).map(str::to_owned);
        if let Some(part) = part {
            overlay(snapshot, run, &format!("{part}_thread_cpu"), &share.into());
        }
    }
}
