//! Latency is that of the client, also while the server is stalled.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use linerate_interop::{HttpLoad, HttpServer, Process, Signal, TIMEOUT, wait_for, words};

/// Time for which the server is stopped.
const STALL: Duration = Duration::from_millis(600);

/// A rate is offered for six seconds, in which the server stands still once. Requests due meanwhile
/// waited at least for the rest of the stall: of `n` requests the `k`-th longest wait is the stall
/// less `k / rate`. Their connections sent one request each before it, so the time from sending to
/// the answer does not show it at the 99th percentile.
#[test]
fn timed_stall_is_part_of_the_latency_of_due_requests() {
    let server = HttpServer::start(&["--threads", "1"]);
    let options = words("-c 16 --rate 2000 -d 6s --warmup 0 --threads 1");
    let load = HttpLoad::start(&server.url("/1k"), &options);
    let stall_ms = stall_after_a_second(&server, &load).as_secs_f64() * 1e3;
    let load = HttpLoad::of(load.finish());
    load.expect_all_well();
    assert_eq!(load.number("requests"), 12_000, "{load:?}");

    for (path, above) in [
        ("latency/p99", 60.0),
        ("latency/p999", 6.0),
        ("latency/max", 0.0),
    ] {
        let least_ms = (stall_ms - above) * (1.0 - RESOLUTION);
        assert!(
            load.quantile_ms(path) >= least_ms,
            "{path}, at least {least_ms} ms: {load:?}"
        );
    }

    assert!(
        load.quantile_ms("service/p99") < load.quantile_ms("latency/p99") / 2.0,
        "{load:?}"
    );
}

/// Buckets of a histogram are this wide.
const RESOLUTION: f64 = 0.001;

/// Stops the server when the load has run for a second; how long it was stopped at least.
fn stall_after_a_second(server: &HttpServer, load: &Process) -> Duration {
    wait_for_a_second(load);
    server.process.signal(Signal::Stop);
    let is_stopped = || is_stopped(server.process.id()).then_some(());
    assert!(
        wait_for(TIMEOUT, is_stopped).is_some(),
        "it runs: {server:?}"
    );

    let began = Instant::now();
    thread::sleep(STALL);
    let stall = began.elapsed();

    server.process.signal(Signal::Continue);
    stall
}

/// `T` in the state of proc_pid_stat(5).
fn is_stopped(id: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).expect("it runs");
    stat.rsplit_once(") ")
        .is_some_and(|(_, rest)| rest.starts_with('T'))
}

fn wait_for_a_second(load: &Process) {
    let has_begun = || load.stderr().contains("1 of ").then_some(());
    assert!(wait_for(TIMEOUT, has_begun).is_some(), "no load: {load:?}");
}

/// A closed loop has no requests that were due: of its 16 connections each saw the stall once.
#[test]
fn a_closed_loop_does_not_invent_requests() {
    let server = HttpServer::start(&["--threads", "1"]);
    let load = HttpLoad::start(
        &server.url("/1k"),
        &["-c", "16", "-d", "4s", "--warmup", "0", "--threads", "1"],
    );
    let stall = stall_after_a_second(&server, &load);
    let load = HttpLoad::of(load.finish());
    load.expect_all_well();
    assert!(
        load.quantile_ms("latency/max") >= 0.97 * 600.0,
        "{stall:?}: {load:?}"
    );
    assert!(load.quantile_ms("latency/p99") < 300.0, "{load:?}");
}

/// A generator that does not run while its window ends has still a connection for every request
/// that was due.
#[test]
fn delayed_generator_sends_all_due_requests() {
    let server = HttpServer::start(&["--threads", "1"]);
    let options = words("-c 1000 --rate 200 -d 3s --warmup 0 --ramp max --threads 1");
    let load = HttpLoad::start(&server.url("/0"), &options);
    wait_for_a_second(&load);
    load.signal(Signal::Stop);
    thread::sleep(Duration::from_millis(2500));
    load.signal(Signal::Continue);

    let load = HttpLoad::of(load.finish());
    load.expect_all_well();
    assert_eq!(load.number("requests"), 600, "{load:?}");
    assert!(load.quantile_ms("latency/max") > 500.0, "{load:?}");
}
