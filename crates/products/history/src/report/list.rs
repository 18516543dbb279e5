//! Lists of runs: a table for people, and one for programs.

use linerate_document::style::Style;
use linerate_document::table::Table;
use linerate_model::record::{RunRow, RunState};
use linerate_model::stored_name;

use super::export::csv::quotable;
use super::export::markdown::escaped;
use super::export::value_text;

/// A line per run; `when` gives a time in ms since 1970 as text.
pub fn text(rows: &[RunRow], when: &dyn Fn(u64) -> String, style: Style) -> String {
    let times: Vec<String> = rows.iter().map(|row| when(row.started_unix_ms)).collect();
    // `2026-01-31 12:00:00`: minutes are enough, and the year where there are several.
    let is_one_year = times.iter().all(|time| time.get(..4) == times[0].get(..4));
    let from = if is_one_year { 5 } else { 0 };

    let row = |(row, time): (&RunRow, &String)| {
        let short = time.get(from..16).unwrap_or(time);
        let [.., kind, path, result, state, labels] = cells(row, when);
        let state = Some(state).filter(|_| row.state != RunState::Complete);
        let labels = Some(labels).filter(|labels| !labels.is_empty());
        let words = std::iter::once(result).chain(state).chain(labels);
        let result = words.collect::<Vec<_>>().join("; ");
        [row.run_id.short(), short.to_owned(), kind, path, result]
    };
    let rows: Vec<[String; 5]> = rows.iter().zip(&times).map(row).collect();
    let heads = ["run", "started", "kind", "path", "result"];
    Table::of_words("", "", heads, &rows).text(style)
}

/// The table of [`text`] in Markdown.
pub fn markdown(rows: &[RunRow], when: &dyn Fn(u64) -> String) -> String {
    let line = |cells: [String; 7]| format!("| {} |\n", cells.join(" | "));
    let head = line(HEADS.map(str::to_owned)) + &line(HEADS.map(|_| "---".to_owned()));
    let rows = rows
        .iter()
        .map(|row| line(cells(row, when).map(|cell| escaped(&cell))));
    head + &rows.collect::<String>()
}

/// A line per run with exact values, comma-separated (RFC 4180).
pub fn csv(rows: &[RunRow]) -> String {
    let text = |text: &Option<String>| quotable(text.as_deref().unwrap_or_default());
    let table = Table::of("", "", rows)
        .text("run", |row| row.run_id.to_string())
        .number("started_unix_ms", |row| row.started_unix_ms.to_string())
        .number("elapsed_ns", |row| row.elapsed_ns.to_string())
        .text("kind", |row| stored_name(row.kind))
        .text("state", |row| stored_name(row.state))
        .text("reason", move |row| text(&row.reason))
        .text("client", move |row| text(&row.client))
        .text("server", move |row| text(&row.server))
        .text("watch", move |row| text(&row.watch))
        .number("trials", |row| row.trials.to_string())
        .text("measure", |row| {
            row.primary
                .map_or_else(String::new, |(measure, _)| measure.to_string())
        })
        .number("value", |row| {
            row.primary
                .map_or_else(String::new, |(_, value)| value.to_string())
        })
        .text("labels", |row| quotable(&labels(row)))
        .text("title", move |row| text(&row.title))
        .number("value_forward", |row| {
            row.both_ways
                .map_or_else(String::new, |(forward, _)| forward.to_string())
        })
        .number("value_reverse", |row| {
            row.both_ways
                .map_or_else(String::new, |(_, reverse)| reverse.to_string())
        });
    table.table().csv()
}

const HEADS: [&str; 7] = [
    "run", "started", "kind", "path", "result", "state", "labels",
];

fn cells(row: &RunRow, when: &dyn Fn(u64) -> String) -> [String; 7] {
    let result = row.primary.map(|(measure, value)| {
        let text = |value| value_text(value, measure.info().unit);
        match row.both_ways {
            Some((up, down)) => both_ways(&text(down), &text(up)),
            None => text(value),
        }
    });
    let labels = if row.labels.is_empty() {
        row.title.clone().unwrap_or_default()
    } else {
        labels(row)
    };

    let kind = stored_name(row.kind);
    let state = row.state.words().to_owned();
    [
        row.run_id.short(),
        when(row.started_unix_ms),
        kind,
        path(row),
        result.unwrap_or_else(|| "-".to_owned()),
        state,
        labels,
    ]
}

/// `941 down, 38.2 up Mbit/s`
pub(crate) fn both_ways(down: &str, up: &str) -> String {
    match (down.split_once(' '), up.split_once(' ')) {
        (Some((down, unit)), Some((up, other))) if unit == other => {
            format!("{down} down, {up} up {unit}")
        }
        _ => format!("{down} down, {up} up"),
    }
}

fn path(row: &RunRow) -> String {
    match (&row.client, &row.server) {
        (Some(client), Some(server)) => format!("{client} > {server}"),
        (Some(one), None) | (None, Some(one)) => one.clone(),
        (None, None) => "-".to_owned(),
    }
}

fn labels(row: &RunRow) -> String {
    row.labels
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use linerate_model::measure::MeasureName;
    use linerate_model::record::{RunId, RunKind};

    use super::*;

    fn row() -> RunRow {
        RunRow {
            run_id: RunId::new(1, [7; 10]),
            kind: RunKind::Test,
            state: RunState::Complete,
            reason: None,
            title: Some("=cmd,\u{1b}[31m\"x\"".to_owned()),
            started_unix_ms: 1,
            elapsed_ns: 2,
            client: Some("a|b".to_owned()),
            server: Some("192.0.2.7".to_owned()),
            watch: None,
            trials: 5,
            primary: Some((MeasureName::ReceivedBps, 941.3e6)),
            both_ways: None,
            labels: [("site".to_owned(), "x".to_owned())].into(),
        }
    }

    #[test]
    fn lists_have_a_line_per_run_and_text_of_others_stays_text() {
        let when = |_| "2026-01-31 12:00:00".to_owned();
        let untitled = RunRow {
            labels: Default::default(),
            ..row()
        };
        let list = text(&[row(), untitled.clone()], &when, Style::PLAIN);
        let lines: Vec<&str> = list.lines().collect();
        assert_eq!(lines.len(), 3, "{list}");

        for part in [
            "07070707",
            "  01-31 12:00  ",
            "test",
            "a|b > 192.0.2.7",
            "941 Mbit/s; site=x",
        ] {
            assert!(lines[1].contains(part), "{part}: {list}");
        }

        assert!(
            !list.contains('\u{1b}') && lines[2].contains("=cmd"),
            "{list}"
        );
        assert!(markdown(std::slice::from_ref(&untitled), &when).contains("a\\|b"));

        let two_way = RunRow {
            both_ways: Some((20e6, 941.3e6)),
            state: RunState::NoAnswer,
            ..row()
        };
        let list = text(&[two_way], &when, Style::PLAIN);
        assert!(
            list.contains("941 down, 20.0 up Mbit/s; no") && list.contains("answer; site=x"),
            "{list}"
        );

        let csv = csv(&[untitled]);
        assert!(csv.contains(",received_bps,941300000,,\"'=cmd,"), "{csv}");
    }
}
