//! Goal: every rule about a cell of the HTTP lab matches its defect and lacks no fact silently.
//! Method: one row of `cell.txt` for each scenario; further, removing any single fact never makes
//! another cause a sure verdict.

mod facts;

use linerate_doctor::http::cell_verdict;
use linerate_model::finding::Confidence;
use linerate_model::http::{CellFacts, CellVerdict, VerdictClass};
use linerate_model::stored_name;
use serde_json::{Value, json};

/// A closed loop of 64 connections with room everywhere on a gigabit link.
fn healthy() -> Value {
    let endpoint = json!({
        "cpus": 4, "cpu_busy": 0.1, "cpu_softirq": 0.0, "program_cpus": 0.4,
        "core": 2, "core_busy": 0.1, "core_softirq": 0.02, "core_own": 0.08,
        "thread_busy": 0.1, "threads": 4, "imbalance": 1.0, "steal": 0.0, "throttled": 0.0, "retransmit_share": 0.0,
        "fds": { "peak": 100, "limit": 200_000 }, "conntrack": null,
        "listen_overflows": 0, "listen_drops": 0, "tcp_memory_pressures": 0,
    });
    json!({
        "key": { "phase": "matrix", "payload_bytes": 1024, "connections": 64, "rate_per_s": null },
        "port": 8080,
        "network": { "link": { "bps": 1e9, "bits_per_response": 1e9 / 101_461.0 } },
        "is_one_host": false,
        "mode": { "kind": "closed", "pipeline": 1, "think_ns": 0 },
        "medians": {
            "runs": 3, "ok_per_s": 50_000.0, "p50_ns": 1_280_000, "of_ceiling": 0.49, "nic_util": 0.5,
        },
        "position": { "is_queueing": false },
        "open_share": 1.0, "answered_share": 1.0, "ended": 501_000,
        "errors": {}, "flags": {},
        "client": endpoint, "server": endpoint,
    })
}

fn judged(facts: Value) -> CellVerdict {
    cell_verdict(&serde_json::from_value::<CellFacts>(facts).expect("facts of a cell"))
}

/// `cpu-bound-total high network-loss`: class, confidence and contributing classes.
fn summary(verdict: &CellVerdict) -> String {
    let contributing = verdict
        .contributing
        .iter()
        .map(|judgement| stored_name(judgement.class));
    let words = [
        stored_name(verdict.primary.class),
        stored_name(verdict.confidence),
    ];
    words
        .into_iter()
        .chain(contributing)
        .collect::<Vec<_>>()
        .join(" ")
}

#[test]
fn every_scenario_has_its_verdict_and_its_evidence() {
    let mut wrong = Vec::new();
    for [words, expected, texts] in facts::rows(include_str!("cell.txt")) {
        let mut facts = healthy();
        facts::set(&mut facts, words);
        let verdict = judged(facts);
        let all: Vec<&_> = std::iter::once(&verdict.primary)
            .chain(&verdict.contributing)
            .collect();
        let text: Vec<String> = all
            .iter()
            .flat_map(|one| {
                one.evidence
                    .iter()
                    .map(ToString::to_string)
                    .chain([one.advice.clone()])
            })
            .collect();
        let text = text.join("\n");
        let is_repeated = |advice: &str| {
            let parts: Vec<&str> = advice.split("; ").collect();
            (1..parts.len()).any(|place| parts[..place].contains(&parts[place]))
        };
        let is_complete = all.iter().all(|one| {
            !one.evidence.is_empty() && !one.advice.is_empty() && !is_repeated(&one.advice)
        });

        if summary(&verdict) != expected
            || !is_complete
            || !texts.split(", ").all(|part| text.contains(part))
        {
            wrong.push(format!(
                "{words}: {expected} {texts}\n{}\n{text}",
                summary(&verdict)
            ));
        }
    }

    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn removing_a_fact_makes_no_other_cause_a_sure_verdict() {
    let mut wrong = Vec::new();
    for [words, ..] in facts::rows::<3>(include_str!("cell.txt")) {
        let mut facts = healthy();
        facts::set(&mut facts, words);
        let before = judged(facts.clone());
        let mut allowed = vec![before.primary.class, VerdictClass::Unknown];
        allowed.extend(before.contributing.iter().map(|judgement| judgement.class));

        for endpoint in ["client", "server"] {
            let members: Vec<String> = facts[endpoint]
                .as_object()
                .into_iter()
                .flatten()
                .map(|(name, _)| name.clone())
                .collect();
            for member in members {
                let mut less = facts.clone();
                less[endpoint][&member] = Value::Null;
                let after = judged(less);
                let is_allowed =
                    after.confidence == Confidence::Low || allowed.contains(&after.primary.class);
                if !is_allowed && facts["position"]["is_queueing"] != true {
                    wrong.push(format!(
                        "{words} without {endpoint}.{member}: {}",
                        summary(&after)
                    ));
                }
            }
        }
    }

    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn values_out_of_range_do_not_panic() {
    for words in [
        "medians.ok_per_s=0.0 position.best_larger_per_s=0.0",
        "ended=18446744073709551615 medians.runs=4294967295 position.best_smaller_per_s=0.0",
        "key.connections=4294967295 medians.p50_ns=18446744073709551615",
    ] {
        for network in ["loopback", "unknown"] {
            let mut facts = healthy();
            facts::set(&mut facts, words);
            facts["network"] = network.into();
            let _ = judged(facts);
        }
    }
}
