//! Results of peers, our results, and their merge.

use std::time::Duration;

use linerate_iperf3::wire::{ErrorCode, Results, StreamResult, merge_peer, stream_id, wire_id};
use linerate_model::event::{Endpoint, ServerOutput};
use linerate_model::summary::{StreamSummary, TcpSummary, UdpTotals};
use linerate_model::{
    CpuUsage, Direction, EndpointTotals, Flow, StreamId, StreamRole, Summary, TestSpec, Transport,
};
use proptest::prelude::*;

use crate::fuzzing::sample_results;

const OLD_TCP_RECEIVER: &str = r#"{"cpu_util_total":0.13,"cpu_util_user":0,"cpu_util_system":0.13,
    "sender_has_retransmits":18446744073709551615,"congestion_used":"bbr","streams":[{"id":1,"bytes":2621440,
    "retransmits":18446744073709551615,"jitter":0,"errors":0,"packets":0,"start_time":0,"end_time":0.994667}]}"#;

fn parse(text: &str) -> Result<Results, ErrorCode> {
    Results::parse(text.as_bytes())
}

fn stream(id: u32, role: StreamRole, half: EndpointTotals) -> StreamSummary {
    let mut summary = StreamSummary {
        id: StreamId(id),
        role,
        flow: Flow::Forward,
        ..StreamSummary::default()
    };
    match role {
        StreamRole::Sender => summary.sender = Some(half),
        StreamRole::Receiver => summary.receiver = Some(half),
    }
    summary
}

fn half(bytes: u64, udp: Option<UdpTotals>) -> EndpointTotals {
    EndpointTotals::new(bytes, 1_000_000_000, udp)
}

fn udp_spec(omit_s: u64) -> TestSpec {
    TestSpec {
        transport: Transport::Udp,
        omit: Duration::from_secs(omit_s),
        ..TestSpec::default()
    }
}

#[test]
fn streams_are_numbered_1_3_4() {
    for (index, wire) in [(0, 1), (1, 3), (2, 4), (16383, 16385)] {
        assert_eq!(wire_id(StreamId(index)), wire);
        assert_eq!(stream_id(wire), Some(StreamId(index)));
    }

    assert_eq!(stream_id(0), None);
    assert_eq!(stream_id(2), None);
}

#[test]
fn results_of_old_releases_are_understood() {
    let results = parse(OLD_TCP_RECEIVER).expect("a real capture");
    assert_eq!(results.sender_has_retransmits, -1);
    let stream = &results.streams[0];
    assert_eq!(
        (stream.bytes, stream.retransmits, stream.omitted_errors),
        (2_621_440, None, None)
    );
}

#[test]
fn every_required_key_is_required() {
    for key in [
        "cpu_util_total",
        "cpu_util_user",
        "cpu_util_system",
        "sender_has_retransmits",
        "streams",
        "id",
        "bytes",
        "retransmits",
        "jitter",
        "errors",
        "packets",
    ] {
        let without = OLD_TCP_RECEIVER.replace(&format!("\"{key}\""), "\"other\"");
        assert_eq!(parse(&without), Err(ErrorCode::RecvResults), "{key}");
    }

    for key in ["congestion_used", "start_time", "end_time"] {
        assert!(
            parse(&OLD_TCP_RECEIVER.replace(&format!("\"{key}\""), "\"other\"")).is_ok(),
            "{key}"
        );
    }

    let incomplete = OLD_TCP_RECEIVER.replace("\"packets\"", "\"omitted_packets\":0,\"packets\"");
    assert_eq!(parse(&incomplete), Err(ErrorCode::RecvResults));
}

#[test]
fn nonsense_numbers_become_sane_ones() {
    let text = OLD_TCP_RECEIVER
        .replace("\"cpu_util_total\":0.13", "\"cpu_util_total\":null")
        .replace("\"jitter\":0", "\"jitter\":-1e999")
        .replace("\"bytes\":2621440", "\"bytes\":-5")
        .replace("\"id\":1", "\"id\":-1");
    let results = parse(&text).expect("lenient");
    let stream = &results.streams[0];
    assert_eq!(
        (
            results.cpu.total_percent,
            stream.jitter_s,
            stream.bytes,
            stream.wire_id
        ),
        (0.0, 0.0, 0, 0)
    );
}

#[test]
fn our_text_has_the_keys_of_the_original_in_its_order() {
    let mut summary = Summary {
        streams: vec![
            stream(0, StreamRole::Sender, half(1000, None)),
            stream(1, StreamRole::Sender, half(7, None)),
        ],
        sender_congestion: Some("bbr".to_owned()),
        ..Summary::default()
    };

    for stream in &mut summary.streams {
        let tcp = TcpSummary {
            retransmits: Some(5),
            ..TcpSummary::default()
        };
        stream.tcp = Some(tcp);
    }

    let results = Results::from_summary(&summary, &TestSpec::default(), Endpoint::Client);
    let text = String::from_utf8(results.to_json()).expect("JSON is UTF-8");

    let of_stream = |id, bytes| {
        format!(
            "{{\"id\":{id},\"bytes\":{bytes},\"retransmits\":5,\"jitter\":0,\"errors\":0,\"omitted_errors\":0,\
             \"packets\":0,\"omitted_packets\":0,\"start_time\":0,\"end_time\":1}}"
        )
    };
    let expected = format!(
        "{{\"cpu_util_total\":0,\"cpu_util_user\":0,\"cpu_util_system\":0,\"sender_has_retransmits\":1,\
         \"congestion_used\":\"bbr\",\"streams\":[{},{}]}}",
        of_stream(1, 1000),
        of_stream(3, 7)
    );
    assert_eq!(text, expected);
}

#[test]
fn receiver_sends_its_role() {
    let summary = Summary {
        streams: vec![stream(0, StreamRole::Receiver, half(9, None))],
        receiver_congestion: Some("cubic".to_owned()),
        ..Summary::default()
    };
    let results = Results::from_summary(&summary, &TestSpec::default(), Endpoint::Server);
    assert_eq!(results.sender_has_retransmits, -1);
    assert_eq!(results.streams[0].retransmits, None);
    assert_eq!(results.congestion_used.as_deref(), Some("cubic"));
    assert!(String::from_utf8_lossy(&results.to_json()).contains("\"retransmits\":-1,"));
}

#[test]
fn the_servers_report_is_carried_as_text_or_as_json() {
    let mut results = sample_results();
    for output in [
        ServerOutput::Text("a\n\"b\"".to_owned()),
        ServerOutput::Json("{\"start\":{},\"x\":[1]}".to_owned()),
    ] {
        results.server_output = Some(output.clone());
        let got = Results::parse(&results.to_json()).expect("our own text");
        assert_eq!(got.server_output, Some(output));
    }
}

#[test]
fn the_peer_completes_the_summary_of_a_tcp_sender() {
    let mut summary = Summary {
        streams: vec![stream(0, StreamRole::Sender, half(2_700_000, None))],
        sender_congestion: Some("cubic".to_owned()),
        ..Summary::default()
    };
    let peer = parse(OLD_TCP_RECEIVER).expect("a real capture");
    merge_peer(&mut summary, &TestSpec::default(), &peer).expect("a known stream");

    let receiver = summary.streams[0].receiver.expect("the peer sent it");
    assert_eq!(
        (receiver.bytes, receiver.duration_ns),
        (2_621_440, 994_667_000)
    );
    assert_eq!(summary.receiver_congestion.as_deref(), Some("bbr"));
    assert_eq!(summary.sender_congestion.as_deref(), Some("cubic"));
    assert_eq!(summary.cpu_remote.map(|cpu| cpu.total_percent), Some(0.13));
}

#[test]
fn peer_reports_retransmits_to_a_receiver_if_it_counts_them() {
    let spec = TestSpec {
        direction: Direction::Reverse,
        ..TestSpec::default()
    };

    for (has_retransmits, expected) in [(1, Some(Some(4))), (0, None), (-1, None)] {
        let mut summary = Summary {
            streams: vec![stream(0, StreamRole::Receiver, half(1, None))],
            ..Summary::default()
        };
        let mut peer = sample_results();
        peer.sender_has_retransmits = has_retransmits;
        peer.streams[0].retransmits = Some(4);
        peer.congestion_used = Some("bbr".to_owned());
        merge_peer(&mut summary, &spec, &peer).expect("a known stream");
        assert_eq!(summary.streams[0].tcp.map(|tcp| tcp.retransmits), expected);
        assert_eq!(summary.sender_congestion.as_deref(), Some("bbr"));
    }
}

#[test]
fn losses_of_the_warm_up_are_unknown_when_an_old_peer_lost_something() {
    let rows = [(0, 3, Some(0)), (1, 0, Some(0)), (1, 3, None)];
    for (omit_s, errors, expected) in rows {
        let udp = UdpTotals {
            packets: 80,
            omitted_packets: Some(40),
            ..UdpTotals::default()
        };

        let mut summary = Summary {
            streams: vec![stream(0, StreamRole::Sender, half(1, Some(udp)))],
            ..Summary::default()
        };
        let mut peer = sample_results();
        peer.streams[0].errors = errors;
        peer.streams[0].omitted_errors = None;
        peer.streams[0].omitted_packets = None;
        merge_peer(&mut summary, &udp_spec(omit_s), &peer).expect("a known stream");

        let udp = summary.streams[0]
            .receiver
            .and_then(|half| half.udp)
            .expect("a UDP receiver");
        assert_eq!(
            (udp.lost, udp.omitted_lost),
            (errors, expected),
            "omit {omit_s} s"
        );
    }
}

#[test]
fn a_sending_peers_echo_of_our_losses_is_not_its_own() {
    let mut summary = Summary {
        streams: vec![stream(
            0,
            StreamRole::Receiver,
            half(1, Some(UdpTotals::default())),
        )],
        ..Summary::default()
    };
    let mut peer = sample_results();
    peer.streams[0].errors = 9;
    peer.streams[0].jitter_s = 0.5;
    peer.streams[0].packets = 100;
    merge_peer(&mut summary, &udp_spec(0), &peer).expect("a known stream");

    let udp = summary.streams[0]
        .sender
        .and_then(|half| half.udp)
        .expect("a UDP sender");
    assert_eq!((udp.packets, udp.lost, udp.jitter_s), (100, 0, 0.0));
}

#[test]
fn unknown_streams_are_fatal_and_missing_ones_are_not() {
    let mut summary = Summary {
        streams: vec![
            stream(0, StreamRole::Sender, half(1, None)),
            stream(1, StreamRole::Sender, half(1, None)),
        ],
        ..Summary::default()
    };
    let mut peer = sample_results();
    merge_peer(&mut summary, &TestSpec::default(), &peer).expect("a known stream");
    assert!(summary.streams[0].receiver.is_some());
    assert_eq!(summary.streams[1].receiver, None);

    for id in [0, 2, 4, u32::MAX] {
        peer.streams[0].wire_id = id;
        let merged = merge_peer(&mut summary, &TestSpec::default(), &peer);
        assert_eq!(merged, Err(ErrorCode::StreamId), "{id}");
    }
}

proptest! {
    #[test]
    fn arbitrary_text_is_survived(text: Vec<u8>) {
        crate::fuzzing::results_json(&text);
    }

    #[test]
    fn results_come_back_from_their_text(results in any_results()) {
        prop_assert_eq!(Results::parse(&results.to_json()), Ok(results));
    }
}

fn any_results() -> impl Strategy<Value = Results> {
    let count = 0..=i64::MAX as u64;
    let counts = (
        count.clone(),
        count.clone(),
        count.clone(),
        proptest::option::of((count.clone(), count)),
    );

    let seconds = || 0.0..1e6_f64;
    let stream = (
        1..40_u32,
        counts,
        proptest::option::of(0..1_000_000_u64),
        seconds(),
        proptest::option::of(seconds()),
    );
    let stream = stream.prop_map(
        |(wire_id, (bytes, errors, packets, omitted), retransmits, jitter_s, end_time_s)| {
            StreamResult {
                wire_id,
                bytes,
                retransmits,
                jitter_s,
                errors,
                omitted_errors: omitted.map(|o| o.0),
                packets,
                omitted_packets: omitted.map(|o| o.1),
                start_time_s: end_time_s.map(|_| 0.0),
                end_time_s,
            }
        },
    );

    let text = || proptest::option::of(".*");
    (
        proptest::collection::vec(stream, 0..5),
        -1..=1_i64,
        text(),
        text(),
        any::<bool>(),
        seconds(),
    )
        .prop_map(
            |(streams, sender_has_retransmits, congestion_used, output, linerate, cpu)| Results {
                cpu: CpuUsage {
                    total_percent: cpu,
                    user_percent: cpu / 2.0,
                    system_percent: cpu / 3.0,
                },
                sender_has_retransmits,
                congestion_used,
                server_output: output.map(ServerOutput::Text),
                streams,
                linerate,
                ran_beside: linerate.then_some(3),
                overflows: linerate.then_some(7),
                facts: linerate.then(|| r#"{"host":"b"}"#.to_owned()),
            },
        )
}

#[test]
fn facts_of_a_host_are_passed_on_unread_but_not_at_any_length() {
    let with = |facts: &str| {
        let text = format!(
            r#"{{"cpu_util_total":0,"cpu_util_user":0,"cpu_util_system":0,"sender_has_retransmits":0,"streams":[],"linerate":{{"protocol":1,"facts":{facts}}}}}"#
        );
        Results::parse(text.as_bytes()).expect("results").facts
    };
    assert_eq!(
        with(r#"{"any":[1,{"thing":null}]}"#).as_deref(),
        Some(r#"{"any":[1,{"thing":null}]}"#)
    );

    for nothing in ["null", "1", "[]", "\"{}\""] {
        assert_eq!(with(nothing), None, "{nothing}");
    }

    assert_eq!(
        with(&format!("{{\"a\":\"{}\"}}", "x".repeat(1 << 20))),
        None
    );
}
