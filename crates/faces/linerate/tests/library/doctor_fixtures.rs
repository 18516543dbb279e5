//! Goal: recorded and published outputs of commands lead to exactly the findings that are expected
//! of them. Method: import every case of `fixtures/doctor`, judge it, and compare with
//! `expected.json`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use linerate::diagnose::import_texts;
use linerate_doctor::report as doctor;
use linerate_doctor::{Observed, compare, derive, diagnose};
use linerate_document::Style;
use linerate_host::import::Imported;
use linerate_model::facts;
use linerate_model::finding::{Diagnosis, Severity};
use linerate_model::snapshot::{Snapshot, Value};
use linerate_model::stored_name;

fn import(name: &str, text: &str) -> Imported {
    import_texts(&[(name, text)])
}

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fixtures/doctor")
}

fn read(file: &str) -> String {
    std::fs::read_to_string(directory().join(file)).expect("a fixture")
}

fn snapshots(file: &str) -> Vec<Snapshot> {
    import(file.trim_end_matches(".txt"), &read(file)).snapshots
}

fn cases() -> Vec<serde_json::Value> {
    let document: serde_json::Value = serde_json::from_str(&read("expected.json")).expect("JSON");
    document["cases"].as_array().expect("cases").clone()
}

fn files(case: &serde_json::Value) -> Vec<&str> {
    let files = case["files"].as_array().expect("files");
    files
        .iter()
        .map(|file| file.as_str().expect("a name"))
        .collect()
}

fn judged(case: &serde_json::Value) -> Diagnosis {
    let observed: Vec<Observed> = files(case)
        .into_iter()
        .flat_map(snapshots)
        .map(Observed::once)
        .collect();
    match (case["mode"].as_str(), observed.as_slice()) {
        (Some("diff"), [a, b]) => compare(a, b, &[]),
        _ => diagnose(&observed, &[]),
    }
}

fn ids(list: &serde_json::Value) -> BTreeSet<String> {
    let words = list
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|entry| entry["id"].as_str().or_else(|| entry.as_str()));
    let word = |text: &str| text.split([':', ' ']).next().unwrap_or(text).to_owned();
    words.map(word).collect()
}

#[test]
fn every_case_has_its_findings_and_no_other() {
    for case in cases() {
        let name = case["id"].as_str().expect("an id");
        let diagnosis = judged(&case);
        let fired: BTreeSet<String> = diagnosis
            .findings
            .iter()
            .map(|finding| finding.id.clone())
            .collect();

        let open: BTreeSet<String> = diagnosis
            .not_evaluated
            .iter()
            .map(|entry| entry.id.clone())
            .collect();
        let suspected = |id: &str| {
            diagnosis
                .not_evaluated
                .iter()
                .any(|entry| entry.id == id && entry.suspicion.is_some())
        };

        let (must, should) = (ids(&case["must"]), ids(&case["should"]));
        for entry in case["must"].as_array().into_iter().flatten() {
            let id = entry["id"].as_str().expect("an id");
            if entry["state"]
                .as_str()
                .is_some_and(|state| state.starts_with("unknown"))
            {
                assert!(
                    suspected(id) && !fired.contains(id),
                    "case {name}: {id} must be open, with a hint"
                );
                continue;
            }

            let of_rule = diagnosis
                .findings
                .iter()
                .filter(|finding| finding.id == id)
                .collect::<Vec<_>>();
            assert!(
                !of_rule.is_empty(),
                "case {name}: {id} must fire; {fired:?} {:?}",
                diagnosis
                    .not_evaluated
                    .iter()
                    .filter(|e| e.id == id)
                    .collect::<Vec<_>>()
            );

            for finding in of_rule {
                assert!(
                    !finding.evidence.is_empty(),
                    "case {name}: {id} quotes nothing"
                );
                if let Some(severity) = entry["severity"].as_str() {
                    assert_eq!(stored_name(finding.severity), severity, "case {name}: {id}");
                }

                if entry["confidence_max"] == "medium" {
                    assert_ne!(stored_name(finding.confidence), "high", "case {name}: {id}");
                }
            }
        }

        for id in should {
            assert!(
                fired.contains(&id) || suspected(&id),
                "case {name}: {id} should at least be suspected"
            );
        }

        for id in ids(&case["must_not"]) {
            assert!(!fired.contains(&id), "case {name}: {id} must not fire");
        }

        for id in ids(&case["unknown"]) {
            assert!(
                open.contains(&id),
                "case {name}: {id} must be open: {:?}",
                diagnosis
                    .ruled_out
                    .iter()
                    .filter(|r| r.id == id)
                    .collect::<Vec<_>>()
            );
        }

        let allowed: BTreeSet<String> = must.union(&ids(&case["should"])).cloned().collect();
        for finding in diagnosis
            .findings
            .iter()
            .filter(|finding| finding.severity > Severity::Info)
        {
            assert!(
                allowed.contains(&finding.id),
                "case {name}: unexpected {} on {}: {:?}",
                finding.id,
                finding.subject,
                finding.evidence
            );
        }
    }
}

#[test]
fn ruled_out_rule_has_a_reason() {
    for case in cases() {
        let name = case["id"].as_str().expect("an id");
        let diagnosis = judged(&case);

        for wanted in ids(&case["ruled_out"]) {
            let prefix = wanted.trim_end_matches('*');
            let found = diagnosis
                .ruled_out
                .iter()
                .find(|entry| entry.id.starts_with(prefix) || entry.reason.starts_with(prefix));
            assert!(
                found.is_some_and(|entry| !entry.reason.is_empty()),
                "case {name}: {wanted}; {:?}",
                diagnosis
                    .not_evaluated
                    .iter()
                    .filter(|e| e.id == wanted)
                    .collect::<Vec<_>>()
            );
        }
    }
}

/// Facts of `expected.json` under our keys: case, key there, key here.
const KEYS: [(&str, &str, &str); 37] = [
    ("01", "receiver.nic.enp4s0.drv.name", "nic.enp4s0.drv.name"),
    (
        "01",
        "receiver.nic.enp4s0.ring.rx.cur",
        "nic.enp4s0.ring.rx.cur",
    ),
    (
        "01",
        "receiver.nic.enp4s0.ring.rx.max",
        "nic.enp4s0.ring.rx.max",
    ),
    (
        "01",
        "receiver.nic.enp4s0.counter.rx_missed",
        "nic.enp4s0.drv.rx_missed",
    ),
    (
        "01",
        "receiver.nic.enp4s0.counter.rx_errors",
        "nic.enp4s0.drv.rx_errors",
    ),
    ("01", "receiver.nic.enp4s0.chan", "nic.enp4s0.chan"),
    (
        "01",
        "receiver.nic.enp4s0.irq.total",
        "nic.enp4s0.irq.total",
    ),
    (
        "01",
        "receiver.nic.enp4s0.irq.cpus_used",
        "nic.enp4s0.irq.cpus_used",
    ),
    (
        "01",
        "receiver.pci.cur_speed_gts",
        "nic.enp4s0.pci.cur_speed_gts",
    ),
    ("01", "receiver.pci.cur_width", "nic.enp4s0.pci.cur_width"),
    (
        "05",
        "server.nic.enp1s0f0.pause.advertised",
        "nic.enp1s0f0.pause.advertised",
    ),
    (
        "05",
        "server.nic.em4.pause.advertised",
        "nic.em4.pause.advertised",
    ),
    (
        "05",
        "server.nic.em4.pause.partner",
        "nic.em4.pause.partner",
    ),
    (
        "05",
        "server.nic.em4.pause.resolved",
        "nic.em4.pause.resolved",
    ),
    ("05", "client.nic.enp7s0.link.up", "nic.enp7s0.link.up"),
    (
        "06",
        "server.lro",
        "nic.enp1s0f0.feat.large-receive-offload",
    ),
    (
        "06",
        "server.gro",
        "nic.enp1s0f0.feat.generic-receive-offload",
    ),
    ("06", "server.ip_forward", "sysctl.net.ipv4.ip_forward"),
    ("07", "ring.rx.cur", "nic.enp1s0f0.ring.rx.cur"),
    ("07", "ring.rx.max", "nic.enp1s0f0.ring.rx.max"),
    ("07", "chan.combined.cur", "nic.enp1s0f0.chan.combined.cur"),
    ("07", "chan.combined.max", "nic.enp1s0f0.chan.combined.max"),
    ("07", "qdisc.root", "nic.enp1s0f0.qdisc.root.kind"),
    ("07", "leaf", "nic.enp1s0f0.qdisc._8.kind"),
    ("07", "tuned", "svc.tuned_profile"),
    ("11", "iperf3_version", "run.0.version"),
    (
        "13",
        "server.net.snmp.Tcp.RetransSegs",
        "net.snmp.Tcp.RetransSegs",
    ),
    ("L1", "ring.rx.cur", "nic.eth1.ring.rx.cur"),
    ("L1", "pci.cur_speed_gts", "nic.eth1.pci.cur_speed_gts"),
    ("L1", "pci.cur_width", "nic.eth1.pci.cur_width"),
    ("L1", "chan", "nic.eth1.chan"),
    ("L1", "speed_mbps", "nic.eth1.link.speed_mbps"),
    ("L2", "speed_mbps", "nic.eth3.link.speed_mbps"),
    ("L2", "gso", "nic.eth3.feat.generic-segmentation-offload"),
    ("L3", "pci.cur_width", "nic.eth2.pci.cur_width"),
    (
        "L3",
        "counter:Rx Queue#0/pkts rx OOB",
        "nic.eth2.drv.Rx Queue#0/pkts rx OOB",
    ),
    ("L5", "pci.cur_speed_gts", "nic.eth0.pci.cur_speed_gts"),
];

#[test]
fn facts_are_extracted_as_expected() {
    let cases = cases();
    for (id, there, here) in KEYS {
        let case = cases.iter().find(|case| case["id"] == id).expect("a case");
        let expected = &case["facts"][there];
        assert!(!expected.is_null(), "case {id} has no {there}");

        let all: Vec<Snapshot> = files(case)
            .into_iter()
            .flat_map(snapshots)
            .map(derive)
            .collect();
        let snapshot = all.iter().find(|snapshot| {
            snapshot.facts.contains_key(here) || snapshot.counters.contains_key(here)
        });
        let snapshot = snapshot.unwrap_or_else(|| panic!("case {id}: no host has {here}"));
        let found = match (snapshot.value(here), snapshot.counters.get(here)) {
            (Some(Value::Bool(on)), _) if expected.is_string() => {
                if *on { "on" } else { "off" }.into()
            }
            (Some(value), _) => serde_json::to_value(value).expect("a value"),
            (None, Some(counter)) => counter.v.into(),
            (None, None) => format!(
                "absent:{}",
                snapshot.absence(here).map_or_else(String::new, stored_name)
            )
            .into(),
        };
        match (found.as_f64(), expected.as_f64()) {
            (Some(found), Some(expected)) => assert!(
                (found - expected).abs() < 1e-9,
                "case {id}: {there} is {found}"
            ),
            _ => assert_eq!(found, *expected, "case {id}: {there}"),
        }
    }
}

#[test]
fn tables_of_a_virtual_switch_are_summed_up_from_rows_with_data() {
    let cases = cases();
    let case = cases
        .iter()
        .find(|case| case["id"] == "04")
        .expect("a case");
    for (side, file) in ["a", "b"].into_iter().zip(files(case)) {
        let snapshot = &snapshots(file)[0];
        for (there, here) in [
            ("rows", "rows"),
            ("rows_with_cycles", "rows_with_cycles"),
            ("cyclepp.mean", "cyclepp_mean"),
            ("cyclepp.median_upper", "cyclepp_median"),
            ("cyclepp.min", "cyclepp_min"),
            ("cyclepp.max", "cyclepp_max"),
        ] {
            let expected = case["facts"][format!("{side}.{there}")].as_f64();
            assert_eq!(
                snapshot.number(&format!("ovs.pmd.{here}")),
                expected,
                "{side} {there}"
            );
        }
    }
}

#[test]
fn runs_are_read_as_they_were_printed() {
    let runs = |file: &str| {
        let snapshot = snapshots(file).into_iter().next().expect("a host");
        move |fact: &str| {
            (0..linerate_model::runs::count(&snapshot))
                .map(|index| snapshot.number(&format!("run.{index}.{fact}")))
                .collect::<Vec<_>>()
        }
    };
    let baseline = runs("09-1g-and-10g-baseline-iperf3.txt");
    assert_eq!(
        baseline("received_bps"),
        [Some(949e6), Some(950e6), Some(9.42e9), Some(9.49e9)]
    );
    assert_eq!(baseline("retransmits")[2], Some(2140.0));

    let pinned = runs("02-loopback-core-pinning.txt");
    let rounded: Vec<_> = pinned("sent_bps")
        .into_iter()
        .map(|rate| rate.map(|rate| (rate / 1e8).round() / 10.0))
        .collect();
    assert_eq!(rounded, [Some(43.8), Some(83.5), Some(136.0)]);
    assert_eq!(pinned("streams"), [Some(1.0), Some(4.0), Some(4.0)]);

    let tools = runs("11-iperf3-single-thread-vs-iperf2.txt");
    assert_eq!(
        tools("received_bps"),
        [Some(32.7e9), Some(286e9), Some(47.5e9), Some(39.3e9)]
    );
}

#[test]
fn comparison_of_two_guests_finds_the_relevant_difference() {
    let cases = cases();
    let case = cases
        .iter()
        .find(|case| case["id"] == "03")
        .expect("a case");
    let diagnosis = judged(case);
    let comparison = diagnosis.comparison.expect("a comparison");
    let changed: Vec<_> = comparison
        .changed
        .iter()
        .map(|d| (d.key.as_str(), d.a.as_deref(), d.b.as_deref()))
        .collect();
    assert_eq!(
        changed,
        [("nic.*.feat.rx-gro-hw", Some("on"), Some("off [fixed]"))]
    );

    let bare: Vec<_> = comparison
        .only_a
        .iter()
        .map(|key| key.trim_start_matches("nic.*.feat."))
        .collect();
    let expected: Vec<_> = case["diff"]["only_a"]
        .as_array()
        .expect("names")
        .iter()
        .filter_map(|name| name.as_str())
        .collect();
    assert_eq!(bare, expected);
    assert!(comparison.only_b.is_empty());
    assert_eq!(comparison.same_count, 55);
    assert_eq!(comparison.rules_both, ["VIRT-01"]);
}

/// First lines of the report, of cases whose findings alone do not decide them.
#[test]
fn reports_have_what_was_not_reported_and_what_is_fine() {
    for (id, contains, lacks) in [
        (
            "05",
            "flow control the peer advertises (not reported)",
            "The link is down",
        ),
        ("10", "(server to its clients)", "no problem found"),
        ("12", "More concurrency only waits", "no problem found"),
    ] {
        let cases = cases();
        let case = cases.iter().find(|case| case["id"] == id).expect("a case");
        let diagnosis = judged(case);
        let [short, long] = [false, true].map(|is_verbose| {
            let style = Style {
                columns: 10_000,
                ..Style::PLAIN
            };
            doctor::text(&diagnosis, is_verbose, style)
        });
        let text = short + &long;
        assert!(
            text.contains(contains) && !text.contains(lacks),
            "case {id}: {contains}\n{text}"
        );
    }
}

#[test]
fn importers_parse_nearly_every_line_and_every_key_is_explained() {
    for case in cases() {
        for file in files(&case) {
            for snapshot in snapshots(file).into_iter().map(derive) {
                for key in snapshot.facts.keys().chain(snapshot.counters.keys()) {
                    assert!(facts::find(key).is_some(), "{file}: {key}");
                }
            }

            let imported = import(file, &read(file));
            assert_eq!(
                imported.understood, imported.blocks,
                "{file}: {:#?}",
                imported.unread
            );
            assert!(imported.unread.len() <= 3, "{file}: {:#?}", imported.unread);
        }
    }
}
