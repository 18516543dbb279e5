//! What held a cell back.
//!
//! The rules are evaluated in a fixed order. The first match is the verdict, later ones are contributing. When a rule
//! whose metrics are missing comes before the first match, the verdict is
//! [`VerdictClass::Unknown`], because it could have been that one.

mod attribution;
mod client;
mod cpu;
mod endpoint;
mod evidence;
mod flow;
mod network;
mod server;
mod validity;

use linerate_model::http::{
    CellKey, CellRun, CellVerdict, Confidence, ErrorClass, Flag, Judgement, LoadResult, Medians, Mode, VerdictClass,
};

use endpoint::EndpointSummary;
use evidence::{Match, RuleResult};

/// What is known of the link between the hosts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Network {
    /// None: both ends are one host.
    Loopback,
    /// A link of unknown speed.
    Unknown,
    /// A link of this speed.
    Link {
        /// Speed in bit/s.
        bps: f64,
        /// Bits of an answer on it, with everything around them; absent before the first answer was measured.
        bits_per_response: Option<f64>,
    },
}

/// Where a cell lies among those of its payload.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Position {
    /// Past the knee: no faster, and slower to answer.
    pub is_queueing: bool,
    /// Best throughput with more connections; absent where none were tried.
    pub best_larger_per_s: Option<f64>,
    /// Best throughput with fewer connections; absent where none were tried.
    pub best_smaller_per_s: Option<f64>,
    /// Connections that Little's law predicts for the best throughput.
    pub predicted_connections: Option<f64>,
    /// Fewest connections that are fast, steady and without failures.
    pub best_stable_connections: Option<u32>,
}

/// What the rules look at.
#[derive(Debug)]
pub struct Facts<'a> {
    key: CellKey,
    runs: Vec<&'a CellRun>,
    medians: &'a Medians,
    network: Network,
    /// Port of the server, for commands.
    port: u16,
    client: EndpointSummary,
    server: Option<EndpointSummary>,
    /// Both ends share their CPUs.
    is_one_host: bool,
}

impl<'a> Facts<'a> {
    /// Gathers the stats of a cell from its runs.
    #[must_use]
    pub fn of(key: CellKey, runs: &'a [CellRun], medians: &'a Medians, network: Network, port: u16) -> Self {
        let runs = super::medians::counted(runs);
        let has_agent = runs.iter().any(|run| run.server.is_some());
        Self {
            key,
            client: EndpointSummary::of(&runs, |run| Some(&run.client)),
            server: has_agent.then(|| EndpointSummary::of(&runs, |run| run.server.as_ref())),
            runs,
            medians,
            network,
            port,
            is_one_host: network == Network::Loopback,
        }
    }

    /// The same for ends that share their CPUs though a network lies between them: namespaces of one host.
    #[must_use]
    pub fn on_one_host(self, is_one_host: bool) -> Self {
        Self {
            is_one_host: self.is_one_host || is_one_host,
            ..self
        }
    }

    fn loads(&self) -> impl Iterator<Item = &LoadResult> {
        self.runs.iter().filter_map(|run| run.load.as_ref())
    }

    fn mode(&self) -> Option<Mode> {
        self.loads().next().map(|load| load.mode)
    }

    /// Requests at a time on each connection.
    fn streams(&self) -> u32 {
        self.loads().map(LoadResult::streams).next().unwrap_or(1)
    }

    fn errors(&self, class: ErrorClass) -> u64 {
        self.loads().map(|load| load.errors.count(class)).sum()
    }

    /// These failures as a share of all that ended.
    fn errors_share(&self, classes: &[ErrorClass]) -> f64 {
        let failed: u64 = classes.iter().map(|class| self.errors(*class)).sum();
        let ended: u64 = self
            .loads()
            .map(|load| load.ok.saturating_add(load.errors.total()))
            .sum();
        if ended == 0 { 0.0 } else { failed as f64 / ended as f64 }
    }

    /// Whether at least half of the runs have this flag, so that the middle one may.
    fn is_mostly(&self, flag: Flag) -> bool {
        let flagged = self.runs.iter().filter(|run| run.flags.contains(&flag)).count();
        flagged > 0 && 2 * flagged >= self.runs.len()
    }

    fn flagged(&self, flag: Flag) -> usize {
        self.runs.iter().filter(|run| run.flags.contains(&flag)).count()
    }
}

/// Validity of a cell, judged without its neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CellValidity {
    /// The runs are valid.
    pub is_valid: bool,
    /// One of the hosts was at a limit of its own.
    pub is_limited: bool,
}

/// Whether a cell may be compared with others.
#[must_use]
pub fn cell_validity(facts: &Facts<'_>) -> CellValidity {
    CellValidity {
        is_valid: validity::invalid(facts).matched().is_none(),
        is_limited: client::limit(facts).matched().is_some() || server::limit(facts).matched().is_some(),
    }
}

/// Says what held a cell back.
#[must_use]
pub fn classify(facts: &Facts<'_>, position: &Position) -> CellVerdict {
    let hosts = [validity::invalid(facts), client::limit(facts), server::limit(facts)];
    let is_limited = hosts.iter().any(|finding| finding.matched().is_some());
    let mut findings = Vec::from(hosts);
    findings.extend([
        network::bound(facts),
        network::loss(facts),
        cpu::total(facts),
        cpu::core(facts),
        if is_limited {
            RuleResult::NoMatch
        } else {
            flow::queueing(position)
        },
        flow::concurrency(facts, position),
    ]);
    let is_explained = findings.iter().any(|finding| finding.matched().is_some());
    if !is_explained {
        findings.extend([flow::not_saturated(facts), flow::internal(facts, position)]);
    }
    verdict(facts, findings)
}

fn verdict(facts: &Facts<'_>, findings: Vec<RuleResult>) -> CellVerdict {
    let (mut reasons, mut advice) = (Vec::new(), Vec::new());
    let mut fits: Vec<Match> = Vec::new();
    for finding in findings {
        match finding {
            RuleResult::Matched(fit) => fits.push(fit),
            RuleResult::Unknown(reason) if fits.is_empty() && !reasons.contains(&reason) => reasons.push(reason),
            RuleResult::Masked { reason, advice: way } if fits.is_empty() => {
                reasons.push(reason);
                advice.push(way);
            }
            RuleResult::Unknown(_) | RuleResult::Masked { .. } | RuleResult::NoMatch => {}
        }
    }
    let is_met = fits.first().is_some_and(|fit| fit.class == VerdictClass::NotSaturated);
    if fits.is_empty() || !(reasons.is_empty() || is_met) {
        fits.insert(0, unknown(facts, reasons, &advice));
    }
    let mut fits = fits.into_iter();
    let primary = fits.next().unwrap_or_else(|| unknown(facts, Vec::new(), &[]));
    let is_network_bound = primary.class == VerdictClass::NetworkBound;
    CellVerdict {
        confidence: if facts.is_mostly(Flag::Little) {
            Confidence::Low
        } else {
            primary.confidence()
        },
        primary: primary.judgement(),
        contributing: fits.map(|fit| contributing(fit, is_network_bound)).collect(),
    }
}

/// On a full link, more connections are no fault of the server: the advice is worded differently.
fn contributing(fit: Match, is_network_bound: bool) -> Judgement {
    let mut judgement = fit.judgement();
    if judgement.class == VerdictClass::QueueingBound && is_network_bound {
        judgement.advice = format!("extra connections only add latency: {}", judgement.advice);
    }
    judgement
}

fn unknown(facts: &Facts<'_>, mut reasons: Vec<String>, ways: &[String]) -> Match {
    let advice = if !ways.is_empty() {
        ways.join("; ")
    } else if facts.server.is_none() {
        "run `linerate http serve` there, or `linerate http agent` beside the server, to know its side".to_owned()
    } else {
        "try other numbers of connections, and look at the figures of both ends".to_owned()
    };
    if reasons.is_empty() {
        reasons.push("no rule fits the figures".to_owned());
    }
    let mut fit = Match::new(VerdictClass::Unknown, advice);
    for reason in reasons {
        fit.note(reason);
    }
    fit.unsure()
}

#[cfg(test)]
mod tests;
