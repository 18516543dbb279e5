//! Rules of the iperf 2 output that recordings show only in parts: parts left out, headers,
//! failures.

use crate::support::{Captured, captured_output, play, recordings};
use linerate_iperf2::report::{Excluded, Options, client_sink, server_reporter};
use linerate_model::event::Endpoint;
use linerate_model::{Event, Failure};
use serde::Deserialize;

#[test]
fn parts_are_left_out_on_request() {
    let everything = client_text(Excluded::default());
    let is_banner = |line: &&str| !line.starts_with('[');
    let is_connection = |line: &&str| line.contains(" connected with ");
    let is_data = |line: &&str| line.contains(" sec ") || line.starts_with("[ ID]");
    let without = |is_left_out: &dyn Fn(&&str) -> bool| {
        let lines = everything.lines().filter(|line| !is_left_out(line));
        lines.fold(String::new(), |text, line| text + line + "\n")
    };
    let excluded = Excluded {
        settings: true,
        ..Excluded::default()
    };
    assert_eq!(client_text(excluded), without(&is_banner));

    let excluded = Excluded {
        connection: true,
        ..Excluded::default()
    };
    assert_eq!(client_text(excluded), without(&is_connection));
    let excluded = Excluded {
        data: true,
        ..Excluded::default()
    };
    assert_eq!(client_text(excluded), without(&is_data));

    let all = Excluded {
        settings: true,
        connection: true,
        data: true,
        server: true,
        multicast: true,
    };
    assert_eq!(client_text(all), "");
}

#[test]
fn tests_at_the_same_time_share_a_header_and_later_ones_get_their_own() {
    let (output, text, _) = captured_output();
    let mut reporter = server_reporter(
        Options {
            endpoint: Endpoint::Server,
            ..Options::default()
        },
        output,
    );
    let mut open = || reporter.open_test().expect("a writable output");

    let headers = |text: &Captured| {
        text.text()
            .lines()
            .filter(|line| line.starts_with("[ ID]"))
            .count()
    };
    let events = one_stream(Endpoint::Server);
    let (mut first, mut second) = (open(), open());
    play(&mut *first, &events);
    play(&mut *second, &events);
    assert_eq!(headers(&text), 1);
    drop(first);
    play(&mut *open(), &events);
    assert_eq!(headers(&text), 1, "the second test still runs");
    drop(second);
    play(&mut *open(), &events);
    assert_eq!(headers(&text), 2);
}

#[test]
fn failures_and_warnings_go_to_standard_error() {
    let (output, text, errors) = captured_output();
    let mut sink = client_sink(Options::default(), output);
    let failure = Failure::error(1, "tcp connect failed: Connection refused");
    let warning = "WARNING: delay too large, reducing from 4.0 to 1.0 seconds.";
    play(
        &mut *sink,
        &[Event::Warning(warning.into()), Event::Failed(failure)],
    );
    assert_eq!(text.text(), "");
    assert_eq!(
        errors.text(),
        format!("{warning}\ntcp connect failed: Connection refused\n")
    );
}

#[test]
fn a_short_last_interval_is_left_out() {
    for (end_ns, is_shown) in [(1_240_000_000, false), (1_260_000_000, true)] {
        let (output, text, _) = captured_output();
        let mut sink = client_sink(Options::default(), output);
        let mut events = one_stream(Endpoint::Client);
        let interval = |event: &Event| matches!(event, Event::Interval(_));
        let first = events.iter().position(interval).expect("intervals");
        events.truncate(first + 1);

        if let Some(Event::Interval(report)) = events.last_mut() {
            report.last = true;
            (report.streams[0].start_ns, report.streams[0].end_ns) = (1_000_000_000, end_ns);
        }

        play(&mut *sink, &events);
        assert_eq!(text.text().contains(" sec "), is_shown, "{end_ns}");
    }
}

/// Output of a client for a test.
fn client_text(excluded: Excluded) -> String {
    let options = Options {
        excluded,
        ..Options::default()
    };
    let (output, text, errors) = captured_output();
    let mut sink = client_sink(options, output);
    play(&mut *sink, &one_stream(Endpoint::Client));
    assert_eq!(errors.text(), "");

    text.text()
}

/// The events of a recorded test: one TCP stream for two seconds.
fn one_stream(endpoint: Endpoint) -> Vec<Event> {
    #[derive(Deserialize)]
    struct Recorded {
        name: String,
        events: Vec<Event>,
    }

    let name = match endpoint {
        Endpoint::Client => "218/tcp_default_i1 client",
        Endpoint::Server => "218/tcp_default_i1 server",
    };
    let recordings: Vec<Recorded> = recordings("iperf2/events/text.jsonl");
    let recorded = recordings
        .into_iter()
        .find(|recorded| recorded.name == name);

    recorded.expect("part of the recordings").events
}
