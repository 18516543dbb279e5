//! The comparison in six lines: the verdict, both directions, what was changed, and what to do.

use linerate_document::blocks::{Block, Document};
use linerate_document::number::{counted, without_unit_of};
use linerate_document::style::Style;
use linerate_model::record::Way;
use linerate_model::two_sample::{TRIALS_MIN, Verdict};

use super::{cell, change, changes, deciding, interval, loss, middle, size, verdict_words};
use crate::conclude::compare::{Change, Comparison, Row, differing};

/// Most reasons why the sides are not comparable.
const OBSTACLES_SHOWN: usize = 3;
/// Most results.
const ROWS_MAX: usize = 2;

/// The comparison in at most six lines of 80 columns.
pub(super) fn text(comparison: &Comparison, style: Style) -> String {
    let rows = ranked(comparison);
    let mut entries: Vec<(String, String)> = rows
        .iter()
        .take(ROWS_MAX)
        .map(|row| (label(row), result(row)))
        .collect();
    entries.extend(changed(comparison, style).map(|text| ("Changed".to_owned(), text)));
    entries.extend(next(comparison, &rows).map(|text| ("Do".to_owned(), text)));
    entries.push((
        "Details".to_owned(),
        "-v has all measures, trials and changes".to_owned(),
    ));

    let label_chars = entries.iter().map(|(label, _)| label.chars().count());
    let width = label_chars.max().unwrap_or(0) + 2;
    let entries = entries
        .into_iter()
        .map(|(label, text)| Block::entry(&label, width, text));
    Document {
        name: "linerate compare",
        blocks: std::iter::once(Block::Title(title(comparison, &rows)))
            .chain(entries)
            .collect(),
    }
    .text(style)
}

/// Results that decide: of one cell down before up, of several the strongest first.
pub(super) fn ranked(comparison: &Comparison) -> Vec<&Row> {
    let mut rows = deciding(comparison);
    let is_conclusion = |row: &&Row| Some(row.judged.verdict) == comparison.conclusion;
    let effect = |row: &Row| (row.judged.estimate - 1.0).abs();

    if rows.iter().all(|row| row.factors.is_empty()) {
        rows.sort_by_key(|row| row.way == Way::Forward);
    } else {
        rows.sort_by(|a, b| {
            (is_conclusion(b).cmp(&is_conclusion(a))).then(effect(b).total_cmp(&effect(a)))
        });
    }
    rows
}

/// `worse: received up -25.6 %`
pub(super) fn title(comparison: &Comparison, rows: &[&Row]) -> String {
    let obstacles = &comparison.obstacles;
    let more = match obstacles.len().saturating_sub(OBSTACLES_SHOWN) {
        0 => String::new(),
        more => format!("; {more} more"),
    };
    let shown = obstacles.iter().take(OBSTACLES_SHOWN).cloned();
    let obstacles = shown.collect::<Vec<_>>().join("; ") + &more;
    let Some(conclusion) = comparison.conclusion else {
        return format!("not comparable: {obstacles}");
    };

    // Both directions are undecided, whatever number of runs would decide each.
    let is_alike = |row: &&&Row| {
        std::mem::discriminant(&row.judged.verdict) == std::mem::discriminant(&conclusion)
    };
    let of_verdict: Vec<&&Row> = rows.iter().filter(is_alike).collect();
    let is_of_cells = rows.len() > 1 && rows.iter().any(|row| !row.factors.is_empty());
    let found = match is_of_cells {
        true => {
            let measure = rows.first().map(|row| row.measure.info().words());
            format!(
                "{} of {}, by {}",
                of_verdict.len(),
                counted(rows.len(), "cell"),
                measure.unwrap_or_default()
            )
        }
        false if matches!(conclusion, Verdict::Undecided { .. }) => undecided(&of_verdict),
        false => {
            let mut texts: Vec<String> = of_verdict.iter().map(|row| found(row)).collect();
            // Both directions may have the same.
            texts.dedup();
            texts.join("; ")
        }
    };
    let forced = match obstacles.as_str() {
        "" => String::new(),
        obstacles => format!("; not comparable: {obstacles}"),
    };

    format!("{}: {found}{forced}", verdict_words(conclusion))
}

/// `a loss of up to 6.5 % (down), 27.6 % (up) is not excluded`
fn undecided(rows: &[&&Row]) -> String {
    let loss = |row: &&&Row| {
        let loss = loss(&row.judged, row.measure.info().unit);
        format!("{loss} ({})", label(row))
    };
    let losses: Vec<String> = rows.iter().map(loss).collect();
    format!("a loss of up to {} is not excluded", losses.join(", "))
}

/// `received up -25.6 %`
fn found(row: &Row) -> String {
    let judged = &row.judged;
    let unit = row.measure.info().unit;
    match judged.verdict {
        Verdict::Worse | Verdict::Better => format!("{} {}", row.name(), change(judged, unit)),
        Verdict::Same => format!("no change beyond {}", size(judged, judged.margin, unit)),
        Verdict::Undecided { .. } | Verdict::TooFew => format!(
            "{} and {} trials; a verdict needs {TRIALS_MIN} a side",
            judged.a.len(),
            judged.b.len()
        ),
    }
}

fn label(row: &Row) -> String {
    match (row.factors.is_empty(), row.way.words()) {
        (false, _) => cell(row),
        (true, Some(way)) => way.to_owned(),
        (true, None) => row.measure.info().words(),
    }
}

/// `37.7 Mbit/s in A, 28.1 Mbit/s in B, -25.6 % (-27.6 to -23.8 %): worse`
fn result(row: &Row) -> String {
    let judged = &row.judged;
    let unit = row.measure.info().unit;
    let [a, b] = [&judged.a, &judged.b].map(|side| middle(side, unit));
    let a = without_unit_of(&a, &b);
    let interval = judged
        .interval
        .map_or_else(String::new, |_| format!(" ({})", interval(judged, unit)));

    format!(
        "A {a}, B {b}, {}{interval}: {}",
        change(judged, unit),
        verdict_words(judged.verdict)
    )
}

/// The strongest change of the configuration that fits its line, and the number of the others.
fn changed(comparison: &Comparison, style: Style) -> Option<String> {
    let changes = changes(comparison);
    let strongest = changes.first()?.difference.impact;
    let texts = changes
        .iter()
        .filter(|change| change.difference.impact == strongest)
        .map(|Change { of, difference }| {
            let [a, b] = differing(difference);
            format!("{of} {}: {a} in A, {b} in B", difference.key)
        });
    // A key with its values in a form that is read at a glance is the shortest one.
    let shortest = texts.min_by_key(String::len)?;
    let shown: String = shortest
        .chars()
        .take(style.columns.saturating_sub(CHANGED_CHARS))
        .collect();
    let cut = if shown.len() < shortest.len() {
        "…"
    } else {
        ""
    };

    Some(match changes.len() {
        1 => format!("{shown}{cut}"),
        many => format!("{shown}{cut}; {} more", many - 1),
    })
}

/// Label, sign of a cut and number of other changes.
const CHANGED_CHARS: usize = 22;

/// What makes the comparison better than it is.
fn next(comparison: &Comparison, rows: &[&Row]) -> Option<String> {
    match comparison.conclusion? {
        Verdict::Undecided { more_trials } => Some(format!(
            "make about {more_trials} more runs of each side, then compare again"
        )),
        Verdict::TooFew if !rows.is_empty() => {
            Some("make both sides with `--repeat 5`; -v has the commands".to_owned())
        }
        _ => None,
    }
}
