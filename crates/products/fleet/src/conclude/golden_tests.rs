//! Rates that were measured elsewhere, with the conclusions that people drew from them.

use std::collections::BTreeMap;

use linerate_model::finding::Confidence;
use linerate_model::fleet::Cell;

use super::hash_collision::{estimate, occupied, probabilities};
use super::ladder::jain;
use super::{analyse, findings, groups};
use crate::fixtures::{cell, host, pair_cells};

/// Id and subject of each finding.
fn found(cells: &[Cell]) -> Vec<(String, String)> {
    let cells: Vec<&Cell> = cells.iter().collect();
    let analysis = analyse(&cells, &BTreeMap::new()).expect("cells");
    findings(&analysis, &BTreeMap::new())
        .into_iter()
        .map(|finding| (finding.id, finding.subject))
        .collect()
}

fn texts(found: &[(String, String)]) -> Vec<String> {
    found
        .iter()
        .map(|(id, subject)| format!("{id} {subject}"))
        .collect()
}

#[test]
fn host_between_two_slow_pairs_is_named_and_a_lone_slow_pair_names_both_ends() {
    let cells = pair_cells(&[
        ("644", "699", 49.4e9),
        ("641", "644", 49.3e9),
        ("632", "641", 88.4e9),
        ("404", "699", 86.8e9),
        ("284", "678", 49.3e9),
    ]);
    assert_eq!(texts(&found(&cells)), ["FLT-01 644", "FLT-01 284 or 678"]);
}

#[test]
fn slow_pair_of_hosts_that_are_fast_with_others_is_a_pair() {
    let cells = pair_cells(&[("h1", "h3", 88e9), ("h2", "h4", 88e9), ("h1", "h2", 49e9)]);
    assert_eq!(texts(&found(&cells)), ["FLT-04 h1 and h2"]);
}

#[test]
fn three_hosts_name_one_probably_and_two_hosts_name_no_end() {
    let cells = pair_cells(&[("h1", "h2", 950e6), ("h1", "h3", 95e6), ("h2", "h3", 95e6)]);
    let cells: Vec<&Cell> = cells.iter().collect();
    let analysis = analyse(&cells, &BTreeMap::new()).expect("cells");
    let findings = findings(&analysis, &BTreeMap::new());
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert_eq!(
        (findings[0].subject.as_str(), findings[0].confidence),
        ("h3", Confidence::Medium)
    );
    assert_eq!(
        texts(&found(&[cell("h1", "h2", 95e6), cell("h2", "h1", 950e6)])),
        ["FLT-01 h1 or h2"]
    );
    assert!(
        found(&pair_cells(&[("h1", "h2", 95e6)])).is_empty(),
        "nothing to compare with"
    );
}

#[test]
fn half_of_a_fleet_may_be_slow() {
    for (hosts, slow) in [(4, 1), (4, 2), (5, 2), (6, 3), (7, 3), (8, 4)] {
        let names: Vec<String> = (1..=hosts).map(|at| format!("h{at}")).collect();
        let mut pairs = Vec::new();

        for a in 0..hosts {
            for b in a + 1..hosts {
                let rate = if a < slow { 95e6 } else { 950e6 };
                pairs.push((names[a].as_str(), names[b].as_str(), rate));
            }
        }

        let expected: Vec<String> = names[..slow]
            .iter()
            .map(|name| format!("FLT-01 {name}"))
            .collect();
        assert_eq!(
            texts(&found(&pair_cells(&pairs))),
            expected,
            "{slow} of {hosts}"
        );
    }
}

#[test]
fn six_machines_are_two_and_four() {
    let rates = [47.5, 43.6, 47.7, 42.2, 42.6, 42.4];
    let named: Vec<_> = rates
        .iter()
        .enumerate()
        .map(|(at, rate)| (host(&format!("h{}", at + 1)), *rate))
        .collect();
    let groups = groups::split(&named, 0.0).expect("two groups");
    assert_eq!(groups.fast, [host("h1"), host("h3")]);
    assert_eq!(
        groups.slow,
        [host("h2"), host("h4"), host("h5"), host("h6")]
    );
    assert!(
        (groups.gap_ln - 0.0857).abs() < 0.0001 && (groups.scale_ln - 0.007).abs() < 0.0005,
        "{groups:?}"
    );

    // The same as tests with one server.
    let cells: Vec<Cell> = named
        .iter()
        .map(|(host, rate)| cell(host.as_str(), "skyserver", rate * 1e9))
        .collect();
    let cells: Vec<&Cell> = cells.iter().collect();
    let (_, finding) = groups::finding(&cells, Some(&host("skyserver"))).expect("a finding");
    assert_eq!(
        (finding.id.as_str(), finding.confidence),
        ("FLT-11", Confidence::Medium)
    );
    assert_eq!(finding.subject, "h2, h4, h5, h6");

    let even: Vec<_> = named
        .iter()
        .map(|(host, rate)| (host.clone(), 42.0 + (rate - 42.0) / 10.0))
        .collect();
    assert_eq!(groups::split(&even, 0.0), None, "a gap below 5 %");
}

#[test]
fn index_of_seven_senders_shows_the_slow_one() {
    let rates = [560.0, 561.5, 563.0, 564.5, 566.0, 96.0, 910.0];
    let index = jain(&rates).expect("rates");
    assert!((index - 0.861).abs() < 0.0005, "{index}");
}

#[test]
fn ten_flows_occupy_some_of_the_queues() {
    for (queues, expected, apart) in [(8, 5.9, 0.0), (16, 7.6, 0.03), (63, 9.3, 0.47)] {
        assert!(
            (occupied(10, queues) - expected).abs() < 0.05,
            "{queues} queues"
        );
        assert!(
            (probabilities(10, queues)[10] - apart).abs() < 0.005,
            "{queues} queues"
        );
    }
}

#[test]
fn sums_of_ten_clients_show_eight_queues() {
    // 8 queues: sums near multiples of 950 Mbit/s, 6 ± 1 of them.
    let sums: Vec<f64> = [6.0, 5.0, 6.0, 7.0, 6.0, 6.0, 5.0, 7.0, 6.0, 6.0]
        .map(|step| step * 950e6)
        .to_vec();
    let found = estimate(&sums, 950e6, 10).expect("an estimate");
    assert_eq!(
        (found.queues, found.queues_min, found.queues_max),
        (Some(8), 7, Some(10))
    );
    assert!(found.has_collisions());
}

#[test]
fn sums_of_ten_clients_on_63_queues_behave_like_fewer() {
    // About 7 Gbit/s, full in three of ten.
    let sums: Vec<f64> = [7.0, 10.0, 7.0, 8.0, 7.0, 10.0, 7.0, 7.0, 10.0, 7.0]
        .map(|step| step * 945e6)
        .to_vec();
    let found = estimate(&sums, 950e6, 10).expect("an estimate");
    assert!(
        found.queues_max.is_some_and(|most| most < 63) && found.queues_min > 8,
        "{found:?}"
    );
}
