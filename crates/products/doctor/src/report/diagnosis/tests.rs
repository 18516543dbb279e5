//! Reports of a diagnosis.

use super::*;
use linerate_model::finding::DOCTOR_SCHEMA;
use serde_json::json;

/// A host without load.
fn diagnosis() -> Diagnosis {
    let diagnosis = json!({
        "schema": DOCTOR_SCHEMA,
        "hosts": ["receiver"],
        "verdict": {"verdict": "no-load", "sentence": "the ring overflows", "confidence": "low"},
        "findings": [{
            "id": "NIC-01",
            "severity": "high",
            "confidence": "low",
            "subject": "receiver eth0",
            "title": "Receive ring overflows and can grow",
            "evidence": [{"fact": "nic.eth0.ring.rx.cur", "value": "256", "threshold": "up to 4096"}],
            "explanation": "Bursts\u{1b}[2J. Rings.",
            "remedy": ["ethtool -G eth0 rx 4096\nreboot"],
            "undo": ["ethtool -G eth0 rx 256"],
            "advice": "shape the sender (LNK-03), or spread the receive work (IRQ-02)",
            "needs": ["CAP_NET_ADMIN"],
            "reference": "ethtool(8)",
        }, {
            "id": "QD-02",
            "severity": "medium",
            "confidence": "low",
            "subject": "receiver eth0",
            "title": "A queueing discipline drops packets",
            "evidence": [{
                "fact": "nic.eth0.qdisc.root.drops",
                "value": "7",
                "threshold": "total since boot, expected 0",
            }],
            "explanation": "",
            "remedy": ["tc qdisc replace dev eth0 root fq_codel"],
            "undo": [],
            "reference": "tc(8)",
        }],
        "ruled_out": [
            {"id": "PCI-02", "subject": "receiver eth0", "reason": "Gen1 x1 carries about 1.68 \
                                                                    Gbit/s, the port needs 1"},
            {"id": "LNK-01", "subject": "receiver lr0", "reason": "veth has no link", "inapplicable": "virtual-interface"},
            {"id": "IRQ-01", "subject": "receiver lr0", "reason": "veth has no link", "inapplicable": "virtual-interface"},
            {"id": "WIN-01", "subject": "receiver", "reason": "not TCP", "inapplicable": "test"},
            {"id": "CHN-01", "subject": "receiver", "reason": "no channels", "inapplicable": "device"},
        ],
        "not_evaluated": [
            {"id": "PAU-02", "subject": "receiver eth0", "missing": ["nic.eth0.pause.partner"], "reasons": ["not-reported"]},
            {"id": "SYS-01", "subject": "receiver", "missing": ["load.connections"], "reasons": ["not-reported"]},
            {"id": "CPU-03", "subject": "receiver", "missing": ["cpu.freq.governor"],
                "reasons": ["not-applicable-to-kind"], "suspicion": "the governor is not known"},
        ],
    });
    serde_json::from_value(diagnosis).expect("a diagnosis")
}

/// A test over a narrow path.
fn path() -> Diagnosis {
    let fact = |fact: &str, value: &str| json!({"fact": fact, "value": value, "threshold": ""});
    let subject = "client test, client to server";
    let period =
        |verdict: &str, length_ms: u64| json!({"verdict": verdict, "length_ms": length_ms});

    let diagnosis = json!({
        "schema": DOCTOR_SCHEMA,
        "hosts": ["client", "server"],
        "verdict": {
            "verdict": "path",
            "sentence": format!("the path between the hosts is the limit (PATH-10 on {subject})"),
            "confidence": "medium",
            "timeline": [period("slow-start", 120), period("path", 4000), period("unknown", 3), period("path", 880)],
        },
        "findings": [{
            "id": "PATH-10",
            "severity": "high",
            "confidence": "high",
            "subject": subject,
            "title": "The path between the hosts is the limit",
            "evidence": [
                fact("run.0.received_bps", "95.7 Mbit/s"),
                fact("run.0.min_rtt_us", "15"),
                fact("run.0.rtt_us", "7300"),
                fact("run.0.retransmit_share", "0"),
                fact("run.0.busy_share", "0.99"),
            ],
            "explanation": "",
            "remedy": [],
            "undo": [],
            "advice": "look for a slower port or a shaper on a switch or router in between",
            "reference": "",
        }],
        "ruled_out": [],
        "not_evaluated": [],
    });
    serde_json::from_value(diagnosis).expect("a diagnosis")
}

fn short(diagnosis: &Diagnosis) -> String {
    text(diagnosis, false, Style::PLAIN)
}

#[test]
fn lost_datagrams_are_reported_by_place() {
    let mut diagnosis = diagnosis();
    let split = LossSplit {
        label: "test".to_owned(),
        lost: 12,
        sender: Some(0),
        backlog: Some(0),
        firewall: Some(0),
        socket: Some(9),
        network: 3,
        ..LossSplit::default()
    };
    diagnosis.loss = vec![split];

    let lines = "\n         test: 12 datagrams lost: sender 0, network 3, NIC not known, backlog 0,\n         \
                 firewall 0, socket buffer 9\n";
    assert!(short(&diagnosis).contains(lines), "{}", short(&diagnosis));
}

#[test]
fn reasons_of_lost_datagrams_stand_with_their_place_in_a_dozen_lines() {
    let mut diagnosis = diagnosis();
    diagnosis.verdict.verdict = "receiver-cpu-app".to_owned();
    diagnosis.verdict.sentence = "the receiving application is too slow: CPU 1 spends 41 % on \
                                  copying, 23 % on netfilter (nft_do_chain), 12 % on segmentation \
                                  and GRO (NIC-01 on receiver eth0)"
        .to_owned();
    diagnosis.loss = vec![LossSplit {
        label: "test, client to server".to_owned(),
        lost: 1_379_848,
        sender: Some(0),
        nic: Some(0),
        backlog: Some(0),
        firewall: Some(30),
        socket: Some(1_375_271),
        kernel: Some(5),
        network: 4577,
    }];
    let drop = |reason: &str, place: Option<&str>, packets| KernelDrop {
        host: "server".to_owned(),
        reason: Some(reason.to_owned()),
        function: Some("a_function".to_owned()),
        packets,
        error: None,
        place: place.map(str::to_owned),
        meaning: "what it means".to_owned(),
        next: place.map(|_| "what to do".to_owned()),
    };
    diagnosis.drops = vec![
        drop("SOCKET_RCVBUFF", Some("socket buffer"), 1_375_271),
        drop("NETFILTER_DROP", Some("firewall"), 30),
        drop("UDP_CSUM", Some("checksum"), 5),
        drop("TCP_OLD_ACK", None, 7),
    ];

    let report = short(&diagnosis);
    let joined = report.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "firewall 30 (NETFILTER_DROP)",
        "socket buffer 1375271 (SOCKET_RCVBUFF)",
        "elsewhere in the kernel 5 (UDP_CSUM)",
    ] {
        assert!(joined.contains(part), "{part}: {report}");
    }
    assert!(
        report.lines().count() <= 12 && !report.contains("Drops"),
        "{report}"
    );

    diagnosis.loss.clear();
    let report = short(&diagnosis);
    assert!(
        report.contains("1375271 SOCKET_RCVBUFF in a_function (socket buffer)")
            && report.contains("1 more with -v"),
        "{report}"
    );
    let long = text(&diagnosis, true, Style::PLAIN);
    assert!(
        long.contains("UDP_CSUM in a_function (checksum): what it means"),
        "{long}"
    );
    assert!(
        long.contains("No loss     7 TCP_OLD_ACK in a_function: what it means"),
        "{long}"
    );
}

#[test]
fn short_reports_are_as_reviewed() {
    linerate_document::expected::assert_expected_in(
        env!("CARGO_MANIFEST_DIR"),
        "doctor.txt",
        &short(&diagnosis()),
    );
    linerate_document::expected::assert_expected_in(
        env!("CARGO_MANIFEST_DIR"),
        "doctor-path.txt",
        &short(&path()),
    );
}

#[test]
fn placement_is_listed_in_the_long_report_and_advised_in_the_short_one() {
    let mut diagnosis = path();
    let end = |host: &str| json!({"host": host, "worker": {"cpus": [{"cpu": 0, "percent": 100}]}, "softirq": {"absent": "not-reported"}});
    diagnosis.placement =
        serde_json::from_value(json!([end("client"), end("server")])).expect("placements");
    assert!(
        !short(&diagnosis).contains("CPU 0"),
        "{}",
        short(&diagnosis)
    );

    let mut finding = diagnosis.findings[0].clone();
    finding.id = PLACEMENT_RULE.to_owned();
    finding.subject = "client".to_owned();
    finding.title = "Placement".to_owned();
    finding.advice = Some("try -A 1,0".to_owned());
    diagnosis.findings.push(finding);

    let text = short(&diagnosis);
    assert!(
        text.contains("\nAlso     Placement (client)") && text.contains("\nDo       try -A 1,0\n"),
        "{text}"
    );
    let wide = Style {
        columns: 200,
        ..Style::PLAIN
    };
    let text = super::text(&diagnosis, true, wide);
    assert!(
        text.contains(
            "\nCPUs        client: worker CPU 0 (100 %); softirq not known (not reported)\n"
        ),
        "{text}"
    );
    assert!(
        text.contains("\n            server: worker CPU 0 (100 %)"),
        "{text}"
    );
}

#[test]
fn the_report_behind_a_test_has_eight_lines() {
    let mut diagnosis = path();
    for id in ["QD-02", "LAT-02", "NIC-01"] {
        let mut found = diagnosis.findings[0].clone();
        (found.id, found.severity) = (id.into(), Severity::High);
        found.title = format!("{id} has a title of its own");
        found.remedy = vec![format!("ethtool -G {id}"); 3];
        diagnosis.findings.push(found);
    }

    let text = text_after_test(&diagnosis, false, Style::PLAIN);
    assert!(text.lines().count() <= 8, "{text}");
    assert!(
        text.starts_with("Limit") && text.contains("\nAlso"),
        "{text}"
    );
}

/// The narrowest hop needs no remedy, its long queue has one.
#[test]
fn first_other_finding_has_its_remedy_in_the_short_report() {
    for severity in ["info", "high"] {
        let queue = json!({
            "id": "LAT-02", "severity": "medium", "confidence": "high", "subject": "client up", "title": "A queue on the path",
            "evidence": [], "explanation": "", "advice": "fq_codel or cake at 9.5 Mbit/s", "remedy": [], "undo": [], "reference": "",
        });
        let mut diagnosis = path();
        diagnosis.findings.truncate(1);
        diagnosis.findings[0].severity =
            serde_json::from_value(json!(severity)).expect("a severity");
        diagnosis
            .findings
            .push(serde_json::from_value(queue).expect("a finding"));

        let text = short(&diagnosis);
        let lines =
            "\nAlso     A queue on the path (client up)\nDo       fq_codel or cake at 9.5 Mbit/s\n";
        assert!(text.contains(lines), "{text}");
    }
}

#[test]
fn what_both_hosts_have_alike_is_one_line() {
    let mut diagnosis = path();
    let finding = |subject: &str, drops: &str| {
        let drops = vec![Evidence::new("nic.lr0.qdisc.root.drops", drops, "")];
        let mut found = diagnosis.findings[0].clone();
        found.id = "QD-02".into();
        found.severity = Severity::Medium;
        found.title = "Drops".into();
        found.subject = subject.into();
        found.evidence = drops;

        found
    };
    let others = [
        finding("client", "5"),
        finding("server", "5"),
        finding("router", "6"),
    ];
    diagnosis.findings.extend(others);

    let lines = "\nAlso     Drops (client, server): 5 packets dropped by the qdisc\nDo       look for a slower port or a shaper on a switch or router in between\n         1 more with -v\n";
    assert!(short(&diagnosis).contains(lines), "{}", short(&diagnosis));
}

#[test]
fn long_report_has_ids_evidence_and_every_rule() {
    let text = text(&diagnosis(), true, Style::PLAIN);
    for line in [
        "Result      the ring overflows [no-load, NIC-01]\n",
        "  seen      nic.eth0.ring.rx.cur = 256 (expected up to 4096)\n",
        "  why       Bursts\u{fffd}[2J. Rings.\n",
        "MEDIUM      A queueing discipline drops packets (receiver eth0): 7 packets",
        " [QD-02]\n",
        "Not         receiver lr0: veth has no link [LNK-01, IRQ-01]\n",
        "?           receiver: the governor is not known (needs cpu.freq.governor)\n",
        "            [CPU-03]\n",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}

#[test]
fn only_a_limit_is_called_one() {
    for (verdict, sentence, line) in [
        (
            "no-load",
            "no problem found; no load",
            "Result   no problem found; no load\n",
        ),
        (
            "configured-rate",
            "the rate is reached (test, client to server)",
            "Result   the rate is reached\n",
        ),
        (
            "line-rate",
            "the link is full (TOP-01 on receiver eth0)",
            "Result   the link is full (a guess)\n",
        ),
        (
            "sender-cpu",
            "the sender is full (CPU-01 on x)",
            "Limit    the sender is full (a guess)\n",
        ),
        (
            "path",
            "undecided between A and B: do X to tell them apart (PATH-10 on x)",
            "Limit    undecided between A and B: do X to tell them apart\n",
        ),
    ] {
        let mut diagnosis = diagnosis();
        diagnosis.verdict = Verdict::default();
        diagnosis.verdict.verdict = verdict.to_owned();
        diagnosis.verdict.sentence = sentence.to_owned();
        assert!(short(&diagnosis).starts_with(line), "{}", short(&diagnosis));
    }
}

#[test]
fn text_is_as_wide_as_the_terminal_and_commands_are_never_wrapped() {
    let mut diagnosis = path();
    let command = format!("tc {}", "long ".repeat(40).trim_end());
    diagnosis.findings[0].remedy = vec![command.clone()];

    let text = text(
        &diagnosis,
        false,
        Style {
            columns: 60,
            ..Style::PLAIN
        },
    );
    assert!(text.contains(&format!("Do       {command}\n")), "{text}");
    assert!(
        text.lines()
            .filter(|line| !line.contains(&command))
            .all(|line| line.len() <= 60),
        "{text}"
    );
}

#[test]
fn severity_is_coloured_on_a_terminal_only() {
    let coloured = text(
        &path(),
        false,
        Style {
            is_coloured: true,
            ..Style::PLAIN
        },
    );
    assert!(
        coloured.starts_with("\u{1b}[31mLimit\u{1b}[0m    the path"),
        "{coloured:?}"
    );
    assert!(!short(&path()).contains('\u{1b}'));
}

#[test]
fn a_script_does_nothing_by_itself() {
    let script = fix_script(&diagnosis());
    assert!(
        script.contains("# ethtool -G eth0 rx 4096 reboot\n# undo: ethtool -G eth0 rx 256\n"),
        "{script}"
    );
    assert!(
        script
            .lines()
            .all(|line| line.is_empty() || line.starts_with('#')),
        "{script}"
    );
}

#[test]
fn commands_of_the_other_end_name_it_beside_them() {
    let mut diagnosis = diagnosis();
    diagnosis.findings[0].remedy_host = Some("the receiver".to_owned());
    let text = text(&diagnosis, true, Style::PLAIN);
    let lines = "  do        ethtool -G eth0 rx 4096 reboot  # on the receiver\n  undo      \
                 ethtool -G eth0 rx 256  # on the receiver\n";
    assert!(
        text.contains(lines) && fix_script(&diagnosis).contains("rx 256  # on the receiver\n"),
        "{text}"
    );
}

#[test]
fn json_reads_back_as_the_same_diagnosis() {
    let back: Diagnosis = serde_json::from_str(&json(&diagnosis())).expect("our own JSON");
    assert_eq!(back, diagnosis());
}
