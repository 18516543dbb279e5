//! Rule 1: the client's host was the limit.

use linerate_model::http::{ErrorClass, Flag, VerdictClass};

use super::ends::fullness;
use super::evidence::{Condition, Finding, Fit, at_least, happened, less_than};
use super::{Facts, network};
use crate::http::fixes;

/// Descriptors are all in use from here on, as a share of the limit.
pub(super) const FDS_FULL: f64 = 0.98;
const CORE_FULL: f64 = 0.95;
const SERVER_BUSY: f64 = 0.9;

pub(super) fn limit(facts: &Facts<'_>) -> Finding {
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
        found.extend(late.map(|condition| (condition, more_client())));
    }
    if let Some(fit) = Fit::any(VerdictClass::ClientLimit, found) {
        return Finding::Fits(fit);
    }
    busy(facts).map_or(Finding::No, Finding::Fits)
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

fn more_client() -> String {
    "more --threads or --procs, more --src, or a second client host".to_owned()
}

/// A processor or a thread of the generator is full while the server has room and the link too.
fn busy(facts: &Facts<'_>) -> Option<Fit> {
    let full: Vec<(Condition, String)> = [
        at_least("busiest processor of the client", facts.client.core_busy, CORE_FULL),
        at_least("busiest thread of the generator", facts.client.thread_busy, CORE_FULL),
    ]
    .into_iter()
    .flatten()
    .map(|condition| (condition, more_client()))
    .collect();
    let server = match facts.server.as_ref().and_then(|server| server.core_busy) {
        None => Condition::unsure("how busy the server's processors were is not known"),
        busy => less_than("busiest processor of the server", busy, SERVER_BUSY)?,
    };
    let fit = Fit::any(VerdictClass::ClientLimit, full)?.and(server);
    network::has_room(facts, fit, network::ROOM)
}
