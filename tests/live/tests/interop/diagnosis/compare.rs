//! Goal: `linerate compare` calls a slower path worse and names what was configured differently,
//! and calls equal paths worse as rarely as its statistics promise. Method: records as files;
//! recorded tests through a shaper between two namespaces, whose rate and settings are changed.
//!
//! `make live SUITE=compare` sets `LINERATE_COMPARISONS` to 40.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use linerate_interop::iperf2::{Iperf2, Iperf2Server};
use linerate_interop::namespaces::{DEVICE, Net, SERVER, inside, run};
use linerate_interop::{Finished, Process, Server, linerate, ours};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Files of records.
struct Records {
    folder: TempDir,
    written: u32,
}

impl Records {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().expect("a temporary folder"),
            written: 0,
        }
    }

    /// A record of a test with these received rates in bit/s, as `change` leaves it.
    fn write(&mut self, rates_bps: &[f64], change: impl Fn(&mut Value)) -> PathBuf {
        self.written += 1;
        let number = self.written;
        let trial = |(no, rate): (usize, &f64)| {
            let measures = json!([{ "name": "received_bps", "way": "forward", "value": rate }]);
            json!({ "no": no, "state": "complete", "started_ns": 0, "elapsed_ns": 1, "measures": measures })
        };

        let mut record = json!({
            "schema": "linerate.run/1",
            "run_id": format!("0190{number:04x}-0000-7000-8000-{number:012x}"),
            "kind": "test",
            "state": "complete",
            "started_at": "2026-01-31T12:00:00.000Z",
            "started_unix_ms": 1_769_860_800_000_u64 + u64::from(number) * 60_000,
            "elapsed_ns": 1_000_000_000,
            "origin": { "tool": "linerate" },
            "path": { "key": "", "spec_key": "" },
            "trials": rates_bps.iter().enumerate().map(trial).collect::<Vec<_>>(),
            "body": "test",
        });
        change(&mut record);
        let path = self.folder.path().join(format!("{number}.json"));
        fs::write(&path, record.to_string()).expect("a file");

        path
    }
}

fn compare(a: &Path, b: &Path, options: &str) -> Finished {
    linerate(&format!(
        "compare {} {} --store off {options}",
        a.display(),
        b.display()
    ))
    .finish()
}

const RATES: [f64; 5] = [941e6, 942e6, 940e6, 941.5e6, 940.5e6];

fn scaled(factor: f64) -> [f64; 5] {
    RATES.map(|rate| rate * factor)
}

#[test]
fn every_verdict_has_its_exit_code_and_the_answer_comes_first() {
    let mut records = Records::new();
    let before = records.write(&RATES, |_| {});
    let noisy = [700e6, 1100e6, 941e6, 820e6, 1000e6];

    let rows: [(&[f64], &str, i32, &str); 7] = [
        (
            &scaled(0.9),
            "",
            10,
            "worse: received up -10.0 %\nup       A 941, B 847 Mbit/s, -10.0 %",
        ),
        (&scaled(1.1), "", 0, "better: "),
        (&RATES, "", 0, "same: "),
        (&noisy, "", 11, "undecided: "),
        (&noisy, "--allow-undecided", 0, "undecided: "),
        (&RATES[..3], "", 11, "too few trials: "),
        (&scaled(0.97), "--margin 1%", 10, "worse: "),
    ];
    for (rates, options, code, start) in rows {
        let found = compare(&before, &records.write(rates, |_| {}), options);
        found.expect_code(code);
        assert!(found.stdout.starts_with(start), "{found:?}");
    }

    let found = compare(&before, &records.write(&scaled(0.9), |_| {}), "--json");
    assert_eq!(found.json()["conclusion"]["verdict"], "worse", "{found:?}");
    assert_eq!(found.json()["schema"], "linerate.compare/1", "{found:?}");
}

#[test]
fn a_change_that_lasts_is_found_after_six_runs_with_the_setting_that_changed() {
    let mut records = Records::new();
    let store = records
        .folder
        .path()
        .join("history.db")
        .display()
        .to_string();
    let history = |words: &str| linerate(&format!("history {words} --store {store}")).finish();

    for number in 0..31 {
        let (factor, shaper_bps) = if number < 25 {
            (1.0, 1_000_000_000)
        } else {
            (0.9, 900_000_000)
        };
        let rate_bps = RATES[number % RATES.len()] * factor;
        let file = records.write(&[rate_bps], |record| {
            let facts = json!({ "nic.lr0.qdisc.root.rate_bps": { "v": shaper_bps, "u": "bit/s", "src": "tc" } });
            let snapshot = json!({
                "schema": "linerate.snapshot/1", "host": "a", "source": "live", "facts": facts, "counters": {},
            });
            record["hosts"] = json!([{ "role": "client", "name": "a", "snapshot": snapshot }]);
            record["path"] = json!({ "key": "path", "spec_key": "spec", "client": "a", "server": "b" });
        });
        history(&format!("import {}", file.display())).expect_clean();

        if number == 24 {
            history("trend last").expect_code(0);
        }
    }

    let found = history("trend last");
    found.expect_code(10).expect_stdout("(-10.0 %)");
    found.expect_stdout("qdisc.root.rate_bps: 1000000000 before, 900000000 after");

    let trend = history("trend last --json").json();
    let changes = trend["changes"].as_array().expect("changes");
    assert_eq!(
        (changes.len(), &changes[0]["at"]),
        (1, &json!(25)),
        "{trend}"
    );
}

#[test]
fn trials_that_do_not_count_are_listed() {
    let mut records = Records::new();
    let before = records.write(&RATES, |_| {});

    let after = records.write(&[941e6, 942e6, 940e6, 941e6, 1e6, 2e6], |record| {
        record["trials"][4]["flags"] = json!(["foreign-load"]);
        record["trials"][5]["state"] = json!("partial");
        record["trials"][5]["reason"] = json!("the server is gone");
    });
    let found = compare(&before, &after, "-v");
    found
        .expect_code(0)
        .expect_stdout("trial 4 of ")
        .expect_stdout("partial: the server is gone");
}

#[test]
fn other_tests_are_compared_only_when_forced() {
    let mut records = Records::new();
    let before = records.write(&RATES, |_| {});
    let load = records.write(&RATES, |record| {
        record["kind"] = json!("http-load");
        record["body"] = json!({ "http-load": { "target": "http://192.0.2.7/" } });
    });
    compare(&before, &load, "")
        .expect_code(12)
        .expect_stdout("not comparable: kind of run: test, now http-load");
    compare(&before, &load, "--force")
        .expect_code(0)
        .expect_stdout("same: ")
        .expect_stdout("not comparable: kind");
}

#[test]
fn limits_of_b_decide_the_exit_code_and_are_named_one_a_line() {
    let mut records = Records::new();
    let (before, after) = (records.write(&RATES, |_| {}), records.write(&RATES, |_| {}));
    compare(&before, &after, "--expect rx>=900M,all:rx<1G").expect_clean();

    let found = compare(&before, &after, "--expect rx>=1G,rx>1M,retr<10");
    found.expect_code(5);
    let lines = "linerate compare: rx>=1G: 941 Mbit/s, 59.0 Mbit/s (5.9 %) below 1.00 Gbit/s\n\
                 linerate compare: retr<10: retransmits was not measured\n";
    assert_eq!(found.stderr, lines, "{found:?}");

    for (limits, place) in [
        ("rx>900X", "  rx>900X\n     ^"),
        ("foo>1", "there is no measure \"foo\"; near it: "),
    ] {
        compare(&before, &after, &format!("--expect {limits}"))
            .expect_code(2)
            .expect_stderr(place);
    }
}

#[test]
fn sides_that_cannot_be_read_are_named() {
    let mut records = Records::new();
    let before = records.write(&RATES, |_| {});
    compare(&before, &before, "")
        .expect_code(2)
        .expect_stderr("is on both sides");
    compare(&before, Path::new("/nonexistent.json"), "")
        .expect_code(1)
        .expect_stderr("/nonexistent.json");

    let newer = records.write(&RATES, |record| record["schema"] = json!("linerate.run/2"));
    compare(&before, &newer, "")
        .expect_code(1)
        .expect_stderr("linerate.run/2");
    let after = records.write(&RATES, |_| {});
    compare(&before, &after, "--measure p98")
        .expect_code(2)
        .expect_stderr("near it: p90");
    compare(&before, &after, "--margin 0")
        .expect_code(2)
        .expect_stderr("--margin 0");
}

#[test]
fn limits_of_a_drop_in_client_change_its_exit_code_and_add_a_line_for_each_missed() {
    let server = Server::start(ours(), &[]);
    server
        .run(ours(), &["-n", "1M", "--lr-expect", "rx>1K,tx>1K"])
        .expect_clean();
    let missed = server.run(
        ours(),
        &["-n", "1M", "--lr-expect", "rx>900T,tx>1K,loss<1%"],
    );
    missed.expect_code(5).expect_stdout("iperf Done.");

    let lines: Vec<&str> = missed.stderr.lines().collect();
    let [rx, loss] = lines.as_slice() else {
        panic!("{missed:?}")
    };
    assert!(
        rx.starts_with("iperf3: rx>900T: ") && rx.ends_with("below 900 Tbit/s"),
        "{rx}"
    );
    assert_eq!(*loss, "iperf3: loss<1%: lost_share was not measured");

    let wrong = server.run(ours(), &["-n", "1M", "--lr-expect", "rx>900X"]);
    wrong
        .expect_code(1)
        .expect_stderr("units of received_bps: K, k, M, G, T\n  rx>900X\n     ^");
}

#[test]
fn limits_of_an_iperf2_client_change_its_exit_code() {
    let server = Iperf2Server::start(Iperf2::Ours, "");
    let client = |limits: &str| {
        Iperf2::Ours
            .client(server.port, &format!("-n 1M --lr-expect {limits}"))
            .finish()
    };
    client("tx>1K").expect_clean();
    client("tx>900T")
        .expect_code(5)
        .expect_stderr("iperf: tx>900T: ");
    client("tx>")
        .expect_code(1)
        .expect_stderr("ERROR: --lr-expect: expected a number");
}

/// Two hosts with a shaper at the client, and a history of the client.
struct Path1G {
    net: Net,
    folder: TempDir,
    sides: usize,
}

impl Path1G {
    fn new() -> Option<Self> {
        let net = Net::new()?;
        run(&format!(
            "tc -n {} qdisc add dev {DEVICE} root tbf rate 1gbit burst 256k latency 10ms",
            net.a
        ));
        Some(Self {
            net,
            folder: tempfile::tempdir().expect("a temporary folder"),
            sides: 0,
        })
    }

    fn shape(&self, rate: &str) {
        run(&format!(
            "tc -n {} qdisc change dev {DEVICE} root tbf rate {rate} burst 256k latency 10ms",
            self.net.a
        ));
    }

    fn store(&self) -> PathBuf {
        self.folder.path().join("history.db")
    }

    /// Five short tests, recorded under one label, which is the name of the side.
    fn record(&mut self) -> String {
        self.sides += 1;
        let side = format!("side={}", self.sides);

        for _ in 0..5 {
            let record = format!("--lr-record={side}");
            let words = ["iperf3", "-c", SERVER, "-t", "1", &record];
            let mut command = inside(&self.net.a, ours().path(), &words);
            command.env("LINERATE_STORE", self.store());
            Process::start(command).finish().expect_clean();
        }

        format!("label:{side}")
    }

    fn compare(&self, a: &str, b: &str) -> Finished {
        linerate(&format!(
            "compare {a} {b} -v --store {}",
            self.store().display()
        ))
        .finish()
    }
}

/// Comparisons of equal paths, each with the one before; one of four is also with a slower shaper.
/// `make live SUITE=compare` makes more.
fn comparisons() -> usize {
    env::var("LINERATE_COMPARISONS").map_or(2, |count| {
        count.parse().expect("LINERATE_COMPARISONS is a number")
    })
}

#[allow(
    clippy::print_stderr,
    reason = "the reader of the test log must see the counts"
)]
#[test]
fn timed_equal_paths_are_rarely_worse_and_a_slower_shaper_always_is() {
    let Some(mut path) = Path1G::new() else {
        return;
    };
    let _server = path.net.server();
    let count = comparisons();
    let (mut worse, mut found_slower, mut before) = (Vec::new(), 0, path.record());

    for number in 0..count {
        let after = path.record();
        let found = path.compare(&before, &after);
        if found.code() == Some(10) {
            worse.push(found.stdout);
        }

        if number % 4 == 0 {
            path.shape("900mbit");
            let slower = path.record();
            path.shape("1gbit");

            let found = path.compare(&after, &slower);
            found.expect_code(10).expect_stdout("worse: received up");
            let names_shaper = found
                .stdout
                .contains("qdisc.root.rate_bps: 1000000000 in A, 900000000 in B");
            assert!(names_shaper, "{found:?}");
            found_slower += 1;
        }

        before = after;
    }

    eprintln!(
        "{} of {count} equal paths worse; {found_slower} of {found_slower} slower shapers found",
        worse.len()
    );
    assert!(
        worse.len() * 20 <= count.max(20),
        "{} of {count} equal: {worse:#?}",
        worse.len()
    );
}

#[test]
fn timed_settings_without_an_effect_are_listed_and_never_worse() {
    let Some(mut path) = Path1G::new() else {
        return;
    };
    let _server = path.net.server();
    let set =
        |net: &Net, setting: &str| run(&format!("ip netns exec {} sysctl -q {setting}", net.a));
    let before = path.record();

    run(&format!("ip -n {} link set {DEVICE} mtu 1480", path.net.a));
    // Of all algorithms every namespace may use this one.
    set(&path.net, "net.ipv4.tcp_congestion_control=reno");
    let after = path.record();
    let found = path.compare(&before, &after);
    assert!(matches!(found.code(), Some(0 | 11)), "{found:?}");
    found
        .expect_stdout("mtu: 1500 in A, 1480 in B")
        .expect_stdout("tcp_congestion_control: ")
        .expect_stdout("reno in B");
}
