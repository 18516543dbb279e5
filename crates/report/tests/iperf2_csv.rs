//! The writer must make the recorded comma-separated values of iperf 2.1.8 and 2.2.1 of the events behind them.
//!
//! Not compared: the time stamp of totals, which the originals take from the wrong moment, and the counts in the total
//! of a UDP sender, which are −1 or no number there.

mod support;

use std::fs;

use linerate_model::Event;
use linerate_model::event::Endpoint;
use linerate_report::iperf2::{Layout, Options, Style, client_sink, server_reporter};
use serde::Deserialize;

use support::{captured_output, fixtures, play, recordings};

/// One end of one recording.
#[derive(Deserialize)]
struct Recorded {
    /// Release, case and end, for example `218/tcp_csv client`.
    name: String,
    #[serde(default)]
    enhanced: bool,
    events: Vec<Event>,
}

#[test]
fn recorded_values_are_written_again() {
    let recordings: Vec<Recorded> = recordings("iperf2/events/csv.jsonl");
    assert_eq!(recordings.len(), 36);
    for recorded in recordings {
        let section = section(&recorded.name);
        let names = section.lines().find(|line| line.starts_with("time,"));
        let masked = |text: &str| -> Vec<String> { text.lines().map(|line| mask(line, names, &recorded)).collect() };
        assert_eq!(masked(&write(&recorded)), masked(&section), "{}", recorded.name);
    }
}

/// The recorded values.
fn section(name: &str) -> String {
    let (case, end) = name.split_once(' ').expect("case and end");
    let text = fs::read_to_string(fixtures().join(format!("iperf2/text-{case}.txt"))).expect("a fixture");
    let title = match end {
        "client" => "=== client stdout ===\n",
        _ => "=== server stdout+stderr (ended with SIGINT) ===\n",
    };
    let section = text.split(title).nth(1).unwrap_or_default();
    section.split("=== ").next().unwrap_or_default().to_owned()
}

fn write(recorded: &Recorded) -> String {
    let (output, captured, _) = captured_output();
    let options = Options {
        style: Style::Csv,
        layout: if recorded.name.starts_with("218") { Layout::V2_1 } else { Layout::V2_2 },
        enhanced: recorded.enhanced,
        utc: true,
        ..Options::new(recorded.endpoint())
    };
    let mut sink = match recorded.endpoint() {
        Endpoint::Client => client_sink(options, output),
        Endpoint::Server => server_reporter(options, output).open_test().expect("memory can be written"),
    };
    play(&mut sink, &recorded.events);
    captured.text()
}

impl Recorded {
    fn endpoint(&self) -> Endpoint {
        if self.name.ends_with(" client") { Endpoint::Client } else { Endpoint::Server }
    }

    fn has_intervals(&self) -> bool {
        matches!(&self.events[0], Event::TestAccepted(header) if header.interval.is_some())
    }
}

/// The columns of a line that decide what is masked.
struct Row {
    id: i64,
    start_s: f64,
    end_s: f64,
    bytes: u64,
    has_losses: bool,
}

impl Row {
    fn parse(fields: &[&str], names: Option<&str>) -> Self {
        // With names, start and end are columns of their own.
        let (start, end, bytes, has_losses) = match names {
            Some(names) => (fields[6], fields[7], fields[8], names.contains(",jitter,")),
            None => {
                let (start, end) = fields[6].split_once('-').expect("an interval");
                (start, end, fields[7], fields.len() > 9)
            }
        };
        Self {
            id: fields[5].parse().expect("a number"),
            start_s: start.parse().expect("a time"),
            end_s: end.parse().expect("a time"),
            bytes: bytes.parse().expect("bytes"),
            has_losses,
        }
    }
}

/// Replaces what the originals get wrong, in both texts alike.
fn mask(line: &str, names: Option<&str>, recorded: &Recorded) -> String {
    if line.starts_with("time,") {
        return line.to_owned();
    }
    let mut fields: Vec<&str> = line.split(',').collect();
    let (row, endpoint) = (Row::parse(&fields, names), recorded.endpoint());
    if row.start_s == 0.0 && (!recorded.has_intervals() || row.end_s > 1.0) {
        fields[0] = "#";
        // Counts of a sender, and what the sum ends with.
        let is_sender = endpoint == Endpoint::Client;
        let losses = if names.is_some() { 10 } else { 9 };
        if row.has_losses && (is_sender || row.id < 0) {
            fields.iter_mut().skip(losses).take(5).for_each(|field| *field = "#");
        }
        if row.id < 0 {
            fields[3] = "#";
            fields[6] = "#";
            fields[8] = "#";
        }
    }
    // A server of requests repeats its first stamp, and a header knows no microseconds.
    if endpoint == Endpoint::Server && row.start_s > 0.0 && row.bytes <= 2000 {
        fields[0] = "#";
    }
    if fields[0].starts_with("+0000:") {
        fields[0] = &fields[0][..fields[0].len() - 3];
    }
    // Replies per second come from digits that were rounded away.
    if names.is_some_and(|names| names.ends_with("rps")) {
        *fields.last_mut().expect("a field") = "#";
    }
    fields.join(",")
}
