//! Goal: one coordinator at a time, and each result once, whatever happens to coordinators and the
//! broker.

use std::time::{Duration, Instant};

use linerate_fleet::run::carrier::Carrier;
use linerate_fleet::run::carrier::bus::{BusCarrier, LeaseState};

use crate::broker::Broker;
use crate::dialogue::{Step, parse, run_id};
use crate::ends::{agents, coordinator, expect_quiet, lease_state, next_line, setup};

const MOMENT: Duration = Duration::from_millis(300);

/// A result of a task, as an agent sends it.
fn result(task: u32) -> String {
    let text = format!("coordinator a\na> result {{\"task\":\"{task:032x}\"}}\n");
    match parse(&text).steps.pop() {
        Some((_, Step::Feed { line, .. })) => line,
        _ => panic!("a message"),
    }
}

#[test]
fn lines_arrive_at_their_host_alone_or_at_all() {
    let Some(broker) = Broker::start() else {
        return;
    };
    let (mut coordinator, _) = coordinator(&setup(&broker, "lab", &["h1.rack", "h2"], None));
    let mut hosts = agents(&broker, "lab", &["h1.rack", "h2"]);
    let mut queued = Vec::new();

    // Their first lines show that they are subscribed.
    hosts.send(0, "one");
    hosts.send(1, "two");
    let mut first = [
        next_line(&mut coordinator, &mut queued),
        next_line(&mut coordinator, &mut queued),
    ];
    first.sort();
    assert_eq!(first, [(0, "one".to_owned()), (1, "two".to_owned())]);
    coordinator.send(1, "to the second");
    assert_eq!(
        next_line(&mut hosts, &mut queued),
        (1, "to the second".to_owned())
    );
    coordinator.send_all(&[0, 1], "to all");

    let mut both = [
        next_line(&mut hosts, &mut queued).0,
        next_line(&mut hosts, &mut queued).0,
    ];
    both.sort_unstable();
    assert_eq!(both, [0, 1]);
    coordinator.close(1);
    coordinator.send_all(&[0, 1], "to the first");
    hosts.send(1, "nothing of a closed host is reported");
    assert_eq!(
        next_line(&mut hosts, &mut queued),
        (0, "to the first".to_owned())
    );
    expect_quiet(&mut coordinator, MOMENT);
    expect_quiet(&mut hosts, MOMENT);
}

#[test]
fn results_sent_while_the_broker_is_away_arrive_once_and_in_order() {
    let Some(mut broker) = Broker::start() else {
        return;
    };
    let (mut coordinator, _) = coordinator(&setup(&broker, "lab", &["a"], None));
    let mut hosts = agents(&broker, "lab", &["a"]);
    let mut queued = Vec::new();

    hosts.send(0, &result(1));
    assert_eq!(next_line(&mut coordinator, &mut queued).1, result(1));
    broker.kill();

    for task in 2..=20 {
        hosts.send(0, &result(task));
        hosts.send(0, &result(task));
    }

    broker.restart();
    for task in 2..=20 {
        assert_eq!(next_line(&mut coordinator, &mut queued).1, result(task));
    }

    expect_quiet(&mut coordinator, MOMENT);
}

#[test]
fn second_coordinator_stands_by_until_the_first_has_ended() {
    let Some(broker) = Broker::start() else {
        return;
    };
    let (mut first, term) = coordinator(&setup(&broker, "lab", &["a"], Some("plan")));
    let mut other = BusCarrier::start(&setup(&broker, "lab", &["a"], None)).expect("a carrier");
    let refused = lease_state(&mut other);
    assert!(
        matches!(&refused, LeaseState::Failed(error) if error.to_string().contains("has the lease")),
        "{refused:?}"
    );

    let mut of_second = setup(&broker, "lab", &["a"], Some("plan"));
    of_second.run = run_id(2);
    let mut second = BusCarrier::start(&of_second).expect("a carrier");
    assert!(matches!(lease_state(&mut second), LeaseState::Standby));
    first.close(0);

    let released = Instant::now();
    let LeaseState::Held(next) = lease_state(&mut second) else {
        panic!("in charge")
    };
    assert!(
        released.elapsed() < Duration::from_secs(5),
        "{:?}",
        released.elapsed()
    );
    assert!(
        next.epoch > term.epoch,
        "{} after {}",
        next.epoch,
        term.epoch
    );

    // A run that has ended is not continued.
    assert_eq!((next.run, next.history), (run_id(2), Vec::new()));
}
