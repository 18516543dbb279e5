use linerate_model::path::{EndpointPhase, LoadSample, PhaseKind, PhaseSpec, PhaseTransport};
use proptest::prelude::*;

use super::*;

fn spec() -> PhaseSpec {
    PhaseSpec {
        kind: PhaseKind::Down,
        direction: None,
        transport: PhaseTransport::Tcp,
        streams_max: 4,
        probe_flows: 1,
        duration_max: std::time::Duration::from_secs(8),
        rate_bps: Some(5_000_000),
        connections_per_s: None,
        datagram_bytes: 0,
        bytes_max: None,
        congestion: Some("bbr".to_owned()),
        dscp: 46,
        raw: false,
        hops: false,
        transaction: None,
    }
}

fn hello() -> Hello {
    Hello {
        program: "linerate 0.9".to_owned(),
        features: vec!["facts".to_owned()],
        token: Some(TokenProof {
            name: "lab".to_owned(),
            proof: "01".repeat(32),
        }),
        streams_max: 16,
        duration_max_ns: 60_000_000_000,
        wants: vec![PhaseKind::Idle, PhaseKind::Down],
        wants_facts: true,
        ..Hello::default()
    }
}

fn welcome() -> Welcome {
    Welcome {
        program: "linerate 0.9".to_owned(),
        session: "s1".to_owned(),
        resume_secret: "ab".repeat(32),
        flow_secret: "cd".repeat(32),
        server_ns: u64::MAX,
        boot_id: Some("ef".repeat(32)),
        clock_error_ns: Some(5),
        realtime_offset_ns: Some(-7),
        concurrent: 3,
        limits: Limits {
            streams_max: Some(8),
            ..Limits::default()
        },
        ..Welcome::default()
    }
}

fn json(text: &str) -> JsonText {
    JsonText::new(text.to_owned()).expect("JSON")
}

fn client_messages() -> Vec<ClientMessage> {
    vec![
        ClientMessage::Hello(Box::new(hello())),
        ClientMessage::OpenPhase {
            phase: 1,
            spec: spec(),
        },
        ClientMessage::Start { phase: 1 },
        ClientMessage::Stop { phase: u32::MAX },
        ClientMessage::Clock { sent_ns: u64::MAX },
        ClientMessage::WantFacts,
        ClientMessage::Request {
            name: "http.info".to_owned(),
            body: json("{\"peer\":null}"),
        },
        ClientMessage::Keep,
        ClientMessage::Resume(Resume {
            session: "s1".to_owned(),
            number: 7,
            received: 6,
            proof: "23".repeat(32),
        }),
        ClientMessage::Fault(Fault {
            member: "spec.kind".to_owned(),
            text: "\"{}\"".to_owned(),
        }),
        ClientMessage::Bye,
    ]
}

fn server_messages() -> Vec<ServerMessage> {
    let sample = LoadSample {
        at_ns: 100_000_000,
        down_bytes: 1,
        up_bytes: 2,
        streams: 3,
    };
    vec![
        ServerMessage::Prove {
            proof: "01".repeat(32),
        },
        ServerMessage::Welcome(Box::new(welcome())),
        ServerMessage::Turn(Turn {
            position: 2,
            wait_ms: 30_000,
        }),
        ServerMessage::Refused(Refusal {
            clause: "streams".to_owned(),
            text: "too many".to_owned(),
            limit: Some("8".to_owned()),
        }),
        ServerMessage::Ready(Ready {
            phase: 1,
            streams: vec!["01".repeat(16); 3],
            flows: vec![FlowGrant {
                flow: 9,
                token: "45".repeat(16),
            }],
            probes: vec!["67".repeat(16)],
            notes: vec!["no MPTCP".to_owned()],
        }),
        ServerMessage::Started { phase: 1, at_ns: 5 },
        ServerMessage::PhaseResult {
            phase: 1,
            result: Box::new(EndpointPhase {
                elapsed_ns: 9,
                load: vec![sample; 3],
                ..EndpointPhase::default()
            }),
        },
        ServerMessage::Clock(ClockReply {
            sent_ns: 1,
            received_ns: 2,
            replied_ns: 3,
        }),
        ServerMessage::Facts {
            facts: json("{\"a\": [1, 2.5]}"),
        },
        ServerMessage::Response {
            body: json("[\"}\"]"),
        },
        ServerMessage::RequestRefused {
            clause: "request".to_owned(),
            text: "not known".to_owned(),
        },
        ServerMessage::Fault(Fault {
            member: "n".to_owned(),
            text: "no number".to_owned(),
        }),
        ServerMessage::Resumed { received: 4 },
        ServerMessage::Keep,
        ServerMessage::Bye {
            reason: "server stops".to_owned(),
        },
    ]
}

fn survives<M: Message + Clone + PartialEq + std::fmt::Debug>(messages: Vec<M>) {
    for message in messages {
        let number = if message.is_numbered() { 5 } else { 0 };
        let envelope = Envelope {
            number,
            received: 77,
            message,
        };
        let frame = encode(&envelope).expect("short enough");
        let text = FrameReader::new(M::MAX_BYTES)
            .read(&mut &frame[..])
            .expect("a frame")
            .expect("whole");
        assert_eq!(
            decode(&text),
            Ok(envelope),
            "{}",
            String::from_utf8_lossy(&text)
        );
    }
}

#[test]
fn every_message_survives() {
    survives(client_messages());
    survives(server_messages());
}

#[test]
fn the_text_of_a_message_is_flat_json_with_its_numbers() {
    let text = |envelope| {
        String::from_utf8(encode(&envelope).expect("short")[4..].to_vec()).expect("UTF-8")
    };
    let start = Envelope {
        number: 3,
        received: 2,
        message: ClientMessage::Start { phase: 1 },
    };
    assert_eq!(text(start), r#"{"type":"start","n":3,"got":2,"phase":1}"#);

    let keep = Envelope {
        number: 0,
        received: 2,
        message: ClientMessage::Keep,
    };
    assert_eq!(text(keep), r#"{"type":"keep","got":2}"#);
}

#[test]
fn unknown_members_are_ignored_and_members_come_in_any_order() {
    let text = br#" {"phase":4,"future":{"a":[1]},"got":1,"n":2,
        "type":"start"} "#;
    let expected = Envelope {
        number: 2,
        received: 1,
        message: ClientMessage::Start { phase: 4 },
    };
    assert_eq!(decode(text), Ok(expected));
}

#[test]
fn a_fault_names_the_member() {
    let open = |spec: &str| format!(r#"{{"type":"open_phase","n":1,"phase":1,"spec":{spec}}}"#);
    let rows: &[(&str, String, &str)] = &[
        ("no JSON", "hello".into(), "message"),
        ("empty object", "{}".into(), "type"),
        ("array", "[]".into(), "message"),
        ("cut", r#"{"type":"keep""#.into(), "type"),
        ("trailing", r#"{"type":"keep"}x"#.into(), "message"),
        ("type of a wrong type", r#"{"type":5}"#.into(), "type"),
        ("unknown type", r#"{"type":"explode","n":1}"#.into(), "type"),
        (
            "type of the other direction",
            r#"{"type":"welcome","n":1}"#.into(),
            "type",
        ),
        ("number is text", r#"{"type":"bye","n":"1"}"#.into(), "n"),
        ("number is negative", r#"{"type":"bye","n":-1}"#.into(), "n"),
        ("number is missing", r#"{"type":"bye"}"#.into(), "n"),
        (
            "number where none belongs",
            r#"{"type":"keep","n":1}"#.into(),
            "n",
        ),
        (
            "acknowledgement is a fraction",
            r#"{"type":"keep","got":1.5}"#.into(),
            "got",
        ),
        (
            "member is missing",
            r#"{"type":"start","n":1}"#.into(),
            "phase",
        ),
        (
            "member twice",
            r#"{"type":"start","n":1,"phase":1,"phase":2}"#.into(),
            "phase",
        ),
        (
            "member is null",
            r#"{"type":"start","n":1,"phase":null}"#.into(),
            "phase",
        ),
        (
            "member is an array",
            "{\"type\":\"start\",\"n\":1,\n\"phase\":[1]}".into(),
            "phase",
        ),
        (
            "member is too large",
            r#"{"type":"start","n":1,"phase":4294967296}"#.into(),
            "phase",
        ),
        (
            "not a number",
            r#"{"type":"clock","sent_ns":NaN}"#.into(),
            "sent_ns",
        ),
        (
            "infinite",
            r#"{"type":"clock","sent_ns":Infinity}"#.into(),
            "sent_ns",
        ),
        (
            "beyond every float",
            r#"{"type":"clock","sent_ns":1e999}"#.into(),
            "sent_ns",
        ),
        (
            "proof too short",
            with_token(r#"{"name":"lab","proof":"ab"}"#),
            "token.proof",
        ),
        (
            "token without a proof",
            with_token(r#"{"name":"lab"}"#),
            "token.proof",
        ),
        ("token that is a name", with_token("\"lab\""), "token"),
        (
            "spec is missing",
            r#"{"type":"open_phase","n":1,"phase":1}"#.into(),
            "spec",
        ),
        ("member of a member is missing", open("{}"), "spec.kind"),
        ("unknown kind", open(r#"{"kind":"sideways"}"#), "spec.kind"),
        (
            "unknown transport",
            open(r#"{"kind":"up","transport":"pigeon"}"#),
            "spec.transport",
        ),
        (
            "DSCP of 64",
            open(
                r#"{"kind":"up","transport":"tcp","streams_max":1,"probe_flows":1,"duration_max_ns":1,"dscp":64}"#,
            ),
            "spec.dscp",
        ),
        ("name too long", long_name(257), "program"),
        (
            "name with a control character",
            long_name(3).replace("aaa", "a\\u0007a"),
            "program",
        ),
        (
            "name of a request too long",
            request(&"a".repeat(257), "0"),
            "name",
        ),
        (
            "body of a request too long",
            request("a", &format!("\"{}\"", "b".repeat(8191))),
            "body",
        ),
        (
            "request without a body",
            r#"{"type":"request","n":1,"name":"a"}"#.into(),
            "body",
        ),
        (
            "unknown phase",
            long_name(3).replace("[]", r#"["idle","fly"]"#),
            "wants.1",
        ),
    ];
    for (name, text, member) in rows {
        let fault = decode::<ClientMessage>(text.as_bytes()).expect_err(name);
        assert_eq!(fault.member, *member, "{name}: {fault}");
        assert!(fault.text.chars().count() <= TEXT_MAX_CHARS, "{name}");
    }

    assert!(decode::<ClientMessage>(long_name(256).as_bytes()).is_ok());
    let longest = request(&"a".repeat(256), &format!("\"{}\"", "b".repeat(8190)));
    assert!(decode::<ClientMessage>(longest.as_bytes()).is_ok());
}

fn request(name: &str, body: &str) -> String {
    format!(r#"{{"type":"request","n":1,"name":"{name}","body":{body}}}"#)
}

fn long_name(len: usize) -> String {
    let name = "a".repeat(len);
    format!(
        r#"{{"type":"hello","n":1,"minor":0,"program":"{name}","streams_max":1,"duration_max_ns":1,"wants":[]}}"#
    )
}

fn with_token(token: &str) -> String {
    long_name(3).replace("\"wants\"", &format!("\"token\":{token},\"wants\""))
}

#[test]
fn text_that_is_not_utf_8_is_refused_with_its_member() {
    for (text, member) in [
        (&b"{\"type\":\"bye\",\"n\":1,\"x\":\"\xff\"}"[..], "x"),
        (b"\xff", "message"),
        (b"{\"a\":{\"b\":\"\xc3\"}}", "a.b"),
    ] {
        let fault = decode::<ClientMessage>(text).expect_err("not UTF-8");
        assert_eq!(
            (fault.member.as_str(), fault.text.as_str()),
            (member, "not UTF-8")
        );
    }
}

#[test]
fn sixteen_levels_are_read_and_seventeen_are_refused() {
    let nested = |levels: usize| {
        format!(
            r#"{{"type":"keep","x":{}{}}}"#,
            "[".repeat(levels),
            "]".repeat(levels)
        )
    };
    assert!(decode::<ClientMessage>(nested(15).as_bytes()).is_ok());
    let fault = decode::<ClientMessage>(nested(16).as_bytes()).expect_err("too deep");
    assert!(fault.member.starts_with("x.0"), "{fault}");
    assert_eq!(fault.text, "nested deeper than 16");
    assert!(decode::<ClientMessage>(nested(8000).as_bytes()).is_err());
    assert_eq!(JsonText::new("[".repeat(16) + &"]".repeat(16)), None);
    assert!(JsonText::new("[".repeat(15) + &"]".repeat(15)).is_some());
    assert_eq!(JsonText::new("{".to_owned()), None);
}

#[test]
fn lists_of_the_server_are_bounded() {
    let refused = |message: ServerMessage| {
        let frame = encode(&Envelope {
            number: 1,
            received: 0,
            message,
        })
        .expect("short enough");
        decode::<ServerMessage>(&frame[4..])
            .expect_err("too many")
            .member
    };
    let token = || "01".repeat(16);
    let ready = Ready {
        streams: vec![token(); 200],
        probes: vec![token(); 57],
        ..Ready::default()
    };
    assert_eq!(refused(ServerMessage::Ready(ready)), "probes");

    let ready = Ready {
        flows: vec![FlowGrant {
            flow: 0,
            token: "zz".repeat(16),
        }],
        ..Ready::default()
    };
    assert_eq!(refused(ServerMessage::Ready(ready)), "flows.token");
    let result = EndpointPhase {
        load: vec![LoadSample::default(); 6001],
        ..EndpointPhase::default()
    };
    assert_eq!(
        refused(ServerMessage::PhaseResult {
            phase: 1,
            result: Box::new(result)
        }),
        "result.load"
    );

    let wrong = Welcome {
        flow_secret: "AB".repeat(32),
        ..welcome()
    };
    assert_eq!(
        refused(ServerMessage::Welcome(Box::new(wrong))),
        "flow_secret"
    );
}

#[test]
fn explanations_are_cut_and_lose_characters_that_act_on_a_terminal() {
    let text = "\u{1b}[31m".to_owned() + &"é".repeat(400);
    let message = ServerMessage::Refused(Refusal {
        clause: "c".to_owned(),
        text,
        limit: None,
    });
    let frame = encode(&Envelope {
        number: 1,
        received: 0,
        message,
    })
    .expect("short enough");
    let Ok(Envelope {
        message: ServerMessage::Refused(Refusal { text, .. }),
        ..
    }) = decode(&frame[4..])
    else {
        panic!("a refusal");
    };
    assert!(text.starts_with("\u{fffd}[31mé"));
    assert_eq!(text.chars().count(), 256);
}

#[test]
fn a_message_beyond_the_bound_is_not_written() {
    let message = ClientMessage::Fault(Fault {
        member: String::new(),
        text: "x".repeat(16 << 10),
    });
    let fault = encode(&Envelope {
        number: 1,
        received: 0,
        message,
    })
    .expect_err("too long");
    assert_eq!(fault.member, "length");
}

#[test]
fn secrets_do_not_appear_in_debug_output() {
    let hello = Hello {
        password: Some("hunter2".to_owned()),
        ..hello()
    };
    let ready = Ready {
        streams: vec!["ab".repeat(16)],
        ..Ready::default()
    };
    let text = format!("{hello:?} {:?} {ready:?}", welcome());
    assert!(
        !text.contains("hunter2") && !text.contains("abab") && !text.contains("cdcd"),
        "{text}"
    );
}

proptest! {
    #[test]
    fn any_text_survives_in_a_member(member: String, text in "\\PC{0,200}") {
        let message = ClientMessage::Fault(Fault { member, text });
        let mut checked = message.clone();
        checked.check().expect("cut, not refused");
        let frame = encode(&Envelope { number: 1, received: 0, message }).expect("short enough");
        prop_assert_eq!(decode::<ClientMessage>(&frame[4..]).map(|envelope| envelope.message), Ok(checked));
    }

    #[test]
    fn any_bytes_are_survived(bytes: Vec<u8>, text in "[\\[\\]{}\":,a-z0-9\\\\]{0,60}") {
        let _ = (decode::<ClientMessage>(&bytes), decode::<ServerMessage>(text.as_bytes()));
    }
}
