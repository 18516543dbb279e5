//! Commands that no message can hold.

use linerate_fleet::TaskId;
use linerate_fleet::protocol::coordinator::{
    Action, Coordinator, DropReason, End, Input, NotRun, RoundPlan, RoundTask, Settings, Step,
};
use linerate_fleet::protocol::message::{ArmTask, FailCode, PathAddress, Plan};

use crate::dialogue::{parse, run_id, task};

const MS_NS: u64 = 1_000_000;

/// Two greeted hosts.
fn coordinator() -> Coordinator {
    let settings = Settings {
        run: run_id(1).parse().expect("a run"),
        epoch: 1,
        hello_timeout_ns: 10_000 * MS_NS,
        silence_max_ns: 60_000 * MS_NS,
        beat_ns: 1_000 * MS_NS,
        is_solicited: false,
        clock_budget_ns: 10 * MS_NS,
    };
    let mut coordinator = Coordinator::new(0, settings, 2);
    both(&mut coordinator, "hello");

    coordinator
}

fn both(coordinator: &mut Coordinator, message: &str) {
    let text = format!("coordinator a\na> {message}\n");
    for (_, step) in parse(&text).steps {
        let crate::dialogue::Step::Feed { line, .. } = step else {
            panic!("a message")
        };
        (0..2).for_each(|host| coordinator.handle_line(0, host, line.as_bytes()));
    }
}

/// A plan with this many addresses for each host.
fn send_plans(coordinator: &mut Coordinator, addresses: [usize; 2]) {
    let text = r#"{"lease_ms":3000,"addresses":[],"ports":{"first":5201,"last":5209}}"#;
    for (host, count) in addresses.into_iter().enumerate() {
        let mut plan: Box<Plan> = serde_json::from_str(text).expect("a plan");
        let address = PathAddress {
            path: "phys".to_owned(),
            address: "10.0.0.1".parse().expect("an address"),
        };
        plan.addresses = vec![address; count];
        coordinator
            .handle_local(0, Input::Plan { host, plan })
            .expect("ready");
    }

    coordinator
        .handle_local(0, Input::PlansSent)
        .expect("ready");
}

fn drain(coordinator: &mut Coordinator) -> Vec<Action> {
    let actions = std::iter::from_fn(|| coordinator.poll_action());
    actions
        .filter(|action| !matches!(action, Action::Send { .. }))
        .collect()
}

#[test]
fn host_whose_plan_is_too_long_is_dropped_and_the_other_goes_on() {
    let mut coordinator = coordinator();
    drain(&mut coordinator);
    send_plans(&mut coordinator, [5_000, 1]);
    both(&mut coordinator, "planned");

    let dropped = Action::Dropped {
        host: 0,
        reason: DropReason::Refused(FailCode::Limit),
    };
    assert_eq!(
        drain(&mut coordinator),
        [dropped, Action::StepDone(Step::Plan)]
    );
    assert!(coordinator.is_planned(1));
}

#[test]
fn tasks_that_no_message_holds_come_back_at_once() {
    let mut coordinator = coordinator();
    send_plans(&mut coordinator, [1, 1]);
    both(&mut coordinator, "planned");
    drain(&mut coordinator);

    coordinator
        .handle_local(0, Input::Clocks { exchanges: 1 })
        .expect("ready");
    both(&mut coordinator, "clocked");
    drain(&mut coordinator);

    let spec = |id: u64| serde_json::from_value::<ArmTask>(task(id, "client")).expect("a task");
    let round_task = |id: u64| RoundTask {
        task: TaskId(id.into()),
        client: End {
            host: 0,
            spec: spec(id),
        },
        server: None,
        nominal_bps: None,
    };
    let tasks = (0..5_000).map(round_task).collect();

    coordinator
        .handle_local(
            0,
            Input::Round(Box::new(RoundPlan {
                number: 1,
                tasks,
                data_rtt_ns: 0,
            })),
        )
        .expect("ready");
    coordinator.handle_timeout(500 * MS_NS);
    let actions = drain(&mut coordinator);
    let refused = NotRun::Refused(FailCode::Limit);
    let not_run = actions
        .iter()
        .filter(|a| matches!(a, Action::NotRun { reason, .. } if *reason == refused))
        .count();
    assert_eq!(not_run, 5_000);
    assert_eq!(
        actions.last(),
        Some(&Action::RoundDone {
            round: 1,
            unconfirmed: Vec::new()
        })
    );
}
