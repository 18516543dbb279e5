//! Goal: every rule fires on its fault, is ruled out on a healthy host, and names the facts it
//! lacks. Method: one row of `rules.txt` per rule; further, removing any single fact from a host
//! with a finding must never make another rule fire or rule the first one out.

#[allow(dead_code, reason = "this table holds no JSON")]
mod facts;
mod hosts;

use std::collections::BTreeSet;

use hosts::host;
use linerate_doctor::{catalogue, compare, diagnose};
use linerate_model::finding::{Diagnosis, Severity};

struct Row {
    id: &'static str,
    sick: Vec<&'static str>,
    healing: Vec<&'static str>,
    needed: &'static str,
}

fn rows() -> impl Iterator<Item = Row> {
    facts::rows(include_str!("rules.txt"))
        .into_iter()
        .map(|[id, sick, healing, needed]| Row {
            id,
            sick: sick.split_whitespace().collect(),
            healing: healing.split_whitespace().collect(),
            needed,
        })
}

fn judged(words: &[&str]) -> Diagnosis {
    diagnose(&[host(words)], &[])
}

fn fires(diagnosis: &Diagnosis, id: &str) -> bool {
    diagnosis.findings.iter().any(|finding| finding.id == id)
}

/// The words with those of the same key replaced.
fn healed(row: &Row) -> Vec<&'static str> {
    let key = |word: &&str| word.split('=').next().unwrap_or_default().to_owned();
    let replaced: BTreeSet<String> = row.healing.iter().map(key).collect();
    let kept = row
        .sick
        .iter()
        .filter(|word| !replaced.contains(&key(word)));
    kept.chain(&row.healing).copied().collect()
}

fn without(row: &Row) -> Vec<&'static str> {
    let prefix = row.needed.trim_end_matches('*');
    let cpu = row
        .needed
        .strip_prefix("cpu.")
        .and_then(|rest| rest.split('.').next());

    let names = |word: &str| {
        let key = word
            .split('=')
            .next()
            .unwrap_or_default()
            .trim_start_matches(['+', '#']);
        let is_load = cpu.is_some_and(|cpu| key.starts_with(&format!("@cpu{cpu}:")));
        is_load || key == row.needed || (row.needed.ends_with('*') && key.starts_with(prefix))
    };
    row.sick
        .iter()
        .copied()
        .filter(|word| !names(word))
        .collect()
}

#[test]
fn every_rule_has_a_row() {
    let rows: BTreeSet<&str> = rows().map(|row| row.id).collect();
    // VIRT-02 compares two hosts and has a test of its own.
    let rules: BTreeSet<&str> = catalogue()
        .map(|rule| rule.id)
        .filter(|id| *id != "VIRT-02")
        .collect();
    assert_eq!(rows, rules);
}

#[test]
fn every_rule_fires_is_ruled_out_and_names_missing_facts() {
    let mut wrong = Vec::new();
    for row in rows() {
        let sick = judged(&row.sick);
        match sick.findings.iter().find(|finding| finding.id == row.id) {
            None => wrong.push(format!(
                "{} does not fire: {:?} {:?}",
                row.id,
                sick.ruled_out
                    .iter()
                    .filter(|r| r.id == row.id)
                    .collect::<Vec<_>>(),
                sick.not_evaluated
                    .iter()
                    .filter(|r| r.id == row.id)
                    .collect::<Vec<_>>()
            )),
            Some(finding) if finding.evidence.is_empty() => {
                wrong.push(format!("{} quotes nothing", row.id));
            }
            Some(_) => {}
        }

        let well = judged(&healed(&row));
        if fires(&well, row.id) {
            wrong.push(format!("{} fires on a healthy host", row.id));
        }

        if !well.ruled_out.iter().any(|entry| entry.id == row.id) {
            wrong.push(format!(
                "{} is not ruled out on a healthy host: {:?}",
                row.id,
                well.not_evaluated
                    .iter()
                    .filter(|r| r.id == row.id)
                    .collect::<Vec<_>>()
            ));
        }

        let less = judged(&without(&row));
        let is_open = less.not_evaluated.iter().any(|entry| entry.id == row.id);
        if fires(&less, row.id) || less.ruled_out.iter().any(|entry| entry.id == row.id) || !is_open
        {
            wrong.push(format!(
                "{} judges without {}: {:?}",
                row.id,
                row.needed,
                less.ruled_out
                    .iter()
                    .filter(|r| r.id == row.id)
                    .collect::<Vec<_>>()
            ));
        }
    }

    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// No command sets what is set already, lacks its exact undo, needs what the kernel may lack, or
/// misses the cause.
#[test]
fn commands_fit_the_host_and_are_undone_exactly() {
    const PACED: &str =
        "nic.e.net.mtu=1500 run.0.tool=x run.0.congestion=bbr nic.e.qdisc.root.kind=pfifo_fast";

    const FULL: &str = "+net.netstat.TcpExt.ListenOverflows=5";
    const UNPAUSED: &str = "nic.e.link.up=true nic.e.pause.resolved=none nic.e.pause.rx=true";

    const SMALL: &str = "run.0.tool=x run.0.limit=sender-window run.0.received_bps=1e8 \
                         run.0.sndbuf_limited_share=0.9 run.0.sndbuf_bytes=4096 run.0.rtt_us=1000 \
                         sysctl.net.ipv4.tcp_wmem=4096_4096_4096";

    for (id, before, facts, change) in [
        ("QD-05", PACED, "kernel.qdiscs=fq,tbf", None),
        (
            "QD-05",
            PACED,
            "kernel.qdiscs=tbf nic.e.qdisc.root.command=tc_qdisc_del_dev_e_root",
            None,
        ),
        (
            "QD-05",
            PACED,
            "kernel.qdiscs=fq nic.e.qdisc.root.command=tc_qdisc_del_dev_e_root",
            Some(("tc qdisc replace dev e root fq", "tc qdisc del dev e root")),
        ),
        (
            "QD-05",
            PACED,
            "kernel.qdiscs=fq nic.e.qdisc.root.command=reboot",
            None,
        ),
        (
            "QD-05",
            PACED,
            "kernel.qdiscs=fq nic.e.qdisc.root.command=tc_qdisc_del_dev_other_root",
            None,
        ),
        (
            "QD-05",
            PACED,
            "kernel.qdiscs=fq nic.e.qdisc.root.command=tc_qdisc_replace_dev_e_root_pfifo_#",
            None,
        ),
        (
            "QD-05",
            PACED,
            "kernel.qdiscs=fq nic.e.qdisc.root.command=tc_qdisc_replace_dev_e_root_-force",
            None,
        ),
        ("SYS-04", FULL, "", None),
        ("SYS-04", FULL, "sysctl.net.core.somaxconn=4096", None),
        (
            "SYS-04",
            FULL,
            "sysctl.net.core.somaxconn=128",
            Some((
                "sysctl -w net.core.somaxconn=4096",
                "sysctl -w net.core.somaxconn=128",
            )),
        ),
        ("PAU-02", UNPAUSED, "nic.e.pause.tx=true", None),
        (
            "PAU-02",
            UNPAUSED,
            "nic.e.pause.tx=false nic.e.pause.autoneg=true",
            Some((
                "ethtool -A e autoneg on rx on tx on",
                "ethtool -A e autoneg on rx on tx off",
            )),
        ),
        ("WIN-02", SMALL, "run.0.window_bytes=4096", None),
        (
            "WIN-02",
            SMALL,
            "sysctl.net.ipv4.tcp_wmem=4096_!4096_4096",
            None,
        ),
        (
            "WIN-02",
            SMALL,
            "",
            Some((
                "sysctl -w net.ipv4.tcp_wmem=\"4096 4096 6291456\"",
                "sysctl -w net.ipv4.tcp_wmem=\"4096 4096 4096\"",
            )),
        ),
    ] {
        let diagnosis = judged(
            &[before, facts]
                .map(|words| words.split_whitespace())
                .into_iter()
                .flatten()
                .collect::<Vec<_>>(),
        );
        let finding = diagnosis.findings.iter().find(|finding| finding.id == id);
        let finding = finding.unwrap_or_else(|| panic!("{id} {facts}: {diagnosis:#?}"));
        let expected: Vec<(&str, &str)> = change.into_iter().collect();

        let printed: Vec<(&str, &str)> = finding
            .remedy
            .iter()
            .zip(&finding.undo)
            .map(|(command, undo)| (command.as_str(), undo.as_str()))
            .collect();
        assert_eq!(printed, expected, "{id} {facts}");
        assert!(
            finding.remedy.len() == finding.undo.len()
                && (!printed.is_empty() || finding.advice.is_some()),
            "{finding:?}"
        );
    }
}

/// Names of devices come from kernels, files and peers, and users copy commands into a shell.
#[test]
fn device_whose_name_a_shell_interprets_has_findings_and_no_command() {
    let mut commands = 0;
    for name in [
        "eth0 root netem loss 100% #",
        "!x",
        "-batch",
        "..",
        "a/b",
        "e",
    ] {
        for row in rows() {
            let of_device = |word: &&str| match *word {
                "route.peer.dev=e" => format!("route.peer.dev={name}"),
                "nic.t.tunnel.below=e" => format!("nic.t.tunnel.below={name}"),
                word => word.replace("nic.e.", &format!("nic.{name}.")),
            };
            let words: Vec<String> = row.sick.iter().map(of_device).collect();
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let diagnosis = judged(&words);
            assert!(fires(&diagnosis, row.id), "{} with a device {name}", row.id);

            for finding in &diagnosis.findings {
                let lines = finding
                    .remedy
                    .iter()
                    .chain(&finding.undo)
                    .filter(|line| line.contains(name));
                let advice = finding.advice.iter().filter(|advice| advice.contains(name));
                let found: Vec<&String> = lines.chain(advice).collect();

                if name == "e" {
                    commands += finding.remedy.len();
                } else {
                    assert!(found.is_empty(), "{}: {found:?}", row.id);
                    assert!(finding.remedy.len() >= finding.undo.len(), "{finding:?}");
                }
            }
        }
    }

    assert!(commands > 10, "the table has {commands} commands");
}

#[test]
fn rule_about_two_guests_fires_is_ruled_out_and_names_missing_facts() {
    let guest = |words: &[&str]| {
        host(&[&["nic.e.drv.name=virtio_net", "nic.e.net.mtu=1500"], words].concat())
    };
    let compared = |a: &[&str], b: &[&str]| compare(&guest(a), &guest(b), &[]);
    let (on, off) = (
        ["nic.e.feat.rx-gro-hw=on"],
        ["nic.e.feat.rx-gro-hw=off_[fixed]"],
    );
    assert!(fires(&compared(&on, &off), "VIRT-02"));

    let alike = compared(&on, &on);
    assert!(!fires(&alike, "VIRT-02") && alike.ruled_out.iter().any(|entry| entry.id == "VIRT-02"));
    let half = compared(&on, &[]);
    assert!(
        !fires(&half, "VIRT-02") && half.not_evaluated.iter().any(|entry| entry.id == "VIRT-02")
    );
}

#[test]
fn removing_a_fact_never_makes_a_rule_fire() {
    let mut wrong = Vec::new();
    for row in rows() {
        let whole = judged(&row.sick);
        let before: BTreeSet<&str> = whole
            .findings
            .iter()
            .map(|finding| finding.id.as_str())
            .collect();

        for left_out in 0..row.sick.len() {
            let words: Vec<&str> = row
                .sick
                .iter()
                .enumerate()
                .filter(|(index, _)| *index != left_out)
                .map(|(_, word)| *word)
                .collect();
            let partial = judged(&words);

            // A vector, a CPU, a point of a sweep or a whole run less is no missing fact but another
            // host.
            let is_cpu = row.id == "TUN-02" && row.sick[left_out].starts_with('@');
            let is_element = is_cpu
                || matches!(row.id, "IRQ-01" | "TOOL-02")
                || row.sick[left_out].contains(".tool=");
            if !is_element
                && partial.ruled_out.iter().any(|entry| entry.id == row.id)
                && !fires(&partial, row.id)
            {
                wrong.push(format!(
                    "{} without {} is ruled out",
                    row.id, row.sick[left_out]
                ));
            }

            for finding in partial.findings.iter().filter(|finding| {
                !before.contains(finding.id.as_str()) && finding.severity > Severity::Info
            }) {
                wrong.push(format!(
                    "{} without {} fires {}",
                    row.id, row.sick[left_out], finding.id
                ));
            }
        }
    }

    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_text_is_two_sentences_and_has_a_reference() {
    for rule in catalogue() {
        let ends = rule.explanation.matches(". ").count()
            + rule.explanation.matches("? ").count()
            + rule.explanation.matches("; ").count();
        assert!(
            rule.explanation.ends_with('.') && ends >= 1,
            "{}: {}",
            rule.id,
            rule.explanation
        );
        assert!(
            !rule.reference.is_empty() && !rule.title.ends_with('.'),
            "{}",
            rule.id
        );
    }
}

#[test]
fn shaper_of_a_host_with_the_rate_of_the_test_is_its_limit_and_not_the_path() {
    let facts = "nic.e.net.mtu=1500 nic.e.qdisc.root.kind=tbf nic.e.qdisc.root.rate_bps=4e7 \
                 run.0.tool=x run.0.limit=path run.0.busy_share=0.99 run.0.received_bps=3.83e7";
    let words: Vec<&str> = facts.split_whitespace().collect();
    assert_eq!(judged(&words).verdict.verdict, "configured-rate");

    let faster = "nic.e.qdisc.root.rate_bps=1e9";
    let verdict = judged(&[words, vec![faster]].concat()).verdict;
    assert_eq!(verdict.verdict, "path");
}

/// A link carries 52 Gbit/s in each direction at once: 26 in both do not fill it.
#[test]
fn both_directions_of_a_shared_card_do_not_share_its_bandwidth() {
    let row = rows().find(|row| row.id == "PCI-03").expect("a row");
    let halved: Vec<String> = row
        .sick
        .iter()
        .map(|word| word.replace("=70", "=32"))
        .collect();
    let words: Vec<&str> = halved.iter().map(String::as_str).collect();
    let judged = judged(&words);
    assert!(judged.ruled_out.iter().any(|entry| entry.id == "PCI-03"));
}

/// A queue of some ms that overflows, and a path of microseconds whose round trip grows with the
/// work of the hosts.
#[test]
fn advice_on_a_path_does_not_contradict_its_measures() {
    let path = "run.0.tool=x run.0.limit=path run.0.busy_share=0.99 run.0.received_bps=95e6";
    for (facts, contains, lacks) in [
        (
            "run.0.rtt_inflation=770 run.0.min_rtt_us=4 run.0.rtt_us=3080 run.0.retransmit_share=0",
            "3.1 ms",
            "no queue",
        ),
        (
            "run.0.rtt_inflation=1.1 run.0.rtt_us=3080 run.0.retransmit_share=9.6e-5",
            "0.01 % of the segments",
            "no loss",
        ),
        (
            "run.0.rtt_inflation=1.1 run.0.rtt_us=3080 run.0.retransmit_share=0",
            "no queue",
            "overflows",
        ),
        (
            "run.0.rtt_inflation=1.5 run.0.rtt_us=9000 run.0.retransmit_share=0.002 \
             run.0.later_spread=0.01",
            "overflows",
            "without",
        ),
        (
            "run.0.rtt_inflation=1.0 run.0.rtt_us=9000 run.0.retransmit_share=0.002 \
             run.0.later_spread=0.01",
            "policer",
            "overflows",
        ),
    ] {
        let diagnosis = judged(&[path, facts].join(" ").split(' ').collect::<Vec<_>>());
        let found = diagnosis
            .findings
            .iter()
            .find(|finding| finding.id == "PATH-10");
        let advice = found
            .and_then(|finding| finding.advice.as_deref())
            .unwrap_or_else(|| panic!("{facts}: no PATH-10"));
        assert!(
            advice.contains(contains) && !advice.contains(lacks),
            "{facts}: {advice}"
        );
    }
}
