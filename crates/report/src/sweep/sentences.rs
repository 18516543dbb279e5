//! The findings in sentences, for text and HTML.

use linerate_model::sweep::{Reason, ReasonName};

use super::values;
use crate::numbers::clock;
use linerate_lab::sweep::{Degradation, FactorResult, Leader, Objective, PlateauSide, Recommendation, Sweep};

/// The answer in one sentence.
pub(crate) fn verdict(sweep: &Sweep) -> String {
    match &sweep.answer {
        Recommendation::Use { leader, interval } => format!(
            "Use {}: {} {} ({}, {:.0} % confidence){}",
            setting(sweep, leader),
            values::title(sweep.plan.objective),
            values::value(sweep.plan.objective, leader.value),
            values::interval(sweep.plan.objective, *interval),
            sweep.plan.confidence * 100.0,
            too_short(sweep)
        ),
        Recommendation::Inconclusive { reason, leader } => {
            let ahead = leader.as_ref().map_or_else(String::new, |leader| {
                format!(
                    "; best so far: {}, {} {}{}",
                    setting(sweep, leader),
                    values::title(sweep.plan.objective),
                    values::value(sweep.plan.objective, leader.value),
                    too_short(sweep)
                )
            });
            format!("Inconclusive: {reason}{ahead}")
        }
        _ => "The sweep has an answer that this report does not know".to_owned(),
    }
}

/// What qualifies a value of runs that are too short for the queues of the path.
fn too_short(sweep: &Sweep) -> String {
    let share = sweep.in_flight_share.filter(|share| *share > sweep.plan.tolerance / 2.0);
    share.map_or_else(String::new, |share| {
        // A hundredth of the run.
        let enough_s = (f64::from(sweep.plan.time_s) * share * 100.0).ceil();
        format!(
            "; runs of {} s are too short: up to {:.0} % of the data was in flight at their end, --time {enough_s:.0} \
             makes it 1 %",
            sweep.plan.time_s,
            share * 100.0
        )
    })
}

/// Levels with the names of their factors.
fn setting(sweep: &Sweep, leader: &Leader) -> String {
    let factors = sweep.plan.factors.iter();
    let levels = factors.filter_map(|factor| Some((factor.name.as_str(), leader.setting.get(&factor.name)?.as_str())));
    let words: Vec<String> = levels
        .map(|level| match level {
            ("streams", "1") => "1 stream".to_owned(),
            ("streams", n) => format!("{n} streams"),
            (name @ ("window" | "length"), "auto") => format!("the system's {name}"),
            (name, level) => format!("{name} {level}"),
        })
        .collect();
    words.join(", ")
}

/// What qualifies the answer: changes while it ran, early ends, missing metrics.
pub(super) fn remarks(sweep: &Sweep) -> Vec<String> {
    let mut remarks = Vec::new();
    if let Some(ratio) = sweep.drift_ratio {
        remarks.push(format!(
            "The path or a host changed during the sweep: the last round differs from the first by {:+.0} %. Repeat it \
             when nothing else uses them",
            (ratio - 1.0) * 100.0
        ));
    }
    if let Some(reason) = &sweep.ended_by {
        remarks.push(format!("The sweep ended early: {reason}"));
    }
    if sweep.is_cut_short {
        remarks.push(format!(
            "The budget of {} ended before all planned runs; a longer --budget allows more",
            clock(sweep.plan.budget_ns as f64 / 1e9)
        ));
    }
    if matches!(sweep.answer, Recommendation::Inconclusive { .. }) && sweep.ended_by.is_none() && !sweep.is_cut_short {
        remarks.push("Longer runs (--time) or more of them (--repetitions) may decide".to_owned());
    }
    if sweep.plan.objective == Objective::CpuPerByte && sweep.is_client_cpu_only {
        remarks.push("The server does not report its CPU time: values count the client's alone".to_owned());
    }
    remarks
}

/// What was found about one factor.
pub(super) fn factor(sweep: &Sweep, factor: &FactorResult) -> Vec<String> {
    let mut lines = Vec::new();
    let label = |place: usize| factor.levels.get(place).map_or("?", |level| level.label.as_str());
    let (first, last) = (*factor.plateau.start(), *factor.plateau.end());
    let (advised, tolerance) = (label(factor.advised), sweep.plan.tolerance * 100.0);
    // Where the runs allow no answer they draw no plateau either.
    let is_sure = matches!(sweep.answer, Recommendation::Use { .. });
    if factor.is_amount && is_sure {
        // What the system chooses is listed before the ladder.
        let is_whole = factor.levels[..first].iter().all(|level| level.level == 0) && last + 1 == factor.levels.len();
        lines.push(match (first == last, is_whole) {
            (true, _) => format!("plateau: {} alone; no other level is as good within {tolerance:.0} %", label(first)),
            (false, true) => format!(
                "no level from {} to {} is better than {advised} by more than {tolerance:.0} %: {advised} is enough",
                label(first),
                label(last),
            ),
            (false, false) => format!(
                "plateau: {} to {}, without a clear difference (up to {tolerance:.0} % counts as none)",
                label(first),
                label(last)
            ),
        });
    }
    if !factor.limits.is_empty() && is_sure {
        lines.push(format!("limit at {}: {}", label(factor.limited), reasons(&factor.limits)));
    }
    for fall in &factor.degradations {
        lines.push(self::degradation(sweep, factor, fall));
    }
    for same in factor.failed.chunk_by(|one, next| one.error == next.error) {
        let levels: Vec<&str> = same.iter().map(|failed| failed.level.as_str()).collect();
        lines.push(format!("every run failed at {}: {}", levels.join(", "), same[0].error));
    }
    lines
}

fn degradation(sweep: &Sweep, factor: &FactorResult, fall: &Degradation) -> String {
    let label = |place: usize| factor.levels.get(place).map_or("?", |level| level.label.as_str());
    let worst = factor.levels.get(fall.worst).map_or(0.0, |level| level.median);
    let place = match fall.side {
        PlateauSide::Below => format!("below {}", label(fall.edge)),
        PlateauSide::Above => format!("above {}", label(fall.edge)),
        PlateauSide::Elsewhere => "everywhere else".to_owned(),
    };
    format!(
        "{place} it is worse, {} {} at {} ({:+.0} %){} {}",
        if fall.change_percent > 0.0 { "up to" } else { "down to" },
        values::value(sweep.plan.objective, worst),
        label(fall.worst),
        fall.change_percent,
        if fall.reasons.iter().any(|reason| reason.name == ReasonName::NotKnown) { "; the cause is" } else { ":" },
        reasons(&fall.reasons)
    )
}

fn reasons(reasons: &[Reason]) -> String {
    let words: Vec<&str> = reasons.iter().map(|reason| reason.sentence.as_str()).collect();
    words.join("; ")
}
