//! Goal: nobody changes a help text, manual page or completion unknowingly. Method: compare with files beside this one;
//! `UPDATE_SNAPSHOTS=1 cargo test -p linerate --test snapshots` rewrites them.

use std::path::Path;
use std::process::Command;

fn stdout_of(words: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_linerate"))
        .args(words)
        .env("COLUMNS", "100")
        .output()
        .expect("the program was just built");
    assert!(output.status.success(), "{words:?}");
    String::from_utf8(output.stdout).expect("our own texts are UTF-8")
}

#[test]
fn texts_are_as_reviewed() {
    let rows: &[(&str, &[&str])] = &[
        ("help.txt", &["--help"]),
        ("serve-help.txt", &["serve", "--help"]),
        ("links-help.txt", &["links", "--help"]),
        ("doctor-help.txt", &["doctor", "--help"]),
        ("sweep-help.txt", &["sweep", "--help"]),
        ("http-help.txt", &["http", "--help"]),
        ("http-serve-help.txt", &["http", "serve", "--help"]),
        ("http-agent-help.txt", &["http", "agent", "--help"]),
        ("iperf3-help.txt", &["iperf3", "--help"]),
        ("iperf2-help.txt", &["iperf2", "--lr-format=2.2", "--help"]),
        ("linerate.1", &["generate", "man"]),
        ("linerate.bash", &["generate", "bash"]),
        ("_linerate", &["generate", "zsh"]),
        ("linerate.fish", &["generate", "fish"]),
        ("iperf3.1", &["generate", "man-iperf3"]),
        ("iperf3.bash", &["generate", "bash-iperf3"]),
        ("_iperf3", &["generate", "zsh-iperf3"]),
        ("iperf3.fish", &["generate", "fish-iperf3"]),
    ];
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots");
    let update = std::env::var_os("UPDATE_SNAPSHOTS").is_some();
    for (name, words) in rows {
        let actual = stdout_of(words).replace(env!("CARGO_PKG_VERSION"), "VERSION");
        let path = directory.join(name);
        if update {
            std::fs::write(&path, &actual).expect("a writable source tree");
        }
        let expected = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(actual, expected, "{name}");
    }
}

#[test]
fn the_version_names_both_programs() {
    let text = stdout_of(&["iperf3", "--version"]);
    let lines: Vec<&str> = text.lines().collect();
    let [version, system, features] = lines.as_slice() else {
        panic!("three lines: {text}");
    };
    assert_eq!(
        *version,
        concat!("iperf 3.21 (linerate ", env!("CARGO_PKG_VERSION"), ")")
    );
    assert!(
        system.starts_with("Linux ") && system.split(' ').count() >= 5,
        "{system}"
    );
    assert!(features.starts_with("Optional features available: "), "{features}");
}

#[test]
fn native_usage_errors_exit_with_2() {
    for words in [&["nosuch"][..], &["links"], &["generate", "nosuch"], &[]] {
        let output = Command::new(env!("CARGO_BIN_EXE_linerate"))
            .args(words)
            .output()
            .expect("the program was just built");
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(output.stdout.is_empty() && !output.stderr.is_empty(), "{words:?}");
    }
}

#[test]
fn links_lead_to_this_program() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let program = env!("CARGO_BIN_EXE_linerate");
    let call = || {
        Command::new(program)
            .arg("links")
            .arg(directory.path())
            .status()
            .expect("just built")
    };
    assert!(call().success());
    assert!(call().success(), "a second time changes nothing");
    let output = Command::new(directory.path().join("iperf3"))
        .arg("-v")
        .output()
        .expect("a link");
    assert!(output.stdout.starts_with(b"iperf 3.21 "));
}
