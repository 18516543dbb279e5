//! Rules 6 to 9: how many requests are in flight, and what becomes of them.

use linerate_model::http::{Flag, Mode, VerdictClass};

use super::evidence::{Condition, Match, RuleResult, at_least, less_than};
use super::{Facts, Network, Position, network};
use crate::http::units::{grouped, percent, rounded};

/// Far below the best of a payload.
const FAR_BELOW: f64 = 0.9;
/// Connections are always busy when answers times latency are this share of them.
const BUSY: f64 = 0.8;
/// A resource that is used less than this is not what holds a cell back.
const IDLE: f64 = 0.9;
/// An offered rate is met when this share of what was due was answered.
const MET: f64 = 0.999;

pub(super) fn queueing(position: &Position) -> RuleResult {
    if !position.is_queueing {
        return RuleResult::NoMatch;
    }
    let advice = match position.best_stable_connections {
        Some(best) => format!("lower the connections to {best}, which are as fast"),
        None => "lower the connections".to_owned(),
    };
    let text = "past the knee: no faster than with fewer connections, and slower to answer";
    RuleResult::Matched(Match::new(VerdictClass::QueueingBound, advice).and(Condition::certain(text)))
}

pub(super) fn concurrency(facts: &Facts<'_>, position: &Position) -> RuleResult {
    let reached = facts.medians.ok_per_s.zip(position.best_larger_per_s);
    let below = reached.and_then(|(ok, best)| {
        less_than(
            "answers as a share of the best with more connections",
            Some(ok / best),
            FAR_BELOW,
        )
    });
    let in_flight = facts.medians.ok_per_s.zip(facts.medians.p50_ns);
    let busy = in_flight.and_then(|(ok, p50_ns)| {
        let places = f64::from(facts.key.connections.max(1)) * f64::from(facts.streams());
        let share = ok * p50_ns as f64 / 1e9 / places;
        at_least("share of the connections that waited for an answer", Some(share), BUSY)
    });
    let (Some(below), Some(busy)) = (below, busy) else {
        return RuleResult::NoMatch;
    };
    let rest = match idle(facts) {
        Ok(Some(rest)) => rest,
        Ok(None) => return RuleResult::NoMatch,
        Err(reason) => return RuleResult::Unknown(reason),
    };
    let advice = match position.predicted_connections {
        Some(connections) => format!(
            "more connections; Little's law predicts {} for the best",
            rounded(connections.ceil())
        ),
        None => "more connections".to_owned(),
    };
    RuleResult::Matched(
        Match::new(VerdictClass::ConcurrencyLimited, advice)
            .and(below)
            .and(busy)
            .and(rest),
    )
}

/// Evaluated only when no other rule matches.
pub(super) fn not_saturated(facts: &Facts<'_>) -> RuleResult {
    let Some(Mode::Open { rate_per_s, .. }) = facts.mode() else {
        return RuleResult::NoMatch;
    };
    let Some(share) = answered_share(facts).filter(|share| *share >= MET) else {
        return RuleResult::NoMatch;
    };
    let text = format!(
        "{} of what was due at {} requests per second was answered",
        percent(share),
        grouped(rate_per_s as u64)
    );
    let advice = headroom(facts).map_or_else(
        || "no limit was hit at this rate".to_owned(),
        |used| {
            format!(
                "no limit was hit at this rate; the fullest resource was used to {}",
                percent(used)
            )
        },
    );
    RuleResult::Matched(Match::new(VerdictClass::NotSaturated, advice).and(Condition::certain(text)))
}

/// Evaluated only when no other rule matches: throughput is flat though CPUs and link have room.
pub(super) fn internal(facts: &Facts<'_>, position: &Position) -> RuleResult {
    let saturated = match is_saturated(facts, position) {
        Ok(Some(condition)) => condition,
        Ok(None) => return RuleResult::NoMatch,
        Err(reason) => return RuleResult::Unknown(reason),
    };
    match idle(facts) {
        Ok(Some(rest)) => {
            let advice = "profile the server: locks, disk, other hosts it waits for, a rate limit, sleep";
            RuleResult::Matched(
                Match::new(VerdictClass::ServerInternal, advice)
                    .and(saturated)
                    .and(rest),
            )
        }
        Ok(None) => RuleResult::NoMatch,
        Err(reason) => RuleResult::Unknown(reason),
    }
}

/// Whether more load would not give more, and why.
fn is_saturated(facts: &Facts<'_>, position: &Position) -> Result<Option<Condition>, String> {
    if matches!(facts.mode(), Some(Mode::Open { .. })) {
        let is_overload = facts.is_mostly(Flag::Overload) || answered_share(facts).is_some_and(|share| share < MET);
        return Ok(is_overload.then(|| Condition::certain("the offered rate was not met")));
    }
    let Some(ok_per_s) = facts.medians.ok_per_s else {
        return Ok(None);
    };
    let share = |other: f64| ok_per_s / other;
    match (position.best_larger_per_s, position.best_smaller_per_s) {
        (Some(larger), _) => Ok(at_least(
            "answers as a share of the best with more connections",
            Some(share(larger)),
            FAR_BELOW,
        )),
        (None, Some(smaller)) => Ok(less_than(
            "answers as a multiple of the best with fewer connections",
            Some(share(smaller)),
            1.0 / FAR_BELOW,
        )),
        (None, None) => Err("whether more connections give more is not known: one number of them was tried".to_owned()),
    }
}

/// Nothing is used to 90 %: `None` where something is, an error where the server's use is not known.
fn idle(facts: &Facts<'_>) -> Result<Option<Condition>, String> {
    if facts.server.as_ref().and_then(|server| server.cpu_busy).is_none() {
        return Err("how busy the server's processors were is not known".to_owned());
    }
    let is_link_unknown = facts.network != Network::Loopback && network::used_share(facts).is_none();
    Ok(headroom(facts).and_then(|used| {
        let condition = less_than("the fullest of processors, threads and link", Some(used), IDLE)?;
        if is_link_unknown {
            return Some(Condition::unsure(
                "no processor is full; the share of the link in use is not known",
            ));
        }
        Some(condition)
    }))
}

/// The fullest of what is known: CPUs and threads of both ends, and the link.
fn headroom(facts: &Facts<'_>) -> Option<f64> {
    let ends = std::iter::once(&facts.client).chain(&facts.server);
    ends.flat_map(|end| [end.cpu_busy, end.core_busy, end.thread_busy])
        .chain([network::used_share(facts)])
        .flatten()
        .reduce(f64::max)
}

/// Answers as a share of the requests that were due.
fn answered_share(facts: &Facts<'_>) -> Option<f64> {
    let (ok, requests) = facts.loads().fold((0_u64, 0_u64), |(ok, requests), load| {
        (ok.saturating_add(load.ok), requests.saturating_add(load.requests))
    });
    (requests > 0).then(|| ok as f64 / requests as f64)
}
