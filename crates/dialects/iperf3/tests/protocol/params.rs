//! Tables of what is sent and what is refused.

use std::time::Duration;

use linerate_iperf3::wire::{ErrorCode, Params};
use linerate_model::spec::{ClientSpec, Segmentation, SendPath, SequenceCheck};
use linerate_model::{Direction, EndCondition, TestSpec, Transport};
use proptest::prelude::*;

use crate::pair::client_spec as client;

fn parse(text: &str) -> Result<Params, ErrorCode> {
    Params::parse(text.as_bytes())
}

/// The text we send, without the two keys that name us.
fn sent(spec: &ClientSpec, len: u32) -> String {
    let text =
        String::from_utf8(Params::from_client(spec, len, None).to_json()).expect("JSON is UTF-8");
    let (before, after) = text
        .split_once(",\"client_version\":")
        .expect("we name our version");
    assert!(after.starts_with("\"3.22 (linerate "), "{after}");
    assert!(
        after.ends_with("\",\"linerate\":{\"protocol\":1}}"),
        "{after}"
    );

    before.to_owned()
}

#[test]
fn an_empty_object_is_a_plain_test() {
    let params = parse("{}").expect("every key is optional");
    assert_eq!(params, Params::default());
    assert_eq!(
        params.to_spec().end,
        EndCondition::Duration(Duration::from_secs(10))
    );
    assert_eq!(params.to_spec().block_len_bytes, 131_072);
    assert_eq!(parse("[]"), Ok(Params::default()));
    assert_eq!(parse("null"), Ok(Params::default()));
}

#[test]
fn what_is_not_json_is_refused() {
    for text in ["", "{", "{\"time\":}", "tcp"] {
        assert_eq!(parse(text), Err(ErrorCode::RecvParams), "{text}");
    }
}

#[test]
fn values_are_refused_just_outside_their_range_and_accepted_just_inside() {
    let rows: &[(&str, &[&str], &[&str], ErrorCode)] = &[
        ("omit", &["0", "600"], &["-1", "601"], ErrorCode::Omit),
        (
            "server_affinity",
            &["0", "1024"],
            &["-1", "1025"],
            ErrorCode::Affinity,
        ),
        (
            "time",
            &["0", "86400"],
            &["-1", "86401"],
            ErrorCode::Duration,
        ),
        (
            "num",
            &["0", "9223372036854775807"],
            &["-1"],
            ErrorCode::RecvParams,
        ),
        ("blockcount", &["0", "1e18"], &["-1"], ErrorCode::RecvParams),
        ("MSS", &["0", "32767"], &["-1", "32768"], ErrorCode::Mss),
        (
            "parallel",
            &["1", "128", "1.9"],
            &["0", "-1", "129", "0.9"],
            ErrorCode::NumStreams,
        ),
        (
            "window",
            &["0", "536870912"],
            &["-1", "536870913"],
            ErrorCode::BufSize,
        ),
        (
            "len",
            &["1", "1048576"],
            &["0", "-1", "1048577"],
            ErrorCode::BlockSize,
        ),
        (
            "bandwidth",
            &["0", "18446744073709551615"],
            &["-1"],
            ErrorCode::RecvParams,
        ),
        (
            "burst",
            &["1", "1000"],
            &["0", "1001", "-1"],
            ErrorCode::Burst,
        ),
        ("gso", &["0", "2"], &["-1"], ErrorCode::RecvParams),
        ("gro", &["0", "1"], &["-1", "2"], ErrorCode::RecvParams),
        (
            "gso_bf_size",
            &["0", "1000000"],
            &["-1"],
            ErrorCode::RecvParams,
        ),
        ("TOS", &["0", "255"], &["-1", "256"], ErrorCode::BadTos),
        (
            "flowlabel",
            &["1", "1048575"],
            &["0", "1048576", "-1"],
            ErrorCode::SetFlow,
        ),
    ];
    for (key, inside, outside, code) in rows {
        for value in *inside {
            assert!(
                parse(&format!("{{\"{key}\":{value}}}")).is_ok(),
                "{key} {value}"
            );
        }

        for value in *outside {
            assert_eq!(
                parse(&format!("{{\"{key}\":{value}}}")),
                Err(*code),
                "{key} {value}"
            );
        }
    }
}

#[test]
fn udp_needs_a_length_that_fits_a_datagram() {
    for (len, ok) in [
        ("16", true),
        ("65507", true),
        ("15", false),
        ("65508", false),
        ("0", false),
    ] {
        let got = parse(&format!("{{\"udp\":true,\"len\":{len}}}"));
        assert_eq!(got.is_ok(), ok, "{len}");
        assert!(ok || got == Err(ErrorCode::UdpBlockSize));
    }

    assert_eq!(parse(r#"{"udp":true}"#), Err(ErrorCode::UdpBlockSize));
}

#[test]
fn only_linerate_clients_ask_for_facts() {
    let asks = |additions: &str| {
        let text = format!("{{\"tcp\":true,\"time\":1,\"parallel\":1,\"len\":1000{additions}}}");
        Params::parse(text.as_bytes()).map(|params| params.to_spec().want_peer_facts)
    };
    assert_eq!(
        asks(",\"linerate\":{\"protocol\":1,\"facts\":true}"),
        Ok(true)
    );

    for silent in [
        "",
        ",\"facts\":true",
        ",\"linerate\":{\"protocol\":1}",
        ",\"linerate\":{\"facts\":true}",
    ] {
        assert_eq!(asks(silent), Ok(false), "{silent}");
    }
}

#[test]
fn only_linerate_clients_get_many_streams() {
    let many = |n: u32, extra: &str| parse(&format!("{{\"parallel\":{n}{extra}}}"));
    let ours = ",\"linerate\":{\"protocol\":1}";
    assert_eq!(many(129, ""), Err(ErrorCode::NumStreams));
    assert!(many(16384, ours).is_ok_and(|p| p.peer_is_linerate()));
    assert_eq!(many(16385, ours), Err(ErrorCode::NumStreams));

    for not_ours in [
        ",\"linerate\":1",
        ",\"linerate\":{}",
        ",\"linerate\":{\"protocol\":0}",
    ] {
        assert_eq!(
            many(129, not_ours),
            Err(ErrorCode::NumStreams),
            "{not_ours}"
        );
    }
}

#[test]
fn values_of_the_wrong_type_are_absent() {
    let params = parse(
        r#"{"tcp":1,"time":"5","title":7,"authtoken":{},"nodelay":1,"reverse":false,"mptcp":null}"#,
    );
    assert_eq!(params, Ok(Params::default()));
    let both = parse(r#"{"tcp":true,"udp":true,"len":1000}"#).expect("valid");
    assert_eq!(both.transport, Transport::Udp);
}

#[test]
fn presence_counts_for_some_switches_and_the_value_for_others() {
    let params = parse(
        r#"{"get_server_output":0,"udp_counters_64bit":0,"repeating_payload":0,"zerocopy":0}"#,
    );
    let params = params.expect("valid");
    assert!(params.get_server_output && params.udp_counters_64bit && params.repeating_payload);
    assert!(params.send_path == SendPath::Auto);
}

#[test]
fn invalid_utf8_and_trailing_bytes_do_not_matter() {
    let params = Params::parse(b"{\"title\":\"a\xff\",\"time\":3}\0garbage").expect("lenient");
    assert_eq!(
        (params.title.as_deref(), params.time_s),
        (Some("a\u{fffd}"), 3)
    );
}

#[test]
fn a_tcp_client_sends_what_the_original_sends() {
    let mut test = TestSpec {
        end: EndCondition::Duration(Duration::from_secs(1)),
        ..TestSpec::default()
    };
    test.pacing.rate_bps = Some(20_000_000);
    test.pacing.timer_us = 1000;
    assert_eq!(
        sent(&client(test), 131_072),
        "{\"tcp\":true,\"omit\":0,\"time\":1,\"num\":0,\"blockcount\":0,\"parallel\":1,\"len\":131072,\
         \"bandwidth\":20000000,\"pacing_timer\":1000"
    );
}

#[test]
fn a_udp_client_with_offload_sends_what_the_original_sends() {
    let mut test = TestSpec {
        transport: Transport::Udp,
        direction: Direction::Reverse,
        end: EndCondition::Bytes(5000),
        ..TestSpec::default()
    };

    let as_fits = Segmentation {
        datagram_bytes: 0,
        buffer_bytes: 0,
    };
    test.udp.gso = Some(as_fits);
    test.udp.gro = Some(as_fits);
    test.udp.counters_64bit = true;
    assert_eq!(
        sent(&client(test), 1400),
        "{\"udp\":true,\"omit\":0,\"time\":0,\"num\":5000,\"blockcount\":0,\"parallel\":1,\"reverse\":true,\
         \"len\":1400,\"gso\":1,\"gso_dg_size\":1400,\"gso_bf_size\":64400,\"gro\":1,\"gro_bf_size\":65507,\
         \"udp_counters_64bit\":1"
    );
}

#[test]
fn offload_sizes_of_a_hostile_client_are_bounded() {
    let text = r#"{"udp":true,"len":1000,"gso":7,"gso_dg_size":3,"gso_bf_size":1000000,"gro":1,"gro_bf_size":0}"#;
    let udp = parse(text).expect("the original accepts it").to_spec().udp;
    assert_eq!(
        udp.gso,
        Some(Segmentation {
            datagram_bytes: 1000,
            buffer_bytes: 65507,
        })
    );
    assert_eq!(
        udp.gro,
        Some(Segmentation {
            datagram_bytes: 1000,
            buffer_bytes: 1000,
        })
    );
}

#[test]
fn the_server_sees_the_test_the_client_described() {
    let mut test = TestSpec {
        direction: Direction::Bidirectional,
        streams: 3,
        end: EndCondition::Blocks(77),
        omit: Duration::from_secs(2),
        block_len_bytes: 4096,
        block_len_explicit: true,
        send_path: SendPath::ZeroCopy,
        coalesce: true,
        title: Some("t\u{1b}[2J".to_owned()),
        extra_data: Some("{\"a\":1}".to_owned()),
        want_server_output: true,
        ..TestSpec::default()
    };
    test.pacing.timer_us = 1000;
    test.pacing.burst_blocks = Some(10);
    test.socket.mss_bytes = Some(1400);
    test.socket.tos = 0x10;
    test.socket.congestion = Some("cubic".to_owned());

    let params = Params::from_client(&client(test.clone()), 4096, None);
    assert_eq!(
        Params::parse(&params.to_json()).map(|p| p.to_spec()),
        Ok(test)
    );
}

#[test]
fn the_oldest_name_of_a_path_and_the_newest_are_understood() {
    let path = |text: &str| parse(text).expect("valid").send_path;
    assert_eq!(path("{}"), SendPath::Auto);
    assert_eq!(path("{\"zerocopy\":1}"), SendPath::SendFile);

    for (name, wanted) in SendPath::NAMES {
        assert_eq!(
            path(&format!(
                "{{\"linerate\":{{\"protocol\":1,\"send_path\":\"{name}\"}}}}"
            )),
            wanted
        );
    }

    assert_eq!(
        path("{\"linerate\":{\"protocol\":1,\"send_path\":\"teleport\"}}"),
        SendPath::Auto
    );
    let sent = |send_path| {
        let test = TestSpec {
            send_path,
            ..TestSpec::default()
        };
        String::from_utf8(Params::from_client(&client(test), 131_072, None).to_json())
            .expect("JSON is text")
    };
    assert!(sent(SendPath::SendFile).contains("\"zerocopy\":1"));
    assert!(
        !sent(SendPath::ZeroCopy).contains("\"zerocopy\":1"),
        "a stock server would use sendfile"
    );
}

#[test]
fn what_datagrams_are_checked_travels() {
    let mut test = TestSpec {
        transport: Transport::Udp,
        block_len_bytes: 1000,
        block_len_explicit: true,
        ..TestSpec::default()
    };
    test.udp.check = SequenceCheck::FirstOfBurst;

    let params = Params::from_client(&client(test), 1000, None);
    let read = Params::parse(&params.to_json()).expect("valid");
    assert_eq!(read.to_spec().udp.check, SequenceCheck::FirstOfBurst);
    assert_eq!(
        parse("{\"udp\":true,\"len\":1000}")
            .expect("valid")
            .to_spec()
            .udp
            .check,
        SequenceCheck::EveryDatagram
    );
}

proptest! {
    #[test]
    fn arbitrary_text_is_survived(text: Vec<u8>) {
        crate::fuzzing::params_json(&text);
    }

    #[test]
    fn text_that_looks_right_is_survived(values in proptest::collection::vec(value(), 1..12)) {
        let members: Vec<String> = values.iter().map(|(key, value)| format!("\"{key}\":{value}")).collect();
        crate::fuzzing::params_json(format!("{{{}}}", members.join(",")).as_bytes());
    }
}

fn value() -> impl Strategy<Value = (&'static str, String)> {
    let keys = proptest::sample::select(vec![
        "tcp",
        "udp",
        "sctp",
        "omit",
        "time",
        "num",
        "parallel",
        "len",
        "bandwidth",
        "burst",
        "TOS",
        "title",
        "gso",
        "gro",
        "gso_bf_size",
        "window",
        "MSS",
        "reverse",
        "linerate",
        "client_version",
        "pacing_timer",
        "server_affinity",
    ]);
    let values = prop_oneof![
        any::<i64>().prop_map(|n| n.to_string()),
        any::<f64>()
            .prop_filter("JSON has no other numbers", |n| n.is_finite())
            .prop_map(|n| n.to_string()),
        (0..300_u32).prop_map(|n| n.to_string()),
        any::<bool>().prop_map(|b| b.to_string()),
        ".*".prop_map(|s| serde_json::to_string(&s).expect("a string")),
        Just("{\"protocol\":1}".to_owned()),
    ];
    (keys, values)
}
