//! Goal: no text of others drives the terminal of who reads it, or passes for other text. Method:
//! each command that prints what a file, a peer, a device or a name contains gets text with
//! control, direction and format characters.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use linerate_interop::{
    Finished, NativeHost, Process, RawNative, TIMEOUT, free_port, listens, ours, ours_only,
};
use serde_json::{Value, json};

/// Each kind of character that acts on what shows it: C0, DEL, C1, bidirectional, invisible, tags.
const HOSTILE: &str =
    "lab\u{1b}[2J\u{7f}\u{9b}31m\u{202e}\u{2066}\u{61c}\u{200b}\u{2028}\u{feff}\u{e0041}\rend";

fn acts(c: char) -> bool {
    let acting = "\u{202e}\u{2066}\u{61c}\u{200b}\u{2028}\u{feff}\u{e0041}";
    (c.is_control() && !matches!(c, '\n' | '\t')) || acting.contains(c)
}

#[track_caller]
fn expect_plain(what: &str, text: &str) {
    // Lines of CSV end with both (RFC 4180).
    let text = text.replace("\r\n", "\n");
    assert!(!text.contains(acts), "{what}: {text:?}");
}

/// A place of files with a history, and our program there.
struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().expect("a folder"),
        }
    }

    fn file(&self, name: &str, content: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        fs::write(&path, content).expect("our folder");
        path
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(ours().path());
        command
            .args(words)
            .env("LC_ALL", "C.UTF-8")
            .env("TZ", "UTC");
        command.env("LINERATE_STORE", self.folder.path().join("history.db"));
        command.env("XDG_STATE_HOME", self.folder.path());

        command
    }

    /// Runs the program; both of its streams are plain.
    #[track_caller]
    fn run(&self, words: &[&str]) -> Finished {
        let finished = Process::start(self.command(words)).finish();
        expect_plain(&format!("{words:?}"), &finished.stdout);
        expect_plain(&format!("{words:?}"), &finished.stderr);
        finished
    }
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// A record of a test with these rates, in which every text is hostile.
fn record(id: u8, rates: &[f64]) -> Value {
    let measures =
        |value: f64| json!([{ "name": "received_bps", "way": "forward", "value": value }]);
    let trials = (0..).zip(rates).map(|(no, rate): (u32, &f64)| {
        json!({
            "no": no, "state": "complete", "started_ns": 0, "elapsed_ns": 3_000_000_000_u64,
            "measures": measures(*rate), "series": [], "flags": [HOSTILE], "factors": { HOSTILE: HOSTILE },
        })
    });

    json!({
        "schema": "linerate.run/1", "run_id": format!("01890a5d-ac96-774b-bcce-b302099a80{id:02}"), "kind": "test",
        "state": "complete", "reason": HOSTILE, "title": HOSTILE, "started_at": "2026-01-31T12:00:00.000Z",
        "started_unix_ms": 1_769_860_800_000_u64 + u64::from(id), "elapsed_ns": 3_000_000_000_u64,
        "origin": { "tool": HOSTILE, "version": HOSTILE, "argv": [HOSTILE] },
        "path": { "key": HOSTILE, "spec_key": "", "client": HOSTILE, "server": HOSTILE },
        "trials": trials.collect::<Vec<_>>(), "body": "test", "notes": [HOSTILE], "labels": { "key": HOSTILE },
    })
}

#[test]
fn files_that_are_no_records_are_refused_in_plain_text() {
    ours_only!("the original keeps no records");
    let bench = Bench::new();

    let with = |member: &str, value: Value| {
        let mut record = record(1, &[1e9]);
        record[member] = value;
        record.to_string()
    };
    let hostile_member = record(1, &[1e9]).to_string().replacen(
        "\"elapsed_ns\":3",
        &format!("\"{}\":3", escaped(HOSTILE)),
        1,
    );

    let files = [
        ("schema", with("schema", HOSTILE.into())),
        ("kind", with("kind", HOSTILE.into())),
        (
            "name of a measure",
            with(
                "trials",
                json!([{ "measures": [{ "name": HOSTILE, "way": "forward", "value": 1 }] }]),
            ),
        ),
        ("member", hostile_member),
        ("no JSON", format!("{{\"{HOSTILE}\": ")),
    ];
    for (what, content) in files {
        let file = bench.file("run.json", &content);
        let file = text(&file);

        for words in [
            &["report", file][..],
            &["compare", file, file],
            &["history", "import", file],
        ] {
            let refused = bench.run(words);
            assert_ne!(refused.code(), Some(0), "{what}: {refused:?}");
            assert!(!refused.stderr.is_empty(), "{what}: {words:?}");
        }
    }
}

/// The characters of a text within a JSON text.
fn escaped(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

#[test]
fn records_are_listed_shown_exported_and_compared_in_plain_text() {
    ours_only!("the original keeps no records");
    let bench = Bench::new();
    let [a, b] = [1_u8, 2].map(|id| {
        bench.file(
            &format!("{id}.json"),
            &record(id, &[1e9, 1.1e9, 0.9e9, 1e9, 1e9]).to_string(),
        )
    });
    let (a, b) = (text(&a), text(&b));
    bench
        .run(&["history", "import", a, b])
        .expect_code(0)
        .expect_stdout("1 new");

    let mut shown = 0;
    for words in [
        "list",
        "list --json",
        "list --csv",
        "list --markdown",
        "show last",
        "show last --json",
    ] {
        let words: Vec<&str> = std::iter::once("history").chain(words.split(' ')).collect();
        let listed = bench.run(&words);
        listed.expect_code(0);
        shown += usize::from(listed.stdout.contains("lab"));
    }

    assert_eq!(shown, 6, "the text itself is shown");
    for form in ["csv", "series", "markdown", "prom", "otlp", "json"] {
        bench
            .run(&["history", "export", "last", "--form", form])
            .expect_code(0);
    }

    for words in [
        "show last --argv",
        "show last --series",
        "show last --as csv",
        "trend last",
        "baseline list",
        "check",
    ] {
        bench.run(
            &std::iter::once("history")
                .chain(words.split(' '))
                .collect::<Vec<_>>(),
        );
    }

    bench
        .run(&["report", a])
        .expect_code(0)
        .expect_stdout("lab");
    bench.run(&["report", a, "--as", "markdown"]).expect_code(0);

    for words in [&["compare", a, b][..], &["compare", a, b, "--json"]] {
        bench.run(words);
    }

    let pages = [
        ("report.html", vec!["report", a, "-o"]),
        ("compare.html", vec!["compare", a, b, "--html"]),
    ];
    for (name, mut words) in pages {
        let page = bench.file(name, "");
        words.push(text(&page));
        bench.run(&words);

        let page = fs::read_to_string(&page).expect("a page");
        assert!(page.contains("lab"), "{name}");
        expect_plain(name, &page);
    }
}

#[test]
fn names_of_files_are_quoted_in_plain_text() {
    ours_only!("the original has no such commands");
    let bench = Bench::new();
    let missing = bench.folder.path().join(HOSTILE).join("x.json");
    let no_record = bench.file(&format!("{HOSTILE}.json"), "{");
    let files = [text(&missing), text(&no_record)];
    for file in files {
        let list = format!("@{file}");
        for words in [
            &["report", file][..],
            &["compare", file, file],
            &["history", "import", file],
            &["doctor", "--from", file],
            &["fleet", "hosts", "-i", file],
            &["http", "lab", file, "http://127.0.0.1:1/"],
            &["links", file],
            &["serve", "--port", "0", "--deny", &list],
            &["serve", "--port", "0", "--no-iperf3", "--tokens", file],
            &["serve", "--port", "0", "--host-key", file],
            &["test", "127.0.0.1", "--token-file", file],
        ] {
            let refused = bench.run(words);
            assert_ne!(refused.code(), Some(0), "{refused:?}");
            assert!(!refused.stderr.is_empty(), "{words:?}");
        }
    }
}

#[test]
fn words_of_the_command_line_are_quoted_in_plain_text() {
    ours_only!("the original has no such commands");
    let bench = Bench::new();
    let url = format!("http://{HOSTILE}/");

    for words in [
        &[HOSTILE][..],
        &["test", HOSTILE, "--store", "off"],
        &["test", "127.0.0.1", "--pin", HOSTILE],
        &["sweep", HOSTILE],
        &["http", "load", &url],
        &["doctor", "--explain", HOSTILE],
        &["history", "show", HOSTILE],
        &["history", "baseline", "remove", HOSTILE],
        &["fleet", "cancel", HOSTILE],
        &["serve", "--allow", HOSTILE],
        &["iperf3", "-c", HOSTILE, "--lr-expect", HOSTILE],
    ] {
        let refused = bench.run(words);
        assert_ne!(refused.code(), Some(0), "{refused:?}");
    }
}

#[test]
fn facts_of_a_file_are_shown_in_plain_text() {
    ours_only!("the original has no doctor");
    let bench = Bench::new();
    // A format character of each kind that a name of a device or a line of a tool may hold.
    let name = "e\u{202e}th\u{200b}0\u{7f}";
    let pasted = format!(
        "### host={name} cmd=ip -d link\n2: {name}: <BROADCAST,UP,LOWER_UP> mtu 1500 qdisc \
         pfifo_fast state UP\n\
         ### host={name} cmd=ethtool {name}\nSettings for {name}:\n\tSpeed: 100Mb/s\n\tDuplex: \
         Half\n\
         \tAuto-negotiation: off\n{HOSTILE}\nnothing of this is {HOSTILE}\n"
    );
    let file = bench.file("facts.txt", &pasted);

    for words in [
        &["doctor", "--from", text(&file)][..],
        &["doctor", "--from", text(&file), "-v"],
    ] {
        bench.run(words);
    }

    for option in ["--json", "--fix-script"] {
        bench.run(&["doctor", "--from", text(&file), option]);
    }

    let saved = bench.folder.path().join("saved.json");
    Process::start(bench.command(&["doctor", "--store", "off", "--save", text(&saved)])).finish();
    let mut snapshot: Value =
        serde_json::from_str(&fs::read_to_string(&saved).expect("saved")).expect("JSON");
    snapshot["host"] = HOSTILE.into();
    snapshot["kernel"] = HOSTILE.into();

    let hostile = json!({ "v": HOSTILE, "src": HOSTILE });
    snapshot["facts"]["nic.eth9.drv.name"] = hostile;
    let file = bench.file("snapshot.json", &snapshot.to_string());

    for option in ["-v", "--json", "--fix-script"] {
        bench
            .run(&["doctor", "--from", text(&file), option])
            .expect_code(0);
    }
}

#[test]
fn inventories_are_shown_in_plain_text() {
    ours_only!("the original has no fleet");
    let bench = Bench::new();

    // Control characters are refused; the others of the kind are replaced.
    for (text_of_host, code) in [("\u{202e}\u{2066}\u{61c}\u{200b}rack", 0), (HOSTILE, 2)] {
        let inventory = format!(
            "[[host]]\nname = \"h1\"\nrack = {0}\nlabels = {{ site = {0} }}\n\n[[host]]\nname = \
             \"h2\"\n",
            Value::from(text_of_host)
                .to_string()
                .replace('\u{7f}', "\\u007f")
        );
        let file = bench.file("lab.toml", &inventory);

        for words in [
            &["fleet", "hosts", "-i", text(&file)][..],
            &["fleet", "hosts", "-i", text(&file), "--json"],
        ] {
            let listed = bench.run(words);
            assert_eq!(listed.code() == Some(0), code == 0, "{listed:?}");
        }
    }
}

#[test]
fn clients_are_logged_in_plain_text() {
    ours_only!("the original has no such service");
    let host = NativeHost::here();

    for format in ["text", "json"] {
        let port = free_port();
        let mut command =
            host.command(&["serve", "--port", &port.to_string(), "--log-format", format]);
        command.env("LINERATE_LOG", "debug");

        let mut server = Process::start(command);
        server.wait_until_up(|| listens(port));
        let mut client = RawNative::connect((Ipv4Addr::LOCALHOST, port));
        client.send(json!({ "type": HOSTILE }));

        let _ = client.drain();
        server.wait_for_stdout("started no test", 1);
        expect_plain("log", &server.stdout());
        expect_plain("messages", &server.stderr());
        assert!(
            server.stdout().contains("lab"),
            "the text of the client is quoted: {server:?}"
        );
    }
}

#[test]
fn servers_are_introduced_in_plain_text() {
    ours_only!("the original has no load generator");
    let bench = Bench::new();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let url = format!("http://{}/", listener.local_addr().expect("an address"));
    let name = HOSTILE.replace('\r', "");
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let name = name.clone();
            thread::spawn(move || {
                let mut request = [0; 4096];
                while stream.read(&mut request).is_ok_and(|count| count > 0) {
                    let response =
                        format!("HTTP/1.1 200 OK\r\nServer: {name}\r\nContent-Length: 0\r\n\r\n");
                    if stream.write_all(response.as_bytes()).is_err() {
                        return;
                    }
                }
            });
        }
    });

    let command = bench.command(&[
        "http",
        "load",
        &url,
        "--duration",
        "1s",
        "--connections",
        "1",
        "--store",
        "off",
    ]);
    let load = Process::start(command).finish_within(TIMEOUT);
    expect_plain("report", &load.stdout);
    expect_plain("progress", &load.stderr);
}
