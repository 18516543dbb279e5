//! Rules 4 to 6: CPUs full of other programs, and CPUs of the server.

use linerate_model::http::units::{percent, rounded};
use linerate_model::http::{CellFacts, EndpointFacts, Side};

use super::attribution::CpuAttribution;
use super::condition::{Condition, any, at_least, less_than};
use super::ends::{SERVER_CPUS, endpoint, name};
use super::{flow, network};
use crate::rules::prelude::*;

/// All CPUs together are busy from here on.
const TOTAL_FULL: f64 = 0.9;
/// One CPU or thread is busy from here on.
const CORE_FULL: f64 = 0.95;
/// From here on interrupts are what a CPU does.
const SOFTIRQ_MOST: f64 = 0.5;
/// Connections of the fullest thread over the mean, from which on they are spread badly.
const IMBALANCE: f64 = 1.5;

const BUSY: &str = "busy share of all CPUs of the server";

pub(super) fn total(facts: &CellFacts) -> Ruling {
    let (_, busy) = cpus(facts)?;
    let condition =
        at_least(BUSY, Some(busy), TOTAL_FULL).or_clear("the CPUs of the server have room")?;
    let advice = "a cheaper framework, sendfile for large bodies, or more CPUs";
    let found = network::has_room(
        facts,
        matched().and(condition).advice(advice),
        network::ROOM,
    )?;

    owned(facts, found, CpuAttribution::of_host(facts, Side::Server)?)
}

/// Programs outside the test fill the CPUs of an end, or one of them.
pub(super) fn others(facts: &CellFacts) -> Ruling {
    // A rate that was met has no limit to explain.
    require(!flow::is_met(facts), "the offered rate was met")?;
    // On one host both ends have the same CPUs.
    let sides: &[Side] = if facts.is_one_host {
        &[Side::Server]
    } else {
        &[Side::Server, Side::Client]
    };
    let found: Vec<_> = sides
        .iter()
        .filter_map(|side| full_of_others(facts, *side))
        .collect();

    network::has_room(facts, any(found)?, network::ROOM)
}

fn full_of_others(facts: &CellFacts, side: Side) -> Option<(Condition, String)> {
    let end = endpoint(facts, side).ok()?;
    // A thread that is never without work is limited by itself.
    let core_busy = end
        .core_busy
        .filter(|_| end.thread_busy.is_none_or(|thread| thread < CORE_FULL));
    let of_all = at_least("busy share of all CPUs", end.cpu_busy, TOTAL_FULL);
    let is_core = of_all.is_none();
    let condition = of_all.or_else(|| at_least("busiest CPU", core_busy, CORE_FULL))?;

    let attribution = if is_core {
        CpuAttribution::of_core(facts, side)
    } else {
        CpuAttribution::of_host(facts, side)
    };
    let attribution = attribution.ok().filter(CpuAttribution::are_others)?;
    // One full CPU can be that of the test's own thread, where the thread's share is not known.
    let is_sure = attribution.is_whole() && (end.thread_busy.is_some() || !is_core);

    let what = format!(
        "other programs on the {}'s host fill its CPUs: {}",
        name(side),
        attribution.text()
    );
    let condition = if is_sure {
        condition.stating(what)
    } else {
        Condition::unsure(what)
    };
    Some((condition, attribution.quit_others()))
}

/// Matches where it is the server's own work that fills the CPUs.
fn owned(facts: &CellFacts, found: Match, attribution: CpuAttribution) -> Ruling {
    require(!attribution.are_others(), "which is other programs' work")?;
    require(!attribution.is_generator(), "which is the client's limit")?;
    let found = found.note(attribution.text());

    Ok(if facts.is_one_host {
        found.also_advise("both ends share these CPUs: run the generator on another host")
    } else {
        found
    })
}

pub(super) fn core(facts: &CellFacts) -> Ruling {
    let (server, busy) = cpus(facts)?;
    if server.core_busy.is_none() && server.thread_busy.is_none() {
        return unknown("the server's single CPUs", "could not be read");
    }

    let core = server
        .core
        .map_or_else(String::new, |core| format!(" {core}"));
    let of_core = at_least(
        &format!("CPU{core} of the server"),
        server.core_busy,
        CORE_FULL,
    );

    let of_thread = at_least(
        "busiest thread of the server",
        server.thread_busy,
        CORE_FULL,
    );
    let is_own_thread = of_thread.is_some();
    let full = [of_core, of_thread].into_iter().flatten();
    let found = any(full
        .map(|condition| (condition, advice(server, &core)))
        .collect())?;
    let rest =
        less_than(BUSY, Some(busy), TOTAL_FULL).or_clear("all CPUs of the server are busy")?;
    let found = found.and(rest);

    match CpuAttribution::of_core(facts, Side::Server) {
        // A thread that is never without work is the server's, whatever else runs.
        Ok(attribution) if is_own_thread => Ok(found.note(attribution.text())),
        Err(_) if is_own_thread => Ok(found),
        attribution => owned(facts, found, attribution?),
    }
}

/// The server's endpoint and how busy all its CPUs were.
fn cpus(facts: &CellFacts) -> Result<(&EndpointFacts, f64), NoMatch> {
    let server = endpoint(facts, Side::Server)?;
    match server.cpu_busy {
        Some(busy) => Ok((server, busy)),
        None => unknown(SERVER_CPUS, "could not be read"),
    }
}

fn advice(server: &EndpointFacts, core: &str) -> String {
    if let Some(share) = server.core_softirq.filter(|share| *share >= SOFTIRQ_MOST) {
        return format!(
            "CPU{core} spends {} in interrupts: spread them over queues or CPUs (RSS, RPS, IRQ \
             affinity), see `linerate doctor`",
            percent(share)
        );
    }
    if server.threads == Some(1) {
        return "the server has one thread: give it more, with SO_REUSEPORT for each a listener"
            .to_owned();
    }

    match server.imbalance.filter(|imbalance| *imbalance > IMBALANCE) {
        Some(imbalance) => format!(
            "connections are spread unevenly over its threads (fullest to mean {}): rebalance \
             them, or use many more connections than threads",
            rounded(imbalance)
        ),
        None => "more threads of the server, or one listener for each (SO_REUSEPORT)".to_owned(),
    }
}
