//! Limit of a cell of the HTTP lab.
//!
//! The rules are applied in a fixed order. The first match is the verdict, later ones contribute.
//! When a rule that comes before the first match lacks facts, the verdict is
//! [`VerdictClass::Unknown`], because it could have been that one.

mod attribution;
mod client;
mod condition;
mod cpu;
mod ends;
mod flow;
mod network;
mod server;
mod validity;

use linerate_model::http::{CellFacts, CellVerdict, Flag, Judgement, Network, VerdictClass};

use crate::rules::prelude::*;

/// A rule and the class of its verdict.
type CellRule = (VerdictClass, fn(&CellFacts) -> Ruling);

const RULES: [CellRule; 14] = [
    (VerdictClass::Invalid, validity::unusable),
    (VerdictClass::ClientLimit, client::exhausted),
    (VerdictClass::ServerLimit, server::refused_connections),
    (VerdictClass::Invalid, validity::disturbed),
    (VerdictClass::ClientLimit, client::limit),
    (VerdictClass::ServerLimit, server::limit),
    (VerdictClass::NetworkBound, network::bound),
    (VerdictClass::ConcurrencyLimited, flow::too_few),
    (VerdictClass::NetworkLoss, network::loss),
    (VerdictClass::OtherPrograms, cpu::others),
    (VerdictClass::CpuBoundTotal, cpu::total),
    (VerdictClass::CpuBoundCore, cpu::core),
    (VerdictClass::QueueingBound, flow::queueing),
    (VerdictClass::ConcurrencyLimited, flow::concurrency),
];

/// Applied only where none of the others matches.
const UNEXPLAINED: [CellRule; 2] = [
    (VerdictClass::NotSaturated, flow::not_saturated),
    (VerdictClass::ServerInternal, flow::internal),
];

/// Applies all rules to a cell.
pub fn cell_verdict(facts: &CellFacts) -> CellVerdict {
    let mut outcomes = Outcomes::default();
    outcomes.apply(&RULES, facts);

    if outcomes.matches.is_empty() {
        outcomes.apply(&UNEXPLAINED, facts);
    }
    outcomes.verdict(facts)
}

#[derive(Default)]
struct Outcomes {
    matches: Vec<(VerdictClass, Match)>,
    /// Rules before the first match that lack facts.
    unknown: Vec<Unknown>,
}

impl Outcomes {
    fn apply(&mut self, rules: &[CellRule], facts: &CellFacts) {
        for (class, rule) in rules {
            // Latency beyond the knee has its cause in the limit of the host.
            // So have halves that differ and connections that were not opened.
            let is_caused = matches!(class, VerdictClass::QueueingBound | VerdictClass::Invalid)
                && self.has_host_limit();
            if is_caused || self.matches.iter().any(|(matched, _)| matched == class) {
                continue;
            }

            // Later rules cannot change the verdict: what they lack is not reported.
            match rule(facts) {
                Ok(found) => self.matches.push((*class, found)),
                Err(NoMatch::Unknown(unknown))
                    if self.matches.is_empty() && !self.unknown.contains(&unknown) =>
                {
                    self.unknown.push(unknown);
                }
                Err(_) => {}
            }
        }
    }

    fn has_host_limit(&self) -> bool {
        self.matches
            .iter()
            .any(|(class, _)| *class <= VerdictClass::ServerLimit)
    }

    fn verdict(mut self, facts: &CellFacts) -> CellVerdict {
        // A rate that was met hit no limit, also where a rule before lacks facts.
        let is_met = self
            .matches
            .first()
            .is_some_and(|(class, _)| *class == VerdictClass::NotSaturated);
        if self.matches.is_empty() || !(self.unknown.is_empty() || is_met) {
            let unknown = undecided(facts, &self.unknown);
            self.matches.insert(0, (VerdictClass::Unknown, unknown));
        }

        let (primary, found) = self.matches.remove(0);
        // Measurements of an invalid run say nothing about its limits.
        self.matches.retain(|_| primary != VerdictClass::Invalid);

        // Where Little's law does not hold, connections were idle or answers were miscounted.
        let confidence = if facts.is_mostly(Flag::Little) {
            Confidence::Low
        } else {
            found.cap.unwrap_or(Confidence::High)
        };
        let rest = self.matches.into_iter();
        CellVerdict {
            contributing: rest
                .map(|(class, found)| contributing(class, found, primary))
                .collect(),
            ..CellVerdict::new(judgement(primary, found), confidence)
        }
    }
}

fn judgement(class: VerdictClass, found: Match) -> Judgement {
    Judgement {
        class,
        evidence: found.evidence,
        advice: found.advice.unwrap_or_default(),
    }
}

/// On a full link, more connections are no fault of the server: the advice is worded differently.
fn contributing(class: VerdictClass, found: Match, primary: VerdictClass) -> Judgement {
    let mut judgement = judgement(class, found);
    if (class, primary) == (VerdictClass::QueueingBound, VerdictClass::NetworkBound) {
        judgement.advice = format!("extra connections only add latency: {}", judgement.advice);
    }
    judgement
}

fn undecided(facts: &CellFacts, unknown: &[Unknown]) -> Match {
    let mut reasons: Vec<Evidence> = unknown
        .iter()
        .flat_map(|unknown| &unknown.missing)
        .map(|(fact, why)| Evidence::statement(format!("{fact} {why}")))
        .collect();
    if facts.network == Network::Unknown {
        reasons.push(Evidence::statement(network::NOT_JUDGED));
    }

    if reasons.is_empty() {
        reasons.push(Evidence::statement("no rule fits the values"));
    }

    let advice: Vec<&str> = unknown
        .iter()
        .filter_map(|unknown| unknown.advice.as_deref())
        .collect();
    let advice = if !advice.is_empty() {
        advice.join("; ")
    } else if facts.server.is_none() {
        "run `linerate http serve` there, or `linerate http agent` beside the server, to know its \
         side"
            .to_owned()
    } else {
        "try other numbers of connections, and compare the values of both ends".to_owned()
    };
    matched()
        .because_all(reasons)
        .advice(advice)
        .cap(Confidence::Low)
}
