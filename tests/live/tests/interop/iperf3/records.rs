//! Records of tests in the history: asked for, they change nothing a script sees; otherwise nothing
//! is written.

use std::fs;
use std::process::Command;

use linerate_interop::{Process, Server, ours_only, skip, traced};

fn names(value: &serde_json::Value) -> Vec<String> {
    let members = value.as_object().into_iter().flatten();
    members
        .flat_map(|(name, inner)| [vec![name.clone()], names(inner)].concat())
        .collect()
}

#[test]
fn a_recorded_test_has_the_same_report_and_is_in_the_history() {
    let program = ours_only!("the original keeps no records");
    let folder = tempfile::tempdir().expect("a folder");
    let history = folder.path().join("history.db");
    let server = Server::start(program, &[]);
    let plain = server.run(program, &["-J", "-n", "64K"]);
    let port = server.port.to_string();

    let mut command = program.command([
        "-c",
        "127.0.0.1",
        "-p",
        &port,
        "-J",
        "-n",
        "64K",
        "--lr-record=site=lab",
    ]);
    command.env("LINERATE_STORE", &history);
    let recorded = Process::start(command).finish();
    let members = |text: &str| names(&serde_json::from_str(text).expect("JSON"));
    assert_eq!(
        members(&recorded.expect_clean().stdout),
        members(&plain.expect_clean().stdout)
    );

    let database = fs::read(&history).expect("the history");
    assert!(database.starts_with(b"SQLite format 3\0"));
}

#[test]
fn a_history_that_cannot_be_written_is_one_line_on_stderr() {
    let program = ours_only!("the original keeps no records");
    let server = Server::start(program, &[]);
    let port = server.port.to_string();
    let mut command = program.command(["-c", "127.0.0.1", "-p", &port, "-n", "64K", "--lr-record"]);
    command.env("LINERATE_STORE", "/proc/none/history.db");

    let finished = Process::start(command).finish();
    finished.expect_code(0).expect_stdout("iperf Done.");
    assert_eq!(finished.stderr.lines().count(), 1, "{finished:?}");
    finished.expect_stderr("linerate: record lost");
}

#[test]
fn without_the_option_no_file_is_opened_for_writing() {
    let program = ours_only!("the original keeps no records");
    let folder = tempfile::tempdir().expect("a folder");
    let history = folder.path().join("history.db");
    let server = Server::start(program, &[]);
    let mut client = Command::new(program.path());
    client
        .args([
            "iperf3",
            "-c",
            "127.0.0.1",
            "-p",
            &server.port.to_string(),
            "-n",
            "64K",
        ])
        .env("LINERATE_STORE", &history);

    let Some((finished, trace)) = traced(&client, "open,openat,creat") else {
        return skip("strace is not installed");
    };
    finished.expect_clean();
    assert!(
        trace.contains("O_RDONLY"),
        "strace saw the program: {trace}"
    );

    let writes = ["O_WRONLY", "O_RDWR", "O_CREAT", "creat("];
    let opened: Vec<&str> = trace
        .lines()
        .filter(|line| writes.iter().any(|flag| line.contains(flag)))
        .collect();
    assert_eq!(opened, Vec::<&str>::new());
    assert!(!history.exists());
}
