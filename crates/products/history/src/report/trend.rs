//! A measure over the runs of a path: what changed, when, and what changed in the configuration
//! then.

mod chart;

use linerate_document::blocks::{Block, Document};
use linerate_document::frame::{Badge, Card, Head};
use linerate_document::number::counted;
use linerate_document::record::RunPage;
use linerate_document::style::Style;
use linerate_document::table::Table;
use linerate_model::finding::Severity;
use linerate_model::numbers::MISSING;
use linerate_model::record::Way;
use linerate_model::stats::median;

use super::compare;
use crate::conclude::change_point::RUNS_MIN;
use crate::conclude::compare::differing;
use crate::conclude::trend::{Trend, TrendChange, TrendState};

/// Name of the page.
const NAME: &str = "linerate trend";
/// Runs of the table of text.
const RUNS_SHOWN: usize = 20;
/// Differences of configuration of a change.
const CHANGES_SHOWN: usize = 8;

/// The trend as text; `when` gives a time in ms since 1970 as text.
pub fn text(trend: &Trend, when: &dyn Fn(u64) -> String, style: Style) -> String {
    document(trend, when, RUNS_SHOWN).text(style)
}

/// The trend as one HTML file.
pub fn html(trend: &Trend, when: &dyn Fn(u64) -> String) -> String {
    let trends = || {
        [Some(trend), trend.other_way.as_deref()]
            .into_iter()
            .flatten()
    };
    let mut blocks: Vec<Block> = trends().filter_map(chart::chart).map(Block::Plot).collect();
    blocks.extend(trends().flat_map(|trend| changes(trend, when)));

    let page = RunPage {
        head: head(trend, when),
        blocks,
        details: trends()
            .filter_map(|trend| {
                let runs = runs(trend, when, usize::MAX)?;
                let way = trend.way.and_then(Way::words);
                let name = way.map_or_else(|| "Runs".to_owned(), |way| format!("Runs, {way}"));
                Some(Block::Details(name, vec![runs]))
            })
            .collect(),
    };
    page.document(NAME).html()
}

/// The answer with the newest change.
fn head(trend: &Trend, when: &dyn Fn(u64) -> String) -> Head {
    let badge = match trend.state() {
        TrendState::Worse => ("worse", Severity::High),
        TrendState::Steady => ("steady", Severity::Info),
        TrendState::TooFew => ("too few runs", Severity::Medium),
    };
    let unit = trend.measure.info().unit;
    let card = |change: &TrendChange| {
        let size = compare::effect(change.is_ratio, change.effect, unit);
        let run = &trend.runs[change.at];
        let note = format!("{}, {size}", when(run.started_unix_ms));
        [
            Card::new("before", unit.text(change.before), ""),
            Card::new("after", unit.text(change.after), note),
        ]
    };

    Head {
        title: match (&trend.client, &trend.server) {
            (Some(client), Some(server)) => format!("{client} → {server}"),
            (None, Some(one)) | (Some(one), None) => one.clone(),
            (None, None) => "Trend".to_owned(),
        },
        facts: vec![counted(trend.runs.len(), "run")],
        verdict: answer(trend),
        badge: Some(Badge::new(badge.0, badge.1, trend.measure.info().words())),
        cards: trend.changes.last().into_iter().flat_map(card).collect(),
        ..Head::default()
    }
}

/// The trend as one JSON object, schema `linerate.trend/1`.
pub fn json(trend: &Trend) -> String {
    linerate_document::pretty_json(trend)
}

fn document(trend: &Trend, when: &dyn Fn(u64) -> String, shown: usize) -> Document {
    let mut blocks = vec![Block::Title(answer(trend))];
    blocks.extend(self::blocks(trend, when, shown));

    if let Some(other) = &trend.other_way {
        blocks.extend([Block::Space, Block::Heading(answer(other))]);
        blocks.extend(self::blocks(other, when, shown));
    }

    Document { name: NAME, blocks }
}

/// The changes and the runs of one direction.
fn blocks(trend: &Trend, when: &dyn Fn(u64) -> String, shown: usize) -> Vec<Block> {
    let mut blocks = changes(trend, when);
    blocks.extend(runs(trend, when, shown));
    blocks
}

/// Each change with what changed in the configuration then.
fn changes(trend: &Trend, when: &dyn Fn(u64) -> String) -> Vec<Block> {
    let mut blocks = Vec::new();
    for change in &trend.changes {
        let run = &trend.runs[change.at];
        let head = format!(
            "{} (run {}): {}",
            when(run.started_unix_ms),
            run.run.short(),
            effect(trend, change)
        );
        blocks.push(Block::Heading(head));

        let lines = change
            .configuration
            .iter()
            .filter(|change| change.difference.impact > 0)
            .take(CHANGES_SHOWN);
        let lines: Vec<String> = lines
            .map(|change| {
                let difference = &change.difference;
                let [a, b] = differing(difference);
                format!(
                    "{}: {}: {a} before, {b} after ({})",
                    change.of, difference.key, difference.why
                )
            })
            .collect();
        if lines.is_empty() {
            blocks.push(Block::Remark(
                "No difference of configuration is known.".to_owned(),
            ));
        } else {
            blocks.push(Block::List(lines));
        }
    }

    blocks
}

/// The newest runs of one direction.
fn runs(trend: &Trend, when: &dyn Fn(u64) -> String, shown: usize) -> Option<Block> {
    let last: Vec<_> = trend.runs.iter().rev().take(shown).collect();
    let table = Table::of("", "", &last)
        .text("run", |run| run.run.short())
        .text("started", |run| when(run.started_unix_ms))
        .number(&trend.measure.info().words(), |run| {
            run.value.map_or_else(
                || MISSING.to_owned(),
                |value| trend.measure.info().unit.text(value),
            )
        });

    let left_out = trend.runs.len().saturating_sub(shown);
    let note = (left_out > 0).then(|| {
        format!(
            "{} earlier; --html and --json have all",
            counted(left_out, "run")
        )
    });
    table.notes(note).non_empty().map(Block::Table)
}

/// `worse: received of lab1 > 192.0.2.7, 853 Mbit/s in the last 5 of 30 runs`
fn answer(trend: &Trend) -> String {
    let info = trend.measure.info();
    let path = match (&trend.client, &trend.server) {
        (Some(client), Some(server)) => format!(" of {client} > {server}"),
        (None, Some(one)) | (Some(one), None) => format!(" of {one}"),
        (None, None) => String::new(),
    };

    let values: Vec<f64> = trend.runs.iter().filter_map(|run| run.value).collect();
    let last = &values[values.len().saturating_sub(5)..];
    let middle = median(last).map_or_else(|| MISSING.to_owned(), |value| info.unit.text(value));

    let state = match trend.own_state() {
        TrendState::TooFew => "too few runs",
        TrendState::Steady => "steady",
        TrendState::Worse => "worse",
    };
    let needed = match trend.own_state() {
        TrendState::TooFew => format!("; a change shows from {RUNS_MIN} runs on"),
        _ => String::new(),
    };
    let runs = counted(values.len(), "run");
    let way = trend.way.and_then(Way::words);
    let way = way.map_or_else(String::new, |way| format!(" {way}"));

    format!(
        "{state}: {}{way}{path}, median {middle} in the last {} of {runs}{needed}",
        info.words(),
        last.len()
    )
}

/// `worse, 941 Mbit/s before, 853 Mbit/s after (-9.4 %)`
fn effect(trend: &Trend, change: &TrendChange) -> String {
    let unit = trend.measure.info().unit;
    let verdict = if change.is_worse { "worse" } else { "better" };

    let size = compare::effect(change.is_ratio, change.effect, unit);
    format!(
        "{verdict}, {} before, {} after ({size})",
        unit.text(change.before),
        unit.text(change.after)
    )
}

#[cfg(test)]
mod tests {
    use crate::conclude::compare::Change;
    use crate::conclude::trend::{TREND_SCHEMA, TrendRun};
    use linerate_model::finding::Difference;
    use linerate_model::measure::MeasureName;
    use linerate_model::record::RunId;

    use super::*;

    fn trend(values: &[Option<f64>], changes: Vec<TrendChange>) -> Trend {
        let run = |(at, value): (u64, &Option<f64>)| TrendRun {
            run: RunId::new(at * 60_000, [7; 10]),
            started_unix_ms: at * 60_000,
            value: *value,
        };
        Trend {
            schema: TREND_SCHEMA,
            measure: MeasureName::ReceivedBps,
            client: Some("lab1".to_owned()),
            server: Some("192.0.2.7".to_owned()),
            runs: (0..).zip(values).map(run).collect(),
            changes,
            way: None,
            other_way: None,
        }
    }

    fn change() -> TrendChange {
        let mut difference = Difference::new("nic.*.qdisc.rate", 3, "shapers");
        difference.a = Some("1Gbit".to_owned());
        difference.b = Some("900Mbit".to_owned());
        TrendChange {
            at: 21,
            before: 941e6,
            after: 850e6,
            effect: 0.903,
            is_ratio: true,
            is_worse: true,
            configuration: vec![Change {
                of: "client".to_owned(),
                difference,
            }],
        }
    }

    #[test]
    fn change_stands_with_its_time_size_and_what_changed_then() {
        let mut values = vec![Some(941e6); 21];
        values.extend([Some(850e6); 6]);
        values[3] = None;

        let found = trend(&values, vec![change()]);
        let when = |ms: u64| format!("minute {}", ms / 60_000);
        let text = text(&found, &when, Style::PLAIN);
        let lines: Vec<&str> = text.lines().collect();
        let first =
            "worse: received of lab1 > 192.0.2.7, median 850 Mbit/s in the last 5 of 26 runs";
        assert_eq!(lines[0], first, "{text}");

        for part in [
            "minute 21 (run 07070707): worse, 941 Mbit/s before, 850 Mbit/s after (-9.7 %)",
            "  client: nic.*.qdisc.rate: 1Gbit before, 900Mbit after (shapers)",
            "7 runs earlier; --html and --json have all",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }

        let page = html(&found, &when);
        assert_eq!(
            page.matches("class=\"marker h0\"").count(),
            2 * (26 + 1),
            "a dot per value and the name in each width"
        );
        assert_eq!(
            page.matches("class=\"marker h1\"").count(),
            2 * (1 + 1),
            "the run without a result: {page}"
        );
        assert!(json(&found).contains("\"linerate.trend/1\""));
    }

    #[test]
    fn tests_of_both_directions_have_a_trend_of_each() {
        let mut both = trend(&[Some(20e6); 26], Vec::new());
        both.way = Some(Way::Forward);
        let mut other = trend(&[Some(850e6); 26], vec![change()]);
        other.way = Some(Way::Reverse);
        both.other_way = Some(Box::new(other));
        assert_eq!(both.state(), TrendState::Worse);

        let text = text(&both, &|_| "today".to_owned(), Style::PLAIN);
        for part in [
            "steady: received up of lab1",
            "worse: received down of lab1",
            "(-9.7 %)",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn few_runs_are_shown_without_a_verdict() {
        let text = text(
            &trend(&[Some(941e6), None], Vec::new()),
            &|_| "today".to_owned(),
            Style::PLAIN,
        );
        assert!(text.starts_with("too few runs: received of"), "{text}");
        assert!(
            text.contains("in the last 1 of 1\nrun; a change shows from 15 runs on"),
            "{text}"
        );

        let page = html(&trend(&[], Vec::new()), &|_| String::new());
        assert!(page.contains("too few runs"), "{page}");
    }
}
