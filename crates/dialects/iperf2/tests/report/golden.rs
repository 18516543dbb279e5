//! The writers must make the recorded output of iperf 2.1.8 and 2.2.1 of the events behind it, line
//! by line.
//!
//! Not compared: what depends on digits that were rounded away (network power, Little's load,
//! replies per second), and what the originals get wrong. Each is masked in both texts, in
//! the modules `lines` and `values`.

use std::fs;
use std::time::Duration;

use linerate_iperf2::report::{Layout, Options, Style, client_sink, server_reporter};
use linerate_model::event::Endpoint;
use linerate_model::spec::Iperf2Defaults;
use linerate_model::stream::ListenerFacts;
use linerate_model::units::UnitFormat;
use linerate_model::{Event, TestSpec};
use serde::Deserialize;

use crate::support::{assert_same_text, captured_output, fixtures, play, recordings};

/// Ends of recordings that show a defect, or output of another part of the program.
const LEFT_OUT: &[(&str, &str)] = &[
    ("218/tcp_burst_triptimes server", "every burst begins at 0"),
    (
        "221/tcp_burst_triptimes server",
        "the first burst takes no time",
    ),
    (
        "218/udp_n server",
        "the recording begins with the end of the flows before",
    ),
    (
        "218/udp_P2 client",
        "reports come in the order of their arrival",
    ),
    (
        "218/udp_P2 server",
        "flows are mixed, and the sum takes the mistake back",
    ),
    (
        "218/udp_P2_enh client",
        "reports come in the order of their arrival",
    ),
    (
        "218/udp_P2_enh server",
        "flows are mixed, and the sum takes the mistake back",
    ),
    ("221/udp_P2 client", "one of 181 datagrams is 0%"),
    ("221/udp_P2_enh server", "one flow begins a second late"),
    (
        "221/bounceback_triptimes server",
        "requests are taken for bursts without delay",
    ),
    (
        "221/udp_histograms server",
        "the distribution of jitter is not supported",
    ),
    (
        "221/udp_dual client",
        "the two banners come in either order",
    ),
    ("221/tcp_F server", "a short test has no rate"),
    ("221/tcp_n server", "a short test has no rate"),
];

/// One end of one recording: what its options show of the output, and the events that make it.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Recorded {
    /// Release, case and end, for example `218/tcp_default client`.
    name: String,
    /// Letter of `-f`.
    units: Option<char>,
    enhanced: bool,
    sum_only: bool,
    hide_addresses: bool,
    print_mss: bool,
    process_id: u32,
    /// Nothing is masked.
    is_exact: bool,
    /// Defaults of a server for every test.
    defaults: TestSpec,
    listeners: Vec<ListenerFacts>,
    events: Vec<Event>,
}

#[test]
fn recorded_text_is_written_again() {
    let recordings: Vec<Recorded> = recordings("iperf2/events/text.jsonl");
    assert_eq!(recordings.len(), 286);

    for recorded in &recordings {
        let name = recorded.name.as_str();
        assert!(
            !LEFT_OUT.iter().any(|(left_out, _)| *left_out == name),
            "{name}"
        );
        let release = &name[..3];
        let (mut expected, mut actual) = (recorded.text(), recorded.write(Style::Text));

        if !recorded.is_exact {
            expected = mask(&crate::lines::without_noise(&expected), release);
            actual = mask(&actual, release);
        }

        assert_same_text(&actual, &expected, name);
    }
}

#[test]
fn recorded_values_are_written_again() {
    let recordings: Vec<Recorded> = recordings("iperf2/events/csv.jsonl");
    assert_eq!(recordings.len(), 36);

    for recorded in &recordings {
        let (expected, actual) = (recorded.text(), recorded.write(Style::Csv));
        let names = expected.lines().find(|line| line.starts_with("time,"));
        let has_intervals =
            matches!(&recorded.events[0], Event::TestAccepted(header) if header.interval.is_some());
        let mask =
            |line: &str| crate::values::mask(line, names, recorded.endpoint(), has_intervals);
        let masked = |text: &str| text.lines().map(mask).collect::<Vec<String>>();
        assert_eq!(masked(&actual), masked(&expected), "{}", recorded.name);
    }
}

/// The other end of a recording is compared, too, unless there is a reason.
#[test]
fn both_ends_of_a_recording_have_events() {
    let recordings: Vec<Recorded> = recordings("iperf2/events/text.jsonl");
    for recorded in &recordings {
        let (case, end) = recorded.name.split_once(' ').expect("case and end");
        let name = format!(
            "{case} {}",
            if end == "client" { "server" } else { "client" }
        );
        let is_listed = LEFT_OUT.iter().any(|(left_out, _)| *left_out == name);
        let other = Recorded {
            name,
            ..Recorded::default()
        };
        let is_there = recordings
            .iter()
            .any(|recorded| recorded.name == other.name);
        assert!(
            is_there || is_listed || other.text() == "\n",
            "{}",
            other.name
        );
    }
}

impl Recorded {
    fn endpoint(&self) -> Endpoint {
        if self.name.ends_with(" client") {
            Endpoint::Client
        } else {
            Endpoint::Server
        }
    }

    /// The recorded output of this end.
    fn text(&self) -> String {
        let (case, _) = self.name.split_once(' ').expect("case and end");
        let path = fixtures().join(format!("iperf2/text-{case}.txt"));
        let text =
            fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let title = match self.endpoint() {
            Endpoint::Client => "=== client stdout ===",
            Endpoint::Server => "=== server stdout+stderr (ended with SIGINT) ===",
        };
        let after = text.split(title).nth(1).unwrap_or_default();
        let section = after.split("\n=== ").next().unwrap_or_default();

        format!("{}\n", section.trim_matches('\n'))
    }

    fn options(&self, style: Style) -> Options {
        let mut defaults = Iperf2Defaults::default();
        defaults.test = self.defaults.clone();
        defaults.permit_key_lifetime = Some(Duration::from_secs(20));
        Options {
            endpoint: self.endpoint(),
            style,
            layout: if self.name.starts_with("218") {
                Layout::V2_1
            } else {
                Layout::V2_2
            },
            units: self
                .units
                .and_then(UnitFormat::from_letter)
                .unwrap_or_default(),
            enhanced: self.enhanced,
            sum_only: self.sum_only,
            hide_addresses: self.hide_addresses,
            print_mss: self.print_mss,
            utc: true,
            process_id: self.process_id,
            defaults: Some(Box::new(defaults)),
            ..Options::default()
        }
    }

    fn write(&self, style: Style) -> String {
        let (output, captured, _) = captured_output();
        if self.endpoint() == Endpoint::Client {
            play(&mut client_sink(self.options(style), output), &self.events);
        } else {
            let mut reporter = server_reporter(self.options(style), output);
            for facts in &self.listeners {
                reporter.listener(facts).expect("memory can be written");
            }

            let mut sink = reporter.open_test().expect("memory can be written");
            play(&mut sink, &self.events);
        }

        captured.text()
    }
}

/// Replaces what cannot be known, in both texts alike.
fn mask(text: &str, release: &str) -> String {
    let masked = text
        .lines()
        .filter_map(|line| crate::lines::mask(line, release));
    masked.fold(String::new(), |text, line| text + &line + "\n")
}
