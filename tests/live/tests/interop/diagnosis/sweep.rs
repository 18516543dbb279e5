//! Goal: `linerate sweep` runs what it says against any server, answers what the path is like, and
//! ends when it should. Method: sweeps on loopback and on veth pairs in namespaces of our own, with
//! as little time as an answer needs.

use std::path::Path;
use std::time::{Duration, Instant};

use linerate_interop::namespaces::{DEVICE, Net, SERVER, inside, run};
use linerate_interop::{
    Process, Server, Service, Signal, TIMEOUT, each_case, free_port, linerate, original, ours,
    wait_until, words,
};
use serde_json::Value;

fn sweep(port: u16, more: &str) -> Process {
    linerate(&format!("sweep 127.0.0.1 -p {port} {more}"))
}

/// The same between two hosts.
pub(super) fn sweep_in(net: &Net, more: &str) -> Process {
    let line = format!("sweep {SERVER} -p 5201 {more}");
    Process::start(inside(&net.a, ours().path(), &words(&line)))
}

pub(super) fn runs(record: &Value) -> &Vec<Value> {
    record["trials"].as_array().expect("trials")
}

/// Result of the sweep.
pub(super) fn found(record: &Value) -> &Value {
    &record["body"]["sweep"]
}

fn measure(trial: &Value, name: &str) -> Option<f64> {
    let measures = trial["measures"].as_array().expect("measures");
    measures.iter().find(|measure| measure["name"] == name)?["value"].as_f64()
}

/// Start of a trial in seconds.
fn start_s(trial: &Value) -> f64 {
    trial["started_ns"].as_f64().expect("a time") / 1e9
}

/// A sweep ends this long after its path is gone.
const PATH_GONE_MAX: Duration = Duration::from_secs(10);
const BUDGET_S: f64 = 10.0;
/// A run of one second with what it takes beside.
const RUN_S: f64 = 1.5;

#[test]
fn every_run_is_a_test_of_the_server_and_none_begins_too_late() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    each_case(&[ours(), original()], |program| {
        let server = Server::start(program, &["--forceflush"]);
        let file = |kind: &str| directory.path().join(format!("{}.{kind}", server.port));
        let (csv, html) = (file("csv"), file("html"));
        let plan = "--over streams=1..4 --time 1 -O 0 --repetitions 2 --budget 10s --seed 7 --json";
        let files = format!("--csv {} --html {}", csv.display(), html.display());
        let finished = sweep(server.port, &format!("{plan} {files}")).finish();
        finished.expect_code(0);

        let report = finished.record();
        let runs = runs(&report);

        let has_stats = |run: &Value| {
            [
                "received_bps",
                "cpu_client_cores",
                "cpu_server_cores",
                "rtt_mean_ns",
            ]
            .iter()
            .all(|name| measure(run, name).is_some_and(|figure| figure > 0.0))
        };
        assert!(runs.iter().all(has_stats), "{report:#}");
        assert!(runs.len() >= 4, "{report:#}");
        assert!(
            runs.iter()
                .all(|run| start_s(run) + RUN_S <= BUDGET_S + 0.1),
            "{report:#}"
        );

        let found = found(&report);
        assert!(
            found["provenance"]["client"]["kernel"].is_string(),
            "{report:#}"
        );
        assert_eq!(
            (&found["plan"]["seed"], &found["plan"]["time_s"]),
            (&7.into(), &1.into())
        );
        assert_eq!(found["cost"]["runs"], runs.len(), "{report:#}");

        let served = || {
            server
                .process
                .stdout()
                .matches("Accepted connection")
                .count()
                == runs.len()
        };
        assert!(
            wait_until(TIMEOUT, served),
            "{} runs: {:?}",
            runs.len(),
            server.process
        );

        let lines = std::fs::read_to_string(&csv).expect("a file");
        assert_eq!(lines.lines().count(), runs.len() + 1, "{lines}");
        assert!(
            std::fs::read_to_string(&html)
                .expect("a file")
                .contains("<svg")
        );

        // The cost comes first, then every run.
        assert!(
            finished.stderr.contains("about ") && finished.stderr.contains("[2/"),
            "{finished:?}"
        );
    });
}

#[test]
fn timed_on_a_full_link_one_stream_is_enough_and_nothing_falls() {
    let Some(net) = Net::new() else { return };
    let shaper = "root tbf rate 100mbit burst 64kb latency 20ms";
    run(&format!("tc -n {} qdisc add dev {DEVICE} {shaper}", net.a));

    let _server = net.server();
    let finished = sweep_in(
        &net,
        "--over streams=1..3 --time 1 -O 0 --budget 60s --json",
    )
    .finish_within(TIMEOUT * 3);
    finished.expect_code(0);

    let report = finished.record();
    assert_eq!(report["state"], "complete", "{report:#}");
    let found = found(&report);
    assert_eq!(
        found["provenance"]["server"]["program"], "linerate",
        "{report:#}"
    );

    let (answer, best) = (&found["answer"]["use"], &found["answer"]["use"]["leader"]);
    assert_eq!(
        (&best["setting"]["streams"], &found["plan"]["confidence"]),
        (&"1".into(), &0.95.into()),
        "{report:#}"
    );
    let rate = best["value"].as_f64().expect("a rate");
    assert!((80e6..100e6).contains(&rate), "{rate}");

    let factor = &found["factors"][0];
    let level = |end: &str| {
        &factor["levels"][factor["plateau"][end].as_u64().expect("a place") as usize]["label"]
    };
    assert_eq!(
        (level("start"), level("end")),
        (&"1".into(), &"3".into()),
        "{report:#}"
    );
    assert_eq!(factor["degradations"], serde_json::json!([]), "{report:#}");

    let end = |place: usize| answer["interval"][place].as_f64().expect("an interval");
    assert!(end(0) <= rate && rate <= end(1), "{answer}");
    let command = best["command"].as_str().expect("a command");

    // What is advised is a command that works.
    let mut words: Vec<&str> = command.split(' ').collect();
    assert_eq!(words.remove(0), "iperf3");
    let again = Process::start(inside(&net.a, original().path(), &words)).finish();
    again.expect_code(0);
}

#[test]
fn timed_a_window_below_the_bandwidth_delay_product_is_named() {
    let Some(net) = Net::new() else { return };
    let _server = net.server();
    let plan = "--over window=4K..16K --time 1 -O 0 --repetitions 2 --budget 15s --json";
    let finished = sweep_in(&net, plan).finish();
    finished.expect_code(0);

    let report = finished.record();
    let falls = found(&report)["factors"][0]["degradations"]
        .as_array()
        .expect("falls");
    let reasons: Vec<&Value> = falls
        .iter()
        .flat_map(|fall| fall["reasons"].as_array().expect("reasons"))
        .collect();
    let named = reasons
        .iter()
        .find(|reason| reason["reason"] == "window-below-bdp");
    let named = named.unwrap_or_else(|| panic!("{report:#}"));
    let number = |key: &str| {
        named["window"][key]
            .as_f64()
            .unwrap_or_else(|| panic!("{key}: {report:#}"))
    };
    assert!(number("window_bytes") < number("bdp_bytes"), "{named}");

    let product = number("stream_rate_bps") / 8.0 * number("rtt_us") / 1e6;
    assert!(
        (number("bdp_bytes") / product - 1.0).abs() < 1e-6,
        "{named}"
    );
}

#[test]
fn a_kept_sweep_is_what_was_printed_and_short_of_time_it_is_partial() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = folder.path().join("history.db").display().to_string();
    let server = Server::start(ours(), &[]);
    let plan = format!(
        "--over streams=1,2 --time 1 -O 0 --budget 3s -q --json --label site=lab --store {store} \
         --expect rx<1"
    );
    let printed = sweep(server.port, &plan).finish();
    printed.expect_code(5).expect_stderr("rx<1: ");

    let record = printed.record();
    assert_eq!(
        (&record["kind"], &record["state"]),
        (&"sweep".into(), &"partial".into()),
        "{record:#}"
    );
    assert_eq!(
        record["reason"], "the budget of 0:03 ended before all planned runs",
        "{record:#}"
    );

    let shown = linerate(&format!("history show last --json --store {store}")).finish();
    assert_eq!(shown.expect_clean().stdout, printed.stdout);
    let page = linerate(&format!("history show last --store {store}")).finish();
    page.expect_clean()
        .expect_stdout("Inconclusive")
        .expect_stdout("The budget of 0:03 ended");
}

#[test]
fn a_host_that_refuses_ends_it_at_once() {
    let port = free_port();
    let text = sweep(port, "-q").finish();
    text.expect_code(4);
    assert!(
        text.stderr
            .contains("Connection refused; is `linerate serve`")
            && text.stdout.is_empty(),
        "{text:?}"
    );

    let program = sweep(port, "-q --json").finish();
    program.expect_code(4);
    let report = program.record();
    assert!(
        found(&report)["answer"]["inconclusive"]["reason"].is_string(),
        "{report:#}"
    );
    assert_eq!(report["state"], "refused", "{report:#}");
    assert!(
        report["reason"]
            .as_str()
            .expect("a reason")
            .contains("refused")
    );
    assert_eq!(
        runs(&report).len(),
        1,
        "a closed port is not tried again: {report:#}"
    );

    let unwritable = sweep(port, "-q --html /proc/nosuch/sweep.html").finish();
    unwritable.expect_code(1);
    unwritable.expect_stderr("cannot write /proc/nosuch/sweep.html");
    assert!(
        !unwritable.stderr.contains("refused"),
        "no run is made: {unwritable:?}"
    );

    let wrong = sweep(port, "--over nosuch").finish();
    wrong.expect_code(2);
}

#[test]
fn interrupted_sweep_reports_completed_runs() {
    let server = Server::start(ours(), &[]);
    let running = sweep(server.port, "--over streams=1..2 --time 1 -O 0 --json");
    assert!(
        wait_until(TIMEOUT, || running.stderr().contains("[3/")),
        "{running:?}"
    );
    running.signal(Signal::Interrupt);

    let finished = running.finish();
    finished.expect_code(130);
    let report = finished.record();
    assert!(
        found(&report)["answer"]["inconclusive"].is_object(),
        "{report:#}"
    );
    assert_eq!(
        (&report["state"], &report["reason"]),
        (&"interrupted".into(), &"interrupted".into()),
        "{report:#}"
    );
    assert!(
        runs(&report).len() >= 2 && measure(&runs(&report)[0], "received_bps").is_some(),
        "{report:#}"
    );
}

#[test]
fn a_server_that_is_busy_is_waited_for() {
    let server = Server::start(original(), &["--forceflush"]);
    let other = server.client(original(), "127.0.0.1", &["-t", "3", "-b", "10M"]);
    server.process.wait_for_stdout("Accepted connection", 1);

    let finished = sweep(
        server.port,
        "--over streams=1,2 --time 1 -O 0 --repetitions 1 --budget 10s --json",
    )
    .finish();
    finished.expect_code(0);
    finished.expect_stderr("busy");
    assert!(
        runs(&finished.record())
            .iter()
            .all(|run| run["reason"].is_null()),
        "{finished:?}"
    );
    other.finish().expect_code(0);
}

#[test]
fn limit_of_the_server_bounds_the_ladder() {
    let service = Service::start(&["--limit", "server:streams=2"]);
    let plan = "--over streams=1..8 --time 1 -O 0 --repetitions 1 --budget 8s --json";
    let finished = sweep(service.port, plan).finish();
    finished.expect_code(0);

    let report = finished.record();
    let factor = &found(&report)["factors"][0];

    let labels = |list: &Value, member: &str| -> Vec<Value> {
        list.as_array()
            .expect("levels")
            .iter()
            .map(|level| level[member].clone())
            .collect()
    };
    assert_eq!(labels(&factor["levels"], "label"), ["1", "2"], "{report:#}");
    assert_eq!(labels(&factor["failed"], "level"), ["4", "8"], "{report:#}");
    assert!(
        factor["failed"][0]["error"]
            .as_str()
            .expect("a reason")
            .contains("streams"),
        "{report:#}"
    );
}

#[test]
fn timed_datagrams_behind_a_shaper_of_the_sender_are_back_pressure() {
    let Some(net) = Net::new() else { return };
    run(&format!(
        "tc -n {} qdisc add dev {DEVICE} root tbf rate 100mbit burst 64kb latency 100ms",
        net.a
    ));
    let _server = net.server();
    let plan =
        "-u -l 1400 --over rate=40M,160M --objective low-loss --time 1 -O 0 --budget 30s --json";
    let finished = sweep_in(&net, plan).finish_within(TIMEOUT * 2);
    finished.expect_code(0);

    let report = finished.record();
    let found = found(&report);
    assert_eq!(
        found["answer"]["use"]["leader"]["setting"]["rate"], "160M",
        "{report:#}"
    );
    assert_eq!(
        found["factors"][0]["limits"][0]["reason"], "sender-back-pressure",
        "{report:#}"
    );
}

#[test]
fn timed_a_path_that_is_gone_ends_it_with_the_runs_made() {
    let Some(net) = Net::new() else { return };
    let _server = net.server();
    let running = sweep_in(&net, "--over streams=1,2 --time 1 -O 0 -b 50M --json");
    assert!(
        wait_until(TIMEOUT, || running.stderr().contains("[3/")),
        "{running:?}"
    );
    net.cut();

    let cut = Instant::now();
    let finished = running.finish();
    finished.expect_code(1);
    assert!(cut.elapsed() < PATH_GONE_MAX, "{:?}", cut.elapsed());

    let report = finished.record();
    assert!(
        runs(&report).len() >= 2 && measure(&runs(&report)[0], "received_bps").is_some(),
        "{report:#}"
    );
    assert_eq!(report["state"], "partial", "{report:#}");
    assert!(
        report["reason"]
            .as_str()
            .expect("a reason")
            .contains("no longer reachable"),
        "{report:#}"
    );
}

#[test]
fn timed_a_path_that_is_gone_while_the_client_awaits_the_server_ends_it() {
    let Some(net) = Net::new() else { return };
    let server = net.server();
    server.signal(Signal::Stop);

    let running = sweep_in(&net, "--over streams=1,2 --time 1 -O 0 --json");
    // The kernel of the server has acknowledged what the client sent.
    let awaits = || {
        let sockets = inside(&net.a, Path::new("ss"), &["-Htn", "state", "established"])
            .output()
            .expect("ss");
        words(&String::from_utf8_lossy(&sockets.stdout)).starts_with(&["0", "0"])
    };
    assert!(wait_until(TIMEOUT, awaits), "{running:?}");
    net.cut();

    let cut = Instant::now();
    let finished = running.finish();
    finished.expect_code(4);
    assert!(cut.elapsed() < PATH_GONE_MAX, "{:?}", cut.elapsed());
    assert_eq!(runs(&finished.record()).len(), 2, "{finished:?}");
}
