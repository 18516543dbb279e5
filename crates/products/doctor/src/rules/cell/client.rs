//! Rule 1: the client's host was the limit.

use linerate_model::http::{CellFacts, ErrorClass, Flag, Side};

use super::attribution::CpuAttribution;
use super::condition::{Condition, any, at_least, happened, less_than};
use super::ends::fullness;
use super::{flow, network};
use crate::rules::prelude::*;
use crate::rules::remedies::{self, MORE_PORTS};

/// Descriptors are all in use from here on, as a share of the limit.
pub(super) const FDS_FULL: f64 = 0.98;
const CORE_FULL: f64 = 0.95;
const TOTAL_FULL: f64 = 0.9;
const SERVER_BUSY: f64 = 0.9;
const MORE_CLIENT: &str = "more --threads or --procs, more --src, or a second client host";

pub(super) fn limit(facts: &CellFacts) -> Ruling {
    // A wake-up that was late by a tenth of a latency of 7 us delayed nothing: all of 5,000
    // requests per second were answered.
    require(!flow::is_met(facts), "the offered rate was met")?;
    let mut found = Vec::new();

    let fds = at_least(
        "descriptors of the client as a share of its limit",
        fullness(facts.client.fds),
        FDS_FULL,
    );
    found.extend(fds.map(|condition| (condition, descriptors(facts))));
    found.extend(late(facts).map(|condition| (condition, sooner(facts))));

    if found.is_empty() {
        busy(facts)
    } else {
        any(found)
    }
}

/// Runs in which the generator sent late, unless other programs kept it from its CPU.
fn late(facts: &CellFacts) -> Option<Condition> {
    let what = "runs in which the generator itself sent late";
    let late = happened(
        what,
        Some(facts.flagged(Flag::GeneratorLate)).filter(|_| facts.is_mostly(Flag::GeneratorLate)),
    )?;
    let is_full = facts.client.core_busy.map(|busy| busy >= CORE_FULL);
    let attribution = || CpuAttribution::of_core(facts, Side::Client).ok();

    match is_full.and_then(|is_full| {
        if is_full {
            Some(attribution()?.are_others())
        } else {
            Some(false)
        }
    }) {
        Some(true) => None,
        Some(false) => Some(late),
        None => Some(Condition::unsure(format!(
            "{what}; whose work filled its CPU is not known"
        ))),
    }
}

/// Connections for which this host had no port, descriptor or memory.
pub(super) fn exhausted(facts: &CellFacts) -> Ruling {
    let remedies = [
        (
            ErrorClass::FdLimit,
            "connections for which there was no descriptor",
            descriptors(facts),
        ),
        (
            ErrorClass::AddrNotAvail,
            "connections for which there was no local port",
            format!("{MORE_PORTS}, or a wider net.ipv4.ip_local_port_range"),
        ),
        (
            ErrorClass::NoBuffers,
            "connections for which there was no socket memory",
            "fewer connections, or more net.ipv4.tcp_mem on the client".to_owned(),
        ),
    ];
    let remedies = remedies.into_iter();
    let found = remedies.filter_map(|(class, what, advice)| {
        Some((happened(what, Some(facts.errors.count(class)))?, advice))
    });

    any(found.collect())
}

fn descriptors(facts: &CellFacts) -> String {
    format!(
        "{}; or --procs auto",
        remedies::descriptors(u64::from(facts.key.connections).saturating_mul(2))
    )
}

/// Advice that makes a late generator send in time.
fn sooner(facts: &CellFacts) -> String {
    if facts.client.core_busy.is_some_and(|busy| busy < CORE_FULL) {
        return "the client's CPUs had time, so its host woke it late: the performance governor and \
                shallow idle states help, and no virtual machine does"
            .to_owned();
    }

    MORE_CLIENT.to_owned()
}

/// A CPU or a thread of the generator is full while the server has room and the link too.
fn busy(facts: &CellFacts) -> Ruling {
    let client = &facts.client;
    let of_thread = at_least(
        "busiest thread of the generator",
        client.thread_busy,
        CORE_FULL,
    );
    let is_own_thread = of_thread.is_some();
    let whole = client.cpu_busy.filter(|_| facts.is_one_host);
    let what = "busy share of all CPUs of the host of both ends";
    let full = [
        at_least("busiest CPU of the client", client.core_busy, CORE_FULL),
        of_thread,
        at_least(what, whole, TOTAL_FULL),
    ];
    let full = full
        .into_iter()
        .flatten()
        .map(|condition| (condition, MORE_CLIENT.to_owned()));
    let found = any(full.collect())?.and(server_has_room(facts)?);
    let found = network::has_room(facts, found, network::ROOM)?;
    let attribution = match client.core_busy {
        Some(busy) if busy >= CORE_FULL => CpuAttribution::of_core(facts, Side::Client),
        _ => CpuAttribution::of_host(facts, Side::Client),
    };
    if is_own_thread {
        return Ok(match attribution {
            Ok(attribution) => found.note(attribution.text()),
            Err(_) => found,
        });
    }

    // The server's rules judge two endpoints on one host.
    let not_generator = "the generator does not fill the CPUs of both ends";
    require(attribution.is_ok() || !facts.is_one_host, not_generator)?;
    let attribution = attribution?;
    require(
        !attribution.are_others(),
        "other programs fill the client's CPUs",
    )?;
    require(
        attribution.is_generator() || !facts.is_one_host,
        not_generator,
    )?;

    Ok(found.note(attribution.text()))
}

/// More of a server on the same CPUs cannot be known than that no thread of it is full.
fn server_has_room(facts: &CellFacts) -> Result<Condition, NoMatch> {
    let server = facts.server.as_ref();
    let (what, busy) = if facts.is_one_host {
        (
            "busiest thread of the server",
            server.and_then(|server| server.thread_busy),
        )
    } else {
        (
            "busiest CPU of the server",
            server.and_then(|server| server.core_busy),
        )
    };
    if busy.is_none() {
        return Ok(Condition::unsure(
            "how busy the server's CPUs were is not known",
        ));
    }

    less_than(what, busy, SERVER_BUSY).or_clear("the server is busy as well")
}
