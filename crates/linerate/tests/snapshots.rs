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
        ("generate-help.txt", &["generate", "--help"]),
        ("generate-user-help.txt", &["generate", "user", "--help"]),
        ("linerate.1", &["generate", "man"]),
        ("linerate-serve.1", &["generate", "man", "linerate-serve"]),
        ("linerate-logins.7", &["generate", "man", "linerate-logins"]),
        ("linerate.bash", &["generate", "completions", "bash"]),
        ("_linerate", &["generate", "completions", "zsh"]),
        ("linerate.fish", &["generate", "completions", "fish"]),
        ("iperf3.1", &["generate", "man", "linerate-iperf3"]),
        ("iperf2.1", &["generate", "man", "linerate-iperf2"]),
        ("iperf3.bash", &["generate", "completions", "bash", "iperf3"]),
        ("_iperf3", &["generate", "completions", "zsh", "iperf3"]),
        ("iperf3.fish", &["generate", "completions", "fish", "iperf3"]),
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
fn links_lead_to_this_program_until_they_are_removed() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let program = env!("CARGO_BIN_EXE_linerate");
    let call = |words: &[&str]| {
        let output = Command::new(program)
            .arg("links")
            .args(words)
            .arg(directory.path())
            .env("PATH", directory.path())
            .output()
            .expect("just built");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).expect("our own texts are UTF-8")
    };
    for _ in 0..2 {
        // A second time changes nothing.
        let text = call(&[]);
        for (name, version) in [
            ("iperf3", "iperf 3.21 "),
            ("iperf", "iperf version 2."),
            ("iperf2", "iperf version 2."),
        ] {
            assert!(text.contains(&format!("{name} starts linerate (")), "{text}");
            let output = Command::new(directory.path().join(name))
                .arg("-v")
                .output()
                .expect("a link");
            let text = String::from_utf8([output.stdout, output.stderr].concat()).expect("our own texts are UTF-8");
            assert!(text.starts_with(version), "{text}");
        }
    }
    std::fs::remove_file(directory.path().join("iperf")).expect("it was just made");
    std::fs::write(directory.path().join("iperf"), "another").expect("a writable directory");
    let text = call(&["--remove"]);
    assert!(
        text.contains("left in place: ") && text.contains("iperf3 is not on the PATH"),
        "{text}"
    );
    let left: Vec<_> = std::fs::read_dir(directory.path())
        .expect("a directory")
        .flatten()
        .collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn the_manual_is_installed_with_all_its_pages() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().to_str().expect("a plain name");
    let written = stdout_of(&["generate", "man", "--dir", path]);
    for page in [
        "man1/linerate.1",
        "man1/linerate-iperf2.1",
        "man1/linerate-http-lab.1",
        "man7/linerate-logins.7",
    ] {
        assert!(written.contains(page), "{written}");
        let text = std::fs::read_to_string(directory.path().join(page)).expect("it was written");
        assert!(text.starts_with(".TH LINERATE"), "{text}");
    }
}

#[test]
fn options_of_a_dialect_without_its_name_suggest_the_subcommand() {
    let rows = [
        (&["-c", "192.0.2.7", "-R"][..], "`linerate iperf3 -c 192.0.2.7 -R`"),
        (&["-s"], "`linerate serve`"),
        (&["-e", "-c", "192.0.2.7"], "`linerate iperf2 -e -c 192.0.2.7`"),
    ];
    for (words, suggestion) in rows {
        let output = Command::new(env!("CARGO_BIN_EXE_linerate"))
            .args(words)
            .output()
            .expect("the program was just built");
        let text = String::from_utf8(output.stderr).expect("our own texts are UTF-8");
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(text.contains(suggestion) && output.stdout.is_empty(), "{text}");
    }
}
