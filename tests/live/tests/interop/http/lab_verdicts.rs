//! Goal: the verdict on a cell names what holds it back: the link, a core, too few connections, a
//! queue. Method: short experiments in which one of them is scarce, on loopback and over a veth
//! pair in namespaces, whose shaper counts as an Ethernet does.

use std::cell::Cell;
use std::fs;
use std::thread;
use std::time::Duration;

use linerate_interop::namespaces::{DEVICE, Net, SERVER, run, try_run};
use linerate_interop::{
    BusyCpus, HttpLab, HttpLoad, HttpServer, HttpStudy, Nginx, RawServer, Then, send_text,
    unsupported,
};
use serde_json::Value;

/// Repeats an experiment that other programs may disturb until its verdict is right. The program
/// under test has no say in whether an experiment counts: without a right one the test fails.
#[track_caller]
fn judge(observe: impl Fn() -> HttpStudy, is_right: impl Fn(&HttpStudy) -> bool) {
    let mut wrong = Vec::new();
    for _ in 0..ATTEMPTS {
        let study = observe();
        if is_right(&study) {
            return;
        }
        wrong.push(study);
    }

    panic!("{ATTEMPTS} experiments without the right verdict: {wrong:?}");
}

const ATTEMPTS: usize = 3;

/// A pair of hosts whose link carries a gigabit in each direction, counted as an Ethernet counts:
/// with preamble, check sum and gap of each frame. The kernel hands packets of up to 64 KiB to the
/// shaper; the peak rate's bucket has it cut them into frames, which takes less CPU time than
/// cutting them earlier.
fn gigabit_apart() -> Option<Net> {
    let net = Net::new()?;
    for name in [&net.a, &net.b] {
        // What arrives is put together again before TCP sees it, as adapters do.
        run(&format!("ip netns exec {name} ethtool -K {DEVICE} gro on"));
        let shaper = "root tbf rate 1gbit burst 64k latency 100ms overhead 24 linklayer ethernet \
                      peakrate 1000gbit mtu 2900";
        run(&format!("tc -n {name} qdisc add dev {DEVICE} {shaper}"));
    }

    Some(net)
}

/// Answers per second that the arithmetic of frames allows at a gigabit: payload in bytes, answers.
const GIGABIT_MODEL: [(u64, f64); 3] = [
    (1 << 10, 101_461.0),
    (10 << 10, 11_283.0),
    (100 << 10, 1_148.0),
];

/// Result of a row of cells.
#[derive(Clone, Copy, PartialEq)]
enum Row {
    /// The link carries what the model says.
    Full,
    /// The CPUs of this machine were full, and the verdict is in line with that.
    Disturbed,
    Wrong,
}

/// Judges the cells of a payload; `is_slow` where the CPUs of this machine were full.
fn judge_row(study: &HttpStudy, payload_bytes: u64, model_per_s: f64, is_slow: bool) -> Row {
    let cells = study.list("cells").iter().filter(|cell| {
        let key = &cell["key"];
        key["phase"] == "matrix"
            && key["payload_bytes"] == payload_bytes
            && key["connections"].as_u64() <= Some(64)
    });
    let mut row = Row::Wrong;

    for cell in cells {
        let share = cell["median"]["ok_per_s"].as_f64().unwrap_or_default() / model_per_s;
        let verdict = HttpStudy::verdict(cell);
        assert!(share < 1.01, "more than a gigabit carries: {cell:#}");

        if verdict == "network-bound" && share >= 0.97 {
            return Row::Full;
        }

        // Both ends share the CPUs, and full ones held TCP alone back as well. A shaper drops what
        // a slow machine does not come to.
        let is_in_line = matches!(verdict, "network-bound" | "client-limit")
            || verdict.starts_with("cpu-bound")
            || verdict == "network-loss" && cell["verdict"].to_string().contains("cpu-bound-total");
        if is_slow && is_in_line {
            row = Row::Disturbed;
        }
    }

    row
}

fn gigabit_lab(phases: &str, plan: &str) {
    let Some(net) = gigabit_apart() else { return };
    let lab = HttpLab::in_net(&net, &[]);
    let plan = lab.plan_of_usual_length("gigabit.toml", plan);

    // The device claims to be faster than what shapes it, which the lab would stop at; 20,000
    // connections are more than some hosts allow.
    let is_slow = Cell::new(false);
    judge(
        || {
            let cpus = BusyCpus::start();
            let study = lab.study(&["lab", "--phases", phases, "--force", "--quick"], &plan);
            is_slow.set(cpus.were_full());
            study
        },
        |study| {
            assert_eq!(study.json["is_complete"], true, "{study:?}");
            let rows = GIGABIT_MODEL.map(|(payload_bytes, model_per_s)| {
                judge_row(study, payload_bytes, model_per_s, is_slow.get())
            });
            // A machine that fills no row shows nothing about the verdicts on a full link.
            !rows.contains(&Row::Wrong) && rows.contains(&Row::Full)
        },
    );
}

#[test]
fn a_quick_matrix_fills_a_gigabit_with_every_payload() {
    let defaults = "[defaults]\nwarmup = \"500ms\"\nduration = \"2s\"\ncooldown = \"0s\"\n";
    gigabit_lab(
        "2",
        &format!("{defaults}[phase2]\nconnections = [64]\nrefine_knee = false\n"),
    );
}

#[test]
#[ignore = "minutes, and the machine for itself: make live SUITE=http"]
fn all_phases_of_a_quick_experiment_fill_a_gigabit_with_every_payload() {
    let plan = "[phase2]\nconnections = [16, 64]\nrefine_knee = false\n[phase3.idle]\nsteps = \
                [1000, 10000]\n";
    gigabit_lab("0-3", plan);
}

#[test]
#[ignore = "minutes, and the machine for itself: make live SUITE=http"]
fn the_default_plan_fills_a_gigabit_with_every_payload() {
    gigabit_lab("0-3", "");
}

/// Neither device of a veth pair names the rate of the path; the download before the cells finds
/// it.
#[test]
fn a_full_shaper_is_the_network_without_the_tcp_phase() {
    let Some(net) = Net::new() else { return };
    run(&format!(
        "tc -n {} qdisc add dev {DEVICE} root tbf rate 200mbit burst 64k latency 50ms",
        net.b
    ));
    let lab = HttpLab::in_net(&net, &[]);
    let plan = "[phase2]\npayloads = [\"10k\"]\nconnections = [16]\nrefine_knee = false\n";
    let plan = lab.plan("shaper.toml", plan);
    judge(
        || lab.study(&["lab", "--phases", "2"], &plan),
        |study| {
            assert_eq!(study.list("baseline").len(), 1, "{study:?}");
            HttpStudy::verdict(study.cell("matrix", 10 << 10, 16)) == "network-bound"
        },
    );
}

/// The server of the help has no iperf3 server beside it: what TCP alone reaches is a download.
#[test]
fn pair_of_commands_in_the_help_has_a_baseline_and_names_a_full_link() {
    let Some(net) = Net::new() else { return };
    run(&format!(
        "tc -n {} qdisc add dev {DEVICE} root tbf rate 100mbit burst 64k latency 50ms",
        net.b
    ));
    let lab = HttpLab::of_the_help(&net);
    let plan = "[phase2]\npayloads = [\"10k\"]\nconnections = [16]\nrefine_knee = false\n";
    let plan = lab.plan("help.toml", plan);
    judge(
        || lab.study(&["lab", "--phases", "0,2"], &plan),
        |study| {
            assert_eq!(study.list("baseline").len(), 1, "{study:?}");
            HttpStudy::verdict(study.cell("matrix", 10 << 10, 16)) == "network-bound"
        },
    );
}

/// A queue of a few packets drops what TCP alone sends beyond it: ordinary congestion, of a path
/// that loses nothing otherwise.
#[test]
fn segments_that_tcp_alone_loses_do_not_end_the_experiment() {
    let Some(net) = Net::new() else { return };
    run(&format!(
        "tc -n {} qdisc add dev {DEVICE} root tbf rate 50mbit burst 32k limit 40k",
        net.b
    ));
    let lab = HttpLab::in_net(&net, &[]);
    let plan = "[phase0]\nduration = \"2s\"\n[phase2]\npayloads = [\"10k\"]\nconnections = \
                [8]\nrefine_knee = false\n";
    let study = lab.study(
        &["lab", "--phases", "0,2"],
        &lab.plan("congestion.toml", plan),
    );
    let lost = study
        .list("baseline")
        .iter()
        .filter_map(|test| test["retransmits"].as_u64())
        .max();
    assert!(
        lost.is_some_and(|lost| lost > 0),
        "the queue is too long: {study:?}"
    );

    let without_load = study
        .list("baseline")
        .last()
        .map(|test| &test["without_load"]);
    assert!(
        without_load.is_some_and(|loss| loss["segments"].as_u64() > Some(100)),
        "{study:?}"
    );
    let verdict = HttpStudy::verdict(study.cell("matrix", 10 << 10, 8));
    assert_ne!(verdict, "network-loss", "{study:?}");
}

/// A path that loses without load is not clean, and nothing is measured over it.
#[test]
fn path_that_loses_without_load_ends_the_experiment() {
    let Some(net) = Net::new() else { return };
    let is_lossy = try_run(&format!(
        "tc -n {} qdisc add dev {DEVICE} root netem loss 3%",
        net.b
    ));
    if !is_lossy {
        return unsupported("this kernel has no netem");
    }

    let lab = HttpLab::in_net(&net, &[]);
    let plan = "[phase0]\nduration = \"2s\"\n[phase2]\npayloads = [\"10k\"]\nconnections = \
                [8]\nrefine_knee = false\n";
    let plan = lab.plan("loss.toml", plan);

    let finished = lab.run(&[
        "lab",
        "--phases",
        "0,2",
        &lab.url,
        &plan,
        "--out",
        &lab.path("lossy"),
    ]);
    finished
        .expect_code(3)
        .expect_stderr("without load")
        .expect_stderr("--force continues");
}

/// The same for a single load: neither device names a rate, the download before the load finds it.
#[test]
fn a_full_shaper_is_the_network_for_a_single_load() {
    let Some(net) = Net::new() else { return };
    run(&format!(
        "tc -n {} qdisc add dev {DEVICE} root tbf rate 100mbit burst 64k latency 50ms",
        net.b
    ));
    let server = HttpServer::in_net(&net, &format!("{SERVER}:8080"), &[]);
    let mut wrong = Vec::new();

    for _ in 0..ATTEMPTS {
        let load = HttpLoad::in_net(
            &net,
            &server.url("/b/10k"),
            &["-d", "2s", "--warmup", "500ms", "-v"],
        )
        .finish();
        load.expect_code(0);

        let report = load.record();
        let has_baseline = report["notes"]
            .to_string()
            .contains("TCP server to client, 4 streams: ");
        let class = &report["body"]["http-load"]["verdict"]["primary"]["class"];
        if has_baseline && class == "network-bound" {
            return;
        }

        wrong.push(load);
    }

    panic!("{ATTEMPTS} loads without the right verdict: {wrong:?}");
}

#[test]
fn a_server_of_one_thread_is_bound_by_the_core_it_runs_on() {
    let allowed = fs::read_to_string("/proc/self/status").expect("a status");
    let list = allowed
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let list = list.unwrap_or_default().trim();
    if !list.contains([',', '-']) {
        return unsupported("one CPU is all of them");
    }

    let core: String = list.chars().take_while(char::is_ascii_digit).collect();
    // Both ends on one CPU: a generator on the other one of two would fill it.
    let pinned = ["taskset", "-c", core.as_str()];
    let lab = HttpLab::start_by(&pinned, &pinned, "127.0.0.1", &["--threads", "1"]);
    let plan = lab.plan_of_one_cell("one.toml", "16");
    let named = format!("CPU {core} of the server");

    judge(
        || lab.study(&["lab", "--phases", "2"], &plan),
        |study| {
            let cell = study.cell("matrix", 1024, 16);
            HttpStudy::verdict(cell) == "cpu-bound-core"
                && HttpStudy::evidence(cell).contains(&named)
        },
    );
}

#[test]
fn too_few_connections_are_distinguished_from_a_slow_server() {
    let answer = format!(
        "HTTP/1.1 200 OK\r\nContent-Length: 1024\r\n\r\n{}",
        "x".repeat(1024)
    );
    let slow = RawServer::start(move |_, stream| {
        thread::sleep(Duration::from_millis(50));
        send_text(stream, &answer, Then::Next)
    });
    let lab = HttpLab::beside(slow.address, slow.url("/1k"), &[]);
    let plan = lab.plan_of_one_cell("few.toml", "4, 16, 64");
    judge(
        || lab.study(&["lab", "--phases", "2"], &plan),
        |study| {
            let notes = study.json["notes"].to_string();
            assert!(notes.contains("the URL names a path"), "{notes}");
            let cells = [4, 16].map(|connections| study.cell("matrix", 1024, connections));
            cells
                .iter()
                .all(|cell| HttpStudy::verdict(cell) == "concurrency-limited")
        },
    );
}

#[test]
fn the_verdict_on_a_foreign_server_rests_on_the_client_alone() {
    let nginx = Nginx::start("", "");
    let lab = HttpLab::start(&["--no-control"]);
    let plan = lab.plan_of_one_cell("foreign.toml", "2");
    judge(
        || lab.study_of(&["lab", "--phases", "2"], &nginx.url("/1k"), &plan),
        |study| {
            assert_eq!(study.json["is_complete"], true, "{study:?}");
            let notes = study.json["notes"].to_string();
            assert!(notes.contains("no control channel"), "{study:?}");

            let cell = study.cell("matrix", 1024, 2);
            let run = &cell["runs"][0];
            assert_eq!(run["server"], Value::Null, "{study:?}");

            let ok = run["load"]["ok"].as_u64();
            assert!(ok.is_some_and(|ok| nginx.logged() > ok), "{study:?}");
            matches!(HttpStudy::verdict(cell), "unknown" | "client-limit")
                && HttpStudy::evidence(cell).contains("not known")
        },
    );
}

#[test]
fn a_queue_that_is_too_short_is_the_servers_limit() {
    // A namespace counts for itself.
    let Some(net) = Net::new() else { return };
    let lab = HttpLab::in_net(&net, &["--threads", "1", "--backlog", "16"]);
    let plan = lab.plan_of_one_cell("queue.toml", "2000");
    judge(
        || lab.study(&["lab", "--phases", "2"], &plan),
        |study| {
            let mut checks = study.list("checks").iter();
            let is_predicted =
                checks.any(|check| check["id"] == "backlog" && check["have"] == "16");
            assert!(is_predicted, "{:?}", study.list("checks"));

            let cell = study.cell("matrix", 1024, 2000);
            HttpStudy::verdict(cell) == "server-limit"
                && HttpStudy::evidence(cell).contains("ListenOverflows")
        },
    );
}
