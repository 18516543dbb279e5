//! Result of a check of a fleet, before any load.

use std::collections::{BTreeMap, BTreeSet};

use linerate_model::fleet::HostId;

use super::ladder::link_rate;
use linerate_document::Style;
use linerate_document::blocks::{Block, Document};
use linerate_document::number::counted;
use linerate_document::short::SHORT_COLUMN;
use linerate_document::table::{Cell, Table};

/// A check.
#[derive(Debug)]
pub struct CheckReport {
    /// Carrier of the control connections: `ssh`.
    pub carrier: &'static str,
    /// Names of the paths under test.
    pub paths: Vec<String>,
    /// A row for each host and path.
    pub rows: Vec<CheckRow>,
    /// Next step before the run, where one is needed.
    pub next: Option<String>,
}

/// A host that was checked.
#[derive(Debug)]
pub struct CheckRow {
    /// Its id.
    pub host: HostId,
    /// State of the host: it can take part or not.
    pub state: CheckState,
    /// Version of the agent.
    pub version: Option<String>,
    /// Its clock against that of the coordinator, and the uncertainty, in ns.
    pub clock_ns: Option<(i64, u64)>,
    /// Address under test.
    pub address: Option<String>,
    /// Device of this address.
    pub device: Option<String>,
    /// Port of the tests.
    pub port: Option<u16>,
    /// Speed of the link in bit/s.
    pub link_bps: Option<f64>,
    /// Round-trip time to its partners in ns.
    pub rtt_ns: Option<u64>,
    /// Other findings.
    pub notes: Vec<String>,
}

/// State of a host: it can take part or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CheckState {
    /// It can.
    Ready,
    /// It answers, and something prevents its tests.
    Blocked,
    /// No control connection.
    Unreachable,
}

impl CheckState {
    /// The state as a word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Blocked => "blocked",
            Self::Unreachable => "unreachable",
        }
    }
}

/// Rows that are shown in any case; of more, those of hosts that are ready and without a note are
/// counted.
const ROWS_SHOWN: usize = 24;

/// Summary, a row for each host, and what to do next.
pub fn check_text(check: &CheckReport, style: Style) -> String {
    let mut rows: Vec<&CheckRow> = check.rows.iter().collect();
    if rows.len() > ROWS_SHOWN {
        rows.retain(|row| row.state != CheckState::Ready || !row.notes.is_empty());
    }
    let hidden = check.rows.len() - rows.len();
    let mut blocks = vec![Block::Title(summary(check))];
    if !rows.is_empty() {
        blocks.push(Block::Table(table(&rows)));
    }
    if hidden > 0 {
        let hidden = counted(hidden, "row");
        blocks.push(Block::List(vec![format!(
            "{hidden} more: ready, without a note"
        )]));
    }
    if let Some(next) = &check.next {
        blocks.push(Block::Space);
        blocks.push(Block::entry("Do", SHORT_COLUMN, next));
    }

    let name = "linerate fleet check";
    Document { name, blocks }.text(style)
}

/// `21 hosts: 19 ready, 1 blocked, 1 unreachable; control over ssh, tests over path phys`
fn summary(check: &CheckReport) -> String {
    // A host has a row for each path; its worst state counts once.
    let mut hosts: BTreeMap<&HostId, CheckState> = BTreeMap::new();
    for row in &check.rows {
        let state = hosts.entry(&row.host).or_insert(row.state);
        *state = row.state.max(*state);
    }

    let mut counts: BTreeMap<CheckState, usize> = BTreeMap::new();
    for state in hosts.values() {
        *counts.entry(*state).or_default() += 1;
    }
    let mut states = Vec::new();
    for (state, count) in counts {
        states.push(format!("{count} {}", state.name()));
    }

    let paths = match check.paths.len() {
        0 | 1 => "path",
        _ => "paths",
    };
    format!(
        "{}: {}; control over {}, tests over {paths} {}",
        counted(hosts.len(), "host"),
        states.join(", "),
        check.carrier,
        check.paths.join(", ")
    )
}

fn table(rows: &[&CheckRow]) -> Table {
    let absent = || "-".to_owned();
    let time = |ns: u64| linerate_document::number::time(ns as f64);
    let versions: BTreeSet<&String> = rows.iter().filter_map(|row| row.version.as_ref()).collect();
    let mut notes = Vec::new();
    for row in rows.iter().filter(|row| !row.notes.is_empty()) {
        notes.push(format!("{}: {}", row.host, row.notes.join("; ")));
    }

    let mut table = Table::of("", "", rows)
        .text("host", |row| row.host.to_string())
        .text("state", |row| {
            Cell::marked(row.state.name().to_owned(), row.state != CheckState::Ready)
        })
        .text("clock", |row| row.clock_ns.map_or_else(absent, clock))
        .text("test address", |row| address(row))
        .text("link", |row| row.link_bps.map_or_else(absent, link_rate))
        .text("rtt", |row| row.rtt_ns.map_or_else(absent, time));
    // Agents of one version are the usual case.
    if versions.len() > 1 {
        table = table.text("version", |row| row.version.clone().unwrap_or_else(absent));
    }

    table.notes(notes).table()
}

/// `10.0.0.1:5201 eth1`
fn address(row: &CheckRow) -> String {
    let mut text = match (&row.address, row.port) {
        (Some(address), Some(port)) if address.contains(':') => format!("[{address}]:{port}"),
        (Some(address), Some(port)) => format!("{address}:{port}"),
        (Some(address), None) => address.clone(),
        (None, _) => String::new(),
    };
    if let Some(device) = &row.device {
        text = format!("{text} {device}");
    }

    match text.trim_start() {
        "" => "-".to_owned(),
        text => text.to_owned(),
    }
}

/// `+12 us ±48`
fn clock((offset_ns, error_ns): (i64, u64)) -> String {
    let offset = offset_ns as f64;
    let error = error_ns as f64;
    if offset_ns.unsigned_abs().max(error_ns) < 10_000_000 {
        format!("{:+.0} us ±{:.0}", offset / 1e3, error / 1e3)
    } else {
        format!("{:+.1} ms ±{:.1}", offset / 1e6, error / 1e6)
    }
}
