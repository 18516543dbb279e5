//! Goal: an experiment over HTTP says what limits a server, keeps what it found whatever ends it,
//! and continues from there. Method: experiments of few and short cells against `linerate http
//! serve` and nginx on loopback. Loads that only have to run are slowed by the server, so that they
//! do not disturb those whose rates are judged; these run one after the other.

use std::fs;
use std::time::SystemTime;

use linerate_interop::{
    FEW_DESCRIPTORS, HttpLab, HttpServer, HttpStudy, Nginx, Process, Signal, TIMEOUT, linerate,
    wait_for,
};
use serde_json::{Value, json};

fn text(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn exists(path: &str) -> bool {
    fs::metadata(path).is_ok()
}

/// Ended with what it was to find, though perhaps disturbed too often.
#[track_caller]
fn expect_done(study: &HttpStudy) {
    assert!(matches!(study.finished.code(), Some(0 | 6)), "{study:?}");
    assert_eq!(study.json["is_complete"], true, "{study:?}");
}

const WHOLE: &str = "[phase0]\nstreams = [1]\nduration = \"1s\"\n\
                     [phase1]\npayloads = [\"1k\"]\nconnections = 8\n\
                     [phase2]\npayloads = [\"1k\"]\nconnections = [4, 8]\nrefine_knee = false\n\
                     [phase3.idle]\nsteps = [50, 100]\nhold = \"1s\"\n\
                     [phase3.lowrate]\nconnections = 20\nrate = 200\nduration = \"1s\"\n\
                     [phase3.active]\nconnections = 30\nduration = \"1s\"\n";

const WHOLE_RUNS: [&str; 6] = [
    "active-1k-c30-r1",
    "idle-0-c100-r1",
    "idle-0-c50-r1",
    "low_rate-1k-c20-r1",
    "matrix-1k-c4-r1",
    "matrix-1k-c8-r1",
];

#[test]
fn a_whole_experiment_is_run_kept_and_reported_in_every_form() {
    let lab = HttpLab::start(&[]);
    let plan = lab.plan("plan.toml", WHOLE);
    let directory = lab.path("kept");
    let store = lab.path("history.db");
    let study = HttpStudy::of(lab.run(&[
        "lab", &lab.url, &plan, "--out", &directory, "--json", "--store", &store,
    ]));
    expect_done(&study);
    check_whole(&study);
    is_kept(&store);

    let names: Vec<String> = lab.runs("kept").into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, WHOLE_RUNS, "{study:?}");

    for name in ["plan.toml", "env.json", "run.json"] {
        assert!(exists(&format!("{directory}/{name}")), "{name}");
    }

    assert_eq!(
        text(&format!("{directory}/run.json")),
        study.finished.stdout
    );

    // What is complete is reported again without another run.
    let html = lab.path("report.html");
    let again = lab.run(&["lab", "--resume", &directory, "--html", &html, "-v"]);
    assert_eq!(again.code(), study.finished.code(), "{again:?}");
    assert!(
        !again.stderr.contains(" r1: "),
        "a run was repeated: {again:?}"
    );

    for table in [
        "TCP without HTTP",
        "payloads by themselves",
        "payload MB/s",
        "idle connections",
        "many connections in use",
        "limits: ",
        "limits of the cells",
        "Checks before the runs",
        "environment",
    ] {
        let has = |text: &str| {
            text.lines()
                .any(|line| line.trim_start_matches('#').trim().starts_with(table))
        };
        assert!(has(&again.stdout), "no {table}: {again:?}");
        assert!(text(&html).contains(table), "{table}");
    }

    let page = text(&html);
    assert!(
        page.contains("<figcaption>Payload MB/s") && page.contains("latency by quantile"),
        "a heat map and a curve"
    );
    assert!(
        page.contains("<svg") && !page.contains("<script"),
        "a page without programs"
    );
}

/// The record has every run once, as a trial, and its page has the tables of the experiment.
fn is_kept(store: &str) {
    let shown = linerate(&format!("history show last --json --store {store}")).finish();
    let record = shown.record();
    assert_eq!(
        (&record["kind"], &record["state"]),
        (&"http-lab".into(), &"complete".into())
    );

    let trials = record["trials"].as_array().expect("trials");
    assert_eq!(trials.len(), WHOLE_RUNS.len(), "{shown:?}");
    let cells = record["body"]["http-lab"]["cells"]
        .as_array()
        .expect("cells");
    assert!(
        !cells.is_empty() && cells.iter().all(|cell| cell["runs"] == json!([])),
        "{shown:?}"
    );

    let page = linerate(&format!("history show last --store {store}")).finish();
    page.expect_clean()
        .expect_stdout("payload MB/s ")
        .expect_stdout("100 idle connections held");
}

/// Statistics of both hosts that are stored for every run.
fn check_sides(run: &Value) {
    for side in [&run["client"], &run["server"]] {
        let mut seconds = side["seconds"].as_array().into_iter().flatten();
        let is_busy = |second: &Value| second["busiest_cpu_busy"].as_f64() > Some(0.0);
        assert!(seconds.any(is_busy), "every second of it: {side:#}");
        assert!(
            side["sockets_by_state"]["established"].as_u64() > Some(0),
            "{side:#}"
        );
        assert!(
            side["rss_high_water_bytes"].as_u64() >= side["rss_bytes"].as_u64(),
            "{side:#}"
        );
        assert!(side["sockets_allocated"].as_u64() > Some(0), "{side:#}");
        assert!(
            side["busiest_cpu_own"]
                .as_f64()
                .is_some_and(|own| own <= 1.0),
            "{side:#}"
        );

        // Where a control group cannot be read, that is said.
        for (figure, name) in [
            ("group_memory", "memory of the control group"),
            ("group_tasks", "tasks of the control group"),
        ] {
            let is_reported = side["missing"].to_string().contains(name);
            assert!(
                is_reported != (side[figure]["peak"].as_u64() > Some(0)),
                "{figure}: {side:#}"
            );
        }
    }
}

fn check_whole(study: &HttpStudy) {
    let baseline = study.list("baseline");
    assert_eq!(baseline.len(), 2, "both directions: {study:?}");
    let has_goodput = |test: &Value| test["goodput_bps"].as_f64() > Some(0.0);
    assert!(baseline.iter().all(has_goodput), "{baseline:?}");

    for (phase, payload_bytes, connections) in [
        ("payload", 1024, 8),
        ("matrix", 1024, 4),
        ("matrix", 1024, 8),
        ("low_rate", 1024, 20),
        ("active", 1024, 30),
    ] {
        let cell = study.cell(phase, payload_bytes, connections);
        let median = &cell["median"];
        assert!(median["ok_per_s"].as_f64() > Some(0.0), "{study:?}");
        assert_eq!(median["error_share"], 0.0, "{study:?}");
        assert!(
            median["server_cpus"].as_f64() > Some(0.0),
            "both ends are watched: {study:?}"
        );
        cell["runs"]
            .as_array()
            .into_iter()
            .flatten()
            .for_each(check_sides);
    }

    assert_eq!(study.list("cells").len(), 5, "{study:?}");
    assert_eq!(study.list("rows").len(), 1, "{study:?}");
    let steps = study.json["idle"]["steps"].as_array().expect("steps");
    let open: Vec<&Value> = steps.iter().map(|step| &step["open"]).collect();
    assert_eq!(open, [50, 100], "{study:?}");

    let ids: Vec<&str> = study
        .list("checks")
        .iter()
        .filter_map(|check| check["id"].as_str())
        .collect();
    for id in ["nofile.hard", "backlog", "same_host", "clock"] {
        assert!(ids.contains(&id), "no {id} in {ids:?}");
    }
}

const SLOW_RUNS: &str =
    "[phase2]\npayloads = [\"1k\"]\nconnections = [2, 4]\nrefine_knee = false\n";
/// The one path that every cell requests.
const SLOW_PATH: &str = "/b/1k";

/// Two repeats of two cells.
fn slow_plan(lab: &HttpLab) -> String {
    let path = lab.plan("slow.toml", SLOW_RUNS);
    fs::write(&path, text(&path).replace("repeats = 1", "repeats = 2")).expect("a file");
    path
}

const SLOW_NAMES: [&str; 4] = [
    "matrix-1k-c2-r1",
    "matrix-1k-c2-r2",
    "matrix-1k-c4-r1",
    "matrix-1k-c4-r2",
];

/// Waits until this number of runs is kept.
fn wait_for_runs(lab: &HttpLab, directory: &str, count: usize, client: &Process) {
    let kept = wait_for(TIMEOUT, || {
        (lab.runs(directory).len() >= count).then_some(())
    });
    assert!(kept.is_some(), "{count} runs: {client:?}");
}

fn modified(path: &str) -> SystemTime {
    let metadata = fs::metadata(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    metadata.modified().expect("a file has a time")
}

#[test]
fn killed_experiment_resumes() {
    let lab = HttpLab::start(&[]);
    let (plan, directory) = (slow_plan(&lab), lab.path("killed"));
    let url = format!("{}{SLOW_PATH}", lab.url);
    let client = lab.client(&["lab", "--phases", "2", &url, &plan, "--out", &directory]);
    wait_for_runs(&lab, "killed", 2, &client);
    client.signal(Signal::Kill);
    assert_eq!(client.finish().code(), None, "killed");

    let cells = format!("{directory}/cells");
    let finished = lab.runs("killed");
    assert!(
        finished.len() < SLOW_NAMES.len(),
        "it was killed too late: {finished:?}"
    );

    let before: Vec<(String, String, SystemTime)> = finished
        .iter()
        .map(|(name, _)| format!("{cells}/{name}.json"))
        .map(|path| (path.clone(), text(&path), modified(&path)))
        .collect();
    // What the end of a program leaves of a file that was being written.
    let missing = SLOW_NAMES
        .iter()
        .find(|name| finished.iter().all(|(kept, _)| kept != *name));
    fs::write(
        format!("{cells}/{}.part", missing.expect("a run is left")),
        "{\"key\"",
    )
    .expect("a file");

    refuses_what_it_cannot_continue(&lab, &url, &directory);

    let study = HttpStudy::of(lab.run(&["lab", "--phases", "2", "--resume", &directory, "--json"]));
    expect_done(&study);

    for (path, content, time) in before {
        assert_eq!(
            (text(&path), modified(&path)),
            (content, time),
            "{path} was written again"
        );
    }

    let names: Vec<String> = lab
        .runs("killed")
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(names, SLOW_NAMES, "{study:?}");

    for connections in [2, 4] {
        let runs = study.cell("matrix", 1024, connections)["runs"]
            .as_array()
            .expect("runs");
        assert_eq!(runs.len(), 2, "{study:?}");
        assert!(runs.iter().all(|run| run["state"] == "done"), "{study:?}");
    }
}

/// Another plan, and a file that is none of its own.
fn refuses_what_it_cannot_continue(lab: &HttpLab, url: &str, directory: &str) {
    let other = lab.plan("other.toml", &SLOW_RUNS.replace("[2, 4]", "[2, 8]"));
    let refused = lab.run(&["lab", "--phases", "2", url, &other, "--resume", directory]);
    refused.expect_code(2).expect_stderr("another plan");

    let spoilt = format!("{directory}/cells/matrix-1k-c2-r9.json");
    fs::write(&spoilt, "{\"key\": 1").expect("a file");
    let refused = lab.run(&["lab", "--phases", "2", "--resume", directory]);
    refused.expect_code(2).expect_stderr("matrix-1k-c2-r9.json");
    fs::remove_file(&spoilt).expect("it is there");
}

#[test]
fn an_interruption_leaves_a_report_and_an_aborted_run_that_is_made_again() {
    let lab = HttpLab::start(&[]);
    let (plan, directory) = (slow_plan(&lab), lab.path("interrupted"));
    let url = format!("{}{SLOW_PATH}", lab.url);
    let client = lab.client(&[
        "lab",
        "--phases",
        "2",
        &url,
        &plan,
        "--out",
        &directory,
        "--json-stream",
    ]);
    wait_for_runs(&lab, "interrupted", 1, &client);

    // The next one runs when its first second is reported.
    client.wait_for_stdout("\n", client.stdout().lines().count() + 1);
    client.signal(Signal::Interrupt);
    let finished = client.finish();
    finished.expect_code(130).expect_stdout("linerate.http/1");

    let partial: Value =
        serde_json::from_str(&text(&format!("{directory}/run.json"))).expect("JSON");
    assert_eq!(partial["is_complete"], false, "{finished:?}");
    let runs = lab.runs("interrupted");
    let aborted: Vec<&String> = runs
        .iter()
        .filter(|(_, run)| run["state"] == "aborted")
        .map(|(name, _)| name)
        .collect();
    assert_eq!(aborted.len(), 1, "{runs:?}");
    assert!(runs.len() < SLOW_NAMES.len(), "nothing is begun after it");

    let study = HttpStudy::of(lab.run(&["lab", "--phases", "2", "--resume", &directory, "--json"]));
    expect_done(&study);
    let runs = lab.runs("interrupted");
    assert_eq!(runs.len(), SLOW_NAMES.len(), "{study:?}");
    assert!(
        runs.iter().all(|(_, run)| run["state"] == "done"),
        "{runs:?}"
    );
}

#[test]
fn an_experiment_survives_the_end_of_the_control_channel() {
    let server = HttpServer::start(&[]);
    let lab = HttpLab::beside(server.address, server.url(SLOW_PATH), &[]);
    let (plan, directory) = (slow_plan(&lab), lab.path("lost"));
    let client = lab.client(&[
        "lab", "--phases", "2", &lab.url, &plan, "--out", &directory, "--json",
    ]);
    wait_for_runs(&lab, "lost", 1, &client);
    lab.server.signal(Signal::Kill);

    let study = HttpStudy::of(client.finish_within(TIMEOUT * 2));
    assert_eq!(study.json["is_complete"], true, "{study:?}");
    let runs = lab.runs("lost");
    assert_eq!(runs.len(), SLOW_NAMES.len(), "{study:?}");

    let is_lost = |run: &Value| {
        run["flags"]
            .as_array()
            .is_some_and(|flags| flags.contains(&json!("control-lost")))
    };
    let lost: Vec<&Value> = runs
        .iter()
        .map(|(_, run)| run)
        .filter(|run| is_lost(run))
        .collect();
    assert!(!lost.is_empty(), "{study:?}");

    for run in lost {
        assert_eq!(run["server"], Value::Null, "{run:#}");
        assert!(run["load"]["ok"].as_u64() > Some(0), "{run:#}");
    }
}

#[test]
fn server_that_dies_ends_the_experiment_and_resume_makes_the_missing_runs() {
    let lab = HttpLab::start(&[]);
    let (plan, directory) = (slow_plan(&lab), lab.path("gone"));
    let url = format!("{}{SLOW_PATH}", lab.url);
    let client = lab.client(&[
        "lab", "--phases", "2", &url, &plan, "--out", &directory, "--json",
    ]);
    wait_for_runs(&lab, "gone", 1, &client);
    lab.server.signal(Signal::Kill);

    let study = HttpStudy::of(client.finish_within(TIMEOUT * 2));
    study
        .finished
        .expect_code(4)
        .expect_stdout("the server is gone");
    assert_eq!(study.json["is_complete"], false, "{study:?}");

    let runs = lab.runs("gone");
    assert!(
        runs.len() < SLOW_NAMES.len(),
        "nothing is begun after it: {study:?}"
    );
    assert!(
        runs.iter().any(|(_, run)| run["state"] == "aborted"),
        "{study:?}"
    );

    let address = lab.url.trim_start_matches("http://");
    let again = linerate(&format!("http serve --no-control --bind {address}"));
    again.wait_for_stdout("Listening on", 1);

    let study = HttpStudy::of(
        lab.client_without(&[
            "lab", "--phases", "2", "--resume", &directory, "--json", "--force",
        ])
        .finish(),
    );
    expect_done(&study);
    let runs = lab.runs("gone");
    assert_eq!(runs.len(), SLOW_NAMES.len(), "{study:?}");
    assert!(
        runs.iter().all(|(_, run)| run["state"] == "done"),
        "{runs:?}"
    );
}

/// Result of `check` for the descriptors of this host.
#[track_caller]
fn descriptors_predicted(lab: &HttpLab, plan: &str, code: i32) -> Value {
    let check = lab.run(&["lab", "--check", &lab.url, plan, "--phases", "2", "--json"]);
    check.expect_code(code);
    let checks = check.json();
    let mut checks = checks.as_array().into_iter().flatten();
    let hard = checks.find(|check| check["id"] == "nofile.hard" && check["side"] == "client");
    hard.unwrap_or_else(|| panic!("not checked: {check:?}"))
        .clone()
}

#[test]
fn missing_descriptors_are_predicted_and_spread_over_processes() {
    let starter = ["sh", "-c", FEW_DESCRIPTORS, "sh"];
    let lab = HttpLab::start_by(&starter, &[], "127.0.0.1", &[]);
    let plan = lab.plan_of_one_cell("many.toml", "8, 1000");
    let hard = descriptors_predicted(&lab, &plan, 0);
    assert_eq!(
        (&hard["status"], &hard["have"]),
        (&json!("info"), &json!("256")),
        "{hard:#}"
    );
    assert_eq!(hard["cells"], json!(["matrix-1k-c1000"]), "{hard:#}");

    let advice = hard["advice"].as_str().unwrap_or_default();
    let predicted =
        advice.strip_suffix(" worker processes will be used, each with a limit of its own");
    let predicted: u64 = predicted
        .and_then(|count| count.parse().ok())
        .unwrap_or_else(|| panic!("{hard:#}"));

    let url = format!("{}{SLOW_PATH}", lab.url);
    let study = lab.study_of(&["lab", "--phases", "2"], &url, &plan);

    for (connections, processes) in [(8, 1), (1000, 1 + predicted)] {
        let run = &study.cell("matrix", 1024, connections)["runs"][0];
        assert_eq!(run["state"], "done", "{study:?}");
        let found = &run["load"]["connections"];
        let found = (&found["opened"], &found["open_at_end"], &found["dropped"]);
        assert_eq!(
            found,
            (&json!(connections), &json!(connections), &json!(0)),
            "{study:?}"
        );

        let client = &run["client"];
        assert_eq!(client["processes"], json!(processes), "{client:#}");
        // What leads the others hardly does anything itself.
        let each_ns = client["process_cpu_ns"].as_u64().unwrap_or(0)
            / run["load"]["ok"].as_u64().unwrap_or(1).max(1);
        assert!(each_ns > 500, "{each_ns} ns for a request: {client:#}");
    }
}

#[test]
fn cells_beyond_any_descriptor_limit_are_skipped() {
    let starter = ["sh", "-c", FEW_DESCRIPTORS, "sh"];
    let lab = HttpLab::start_by(&starter, &[], "127.0.0.1", &[]);
    let plan = lab.plan_of_one_cell("more.toml", "8, 15000");
    let hard = descriptors_predicted(&lab, &plan, 3);
    assert_eq!(
        (&hard["status"], &hard["have"]),
        (&json!("fail"), &json!("256")),
        "{hard:#}"
    );
    assert_eq!(hard["cells"], json!(["matrix-1k-c15000"]), "{hard:#}");

    let advice = hard["advice"].as_str().unwrap_or_default();
    assert!(advice.contains("`prlimit --nofile="), "{hard:#}");
    let shown = lab.run(&["lab", "--check", &lab.url, &plan, "--phases", "2"]);
    shown
        .expect_code(3)
        .expect_stdout("FAIL")
        .expect_stdout("`prlimit --nofile=");

    let url = format!("{}{SLOW_PATH}", lab.url);
    for (words, why) in [
        (&["lab", "--phases", "2"][..], "check"),
        (
            &["lab", "--phases", "2", "--force"],
            "processes of 256 descriptors",
        ),
    ] {
        let study = lab.study_of(words, &url, &plan);
        let left_out = &study.cell("matrix", 1024, 15_000)["runs"][0];
        assert_eq!(left_out["state"], "skipped", "{study:?}");

        let reason = left_out["reason"].as_str().unwrap_or_default();
        assert!(reason.contains(why), "{reason}: {study:?}");
        study.finished.expect_stderr("c15000 r1: skipped");
        assert_eq!(
            study.cell("matrix", 1024, 8)["runs"][0]["state"],
            "done",
            "{study:?}"
        );
    }
}

#[test]
fn timed_ten_thousand_connections_are_held_at_little_cost() {
    let lab = HttpLab::start(&[]);
    let plan = "[phase3.idle]\nsteps = [1000, 5000, 10000]\nhold = \"2s\"\n\
                [phase3.lowrate]\nconnections = 10000\nrate = 1000\nduration = \
                \"3s\"\n[phase3.active]\nconnections = 0\n";
    let plan = lab.plan("c10k.toml", plan);
    let study = lab.study(&["lab", "--phases", "3"], &plan);
    let idle = &study.json["idle"];
    for (step, wanted) in idle["steps"]
        .as_array()
        .expect("steps")
        .iter()
        .zip([1000, 5000, 10_000])
    {
        let found = (&step["wanted"], &step["open"], &step["dropped"]);
        assert_eq!(
            found,
            (&json!(wanted), &json!(wanted), &json!(0)),
            "{study:?}"
        );
    }

    for (end, bytes_max) in [("server_user", 256.0), ("client_user", 512.0)] {
        let bytes = idle[end]["bytes_per_connection"].as_f64();
        assert!(
            bytes.is_some_and(|bytes| bytes <= bytes_max),
            "{end}: {study:?}"
        );
    }

    let load = &study.cell("low_rate", 1024, 10_000)["runs"][0]["load"];
    let connections = &load["connections"];
    assert_eq!(connections["open_at_end"], 10_000, "{study:?}");
    assert_eq!(load["ok"], load["requests"], "{study:?}");
    assert!(
        load["errors"]
            .as_object()
            .is_some_and(serde_json::Map::is_empty),
        "{study:?}"
    );

    // Poisson arrivals of three thousand vary by 55.
    assert!(
        load["ok"]
            .as_u64()
            .is_some_and(|ok| (2700..3300).contains(&ok)),
        "{study:?}"
    );
}

#[test]
fn plan_is_shown_written_and_read() {
    let lab = HttpLab::start(&[]);
    let plan = lab.plan("plan.toml", WHOLE);
    let listing = lab.run(&["lab", &lab.url, &plan, "--plan-only"]);
    listing
        .expect_code(0)
        .expect_stdout("1k")
        .expect_stdout("c30");

    let listing = lab.run(&["lab", &lab.url, &plan, "--plan-only", "--json"]);
    let listing = listing.expect_code(0).json();
    assert_eq!(
        listing["cells"].as_array().map(Vec::len),
        Some(WHOLE_RUNS.len()),
        "{listing:#}"
    );

    let written = lab.run(&["lab", &plan, "--print-plan"]);
    let again = lab.path("again.toml");
    fs::write(&again, &written.expect_code(0).stdout).expect("a file");
    assert_eq!(
        lab.run(&["lab", &again, "--print-plan"])
            .expect_clean()
            .stdout,
        written.stdout
    );
    written.expect_stdout("steps = [50, 100]");

    for (line, wrong) in [(8, "[phase9]\n"), (9, "[phase2]\nconections = [4]\n")] {
        let wrong = lab.plan("wrong.toml", wrong);
        let refused = lab.run(&["lab", &lab.url, &wrong]);
        refused
            .expect_code(2)
            .expect_stderr(&format!("line {line}"));
    }
}

#[test]
fn more_connections_than_a_foreign_server_bears_are_refused() {
    let nginx = Nginx::start("", "");
    let lab = HttpLab::start(&["--no-control"]);
    let url = nginx.url("/1k");
    let plan = lab.plan_of_one_cell("many.toml", "1025");
    let refused = lab.run(&["lab", "--phases", "2", &url, &plan]);
    refused
        .expect_code(2)
        .expect_stderr("1025")
        .expect_stderr("--allow-large");
}
