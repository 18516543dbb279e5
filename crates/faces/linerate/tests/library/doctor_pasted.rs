//! Goal: what mail programs, chats and terminals do to pasted text changes no diagnosis, and
//! several files of one host are judged together. Method: every recorded output, decorated in each
//! way.

use std::path::Path;

use linerate::diagnose::import_texts;
use linerate_doctor::{Observed, diagnose};
use linerate_host::import::Imported;
use linerate_model::finding::Diagnosis;
use linerate_model::snapshot::Snapshot;

fn import(name: &str, text: &str) -> Imported {
    import_texts(&[(name, text)])
}

fn recordings() -> Vec<(String, String)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fixtures/doctor");
    let paths = std::fs::read_dir(directory)
        .expect("fixtures")
        .flatten()
        .map(|entry| entry.path());
    let texts = paths.filter(|path| path.extension().is_some_and(|end| end == "txt"));

    texts
        .map(|path| {
            (
                path.display().to_string(),
                std::fs::read_to_string(path).expect("text"),
            )
        })
        .collect()
}

fn field_case() -> String {
    let (_, text) = recordings()
        .into_iter()
        .find(|(name, _)| name.contains("/13-"))
        .expect("the case");
    text
}

fn judged(snapshots: Vec<Snapshot>) -> Diagnosis {
    diagnose(
        &snapshots
            .into_iter()
            .map(Observed::once)
            .collect::<Vec<_>>(),
        &[],
    )
}

fn fires(diagnosis: &Diagnosis, id: &str) -> bool {
    diagnosis.findings.iter().any(|finding| finding.id == id)
}

fn each_line(text: &str, change: impl Fn(&str) -> String) -> String {
    text.lines().map(|line| change(line) + "\n").collect()
}

#[test]
fn decoration_of_pasted_text_changes_no_fact() {
    type Decorate = fn(&str) -> String;

    let ways: [(&str, Decorate); 9] = [
        ("blanks", |text| {
            each_line(text, |line| format!("    {line}"))
        }),
        ("tabs", |text| each_line(text, |line| format!("\t{line}"))),
        ("quoted", |text| each_line(text, |line| format!("> {line}"))),
        ("quoted twice", |text| {
            each_line(text, |line| format!("> > {line}"))
        }),
        ("quoted without blanks", |text| {
            each_line(text, |line| format!(">{line}"))
        }),
        ("carriage returns", |text| {
            each_line(text, |line| format!("{line}\r"))
        }),
        ("colours", |text| {
            each_line(text, |line| format!("\u{1b}[1;32m{line}\u{1b}[0m\u{1b}[K"))
        }),
        ("fences", |text| format!("```console\n{text}```\n")),
        ("text around it", |text| {
            format!(
                "Hello,\n\n{}\nregards\n",
                each_line(text, |line| format!("  {line}"))
            )
        }),
    ];
    for (name, text) in recordings() {
        let plain = import("x", &text).snapshots;
        assert!(!plain.is_empty(), "{name}");

        for (way, decorate) in ways {
            assert_eq!(
                import("x", &decorate(&text)).snapshots,
                plain,
                "{name}: {way}"
            );
        }
    }
}

/// The report of a server within that of its client names the release of the server.
#[test]
fn vulnerable_release_at_the_other_end_is_found_by_its_version() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../fixtures/iperf3/json-gso-serverjson.c321-s321.client.json");
    let report = std::fs::read_to_string(path).expect("fixture");

    let older = "CVE-2025-54349";
    for (version, is_vulnerable, named) in [
        (
            "3.12",
            true,
            "CVE-2023-38403, CVE-2024-26306, CVE-2024-53580",
        ),
        ("3.17.1", true, "also CVE-2024-53580, CVE-2025-54349"),
        ("3.19", true, older),
        ("3.19.1", true, "3.22 or later"),
        ("3.21+", true, "3.22 or later"),
        ("3.22", false, ""),
        ("3.22.1", false, ""),
        ("3.21 (linerate 0.1.0)", false, ""),
    ] {
        let text = report.replace("iperf 3.21+", &format!("iperf {version}"));
        let diagnosis = judged(import("x", &text).snapshots);
        assert_eq!(fires(&diagnosis, "TOOL-08"), is_vulnerable, "{version}");
        let finding = diagnosis.findings.iter().find(|one| one.id == "TOOL-08");
        let evidence = finding.map_or_else(String::new, |one| format!("{:?}", one.evidence));
        assert!(evidence.contains(named), "{version}: {evidence}");
        assert!(
            version < "3.19.1" || !evidence.contains(older),
            "{evidence}"
        );
    }
}

#[test]
fn speed_step_without_flow_control_is_no_full_link() {
    let diagnosis = judged(import("x", &field_case()).snapshots);
    assert!(
        fires(&diagnosis, "LNK-03") && fires(&diagnosis, "PAU-01"),
        "{:#?}",
        diagnosis.findings
    );
    assert_eq!(diagnosis.verdict.verdict, "speed-step");

    // Nothing pasted describes the discipline it would replace.
    let advice: Vec<&String> = diagnosis
        .findings
        .iter()
        .filter_map(|finding| finding.advice.as_ref())
        .collect();
    assert!(
        advice
            .iter()
            .any(|text| text.contains("dev enp1s0f0 root tbf rate 950mbit")),
        "{advice:?}"
    );
}

#[test]
fn files_are_one_host_unless_they_contradict() {
    let hosts = |texts: &[(&str, &str)]| -> Vec<String> {
        import_texts(texts)
            .snapshots
            .into_iter()
            .map(|snapshot| snapshot.host)
            .collect()
    };
    let ring = "Ring parameters for eth0:\nPre-set maximums:\nRX: 4096\nCurrent hardware \
                settings:\nRX: 256\n";
    let statistics = "### cmd=ethtool -S eth0\nNIC statistics:\n     rx_missed_errors: 50\n";
    let files = [("ring", ring), ("statistics", statistics)];
    assert_eq!(hosts(&files), ["host"]);
    assert!(
        fires(&judged(import_texts(&files).snapshots), "NIC-01"),
        "facts of both files meet"
    );

    let other_ring = ring.replace("RX: 256", "RX: 512");
    assert_eq!(hosts(&[("a", ring), ("b", &other_ring)]), ["a", "b"]);
    assert_eq!(
        hosts(&[("ring", ring), ("ring", &other_ring)]),
        ["ring", "ring-2"],
        "files of one name"
    );
    assert_eq!(
        hosts(&[("server-ring", ring), ("client-ring", ring)]),
        ["client", "server"]
    );

    let named = format!("me@lab:~$ ethtool -g eth0\n{ring}");
    assert_eq!(
        hosts(&[("statistics", statistics), ("ring", &named)]),
        ["lab"]
    );

    let end = |local: &str, remote: &str| {
        format!(
            "Connecting to host x, port 5201\n[  5] local {local} port 40000 connected to {remote} \
             port 5201\n[  5]   0.00-10.00  sec  1.09 GBytes   941 Mbits/sec                  \
             receiver\n"
        )
    };
    let (one, two) = (end("192.0.2.1", "192.0.2.2"), end("192.0.2.2", "192.0.2.1"));
    assert_eq!(
        hosts(&[("a", &one), ("b", &two)]),
        ["a", "b"],
        "two ends of one path"
    );
}

#[test]
fn lscpu_nstat_and_links_that_are_down_are_read() {
    let text = "\
$ lscpu
Architecture:            x86_64
  CPU op-mode(s):        32-bit, 64-bit
CPU(s):                  8
  On-line CPU(s) list:   0-7
Hypervisor vendor:       KVM
NUMA:
  NUMA node(s):          2
$ nstat -az
#kernel
TcpRetransSegs                  4311               0.0
TcpExtPruneCalled               7                  0.0
Ip6InReceives                   9                  0.0
$ ip link show eth0
2: eth0: <NO-CARRIER,BROADCAST,MULTICAST,UP> mtu 1500 qdisc mq state DOWN mode DEFAULT group default qlen 1000
    link/ether 00:00:5e:00:53:01 brd ff:ff:ff:ff:ff:ff
";
    let imported = import("h", text);
    assert_eq!(imported.unread, [""; 0]);

    let snapshot = &imported.snapshots[0];
    assert_eq!(
        (snapshot.number("cpu.count"), snapshot.number("numa.nodes")),
        (Some(8.0), Some(2.0))
    );
    assert_eq!(
        (snapshot.text("cpu.online"), snapshot.value("cpu.virt")),
        (Some("0-7"), Some(&true.into()))
    );

    let count = |key: &str| snapshot.counters[key].v;
    let counts = [
        "net.snmp.Tcp.RetransSegs",
        "net.netstat.TcpExt.PruneCalled",
        "net.snmp6.Ip6InReceives",
    ]
    .map(count);
    assert_eq!(counts, [4311, 7, 9]);

    let diagnosis = judged(imported.snapshots);
    assert!(fires(&diagnosis, "LNK-08"));
    let mut reasons = diagnosis
        .not_evaluated
        .iter()
        .flat_map(|rule| &rule.reasons);
    assert!(
        !reasons.any(|reason| reason.contains("--window")),
        "text has no second reading"
    );

    for down in [
        "2: eth0: <BROADCAST,MULTICAST> mtu 1500 state DOWN\n",
        "eth0  DOWN  00:00:5e:00:53:01 <BROADCAST,UP>\n",
    ] {
        assert!(
            fires(&judged(import("h", down).snapshots), "LNK-08"),
            "{down}"
        );
    }
}

#[test]
fn reports_in_json_are_read_as_those_in_text() {
    let start = r#""start":{"connected":[{"socket":5,"local_host":"192.0.2.2","local_port":40000,"remote_host":"192.0.2.1","remote_port":5201}],"version":"iperf 3.12","connecting_to":{"host":"192.0.2.1","port":5201},"tcp_mss_default":1448,"test_start":{"protocol":"TCP","num_streams":1,"blksize":131072,"omit":0,"duration":10,"reverse":1}}"#;
    let interval = r#"{"streams":[{"socket":5,"start":0,"end":1,"seconds":1,"bytes":112500000,"bits_per_second":9e8,"omitted":false,"sender":false}],"sum":{"start":0,"end":1,"seconds":1,"bytes":112500000,"bits_per_second":9e8,"omitted":false,"sender":false}}"#;
    let end = r#""end":{"streams":[{"sender":{"socket":5,"end":10,"bytes":1.1e9,"retransmits":4311,"mean_rtt":0,"sender":false},"receiver":{"socket":5,"end":10,"bytes":1.125e9,"sender":false}}],"sum_sent":{"end":10,"bytes":1.1e9,"bits_per_second":8.8e8,"retransmits":4311},"sum_received":{"end":10,"bytes":1.125e9,"bits_per_second":9e8},"cpu_utilization_percent":{"host_total":1,"remote_total":2}}"#;
    let whole = format!("{{\n{start},\n\"intervals\":[{interval},{interval}],\n{end}\n}}\n");
    let event = |text: &str| {
        let (name, data) = text.split_once(':').expect("a member");
        format!("{{\"event\":{name},\"data\":{data}}}\n")
    };
    let events = [
        event(start),
        event(&format!("\"interval\":{interval}")),
        event(&format!("\"interval\":{interval}")),
        event(end),
    ]
    .concat();

    let prompt = "me@client:~$ iperf3 -c 192.0.2.1 -t 10 -R -J\n";
    let pasted = format!("{prompt}{whole}me@client:~$ lscpu\nCPU(s): 8\n");
    for (name, text) in [("whole", &whole), ("events", &events), ("pasted", &pasted)] {
        let imported = import("client", text);
        let snapshot = &imported.snapshots[0];
        let number = |fact: &str| snapshot.number(&format!("run.0.{fact}"));
        assert_eq!(
            (number("received_bps"), number("retransmits")),
            (Some(9e8), Some(4311.0)),
            "{name}"
        );
        assert_eq!(
            (number("streams"), number("seconds"), number("mss_bytes")),
            (Some(1.0), Some(10.0), Some(1448.0))
        );
        assert_eq!(number("later_median_bps"), Some(9e8), "{name}");
        assert_eq!(
            snapshot.value("run.0.reverse"),
            Some(&true.into()),
            "{name}"
        );
        assert_eq!(snapshot.text("run.0.version"), Some("3.12"), "{name}");
        assert_eq!(linerate_model::runs::count(snapshot), 1, "{name}");
    } // A server that sends knows nothing of what its client received.

    let server = whole
        .replace(r#""connecting_to":{"#, r#""accepted_connection":{"#)
        .replace(r#""bytes":1.125e9"#, r#""bytes":0"#)
        .replace(r#""sender":false"#, r#""sender":true"#);
    let imported = import("server", &server);
    assert_eq!(imported.snapshots[0].value("run.0.received_bytes"), None);
    assert_eq!(
        imported.snapshots[0].value("run.0.server"),
        Some(&true.into())
    );
}

#[test]
fn counters_of_common_tools_are_understood() {
    let text = "\
$ netstat -s
Tcp:
    25000 segments received
    24000 segments sent out
    432 segments retransmitted
    7 bad segments received
Udp:
    500 packet receive errors
    480 receive buffer errors
    IgnoredMulti: 3
TcpExt:
    12 times the listen queue of a socket overflowed
    Quick ack mode was activated 5 times
    TCPLostRetransmit: 10
$ conntrack -S
cpu=0 found=0 invalid=2 insert=0 insert_failed=0 drop=7 early_drop=1 error=0 search_restart=0
cpu=1 found=0 invalid=0 insert=0 insert_failed=0 drop=4 early_drop=0 error=0 search_restart=0
$ sysctl net.netfilter
net.netfilter.nf_conntrack_count = 990
net.netfilter.nf_conntrack_max = 1000
";
    let imported = import("x", text);
    assert_eq!(imported.unread, [""; 0]);

    let snapshot = &imported.snapshots[0];
    for (key, expected) in [
        ("net.snmp.Tcp.InSegs", 25_000),
        ("net.snmp.Tcp.OutSegs", 24_000),
        ("net.snmp.Tcp.RetransSegs", 432),
        ("net.snmp.Udp.RcvbufErrors", 480),
        ("net.netstat.TcpExt.ListenOverflows", 12),
        ("net.netstat.TcpExt.TCPLostRetransmit", 10),
        ("conntrack.drop", 11),
    ] {
        assert_eq!(
            snapshot.counters.get(key).map(|counter| counter.v),
            Some(expected),
            "{key}"
        );
    }

    let diagnosis = judged(imported.snapshots);
    assert!(fires(&diagnosis, "SYS-05"), "{diagnosis:?}");
}
