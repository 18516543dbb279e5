//! A sweep: how far it is, the active run, and every setting so far.

use linerate_document::sparkline;
use linerate_model::live::{LiveLevel, LiveSweep, LiveTest};
use linerate_model::numbers::{MISSING, clock, rate};

use crate::page::{Page, Tone};
use crate::table::{self, Column, Row};

pub(crate) fn draw(page: &mut Page, sweep: &LiveSweep, test: Option<&LiveTest>) {
    let mut pieces = vec![
        page.piece(Tone::Title, "linerate sweep"),
        page.word(&sweep.host),
    ];
    if sweep.runs_planned > 0 {
        // The last run has ended before the view does, and has no successor.
        let run = (sweep.runs_done + 1).min(sweep.runs_planned);
        pieces.push(page.piece(Tone::Good, format!("run {run}/{}", sweep.runs_planned)));
        pieces.push(page.word(format!("left {}", clock(sweep.left_s))));
    }

    page.flow(pieces);
    let line = test.map(|test| {
        // A test of one direction has values in that direction only.
        let both = if test.forward.last().is_some() {
            &test.forward
        } else {
            &test.reverse
        };
        (
            both.last(),
            sparkline::row(both.values(), page.width() / 3, page.view.glyphs),
        )
    });
    let (now, points) = line.unwrap_or_default();
    let pieces = vec![
        page.word(format!("now {}", sweep.setting)),
        page.word(now.map_or_else(|| MISSING.to_owned(), rate)),
        page.piece(Tone::Curve, points),
    ];
    page.flow(pieces);

    if !page.is_small() {
        page.blank();
    }

    levels(
        page,
        "SETTING",
        &sweep.levels.iter().collect::<Vec<_>>(),
        "settings",
    );
}

/// A table of levels, each with its median as a bar.
pub(crate) fn levels(page: &mut Page, head: &'static str, levels: &[&LiveLevel], others: &str) {
    if levels.is_empty() {
        let text = page.word("no run has ended yet");
        page.line(vec![text]);
        return;
    }

    let columns = [
        Column::left(head, 22, 0),
        Column::right("RUNS", 4, 2),
        Column::right("MEDIAN", 12, 1),
        Column::right("FAILED", 6, 3),
    ];
    let highest = levels
        .iter()
        .filter_map(|level| level.median())
        .map(|(value, _)| *value)
        .fold(0.0, f64::max);
    let rows = levels
        .iter()
        .map(|level| row(page, level, highest))
        .collect();
    table::draw(page, &columns, rows, others);
}

fn row(page: &Page, level: &LiveLevel, highest: f64) -> Row {
    let median = level.median();
    let failed = if level.failed > 0 {
        Tone::Bad
    } else {
        Tone::Plain
    };

    let cells = vec![
        (Tone::Plain, level.setting.clone()),
        (Tone::Plain, level.values.len().to_string()),
        (
            Tone::Plain,
            median.map_or_else(|| MISSING.to_owned(), |(_, text)| text.clone()),
        ),
        (failed, level.failed.to_string()),
    ];
    // Without a positive median there is no scale.
    let share = median.map_or(
        0.0,
        |(value, _)| if highest > 0.0 { value / highest } else { 0.0 },
    );
    let glyphs = page.view.glyphs;

    (
        cells,
        Box::new(move |width| glyphs.bar(share, width.min(40))),
    )
}
