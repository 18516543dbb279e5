//! Rules of the iperf 2 output that recordings show only in parts: sums alone, parts left out, headers, failures.

#[path = "support/output.rs"]
mod output;

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use linerate_model::event::{Endpoint, TestHeader};
use linerate_model::stream::{EffectiveOptions, ListenerFacts, SocketFacts};
use linerate_model::summary::{EndpointTotals, StreamSummary};
use linerate_model::{
    Event, EventSink, Failure, Flow, IntervalReport, Stream, StreamId, StreamInterval, StreamRole, Summary, TestSpec,
    Transport,
};
use linerate_report::iperf2::{Excluded, Layout, Options, client_sink, server_reporter};
use output::{Captured, captured_output};

const BLOCK_BYTES: u64 = 128 * 1024;

#[test]
fn sums_alone_are_written_as_recorded() {
    for (release, layout, send_bytes, server_end_ms) in [
        ("218", Layout::V2_1, 151_552, 2_035.9),
        ("221", Layout::V2_2, 69_120, 2_045.5),
    ] {
        let options = |endpoint| Options {
            layout,
            sum_only: true,
            ..Options::new(endpoint)
        };
        let (output, text, _) = captured_output();
        let mut client = client_sink(options(Endpoint::Client), output);
        play(&mut *client, &three_streams(Endpoint::Client, send_bytes, 2_045.5));
        assert_eq!(text.text(), section(release, "=== client stdout ===\n"), "{release}");

        let (output, text, _) = captured_output();
        let mut server = server_reporter(options(Endpoint::Server), output);
        server.listener(&listener()).expect("a writable output");
        let mut test = server.open_test().expect("a writable output");
        play(&mut *test, &three_streams(Endpoint::Server, send_bytes, server_end_ms));
        let expected = section(release, "=== server stdout+stderr (ended with SIGINT) ===\n");
        assert_eq!(text.text(), expected, "{release}");
    }
}

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
    let mut reporter = server_reporter(Options::new(Endpoint::Server), output);
    let mut open = || reporter.open_test().expect("a writable output");
    let headers = |text: &Captured| text.text().lines().filter(|line| line.starts_with("[ ID]")).count();
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
    let mut sink = client_sink(Options::new(Endpoint::Client), output);
    let failure = Failure::error(1, "tcp connect failed: Connection refused");
    let warning = "WARNING: delay too large, reducing from 4.0 to 1.0 seconds.";
    play(&mut *sink, &[Event::Warning(warning.into()), Event::Failed(failure)]);
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
        let mut sink = client_sink(Options::new(Endpoint::Client), output);
        let last = interval(Endpoint::Client, 1, 1_000_000_000, end_ns, BLOCK_BYTES, true);
        play(&mut *sink, &accepted(Endpoint::Client, 1, 85 * 1024));
        play(&mut *sink, &[opened(Endpoint::Client, 0), last]);
        assert_eq!(text.text().contains(" sec "), is_shown, "{end_ns}");
    }
}

/// What a client writes of a test.
fn client_text(excluded: Excluded) -> String {
    let options = Options {
        excluded,
        ..Options::new(Endpoint::Client)
    };
    let (output, text, errors) = captured_output();
    let mut sink = client_sink(options, output);
    play(&mut *sink, &one_stream(Endpoint::Client));
    assert_eq!(errors.text(), "");
    text.text()
}

fn one_stream(endpoint: Endpoint) -> Vec<Event> {
    let mut events = accepted(endpoint, 1, 85 * 1024);
    events.extend([
        opened(endpoint, 0),
        Event::TestStarted,
        interval(endpoint, 1, 0, 1_000_000_000, 60 * BLOCK_BYTES, false),
        summary(endpoint, 1, 1_000_000_000, 60 * BLOCK_BYTES),
        Event::Finished,
    ]);
    events
}

/// The recorded test: three streams of 20 Mbit/s for two seconds.
fn three_streams(endpoint: Endpoint, send_buffer_bytes: u32, end_ms: f64) -> Vec<Event> {
    let mut events = accepted(endpoint, 3, send_buffer_bytes);
    events.extend((0..3).map(|id| opened(endpoint, id)));
    events.extend([
        Event::TestStarted,
        interval(endpoint, 3, 0, 1_000_000_000, 20 * BLOCK_BYTES, false),
        interval(endpoint, 3, 1_000_000_000, 2_000_000_000, 19 * BLOCK_BYTES, false),
        summary(endpoint, 3, (end_ms * 1e6) as u64, 40 * BLOCK_BYTES),
        Event::Finished,
    ]);
    events
}

fn accepted(endpoint: Endpoint, streams: u32, send_buffer_bytes: u32) -> Vec<Event> {
    let spec = TestSpec {
        transport: Transport::Tcp,
        streams,
        ..TestSpec::default()
    };
    let header = TestHeader {
        endpoint,
        peer_host: "10.77.0.2".into(),
        peer_port: 5001,
        cookie: String::new(),
        started_at_unix_ms: 0,
        control_mss_bytes: None,
        spec,
        interval: Some(Duration::from_secs(1)),
        file_name: None,
        first_stream_position: 0,
        first_socket: Some(socket(send_buffer_bytes, 131_072)),
        listener: None,
    };
    vec![Event::TestAccepted(Box::new(header))]
}

fn opened(endpoint: Endpoint, id: u32) -> Event {
    let port = 50_000 + u16::try_from(id).expect("few streams");
    Event::StreamOpened(Stream {
        id: StreamId(id),
        role: role(endpoint),
        flow: Flow::Forward,
        local: ([10, 77, 0, 1], port).into(),
        remote: ([10, 77, 0, 2], 5001).into(),
        effective: EffectiveOptions::default(),
        facts: None,
    })
}

fn interval(endpoint: Endpoint, streams: u32, start_ns: u64, end_ns: u64, bytes: u64, last: bool) -> Event {
    let row = |id| StreamInterval {
        id: StreamId(id),
        role: role(endpoint),
        flow: Flow::Forward,
        start_ns,
        end_ns,
        bytes,
        tcp: None,
        udp: None,
        metrics: None,
    };
    Event::Interval(IntervalReport {
        omitted: false,
        last,
        streams: (0..streams).map(row).collect(),
    })
}

fn summary(endpoint: Endpoint, streams: u32, duration_ns: u64, bytes: u64) -> Event {
    let half = EndpointTotals {
        bytes,
        duration_ns,
        udp: None,
    };
    let of = |id| StreamSummary {
        id: StreamId(id),
        role: role(endpoint),
        flow: Flow::Forward,
        sender: (endpoint == Endpoint::Client).then_some(half),
        receiver: (endpoint == Endpoint::Server).then_some(half),
        tcp: None,
        file: None,
        local_metrics: None,
        peer_metrics: None,
    };
    Event::Summary(Box::new(Summary {
        streams: (0..streams).map(of).collect(),
        ..Summary::default()
    }))
}

fn role(endpoint: Endpoint) -> StreamRole {
    match endpoint {
        Endpoint::Client => StreamRole::Sender,
        Endpoint::Server => StreamRole::Receiver,
    }
}

fn listener() -> ListenerFacts {
    ListenerFacts {
        port: 5001,
        last_port: None,
        socket: socket(0, 131_072),
        is_v6: false,
        group: None,
    }
}

fn socket(send_bytes: u32, receive_bytes: u32) -> SocketFacts {
    SocketFacts {
        effective: EffectiveOptions {
            send_buffer_bytes: Some(send_bytes),
            receive_buffer_bytes: Some(receive_bytes),
            congestion: None,
        },
        mss_bytes: None,
    }
}

fn play(sink: &mut dyn EventSink, events: &[Event]) {
    for event in events {
        sink.event(event).expect("a writable output");
    }
}

fn section(release: &str, start: &str) -> String {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/iperf2");
    let path = root.join(format!("text-{release}/tcp_sumonly_P3.txt"));
    let text = fs::read_to_string(path).expect("the recordings are part of the repository");
    let after = text.split(start).nth(1).expect("a recording of both ends");
    after.split("=== ").next().unwrap_or_default().to_owned()
}
