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
    let mut table = table(matrix, "from \\ to");
    table.title = title(matrix);
    table.notes = notes(matrix);
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
    let mut rows = Vec::new();
    for (at, source) in matrix.hosts.iter().enumerate() {
        let mut cells = Vec::new();
        for sink in &matrix.hosts {
            let entry = matrix.entries.get(&(*source, *sink));
            let text = shown(matrix.unit, source == sink, entry);
            cells.push(HeatCell {
                share: entry.and_then(|entry| heat(*entry, best)),
                title: format!("{source} → {sink}: {text}"),
                text,
                is_framed: source != sink && is_slow(matrix, source, sink),
            });
        }
        rows.push(HeatRow {
            name: names.row(at, source),
            cells,
        });
    }

    HeatMap {
        title: title(matrix),
        note: "rows send, columns receive; framed: slow".to_owned(),
        columns: (0..matrix.hosts.len()).map(|at| names.head(at)).collect(),
        rows,
        frames_best: false,
    }
}

/// The source is slow to send, the sink to receive, or the pair is slow.
fn is_slow(matrix: &Matrix<'_>, source: &HostId, sink: &HostId) -> bool {
    let host = |id| matrix.host_effects.get(id);
    let pairs = matrix.effects.map_or(&[][..], |effects| &effects.pairs);
    host(source).is_some_and(|of| of.sends.is_slow)
        || host(sink).is_some_and(|of| of.receives.is_slow)
        || pairs
            .iter()
            .any(|pair| pair.source == *source && pair.sink == *sink)
}

/// The highest rate. Excluded ones are left out, so an impossible one does not dim all others.
fn best(matrix: &Matrix<'_>) -> f64 {
    let rates = matrix.entries.values().filter_map(|entry| entry.measured());
    rates.map(|rate| rate.bps).fold(0.0, f64::max)
}

/// A row for each source, without title and notes.
pub(super) fn table(matrix: &Matrix<'_>, corner: &str) -> Table {
    let names = Names::of(matrix);
    let best = best(matrix);
    let rows: Vec<(usize, &HostId)> = matrix.hosts.iter().copied().enumerate().collect();
    let cell = |(_, source): &(usize, &HostId), sink: usize| {
        let sink = matrix.hosts[sink];
        let entry = matrix.entries.get(&(*source, sink));
        Cell::from(shown(matrix.unit, *source == sink, entry))
            .heated(entry.and_then(|entry| heat(*entry, best)))
    };
    let table = Table::of("", "", &rows)
        .text(corner, |(at, host)| names.row(*at, host))
        .numbers(0..rows.len(), |at| names.head(at), cell);
    // Without effects the columns would be empty.
    if matrix.effects.is_none() {
        return table.table();
    }

    let of = |host: &HostId| matrix.host_effects.get(host);
    table
        .number("sends", |(_, host)| effect(of(host).map(|of| of.sends)))
        .number("receives", |(_, host)| {
            effect(of(host).map(|of| of.receives))
        })
        .table()
}

pub(super) fn title(matrix: &Matrix<'_>) -> String {
    let title = matrix.unit.title();
    match &matrix.name {
        Some(name) => format!("{name}: {title}"),
        None => title.to_owned(),
    }
}

/// Heads of rows and columns.
struct Names<'a> {
    hosts: &'a [&'a HostId],
    racks: Vec<&'a str>,
    is_numbered: bool,
}

impl<'a> Names<'a> {
    fn of(matrix: &'a Matrix<'_>) -> Self {
        let mut racks = Vec::new();
        // One long name would widen its column, so all columns have numbers then.
        let mut is_numbered = false;
        for host in &matrix.hosts {
            racks.push(matrix.racks.get(host).copied().unwrap_or_default());
            is_numbered |= host.as_str().len() > HEAD_CHARS_MAX;
        }

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
        let mut row = String::new();
        let widths = self.racks.iter().map(|rack| rack.chars().count());
        let widest = widths.max().unwrap_or(0);
        if widest > 0 {
            row += &format!("{:<widest$}  ", self.racks[at]);
        }

        let digits = self.hosts.len().to_string().len();
        if self.is_numbered {
            row += &format!("{:>digits$} ", at + 1);
        }
        row + host.as_str()
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
    let Some(end) = end else {
        return MISSING.to_owned();
    };
    match end.effect {
        Some(effect) if end.is_slow => change(effect),
        None if !end.is_cleared => MISSING.to_owned(),
        _ => "ok".to_owned(),
    }
}

pub(super) fn notes(matrix: &Matrix<'_>) -> Vec<String> {
    let mut notes = not_run::lines(&matrix.cells);
    let mut excluded = 0;
    for cell in &matrix.cells {
        let Some(why) = exclusion(cell) else { continue };
        excluded += 1;
        if excluded <= EXCLUDED_SHOWN {
            let source = &cell.task.source;
            let sink = &cell.task.sink;
            notes.push(format!("! in no statistic: {source} to {sink}: {why}"));
        }
    }
    if excluded > EXCLUDED_SHOWN {
        let others = counted(excluded - EXCLUDED_SHOWN, "other cell");
        notes.push(format!("! in no statistic: {others}"));
    }

    // `3 cells started late`
    for (flag, words) in [
        (CellFlag::LateStart, "started late"),
        (CellFlag::ClockStep, "with a step of a wall clock"),
        (CellFlag::NoClock, "whose clock is not known"),
        (CellFlag::CaughtUp, "ran in a catch-up round"),
    ] {
        let measured = matrix.cells.iter().filter_map(|cell| cell.measurement());
        let count = measured.filter(|of| of.flags.contains(&flag)).count();
        if count > 0 {
            notes.push(format!("{} {words}", counted(count, "cell")));
        }
    }

    // A mesh has a cell for each ordered pair; a sample or a list of pairs has fewer.
    let hosts = matrix.hosts.len();
    if matrix.entries.len() < hosts * hosts.saturating_sub(1) {
        notes.push("empty: not planned".to_owned());
    }

    let is_open = |host: &&HostId| {
        let host = matrix.host_effects.get(host);
        let ends = host.map(|host| [host.sends, host.receives]);
        ends.is_none_or(|ends| ends.iter().any(|end| effect(Some(*end)) == MISSING))
    };
    if matrix.effects.is_some() && matrix.hosts.iter().any(is_open) {
        notes.push(format!(
            "{MISSING}: no cell with a host of the reference rate decides it"
        ));
    }

    notes
}

fn effects(matrix: &Matrix<'_>) -> Table {
    let effects = matrix.hosts.iter();
    let hosts: Vec<&HostEffect> = effects
        .filter_map(|host| matrix.host_effects.get(host).copied())
        .collect();
    let end = |end: &EndEffect| {
        let Some(effect) = end.effect else {
            return MISSING.to_owned();
        };
        let p = end.p.map(|p| format!(" (p {})", general(p, 2)));
        format!("{:+.1} %{}", effect * 100.0, p.unwrap_or_default())
    };

    let scale = matrix.effects.map(|effects| effects.scale * 100.0);
    Table::of("", "Effects of hosts", &hosts)
        .text("host", |host| host.host.to_string())
        .number("sends", |host| end(&host.sends))
        .number("cells", |host| host.sends.cells.to_string())
        .number("receives", |host| end(&host.receives))
        .number("cells", |host| host.receives.cells.to_string())
        .notes(scale.map(|scale| format!("scale of the rest {scale:.1} %")))
        .table()
}
