//! Rules 6 to 9: how many requests are in flight, and what becomes of them.

use linerate_model::http::units::{grouped, percent, rounded, time_name};
use linerate_model::http::{CellFacts, Flag, Mode, Network};

use super::condition::{Condition, at_least, less_than};
use super::ends::SERVER_CPUS;
use super::network;
use crate::rules::prelude::*;

/// Far below the best of a payload.
const FAR_BELOW: f64 = 0.9;
/// Connections are always busy when throughput times latency is this share of them.
const BUSY: f64 = 0.8;
/// A resource that is used less than this does not limit a cell.
const IDLE: f64 = 0.9;
/// Responses take as long as one alone up to this multiple of its time.
const AS_ALONE: f64 = 1.5;
/// An offered rate is met when this share of what was due was answered.
const MET: f64 = 0.999;

pub(super) fn queueing(facts: &CellFacts) -> Ruling {
    require(facts.position.is_queueing, "not past the knee")?;
    let advice = match facts.position.best_stable_connections {
        Some(best) => format!("lower the connections to {best}, which are as fast"),
        None => "lower the connections".to_owned(),
    };
    let text = "past the knee: no faster than with fewer connections, and slower to answer";

    Ok(matched().and(Condition::certain(text)).advice(advice))
}

pub(super) fn concurrency(facts: &CellFacts) -> Ruling {
    let position = &facts.position;
    let ok_per_s = facts.medians.ok_per_s;
    let of_best = ok_per_s
        .zip(position.best_larger_per_s)
        .map(|(ok, best)| ok / best);
    let what = "answers as a share of the best with more connections";
    let below = less_than(what, of_best, FAR_BELOW);
    // Little's law: answers per second times latency are the requests in flight.
    let in_flight = ok_per_s
        .zip(facts.medians.p50_ns)
        .map(|(ok, p50_ns)| ok * p50_ns as f64 / 1e9);
    let slots =
        f64::from(facts.key.connections.max(1)) * f64::from(facts.mode.map_or(1, Mode::streams));
    let what = "share of the connections that waited for an answer";
    let busy = at_least(what, in_flight.map(|in_flight| in_flight / slots), BUSY);
    let (Some(below), Some(busy)) = (below, busy) else {
        return clear("the connections are not too few");
    };

    let advice = match position.predicted_connections {
        Some(connections) => {
            format!(
                "more connections; Little's law predicts {} for the best",
                rounded(connections.ceil())
            )
        }
        None => "more connections".to_owned(),
    };
    Ok(matched()
        .and(below)
        .and(busy)
        .and(idle(facts)?)
        .advice(advice))
}

/// An offered rate that its connections cannot carry by arithmetic: each has one request at a time,
/// and a response takes as long as without load, so nothing else is full.
pub(super) fn too_few(facts: &CellFacts) -> Ruling {
    require(!is_met(facts), "the offered rate was met")?;
    let (Some(Mode::Open { rate_per_s, .. }), Some(service_ns), Some(alone_ns)) =
        (facts.mode, facts.service_ns, facts.alone_ns)
    else {
        return clear("no offered rate, or no response without load");
    };
    require(
        service_ns > 0.0 && service_ns <= AS_ALONE * alone_ns,
        "responses take longer under load",
    )?;
    require(
        !is_path_full(facts),
        "a CPU or a thread of the server or the link is full",
    )?;

    let connections = f64::from(facts.key.connections.max(1));
    let allowed_per_s = connections * 1e9 / service_ns;
    require(
        allowed_per_s < rate_per_s,
        "the connections are not too few",
    )?;

    let [allowed, offered] = [allowed_per_s, rate_per_s].map(rate_text);
    let each = time_name(service_ns);
    let text = format!(
        "{} connections allow {allowed} at {each} a response, of {offered} that were due; one \
         request alone took {}",
        grouped(u64::from(facts.key.connections)),
        time_name(alone_ns)
    );

    let needed = grouped((rate_per_s * service_ns / 1e9).ceil() as u64);
    let found = matched()
        .and(Condition::certain(text))
        .advice(format!("at least {needed} connections (-c {needed})"));
    let is_server_known = facts.server.as_ref().is_some_and(|server| {
        let shares = [server.cpu_busy, server.core_busy, server.thread_busy];
        shares.iter().all(Option::is_some)
    });

    // A server without an agent may be full without a measurement that shows it.
    Ok(found.cap_if(!is_server_known, Confidence::Low))
}

/// `2/s`, `12.5/s`, `50,000/s`
fn rate_text(per_s: f64) -> String {
    if per_s >= 100.0 {
        return format!("{}/s", grouped(per_s.round() as u64));
    }
    format!("{}/s", rounded((per_s * 10.0).round() / 10.0))
}

/// True if more requests in flight would only wait. A busy client does not slow responses that take
/// as long as one alone.
fn is_path_full(facts: &CellFacts) -> bool {
    let of_server = facts
        .server
        .iter()
        .flat_map(|server| [server.cpu_busy, server.core_busy, server.thread_busy]);
    of_server
        .chain([network::used_share(facts)])
        .flatten()
        .any(|used| used >= IDLE)
}

/// True if an offered rate was answered.
pub(super) fn is_met(facts: &CellFacts) -> bool {
    matches!(facts.mode, Some(Mode::Open { .. }))
        && facts.answered_share.is_some_and(|share| share >= MET)
}

pub(super) fn not_saturated(facts: &CellFacts) -> Ruling {
    let Some(Mode::Open { rate_per_s, .. }) = facts.mode else {
        return clear("no offered rate");
    };
    let share = facts
        .answered_share
        .filter(|_| is_met(facts))
        .or_clear("the offered rate was not met")?;
    let text = format!(
        "{} of what was due at {} requests per second was answered",
        percent(share),
        grouped(rate_per_s as u64)
    );

    let advice = match headroom(facts) {
        None => "no limit was hit at this rate".to_owned(),
        Some(used) if used < IDLE => format!(
            "no limit was hit at this rate; the fullest resource was used to {}",
            percent(used)
        ),
        // Other programs may use it.
        Some(used) => format!(
            "expect a limit near this rate: the fullest resource was used to {}",
            percent(used)
        ),
    };
    Ok(matched().and(Condition::certain(text)).advice(advice))
}

/// Throughput is flat though CPUs and link have room.
pub(super) fn internal(facts: &CellFacts) -> Ruling {
    let saturated = saturated(facts)?;
    let advice = "profile the server: locks, disk, other hosts it waits for, a rate limit, sleep";
    Ok(matched().and(saturated).and(idle(facts)?).advice(advice))
}

/// More load would not give more throughput.
fn saturated(facts: &CellFacts) -> Result<Condition, NoMatch> {
    let condition = if matches!(facts.mode, Some(Mode::Open { .. })) {
        let is_overload = facts.is_mostly(Flag::Overload)
            || facts.answered_share.is_some_and(|share| share < MET);
        is_overload.then(|| Condition::certain("the offered rate was not met"))
    } else if let Some(ok_per_s) = facts.medians.ok_per_s {
        match (
            facts.position.best_larger_per_s,
            facts.position.best_smaller_per_s,
        ) {
            (Some(larger), _) => at_least(
                "answers as a share of the best with more connections",
                Some(ok_per_s / larger),
                FAR_BELOW,
            ),
            // The largest number that was tried gives less than a ninth more than smaller ones.
            (None, Some(smaller)) => less_than(
                "answers as a multiple of the best with fewer connections",
                Some(ok_per_s / smaller),
                1.0 / FAR_BELOW,
            ),
            (None, None) => {
                let why = "is not known: one number of them was tried";
                return unknown("whether more connections give more", why);
            }
        }
    } else {
        None
    };
    condition.or_clear("more load gives more")
}

/// Nothing is used to 90 %.
fn idle(facts: &CellFacts) -> Result<Condition, NoMatch> {
    if facts
        .server
        .as_ref()
        .and_then(|server| server.cpu_busy)
        .is_none()
    {
        return unknown(SERVER_CPUS, "is not known");
    }

    let what = "the fullest of CPUs, threads and link";
    let condition =
        less_than(what, headroom(facts), IDLE).or_clear("a CPU, a thread or the link is full")?;
    let is_link_unknown =
        facts.network != Network::Loopback && network::used_share(facts).is_none();

    Ok(if is_link_unknown {
        Condition::unsure(format!("no CPU is full; {}", network::NOT_JUDGED))
    } else {
        condition
    })
}

/// The fullest of what is known: CPUs and threads of both endpoints, and the link.
fn headroom(facts: &CellFacts) -> Option<f64> {
    let ends = std::iter::once(&facts.client).chain(&facts.server);
    ends.flat_map(|end| [end.cpu_busy, end.core_busy, end.thread_busy])
        .chain([network::used_share(facts)])
        .flatten()
        .reduce(f64::max)
}
