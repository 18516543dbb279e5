//! Rules of the iperf3 output that no recording shows: failures, losses, warm-ups with old peers,
//! pipes and files.

use std::fs;
use std::io::{self, Write};
use std::time::Duration;

use crate::support::captured_output;
use linerate_document::Output;
use linerate_iperf3::report::{Options, Style, client_sink, report_failure, server_reporter};
use linerate_model::event::{ControlConnected, Endpoint, Event, ServerOutput, TestHeader};
use linerate_model::summary::{TcpSummary, UdpTotals};
use linerate_model::{
    EndCondition, EndpointTotals, Failure, FailureKind, IntervalReport, StreamId, StreamInterval,
    StreamSummary, Summary, TestSpec, Transport,
};
use serde_json::{Value, json};

const STREAM: Style = Style::JsonStream { full_output: false };

#[test]
fn an_error_of_the_server_has_two_lines_in_text_and_one_member_in_json() {
    let kind = FailureKind::Peer {
        errno: 98,
        errno_text: Some("Address already in use".into()),
    };
    let failed = [Event::Failed(failure(
        kind,
        "unable to start listener for connections",
    ))];
    let (_, errors) = client(&failed, Style::Text);
    assert_eq!(
        errors,
        "iperf3: SERVER ERROR - unable to start listener for connections, errno: Address already \
         in use\n\
         iperf3: error - unable to start listener for connections\n"
    );

    let (text, errors) = client(&failed, Style::Json);
    assert_eq!(text.matches("\"error\"").count(), 1);
    assert_eq!(
        parse(&text)["error"],
        "unable to start listener for connections"
    );
    assert_eq!(errors, "");

    let (text, _) = client(&failed, STREAM);
    assert_eq!(
        text,
        "{\"event\":\"error\",\"data\":\"SERVER ERROR - unable to start listener for connections, errno: Address already in use\"}\n{\"event\":\"end\",\"data\":{}}\n"
    );
}

#[test]
fn a_server_keeps_the_prefix_of_its_errors_in_json() {
    let refused = failure(FailureKind::Error, "bogus value for --omit");
    let gone = failure(
        FailureKind::PeerClosed,
        "the client has unexpectedly closed the connection",
    );

    for (failure, text_line, member) in [
        (
            refused,
            "iperf3: error - bogus value for --omit\n",
            "error - bogus value for --omit",
        ),
        (
            gone,
            "iperf3: the client has unexpectedly closed the connection\n",
            "the client has unexpectedly closed the connection",
        ),
    ] {
        let events = [Event::Failed(failure)];
        assert_eq!(
            server(&events, Style::Text),
            (String::new(), text_line.into())
        );
        assert_eq!(parse(&server(&events, Style::Json).0)["error"], member);

        let first_line = server(&events, STREAM)
            .0
            .lines()
            .next()
            .map(parse)
            .expect("a line");
        assert_eq!(first_line, json!({"event": "error", "data": member}));
    }
}

#[test]
fn an_interrupted_idle_server_says_so_in_every_style() {
    let interrupt = failure(
        FailureKind::Interrupted,
        "the server has terminated by signal Terminated(15)",
    );
    let (output, normal, errors) = captured_output();
    report_failure(options(Endpoint::Server, Style::Text), output, &interrupt)
        .expect("memory can be written");
    assert_eq!(normal.text(), "");
    assert_eq!(
        errors.text(),
        "iperf3: interrupt - the server has terminated by signal Terminated(15)\n"
    );

    let (output, normal, _) = captured_output();
    report_failure(options(Endpoint::Server, Style::Json), output, &interrupt)
        .expect("memory can be written");
    assert_eq!(
        parse(&normal.text())["error"],
        "interrupt - the server has terminated by signal Terminated(15)"
    );
}

#[test]
fn losses_are_measured_against_what_the_receiver_saw_in_text_and_what_was_sent_in_json() {
    let events = udp_test(Duration::ZERO, udp(100, 0), udp(80, 10));
    let (text, _) = client(&events, Style::Text);
    assert!(text.contains("  0.000 ms  0/100 (0%)  sender\n"), "{text}");
    assert!(
        text.contains("  2.000 ms  10/80 (12%)  receiver\n"),
        "{text}"
    );

    let end = &parse(&client(&events, Style::Json).0)["end"];
    assert_eq!(end["sum"]["packets"], 100);
    assert_eq!(end["sum"]["lost_percent"], 10);
    assert_eq!(end["sum_received"]["packets"], 80);
    assert_eq!(end["sum_received"]["lost_percent"], 12.5);
    assert_eq!(end["streams"][0]["udp"]["jitter_ms"], 2);
}

#[test]
fn the_warm_up_is_taken_off_the_losses() {
    let half = |packets, lost, omitted_packets, omitted_lost| {
        let mut udp = udp(packets, lost);
        udp.omitted_packets = Some(omitted_packets);
        udp.omitted_lost = Some(omitted_lost);
        udp
    };
    let events = udp_test(
        Duration::from_secs(1),
        half(150, 0, 50, 0),
        half(150, 9, 50, 5),
    );
    let (text, _) = client(&events, Style::Text);
    assert!(text.contains("  0/100 (0%)  sender\n"), "{text}");
    assert!(text.contains("  4/100 (4%)  receiver\n"), "{text}");
}

#[test]
fn losses_stay_unknown_when_an_old_peer_does_not_tell_those_of_the_warm_up() {
    let mut receiver = udp(150, 9);
    receiver.omitted_packets = None;
    receiver.omitted_lost = None;

    let events = udp_test(Duration::from_secs(1), udp(150, 0), receiver);
    let (text, _) = client(&events, Style::Text);
    assert!(
        text.contains("  2.000 ms  Unknown/150  receiver\n"),
        "{text}"
    );

    let received = &parse(&client(&events, Style::Json).0)["end"]["sum_received"];
    assert_eq!(
        (&received["lost_packets"], &received["lost_percent"]),
        (&Value::Null, &Value::Null)
    );
}

#[test]
fn late_datagrams_have_a_line_between_the_two_rows() {
    let mut receiver = udp(100, 0);
    receiver.out_of_order = 7;
    let (text, _) = client(
        &udp_test(Duration::ZERO, udp(100, 0), receiver),
        Style::Text,
    );
    let lines: Vec<&str> = text.lines().collect();
    let index = lines
        .iter()
        .position(|l| l.contains("out-of-order"))
        .expect("a line");
    assert_eq!(
        lines[index],
        "[SUM]  0.0- 2.0 sec  7 datagrams received out-of-order"
    );
    assert!(
        lines[index - 1].ends_with("sender") && lines[index + 1].ends_with("receiver"),
        "{text}"
    );
}

#[test]
fn a_short_interval_counts_only_if_something_moved() {
    let stub = |bytes| interval(1_000_000_000, 1_050_000_000, bytes);
    let rows = |bytes| {
        let mut events = accepted(&TestSpec::default());
        events.extend([interval(0, 1_000_000_000, 10), stub(bytes)].map(Event::Interval));
        events.push(Event::Finished);

        let text_rows = client(&events, Style::Text).0.matches(" sec ").count();
        let json_rows = parse(&client(&events, Style::Json).0)["intervals"]
            .as_array()
            .map(Vec::len);
        (text_rows, json_rows)
    };
    assert_eq!(rows(0), (1, Some(1)));
    assert_eq!(rows(1), (2, Some(2)));
}

#[test]
fn what_ends_a_test_is_in_the_starting_line_of_a_verbose_run() {
    for (end, words) in [
        (
            EndCondition::Duration(Duration::from_secs(7)),
            ", 7 second test, tos 0",
        ),
        (EndCondition::Unlimited, ", 0 second test, tos 0"),
        (EndCondition::Bytes(4096), ", 4096 bytes to send, tos 0"),
        (EndCondition::Blocks(12), ", 12 blocks to send, tos 0"),
    ] {
        let spec = TestSpec {
            end,
            ..TestSpec::default()
        };
        let mut events = accepted(&spec);
        events.push(Event::TestStarted {
            at_monotonic_ns: None,
        });

        let mut verbose = options(Endpoint::Client, Style::Text);
        verbose.verbose = true;
        let (text, _) = run(&events, verbose);
        assert!(
            text.lines().last().is_some_and(|l| l.ends_with(words)),
            "{text}"
        );
    }
}

#[test]
fn text_of_a_peer_controls_no_terminal() {
    let events = [Event::PeerOutput(ServerOutput::Text(
        "a\tb\n\u{1b}[2J\u{9b}\r\n".into(),
    ))];
    assert_eq!(
        client(&events, Style::Text).0,
        "\nServer output:\na\tb\n\u{fffd}[2J\u{fffd}\u{fffd}\n\n"
    );
}

#[test]
fn a_reader_that_left_ends_the_report_without_a_panic() {
    struct Closed;

    impl Write for Closed {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    for style in [Style::Text, Style::Json, STREAM] {
        let output = Output::new(Box::new(Closed), Box::new(Closed));
        let mut sink = client_sink(options(Endpoint::Client, style), output);
        let mut events = accepted(&TestSpec::default());
        events.push(Event::Finished);

        let results: Vec<_> = events.iter().map(|event| sink.event(event)).collect();
        assert!(results.iter().any(Result::is_err), "{style:?} noticed");
    }
}

#[test]
fn a_log_file_takes_errors_too_and_can_be_rotated_between_tests() {
    let directory = std::env::temp_dir().join(format!("linerate-document-{}", std::process::id()));
    fs::create_dir_all(&directory).expect("a temporary directory");
    let (log, rotated) = (directory.join("log"), directory.join("log.1"));
    let output = Output::log_file(&log).expect("a new file");
    let mut reporter = server_reporter(options(Endpoint::Server, Style::Text), output);
    reporter.listening(5201, 1).expect("writable");

    let failed = Event::Failed(failure(FailureKind::Error, "no luck"));
    reporter
        .open_test()
        .expect("a test")
        .event(&failed)
        .expect("writable");
    fs::rename(&log, &rotated).expect("same directory");
    reporter.listening(5201, 2).expect("writable");

    let (old, new) = (fs::read_to_string(&rotated), fs::read_to_string(&log));
    fs::remove_dir_all(&directory).expect("ours");
    assert!(old.expect("the rotated file").ends_with(
        "(test #1)\n-----------------------------------------------------------\niperf3: error - \
         no luck\n"
    ));
    assert!(new.expect("a new file").contains("(test #2)"));
}

/// The rows of all tests together are bounded; what is beyond is announced once and left out, and
/// the sums are whole.
#[test]
fn a_server_keeps_a_bounded_number_of_intervals_for_its_documents() {
    const ROWS: usize = 65_536;

    let (output, documents, errors) = captured_output();
    let mut reporter = server_reporter(options(Endpoint::Server, Style::Json), output);
    let mut run = |intervals: usize| {
        let before = documents.text().len();
        let mut sink = reporter.open_test().expect("a test");
        let mut events = accepted(&TestSpec::default());
        events.extend(
            (0..intervals as u64)
                .map(|i| Event::Interval(interval(i * 1_000_000, (i + 1) * 1_000_000, 10))),
        );
        events.push(Event::Finished);
        events
            .iter()
            .for_each(|e| sink.event(e).expect("memory can be written"));
        drop(sink);

        let document = parse(&documents.text()[before..]);
        (
            document["intervals"].as_array().map(Vec::len),
            document["end"].is_object(),
        )
    };
    assert_eq!(run(ROWS + 10), (Some(ROWS), true));
    assert_eq!(
        errors
            .text()
            .matches("keeps no intervals after 65.5 s")
            .count(),
        1,
        "{}",
        errors.text()
    );
    assert_eq!(
        run(10),
        (Some(10), true),
        "what a test kept is free when it has ended"
    );
    assert_eq!(errors.text().lines().count(), 1);
}

#[test]
fn a_sum_knows_retransmits_only_if_every_stream_does() {
    let stream = |id, retransmits| {
        let mut totals = StreamSummary {
            id: StreamId(id),
            sender: Some(half(1000, None)),
            receiver: Some(half(900, None)),
            ..StreamSummary::default()
        };

        let tcp = TcpSummary {
            retransmits,
            ..TcpSummary::default()
        };
        totals.tcp = Some(tcp);
        totals
    };
    let document = |second| {
        let spec = TestSpec {
            streams: 2,
            ..TestSpec::default()
        };
        let mut events = accepted(&spec);
        let summary = Summary {
            streams: vec![stream(0, Some(3)), stream(1, second)],
            ..Summary::default()
        };
        events.extend([Event::Summary(Box::new(summary)), Event::Finished]);
        parse(&client(&events, Style::Json).0)
    };
    let known = &document(Some(4))["end"]["sum_sent"];
    assert_eq!(
        (&known["retransmits"], &known["bytes"]),
        (&json!(7), &json!(2000))
    );
    assert_eq!(document(None)["end"]["sum_sent"].get("retransmits"), None);
}

#[test]
fn absurd_numbers_of_a_peer_are_printed_not_fatal() {
    let mut absurd = UdpTotals::new(u64::MAX, u64::MAX, u64::MAX, f64::NAN);
    absurd.omitted_packets = Some(u64::MAX);
    absurd.omitted_lost = Some(0);

    let mut events = udp_test(Duration::ZERO, absurd, absurd);
    let Some(Event::Summary(summary)) = events.get_mut(1) else {
        panic!("the summary comes second");
    };
    let stream = summary.streams[0].clone();
    summary.streams.push(stream);

    for half in summary.streams.iter_mut().filter_map(|s| s.sender.as_mut()) {
        (half.bytes, half.duration_ns) = (u64::MAX, u64::MAX);
    }

    assert!(client(&events, Style::Text).0.ends_with("iperf Done.\n"));
    assert_eq!(
        parse(&client(&events, Style::Json).0)["end"]["sum_sent"]["bytes"],
        u64::MAX
    );
}

#[test]
fn time_and_title_stand_before_every_line_also_the_empty_one() {
    let mut prefixed = options(Endpoint::Client, Style::Text);
    prefixed.timestamps = Some("T%% ".into());
    prefixed.title = Some("lab".into());

    let (text, _) = run(&[Event::Finished], prefixed.clone());
    assert_eq!(text, "T% lab:  \nT% lab:  iperf Done.\n");
    let (_, errors) = run(
        &[Event::Failed(failure(FailureKind::Error, "no luck"))],
        prefixed,
    );
    assert_eq!(errors, "T% iperf3: error - no luck\n");
}

#[test]
fn a_verbose_client_tells_who_it_is_even_if_the_server_is_busy() {
    let control = ControlConnected {
        local: "127.0.0.1:40000".parse().expect("an address"),
        remote: "127.0.0.1:5201".parse().expect("an address"),
        mss_bytes: None,
        chosen_block_len_bytes: None,
    };
    let busy = failure(
        FailureKind::Error,
        "the server is busy running a test. try again later",
    );
    let mut verbose = options(Endpoint::Client, Style::Text);
    verbose.verbose = true;

    let (text, errors) = run(
        &[Event::ControlConnected(control), Event::Failed(busy)],
        verbose,
    );
    assert_eq!(text, "iperf 3.21\nhost\n");
    assert_eq!(
        errors,
        "iperf3: error - the server is busy running a test. try again later\n"
    );
}

fn options(endpoint: Endpoint, style: Style) -> Options {
    let mut options = Options {
        version: "iperf 3.21".into(),
        system_info: "host".into(),
        ..Options::new(endpoint)
    };
    options.style = style;
    options
}

fn client(events: &[Event], style: Style) -> (String, String) {
    run(events, options(Endpoint::Client, style))
}

fn server(events: &[Event], style: Style) -> (String, String) {
    run(events, options(Endpoint::Server, style))
}

fn run(events: &[Event], options: Options) -> (String, String) {
    let (output, normal, errors) = captured_output();
    let mut sink = client_sink(options, output);

    // Not through the form in which they are stored, which has no NaN.
    for event in events {
        sink.event(event).expect("memory can be written");
    }
    (normal.text(), errors.text())
}

fn parse(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

fn failure(kind: FailureKind, message: &str) -> Failure {
    Failure::new(kind, message)
}

#[test]
fn stored_header_without_an_interval_has_none() {
    let event = &accepted(&TestSpec::default())[0];
    let mut stored = serde_json::to_value(event).expect("events can be stored");
    let header = stored["test_accepted"].as_object_mut().expect("a header");
    assert!(
        header
            .remove("interval_ns")
            .is_some_and(|interval| interval == 1_000_000_000_u64)
    );

    match serde_json::from_value(stored) {
        Ok(Event::TestAccepted(header)) => assert_eq!(header.interval, None),
        other => panic!("{other:?}"),
    }
}

fn accepted(spec: &TestSpec) -> Vec<Event> {
    let header = TestHeader {
        spec: spec.clone(),
        interval: Some(Duration::from_secs(1)),
        ..TestHeader::default()
    };
    vec![Event::TestAccepted(Box::new(header))]
}

fn interval(start_ns: u64, end_ns: u64, bytes: u64) -> IntervalReport {
    let interval = StreamInterval {
        start_ns,
        end_ns,
        bytes,
        ..StreamInterval::default()
    };
    IntervalReport::new(vec![interval])
}

/// Two seconds of UDP on one stream.
fn udp_test(omit: Duration, sender: UdpTotals, receiver: UdpTotals) -> Vec<Event> {
    let spec = TestSpec {
        transport: Transport::Udp,
        omit,
        ..TestSpec::default()
    };

    let mut events = accepted(&spec);
    let stream = StreamSummary {
        sender: Some(half(1000, Some(sender))),
        receiver: Some(half(900, Some(receiver))),
        ..StreamSummary::default()
    };

    let summary = Summary {
        streams: vec![stream],
        ..Summary::default()
    };
    events.extend([Event::Summary(Box::new(summary)), Event::Finished]);
    events
}

fn half(bytes: u64, udp: Option<UdpTotals>) -> EndpointTotals {
    EndpointTotals::new(bytes, 2_000_000_000, udp)
}

fn udp(packets: u64, lost: u64) -> UdpTotals {
    UdpTotals {
        packets,
        lost,
        jitter_s: 0.002,
        omitted_packets: Some(0),
        omitted_lost: Some(0),
        ..UdpTotals::default()
    }
}
