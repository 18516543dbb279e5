//! Envelopes, bounds and tasks.

use super::*;
use crate::TaskId;
use crate::protocol::line::{ELEMENTS_MAX, STRING_MAX_BYTES};

fn task() -> ArmTask {
    ArmTask {
        task: TaskId(1),
        role: Role::Client,
        peer: "10.0.0.2".parse().expect("an address"),
        port: 5201,
        path: "phys".to_owned(),
        is_reversed: false,
        streams: 1,
        time_ms: 5000,
        omit_ms: 1000,
        delay_ms: 0,
        rate_bps: None,
        congestion: None,
    }
}

fn plan() -> Plan {
    Plan {
        lease_ms: 3000,
        addresses: vec![PathAddress {
            path: "phys".to_owned(),
            address: "10.0.0.1".parse().expect("an address"),
        }],
        ports: Ports {
            first: 5201,
            last: 5209,
        },
        beat_ms: 1000,
    }
}

fn refused(line: &str) -> (FailCode, Option<u64>) {
    let refusal = decode::<CoordinatorMessage>(line.as_bytes()).expect_err(line);
    assert!(refusal.text.len() <= FAIL_TEXT_MAX_BYTES);
    (refusal.code, refusal.seq)
}

#[test]
fn messages_survive_their_line() {
    let run = Some(
        "0199aaaa-0000-7000-8000-000000000001"
            .parse()
            .expect("a run"),
    );
    let arm = PrepareRound {
        round: 3,
        offset_ns: -12,
        tasks: vec![task()],
        admit: Vec::new(),
    };

    for message in [
        CoordinatorMessage::Plan(Box::new(plan())),
        CoordinatorMessage::Arm(Box::new(arm)),
        CoordinatorMessage::Go(StartRound {
            round: 3,
            t0_ns: 5,
            skip: vec![TaskId(2)],
        }),
        CoordinatorMessage::Cancel { round: None },
        CoordinatorMessage::Beat {},
    ] {
        let envelope = Envelope {
            run,
            epoch: 7,
            seq: 42,
            message,
        };
        let line = encode(&envelope).expect("short enough");
        assert!(
            line.starts_with(r#"{"v":1,"run":"0199aaaa-"#) && !line.contains('\n'),
            "{line}"
        );
        assert_eq!(decode(line.as_bytes()), Ok(envelope));
    }
}

#[test]
fn unknown_members_are_ignored_and_unknown_types_are_not() {
    let line = r#"{"v":1,"seq":1,"type":"clock","body":{"c1_ns":5,"later":[1]},"later":{}}"#;
    let envelope = decode::<CoordinatorMessage>(line.as_bytes()).expect("a clock");
    assert_eq!(envelope.message, CoordinatorMessage::Clock { c1_ns: 5 });
    assert_eq!((envelope.run, envelope.epoch), (None, 0));
    assert_eq!(
        refused(r#"{"v":1,"seq":9,"type":"reboot","body":{}}"#),
        (FailCode::Type, Some(9))
    );
    assert_eq!(
        refused(r#"{"v":1,"seq":9,"type":"hello","body":{}}"#),
        (FailCode::Type, Some(9))
    );
}

#[test]
fn wrong_lines_are_refused_with_their_code() {
    let deep = format!(
        r#"{{"v":1,"seq":1,"type":"beat","body":{}1{}}}"#,
        "[".repeat(16),
        "]".repeat(16)
    );
    let long = format!(
        r#"{{"v":1,"seq":1,"type":"{}"}}"#,
        "x".repeat(STRING_MAX_BYTES + 1)
    );
    let wide = format!(
        r#"{{"v":1,"seq":1,"type":"beat","body":[{}0]}}"#,
        "0,".repeat(ELEMENTS_MAX)
    );
    let tasks = vec![serde_json::to_string(&task()).expect("JSON"); CLIENT_TASKS_MAX + 1].join(",");
    let many = format!(
        r#"{{"v":1,"seq":1,"type":"arm","body":{{"round":1,"offset_ns":0,"tasks":[{tasks}]}}}}"#
    );

    let rows = [
        ("", FailCode::Json, None),
        ("nonsense", FailCode::Json, None),
        (r#"{"v":1}"#, FailCode::Json, None),
        (
            r#"{"v":2,"seq":4,"type":"beat"}"#,
            FailCode::Version,
            Some(4),
        ),
        (
            r#"{"v":1,"seq":4,"type":"go","body":{"round":-1}}"#,
            FailCode::Body,
            Some(4),
        ),
        (&deep, FailCode::Limit, None),
        (&long, FailCode::Limit, None),
        (&wide, FailCode::Limit, None),
        (&many, FailCode::Limit, Some(1)),
    ];
    for (line, code, seq) in rows {
        assert_eq!(refused(line), (code, seq), "{line:.80}");
    }
}

#[test]
fn parts_of_a_result_are_numbered_within_sixteen() {
    let line = |part: u32, parts: u32, end: &str| {
        format!(
            r#"{{"v":1,"seq":1,"type":"result","body":{{"round":1,"task":"00000000000000000000000000000001","part":{part},"parts":{parts}{end}}}}}"#
        )
    };
    let end = r#","end":{"outcome":"done"}"#;
    let is_read = |line: String| decode::<AgentMessage>(line.as_bytes()).is_ok();
    assert!(is_read(line(0, 1, end)) && is_read(line(15, 16, "")));

    for wrong in [
        line(0, 0, end),
        line(1, 1, ""),
        line(16, 17, ""),
        line(0, 1, ""),
        line(1, 2, end),
    ] {
        assert!(!is_read(wrong.clone()), "{wrong}");
    }
}

#[test]
fn tasks_beyond_a_bound_are_refused_with_the_member() {
    let capped = ArmTask {
        rate_bps: Some(1_000_000),
        ..task()
    };
    assert_eq!(task().validate(), Ok(()));
    assert_eq!(capped.validate(), Ok(()));

    let rows: [(&str, ArmTask); 11] = [
        (
            "time_ms",
            ArmTask {
                time_ms: 0,
                ..task()
            },
        ),
        (
            "time_ms",
            ArmTask {
                time_ms: 3_600_001,
                ..task()
            },
        ),
        (
            "omit_ms",
            ArmTask {
                omit_ms: u64::MAX,
                ..task()
            },
        ),
        (
            "rate_bps",
            ArmTask {
                rate_bps: Some(0),
                ..task()
            },
        ),
        (
            "delay_ms",
            ArmTask {
                delay_ms: 60_001,
                ..task()
            },
        ),
        (
            "streams",
            ArmTask {
                streams: 0,
                ..task()
            },
        ),
        (
            "streams",
            ArmTask {
                streams: 129,
                ..task()
            },
        ),
        ("port", ArmTask { port: 0, ..task() }),
        (
            "path",
            ArmTask {
                path: "../x".to_owned(),
                ..task()
            },
        ),
        (
            "congestion",
            ArmTask {
                congestion: Some("a b".to_owned()),
                ..task()
            },
        ),
        (
            "peer",
            ArmTask {
                peer: "224.0.0.1".parse().expect("an address"),
                ..task()
            },
        ),
    ];
    for (member, task) in rows {
        assert_eq!(
            task.validate().map_err(|fault| fault.member),
            Err(member),
            "{task:?}"
        );
    }
}

#[test]
fn tasks_of_strangers_and_foreign_ports_are_refused() {
    let partners = ["10.0.0.2".parse().expect("an address")];
    let stranger = ArmTask {
        peer: "10.0.0.3".parse().expect("an address"),
        ..task()
    };
    let elsewhere = ArmTask {
        path: "vf".to_owned(),
        ..task()
    };

    let server = ArmTask {
        role: Role::Server,
        port: 22,
        ..task()
    };
    assert_eq!(plan().check(&task(), &partners), Ok(()));

    for (member, task) in [("peer", stranger), ("path", elsewhere), ("port", server)] {
        assert_eq!(
            plan().check(&task, &partners).map_err(|fault| fault.member),
            Err(member)
        );
    }
}
