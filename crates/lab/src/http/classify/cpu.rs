//! Rules 4 and 5: CPUs of the server.

use linerate_model::http::{Side, VerdictClass};

use super::attribution::{CpuAttribution, disturbed};
use super::endpoint::EndpointSummary;
use super::evidence::{Condition, Match, RuleResult, at_least, less_than};
use super::{Facts, network};
use crate::http::units::percent;

/// All CPUs together are busy from here on.
const TOTAL_FULL: f64 = 0.9;
/// One CPU or thread is busy from here on.
const CORE_FULL: f64 = 0.95;
/// From here on interrupts are what a CPU does.
const SOFTIRQ_MOST: f64 = 0.5;
/// What to do about two programs that take CPUs from each other.
const APART: &str = "both ends share these processors: run the generator on another host";
/// Connections of the fullest thread over the mean, from which on they are spread badly.
const IMBALANCE: f64 = 1.5;

pub(super) fn total(facts: &Facts<'_>) -> RuleResult {
    let busy = match cpus(facts) {
        Ok((_, busy)) => busy,
        Err(reason) => return RuleResult::Unknown(reason),
    };
    let Some(condition) = at_least("busy share of all processors of the server", Some(busy), TOTAL_FULL) else {
        return RuleResult::NoMatch;
    };
    let advice = "a cheaper framework, sendfile for large bodies, or more processors";
    let fit = Match::new(VerdictClass::CpuBoundTotal, advice).and(condition);
    let Some(fit) = network::has_room(facts, fit, network::ROOM) else {
        return RuleResult::NoMatch;
    };
    match CpuAttribution::of_host(facts, Side::Server) {
        Ok(attribution) => owned(facts, fit, &attribution),
        Err(reason) => RuleResult::Unknown(reason),
    }
}

/// The verdict, where it is the server's own work that fills the CPUs.
fn owned(facts: &Facts<'_>, fit: Match, attribution: &CpuAttribution) -> RuleResult {
    if attribution.are_others() {
        let (reason, advice) = disturbed(Side::Server, attribution);
        RuleResult::Masked { reason, advice }
    } else if attribution.is_generator() {
        // Which is the client's limit.
        RuleResult::NoMatch
    } else if facts.is_one_host {
        RuleResult::Matched(fit.noting(attribution.text()).advising(APART))
    } else {
        RuleResult::Matched(fit.noting(attribution.text()))
    }
}

pub(super) fn core(facts: &Facts<'_>) -> RuleResult {
    let (server, busy) = match cpus(facts) {
        Ok(found) => found,
        Err(reason) => return RuleResult::Unknown(reason),
    };
    if server.core_busy.is_none() && server.thread_busy.is_none() {
        return RuleResult::Unknown("the server's single processors could not be read".to_owned());
    }
    let core = server.core.map_or_else(String::new, |core| format!(" {core}"));
    let of_core = at_least(&format!("processor{core} of the server"), server.core_busy, CORE_FULL);
    let of_thread = at_least("busiest thread of the server", server.thread_busy, CORE_FULL);
    let is_own_thread = of_thread.is_some();
    let found: Vec<(Condition, String)> = [of_core, of_thread]
        .into_iter()
        .flatten()
        .map(|condition| (condition, advice(server, &core)))
        .collect();
    let rest = less_than("busy share of all processors of the server", Some(busy), TOTAL_FULL);
    let Some((fit, rest)) = Match::any(VerdictClass::CpuBoundCore, found).zip(rest) else {
        return RuleResult::NoMatch;
    };
    let fit = fit.and(rest);
    match CpuAttribution::of_core(facts, Side::Server) {
        // A thread that is never without work is the server's, whatever else runs.
        Ok(attribution) if is_own_thread => RuleResult::Matched(fit.noting(attribution.text())),
        Ok(attribution) => owned(facts, fit, &attribution),
        Err(_) if is_own_thread => RuleResult::Matched(fit),
        Err(reason) => RuleResult::Unknown(reason),
    }
}

/// The server's end and how busy all its CPUs were, or why that is not known.
fn cpus<'a>(facts: &'a Facts<'_>) -> Result<(&'a EndpointSummary, f64), String> {
    let server = facts
        .server
        .as_ref()
        .ok_or("how busy the server's processors were is not known: no agent there")?;
    let busy = server
        .cpu_busy
        .ok_or("how busy the server's processors were could not be read")?;
    Ok((server, busy))
}

fn advice(server: &EndpointSummary, core: &str) -> String {
    let softirq = server.core_softirq.filter(|share| *share >= SOFTIRQ_MOST);
    if let Some(share) = softirq {
        return format!(
            "processor{core} spends {} in interrupts: spread them over queues or processors (RSS, RPS, IRQ affinity), see `linerate doctor`",
            percent(share)
        );
    }
    if server.threads == Some(1) {
        return "the server has one thread: give it more, with SO_REUSEPORT for each a listener".to_owned();
    }
    match server.imbalance.filter(|imbalance| *imbalance > IMBALANCE) {
        Some(imbalance) => format!(
            "connections are spread unevenly over its threads (fullest to mean {}): rebalance them, or use many more connections than threads",
            crate::http::units::rounded(imbalance)
        ),
        None => "more threads of the server, or one listener for each (SO_REUSEPORT)".to_owned(),
    }
}
