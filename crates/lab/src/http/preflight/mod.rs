//! What both hosts must be able to do for a plan, looked at before it runs.
//!
//! A check that fails names the cells it makes impossible; the others run. What would only change the results warns.

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

use linerate_model::http::{CellKey, Check, CheckStatus, Environment, Side};

use super::cells::cell_name;
use super::plan::Plan;

/// What is known of the way between the hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Path {
    /// Address of the server.
    pub server: Option<IpAddr>,
    /// Address of the client on the route there.
    pub client: Option<IpAddr>,
    /// Port of the server.
    pub port: u16,
    /// Addresses and ports of the server that connections are spread over.
    pub destinations: u32,
    /// How far the clocks of the hosts may be apart after they were compared; absent when they could not be.
    pub clock_error_ns: Option<u64>,
    /// Connections the server could not queue while they were opened; absent before any were.
    pub ramp_overflows: Option<u64>,
}

/// A plan and the two hosts.
#[derive(Debug, Clone, Copy)]
pub struct Preflight<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// Its cells.
    pub cells: &'a [CellKey],
    /// The client's host.
    pub client: &'a Environment,
    /// The server's host; absent without an agent there.
    pub server: Option<&'a Environment>,
    /// The way between them.
    pub path: Path,
    /// Threads of the generator; absent for one on each CPU.
    pub generator_threads: Option<u32>,
}

impl Preflight<'_> {
    /// Looks at everything, the client first.
    #[must_use]
    pub fn checks(&self) -> Vec<Check> {
        let mut checks = Vec::new();
        for (side, host) in self.hosts() {
            checks.extend(descriptors::checks(self, side, host));
            checks.extend(tables::checks(self, side, host));
            checks.extend(cpu::checks(side, host));
            checks.extend(path::link(side, host));
        }
        checks.extend(protocol::checks(self));
        checks.extend(ports::checks(self));
        checks.extend(self.server.into_iter().flat_map(|server| queues::checks(self, server)));
        checks.extend(path::checks(self));
        checks.sort_by_key(|check| check.side);
        checks
    }

    fn hosts(&self) -> impl Iterator<Item = (Side, &Environment)> {
        let server = self.server.map(|server| (Side::Server, server));
        std::iter::once((Side::Client, self.client)).chain(server)
    }

    /// Most connections of any cell.
    fn connections(&self) -> u64 {
        self.cells
            .iter()
            .map(|key| u64::from(key.connections))
            .max()
            .unwrap_or(0)
    }

    /// Names of the cells for which this holds.
    fn cells_where(&self, is_affected: impl Fn(&CellKey) -> bool) -> Vec<String> {
        self.cells
            .iter()
            .filter(|key| is_affected(key))
            .map(cell_name)
            .collect()
    }
}

/// The cells that cannot be run, given what was looked at.
#[must_use]
pub fn blocked(checks: &[Check], cells: &[CellKey]) -> Vec<CellKey> {
    let failed: Vec<&Check> = checks
        .iter()
        .filter(|check| check.status == CheckStatus::Fail)
        .collect();
    let is_blocked = |key: &&CellKey| {
        let name = cell_name(key);
        failed
            .iter()
            .any(|check| check.cells.is_empty() || check.cells.contains(&name))
    };
    cells.iter().filter(is_blocked).copied().collect()
}

/// A check that passes.
fn passed(id: &str, side: Side, have: impl Into<String>, need: impl Into<String>) -> Check {
    Check {
        id: id.to_owned(),
        side,
        status: CheckStatus::Pass,
        have: have.into(),
        need: need.into(),
        fix: Vec::new(),
        cells: Vec::new(),
    }
}

/// A check whose figure is missing.
fn unknown(id: &str, side: Side, need: impl Into<String>) -> Check {
    Check {
        status: CheckStatus::Unknown,
        ..passed(id, side, "could not be read", need)
    }
}

/// The same check with another outcome.
fn not_passed(check: Check, status: CheckStatus, fix: Vec<String>) -> Check {
    Check { status, fix, ..check }
}

#[cfg(test)]
mod tests;
