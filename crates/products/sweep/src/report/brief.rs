//! The report that fits a terminal: the answer, the levels, why, and what to do.

use linerate_document::Glyphs;
use linerate_document::blocks::{Block, Document};
use linerate_document::number::{counted, known};
use linerate_document::short::SHORT_COLUMN;
use linerate_document::style::Style;
use linerate_document::table::{Cell, Table};
use linerate_model::numbers::MISSING;
use linerate_model::sweep::{FactorResult, Level, Objective, Sweep};
use linerate_model::words::joined;

use super::values::has_advice;
use super::{sentences, values};

/// Most lines.
const LINES_MAX: usize = 14;
/// Levels that are shown in any case.
const ROWS_MIN: usize = 4;
/// Longest bar.
const BAR_CHARS: usize = 20;

/// The report in at most [`LINES_MAX`] lines of 80 columns.
pub(super) fn text(sweep: &Sweep, style: Style) -> String {
    let levels: usize = match sweep.factors.as_slice() {
        [factor] => factor.levels.len(),
        several => several.len(),
    };
    let title = Block::Title(sentences::headline(sweep));
    let title = written(vec![title], style);
    let mut notes = notes(sweep);

    loop {
        let end = written(
            notes.clone().into_iter().chain(steps(sweep)).map(entry),
            style,
        );
        // Two empty lines, and the heads of the columns.
        let others = title.lines().count() + end.lines().count() + 3;
        let rows = LINES_MAX.saturating_sub(others);
        // Levels are the evidence; the last note is the least important one.
        if rows >= levels.min(ROWS_MIN) || notes.pop().is_none() {
            let table = table(sweep, rows, style.glyphs).map(Block::Table);
            return format!("{title}{}\n{end}", written(table, style));
        }
    }
}

fn written(blocks: impl IntoIterator<Item = Block>, style: Style) -> String {
    Document {
        name: "linerate sweep",
        blocks: blocks.into_iter().collect(),
    }
    .text(style)
}

fn entry((label, text): (&str, String)) -> Block {
    match label {
        DO => Block::verbatim(label, SHORT_COLUMN, text),
        _ => Block::entry(label, SHORT_COLUMN, text),
    }
}

const DO: &str = "Do";

/// Qualifications of the answer and its reasons, the most important first.
fn notes(sweep: &Sweep) -> Vec<(&'static str, String)> {
    let mut notes = Vec::new();
    let mut add = |label, texts: Vec<String>| {
        notes.extend(texts.into_iter().map(|text| (label, text)));
    };
    add("Note", sentences::remarks(sweep));
    add("Note", sentences::too_short(sweep).into_iter().collect());

    let factors = || sweep.factors.iter();
    let limits = factors().filter_map(|factor| sentences::limit(sweep, factor));
    add("Limit", limits.collect());
    let why = factors().flat_map(|factor| sentences::degradations(sweep, factor));
    add("Why", why.collect());
    let others = factors().flat_map(|factor| sentences::others(sweep, factor));
    add("Others", others.collect());
    add("Failed", factors().flat_map(sentences::failures).collect());

    notes
}

/// The command that does it again, and where the rest is.
fn steps(sweep: &Sweep) -> Vec<(&'static str, String)> {
    let leader = sweep.answer.leader();
    let mut steps: Vec<_> = leader
        .map(|leader| (DO, leader.command.clone()))
        .into_iter()
        .collect();
    let runs = usize::try_from(sweep.cost.runs).unwrap_or(usize::MAX);
    let time_s = sweep.run_time_s.unwrap_or(sweep.plan.time_s);
    let runs = counted(runs, "run");
    let details = format!("{runs} of {time_s} s; -v, or linerate report last -o sweep.html");
    steps.push(("Details", details));
    steps
}

fn table(sweep: &Sweep, rows: usize, glyphs: Glyphs) -> Option<Table> {
    match sweep.factors.as_slice() {
        [] => None,
        [factor] => Some(levels(sweep, factor, rows, glyphs)),
        several => Some(factors(sweep, several)),
    }
}

/// A row for each level that matters most.
fn levels(sweep: &Sweep, factor: &FactorResult, rows: usize, glyphs: Glyphs) -> Table {
    let objective = sweep.plan.objective;
    let shown: Vec<(usize, &Level)> = factor
        .levels
        .iter()
        .enumerate()
        .filter(|(place, _)| ranks(factor).iter().take(rows).any(|rank| rank == place))
        .collect();
    let highest = shown
        .iter()
        .map(|(_, level)| level.median)
        .fold(0.0, f64::max);
    let bar = |level: &Level| {
        if highest > 0.0 {
            glyphs.bar(level.median / highest, BAR_CHARS)
        } else {
            String::new()
        }
    };

    let table = Table::of("", "", &shown)
        .number(&factor.name, |(place, level)| {
            Cell::marked(
                level.label.clone(),
                has_advice(sweep) && *place == factor.advised,
            )
        })
        .text("", |(_, level)| bar(level))
        .number(values::head(objective), |(_, level)| {
            values::value(objective, level.median)
        });
    let table = match objective {
        Objective::Latency => table,
        _ => table.number("round trip", |(_, level)| {
            known(level.metrics.rtt_us, values::delay)
        }),
    };
    let table = match sweep.plan.protocol() {
        "UDP" => table.number("lost", |(_, level)| {
            known(level.metrics.lost_percent, |lost| format!("{lost:.2} %"))
        }),
        _ => table.number("retransmits", |(_, level)| {
            known(level.metrics.retransmits, |count| format!("{count:.0}"))
        }),
    };

    table.table()
}

/// Places of levels: the advised one, the ends of all and of what is as good, the worst ones, the
/// others.
fn ranks(factor: &FactorResult) -> Vec<usize> {
    let worst = factor.degradations.iter().map(|fall| fall.worst);
    let last = factor.levels.len().saturating_sub(1);
    let named = [factor.advised, 0, last]
        .into_iter()
        .chain([*factor.plateau.start(), *factor.plateau.end()])
        .chain(worst)
        .chain(factor.lighter)
        .chain([factor.best])
        .chain(factor.ties.iter().copied())
        .chain(0..factor.levels.len());

    let mut ranks = Vec::new();
    for place in named {
        if !ranks.contains(&place) {
            ranks.push(place);
        }
    }
    ranks
}

/// A row for each of several factors.
fn factors(sweep: &Sweep, factors: &[FactorResult]) -> Table {
    let objective = sweep.plan.objective;
    let label = |factor: &FactorResult, place: usize| {
        factor.levels.get(place).map(|level| level.label.clone())
    };
    let ties = |factor: &FactorResult| {
        let names = factor.ties.iter().filter_map(|place| label(factor, *place));
        Some(joined(names, ", "))
            .filter(|names| !names.is_empty())
            .unwrap_or_else(|| "-".to_owned())
    };
    let worst = |factor: &FactorResult| {
        let falls = factor.degradations.iter();
        let fall = falls.max_by(|a, b| a.change_percent.abs().total_cmp(&b.change_percent.abs()));
        fall.map_or_else(
            || "-".to_owned(),
            |fall| {
                let level = label(factor, fall.worst).unwrap_or_else(|| MISSING.to_owned());
                format!("{level} ({:+.0} %)", fall.change_percent)
            },
        )
    };

    Table::of("", "", factors)
        .text("factor", |factor| factor.name.clone())
        .text("use", |factor| {
            Cell::marked(
                label(factor, factor.advised).unwrap_or_else(|| MISSING.to_owned()),
                has_advice(sweep),
            )
        })
        .number(values::head(objective), |factor| {
            known(factor.levels.get(factor.advised), |level| {
                values::value(objective, level.median)
            })
        })
        .text("worst", worst)
        .text("as good", ties)
        .table()
}
