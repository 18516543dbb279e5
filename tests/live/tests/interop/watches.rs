//! Goal: a watch keeps its grid and leaves one record per slot, whatever happens to its server and
//! to the path. Method: two hosts in namespaces; the server is restarted, later the path is cut
//! off, and the watch itself continues in a second process.
//!
//! `LINERATE_WATCH_RUNS` is the number of runs, one every five seconds; `make live SUITE=history`
//! sets it to 60.

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use linerate_interop::namespaces::{Net, SERVER, inside};
use linerate_interop::{FleetLab, HostLink, Process, Signal, ours, wait_until};
use serde_json::{Value, json};

/// Runs and their period.
fn size() -> (usize, Duration) {
    let runs = env::var("LINERATE_WATCH_RUNS")
        .ok()
        .map(|runs| runs.parse().expect("LINERATE_WATCH_RUNS is a number"));
    runs.map_or((15, Duration::from_secs(2)), |runs| {
        (runs, Duration::from_secs(5))
    })
}

/// A watch of this number of runs.
fn watch(net: &Net, folder: &Path, runs: usize) -> Process {
    let [store, alerts, metrics] = ["history.db", "alerts", "results.prom"]
        .map(|name| folder.join(name).display().to_string());
    let (period, count) = (format!("{}s", size().1.as_secs()), runs.to_string());
    let words = [
        "watch", "--name", "uplink", "--every", &period, "--count", &count, "--store", &store,
    ];
    let alert = format!("cat >> {alerts}");
    let outputs = [
        "--alert",
        &alert,
        "--metrics",
        &metrics,
        "--",
        "iperf3",
        "-c",
        SERVER,
        "-n",
        "64K",
    ];
    let mut command = inside(&net.a, ours().path(), &[&words[..], &outputs].concat());
    command.env("HOME", folder);

    Process::start(command)
}

/// Lines of runs, each of which begins with its time.
fn lines(watch: &Process) -> Vec<String> {
    watch
        .stderr()
        .lines()
        .filter(|line| line.starts_with("20") && line.contains("  "))
        .map(str::to_owned)
        .collect()
}

#[track_caller]
fn wait_for_runs(watch: &Process, what: &str, is_enough: impl Fn(&[String]) -> bool) {
    let (runs, period) = size();
    assert!(
        wait_until(period * (runs as u32 + 10), || is_enough(&lines(watch))),
        "{what}: {watch:?}"
    );
}

fn history(store: &Path, words: &[&str]) -> Value {
    let mut command = Command::new(ours().path());
    command.arg("history").args(words).arg("--store").arg(store);
    Process::start(command).finish().expect_clean().json()
}

#[test]
fn timed_a_watch_outlives_its_server_and_a_path_that_is_cut_off() {
    let Some(net) = Net::new() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let (runs, period) = size();
    let (until_restart, until_cut) = (runs / 3, runs * 2 / 3);
    let first = watch(&net, folder.path(), until_restart);
    let server = net.server();

    wait_for_runs(&first, "the first runs", |lines| {
        lines.len() == until_restart
    });
    first.finish().expect_code(0);
    server.signal(Signal::Terminate);

    let _ = server.finish();
    let _server = net.server();
    let second = watch(&net, folder.path(), runs - until_restart);
    wait_for_runs(&second, "runs of the new server", |lines| {
        lines.len() >= until_cut - until_restart
    });

    let before = lines(&second).len();
    net.cut();
    wait_for_runs(&second, "runs over a path that is cut off", |lines| {
        lines.len() >= before + 4
    });
    net.restore();
    wait_for_runs(&second, "the last runs", |lines| {
        lines.len() == runs - until_restart
    });

    let ended = second.finish();
    ended.expect_code(0);

    let store = folder.path().join("history.db");
    let rows = history(
        &store,
        &[
            "list", "--all", "--sort", "oldest", "--watch", "uplink", "--json",
        ],
    );
    let rows = rows.as_array().expect("a list");
    assert_eq!(rows.len(), runs, "{ended:?}");

    // Without an answer, or without an end.
    let failed: Vec<usize> = (0..runs)
        .filter(|at| rows[*at]["state"] != "complete")
        .collect();
    let is_in_a_row = failed.windows(2).all(|pair| pair[1] == pair[0] + 1);
    assert!(
        (3..=5).contains(&failed.len()) && is_in_a_row && failed[0] >= until_cut,
        "{failed:?} {ended:?}"
    );

    for (at, row) in rows.iter().enumerate() {
        assert_eq!(row["primary"].is_null(), failed.contains(&at), "{row}");
        assert_eq!(row["reason"].is_string(), failed.contains(&at), "{row}");
    }

    let record = history(
        &store,
        &[
            "show",
            rows[failed[0]]["run_id"].as_str().expect("an id"),
            "--json",
        ],
    );
    let measures = record["trials"]
        .as_array()
        .expect("trials")
        .iter()
        .map(|trial| trial["measures"].to_string());
    assert!(
        measures.clone().all(|measures| measures == "[]"),
        "{record}"
    );

    // The grid has no memory: each start is that of its slot, also after the second start of the
    // watch.
    let (period_ms, first_ms) = (
        period.as_millis() as i64,
        rows[0]["started_unix_ms"].as_i64().expect("a time"),
    );
    for (at, row) in rows.iter().enumerate() {
        let late_ms = row["started_unix_ms"].as_i64().expect("a time") - first_ms;
        let of_grid_ms = (late_ms + period_ms / 2).rem_euclid(period_ms) - period_ms / 2;
        // A failed run is made once more in the first half of its slot.
        let is_again = failed.contains(&at) || at > 0 && failed.contains(&(at - 1));
        let late_max_ms = if is_again {
            period_ms / 2
        } else {
            period_ms / 5
        };
        assert!(
            (-period_ms / 5..=late_max_ms).contains(&of_grid_ms),
            "run {at} is {of_grid_ms} ms beside the grid: {rows:#?}"
        );
    }

    let alerts = fs::read_to_string(folder.path().join("alerts")).expect("alerts");
    let alerts: Vec<Value> = alerts
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let states: Vec<_> = alerts.iter().map(|alert| alert["state"].as_str()).collect();
    assert_eq!(states, [Some("failing"), Some("ok")], "{alerts:?}");
    assert_eq!(
        alerts[0]["run"], rows[failed[2]]["run_id"],
        "the third failure in a row: {alerts:?}"
    );

    let metrics = fs::read_to_string(folder.path().join("results.prom")).expect("results");
    assert!(
        metrics.contains("linerate_test_success{")
            && metrics.contains("linerate_test_goodput_bytes_per_second{"),
        "{metrics}"
    );
}

/// Hosts of the fleet, and the one whose cable becomes slow.
const HOSTS: usize = 6;
const SLOW: usize = 3;
/// The round in which it becomes slow, the first one in which it is good again, and the last one.
const ROUNDS: [usize; 3] = [12, 20, 30];
/// A round of six hosts takes ten seconds.
const ROUND_PERIOD: &str = "12s";

/// A round of a mesh over good cables as a record.
fn earlier_round(number: usize) -> Value {
    let pairs = (0..HOSTS).flat_map(|a| (0..HOSTS).map(move |b| (a, b)));
    let trials = (0..)
        .zip(pairs.filter(|(a, b)| a != b))
        .map(|(no, (a, b)): (usize, _)| {
            // Rates differ from test to test.
            let bps = 199e6 + 0.2e6 * ((7 * no + 5 * number) % 11) as f64;
            json!({
                "no": no, "state": "complete", "started_ns": 0, "elapsed_ns": 1_000_000_000,
                "factors": { "source": format!("h{a}"), "sink": format!("h{b}"), "path": "lab" },
                "measures": [{ "name": "received_bps", "way": "forward", "value": bps }],
            })
        });
    json!({
        "schema": "linerate.run/1", "run_id": format!("01890a5d-ac96-774b-bcce-{number:012x}"),
        "kind": "fleet", "state": "complete", "started_at": format!("2026-01-31T12:{number:02}:00.000Z"),
        "started_unix_ms": 1_769_860_800_000_u64 + number as u64 * 60_000, "elapsed_ns": 10_000_000_000_u64,
        "origin": { "tool": "linerate", "argv": ["fleet"] },
        "path": { "key": "", "spec_key": "", "client": "control", "server": "lab" },
        "trials": trials.collect::<Vec<_>>(), "links": { "watch": "lab" },
        "body": { "fleet": { "plan": "0".repeat(32), "inputs": {} } },
    })
}

/// Of thirty rounds those before the cable becomes slow are records of earlier ones, and the last
/// ones are left out, unless `LINERATE_WATCH_RUNS` is set.
#[test]
#[ignore = "a watch of three minutes: make live SUITE=history"]
fn timed_a_cable_that_becomes_slow_is_one_alert_of_its_host_and_one_recovery() {
    let Some(lab) = FleetLab::new(&[HostLink::Gigabit; HOSTS]) else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let [store, alerts, metrics, page] = ["history.db", "alerts", "results.prom", "grid.html"]
        .map(|name| folder.path().join(name).display().to_string());
    let is_whole = env::var_os("LINERATE_WATCH_RUNS").is_some();
    let [slow, good, last] = ROUNDS;
    let (earlier, last) = if is_whole {
        (0, last)
    } else {
        (slow - 1, good + 4)
    };
    for number in 1..=earlier {
        let file = folder.path().join("round.json");
        fs::write(&file, earlier_round(number).to_string()).expect("written");
        let file = file.display().to_string();
        let import = lab.linerate(&["history", "import", &file, "--store", &store]);
        Process::start(import).finish().expect_code(0);
    }

    let (count, alert) = ((last - earlier).to_string(), format!("cat >> {alerts}"));
    let (inventory, config) = (lab.inventory(), lab.ssh_config());
    let watch = [
        "watch",
        "--name",
        "lab",
        "--every",
        ROUND_PERIOD,
        "--count",
        &count,
        "--store",
        &store,
        "--alert",
        &alert,
        "--metrics",
        &metrics,
        "--",
    ];
    let [inventory, config] = [&inventory, &config].map(|file| file.to_str().expect("a path"));
    let mesh = [
        "fleet",
        "run",
        "mesh",
        "-i",
        inventory,
        "--ssh-config",
        config,
        "-t",
        "1",
        "-O",
        "0",
        // What a busy machine carries differs; this rate it always carries.
        "--max-rate",
        "200M",
    ];
    let watch = Process::start(lab.linerate(&[&watch[..], &mesh].concat()));
    let wait_for_round = |round: usize| {
        let has_run = || lines(&watch).len() + earlier >= round;
        assert!(
            wait_until(Duration::from_secs(30 * 15), has_run),
            "{round}: {watch:?}"
        );
    };

    wait_for_round(slow - 1);
    lab.relink(SLOW, HostLink::Slow);
    wait_for_round(good - 1);
    let during = fs::read_to_string(&metrics).expect("metrics");
    lab.relink(SLOW, HostLink::Gigabit);
    wait_for_round(last);
    let ended = watch.finish();

    let alerts = fs::read_to_string(&alerts).unwrap_or_default();
    let alerts: Vec<Value> = alerts
        .lines()
        .map(|line| serde_json::from_str(line).expect("an alert"))
        .collect();
    let [failing, recovered] = alerts.as_slice() else {
        panic!("{alerts:?} {ended:?}")
    };
    assert_eq!(
        (&failing["state"], &failing["subject"], &failing["round"]),
        (&"failing".into(), &"host h3".into(), &slow.into()),
        "{failing}"
    );
    let reason = failing["reason"].as_str().expect("a reason");
    assert!(
        reason.starts_with("host h3: 5 of 5 pairs fell to "),
        "{reason}"
    );
    assert!(reason.ends_with(" Mbit/s at round 12 (FLT-01)"), "{reason}");
    assert_eq!(
        (&recovered["state"], &recovered["reason"]),
        (
            &"ok".into(),
            &format!("host h3: recovered at round {good}").into()
        )
    );
    ended.expect_code(0);

    // A time series for each cell, and the state of its last change.
    let pair = "client=\"h3\",server=\"h1\"";
    let of_pair: Vec<&str> = during.lines().filter(|line| line.contains(pair)).collect();
    let has = |name: &str, part: &str| {
        of_pair
            .iter()
            .any(|line| line.starts_with(name) && line.contains(part))
    };
    assert!(
        has("linerate_test_goodput_bytes_per_second", "forward"),
        "{during}"
    );
    assert!(has("linerate_change", "state=\"worse\"} 1"), "{during}");
    assert!(has("linerate_test_success", "} 1"), "{during}");

    let report = |words: &[&str]| {
        let words = [&["report", "--grid", "--store", &store], words].concat();
        Process::start(lab.linerate(&words))
            .finish()
            .expect_code(0)
            .stdout
            .clone()
    };
    let text = report(&[]);
    assert!(text.starts_with("host h3: recovered at round 20"), "{text}");
    report(&["-o", &page]);
    let page = fs::read_to_string(&page).expect("a page");
    assert_eq!(
        page.matches("cell framed").count(),
        2 * 10,
        "ten cells in two drawings"
    );
}
