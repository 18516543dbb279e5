//! The findings in sentences, for text and HTML.

use linerate_document::frame::capitalized;
use linerate_model::numbers::clock;
use linerate_model::sweep::{
    Degradation, FactorResult, Leader, Objective, PlateauSide, Reason, ReasonName, Recommendation,
    Sweep,
};
use linerate_model::words::joined;

use super::values;

/// The answer with its qualification, in one sentence.
pub(crate) fn verdict(sweep: &Sweep) -> String {
    let short = sweep.answer.leader().and_then(|_| too_short(sweep));
    let headline = headline(sweep);
    short.map_or_else(|| headline.clone(), |short| format!("{headline}; {short}"))
}

/// The answer in one sentence.
pub(super) fn headline(sweep: &Sweep) -> String {
    match &sweep.answer {
        Recommendation::Use { leader, interval } => format!(
            "Use {}{}: {} ({}, {:.0} % confidence){}{}",
            setting(sweep, leader),
            default_words(sweep),
            measured(sweep, leader),
            values::interval(sweep.plan.objective, *interval),
            sweep.plan.confidence * 100.0,
            cost(sweep, leader),
            ties(sweep)
        ),
        Recommendation::Unmet { reason } => capitalized(reason),
        Recommendation::Inconclusive { reason, leader } => {
            let ahead = leader.as_ref().map_or_else(String::new, |leader| {
                let setting = setting(sweep, leader);
                let measured = measured(sweep, leader);
                format!(
                    "; best so far: {setting}, {measured}{}",
                    cost(sweep, leader)
                )
            });
            format!("Inconclusive: {reason}{ahead}")
        }
    }
}

/// `received 38.2 Mbit/s`
fn measured(sweep: &Sweep, leader: &Leader) -> String {
    let objective = sweep.plan.objective;
    format!(
        "{} {}",
        values::title(objective),
        values::value(objective, leader.value)
    )
}

/// Cost of the setting on the path: `, round trip 6.0 ms, 0 retransmits`.
fn cost(sweep: &Sweep, leader: &Leader) -> String {
    let cost = values::cost(sweep.plan.objective, &leader.metrics);
    if cost.is_empty() {
        cost
    } else {
        format!(", {cost}")
    }
}

fn default_words(sweep: &Sweep) -> &'static str {
    let is_default =
        !sweep.factors.is_empty() && sweep.factors.iter().all(|factor| factor.is_default);
    if is_default { " (the default)" } else { "" }
}

/// Choices that are as good. Of amounts the part about the factor names them.
fn ties(sweep: &Sweep) -> String {
    let [factor] = sweep.factors.as_slice() else {
        return String::new();
    };
    let names: Vec<&str> = factor
        .ties
        .iter()
        .filter_map(|at| Some(factor.levels.get(*at)?.label.as_str()))
        .collect();
    match names.as_slice() {
        [] => String::new(),
        _ if factor.is_amount => String::new(),
        [one] => format!("; {one} ties with it"),
        [before @ .., last] => format!("; {} and {last} tie with it", before.join(", ")),
    }
}

/// Qualification of a value of runs that are too short for the queues of the path.
pub(super) fn too_short(sweep: &Sweep) -> Option<String> {
    let share = sweep
        .in_flight_share
        // Runs do not grow for less than this ratio, so a smaller excess is no remark.
        .filter(|share| *share > sweep.plan.tolerance * 1.2);
    share.map(|share| {
        let time_s = sweep.run_time_s.unwrap_or(sweep.plan.time_s);
        let enough_s = (f64::from(time_s) * share / sweep.plan.tolerance).ceil();
        format!(
            "runs of {time_s} s are short: {:.0} % of the data was in flight at their end, \
             --time {enough_s:.0} makes it {:.0} %",
            share * 100.0,
            sweep.plan.tolerance * 100.0
        )
    })
}

/// Levels with the names of their factors.
fn setting(sweep: &Sweep, leader: &Leader) -> String {
    let factors = sweep.plan.factors.iter();
    let levels = factors.filter_map(|factor| {
        Some((
            factor.name.as_str(),
            leader.setting.get(&factor.name)?.as_str(),
        ))
    });
    let words = levels.map(|level| match level {
        ("streams", "1") => "1 stream".to_owned(),
        ("streams", n) => format!("{n} streams"),
        (name @ ("window" | "length"), "auto") => format!("the system's {name}"),
        (name, level) => format!("{name} {level}"),
    });
    joined(words, ", ")
}

/// Qualifications of the answer: changes while it ran, early ends, missing metrics.
pub(super) fn remarks(sweep: &Sweep) -> Vec<String> {
    let mut remarks = Vec::new();
    if let Some(ratio) = sweep.drift_ratio {
        remarks.push(format!(
            "The path or a host changed during the sweep: late runs differ from early ones by \
             {:+.0} %. Repeat it when nothing else uses them",
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

    if let Some(time_s) = sweep.run_time_s {
        remarks.push(format!(
            "Runs took {time_s} s instead of {} s: shorter ones end with more than {:.0} % of \
             their data in flight",
            sweep.plan.time_s,
            sweep.plan.tolerance * 100.0
        ));
    }

    if matches!(sweep.answer, Recommendation::Inconclusive { .. })
        && sweep.ended_by.is_none()
        && !sweep.is_cut_short
    {
        remarks.push("Longer runs (--time) or more of them (--repetitions) may decide".to_owned());
    }

    if sweep.plan.objective == Objective::CpuPerByte && sweep.is_client_cpu_only {
        remarks.push(
            "The server does not report its CPU time: values count the client's alone".to_owned(),
        );
    }

    remarks
}

/// Findings about one factor.
pub(super) fn factor(sweep: &Sweep, factor: &FactorResult) -> Vec<String> {
    let mut lines = Vec::new();
    lines.extend(others(sweep, factor));
    let limit = limit(sweep, factor);
    lines.extend(limit.map(|limit| format!("limit at {limit}")));
    lines.extend(degradations(sweep, factor));

    if let Some(levels) = span(&factor.spared) {
        let were = if factor.spared.len() == 1 {
            "was"
        } else {
            "were"
        };
        lines.push(format!(
            "{levels} {were} not run: doubling twice gave no gain"
        ));
    }

    let failures = failures(factor).into_iter();
    lines.extend(failures.map(|failure| format!("every run failed at {failure}")));

    lines
}

/// Levels that are as good, with what they cost. Where the runs allow no answer they draw no
/// plateau either.
pub(super) fn others(sweep: &Sweep, factor: &FactorResult) -> Vec<String> {
    if !matches!(sweep.answer, Recommendation::Use { .. }) {
        return Vec::new();
    }

    comparison(sweep, factor)
        .into_iter()
        .chain(lighter(sweep, factor))
        .chain(excess(sweep, factor))
        .collect()
}

/// `4: the window of the receiver`: a level and its limit, where the runs allow an answer.
pub(super) fn limit(sweep: &Sweep, factor: &FactorResult) -> Option<String> {
    let is_known = matches!(sweep.answer, Recommendation::Use { .. }) && !factor.limits.is_empty();
    is_known.then(|| {
        format!(
            "{}: {}",
            label(factor, factor.limited),
            reasons(&factor.limits)
        )
    })
}

/// Where it is worse, and why.
pub(super) fn degradations(sweep: &Sweep, factor: &FactorResult) -> Vec<String> {
    factor
        .degradations
        .iter()
        .map(|fall| degradation(sweep, factor, fall))
        .collect()
}

/// `64: too many streams`: levels without any result, and the reason.
pub(super) fn failures(factor: &FactorResult) -> Vec<String> {
    let same = factor.failed.chunk_by(|one, next| one.error == next.error);
    same.map(|same| {
        let levels = joined(same.iter().map(|failed| &failed.level), ", ");
        format!("{levels}: {}", same[0].error)
    })
    .collect()
}

fn label(factor: &FactorResult, place: usize) -> &str {
    factor
        .levels
        .get(place)
        .map_or("?", |level| level.label.as_str())
}

/// `8 to 64` of several in order.
fn span(labels: &[String]) -> Option<String> {
    match labels {
        [] => None,
        [one] => Some(one.clone()),
        [first, .., last] => Some(format!("{first} to {last}")),
    }
}

/// Levels that are no better, with what they cost.
fn comparison(sweep: &Sweep, factor: &FactorResult) -> Option<String> {
    let tolerance = sweep.plan.tolerance * 100.0;
    let advised = label(factor, factor.advised);

    let labels = |places: &[usize]| {
        places
            .iter()
            .map(|at| label(factor, *at).to_owned())
            .collect::<Vec<_>>()
    };
    let costs = |place: usize| {
        let metrics = &factor.levels.get(place)?.metrics;
        Some(values::cost(sweep.plan.objective, metrics)).filter(|cost| !cost.is_empty())
    };
    let compared = |place: usize| {
        let (there, here) = costs(place)
            .zip(costs(factor.advised))
            .filter(|(there, here)| there != here)?;
        Some(format!(
            "; at {}: {there}; at {advised}: {here}",
            label(factor, place)
        ))
    };

    let others: Vec<usize> = (0..factor.levels.len())
        .filter(|place| *place != factor.advised)
        .collect();
    let last_tie = factor.ties.iter().copied().max();
    let cost = last_tie.and_then(compared).unwrap_or_default();
    let none = format!(
        "up to {:.0} % counts as none",
        margin(sweep, factor) * 100.0
    );

    if factor.is_default {
        let tried = if factor.is_amount {
            span(&labels(&others))?
        } else {
            labels(&others).join(", ")
        };
        return Some(format!(
            "{tried}: no clear gain over {advised} ({none}){cost}"
        ));
    }

    if !factor.is_amount {
        return None;
    }

    let plateau: Vec<usize> = factor.plateau.clone().collect();
    Some(match plateau.as_slice() {
        [_] => {
            format!("plateau: {advised} alone; no other level is as good within {tolerance:.0} %")
        }
        _ => format!(
            "plateau: {}, without a clear difference ({none}){cost}",
            span(&labels(&plateau))?
        ),
    })
}

/// Difference between levels that counts as none: the tolerance, or of rates what was in flight at
/// the end of their runs.
fn margin(sweep: &Sweep, factor: &FactorResult) -> f64 {
    if !sweep.plan.objective.is_higher_better() {
        return sweep.plan.tolerance;
    }

    let compared = factor
        .plateau
        .clone()
        .chain([factor.advised])
        .chain(factor.ties.iter().copied());
    let in_flight = compared.filter_map(|place| factor.levels.get(place)?.metrics.in_flight_share);
    in_flight.fold(sweep.plan.tolerance, f64::max)
}

/// A level that is as good and loads the path less.
fn lighter(sweep: &Sweep, factor: &FactorResult) -> Option<String> {
    let metrics = |place: usize| {
        factor
            .levels
            .get(place)
            .map(|level| values::cost(sweep.plan.objective, &level.metrics))
    };
    let place = factor.lighter?;
    let there = metrics(place)?;
    let here = metrics(factor.advised)?;

    Some(format!(
        "{} is as good and loads the path less: {there} instead of {here}",
        label(factor, place)
    ))
}

/// Doubt that the differences between runs leave.
fn excess(sweep: &Sweep, factor: &FactorResult) -> Option<String> {
    let excess = factor
        .excess_max
        // Runs cannot decide between levels whose difference is the tolerance itself.
        .filter(|excess| *excess > 2.0 * sweep.plan.tolerance)?;
    let percent = excess * 100.0;
    Some(format!(
        "runs at one level differ: that another level is up to {percent:.0} % better is not \
         excluded"
    ))
}

fn degradation(sweep: &Sweep, factor: &FactorResult, fall: &Degradation) -> String {
    let worst = factor
        .levels
        .get(fall.worst)
        .map_or(0.0, |level| level.median);
    let place = match fall.side {
        PlateauSide::Below => format!("below {}", label(factor, fall.edge)),
        PlateauSide::Above => format!("above {}", label(factor, fall.edge)),
        PlateauSide::Elsewhere => "everywhere else".to_owned(),
    };
    format!(
        "{place} it is worse, {} {} at {} ({:+.0} %){} {}",
        if fall.change_percent > 0.0 {
            "up to"
        } else {
            "down to"
        },
        values::value(sweep.plan.objective, worst),
        label(factor, fall.worst),
        fall.change_percent,
        if fall
            .reasons
            .iter()
            .any(|reason| reason.name == ReasonName::NotKnown)
        {
            "; the cause is"
        } else {
            ":"
        },
        reasons(&fall.reasons)
    )
}

fn reasons(reasons: &[Reason]) -> String {
    joined(reasons.iter().map(|reason| &reason.sentence), "; ")
}
