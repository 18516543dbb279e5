//! Rule 2: a limit of the server's host or program.

use linerate_model::http::{ErrorClass, Side, VerdictClass};

use super::Facts;
use super::client::FDS_FULL;
use super::endpoint::{EndpointSummary, fullness};
use super::evidence::{Condition, Match, RuleResult, at_least, happened};
use crate::http::fixes;
use crate::http::units::percent;

/// Connections may be lost, or refused by the server, for this share of what ended.
const REFUSED_MAX: f64 = 0.001;
/// A table of connection tracking is full from here on: the last entries come and go.
const CONNTRACK_FULL: f64 = 0.99;
const LOST: [ErrorClass; 4] = [
    ErrorClass::ResetBeforeAnswer,
    ErrorClass::ResetMidAnswer,
    ErrorClass::ResetIdle,
    ErrorClass::Eof,
];

pub(super) fn limit(facts: &Facts<'_>) -> RuleResult {
    let mut found = refused(facts);
    if let Some(server) = &facts.server {
        found.extend(of_host(facts, server));
    }
    Match::any(VerdictClass::ServerLimit, found).map_or(RuleResult::NoMatch, RuleResult::Matched)
}

fn refused(facts: &Facts<'_>) -> Vec<(Condition, String)> {
    let kinds = [
        (
            &LOST[..],
            "reset or closed by the server",
            "look at its keep-alive limits, its crashes and its log",
        ),
        (
            &[ErrorClass::Status5xx][..],
            "answered with 5xx",
            "look at the server's limits and its log",
        ),
    ];
    kinds
        .into_iter()
        .filter_map(|(classes, what, advice)| {
            let share = facts.errors_share(classes);
            let text = format!("{} {what}, more than {}", percent(share), percent(REFUSED_MAX));
            (share > REFUSED_MAX).then(|| (Condition::certain(text), advice.to_owned()))
        })
        .collect()
}

fn of_host(facts: &Facts<'_>, server: &EndpointSummary) -> Vec<(Condition, String)> {
    let mut found = overflowed(server);
    let descriptors = at_least(
        "descriptors of the server as a share of its limit",
        fullness(server.fds),
        FDS_FULL,
    );
    found.extend(descriptors.map(|condition| {
        let fixes = fixes::descriptors(u64::from(facts.key.connections).saturating_mul(2));
        (condition, fixes::line(&fixes))
    }));
    let what = "connection tracking of the server as a share of its table";
    let conntrack = at_least(what, fullness(server.conntrack), CONNTRACK_FULL);
    found.extend(conntrack.map(|condition| (condition, fixes::line(&fixes::conntrack(Side::Server, facts.port)))));
    found
}

/// Counters of the kernel that stand still on a host with room.
fn overflowed(server: &EndpointSummary) -> Vec<(Condition, String)> {
    let queue = || format!("{}; or a slower --ramp", fixes::line(&fixes::accept_queue()));
    let memory = || "fewer connections, or more net.ipv4.tcp_mem on the server".to_owned();
    let grown = [
        (
            "ListenOverflows",
            server.grew(|counters| counters.listen_overflows),
            queue(),
        ),
        ("ListenDrops", server.grew(|counters| counters.listen_drops), queue()),
        (
            "TCPMemoryPressures",
            server.grew(|counters| counters.tcp_memory_pressures),
            memory(),
        ),
    ];
    grown
        .into_iter()
        .filter_map(|(name, growth, advice)| Some((happened(&format!("{name} at the server"), growth)?, advice)))
        .collect()
}
