//! Goal: a test with `--lr-doctor` ends with its limit, seen from both ends, and has no effect on a
//! peer that lacks it. Method: veth pairs in network namespaces of our own with one fault each, and
//! the original at either end.

use std::thread::available_parallelism;

use linerate_interop::namespaces::{DEVICE, Net, run};
use linerate_interop::{Keys, Server, original, ours, unsupported};
use serde_json::Value;

/// Findings that this machine may add to any test: its default congestion control paces, its two
/// CPUs serve both ends, which the scheduler may put on one of them, and others, and so a first
/// second may be slow.
const CIRCUMSTANCES: [&str; 6] = ["QD-05", "OFF-02", "CPU-09", "CPU-10", "WIN-06", "TOOL-04"];

/// A test of ours against ours, with the diagnosis.
fn examined(net: &Net, words: &[&str]) -> (Value, Value) {
    let report = net
        .client(&[&["-J", "--lr-doctor"], words].concat())
        .finish()
        .json();
    let diagnosis = report["lr_doctor"].clone();
    assert_eq!(diagnosis["schema"], "linerate.doctor/1", "{report:#}");
    assert_eq!(
        diagnosis["hosts"],
        Value::from(vec!["client", "server"]),
        "{report:#}"
    );

    (report, diagnosis)
}

fn findings(diagnosis: &Value) -> Vec<&str> {
    let findings = diagnosis["findings"].as_array().expect("findings").iter();
    let ids = findings.map(|finding| finding["id"].as_str().expect("an id"));
    let mut ids: Vec<&str> = ids.filter(|id| !CIRCUMSTANCES.contains(id)).collect();
    ids.dedup();
    ids
}

#[test]
fn timed_lost_datagrams_are_split_by_place() {
    let Some(net) = Net::new() else { return };
    let _server = net.server();
    let (report, diagnosis) =
        examined(&net, &["-u", "-b", "0", "-l", "200", "-w", "4K", "-t", "5"]);
    let split = &diagnosis["loss"][0];
    let part = |name: &str| {
        split[name]
            .as_f64()
            .unwrap_or_else(|| panic!("{name}: {split}"))
    };

    // The receiver does not count what follows the last datagram that it saw.
    let number = |sum: &str, name: &str| {
        report["end"][sum][name]
            .as_f64()
            .unwrap_or_else(|| panic!("{sum} {name}"))
    };
    let received = number("sum_received", "packets") - number("sum_received", "lost_packets");
    let lost = number("sum_sent", "packets") - received;
    assert!(lost > 1000.0, "a small buffer must overflow: {report:#}");

    // Those behind the last one that arrived are in no count of the receiver.
    assert!(
        (lost..=1.01 * lost).contains(&part("lost")),
        "{lost}: {split}"
    );
    // The kernel's counter of that buffer and the receiver's count of missing numbers.
    assert!((part("socket") - lost).abs() <= 0.01 * lost, "{split}");
    assert_eq!((part("sender"), part("adapter")), (0.0, 0.0), "{split}");

    // On a machine without other work the kernel's receive work may fill the core as well, which is
    // true and not the point.
    let found: Vec<&str> = findings(&diagnosis)
        .into_iter()
        .filter(|id| *id != "CPU-02")
        .collect();
    assert_eq!(found, ["UDP-01", "DROP-01"], "{diagnosis:#}");
    assert_eq!(diagnosis["drops"][0]["reason"], "SOCKET_RCVBUFF");
    assert_eq!(diagnosis["verdict"]["verdict"], "receiver-cpu-app");
}

#[test]
fn timed_a_small_window_is_found() {
    let Some(net) = Net::new() else { return };
    // A shaper far above what the window permits shows the doctor what the path could carry.
    let shaper = "root tbf rate 10gbit burst 4mb latency 50ms";
    run(&format!("tc -n {} qdisc add dev {DEVICE} {shaper}", net.a));

    let _server = net.server();
    // Beside other work the receiver may be late as well, which is true and not the point.
    let (_, diagnosis) = examined(&net, &["-t", "5", "-w", "4K", "-C", "cubic"]);
    let found = findings(&diagnosis);
    assert!(
        found
            .iter()
            .any(|id| matches!(*id, "WIN-01" | "WIN-02" | "WIN-03")),
        "{diagnosis:#}"
    );
    assert!(found.iter().all(|id| id.starts_with("WIN-")), "{found:?}");
}

#[test]
fn ends_that_share_a_core_are_found() {
    let Some(net) = Net::new() else { return };
    let _server = net.server();
    let (_, diagnosis) = examined(&net, &["-t", "5", "-A", "0,0"]);
    let found = findings(&diagnosis);
    assert!(found.contains(&"TOOL-03"), "{diagnosis:#}");
    assert!(
        found.iter().all(|id| matches!(*id, "TOOL-03" | "CPU-02")),
        "{found:?}"
    );
    assert_eq!(diagnosis["verdict"]["verdict"], "tool-limit");
}

/// The CPUs of the workers of client and server.
fn worker_cpus(diagnosis: &Value) -> [u64; 2] {
    let cpu = |end: usize| diagnosis["placement"][end]["worker"]["cpus"][0]["cpu"].as_u64();
    [0, 1].map(|end| cpu(end).unwrap_or_else(|| panic!("no CPU of end {end}: {diagnosis:#}")))
}

/// Ticks of every CPU but the first: without work, and all.
fn idle_and_all_ticks() -> Vec<[u64; 2]> {
    let text = std::fs::read_to_string("/proc/stat").expect("/proc/stat");
    let lines = text
        .lines()
        .filter(|line| line.starts_with("cpu") && !line.starts_with("cpu "))
        .skip(1);
    let ticks = lines.map(|line| {
        line.split_whitespace()
            .skip(1)
            .map(|word| word.parse().expect("ticks"))
            .collect()
    });

    ticks
        .map(|ticks: Vec<u64>| [ticks[3], ticks.iter().sum()])
        .collect()
}

#[test]
fn timed_placement_that_is_advised_has_no_finding() {
    if available_parallelism().map_or(1, usize::from) < 2 {
        return unsupported("needs two CPUs");
    }

    let Some(net) = Net::new() else { return };
    let _server = net.server();

    let advice = |diagnosis: &Value| {
        let mut findings = diagnosis["findings"].as_array().expect("findings").iter();
        let advice = findings
            .find(|finding| finding["id"] == "CPU-10")
            .map(|finding| finding["advice"].clone());
        advice.map(|advice| advice.as_str().expect("advice").to_owned())
    };
    let before = idle_and_all_ticks();
    let (_, bound) = examined(&net, &["-t", "5", "-A", "0,0"]);
    assert_eq!(worker_cpus(&bound), [0, 0], "{bound:#}");

    let mut during = before
        .iter()
        .zip(idle_and_all_ticks())
        .map(|(before, after)| [0, 1].map(|at| after[at] - before[at]));
    if !during.any(|[idle, all]| idle * 10 > all * 8) {
        return unsupported("other programs use the other CPUs");
    }

    let advised = advice(&bound).unwrap_or_else(|| panic!("no CPU-10: {bound:#}"));
    let cpus = advised
        .strip_prefix("try -A ")
        .and_then(|rest| rest.split(' ').next())
        .expect("an option");
    let (_, moved) = examined(&net, &["-t", "5", "-A", cpus]);
    assert_eq!(advice(&moved), None, "{moved:#}");
    assert_eq!(
        format!("{:?}", worker_cpus(&moved)).replace(['[', ' ', ']'], ""),
        cpus
    );
}

#[test]
fn healthy_pair_has_no_finding() {
    let Some(net) = Net::new() else { return };
    let _server = net.server();

    for words in [
        &["-t", "5", "-b", "100M"][..],
        &["-t", "5", "-b", "100M", "-R"],
        &["-t", "5", "-u", "-b", "100M"],
    ] {
        let (_, diagnosis) = examined(&net, words);
        assert_eq!(findings(&diagnosis), [""; 0], "{words:?}: {diagnosis:#}");
        assert_eq!(
            diagnosis["verdict"]["verdict"], "configured-rate",
            "{words:?}"
        );
    }
}

#[test]
fn the_diagnosis_follows_the_report() {
    let server = Server::start(ours(), &["--lr-facts", "all"]);
    let client = server.run(ours(), &["-t", "1", "--lr-doctor"]);
    client.expect_clean();

    let text = &client.stdout;
    let verdict = ["\nLimit    ", "\nResult   "]
        .into_iter()
        .find_map(|label| text.find(label));
    let report = text.rfind("receiver\n");
    assert!(
        report.expect("a report") < verdict.expect("a diagnosis"),
        "{text}"
    );
    assert!(text.ends_with("iperf Done.\n"), "{text}");
}

#[test]
fn a_stream_of_objects_has_one_more() {
    let server = Server::start(ours(), &[]);
    let client = server.run(ours(), &["-t", "1", "--json-stream", "--lr-doctor"]);
    let events: Vec<Value> = client
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).expect("an object per line"))
        .collect();
    let of_doctor: Vec<_> = events
        .iter()
        .filter(|event| event["event"] == "lr_doctor")
        .collect();
    assert_eq!(of_doctor.len(), 1);
    assert_eq!(of_doctor[0]["data"]["schema"], "linerate.doctor/1");
    assert_eq!(events.last().expect("events")["event"], "end");
}

#[test]
fn facts_are_not_exchanged_with_the_original() {
    let stock = Server::start(original(), &[]);
    let client = stock.run(ours(), &["-t", "1", "-J", "--lr-doctor"]);
    client.expect_clean();

    let report = client.json();
    assert_eq!(report["lr_doctor"]["hosts"], Value::from(vec!["client"]));
    let server = Server::start(ours(), &[]);
    server.run(original(), &["-t", "1"]).expect_clean();

    let silent = server.run(ours(), &["-t", "1", "-J"]);
    assert!(!silent.expect_clean().stdout.contains("lr_doctor"));
}

/// Hosts in the diagnosis of a test with this server, whose result is as any other's.
fn hosts(server: &Server) -> Value {
    let client = server.run(ours(), &["-n", "1M", "-J", "--lr-doctor"]);
    let report = client.expect_clean().json();
    assert!(
        report["end"]["sum_received"]["bytes"].as_u64() > Some(0),
        "{report:#}"
    );
    report["lr_doctor"]["hosts"].clone()
}

#[test]
fn strangers_get_no_facts_unless_the_server_gives_them_to_all() {
    let rows: [(&[&str], &[&str]); 6] = [
        (&[], &["client"]),
        (&["--lr-facts", "all"], &["client", "server"]),
        (&["--lr-allow", "127.0.0.0/8"], &["client", "server"]),
        (
            &["--lr-allow", "127.0.0.0/8", "--lr-facts", "none"],
            &["client"],
        ),
        (&["--lr-allow", "127.0.0.0/8", "--lr-no-facts"], &["client"]),
        (&["--lr-deny", "192.0.2.0/24"], &["client"]),
    ];
    for (words, expected) in rows {
        let server = Server::start(ours(), words);
        assert_eq!(hosts(&server), Value::from(expected.to_vec()), "{words:?}");
    }
}

#[test]
fn a_client_that_has_logged_in_gets_facts() {
    let keys = Keys::make();
    for (words, expected) in [
        (&[][..], &["client", "server"][..]),
        (&["--facts", "none"], &["client"]),
    ] {
        let service = keys.service(words);
        let client = keys.client(service.port, ours(), "rossi", &["-J", "--lr-doctor"]);
        let report = client.expect_clean().json();
        assert_eq!(
            report["lr_doctor"]["hosts"],
            Value::from(expected.to_vec()),
            "{words:?}"
        );
    }
}

#[test]
fn a_diagnosis_may_be_of_an_interrupted_test() {
    let Some(net) = Net::new() else { return };
    let _server = net.server();
    let client = net.client(&["-t", "60", "--lr-doctor"]);
    client.wait_for_stdout("sec ", 2);
    client.signal(linerate_interop::Signal::Interrupt);

    let finished = client.finish();
    finished.expect_stdout("not known: the server (it sent no facts");
}
