//! The published experiment comes out as it was published.

use linerate_model::http::{Cell, Phase, Study, VerdictClass};

use super::fixtures::{KIB, seed_input, study_of};

fn matrix(study: &Study, payload_bytes: u64, connections: u32) -> &Cell {
    let is_it = |cell: &&Cell| {
        (cell.key.phase, cell.key.payload_bytes, cell.key.connections) == (Phase::Matrix, payload_bytes, connections)
    };
    study.cells.iter().find(is_it).expect("a cell of the plan")
}

#[test]
fn the_best_stable_cases_are_64_16_and_16_connections() {
    let study = study_of(&seed_input());
    let best: Vec<(u64, Option<u32>)> =
        study.rows.iter().map(|row| (row.payload_bytes / KIB, row.best_stable_connections)).collect();
    assert_eq!(best, [(1, Some(64)), (10, Some(16)), (100, Some(16))]);
    assert!(study.rows.iter().all(|row| !row.is_limited_by_objective));
}

#[test]
fn cells_with_1024_connections_are_network_bound_and_only_wait() {
    let study = study_of(&seed_input());
    for payload_bytes in [KIB, 10 * KIB, 100 * KIB] {
        let cell = matrix(&study, payload_bytes, 1024);
        assert_eq!(cell.verdict.primary.class, VerdictClass::NetworkBound, "{:#?}", cell.verdict);
        let queueing = &cell.verdict.contributing[0];
        assert_eq!(queueing.class, VerdictClass::QueueingBound);
        assert!(queueing.advice.contains("extra connections only add latency"), "{queueing:?}");
        assert!(cell.median.of_ceiling.expect("known") >= 0.995);
    }
}

#[test]
fn sixteen_connections_are_too_few_for_small_answers() {
    let study = study_of(&seed_input());
    let cell = matrix(&study, KIB, 16);
    assert_eq!(cell.verdict.primary.class, VerdictClass::ConcurrencyLimited, "{:#?}", cell.verdict);
    let mb_per_s = cell.median.payload_bytes_per_s.expect("known") / 1e6;
    assert!((mb_per_s - 47.5).abs() < 0.2, "{mb_per_s}");
    // Twice the throughput at the latency of 16 connections takes twice as many.
    assert!(cell.verdict.primary.advice.contains("predicts 35"), "{:?}", cell.verdict.primary);
}

#[test]
fn sections_have_a_sentence_each() {
    let study = study_of(&seed_input());
    let [baseline, isolation, whole] = study.sentences.map(|sentence| sentence.expect("all phases were run"));
    assert!(baseline.starts_with("The path is clean: TCP alone reaches 941.4 Mbit/s (server to client, 1 stream)"));
    assert!(isolation.starts_with("Bare HTTP with 64 connections: 101,"), "{isolation}");
    assert_eq!(
        whole,
        "Best stable: 1k with 64 connections (network-bound), 10k with 16 connections (network-bound), 100k with 16 connections (network-bound)."
    );
}
