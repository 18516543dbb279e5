pub(crate) mod fixtures;

use std::time::Duration;

use linerate_model::http::{Cell, CellKey, Flag, LossWithoutLoad, Phase, RunState};

use super::*;
use crate::conclude::tests::fixture::load_of;
use fixtures::{KIB, OwnedInput, input, seed_input, study_of};

fn matrix_run(owned: &mut OwnedInput, payload_bytes: u64, connections: u32) -> Vec<&mut CellRun> {
    let runs = owned.kept.runs.iter_mut();
    runs.filter(|run| (run.key.payload_bytes, run.key.connections) == (payload_bytes, connections))
        .collect()
}

#[test]
fn an_experiment_without_runs_is_a_study_without_verdicts() {
    let owned = OwnedInput {
        kept: Kept::default(),
        ..seed_input()
    };
    let study = study_of(&owned);
    assert!(study.cells.is_empty() && study.rows.is_empty() && study.passes.is_empty());
    assert_eq!(study.sentences, [None, None, None]);
    assert_eq!(ending(&study, true), Ending::Done);
    assert_eq!(invalid_share(&study), None);
}

#[test]
fn every_prefix_of_the_runs_gives_a_study() {
    let full = seed_input();
    for length in 0..=full.kept.runs.len() {
        let mut part = seed_input();
        part.kept.runs.truncate(length);
        assert!(study_of(&part).cells.len() <= 21);
    }

    assert_eq!(study_of(&full).cells.len(), 21);
}

#[test]
fn phase_1_is_a_by_product_of_phase_2_without_runs_of_its_own() {
    let study = study_of(&seed_input());
    let payload: Vec<_> = study
        .cells
        .iter()
        .filter(|cell| cell.key.phase == Phase::Payload)
        .collect();
    assert_eq!(payload.len(), 3);
    assert!(
        payload.iter().all(|cell| cell.runs.is_empty()
            && cell.median.runs == 3
            && cell.key.connections == 64)
    );
}

#[test]
fn the_ceiling_follows_what_tcp_alone_reached() {
    let mut owned = seed_input();
    owned
        .kept
        .baseline
        .iter_mut()
        .for_each(|test| test.goodput_bps *= 0.98);
    let study = study_of(&owned);
    let ceiling = study.cells[0].ceiling_per_s.expect("a link");
    assert!((99_000.0..100_000.0).contains(&ceiling), "{ceiling}");
    assert!(study.notes.is_empty(), "{:?}", study.notes);
}

/// One stream that is paced by a timer reaches a quarter of a link that many connections fill.
#[test]
fn what_http_exceeds_by_far_is_no_ceiling() {
    let mut owned = seed_input();
    owned
        .kept
        .baseline
        .iter_mut()
        .for_each(|test| test.goodput_bps /= 4.0);

    for end in [Some(&mut owned.setup.client), owned.setup.server.as_mut()]
        .into_iter()
        .flatten()
    {
        end.link_bps = Some(10_000_000_000);
    }

    for run in &mut owned.kept.runs {
        for side in [Some(&mut run.client), run.server.as_mut()]
            .into_iter()
            .flatten()
        {
            if let Some(nic) = &mut side.nic {
                nic.link_bps = Some(10_000_000_000);
            }
        }
    }

    let study = study_of(&owned);
    let ceiling = study.cells[0].ceiling_per_s.expect("a link");
    assert!((1_010_000.0..1_020_000.0).contains(&ceiling), "{ceiling}");

    let classes: Vec<_> = study
        .cells
        .iter()
        .map(|cell| cell.verdict.primary.class)
        .collect();
    assert!(
        !classes.contains(&VerdictClass::NetworkBound),
        "{classes:?}"
    );
    assert!(
        study.notes.iter().any(|note| note.contains("TCP alone")),
        "{:?}",
        study.notes
    );
}

#[test]
fn without_a_link_speed_the_ceiling_is_what_tcp_alone_reached() {
    let with_speed = study_of(&seed_input());
    let mut owned = seed_input();
    owned.setup.client.link_bps = None;
    owned.setup.server = None;

    let nics = owned
        .kept
        .runs
        .iter_mut()
        .filter_map(|run| run.client.nic.as_mut());
    nics.for_each(|nic| nic.link_bps = None);

    let study = study_of(&owned);
    for (cell, expected) in study.cells.iter().zip(&with_speed.cells) {
        let ratio = cell
            .ceiling_per_s
            .zip(expected.ceiling_per_s)
            .map(|(found, expected)| found / expected);
        assert!(
            ratio.is_some_and(|ratio| (ratio - 1.0).abs() < 1e-3),
            "{ratio:?}"
        );
        assert_eq!(cell.verdict.primary.class, expected.verdict.primary.class);
    }

    owned.setup.plan.line_rate_bps = Some(10e9);
    owned.kept.baseline.clear();

    let classes: Vec<_> = study_of(&owned)
        .cells
        .iter()
        .map(|cell| cell.verdict.primary.class)
        .collect();
    assert!(
        !classes.contains(&VerdictClass::NetworkBound),
        "{classes:?}"
    );
}

#[test]
fn without_a_link_speed_nothing_is_network_bound() {
    let mut owned = seed_input();
    owned.setup.client.link_bps = None;
    owned.setup.server = None;
    owned.kept.baseline.clear();
    owned
        .kept
        .runs
        .iter_mut()
        .for_each(|run| run.client.nic = None);

    let study = study_of(&owned);
    assert!(study.cells.iter().all(|cell| cell.ceiling_per_s.is_none()));
    assert!(
        study
            .cells
            .iter()
            .all(|cell| cell.verdict.primary.class != VerdictClass::NetworkBound)
    );
    assert_eq!(study.rows[0].best_stable_connections, Some(64));
}

#[test]
fn more_than_a_fifth_of_invalid_cells_spoils_the_experiment() {
    let mut owned = seed_input();
    for connections in [16, 64, 128] {
        matrix_run(&mut owned, KIB, connections)
            .into_iter()
            .for_each(|run| run.flags.push(Flag::Unsteady));
    }

    let study = study_of(&owned);
    assert_eq!(invalid_share(&study), Some(3.0 / 18.0));
    assert_eq!(ending(&study, false), Ending::Done);
    assert_eq!(study.rows[0].best_stable_connections, Some(256));

    for run in matrix_run(&mut owned, KIB, 256) {
        run.state = RunState::Aborted;
    }

    assert_eq!(ending(&study_of(&owned), false), Ending::TooManyInvalid);
}

#[test]
fn latency_objective_counts_with_assert_only() {
    let mut owned = seed_input();
    owned.setup.plan.objective.p99 = Some(Duration::from_micros(1000));
    let study = study_of(&owned);
    let pass = &study.passes[0];
    assert_eq!(
        (pass.what.as_str(), pass.is_met),
        (
            "1k: best throughput, steady, at most 0.01 % failed, 99 % within 1ms",
            Some(false)
        )
    );
    assert!(pass.evidence.starts_with("16 connections: 46,"), "{pass:?}");
    assert_eq!(
        (ending(&study, false), ending(&study, true)),
        (Ending::Done, Ending::ObjectiveMissed)
    );
    owned.setup.plan.objective.p99 = Some(Duration::from_secs(1));
    assert_eq!(ending(&study_of(&owned), true), Ending::Done);
}

#[test]
fn knees_are_refined_twice_at_most_and_only_if_planned() {
    let mut owned = seed_input();
    let added: Vec<(u64, u32)> = refinements(&input(&owned))
        .iter()
        .map(|key| (key.payload_bytes / KIB, key.connections))
        .collect();

    // Between 16 and 64 for small answers; 16 connections are the fewest of the others and wait
    // already.
    assert_eq!(added, [(1, 32)]);
    for connections in [31, 33] {
        let mut run = owned.kept.runs[0].clone();
        run.key.connections = connections;
        run.load = Some(load_of(KIB, connections, 90_000.0));
        owned.kept.runs.push(run);
    }

    assert!(refinements(&input(&owned)).is_empty());
    let mut unwanted = seed_input();
    unwanted.setup.plan.matrix.refine_knee = false;
    assert!(refinements(&input(&unwanted)).is_empty());
}

#[test]
fn a_path_that_loses_or_is_slow_is_not_clean() {
    let mut owned = seed_input();
    assert!(path_defects(&owned.kept.baseline).is_empty());
    owned.kept.baseline[0].of_theory = Some(0.8);

    let slow = slow_tests(&owned.kept.baseline);
    assert!(
        slow[0].starts_with("client to server, 1 stream: 941.4 Mbit/s, 80 % of"),
        "{slow:?}"
    );
    owned.kept.baseline[1].without_load = Some(LossWithoutLoad {
        segments: 2_000,
        retransmits: 5,
    });

    let defects = path_defects(&owned.kept.baseline);
    assert_eq!(
        defects,
        ["without load 5 of 2,000 segments sent again (0.25 %), more than 0.1 %"]
    );
    let sentence = study_of(&owned).sentences[0].clone().expect("tested");
    assert!(
        sentence.starts_with("The path is not clean") && sentence.contains("linerate doctor"),
        "{sentence}"
    );
}

/// TCP alone fills the queue of the path, which drops what does not fit.
#[test]
fn retransmits_of_a_full_path_are_no_defect() {
    let mut owned = seed_input();
    owned.kept.baseline[1].retransmit_share = Some(0.00145);
    assert!(path_defects(&owned.kept.baseline).is_empty());
    owned.kept.baseline[1].without_load = Some(LossWithoutLoad {
        segments: 2_000,
        retransmits: 0,
    });
    assert!(path_defects(&owned.kept.baseline).is_empty());

    let sentence = study_of(&owned).sentences[0].clone().expect("tested");
    assert!(
        sentence.starts_with("The path is clean: TCP alone reaches"),
        "{sentence}"
    );

    // A few are chance, and no share.
    owned.kept.baseline[1].without_load = Some(LossWithoutLoad {
        segments: 500,
        retransmits: 2,
    });
    assert!(path_defects(&owned.kept.baseline).is_empty());
}

#[test]
fn busy_connections_are_compared_with_the_best_of_their_payload() {
    let mut owned = seed_input();
    let mut run = owned.kept.runs[1].clone();
    run.key = CellKey::new(Phase::Active, run.key.payload_bytes, 10_000);
    run.load = Some(load_of(KIB, 10_000, 80_000.0));
    owned.kept.runs.push(run);

    let study = study_of(&owned);
    let active = study.cells.last().expect("the active cell");
    assert_eq!(
        active.verdict.primary.class,
        VerdictClass::QueueingBound,
        "{:#?}",
        active.verdict
    );

    let whole = study.sentences[2].clone().expect("a sentence");
    assert!(
        whole.contains("10,000 busy connections keep 79.") && whole.ends_with("best stable case."),
        "{whole}"
    );
}

// The published experiment comes out as it was published.

fn matrix(study: &Study, payload_bytes: u64, connections: u32) -> &Cell {
    let is_it = |cell: &&Cell| {
        (cell.key.phase, cell.key.payload_bytes, cell.key.connections)
            == (Phase::Matrix, payload_bytes, connections)
    };
    study.cells.iter().find(is_it).expect("a cell of the plan")
}

#[test]
fn the_best_stable_cases_are_64_16_and_16_connections() {
    let study = study_of(&seed_input());
    let best: Vec<(u64, Option<u32>)> = study
        .rows
        .iter()
        .map(|row| (row.payload_bytes / KIB, row.best_stable_connections))
        .collect();
    assert_eq!(best, [(1, Some(64)), (10, Some(16)), (100, Some(16))]);
    assert!(study.rows.iter().all(|row| !row.is_limited_by_objective));
}

#[test]
fn cells_with_1024_connections_are_network_bound_and_only_wait() {
    let study = study_of(&seed_input());
    for payload_bytes in [KIB, 10 * KIB, 100 * KIB] {
        let cell = matrix(&study, payload_bytes, 1024);
        assert_eq!(
            cell.verdict.primary.class,
            VerdictClass::NetworkBound,
            "{:#?}",
            cell.verdict
        );
        let queueing = &cell.verdict.contributing[0];
        assert_eq!(queueing.class, VerdictClass::QueueingBound);
        assert!(
            queueing
                .advice
                .contains("extra connections only add latency"),
            "{queueing:?}"
        );
        assert!(cell.median.of_ceiling.expect("known") >= 0.995);
    }
}

#[test]
fn sixteen_connections_are_too_few_for_small_answers() {
    let study = study_of(&seed_input());
    let cell = matrix(&study, KIB, 16);
    assert_eq!(
        cell.verdict.primary.class,
        VerdictClass::ConcurrencyLimited,
        "{:#?}",
        cell.verdict
    );

    let mb_per_s = cell.median.payload_bytes_per_s.expect("known") / 1e6;
    assert!((mb_per_s - 47.5).abs() < 0.2, "{mb_per_s}");
    // Twice the throughput at the latency of 16 connections takes twice as many.
    assert!(
        cell.verdict.primary.advice.contains("predicts 35"),
        "{:?}",
        cell.verdict.primary
    );
}

#[test]
fn sections_have_a_sentence_each() {
    let study = study_of(&seed_input());
    let [baseline, isolation, whole] = study
        .sentences
        .map(|sentence| sentence.expect("all phases were run"));
    assert!(baseline.starts_with("TCP alone reaches 941.4 Mbit/s (server to client, 1 stream)"));
    assert!(
        isolation.starts_with("Bare HTTP with 64 connections: 101,"),
        "{isolation}"
    );
    assert_eq!(
        whole,
        "Best stable: 1k with 64 connections, 10k with 16 connections, 100k with 16 connections."
    );
}
