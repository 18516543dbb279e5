//! Rule 1: the client's host was the limit.

use linerate_model::http::{ErrorClass, Flag, Side, VerdictClass};

use super::attribution::{CpuAttribution, disturbed};
use super::endpoint::fullness;
use super::evidence::{Condition, Match, RuleResult, at_least, happened, less_than};
use super::{Facts, network};
use crate::http::fixes;

/// Descriptors are all in use from here on, as a share of the limit.
pub(super) const FDS_FULL: f64 = 0.98;
const CORE_FULL: f64 = 0.95;
const TOTAL_FULL: f64 = 0.9;
const SERVER_BUSY: f64 = 0.9;

pub(super) fn limit(facts: &Facts<'_>) -> RuleResult {
    let mut found = Vec::new();
    found.extend(failed(facts));
    let fds = at_least(
        "descriptors of the client as a share of its limit",
        fullness(facts.client.fds),
        FDS_FULL,
    );
    found.extend(fds.map(|condition| (condition, descriptors(facts))));
    if facts.is_mostly(Flag::GeneratorLate) {
        let late = happened(
            "runs in which the generator itself sent late",
            facts.flagged(Flag::GeneratorLate) as u64,
        );
        found.extend(late.map(|condition| (condition, sooner(facts))));
    }
    if let Some(fit) = Match::any(VerdictClass::ClientLimit, found) {
        return RuleResult::Matched(fit);
    }
    busy(facts)
}

fn failed(facts: &Facts<'_>) -> Vec<(Condition, String)> {
    let remedies = [
        (
            ErrorClass::FdLimit,
            "connections for which there was no descriptor",
            descriptors(facts),
        ),
        (
            ErrorClass::AddrNotAvail,
            "connections for which there was no local port",
            format!(
                "{}; or --src with further addresses",
                fixes::line(&fixes::local_ports("ADDRESS/PREFIX", "DEVICE"))
            ),
        ),
        (
            ErrorClass::NoBuffers,
            "connections for which there was no socket memory",
            "fewer connections, or more net.ipv4.tcp_mem on the client".to_owned(),
        ),
    ];
    remedies
        .into_iter()
        .filter_map(|(class, what, advice)| Some((happened(what, facts.errors(class))?, advice)))
        .collect()
}

fn descriptors(facts: &Facts<'_>) -> String {
    let fixes = fixes::descriptors(u64::from(facts.key.connections).saturating_mul(2));
    format!("{}; or --procs auto", fixes::line(&fixes))
}

/// What makes a late generator send in time.
fn sooner(facts: &Facts<'_>) -> String {
    if facts.client.core_busy.is_some_and(|busy| busy < CORE_FULL) {
        return "the client's processors had time, so its host woke it late: the performance governor and shallow idle \
                states help, and no virtual machine does"
            .to_owned();
    }
    match CpuAttribution::of_core(facts, Side::Client) {
        Ok(attribution) if attribution.are_others() => {
            let (reason, advice) = disturbed(Side::Client, &attribution);
            format!("{advice} ({reason})")
        }
        _ => more_client(),
    }
}

fn more_client() -> String {
    "more --threads or --procs, more --src, or a second client host".to_owned()
}

/// A CPU or a thread of the generator is full while the server has room and the link too.
fn busy(facts: &Facts<'_>) -> RuleResult {
    let of_thread = at_least("busiest thread of the generator", facts.client.thread_busy, CORE_FULL);
    let is_own_thread = of_thread.is_some();
    let whole = facts.client.cpu_busy.filter(|_| facts.is_one_host);
    let full: Vec<(Condition, String)> = [
        at_least("busiest processor of the client", facts.client.core_busy, CORE_FULL),
        of_thread,
        at_least(
            "busy share of all processors of the host of both ends",
            whole,
            TOTAL_FULL,
        ),
    ]
    .into_iter()
    .flatten()
    .map(|condition| (condition, more_client()))
    .collect();
    let fit = Match::any(VerdictClass::ClientLimit, full).zip(server_has_room(facts));
    let fit = fit.and_then(|(fit, server)| network::has_room(facts, fit.and(server), network::ROOM));
    let Some(fit) = fit else { return RuleResult::NoMatch };
    let attribution = match facts.client.core_busy {
        Some(busy) if busy >= CORE_FULL => CpuAttribution::of_core(facts, Side::Client),
        _ => CpuAttribution::of_host(facts, Side::Client),
    };
    match attribution {
        Ok(attribution) if is_own_thread => RuleResult::Matched(fit.noting(attribution.text())),
        Ok(attribution) if attribution.are_others() => {
            let (reason, advice) = disturbed(Side::Client, &attribution);
            RuleResult::Masked { reason, advice }
        }
        // The server's rules judge two endpoints on one host.
        Ok(attribution) if facts.is_one_host && !attribution.is_generator() => RuleResult::NoMatch,
        Ok(attribution) => RuleResult::Matched(fit.noting(attribution.text())),
        Err(_) if is_own_thread => RuleResult::Matched(fit),
        Err(_) if facts.is_one_host => RuleResult::NoMatch,
        Err(reason) => RuleResult::Unknown(reason),
    }
}

/// More of a server on the same CPUs cannot be known than that no thread of it is full.
fn server_has_room(facts: &Facts<'_>) -> Option<Condition> {
    let server = facts.server.as_ref();
    let (what, busy) = if facts.is_one_host {
        (
            "busiest thread of the server",
            server.and_then(|server| server.thread_busy),
        )
    } else {
        (
            "busiest processor of the server",
            server.and_then(|server| server.core_busy),
        )
    };
    match busy {
        None => Some(Condition::unsure("how busy the server's processors were is not known")),
        busy => less_than(what, busy, SERVER_BUSY),
    }
}
