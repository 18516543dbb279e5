//! Requirements of both hosts for a plan of the HTTP lab, checked before it runs.
//!
//! A check that fails names the cells it makes impossible; the others run. What would only change
//! the results warns.

mod cpu;
mod descriptors;
mod path;
mod ports;
mod protocol;
mod queues;
mod tables;

pub use descriptors::{descriptors_for, worker_processes};
pub use protocol::too_many_connections;

use std::net::IpAddr;

use linerate_model::finding::Severity;
use linerate_model::http::{CellKey, Check, CheckStatus, Environment, Ports, Side};
use serde::Deserialize;

use crate::ruling::{Match, NoMatch, Ruling, clear, matched, unknown};

/// Needs of a plan, and the two hosts.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Preflight {
    /// Cells of the plan.
    pub cells: Vec<CellKey>,
    /// Device the connections must take; absent for any.
    pub device: Option<String>,
    /// Local addresses of the connections, at least 1.
    pub sources: u32,
    /// Choice of local ports.
    pub ports: Ports,
    /// Connections opened per second; absent without a limit.
    pub ramp_per_s: Option<u32>,
    /// Requests at a time on each connection.
    pub streams: u32,
    /// HTTP/1.1 without TLS.
    pub is_plain_http1: bool,
    /// Threads of the generator; absent for one on each CPU.
    pub generator_threads: Option<u32>,
    /// The client's host.
    pub client: Environment,
    /// The server's host; absent without an agent there.
    pub server: Option<Environment>,
    /// Address of the server.
    pub server_address: Option<IpAddr>,
    /// Address of the client on the route there.
    pub client_address: Option<IpAddr>,
    /// Port of the server.
    pub port: u16,
    /// Addresses and ports of the server that connections are spread over.
    pub destinations: u32,
    /// Largest distance between the clocks of the hosts after they were compared, ns; absent when
    /// they could not be.
    pub clock_error_ns: Option<u64>,
}

impl Preflight {
    /// Applies all rules; those of the client come first.
    #[must_use]
    pub fn checks(&self) -> Vec<Check> {
        let mut checks = Vec::new();
        for (side, host) in self.hosts() {
            checks.extend(descriptors::checks(self, side, host));
            checks.extend(tables::checks(self, side, host));
            checks.extend(cpu::checks(side, host));
            checks.extend(path::link(side, host));
        }

        checks.extend(protocol::check(self));
        checks.extend(ports::checks(self));
        checks.extend(
            self.server
                .iter()
                .flat_map(|server| queues::checks(self, server)),
        );
        checks.extend(path::checks(self));
        checks.sort_by_key(|check| check.side);

        checks
    }

    fn hosts(&self) -> impl Iterator<Item = (Side, &Environment)> {
        let server = self.server.iter().map(|server| (Side::Server, server));
        std::iter::once((Side::Client, &self.client)).chain(server)
    }

    /// Most connections of any cell.
    fn connections(&self) -> u64 {
        self.largest(|key| u64::from(key.connections))
    }

    /// The largest need of any cell.
    fn largest(&self, need: impl Fn(&CellKey) -> u64) -> u64 {
        self.cells.iter().map(need).max().unwrap_or(0)
    }

    /// Names of the cells for which this holds.
    fn cells_where(&self, is_affected: impl Fn(&CellKey) -> bool) -> Vec<String> {
        let affected = self.cells.iter().filter(|key| is_affected(key));
        affected.map(CellKey::name).collect()
    }
}

/// Requirement of a host. The rule about it is ruled out where the host does, and ends as unknown
/// where a fact is missing.
struct Requirement<'a> {
    id: &'a str,
    side: Side,
    need: String,
}

impl<'a> Requirement<'a> {
    fn new(id: &'a str, side: Side, need: impl Into<String>) -> Self {
        let need = need.into();
        Self { id, side, need }
    }

    fn read<T>(&self, value: Option<T>) -> Result<T, NoMatch> {
        value.map_or_else(|| unknown(self.id, "could not be read"), Ok)
    }

    /// Matches when the host, which has `have`, does not provide what is needed:
    /// [`Severity::Blocker`] makes cells impossible, [`Severity::Medium`] may change results,
    /// [`Severity::Info`] is provided for. What changes that is added by `help`.
    fn ruling(
        &self,
        is_met: bool,
        severity: Severity,
        have: impl Into<String>,
        help: impl FnOnce(Match) -> Match,
    ) -> Ruling {
        let have = have.into();
        if is_met {
            return clear(have);
        }

        Ok(help(
            matched()
                .severity(severity)
                .because(self.id, have, &self.need),
        ))
    }

    fn check(self, rule: impl FnOnce(&Self) -> Ruling) -> Check {
        let ruling = rule(&self);
        let check = |status, have: String, found: Match| {
            let mut check = Check::new(self.id, self.side, status);
            check.have = have;
            check.need = self.need.clone();
            check.fix = found.remedy;
            check.undo = found.undo;
            check.advice = found.advice.unwrap_or_default();
            check.cells = found.subjects;

            check
        };

        match ruling {
            Err(NoMatch::Clear(have) | NoMatch::NotApplicable(_, have)) => {
                check(CheckStatus::Pass, have, Match::default())
            }
            Err(NoMatch::Unknown(unknown)) => {
                let reasons = unknown.missing.into_iter().map(|(_, why)| why);
                check(CheckStatus::Unknown, reasons.collect(), Match::default())
            }
            Ok(found) => {
                let status = match found.severity {
                    Some(Severity::Blocker) => CheckStatus::Fail,
                    Some(Severity::Info) => CheckStatus::Info,
                    _ => CheckStatus::Warn,
                };
                let have = found
                    .evidence
                    .iter()
                    .map(|evidence| evidence.value.as_str())
                    .collect();
                check(status, have, found)
            }
        }
    }
}

/// A requirement of the whole of these: a value of the host is at least the need.
fn at_least(id: &'static str, side: Side, need: u64) -> Requirement<'static> {
    Requirement::new(
        id,
        side,
        format!("at least {}", linerate_model::http::units::grouped(need)),
    )
}
