//! Goal: every command that the doctor prints removes its finding, or at least doubles the rate,
//! and the undo restores every setting. Method: one fault per pair of commands on a veth pair
//! between namespaces of our own. A test runs with the fault and with the fix; the settings in the
//! facts before the fix and after the undo are compared.

use std::collections::BTreeMap;
use std::path::Path;

use linerate_interop::namespaces::{DEVICE, Net, inside, run};
use linerate_interop::{unsupported, words};
use serde_json::Value;

/// A fault at one end, and the rule whose finding has the fix.
struct Fault {
    /// It is at the client.
    at_client: bool,
    /// Commands that make it, in a shell.
    made_by: &'static str,
    /// Command for the other end.
    beside: &'static str,
    /// Options of the test.
    words: &'static str,
    rule: &'static str,
}

const fn client(made_by: &'static str, rule: &'static str) -> Fault {
    Fault {
        at_client: true,
        made_by,
        beside: "true",
        words: "-C cubic",
        rule,
    }
}

const fn server(made_by: &'static str, rule: &'static str) -> Fault {
    Fault {
        at_client: false,
        ..client(made_by, rule)
    }
}

/// Values of a host that a command can change.
fn settings(net: &Net, host: &str) -> BTreeMap<String, String> {
    let nic = format!("nic.{DEVICE}.");
    let is_setting = |key: &str| match key.strip_prefix(&nic) {
        Some(fact) => {
            ["net.", "feat.", "qdisc."]
                .iter()
                .any(|group| fact.starts_with(group))
                && !fact.ends_with("backlog")
        }
        None => key.starts_with("sysctl."),
    };

    let snapshot = net.snapshot(host, &[DEVICE]);
    let facts = snapshot["facts"].as_object().expect("facts");
    let settings = facts.iter().filter(|(key, _)| is_setting(key));
    settings
        .map(|(key, fact)| (key.clone(), fact["v"].to_string()))
        .collect()
}

fn shell(host: &str, command: &str) {
    let status = inside(host, Path::new("sh"), &["-ec", command])
        .status()
        .expect("sh");
    assert!(status.success(), "{command}");
}

/// Rate of a test in bit/s, and the finding of a rule.
fn tested(net: &Net, options: &str, rule: &str) -> (f64, Option<Value>, Value) {
    let report = net
        .client(&[&["-J", "--lr-doctor", "-t", "3"][..], &words(options)].concat())
        .finish()
        .json();
    let rate = report["end"]["sum_received"]["bits_per_second"]
        .as_f64()
        .expect("a rate");
    let findings = report["lr_doctor"]["findings"]
        .as_array()
        .cloned()
        .unwrap_or_default();

    (
        rate,
        findings.into_iter().find(|finding| finding["id"] == rule),
        report["lr_doctor"].clone(),
    )
}

fn commands(finding: &Value, list: &str) -> Vec<String> {
    let commands = finding[list].as_array().into_iter().flatten();
    commands
        .map(|command| command.as_str().expect("a command").to_owned())
        .collect()
}

fn follow(faults: &[Fault]) {
    for Fault {
        at_client,
        made_by,
        beside,
        words,
        rule,
    } in faults
    {
        let Some(net) = Net::new() else { return };
        let (host, other) = if *at_client {
            (&net.a, &net.b)
        } else {
            (&net.b, &net.a)
        };
        shell(host, made_by);
        shell(other, beside);

        let before = settings(&net, host);
        let _server = net.server();
        let (slow, finding, diagnosis) = tested(&net, words, rule);

        if *rule == "QD-02" && dropped(host) == 0 {
            unsupported(
                "the veth pair of this kernel takes every packet at once, so nothing queues before \
                 it",
            );
            continue;
        }

        let finding = finding.unwrap_or_else(|| panic!("{made_by}: no {rule}: {diagnosis:#}"));
        let (remedy, undo) = (commands(&finding, "remedy"), commands(&finding, "undo"));
        assert!(
            !remedy.is_empty() && remedy.len() == undo.len(),
            "{made_by}: {finding:#}"
        );
        remedy.iter().for_each(|command| shell(host, command));

        let (fast, left, diagnosis) = tested(&net, words, rule);
        assert!(
            left.is_none() || fast >= 2.0 * slow,
            "{made_by}: {slow} to {fast}: {diagnosis:#}"
        );
        undo.iter().for_each(|command| shell(host, command));
        assert_eq!(
            settings(&net, host),
            before,
            "{made_by}: {remedy:?} {undo:?}"
        );
    }
}

/// Packets that the queue of a host has dropped.
fn dropped(host: &str) -> u64 {
    let shown = inside(
        host,
        Path::new("tc"),
        &["-s", "qdisc", "show", "dev", DEVICE],
    )
    .output()
    .expect("tc");
    let text = String::from_utf8_lossy(&shown.stdout).into_owned();
    let drops = text
        .split_once("(dropped ")
        .and_then(|(_, rest)| rest.split(',').next()?.parse().ok());

    drops.unwrap_or_else(|| panic!("{text}"))
}

#[test]
#[ignore = "each pair of commands is two tests: make live SUITE=faults"]
fn variables_of_tcp() {
    follow(&[
        server("sysctl -qw 'net.ipv4.tcp_rmem=4096 16384 16384'", "WIN-01"),
        // The buffer is too small for a round trip, which acknowledgements through a shaper make.
        Fault {
            beside: "tc qdisc add dev lr0 root tbf rate 100kbit burst 1600 limit 1000000",
            words: "-C cubic -l 1K --lr-path copy",
            ..client("sysctl -qw 'net.ipv4.tcp_wmem=4096 4096 4096'", "WIN-02")
        },
        client("sysctl -qw net.ipv4.tcp_window_scaling=0", "WIN-04"),
        server("sysctl -qw net.ipv4.tcp_sack=0", "WIN-04"),
    ]);
}

/// A queue that is too short for bursts; with GRO the other end of a pair stops it.
const fn queue(made_by: &'static str) -> Fault {
    Fault {
        beside: "ethtool -K lr0 gro on",
        words: "-C cubic -P 16",
        ..client(made_by, "QD-02")
    }
}

#[test]
#[ignore = "each pair of commands is two tests: make live SUITE=faults"]
fn disciplines_of_the_queue() {
    follow(&[
        client(
            "tc qdisc add dev lr0 root tbf rate 100mbit burst 32k latency 20ms",
            "QD-01",
        ),
        queue("tc qdisc add dev lr0 root handle 7: pfifo limit 1"),
        queue("ip link set dev lr0 txqueuelen 2; tc qdisc add dev lr0 root pfifo_fast"),
    ]);
}

#[test]
#[ignore = "each pair of commands is two tests: make live SUITE=faults"]
fn offloads() {
    follow(&[
        client("ethtool -K lr0 tso off gso off tx off sg off", "OFF-01"),
        client("ethtool -K lr0 tso off gso off", "OFF-01"),
        client("ip link set dev lr0 gso_max_segs 1", "OFF-01"),
    ]);
}

#[test]
fn sizes_of_packets() {
    follow(&[client("ip link set dev lr0 mtu 9000", "MTU-01")]);
}

/// A hierarchy of classes is not removed by a command, because none makes it again.
#[test]
fn what_cannot_be_restored_is_advice() {
    let Some(net) = Net::new() else { return };
    let classes = "root handle 1: htb default 1";
    run(&format!("tc -n {} qdisc add dev {DEVICE} {classes}", net.a));
    run(&format!(
        "tc -n {} class add dev {DEVICE} parent 1: classid 1:1 htb rate 20mbit burst 32k",
        net.a
    ));

    let _server = net.server();
    let (_, finding, diagnosis) = tested(&net, "-C cubic", "QD-01");
    let finding = finding.unwrap_or_else(|| panic!("{diagnosis:#}"));
    assert!(commands(&finding, "remedy").is_empty(), "{finding:#}");
    assert!(
        finding["advice"].to_string().contains("tc class show"),
        "{finding:#}"
    );
}

/// A shaper at the rate of a common link is no full link.
#[test]
fn shaper_at_the_rate_of_a_link_is_the_cause() {
    let Some(net) = Net::new() else { return };
    run(&format!(
        "tc -n {} qdisc add dev {DEVICE} root tbf rate 1gbit burst 256kb latency 50ms",
        net.a
    ));
    let _server = net.server();
    let (_, finding, diagnosis) = tested(&net, "-C cubic", "QD-01");
    assert_eq!(
        finding.map(|finding| finding["severity"].clone()),
        Some("high".into()),
        "{diagnosis:#}"
    );
    assert_eq!(
        diagnosis["verdict"]["verdict"], "configured-rate",
        "{diagnosis:#}"
    );
}
