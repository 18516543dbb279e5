//! All cells of a path as a table of sources and sinks.

use linerate_model::fleet::{CellFlag, EndEffect, HostEffect, HostId};

use super::matrix::{Entry, Matrix, Rate, RateUnit, exclusion};
use super::not_run;
use linerate_document::blocks::Block;
use linerate_document::heat::{HeatCell, HeatMap, HeatRow};
use linerate_document::number::{counted, general};
use linerate_document::table::{Cell, Table};
use linerate_model::numbers::{MISSING, change};

/// Longest host id that is the head of a column; longer ones have a number.
const HEAD_CHARS_MAX: usize = 6;
/// Excluded cells that are named.
const EXCLUDED_SHOWN: usize = 4;

/// The table, and the effects with their significance.
pub(super) fn blocks(matrix: &Matrix<'_>) -> Vec<Block> {
    let table = Table {
        title: title(matrix),
        notes: notes(matrix),
        ..table(matrix, "from \\ to")
    };
    let mut blocks = vec![Block::Table(table)];
    if matrix.effects.is_some() {
        blocks.push(Block::Table(effects(matrix)));
    }
    blocks
}

/// The rates as a picture: hosts by rack, cells of slow hosts and pairs framed.
pub(super) fn heat_map(matrix: &Matrix<'_>) -> HeatMap {
    let names = Names::of(matrix);
    let best = best(matrix);
    let is_slow = |source: &HostId, sink: &HostId| {
        let end = |host: &HostId, end: fn(&HostEffect) -> EndEffect| {
            matrix
                .host_effects
                .get(host)
                .is_some_and(|of| end(of).is_slow)
        };
        let pairs = matrix
            .effects
            .into_iter()
            .flat_map(|effects| &effects.pairs);
        end(source, |of| of.sends)
            || end(sink, |of| of.receives)
            || pairs
                .into_iter()
                .any(|pair| (&pair.source, &pair.sink) == (source, sink))
    };
    let cell = |source: &HostId, sink: &HostId| {
        let entry = matrix.entries.get(&(source, sink));
        let text = shown(matrix.unit, source == sink, entry);
        HeatCell {
            share: entry.and_then(|entry| heat(*entry, best)),
            title: format!("{source} → {sink}: {text}"),
            text,
            is_framed: source != sink && is_slow(source, sink),
        }
    };
    let hosts = matrix.hosts.iter().copied();
    let row = |(at, source): (usize, &HostId)| HeatRow {
        name: names.row(at, source),
        cells: hosts.clone().map(|sink| cell(source, sink)).collect(),
    };

    HeatMap {
        title: title(matrix),
        note: "rows send, columns receive; framed: slow".to_owned(),
        columns: (0..matrix.hosts.len()).map(|at| names.head(at)).collect(),
        rows: hosts.clone().enumerate().map(row).collect(),
        frames_best: false,
    }
}

/// The highest rate. Excluded ones are left out, so an impossible one does not dim all others.
fn best(matrix: &Matrix<'_>) -> f64 {
    let entries = matrix.entries.values();
    entries
        .filter_map(|entry| entry.measured())
        .map(|rate| rate.bps)
        .fold(0.0, f64::max)
}

/// A row for each source, without title and notes.
pub(super) fn table(matrix: &Matrix<'_>, corner: &str) -> Table {
    let names = Names::of(matrix);
    let rows: Vec<(usize, &HostId)> = matrix.hosts.iter().copied().enumerate().collect();

    let best = best(matrix);
    let cell = |(_, source): &(usize, &HostId), sink: usize| {
        let Some(sink) = matrix.hosts.get(sink).copied() else {
            return Cell::default();
        };
        let entry = matrix.entries.get(&(*source, sink));
        Cell::from(shown(matrix.unit, *source == sink, entry))
            .heated(entry.and_then(|entry| heat(*entry, best)))
    };
    let table = Table::of("", "", &rows)
        .text(corner, |(at, host)| names.row(*at, host))
        .numbers(0..rows.len(), |at| names.head(at), cell);
    // Without effects the columns would be empty.
    let table = match matrix.effects {
        None => table,
        Some(_) => {
            let end = |host: &HostId, end: fn(&HostEffect) -> EndEffect| {
                matrix.host_effects.get(host).map(|host| end(host))
            };
            table
                .number("sends", |(_, host)| effect(end(host, |host| host.sends)))
                .number("receives", |(_, host)| {
                    effect(end(host, |host| host.receives))
                })
        }
    };

    table.table()
}

pub(super) fn title(matrix: &Matrix<'_>) -> String {
    let name = matrix
        .name
        .as_ref()
        .map_or_else(String::new, |name| format!("{name}: "));
    format!("{name}{}", matrix.unit.title())
}

/// Heads of rows and columns.
struct Names<'a> {
    hosts: &'a [&'a HostId],
    racks: Vec<&'a str>,
    is_numbered: bool,
}

impl<'a> Names<'a> {
    fn of(matrix: &'a Matrix<'_>) -> Self {
        let racks = matrix
            .hosts
            .iter()
            .map(|host| matrix.racks.get(host).copied().unwrap_or_default())
            .collect();
        // One long name would widen its column, so all columns have numbers then.
        let is_numbered = matrix
            .hosts
            .iter()
            .any(|host| host.as_str().len() > HEAD_CHARS_MAX);
        Self {
            hosts: &matrix.hosts,
            racks,
            is_numbered,
        }
    }

    fn head(&self, at: usize) -> String {
        match self.hosts.get(at) {
            Some(host) if !self.is_numbered => host.to_string(),
            _ => (at + 1).to_string(),
        }
    }

    /// `r1  3 node-17.example`
    fn row(&self, at: usize, host: &HostId) -> String {
        let widest = self
            .racks
            .iter()
            .map(|rack| rack.chars().count())
            .max()
            .unwrap_or(0);
        let rack = self.racks.get(at).copied().unwrap_or_default();
        let rack = if widest > 0 {
            format!("{rack:<widest$}  ")
        } else {
            String::new()
        };

        let digits = self.hosts.len().to_string().len();
        let number = if self.is_numbered {
            format!("{:>digits$} ", at + 1)
        } else {
            String::new()
        };
        format!("{rack}{number}{host}")
    }
}

/// `95`, `.` of a host with itself, `//` of a cell without a result, nothing where none was
/// planned.
pub(super) fn shown(unit: RateUnit, is_own: bool, entry: Option<&Entry>) -> String {
    match entry {
        None if is_own => ".".to_owned(),
        None => String::new(),
        Some(Entry::NotRun) => "//".to_owned(),
        Some(Entry::Measured(rate)) => unit.text(*rate),
        Some(Entry::Excluded(rate)) => format!("{}!", unit.text(*rate)),
    }
}

/// Share of the nominal rate, else of the best one.
fn heat(entry: Entry, best: f64) -> Option<f64> {
    let Rate { bps, share } = entry.measured()?;
    // All rates may be 0: a share of the best one is then not finite.
    let share = share.unwrap_or(bps / best);
    share.is_finite().then(|| share.clamp(0.0, 1.0))
}

/// `ok`, `-90 %`, or that nothing decides it.
pub(super) fn effect(end: Option<EndEffect>) -> String {
    match end {
        Some(EndEffect {
            effect: Some(effect),
            is_slow: true,
            ..
        }) => change(effect),
        Some(
            EndEffect {
                effect: Some(_), ..
            }
            | EndEffect {
                is_cleared: true, ..
            },
        ) => "ok".to_owned(),
        _ => MISSING.to_owned(),
    }
}

pub(super) fn notes(matrix: &Matrix<'_>) -> Vec<String> {
    let mut notes = not_run::lines(&matrix.cells);
    let excluded: Vec<_> = matrix
        .cells
        .iter()
        .filter_map(|cell| Some((*cell, exclusion(cell)?)))
        .collect();
    let named = excluded.iter().take(EXCLUDED_SHOWN);
    notes.extend(named.map(|(cell, why)| {
        format!(
            "! in no statistic: {} to {}: {why}",
            cell.task.source, cell.task.sink
        )
    }));

    if excluded.len() > EXCLUDED_SHOWN {
        notes.push(format!(
            "! in no statistic: {}",
            counted(excluded.len() - EXCLUDED_SHOWN, "other cell")
        ));
    }

    notes.extend(flags(matrix));
    // A mesh has a cell for each ordered pair; a sample or a list of pairs has fewer.
    if matrix.entries.len() < matrix.hosts.len() * matrix.hosts.len().saturating_sub(1) {
        notes.push("empty: not planned".to_owned());
    }

    let is_open = |host: &&HostId| {
        let host = matrix.host_effects.get(host);
        host.is_none_or(|host| {
            [host.sends, host.receives]
                .iter()
                .any(|end| effect(Some(*end)) == MISSING)
        })
    };
    if matrix.effects.is_some() && matrix.hosts.iter().any(is_open) {
        notes.push(format!(
            "{MISSING}: no cell with a host of the reference rate decides it"
        ));
    }

    notes
}

/// `3 cells started late`
fn flags(matrix: &Matrix<'_>) -> impl Iterator<Item = String> {
    let words = [
        (CellFlag::LateStart, "started late"),
        (CellFlag::ClockStep, "with a step of a wall clock"),
        (CellFlag::NoClock, "whose clock is not known"),
        (CellFlag::CaughtUp, "ran in a catch-up round"),
    ];
    let count = |flag: CellFlag| {
        let measured = matrix.cells.iter().filter_map(|cell| cell.measurement());
        measured.filter(|of| of.flags.contains(&flag)).count()
    };
    let counts = words.map(|(flag, words)| (count(flag), words));

    counts
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, words)| format!("{} {words}", counted(count, "cell")))
}

fn effects(matrix: &Matrix<'_>) -> Table {
    let hosts: Vec<&HostEffect> = matrix
        .hosts
        .iter()
        .filter_map(|host| matrix.host_effects.get(host).copied())
        .collect();
    let end = |end: &EndEffect| match (end.effect, end.p) {
        (Some(effect), Some(p)) => {
            format!("{:+.1} % (p {})", effect * 100.0, general(p, 2))
        }
        (Some(effect), None) => format!("{:+.1} %", effect * 100.0),
        (None, _) => MISSING.to_owned(),
    };

    let scale = matrix
        .effects
        .map(|effects| format!("scale of the rest {:.1} %", effects.scale * 100.0));
    Table::of("", "Effects of hosts", &hosts)
        .text("host", |host| host.host.to_string())
        .number("sends", |host| end(&host.sends))
        .number("cells", |host| host.sends.cells.to_string())
        .number("receives", |host| end(&host.receives))
        .number("cells", |host| host.receives.cells.to_string())
        .notes(scale)
        .table()
}
