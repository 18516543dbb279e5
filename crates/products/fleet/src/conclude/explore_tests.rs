//! Whole runs over a simulated network.

use std::collections::BTreeSet;
use std::time::Duration;

use linerate_model::finding::{Finding, Severity};
use linerate_model::fleet::{
    Cell, CellFlag, CellOutcome, FleetMode, FleetReport, HostId, HostPoisoning, LadderDirection,
    NotRunReason, Task,
};

use super::ladder::{asymmetry, queues};
use super::{analyse, explore, findings, groups, headline};
use proptest::prelude::*;

use crate::fixtures::{FakeNetwork, GIGABIT, cell, host, mesh, racked};
use crate::plan::{FleetPlan, PlannedRun};
use crate::spec::Topology;

/// A run on a network that `change` makes worse.
fn run(plan: &FleetPlan, seed: u64, change: impl FnOnce(&mut FakeNetwork)) -> FleetReport {
    let mut network = FakeNetwork::new(plan, seed);
    change(&mut network);
    explore(
        &PlannedRun::new(FleetPlan {
            seed,
            ..plan.clone()
        }),
        Vec::new(),
        &mut network,
    )
}

fn ids(outcome: &FleetReport) -> Vec<String> {
    outcome
        .findings
        .iter()
        .map(|finding| format!("{} {}", finding.id, finding.subject))
        .collect()
}

fn assert_useful(finding: &Finding) {
    assert!(
        finding
            .advice
            .as_ref()
            .is_some_and(|next| next.contains("`linerate ")),
        "a next command: {finding:?}"
    );
    assert!(
        !finding.evidence.is_empty() && finding.severity >= Severity::Medium,
        "{finding:?}"
    );
}

const SEEDS: u64 = 200;

#[test]
fn healthy_fleet_has_no_finding() {
    let plan = mesh(8);
    let false_alarms = (0..SEEDS).filter(|seed| {
        let outcome = run(&plan, *seed, |_| {});
        let effects = outcome.effects[0]
            .hosts
            .iter()
            .flat_map(|host| [host.sends.effect, host.receives.effect]);
        assert!(
            effects.flatten().all(|effect| effect.abs() < 0.01),
            "{:?}",
            outcome.effects
        );
        !outcome.findings.is_empty()
    });
    let false_alarms = false_alarms.count() as u64;
    assert!(false_alarms * 20 <= SEEDS, "{false_alarms} of {SEEDS}");
}

#[test]
fn noisy_fleet_has_no_finding() {
    for (hosts, noise) in [(4, 0.05), (5, 0.1), (8, 0.02), (8, 0.1), (12, 0.05)] {
        let is_alarm = |seed: &u64| {
            !run(&mesh(hosts), *seed, |network| network.noise = noise)
                .findings
                .is_empty()
        };
        let false_alarms = (0..SEEDS).filter(is_alarm).count() as u64;
        assert!(
            false_alarms * 20 <= SEEDS,
            "{false_alarms} of {SEEDS} with {hosts} hosts and noise {noise}"
        );
    }
}

/// Every seed has this finding and no other.
fn assert_found(expected: &str, change: impl Fn(&mut FakeNetwork)) {
    for seed in 0..SEEDS {
        let outcome = run(&mesh(8), seed, &change);
        assert_eq!(
            ids(&outcome),
            [expected],
            "seed {seed}: {:?}",
            outcome.effects
        );
        outcome.findings.iter().for_each(assert_useful);
        assert_eq!((outcome.header.rounds, outcome.cells.len()), (7, 56));
    }
}

#[test]
fn host_at_100_megabit_is_the_only_finding() {
    assert_found("FLT-01 h7", |network| {
        network.sends.insert(host("h7"), 95e6);
        network.receives.insert(host("h7"), 95e6);
    });
}

#[test]
fn slow_receiver_slow_sender_and_slow_pair_are_named() {
    assert_found("FLT-02 h3", |network| {
        network.receives.insert(host("h3"), 400e6);
    });
    assert_found("FLT-03 h5", |network| {
        network.sends.insert(host("h5"), 800e6);
    });
    assert_found("FLT-04 h2 and h6", |network| {
        network.pairs.insert((host("h2"), host("h6")), 300e6);
    });
}

#[test]
fn slow_uplink_is_named_instead_of_its_pairs() {
    for seed in 0..20 {
        let plan = FleetPlan {
            mode: FleetMode::Rounds,
            ..racked(8, 4, 1)
        };
        let outcome = run(&plan, seed, |network| {
            network.racks = plan.racks();
            network.uplink_bps = [400e6, GIGABIT][seed as usize % 2];
        });
        assert_eq!(ids(&outcome), ["FLT-05 between r0 and r1"], "seed {seed}");
        outcome.findings.iter().for_each(assert_useful);

        // One crossing pair at a time is as fast as the others.
        let plan = FleetPlan {
            mode: FleetMode::RackSafe,
            ..plan
        };
        let outcome = run(&plan, seed, |network| {
            network.racks = plan.racks();
            network.uplink_bps = GIGABIT;
        });
        assert!(
            outcome.findings.is_empty(),
            "seed {seed}: {:?}",
            ids(&outcome)
        );
    }
}

#[test]
fn slow_uplink_between_unknown_racks_is_one_finding_about_many_pairs() {
    for seed in 0..50 {
        let racks = racked(8, 4, 1).racks();
        let outcome = run(&mesh(8), seed, |network| {
            network.racks = racks;
            network.uplink_bps = GIGABIT;
        });
        assert_eq!(ids(&outcome), ["FLT-04 16 pairs"], "seed {seed}");
        outcome.findings.iter().for_each(assert_useful);
    }
}

#[test]
fn uplink_of_one_of_three_racks_is_named() {
    let plan = FleetPlan {
        mode: FleetMode::Rounds,
        ..racked(12, 4, 4)
    };
    let outcome = run(&plan, 3, |network| {
        for a in &plan.hosts {
            for b in plan.hosts.iter().filter(|b| a.rack != b.rack) {
                if [&a.rack, &b.rack]
                    .into_iter()
                    .flatten()
                    .any(|rack| rack == "r1")
                {
                    network.pairs.insert((a.id.clone(), b.id.clone()), 300e6);
                }
            }
        }
    });
    assert_eq!(ids(&outcome), ["FLT-05 uplink of r1"]);
}

fn incast(hosts: usize) -> FleetPlan {
    FleetPlan {
        topology: Topology::Incast(host("h1")),
        ..mesh(hosts)
    }
}

#[test]
fn host_that_holds_all_others_poisons() {
    for seed in 0..20 {
        let outcome = run(&incast(9), seed, |network| {
            network.receives.insert(host("h1"), 10.0 * GIGABIT);
            network.sends.insert(host("h4"), 95e6);
            network.poison = Some(host("h4"));
        });
        assert_eq!(ids(&outcome), ["FLT-08 h4"], "seed {seed}");
        outcome.findings.iter().for_each(assert_useful);

        let [
            HostPoisoning {
                rates: poisoning, ..
            },
        ] = outcome.poisonings.as_slice()
        else {
            panic!("{:?}", outcome.poisonings)
        };
        assert!(
            (poisoning.gain_bps - 7.0 * (GIGABIT - 100e6)).abs() < 0.2e9,
            "{poisoning:?}"
        );
    }
}

#[test]
fn slow_host_that_harms_the_others_not_is_no_poison() {
    let outcome = run(&incast(9), 1, |network| {
        network.receives.insert(host("h1"), 10.0 * GIGABIT);
        network.sends.insert(host("h4"), 95e6);
    });
    assert!(ids(&outcome).is_empty(), "{:?}", ids(&outcome));
    let [poisoning] = outcome.poisonings.as_slice() else {
        panic!("{:?}", outcome.poisonings)
    };
    assert!(poisoning.suspect == host("h4") && !poisoning.rates.is_found());

    let levels: Vec<usize> = outcome.ladder.iter().map(|row| row.level).collect();
    assert_eq!(levels, [1, 2, 4, 8]);
}

#[test]
fn host_that_has_little_beside_others_and_is_fast_alone_is_unfair_sharing() {
    let outcome = run(&incast(7), 1, |network| {
        network.receives.insert(host("h1"), 10.0 * GIGABIT);
        network.starved = Some(host("h4"));
    });
    assert_eq!(ids(&outcome), ["FLT-09 h1"], "{:?}", outcome.ladder);
    outcome.findings.iter().for_each(assert_useful);
    assert!(
        outcome.findings[0]
            .evidence
            .iter()
            .any(|evidence| evidence.to_string().contains("from h4 5"))
    );
}

#[test]
fn flows_on_shared_queues_are_one_finding_with_the_number_of_queues() {
    let plan = FleetPlan {
        topology: Topology::Fanout(host("h1")),
        repetitions: 8,
        ..mesh(11)
    };
    let outcome = run(&plan, 1, |network| {
        network.sends.insert(host("h1"), 10.0 * GIGABIT);
        network.queues = Some(8);
    });
    assert_eq!(ids(&outcome), ["FLT-10 h1"], "{:?}", outcome.ladder);
    outcome.findings.iter().for_each(assert_useful);

    let all = outcome
        .ladder
        .iter()
        .find(|row| row.level == 10)
        .expect("a full row");
    let alone = outcome
        .ladder
        .iter()
        .find(|row| row.level == 1)
        .expect("a row of each alone");
    let found = queues(all, alone).expect("an estimate");
    assert!(
        found.queues_min <= 8 && found.queues_max.is_some_and(|most| most >= 8),
        "{found:?}"
    );
}

#[test]
fn hub_that_receives_at_line_rate_and_does_not_send_so_is_named_after_both_ladders() {
    let plan = FleetPlan {
        topology: Topology::IncastAndFanout(host("h1")),
        ..mesh(11)
    };
    let outcome = run(&plan, 1, |network| {
        network.receives.insert(host("h1"), 10.0 * GIGABIT);
        network.sends.insert(host("h1"), 6.0 * GIGABIT);
        network.links_bps.insert(host("h1"), 10e9);
    });
    assert_eq!(ids(&outcome), ["FLT-14 h1"], "{:?}", outcome.ladder);
    outcome.findings.iter().for_each(assert_useful);

    let rows = outcome.ladder.iter().map(|row| (row.direction, row.level));
    let of = |way| [1, 2, 4, 8, 10].map(|level| (way, level));
    assert_eq!(
        rows.collect::<Vec<_>>(),
        [of(LadderDirection::Incast), of(LadderDirection::Fanout)].concat()
    );
}

#[test]
fn line_that_is_full_in_one_direction_only_is_named_with_the_other() {
    let of = |incast, fanout| {
        asymmetry(&host("nas"), incast, fanout, 10e9).map(|finding| finding.advice)
    };
    assert!(
        of(9.6e9, 5.7e9)
            .flatten()
            .is_some_and(|next| next.contains("while it sends"))
    );
    assert!(
        of(5.7e9, 9.6e9)
            .flatten()
            .is_some_and(|next| next.contains("while it receives"))
    );
    assert!(of(9.6e9, 9.6e9).is_none() && of(5.7e9, 5.7e9).is_none());
}

#[test]
fn group_of_slower_hosts_is_named() {
    let plan = FleetPlan {
        repetitions: 3,
        ..incast(7)
    };
    let outcome = run(&plan, 1, |network| {
        for slow in ["h3", "h5"] {
            network.sends.insert(host(slow), 0.85 * GIGABIT);
        }
    });
    assert_eq!(ids(&outcome), ["FLT-11 h3, h5"]);
}

#[test]
fn sampled_fleet_finds_a_slow_host_with_few_rounds() {
    let plan = FleetPlan {
        sample_rounds: Some(6),
        ..mesh(40)
    };
    let outcome = run(&plan, 9, |network| {
        network.sends.insert(host("h17"), 95e6);
        network.receives.insert(host("h17"), 95e6);
    });
    assert_eq!(ids(&outcome), ["FLT-01 h17"]);
    assert!(
        (7..=9).contains(&outcome.header.rounds),
        "{} rounds",
        outcome.header.rounds
    );
}

#[test]
fn many_suspects_are_tested_with_different_references() {
    let plan = FleetPlan {
        sample_rounds: Some(6),
        ..mesh(60)
    };
    let slow: Vec<HostId> = (10..22).map(|at| host(&format!("h{at}"))).collect();
    let outcome = run(&plan, 9, |network| {
        network.sends = slow.iter().map(|host| (host.clone(), 95e6)).collect();
    });
    let expected: BTreeSet<String> = slow.iter().map(|host| format!("FLT-03 {host}")).collect();
    let found = ids(&outcome)
        .into_iter()
        .filter(|text| !text.starts_with("FLT-11"));
    assert_eq!(found.collect::<BTreeSet<String>>(), expected);
    assert!(
        outcome.header.rounds <= 6 + 2 * 6,
        "{} rounds",
        outcome.header.rounds
    );
}

#[test]
fn undecided_pair_is_tested_with_a_third_host() {
    let pairs = [("h1", "h2"), ("h3", "h4"), ("h5", "h6")]
        .map(|(a, b)| (host(a), host(b)))
        .to_vec();
    let plan = FleetPlan {
        topology: Topology::Pairs(pairs),
        ..mesh(6)
    };
    let change = |network: &mut FakeNetwork| {
        network.sends.insert(host("h3"), 95e6);
        network.receives.insert(host("h3"), 95e6);
    };
    assert_eq!(ids(&run(&plan, 1, change)), ["FLT-01 h3"]);
}

fn reasons(cells: &[Cell]) -> BTreeSet<NotRunReason> {
    let reason = |cell: &Cell| match &cell.outcome {
        CellOutcome::NotRun(not_run) => Some(not_run.reason),
        CellOutcome::Measured(_) => None,
    };
    cells.iter().filter_map(reason).collect()
}

fn measured(outcome: &FleetReport) -> usize {
    outcome
        .cells
        .iter()
        .filter(|cell| cell.measurement().is_some())
        .count()
}

#[test]
fn tests_of_a_host_that_was_late_run_once_more() {
    let plan = mesh(8);
    let outcome = run(&plan, 1, |network| {
        network.slow_control = Some((host("h2"), vec![2, 4]));
    });
    assert_eq!((outcome.header.rounds, measured(&outcome)), (9, 56));

    let caught_up = |cell: &&Cell| {
        cell.measurement()
            .is_some_and(|of| of.flags.contains(&CellFlag::CaughtUp))
    };
    assert_eq!(outcome.cells.iter().filter(caught_up).count(), 4);
    let outcome = run(&plan, 1, |network| {
        network.slow_control = Some((host("h2"), vec![2, 7]));
    });
    assert_eq!(
        (outcome.header.rounds, measured(&outcome)),
        (8, 54),
        "late twice"
    );
    assert_eq!(
        reasons(&outcome.cells),
        BTreeSet::from([NotRunReason::SlowControl])
    );
}

#[test]
fn test_that_runs_once_more_is_left_once() {
    let plan = mesh(8);
    let mut network = FakeNetwork::new(&plan, 1);
    network.slow_control = Some((host("h2"), vec![2, 4]));
    explore(&PlannedRun::new(plan), Vec::new(), &mut network);
    assert_eq!(network.cells_left, [56, 48, 40, 34, 26, 20, 12, 4, 2]);
}

#[test]
fn host_that_leaves_costs_its_own_cells_only() {
    let outcome = run(&mesh(8), 1, |network| {
        network.alive.insert(host("h5"), 3);
    });
    assert_eq!(
        (
            outcome.header.rounds,
            measured(&outcome),
            outcome.cells.len()
        ),
        (7, 56 - 8, 56)
    );
    assert_eq!(
        reasons(&outcome.cells),
        BTreeSet::from([NotRunReason::Unreachable])
    );
    assert!(outcome.header.ended.is_none() && outcome.findings.is_empty());
}

#[test]
fn budget_and_cancel_end_a_run_with_a_reason_for_every_cell() {
    let plan = FleetPlan {
        budget: Duration::from_secs(10),
        ..mesh(8)
    };
    let outcome = run(&plan, 1, |_| {});
    assert_eq!(
        (
            outcome.header.rounds,
            measured(&outcome),
            outcome.cells.len()
        ),
        (3, 24, 56)
    );
    let ended = outcome.header.ended.as_ref().map(|ended| ended.reason);
    assert_eq!(
        (ended, reasons(&outcome.cells)),
        (Some(NotRunReason::Budget), [NotRunReason::Budget].into())
    );

    let outcome = run(&mesh(8), 1, |network| network.cancelled_at = Some(5));
    assert_eq!(
        (
            outcome.header.rounds,
            measured(&outcome),
            outcome.cells.len()
        ),
        (5, 40, 56)
    );
    assert_eq!(reasons(&outcome.cells), [NotRunReason::Cancelled].into());
    let ended = outcome.header.ended.as_ref().map(|ended| ended.reason);
    assert_eq!(ended, Some(NotRunReason::Cancelled));
}

#[test]
fn resumed_run_starts_what_has_no_result_and_nothing_else() {
    let plan = mesh(8);
    let part = run(&plan, 1, |network| network.cancelled_at = Some(3));
    let mut network = FakeNetwork::new(&plan, 2);
    let whole = explore(&PlannedRun::new(plan), part.cells.clone(), &mut network);
    assert_eq!(
        (whole.header.rounds, measured(&whole), whole.cells.len()),
        (4, 56, 56)
    );

    let finished: BTreeSet<&Task> = part
        .cells
        .iter()
        .filter(|cell| cell.measurement().is_some())
        .map(|cell| &cell.task)
        .collect();
    assert!(
        network
            .rounds
            .iter()
            .flat_map(|round| &round.tasks)
            .all(|task| !finished.contains(task))
    );
}

#[test]
fn ladder_without_a_host_uses_the_others() {
    let outcome = run(&incast(9), 1, |network| {
        network.receives.insert(host("h1"), 10.0 * GIGABIT);
        network.alive.insert(host("h4"), 0);
    });
    assert_eq!(outcome.ladder.iter().map(|row| row.level).max(), Some(7));
    let of_absent = outcome
        .cells
        .iter()
        .filter(|cell| cell.task.source == host("h4"));
    assert!(
        of_absent.clone().count() > 0 && of_absent.clone().all(|cell| cell.measurement().is_none())
    );

    let names: Vec<&HostId> = outcome
        .ladder
        .iter()
        .flat_map(|row| &row.hosts_bps)
        .map(|(host, _)| host)
        .collect();
    assert!(!names.contains(&&host("h4")));
}

#[test]
fn step_of_a_ladder_with_a_late_host_runs_once_more_as_a_whole() {
    let outcome = run(&incast(9), 1, |network| {
        network.receives.insert(host("h1"), 10.0 * GIGABIT);
        network.slow_control = Some((host("h4"), vec![10]));
    });
    assert_eq!(outcome.header.rounds, 8 + 3 + 1);
    assert_eq!(measured(&outcome), outcome.cells.len());
    assert_eq!(
        outcome
            .ladder
            .iter()
            .map(|row| row.level)
            .collect::<Vec<_>>(),
        [1, 2, 4, 8]
    );
}

#[test]
fn resumed_ladder_keeps_the_steps_of_a_host_that_left_since() {
    let plan = incast(9);
    let change = |network: &mut FakeNetwork| {
        network.receives.insert(host("h1"), 10.0 * GIGABIT);
    };
    let part = run(&plan, 1, |network| {
        change(network);
        network.cancelled_at = Some(10);
    });
    let mut network = FakeNetwork::new(&plan, 2);
    change(&mut network);

    let of_step = |level: usize| {
        part.ladder
            .iter()
            .filter(move |row| row.level == level)
            .flat_map(|row| &row.hosts_bps)
    };
    let (left, _) = of_step(4).next().expect("a step of four hosts");
    network.alive.insert(left.clone(), 0);

    let whole = explore(&PlannedRun::new(plan), part.cells.clone(), &mut network);
    assert_eq!(
        whole.header.rounds, 1,
        "all others without the one that left"
    );
    assert_eq!(
        whole.ladder.iter().map(|row| row.level).collect::<Vec<_>>(),
        [1, 2, 4, 7]
    );
}

#[test]
fn finding_of_one_of_several_paths_names_it() {
    let plan = FleetPlan {
        paths: vec!["phys".to_owned(), "vf".to_owned()],
        ..mesh(6)
    };
    let outcome = run(&plan, 1, |network| {
        network.sends.insert(host("h2"), 500e6);
    });
    assert_eq!(ids(&outcome), ["FLT-03 h2", "FLT-03 h2"]);

    let paths: Vec<&str> = outcome
        .findings
        .iter()
        .map(|finding| finding.evidence[0].fact.as_str())
        .collect();
    assert_eq!(paths, ["path phys", "path vf"]);
    assert_eq!(
        headline(&outcome.findings, true),
        "h2: A host is slow to send (FLT-03), and 1 more findings"
    );
    assert_eq!(headline(&[], true), "no host or pair is an outlier");
}

/// A fleet with a few slow hosts: which of them, the directions that are slow, and their share of
/// the rate.
fn any_fleet(seed: u64) -> (FleetPlan, Vec<(HostId, u8, f64)>) {
    let mut rng = fastrand::Rng::with_seed(seed);
    let count = rng.usize(4..=12);
    let plan = mesh(count);
    let slow = rng.usize(0..=count / 2);
    let mut hosts: Vec<HostId> = plan.hosts.iter().map(|host| host.id.clone()).collect();
    rng.shuffle(&mut hosts);

    let kinds = hosts
        .into_iter()
        .take(slow)
        .map(|host| (host, rng.u8(1..=3), 0.05 + 0.8 * rng.f64()));
    (plan, kinds.collect())
}

#[test]
fn slow_directions_of_any_fleet_are_named_and_no_others() {
    for seed in 0..200 {
        let (plan, slow) = any_fleet(seed);
        let outcome = run(&plan, seed, |network| {
            for (host, kind, share) in &slow {
                if kind & 1 > 0 {
                    network.sends.insert(host.clone(), share * GIGABIT);
                }

                if kind & 2 > 0 {
                    network.receives.insert(host.clone(), share * GIGABIT);
                }
            }
        });

        let name = |kind: u8| ["", "FLT-03", "FLT-02", "FLT-01"][usize::from(kind)];
        let expected: BTreeSet<String> = slow
            .iter()
            .map(|(host, kind, _)| format!("{} {host}", name(*kind)))
            .collect();

        // Several slow hosts may be a group as well.
        let found = ids(&outcome)
            .into_iter()
            .filter(|text| !text.starts_with("FLT-11"));
        assert_eq!(
            found.collect::<BTreeSet<_>>(),
            expected,
            "seed {seed}: {slow:?}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Cells come from other hosts.
    #[test]
    fn any_rates_are_analysed(
        rates in proptest::collection::vec((0..6_usize, 0..6_usize, any::<f64>(), proptest::option::of(any::<f64>())), 0..60),
        racks in 0..4_usize,
    ) {
        let plan = FleetPlan { mode: FleetMode::Rounds, ..racked(6, racks + 1, 1) };
        let cells: Vec<Cell> = rates
            .into_iter()
            .map(|(source, sink, goodput_bps, nominal_bps)| {
                let mut cell = cell(&format!("h{source}"), &format!("h{sink}"), goodput_bps);
                if let CellOutcome::Measured(measurement) = &mut cell.outcome {
                    measurement.nominal_bps = nominal_bps;
                }
                cell
            })
            .collect();
        let cells: Vec<&Cell> = cells.iter().collect();
        if let Some(analysis) = analyse(&cells, &plan.racks()) {
            findings(&analysis, &plan.racks()).iter().for_each(assert_useful);
            prop_assert!(analysis.effects.scale.is_finite());
        }
        if let Some((found, _)) = groups::finding(&cells, Some(&host("h1"))) {
            prop_assert!(found.slow.len() > 1 && found.fast.len() > 1);
        }
    }
}
