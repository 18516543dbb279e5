//! Latency is that of the client, also while the server is stalled.

use std::thread;
use std::time::{Duration, Instant};

use linerate_interop::{HttpLoad, HttpServer, Process, Signal, TIMEOUT, wait_for, words};

/// How long the server is stopped.
const STALL: Duration = Duration::from_millis(600);

/// A rate is offered for six seconds, in which the server stands still once. Those who were due then waited for the
/// rest of the stall: of `n` requests the `k`-th longest wait is the stall less `k / rate`. Their connections, 64 of
/// them, were asked only once, so the time from sending to the answer hardly shows it.
#[test]
fn timed_stall_is_part_of_the_latency_of_due_requests() {
    let server = HttpServer::start(&["--threads", "1"]);
    let rate = rate_for(&server);
    let rate_text = rate.to_string();
    let load = HttpLoad::start(
        &server.url("/1k"),
        &["-c", "64", "--rate", &rate_text, "-d", "6s", "--warmup", "0", "--threads", "1"],
    );
    let stall = stall_after_a_second(&server, &load);
    let load = HttpLoad::of(load.finish());
    load.expect_all_well();
    let n = load.number("requests") as f64;
    assert_eq!(n, rate as f64 * 6.0, "{load:?}");
    let stall_ms = stall.as_secs_f64() * 1e3;
    let wait_ms = |share: f64| stall_ms - share * n / rate as f64 * 1e3;
    expect_close(&load, "latency/p99", wait_ms(0.01), 0.02);
    expect_close(&load, "latency/p999", wait_ms(0.001), 0.02);
    expect_close(&load, "latency/max", stall_ms, 0.03);
    let service_ms = load.quantile_ms("service/p99");
    assert!(service_ms < 50.0, "{service_ms} ms: {load:?}");
    assert!(!load.has_flag("overload"), "{load:?}");
}

/// The backlog of a stall must be gone in no time compared to it, so a slow machine is offered less.
fn rate_for(server: &HttpServer) -> u64 {
    let options = ["-c", "64", "-d", "1s", "--warmup", "0", "--threads", "1"];
    let load = HttpLoad::run(&server.url("/1k"), &options);
    if load.number("ok") >= 40_000 { 5_000 } else { 2_000 }
}

/// Stops the server when the load has run for a second; how long it was stopped.
fn stall_after_a_second(server: &HttpServer, load: &Process) -> Duration {
    wait_for_a_second(load);
    let began = Instant::now();
    server.process.signal(Signal::Stop);
    thread::sleep(STALL);
    server.process.signal(Signal::Continue);
    began.elapsed()
}

fn wait_for_a_second(load: &Process) {
    let has_begun = || load.stderr().contains("1 of ").then_some(());
    assert!(wait_for(TIMEOUT, has_begun).is_some(), "no load: {load:?}");
}

#[track_caller]
fn expect_close(load: &HttpLoad, path: &str, truth_ms: f64, tolerance: f64) {
    let reported_ms = load.quantile_ms(path);
    let error = (reported_ms - truth_ms).abs() / truth_ms;
    assert!(error <= tolerance, "{path} is {reported_ms} ms, in truth {truth_ms} ms: {load:?}");
}

/// A closed loop has no requests that were due: of its 16 connections each saw the stall once.
#[test]
fn a_closed_loop_does_not_invent_requests() {
    let server = HttpServer::start(&["--threads", "1"]);
    let load = HttpLoad::start(&server.url("/1k"), &["-c", "16", "-d", "4s", "--warmup", "0", "--threads", "1"]);
    let stall = stall_after_a_second(&server, &load);
    let load = HttpLoad::of(load.finish());
    load.expect_all_well();
    assert!(load.quantile_ms("latency/max") >= 0.97 * 600.0, "{stall:?}: {load:?}");
    assert!(load.quantile_ms("latency/p99") < 300.0, "{load:?}");
}

/// A generator that does not run while its window ends has still a connection for every request that was due.
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
