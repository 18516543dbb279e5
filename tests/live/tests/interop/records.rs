//! Records under adverse conditions: a run and its report stay as they are, and what becomes of the
//! record is known.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use linerate_interop::namespaces::{Net, inside};
use linerate_interop::{
    Finished, NativeHost, Process, Server, Service, Signal, free_port, ours, ours_only, wait_until,
};
use serde_json::Value;

/// `linerate` on a history.
fn history(store: &Path, words: &[&str]) -> Finished {
    let mut command = Command::new(ours().path());
    command.arg("history").args(words).arg("--store").arg(store);
    Process::start(command).finish()
}

fn runs(store: &Path) -> Vec<Value> {
    let list = history(store, &["list", "--all", "--json"]);
    list.expect_clean()
        .json()
        .as_array()
        .expect("a list")
        .clone()
}

/// Every number as `0`, and every random text, so that two runs of the same test look alike.
fn normalised(text: &str) -> String {
    let mut normal = String::new();
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        if character.is_ascii_digit() {
            while characters
                .next_if(|next| next.is_ascii_digit() || "._e+-".contains(*next))
                .is_some()
            {}
            normal.push('0');
        } else {
            normal.push(character);
        }
    }

    // The report of a minute that has passed; a cookie; units and padding that follow the value.
    let lines = normal.lines().filter(|line| {
        !["cookie", "\"time\"", "timestr"]
            .iter()
            .any(|word| line.contains(word))
    });
    let words = |line: &str| {
        line.split_whitespace()
            .map(|word| word.trim_start_matches(['K', 'M', 'G']))
            .collect::<Vec<_>>()
            .join(" ")
    };
    lines.map(words).collect::<Vec<_>>().join("\n")
}

#[test]
fn an_imported_report_has_the_measures_and_series_of_the_recorded_test() {
    let program = ours_only!("the original keeps no records");
    let folder = tempfile::tempdir().expect("a folder");
    let (recorded, imported) = (
        folder.path().join("recorded.db"),
        folder.path().join("imported.db"),
    );
    let server = Server::start(program, &[]);
    let port = server.port.to_string();

    for options in [
        &["-t", "1", "-i", "0.5", "-P", "2"][..],
        &["-t", "1", "-R"],
        &["-t", "1", "-u", "-b", "10M"],
        &["-t", "1", "--bidir"],
    ] {
        let mut command = program.command(
            ["-c", "127.0.0.1", "-p", &port, "-J", "--lr-record"]
                .iter()
                .chain(options),
        );
        command.env("LINERATE_STORE", &recorded);
        let report = folder.path().join("report.json");
        fs::write(
            &report,
            &Process::start(command).finish().expect_clean().stdout,
        )
        .expect("written");
        history(&imported, &["import", report.to_str().expect("UTF-8")]).expect_code(0);

        let parts = |store: &Path| {
            let run = history(store, &["show", "last", "--json"])
                .expect_clean()
                .json();
            let trial = &run["trials"][0];
            (by_name(&trial["measures"]), by_name(&trial["series"]))
        };
        let ((measures, series), (measures_of_import, series_of_import)) =
            (parts(&recorded), parts(&imported));
        assert_eq!(
            differences(measures, measures_of_import),
            Vec::<String>::new(),
            "{options:?}"
        );
        assert_eq!(
            differences(series, series_of_import),
            Vec::<String>::new(),
            "{options:?}"
        );
    }
}

/// No member differs: the record has everything that is in a report.
#[test]
fn a_played_back_report_is_the_one_that_was_printed() {
    let program = ours_only!("the original keeps no records");
    let folder = tempfile::tempdir().expect("a folder");
    let store = folder.path().join("history.db");
    let server = Server::start(program, &[]);

    let options: [&[&str]; 6] = [
        &[
            "-t",
            "1",
            "-i",
            "0.5",
            "-P",
            "2",
            "-T",
            "title",
            "--extra-data",
            "data",
        ],
        &["-t", "1", "-R", "-O", "1"],
        &["-t", "1", "-u", "-b", "10M", "-R"],
        &["-t", "1", "--bidir", "-b", "10M", "--get-server-output"],
        &["-n", "64K"],
        // Nothing listens there.
        &["-p", "1"],
    ];
    for options in options {
        let port = server.port.to_string();
        let mut command = program.command(
            ["-c", "127.0.0.1", "-p", &port, "-J", "--lr-record"]
                .iter()
                .chain(options),
        );
        command.env("LINERATE_STORE", &store);

        let printed = Process::start(command).finish();
        let shown = history(&store, &["show", "last", "--as", "iperf3-json"]);
        assert_eq!(shown.expect_clean().stdout, printed.stdout, "{options:?}");
    }

    assert_eq!(runs(&store).len(), options.len());
}

/// Members that a report does not have: of TCP_INFO it has few, and the maximum segment size of its
/// control connection alone.
const UNREPORTED: [&str; 5] = [
    "retransmit_share",
    "mss_bytes",
    "dsack_segments",
    "min_rtt_us",
    "limits.",
];

/// Measures or series by name, stream and way.
fn by_name(list: &Value) -> BTreeMap<String, Value> {
    let name = |part: &Value| part["name"].as_str().expect("a name").to_owned();
    let parts = list.as_array().expect("a list").iter();
    let known = parts.filter(|part| {
        !UNREPORTED
            .iter()
            .any(|unreported| name(part).starts_with(unreported))
    });

    known
        .map(|part| {
            (
                format!("{} {} {}", name(part), part["of"], part["way"]),
                part.clone(),
            )
        })
        .collect()
}

/// Names whose values differ or are missing on one side.
fn differences(mut a: BTreeMap<String, Value>, mut b: BTreeMap<String, Value>) -> Vec<String> {
    assert!(!a.is_empty());
    let mut differ = Vec::new();
    a.retain(|name, a| {
        let b = b.remove(name);
        if let Some(b) = &b
            && !is_near(a, b)
        {
            differ.push(format!("{name}: {a} {b}"));
        }
        b.is_none()
    });

    differ
        .into_iter()
        .chain(a.into_keys())
        .chain(b.into_keys())
        .collect()
}

/// Equal but for the rounding of a report.
fn is_near(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            let (a, b) = (a.as_f64().unwrap_or(0.0), b.as_f64().unwrap_or(0.0));
            (a - b).abs() <= 1e-5 * a.abs().max(b.abs()).max(1e-3)
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_near(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.keys().eq(b.keys()) && a.iter().all(|(key, a)| is_near(a, &b[key]))
        }
        _ => a == b,
    }
}

/// A shell in a mount namespace of its own: `$D` is a directory, `$S` the store, `test` runs a
/// recorded test.
fn in_mounts(folder: &Path, port: u16, script: &str) -> Option<Finished> {
    let is_permitted = Command::new("unshare")
        .args(["-m", "true"])
        .output()
        .is_ok_and(|done| done.status.success());
    if !is_permitted {
        linerate_interop::skip("mounts need root");
        return None;
    }

    let functions = format!(
        "set -e; mount -t tmpfs -o size=8m none $D\n\
         test() {{ $L iperf3 -c 127.0.0.1 -p {port} -n 64K --lr-record >>$O/out 2>>$O/err; }}\n\
         list() {{ $L history list --all --json; }}\n"
    );
    let mut command = Command::new("unshare");
    command
        .args(["-m", "sh", "-c", &(functions + script)])
        .env("L", ours().path())
        .env("O", folder);

    let mounted = folder.join("mounted");
    fs::create_dir(&mounted).expect("created");
    command
        .env("LINERATE_STORE", mounted.join("history.db"))
        .env("D", mounted);

    Some(Process::start(command).finish())
}

/// Output of the runs of a script: the report of this number of tests, and lines on stderr.
fn expect_reports(folder: &Path, tests: usize, lines: &[&str]) {
    let (out, err) = (
        fs::read_to_string(folder.join("out")),
        fs::read_to_string(folder.join("err")),
    );
    let (out, err) = (out.expect("the reports"), err.expect("the lines"));
    assert_eq!(out.matches("iperf Done.").count(), tests, "{out}");
    assert_eq!(err.lines().count(), lines.len(), "{err}");
    assert!(
        err.lines().zip(lines).all(|(line, expected)| line.starts_with("linerate: record") && line.contains(expected)),
        "{err}"
    );
}

#[test]
fn a_full_disk_loses_the_record_and_nothing_else() {
    let program = ours_only!("the original keeps no records");
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(program, &[]);
    let script = "test; cat /dev/zero >$D/filler 2>/dev/null || true; test; rm $D/filler; test; \
                  list; $L history check";
    let Some(done) = in_mounts(folder.path(), server.port, script) else {
        return;
    };
    let out = &done.expect_code(0).stdout;

    expect_reports(folder.path(), 3, &["lost (1)"]);
    let (list, check) = out.split_once('\n').expect("two lines");
    assert_eq!(
        serde_json::from_str::<Value>(list)
            .expect("JSON")
            .as_array()
            .map(Vec::len),
        Some(2),
        "{list}"
    );
    assert!(
        check.starts_with("2 runs, 0 in the spool: no damage"),
        "{check}"
    );
}

#[test]
fn a_read_only_disk_loses_the_record_and_the_history_stays_readable() {
    let program = ours_only!("the original keeps no records");
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(program, &[]);
    let script = "test; mount -o remount,ro $D; test; list; mount -o remount,rw $D; test; list";
    let Some(done) = in_mounts(folder.path(), server.port, script) else {
        return;
    };
    let lists: Vec<Value> = done
        .expect_code(0)
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();

    expect_reports(folder.path(), 3, &["lost (1)"]);
    let lengths: Vec<_> = lists
        .iter()
        .map(|list| list.as_array().map(Vec::len))
        .collect();
    assert_eq!(lengths, [Some(1), Some(2)]);
}

#[test]
fn a_record_waits_beside_garbage_until_there_is_a_history() {
    let program = ours_only!("the original keeps no records");
    let folder = tempfile::tempdir().expect("a folder");
    let store = folder.path().join("history.db");
    fs::write(&store, "garbage".repeat(1000)).expect("written");

    let server = Server::start(program, &[]);
    let port = server.port.to_string();
    let test = |record: &[&str]| {
        let mut command = program.command(
            ["-c", "127.0.0.1", "-p", &port, "-n", "64K"]
                .iter()
                .chain(record),
        );
        command.env("LINERATE_STORE", &store);
        Process::start(command).finish()
    };
    let (plain, recorded) = (test(&[]), test(&["--lr-record"]));
    assert_eq!(
        normalised(&recorded.expect_code(0).stdout),
        normalised(&plain.expect_clean().stdout)
    );
    assert_eq!(recorded.stderr.lines().count(), 1, "{recorded:?}");
    recorded.expect_stderr("kept in the spool");
    assert_eq!(
        fs::read(&store).expect("untouched"),
        "garbage".repeat(1000).as_bytes()
    );
    fs::remove_file(&store).expect("removed");
    test(&["--lr-record"]).expect_clean();
    assert_eq!(runs(&store).len(), 2);
}

/// `LINERATE_KILLS` is the number of sweeps that are killed, each at another moment.
/// A run that has no result has a state that says why.
#[test]
fn tests_that_are_refused_or_get_no_answer_are_recorded_as_such() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = folder.path().join("history.db");
    let test = |mut command: Command| {
        command.env("LINERATE_STORE", &store);
        Process::start(command).finish().expect_code(4);
        runs(&store).remove(0)
    };
    let words = |target| ["test", target, "--profile", "quick", "-q"];

    let mut command = Command::new(ours().path());
    command.args(words("127.0.0.1:1"));
    let refused = test(command);
    assert_eq!(refused["state"], "refused", "{refused:#}");
    assert!(
        refused["reason"]
            .as_str()
            .is_some_and(|reason| reason.contains("refused")),
        "{refused:#}"
    );

    // No host has this address, so that the kernel gives up.
    let Some(net) = Net::new() else { return };
    let silent = test(inside(&net.a, ours().path(), &words("10.99.0.77")));
    assert_eq!(silent["state"], "no-answer", "{silent:#}");

    let list = history(&store, &["list"]).expect_clean().stdout.clone();
    assert!(
        list.contains("refused") && list.contains("no answer"),
        "{list}"
    );
}

/// `linerate test --json` of a file has what the record has.
#[test]
fn a_report_of_a_path_is_imported_shown_and_compared() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = folder.path().join("history.db");
    let (client, server) = (NativeHost::here(), NativeHost::here().serve(&[]));
    let target = format!("127.0.0.1:{}", server.port);
    let file = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let files = [file("a.json"), file("b.json")];
    for name in &files {
        let test = client.test(
            &target,
            &["--profile", "quick", "-b", "20M", "-q", "--json"],
        );
        fs::write(
            name,
            &test
                .finish_within(Duration::from_secs(60))
                .expect_clean()
                .stdout,
        )
        .expect("written");
    }

    let imported = history(&store, &["import", "--label", "side=a", &files[0]]);
    assert!(
        imported
            .expect_clean()
            .stdout
            .contains("1 new, 0 known, 0 partial"),
        "{imported:?}"
    );
    let rows = runs(&store);
    assert_eq!(
        (&rows[0]["kind"], &rows[0]["labels"]["side"]),
        (&"test".into(), &"a".into()),
        "{:#}",
        rows[0]
    );
    assert!(
        rows[0]["both_ways"]
            .as_array()
            .is_some_and(|both| both.len() == 2),
        "{:#}",
        rows[0]
    );

    let list = history(&store, &["list"]).expect_clean().stdout.clone();
    assert!(
        list.contains(" down, ") && list.contains(" up Mbit/s"),
        "{list}"
    );

    for (words, code, part) in [
        (vec!["report", files[0].as_str()], 0, "Mbit/s down"),
        (
            vec!["compare", &files[0], &files[1]],
            11,
            "a verdict needs 4 a side",
        ),
    ] {
        let mut command = Command::new(ours().path());
        command.args(&words).arg("--store").arg(&store);
        let shown = Process::start(command).finish();
        shown.expect_code(code);
        assert!(shown.stdout_unwrapped().contains(part), "{shown:?}");
    }
}

/// Runs a test twice, with its records in a store.
fn two_tests(words: &[&str], store: &str) {
    for _ in 0..2 {
        let mut command = Command::new(ours().path());
        command.args(words).args(["--store", store]);
        Process::start(command)
            .finish_within(Duration::from_secs(60))
            .expect_code(0);
    }
}

/// A test without a load has no rate, and its delay in the place of it.
#[test]
fn tests_without_a_load_are_listed_shown_and_compared_by_their_delay() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = folder.path().join("history.db");
    let store_text = store.to_str().expect("UTF-8");
    let server = NativeHost::here().serve(&[]);
    let target = format!("127.0.0.1:{}", server.port);
    two_tests(
        &[
            "test",
            &target,
            "--only",
            "idle",
            "--profile",
            "quick",
            "-q",
        ],
        store_text,
    );

    let row = &runs(&store)[0];
    assert_eq!(row["primary"][0], "idle_rtt_p50_ns", "{row:#}");
    let shown = history(&store, &["show", "last"]);
    let text = shown.expect_clean().stdout_unwrapped();
    assert!(text.contains("round trip without load"), "{text}");

    let mut command = Command::new(ours().path());
    command.args(["compare", "last~1", "last", "--store", store_text]);
    let compared = Process::start(command).finish();
    compared.expect_code(11);
    let text = compared.stdout_unwrapped();
    assert!(text.contains("a verdict needs 4 a side"), "{text}");
}

/// One trial a side allows no verdict; the command that makes five does.
#[test]
fn comparison_of_single_trials_prints_the_command_that_makes_five() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = folder.path().join("history.db");
    let store_text = store.to_str().expect("UTF-8");
    let server = NativeHost::here().serve(&[]);
    let target = format!("127.0.0.1:{}", server.port);

    let words = [
        "test",
        &target,
        "--profile",
        "quick",
        "-b",
        "20M",
        "-q",
        "--repeat",
        "1",
    ];
    two_tests(&words, store_text);

    let mut command = Command::new(ours().path());
    command.args(["compare", "last~1", "last", "-v", "--store", store_text]);
    let compared = Process::start(command).finish();
    compared.expect_code(11);

    let wanted =
        format!("linerate test {target} --profile quick -b 20M -q --store {store_text} --repeat 5");
    assert!(compared.stdout.contains(&wanted), "{compared:?}");

    // Labels of several runs at once.
    history(&store, &["label", "last", "last~1", "side=b", "when=now"]).expect_code(0);
    assert!(
        runs(&store)
            .iter()
            .all(|run| run["labels"]["side"] == "b" && run["labels"]["when"] == "now")
    );
    history(&store, &["label", "last"]).expect_code(2);
}

#[test]
fn a_killed_sweep_keeps_its_finished_trials_and_has_ended() {
    let program = ours_only!("the original has no sweep");
    let kills: u64 = env::var("LINERATE_KILLS")
        .ok()
        .and_then(|kills| kills.parse().ok())
        .unwrap_or(2);
    let folder = tempfile::tempdir().expect("a folder");
    let store = folder.path().join("history.db");
    let server = Server::start(program, &[]);

    for number in 1..=kills {
        let mut command = Command::new(ours().path());
        command.args([
            "sweep",
            "127.0.0.1",
            "-p",
            &server.port.to_string(),
            "-t",
            "1",
            "-O",
            "0",
            "--over",
            "streams=1..2",
        ]);

        let sweep = Process::start_uncaptured({
            command
                .arg("-q")
                .arg("--store")
                .arg(&store)
                .stdout(std::process::Stdio::null());
            command
        });
        // The run begins with its record; later moments are inside of trials and between them.
        assert!(
            wait_until(Duration::from_secs(20), || store.exists()
                && runs(&store).len() as u64 >= number),
            "no record"
        );
        std::thread::sleep(Duration::from_millis(number * 7919 % 4000));
        sweep.signal(Signal::Kill);
        drop(sweep);

        let rows = runs(&store);
        assert_eq!(
            (rows.len() as u64, &rows[0]["state"]),
            (number, &Value::from("ended")),
            "{:?}",
            rows[0]
        );
        history(&store, &["check"])
            .expect_clean()
            .expect_stdout("no damage");

        let record = history(&store, &["show", "last", "--json"])
            .expect_clean()
            .json();
        let trials = record["trials"].as_array().expect("trials");
        assert!(
            trials.iter().all(|trial| trial["state"] == "complete"),
            "{trials:?}"
        );
        assert_eq!(rows[0]["trials"].as_u64(), Some(trials.len() as u64));
    }
}

/// Another process that writes until its input ends.
fn lock(store: &Path) -> Process {
    let script = "import sqlite3, sys\n\
                  db = sqlite3.connect(sys.argv[1], isolation_level=None)\n\
                  db.execute('BEGIN IMMEDIATE')\n\
                  print('locked', flush=True)\n\
                  sys.stdin.read()";
    let mut command = Command::new("python3");
    command.args(["-c", script]).arg(store);

    let lock = Process::start_reading(command, std::process::Stdio::piped());
    lock.wait_for_stdout("locked", 1);
    lock
}

/// Clients of a server whose store is locked while they run and for a time after.
fn locked_for(clients: usize, time: Duration, late_max_s: f64) {
    let program = ours_only!("the original keeps no records");
    let folder = tempfile::tempdir().expect("a folder");
    let store = folder.path().join("history.db");
    let metrics = free_port();
    let address = format!("127.0.0.1:{metrics}");

    let service = Service::start(&[
        "--record",
        "--store",
        store.to_str().expect("UTF-8"),
        "--metrics",
        &address,
        "--log-level",
        "warn",
        "--limit",
        "address:tests=1000",
    ]);
    service
        .client(program, &["-n", "64K"])
        .finish()
        .expect_clean();
    assert!(wait_until(Duration::from_secs(10), || store.exists()
        && runs(&store).len() == 1));

    let lock = lock(&store);
    let tests: Vec<Process> = (0..clients)
        .map(|_| service.client(program, &["-t", "2", "-b", "1M", "-i", "0.5", "-J"]))
        .collect();
    for test in tests {
        let report = test.finish().expect_clean().json();
        let intervals = report["intervals"].as_array().expect("intervals");
        assert_eq!(intervals.len(), 4, "{report}");

        for (n, interval) in intervals.iter().enumerate() {
            let late = interval["sum"]["end"].as_f64().expect("a time") - (n + 1) as f64 * 0.5;
            assert!(late.abs() < late_max_s, "interval {n} ends {late} s late");
        }
    }

    std::thread::sleep(time);
    drop(lock);
    service
        .client(program, &["-n", "64K"])
        .finish()
        .expect_clean();

    let mut page = String::new();
    let total = |page: &str, name: &str| {
        page.lines()
            .find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok())
    };

    let is_complete = wait_until(Duration::from_secs(30), || {
        page = Command::new("curl")
            .args(["-s", &format!("http://{address}/metrics")])
            .output()
            .map(|done| String::from_utf8_lossy(&done.stdout).into_owned())
            .expect("curl");
        total(&page, "linerate_records_total ")
            .zip(total(&page, "linerate_records_lost_total "))
            .is_some_and(|(stored, lost)| stored + lost == clients as u64 + 2)
    });
    assert!(is_complete, "{page}");
    assert_eq!(total(&page, "linerate_queue_tests "), Some(0), "{page}");
    assert!(
        total(&page, "linerate_store_bytes ").is_some_and(|bytes| bytes > 4096),
        "{page}"
    );

    let stored = runs(&store).len() as u64;
    assert_eq!(Some(stored), total(&page, "linerate_records_total "));
}

#[test]
fn timed_tests_of_a_server_are_right_while_its_store_is_locked() {
    locked_for(20, Duration::ZERO, f64::INFINITY);
}

#[test]
#[ignore = "makes two hundred tests at once: make live SUITE=history"]
fn timed_two_hundred_tests_while_the_store_is_locked_for_ten_seconds() {
    locked_for(200, Duration::from_secs(8), 0.05);
}
