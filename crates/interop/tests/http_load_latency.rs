//! Latency is that of the client, also while the server is stalled.

use std::time::{Duration, Instant};

use linerate_interop::{HttpLoad, HttpServer, Signal, Status, TIMEOUT, wait_for};

/// What the server is asked to stand still for.
const STALL: &str = "/0?stall=600";

/// A rate is offered for six seconds, in which the server stands still once. Those who were due then waited for the
/// rest of the stall: of `n` requests the `k`-th longest wait is the stall less `k / rate`. Their connections, 64 of
/// them, were asked only once, so the time from sending to the answer hardly shows it.
#[test]
fn timed_stall_is_part_of_the_latency_of_due_requests() {
    let server = HttpServer::start(&["--threads", "1", "--aids"]);
    let rate = rate_for(&server);
    let idle = Status::of(server.process.id());
    let rate_text = rate.to_string();
    let load = HttpLoad::start(
        &server.url("/1k"),
        &[
            "-c",
            "64",
            "--rate",
            &rate_text,
            "-d",
            "6s",
            "--warmup",
            "0",
            "--threads",
            "1",
        ],
    );
    let is_open = || (Status::of(server.process.id()).descriptors >= idle.descriptors + 64).then_some(());
    assert!(wait_for(TIMEOUT, is_open).is_some(), "no load: {load:?}");
    let stall = stall_in_a_second(&server);
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

/// Lets the server count to one and then stand still; how long that was for the one who asked for it.
fn stall_in_a_second(server: &HttpServer) -> Duration {
    let mut client = server.connect();
    assert_eq!(client.get("/0?delay=1000").status, 200);
    let began = Instant::now();
    assert_eq!(client.get(STALL).status, 200);
    began.elapsed()
}

#[track_caller]
fn expect_close(load: &HttpLoad, path: &str, truth_ms: f64, tolerance: f64) {
    let reported_ms = load.quantile_ms(path);
    let error = (reported_ms - truth_ms).abs() / truth_ms;
    assert!(
        error <= tolerance,
        "{path} is {reported_ms} ms, in truth {truth_ms} ms: {load:?}"
    );
}

/// A closed loop has no requests that were due: of its 16 connections each saw the stall once.
#[test]
fn a_closed_loop_does_not_invent_requests() {
    let server = HttpServer::start(&["--threads", "1", "--aids"]);
    let idle = Status::of(server.process.id());
    let load = HttpLoad::start(
        &server.url("/1k"),
        &["-c", "16", "-d", "4s", "--warmup", "0", "--threads", "1"],
    );
    let is_open = || (Status::of(server.process.id()).descriptors >= idle.descriptors + 16).then_some(());
    assert!(wait_for(TIMEOUT, is_open).is_some(), "no load: {load:?}");
    let stall = stall_in_a_second(&server);
    let load = HttpLoad::of(load.finish());
    load.expect_all_well();
    assert!(load.quantile_ms("latency/max") >= 0.97 * 600.0, "{stall:?}: {load:?}");
    assert!(load.quantile_ms("latency/p99") < 300.0, "{load:?}");
}

/// A generator that does not run while its window ends has still a connection for every request that was due.
#[test]
fn delayed_generator_sends_all_due_requests() {
    let server = HttpServer::start(&["--threads", "1", "--aids"]);
    let options = [
        "-c",
        "1000",
        "--rate",
        "200",
        "-d",
        "3s",
        "--warmup",
        "0",
        "--ramp",
        "max",
        "--threads",
        "1",
    ];
    let load = HttpLoad::start(&server.url("/0"), &options);
    let has_begun = || load.stderr().contains("1 of 3 s").then_some(());
    assert!(wait_for(TIMEOUT, has_begun).is_some(), "{load:?}");
    load.signal(Signal::Stop);
    let mut timer = server.connect();
    assert_eq!(timer.get("/0?delay=2500").status, 200);
    load.signal(Signal::Continue);
    let load = HttpLoad::of(load.finish());
    load.expect_all_well();
    assert_eq!(load.number("requests"), 600, "{load:?}");
    assert!(load.quantile_ms("latency/max") > 500.0, "{load:?}");
}
