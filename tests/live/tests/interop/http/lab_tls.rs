//! Goal: an experiment inside TLS and in HTTP/2 is one like any other: kept, gone on with, watched
//! at both ends and refused where it cannot be; what only plaintext HTTP/1.1 shows is absent with
//! its reason. Method: experiments of few and short cells against nginx on loopback, watched by an
//! agent.

use std::fs;

use linerate_interop::{FEW_DESCRIPTORS, HttpLab, HttpStudy, Nginx, TIMEOUT, each_case};
use serde_json::{Value, json};

/// Cells of the matrix with 1 KiB on two connections, each run once.
const MATRIX: &str = "[phase2]\npayloads = [\"1k\"]\nconnections = [2]\nrefine_knee = false\n";

const IDLE: &str = "[phase3.idle]\nsteps = [20, 40]\nhold = \"1s\"\n\
                    [phase3.lowrate]\nconnections = 0\n[phase3.active]\nconnections = 0\n";

/// The runs of a cell, which answered, were watched at the server and spoke this: versions of HTTP
/// and of TLS.
#[track_caller]
fn check_runs(study: &HttpStudy, connections: u64, http: &str, tls: Option<&str>) {
    assert!(matches!(study.finished.code(), Some(0 | 6)), "{study:?}");
    let cell = study.cell("matrix", 1024, connections);
    for run in cell["runs"].as_array().expect("runs") {
        assert_eq!(run["state"], "done", "{study:?}");
        assert!(run["load"]["ok"].as_u64() > Some(0), "{study:?}");
        let protocol = &run["load"]["protocol"];
        assert_eq!(
            (
                protocol["http"].as_str(),
                protocol["tls"]["version"].as_str()
            ),
            (Some(http), tls)
        );
        assert_eq!(study.json["protocol"], json!([protocol]), "{study:?}");
    }

    let missing = [&cell["ceiling_per_s"], &cell["median"]["of_ceiling"]];
    assert_eq!(
        missing,
        [&Value::Null, &Value::Null],
        "absent, and not zero: {study:?}"
    );
    let why = study.json["ceiling_missing"].as_str().unwrap_or_default();
    assert!(why.contains("TLS and HTTP/2"), "{why}: {study:?}");
}

#[track_caller]
fn check_server_side(study: &HttpStudy, connections: u64) {
    let cell = study.cell("matrix", 1024, connections);
    assert!(
        cell["runs"][0]["server"]["process_cpu_ns"].as_u64() > Some(0),
        "{study:?}"
    );
    assert!(
        cell["median"]["server_cpus"].as_f64() > Some(0.0),
        "{study:?}"
    );
}

#[test]
fn experiment_over_tls_is_stored_reported_and_resumed() {
    let lab = HttpLab::beside_nginx("ssl http2", &[]);
    let (plan, directory, pin) = (
        lab.plan("plan.toml", &format!("{MATRIX}{IDLE}")),
        lab.path("kept"),
        lab.pin(),
    );

    let words = [
        "lab",
        "--phases",
        "2-3",
        &lab.url,
        &plan,
        "--pin-sha256",
        &pin,
        "--out",
        &directory,
        "--json",
    ];
    let study = HttpStudy::of(lab.run(&words));
    check_runs(&study, 2, "1.1", Some("1.3"));
    check_server_side(&study, 2);

    let steps = study.json["idle"]["steps"].as_array().expect("steps");
    let open: Vec<&Value> = steps.iter().map(|step| &step["open"]).collect();
    assert_eq!(open, [20, 40], "{study:?}");

    // All that is needed stands in the directory; nothing is run again.
    let page = lab.path("report.html");
    let again = lab.run(&[
        "lab", "--phases", "2-3", "--resume", &directory, "--html", &page, "-v",
    ]);
    assert_eq!(again.code(), study.finished.code(), "{again:?}");
    assert!(
        !again.stderr.contains(" r1: "),
        "a run was repeated: {again:?}"
    );

    let page = fs::read_to_string(page).expect("a report");
    for line in [
        "protocol: HTTP/1.1 over TLS 1.3 (TLS13_",
        "that the network allows: n/a, what TLS",
    ] {
        assert!(
            again.stdout_unwrapped().contains(line) && page.contains(line),
            "{line}: {again:?}"
        );
    }

    refuses_to_go_on_otherwise(&lab, &directory);
}

/// With another protocol, other trust, or where the server agrees to something else than before.
#[track_caller]
fn refuses_to_go_on_otherwise(lab: &HttpLab, directory: &str) {
    for words in [&["--h2"][..], &["--h2", "--streams", "4"], &["--insecure"]] {
        let refused = lab.run(&[&["lab", "--phases", "2", "--resume", directory], words].concat());
        refused.expect_code(2).expect_stderr("another plan");
    }

    let beginning = format!("{directory}/env.json");
    let text = fs::read_to_string(&beginning).expect("a file");
    let mut before: Value = serde_json::from_str(&text).expect("JSON");
    before["protocol"]["tls"]["version"] = json!("1.2");
    fs::write(&beginning, before.to_string()).expect("a file");

    let refused = lab.run(&["lab", "--phases", "2", "--resume", directory]);
    refused
        .expect_code(2)
        .expect_stderr("protocol: HTTP/1.1 over TLS 1.2")
        .expect_stderr("now HTTP/1.1 over TLS 1.3");
}

/// Little's law: answers per second times their latency are the requests in flight.
#[track_caller]
fn check_in_flight(study: &HttpStudy, expected: u32) {
    let median = &study.cell("matrix", 1024, 2)["median"];
    let figure = |name: &str| median[name].as_f64().unwrap_or_default();
    let share = figure("ok_per_s") * figure("mean_ns") / 1e9 / f64::from(expected);
    assert!(
        (0.5..1.5).contains(&share),
        "{share} of {expected}: {study:?}"
    );
}

#[test]
fn protocol_of_the_plan_is_used_and_the_control_channel_is_found() {
    let short =
        "[defaults]\nwarmup = \"200ms\"\nduration = \"1s\"\ncooldown = \"0s\"\nrepeats = 1\n";
    let rows = [
        ("http2", "version = \"2\"\nstreams = 4\n", ("2", None), 4),
        (
            "ssl http2",
            "version = \"2\"\ninsecure = true\n",
            ("2", Some("1.3")),
            1,
        ),
    ];
    each_case(&rows, |(words, protocol, (http, tls), streams)| {
        let lab = HttpLab::beside_nginx(words, &[]);
        let [plan, runs, token] = ["plan.toml", "runs", "token"].map(|name| lab.path(name));
        fs::write(&plan, format!("[protocol]\n{protocol}{short}{MATRIX}")).expect("a file");

        let words = [
            "lab",
            "--phases",
            "2",
            &lab.url,
            &plan,
            "--out",
            &runs,
            "--json",
            "--token-file",
            &token,
        ];
        let study = HttpStudy::of(lab.client_without(&words).finish_within(TIMEOUT));
        check_runs(&study, 2, http, *tls);
        check_server_side(&study, 2);
        check_in_flight(&study, 2 * streams);
    });
}

#[test]
fn foreign_server_has_no_stats() {
    let nginx = Nginx::start("ssl http2", "ssl_protocols TLSv1.2;");
    let (cert, url) = (nginx.certificate().path("cert.pem"), nginx.url("/1k"));
    let lab = HttpLab::start(&["--no-control"]);
    let plan = lab.plan_of_one_cell("foreign.toml", "2");
    let study = lab.study_of(
        &["lab", "--phases", "2", "--h2", "--cacert", &cert],
        &url,
        &plan,
    );
    check_runs(&study, 2, "2", Some("1.2"));

    let run = &study.cell("matrix", 1024, 2)["runs"][0];
    assert_eq!(run["server"], Value::Null, "{study:?}");
    assert!(
        run["load"]["ok"]
            .as_u64()
            .is_some_and(|ok| nginx.logged() > ok),
        "{study:?}"
    );
}

#[test]
fn impossible_plan_is_rejected_with_reason() {
    let lab = HttpLab::beside_nginx("ssl http2", &[]);
    let plan = lab.plan_of_one_cell("plan.toml", "2");
    let plain = lab.url.replace("https://", "http://");
    let (tls, pin) = (lab.url.as_str(), "ab".repeat(32));
    let rows: [(&str, &[&str], i32, &str); 6] = [
        (
            tls,
            &["--pin-sha256", &pin],
            4,
            "cannot be trusted: invalid peer certificate: its SHA-256 is another one",
        ),
        (tls, &[], 4, "CaUsedAsEndEntity; --cacert FILE"),
        (
            tls,
            &["--cacert", "/nowhere.pem"],
            2,
            "--cacert /nowhere.pem: ",
        ),
        (tls, &["--pin-sha256", "abc"], 2, "64 hexadecimal digits"),
        (tls, &["-k", "--streams", "4"], 2, "--streams is for HTTP/2"),
        (&plain, &["-k"], 2, "only https has"),
    ];
    each_case(&rows, |(url, words, code, text)| {
        for part in [&["--check"][..], &["--phases", "2"]] {
            let refused = lab.run(&[&["lab", *url, &plan], part, *words].concat());
            refused.expect_code(*code).expect_stderr(text);
        }
    });

    // The one that was printed is named beside the one that was wanted.
    let refused = lab.run(&["lab", "--check", tls, &plan, "--pin-sha256", &pin]);
    refused.expect_stderr(&lab.pin());
}

#[test]
fn cells_beyond_the_connection_limit_are_predicted_and_skipped() {
    let lab = HttpLab::beside_nginx("ssl http2", &[]);
    let plan = lab.plan_of_one_cell("plan.toml", "2, 10001");
    let check = lab.run(&[
        "lab", "--check", &lab.url, &plan, "-k", "--phases", "2", "--json",
    ]);
    check.expect_code(3);

    let checks = check.json();
    let mut checks = checks.as_array().into_iter().flatten();
    let found = checks
        .find(|check| check["id"] == "protocol")
        .expect("checked");
    assert_eq!(found["status"], "fail", "{found:#}");
    assert_eq!(found["cells"], json!(["matrix-1k-c10001"]), "{found:#}");

    let advice = found["advice"].to_string();
    assert!(
        advice.contains("fewer connections") && advice.contains("plain text"),
        "{found:#}"
    );

    for (words, why) in [
        (
            &["lab", "--phases", "2", "-k"][..],
            "a check before the experiment failed",
        ),
        (
            &["lab", "--phases", "2", "-k", "--force"],
            "at most 10,000 connections",
        ),
    ] {
        let study = lab.study(words, &plan);
        let left_out = &study.cell("matrix", 1024, 10_001)["runs"][0];
        assert_eq!(left_out["state"], "skipped", "{study:?}");

        let reason = left_out["reason"].as_str().unwrap_or_default();
        assert!(reason.contains(why), "{reason}: {study:?}");
        assert_eq!(
            study.cell("matrix", 1024, 2)["runs"][0]["state"],
            "done",
            "{study:?}"
        );
    }
}

#[test]
fn timed_worker_processes_trust_the_same_certificates() {
    let lab = HttpLab::beside_nginx("ssl http2", &["sh", "-c", FEW_DESCRIPTORS, "sh"]);
    let plan = lab.plan_of_one_cell("plan.toml", "400");
    let study = lab.study(
        &[
            "lab",
            "--phases",
            "2",
            "--h2",
            "-m",
            "2",
            "--pin-sha256",
            &lab.pin(),
        ],
        &plan,
    );
    check_runs(&study, 400, "2", Some("1.3"));

    let run = &study.cell("matrix", 1024, 400)["runs"][0];
    assert!(run["client"]["processes"].as_u64() > Some(1), "{study:?}");
    assert_eq!(run["load"]["connections"]["opened"], 400, "{study:?}");
}

#[test]
fn the_command_line_decides_over_the_plan() {
    let lab = HttpLab::start(&["--no-control"]);
    let plan = lab.plan("plan.toml", "[protocol]\nstreams = 1\ninsecure = true\n");
    let written = lab.run(&["lab", "https://h/", &plan, "--print-plan"]);
    let shown = |part: &str| written.stdout.contains(part);
    assert!(
        shown("version = \"1.1\"") && shown("insecure = true"),
        "{written:?}"
    );

    let words = [
        "lab",
        "https://h/",
        &plan,
        "--print-plan",
        "--h2",
        "-m",
        "8",
        "--cacert",
        "ca.pem",
    ];
    let written = lab.run(&words);

    for part in [
        "version = \"2\"",
        "streams = 8",
        "insecure = false",
        "\ncacert = \"ca.pem\"",
    ] {
        written.expect_clean().expect_stdout(part);
    }
}
