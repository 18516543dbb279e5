//! Schedules hold their limits, and every task runs once.

use std::collections::{BTreeMap, BTreeSet};

use linerate_model::fleet::{FleetMode, HostId, PairDirection, Round, Task};
use proptest::prelude::*;

use super::colour::resources;
use super::rounds::units;
use super::tournament::Draw;
use super::{FleetPlan, PlannedRun, ladder, rounds, sample, task_id};
use crate::fixtures::{host, hosts, mesh, racked};
use crate::spec::{TestOptions, Topology};

fn all(plan: &FleetPlan) -> BTreeSet<HostId> {
    plan.hosts.iter().map(|host| host.id.clone()).collect()
}

fn tasks(plan: &FleetPlan) -> Vec<Task> {
    PlannedRun::new(plan.clone()).tasks
}

fn planned(plan: &FleetPlan) -> Vec<Round> {
    rounds(&tasks(plan), &all(plan), plan)
}

/// No schedule of these tasks has fewer rounds: the largest of the tests of one host, of the pairs
/// that cross an uplink over those that it carries at once, and of all pairs over those that all
/// hosts, or all uplinks, carry at once.
fn rounds_min(tasks: &[Task], plan: &FleetPlan) -> usize {
    let hosts: BTreeSet<HostId> = tasks
        .iter()
        .flat_map(|task| [task.source.clone(), task.sink.clone()])
        .collect();
    let draw = Draw::new(&hosts, 0);
    let tasks: Vec<&Task> = tasks.iter().collect();
    resources(&units(&tasks, &draw, plan), hosts.len(), plan).rounds_min()
}

/// Every task once and no other.
fn assert_complete(rounds: &[Round], tasks: &[Task]) {
    let mut run: Vec<&Task> = rounds.iter().flat_map(|round| &round.tasks).collect();
    let mut wanted: Vec<&Task> = tasks.iter().collect();
    run.sort();
    wanted.sort();
    assert_eq!(run, wanted);
}

/// No host is in two pairs of a round; of one direction at a time, in two tests.
fn assert_disjoint(rounds: &[Round], direction: PairDirection) {
    for round in rounds {
        let mut partners: BTreeMap<&HostId, BTreeSet<&HostId>> = BTreeMap::new();
        for task in &round.tasks {
            partners.entry(&task.source).or_default().insert(&task.sink);
            partners.entry(&task.sink).or_default().insert(&task.source);
        }

        assert!(
            partners.values().all(|partners| partners.len() == 1),
            "{round:?}"
        );
        let tests = if direction == PairDirection::Both {
            2
        } else {
            1
        };
        assert!(round.tasks.len() <= partners.len() / 2 * tests, "{round:?}");
    }
}

fn assert_caps(rounds: &[Round], plan: &FleetPlan) {
    let racks = plan.racks();
    for round in rounds {
        let mut crossing: BTreeMap<&String, BTreeSet<(&HostId, &HostId)>> = BTreeMap::new();
        for task in &round.tasks {
            let (from, to) = (racks.get(&task.source), racks.get(&task.sink));
            let pair = (
                (&task.source).min(&task.sink),
                (&task.source).max(&task.sink),
            );

            for rack in [from, to].into_iter().flatten().filter(|_| from != to) {
                crossing.entry(rack).or_default().insert(pair);
            }
        }

        for (rack, pairs) in crossing {
            let cap = plan.crossing.get(rack).copied().unwrap_or(u32::MAX);
            assert!(pairs.len() <= cap as usize, "{rack}: {pairs:?}");
        }
    }
}

#[test]
fn mesh_takes_as_many_rounds_as_each_host_has_partners() {
    for count in 2..=16 {
        let plan = mesh(count);
        let both = planned(&plan);
        let expected = count.next_multiple_of(2) - 1;
        assert_eq!(both.len(), expected, "{count} hosts, both ways");

        let one_way = FleetPlan {
            direction: PairDirection::OneWay,
            ..plan.clone()
        };
        assert_eq!(
            planned(&one_way).len(),
            2 * expected,
            "{count} hosts, one way"
        );
        assert_eq!(tasks(&plan).len(), count * (count - 1));
    }
}

#[test]
fn isolated_runs_one_pair_at_a_time_and_stress_all() {
    let isolated = FleetPlan {
        mode: FleetMode::Isolated,
        ..mesh(5)
    };
    let rounds = planned(&isolated);
    assert!(
        rounds.len() == 10 && rounds.iter().all(|round| round.tasks.len() == 2),
        "{rounds:?}"
    );

    let stress = FleetPlan {
        mode: FleetMode::Stress,
        ..mesh(5)
    };
    assert!(matches!(planned(&stress).as_slice(), [round] if round.tasks.len() == 20));
}

#[test]
fn two_racks_of_four_are_near_the_bound() {
    for crossing in 1..=4 {
        for seed in 0..20 {
            let plan = FleetPlan {
                seed,
                ..racked(8, 4, crossing)
            };
            let rounds = planned(&plan);
            assert_caps(&rounds, &plan);

            let bound = rounds_min(&tasks(&plan), &plan);
            assert_eq!(bound, 7.max(16_usize.div_ceil(crossing as usize)));
            assert!(
                rounds.len() * 4 <= bound * 5,
                "{} rounds, bound {bound}, seed {seed}",
                rounds.len()
            );
        }
    }
}

#[test]
fn more_racks_are_near_the_bound() {
    for (count, size, crossing) in [
        (9, 3, 1),
        (12, 4, 1),
        (12, 4, 2),
        (12, 4, 3),
        (16, 4, 1),
        (16, 4, 2),
        (16, 8, 3),
    ] {
        let plan = racked(count, size, crossing);
        let rounds = planned(&plan);
        assert_caps(&rounds, &plan);

        let bound = rounds_min(&tasks(&plan), &plan);
        assert!(
            rounds.len() * 4 <= bound * 5,
            "{} rounds, bound {bound}, {count} in {size}",
            rounds.len()
        );
    }

    // Of three racks whose uplinks carry one pair each, one pair at a time crosses.
    let plan = racked(12, 4, 1);
    assert_eq!(rounds_min(&tasks(&plan), &plan), 48);
}

#[test]
fn variants_of_a_pair_run_side_by_side_in_balanced_order() {
    let variants = vec!["cc=bbr".to_owned(), "cc=cubic".to_owned()];
    let plan = FleetPlan {
        variants,
        repetitions: 2,
        ..mesh(4)
    };
    let rounds = planned(&plan);
    assert_complete(&rounds, &tasks(&plan));
    assert_eq!(rounds.len(), 3 * 4);

    for pair in rounds.chunks(4) {
        let order: Vec<&str> = pair.iter().map(|round| &*round.tasks[0].variant).collect();
        assert_eq!(order, ["cc=bbr", "cc=cubic", "cc=cubic", "cc=bbr"]);

        let pairs = |round: &Round| -> BTreeSet<(HostId, HostId)> {
            round
                .tasks
                .iter()
                .map(|task| (task.source.clone(), task.sink.clone()))
                .collect()
        };
        assert!(pair.iter().all(|round| pairs(round) == pairs(&pair[0])));
    }
}

#[test]
fn large_fleet_is_sampled_with_twenty_partners_each() {
    for count in [101, 250] {
        let plan = mesh(count);
        let tasks = tasks(&plan);
        let mut partners: BTreeMap<&HostId, usize> = BTreeMap::new();
        tasks
            .iter()
            .for_each(|task| *partners.entry(&task.source).or_default() += 1);

        // An odd number of hosts leaves each out of at most one round.
        assert!(
            partners.len() == count && partners.values().all(|count| (19..=20).contains(count))
        );
        let rounds = planned(&plan);
        assert_eq!(rounds.len(), 20);
        assert_disjoint(&rounds, plan.direction);

        // A host that leaves changes no round of the others.
        let mut fewer = all(&plan);
        fewer.pop_first();
        let without = super::rounds(&tasks, &fewer, &plan);
        assert_eq!(without.len(), 20);
    }

    assert_eq!(tasks(&mesh(100)).len(), 9900);
    let set = FleetPlan {
        sample_rounds: Some(3),
        ..mesh(10)
    };
    assert_eq!(tasks(&set).len(), 10 * 3);
}

#[test]
fn suspects_meet_three_references_both_ways() {
    let plan = FleetPlan {
        sample_rounds: Some(3),
        ..mesh(10)
    };
    let references = hosts(10).split_off(1);
    let suspects = BTreeSet::from([host("h1")]);
    let tasks = sample::adaptive(&plan, &suspects, &references);
    assert_eq!(tasks.len(), 6, "{tasks:?}");
    assert!(
        tasks
            .iter()
            .all(|task| [&task.source, &task.sink].contains(&&host("h1"))),
        "{tasks:?}"
    );
    assert_eq!(tasks, sample::adaptive(&plan, &suspects, &references));
}

#[test]
fn ladder_has_nested_steps_in_another_order_for_each_repetition() {
    let plan = FleetPlan {
        topology: Topology::Incast(host("h1")),
        repetitions: 2,
        ..mesh(8)
    };
    let steps = ladder::steps(&plan);
    let levels: Vec<usize> = steps.iter().map(|step| step.level).collect();
    assert_eq!(
        levels,
        [
            [1, 1, 1, 1, 1, 1, 1, 2, 4, 7],
            [1, 1, 1, 1, 1, 1, 1, 2, 4, 7]
        ]
        .concat()
    );

    let senders =
        |at: usize| -> Vec<&HostId> { steps[at].tasks.iter().map(|task| &task.source).collect() };
    assert!(senders(9).starts_with(&senders(8)) && senders(8).starts_with(&senders(7)));
    assert_ne!(senders(9), senders(19), "another order");
    assert!(
        steps
            .iter()
            .flat_map(|step| &step.tasks)
            .all(|task| task.sink == host("h1"))
    );

    let unique: BTreeSet<Task> = tasks(&plan).into_iter().collect();
    assert_eq!(unique.len(), tasks(&plan).len());
    // Of a step with a missing result all tests run again.
    let mut finished = unique;
    finished.remove(&steps[9].tasks[3]);

    let open = ladder::rounds(&steps, &finished);
    assert!(matches!(open.as_slice(), [round] if round.tasks == steps[9].tasks));
    let reverse = FleetPlan {
        topology: Topology::Fanout(host("h1")),
        ..plan
    };
    assert!(tasks(&reverse).iter().all(|task| task.source == host("h1")));
}

#[test]
fn ladder_of_many_senders_tests_some_alone() {
    let plan = FleetPlan {
        topology: Topology::Incast(host("h1")),
        ..mesh(60)
    };
    let steps = ladder::steps(&plan);
    assert_eq!(steps.iter().filter(|step| step.level == 1).count(), 16);
}

#[test]
fn identity_depends_on_the_plan_and_not_on_the_order_of_its_hosts() {
    let plan = mesh(4);
    let mut reversed = plan.clone();
    reversed.hosts.reverse();
    assert_eq!(plan.hash(), reversed.hash());
    assert_eq!(tasks(&plan), tasks(&reversed));

    let longer = FleetPlan {
        budget: std::time::Duration::from_secs(9),
        ..plan.clone()
    };
    assert_eq!(plan.hash(), longer.hash(), "the time is no part of it");

    let others = [
        FleetPlan {
            seed: 2,
            ..plan.clone()
        },
        FleetPlan {
            test: TestOptions {
                time: std::time::Duration::from_secs(3),
                ..plan.test
            },
            ..plan.clone()
        },
        FleetPlan {
            mode: FleetMode::Isolated,
            ..plan.clone()
        },
        FleetPlan {
            paths: vec!["ph".to_owned(), "ys".to_owned()],
            ..plan.clone()
        },
        mesh(5),
    ];
    for other in others {
        assert_ne!(plan.hash(), other.hash(), "{other:?}");
    }

    let tasks = tasks(&plan);
    let ids: BTreeSet<_> = tasks
        .iter()
        .map(|task| task_id(plan.hash(), task))
        .collect();
    assert_eq!(ids.len(), tasks.len());

    // Runs are resumed by later versions of the program, so that this never changes.
    assert_eq!(plan.hash().to_string(), "fa6d97492489be392b4982514e870f7d");
}

#[test]
fn targets_are_measured_with_other_hosts_only() {
    let mut plan = mesh(4);
    plan.hosts[0].is_target_only = true;
    plan.hosts[1].is_target_only = true;

    let pairs = [host("h1"), host("h2")];
    assert_eq!(tasks(&plan).len(), 10);
    assert!(
        tasks(&plan)
            .iter()
            .all(|task| !(pairs.contains(&task.source) && pairs.contains(&task.sink)))
    );
}

#[test]
fn server_without_an_agent_has_one_test_at_a_time() {
    for mode in [
        FleetMode::Rounds,
        FleetMode::RackSafe,
        FleetMode::Isolated,
        FleetMode::Stress,
    ] {
        let mut plan = FleetPlan {
            mode,
            repetitions: 2,
            ..racked(6, 3, 1)
        };
        plan.hosts[2].is_target_only = true;
        let rounds = planned(&plan);
        assert_complete(&rounds, &tasks(&plan));

        let target = &plan.hosts[2].id;
        let of_target = |task: &&Task| task.source == *target || task.sink == *target;

        for round in &rounds {
            assert!(
                round.tasks.iter().filter(of_target).count() <= 1,
                "{mode:?}: {round:?}"
            );
        }

        let others_at_once = rounds
            .iter()
            .any(|round| round.tasks.iter().filter(|task| !of_target(task)).count() > 1);
        assert!(
            others_at_once,
            "{mode:?}: pairs of other hosts are tested both ways at once"
        );
    }
}

fn any_plan() -> impl Strategy<Value = FleetPlan> {
    let mode = prop_oneof![
        Just(FleetMode::Rounds),
        Just(FleetMode::RackSafe),
        Just(FleetMode::Isolated)
    ];
    let direction = prop_oneof![Just(PairDirection::Both), Just(PairDirection::OneWay)];
    (
        2..14_usize,
        1..6_usize,
        1..4_u32,
        mode,
        direction,
        any::<u64>(),
        1..3_u32,
        0..3_usize,
    )
        .prop_map(
            |(count, size, crossing, mode, direction, seed, repetitions, variants)| {
                let variants = (0..variants).map(|at| format!("v={at}")).collect();
                FleetPlan {
                    mode,
                    direction,
                    seed,
                    repetitions,
                    variants,
                    ..racked(count, size, crossing)
                }
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_task_runs_once_in_rounds_within_the_limits(plan in any_plan()) {
        let rounds = planned(&plan);
        assert_complete(&rounds, &tasks(&plan));
        assert_disjoint(&rounds, plan.direction);
        if plan.mode == FleetMode::RackSafe {
            assert_caps(&rounds, &plan);
        }
        prop_assert_eq!(&rounds, &planned(&plan), "the same seed has the same rounds");
        if plan.mode != FleetMode::Isolated && plan.repetitions == 1 && plan.variants.len() < 2 {
            prop_assert!(rounds.len() >= rounds_min(&tasks(&plan), &plan));
        }
    }

    #[test]
    fn resumed_run_has_the_tasks_without_a_result_and_no_more_rounds(plan in any_plan(), done in any::<u64>(), rounds_done in 0..9_usize) {
        let open: Vec<Task> =
            tasks(&plan).into_iter().filter(|task| task_id(plan.hash(), task).0 as u64 & done != 0).collect();
        let resumed = rounds(&open, &all(&plan), &plan);
        assert_complete(&resumed, &open);
        assert_disjoint(&resumed, plan.direction);
        // After whole rounds of a mesh the others are left.
        let first = planned(&plan);
        let finished: BTreeSet<&Task> = first.iter().take(rounds_done).flat_map(|round| &round.tasks).collect();
        let open: Vec<Task> = tasks(&plan).into_iter().filter(|task| !finished.contains(task)).collect();
        let resumed = rounds(&open, &all(&plan), &plan);
        assert_complete(&resumed, &open);
        if plan.mode == FleetMode::Rounds && plan.direction == PairDirection::Both {
            prop_assert!(resumed.len() <= first.len().saturating_sub(rounds_done));
        }
    }

    #[test]
    fn hosts_that_left_are_in_no_round(plan in any_plan(), left in 0..14_usize) {
        let mut alive = all(&plan);
        let gone = host(&format!("h{left}"));
        alive.remove(&gone);
        let rounds = rounds(&tasks(&plan), &alive, &plan);
        let expected: Vec<Task> =
            tasks(&plan).into_iter().filter(|task| task.source != gone && task.sink != gone).collect();
        assert_complete(&rounds, &expected);
        assert_disjoint(&rounds, plan.direction);
    }
}

#[test]
fn estimate_counts_what_has_no_result() {
    let plan = mesh(8);
    let estimate = |plan: &FleetPlan, finished: &BTreeSet<Task>| {
        PlannedRun::new(plan.clone()).estimate(finished, &all(plan))
    };
    let whole = estimate(&plan, &BTreeSet::new());
    assert_eq!(
        (whole.cells, whole.rounds, whole.time.as_secs()),
        (56, 7, 21)
    );

    let repeated = FleetPlan {
        repetitions: 3,
        ..racked(8, 4, 1)
    };
    assert_eq!(estimate(&repeated, &BTreeSet::new()).cells, 168);

    let ladder = FleetPlan {
        topology: Topology::Incast(host("h1")),
        ..plan
    };
    let finished = tasks(&ladder).into_iter().skip(1).collect();
    let open = estimate(&ladder, &finished);
    assert_eq!((open.cells, open.rounds), (1, 1));
}
