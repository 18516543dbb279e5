//! Goal: a test ends soon and reports what it has measured, whichever end is the cause. Method:
//! signals to the client and to the server in each phase.

use std::time::Duration;

use linerate_interop::{NativeHost, Process, Service, Signal, TIMEOUT, each_case, wait_until};

/// Longest time to the end of a client after a signal to it. What is under way is 100 ms on
/// loopback at most.
const CLIENT_END: Duration = Duration::from_secs(2);
/// Longest time to the end of a client whose server is gone.
const SERVER_GONE: Duration = Duration::from_secs(5);
/// Longest time in which a server notices that a client is gone that ends its session.
const CLIENT_GONE: Duration = Duration::from_secs(1);
/// Longest time in which it notices that a control connection which broke does not come back.
const CLIENT_LOST: Duration = Duration::from_secs(5);

const PHASES: [&str; 4] = ["idle", "down", "up", "datagrams"];

/// A test of all phases of which this one runs.
fn in_phase(client: &NativeHost, service: &Service, phase: &str) -> Process {
    let target = format!("127.0.0.1:{}", service.port);
    let words = [
        "--json",
        "--profile",
        "quick",
        "--only",
        "idle,down,up,datagrams",
        "-b",
        "20M",
        "--time",
        "2",
    ];
    let test = client.test(&target, &words);

    service.wait_for_events("test_started", 1, TIMEOUT);
    let before = PHASES.iter().take_while(|name| **name != phase).last();

    let is_over = |name: &str| {
        test.stderr()
            .lines()
            .any(|line| line.trim_start().starts_with(name))
    };
    if let Some(before) = before {
        assert!(
            wait_until(TIMEOUT, || is_over(before)),
            "{before}: {test:?}"
        );
    }

    test
}

#[test]
fn interrupt_ends_a_test_with_a_partial_report_and_frees_the_server() {
    each_case(&PHASES, |phase| {
        let (client, service) = (NativeHost::here(), NativeHost::here().serve(&[]));
        let test = in_phase(&client, &service, phase);
        test.signal(Signal::Interrupt);

        let finished = test.finish_within(CLIENT_END);
        let report = finished.expect_code(130).json();
        assert_eq!(report["state"], "partial", "{finished:?}");

        if *phase != "idle" {
            assert!(report["idle"]["rtt"]["p50_ns"].is_u64(), "{finished:?}");
        }

        service.wait_for_events("test_ended", 1, CLIENT_GONE);
    });
}

#[test]
fn client_of_a_server_that_is_killed_ends_with_a_partial_report() {
    each_case(&PHASES, |phase| {
        let (client, service) = (NativeHost::here(), NativeHost::here().serve(&[]));
        let test = in_phase(&client, &service, phase);
        service.process.signal(Signal::Kill);

        let finished = test.finish_within(SERVER_GONE);
        assert_eq!(
            finished.expect_code(1).json()["state"],
            "partial",
            "{finished:?}"
        );
    });
}

#[test]
fn server_is_free_after_a_client_that_is_killed() {
    each_case(&PHASES, |phase| {
        let (client, service) = (
            NativeHost::here(),
            NativeHost::here().serve(&["--admit", "exclusive"]),
        );
        let test = in_phase(&client, &service, phase);
        test.signal(Signal::Kill);
        service.wait_for_events("test_ended", 1, CLIENT_LOST);

        let next = format!("127.0.0.1:{}", service.port);
        NativeHost::here().report(&next, &["--only", "size"]);
    });
}

/// The signal reaches the client as a message; its report is complete up to there.
#[test]
fn server_that_ends_by_a_signal_ends_its_clients() {
    let (client, service) = (NativeHost::here(), NativeHost::here().serve(&[]));
    let test = in_phase(&client, &service, "down");
    service.process.signal(Signal::Terminate);

    let finished = test.finish_within(SERVER_GONE);
    assert_eq!(
        finished.expect_code(1).json()["state"],
        "partial",
        "{finished:?}"
    );
}
