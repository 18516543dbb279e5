//! Help texts change on purpose only: they are compared with the files beside this one, which
//! `UPDATE_SNAPSHOTS=1 cargo test -p linerate-cli --test snapshots` rewrites. Manual pages and
//! completions are generated from the same definitions; they must hold every option of the help.

use std::path::Path;
use std::process::Command;

fn stdout_of(args: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_linerate"))
        .args(args)
        .env("COLUMNS", "100")
        .output()
        .expect("the program was just built");
    assert!(output.status.success(), "{args:?}");
    String::from_utf8(output.stdout).expect("our own texts are UTF-8")
}

#[test]
fn texts_are_as_reviewed() {
    let rows: &[(&str, &[&str])] = &[
        ("help.txt", &["--help"]),
        ("test-help.txt", &["test", "--help"]),
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
    ];
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots");
    let update = std::env::var_os("UPDATE_SNAPSHOTS").is_some();

    for (name, args) in rows {
        let actual = stdout_of(args).replace(env!("CARGO_PKG_VERSION"), "VERSION");
        let path = directory.join(name);

        if update {
            std::fs::write(&path, &actual).expect("a writable source tree");
        }

        let expected = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(actual, expected, "{name}");
    }
}

#[test]
fn replaced_commands_name_the_one_to_use() {
    for (args, command) in [
        (
            &["http", "matrix", "http://h/", "--quick"][..],
            "http lab --phases 2",
        ),
        (&["http", "c10k", "--help"], "http lab --phases 3"),
        (&["http", "check"], "http lab --check"),
        (&["http", "compare", "before", "after"], "compare"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_linerate"))
            .args(args)
            .output()
            .expect("the program was just built");
        let text = String::from_utf8(output.stderr).expect("our own texts are UTF-8");
        assert_eq!(output.status.code(), Some(2), "{args:?}: {text}");
        assert!(
            text.contains(&format!("use: linerate {command}\n")),
            "{text}"
        );
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
        concat!("iperf 3.22 (linerate ", env!("CARGO_PKG_VERSION"), ")")
    );
    assert!(
        system.starts_with("Linux ") && system.split(' ').count() >= 5,
        "{system}"
    );
    assert!(
        features.starts_with("Optional features available: "),
        "{features}"
    );
}

#[test]
fn the_schema_of_records_is_the_published_one() {
    let published =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/schema/linerate.run.1.json");
    assert_eq!(
        stdout_of(&["generate", "schema"]),
        std::fs::read_to_string(published).expect("the schema")
    );
}

#[test]
fn native_usage_errors_exit_with_2() {
    for args in [&["nosuch"][..], &["links"], &["generate", "nosuch"], &[]] {
        let output = Command::new(env!("CARGO_BIN_EXE_linerate"))
            .args(args)
            .output()
            .expect("the program was just built");
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(
            output.stdout.is_empty() && !output.stderr.is_empty(),
            "{args:?}"
        );
    }
}

#[test]
fn links_lead_to_this_program_until_they_are_removed() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let program = env!("CARGO_BIN_EXE_linerate");
    let call = |args: &[&str]| {
        let output = Command::new(program)
            .arg("links")
            .args(args)
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
            ("iperf3", "iperf 3.22 "),
            ("iperf", "iperf version 2."),
            ("iperf2", "iperf version 2."),
        ] {
            assert!(
                text.contains(&format!("{name} starts linerate (")),
                "{text}"
            );
            let output = Command::new(directory.path().join(name))
                .arg("-v")
                .output()
                .expect("a link");
            let text = String::from_utf8([output.stdout, output.stderr].concat())
                .expect("our own texts are UTF-8");
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
fn every_option_of_a_help_text_is_in_its_manual_page_and_its_completions() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let written = stdout_of(&[
        "generate",
        "man",
        "--dir",
        directory.path().to_str().expect("a plain name"),
    ]);

    let shells = ["bash", "zsh", "fish"];
    let native = shells.map(|shell| stdout_of(&["generate", "completions", shell]));
    let iperf3 = shells.map(|shell| stdout_of(&["generate", "completions", shell, "iperf3"]));
    let mut pages = 0;

    for path in written.lines().filter(|path| path.ends_with(".1")) {
        let page = std::fs::read_to_string(path).expect("it was written");
        assert!(page.contains("\n.TH LINERATE"), "{page}");
        let name = Path::new(path).file_stem().and_then(|name| name.to_str());
        let command: Vec<&str> = name.expect("a plain name").split('-').skip(1).collect();
        let (completions, required) = match command.as_slice() {
            ["iperf2"] => (&native, 50),
            ["iperf3"] => (&iperf3, 80),
            _ => (&native, 1),
        };

        // iperf 2.1.8 writes its help to standard error.
        let format = (command == ["iperf2"]).then_some("--lr-format=2.2");
        let help = stdout_of(&[&command, format.as_slice(), &["--help"]].concat());
        let options = long_options(&help);
        assert!(options.len() >= required, "{help}");

        for option in options {
            let escaped = format!("\\-\\-{}", option.replace('-', "\\-"));
            assert!(page.contains(&escaped), "--{option}: {page}");

            // There are no completions for the options of iperf 2.
            if command != ["iperf2"] {
                let [bash, zsh, fish] = completions;
                assert!(
                    bash.contains(&format!("--{option} "))
                        || bash.contains(&format!("--{option}\"")),
                    "--{option}: {bash}"
                );
                assert!(
                    zsh.contains(&format!("--{option}[")) || zsh.contains(&format!("--{option}=")),
                    "--{option}: {zsh}"
                );
                // clap_complete has two levels of commands for fish.
                assert!(
                    command.len() > 2 || fish.contains(&format!(" -l {option} ")),
                    "--{option}: {fish}"
                );
            }
        }

        pages += 1;
    }

    assert!(
        pages > 15 && written.contains("man7/linerate-logins.7"),
        "{written}"
    );
}

/// The long options a help text lists, without the dashes: from lines that begin with an option.
fn long_options(help: &str) -> Vec<&str> {
    let lines = help
        .lines()
        .filter(|line| line.starts_with("  -") || line.starts_with("      --"));
    let names = lines
        .filter_map(|line| line.split_once("--"))
        .map(|(_, rest)| rest);
    names
        .filter_map(|rest| {
            rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '-')
                .next()
        })
        .filter(|name| !name.is_empty())
        .collect()
}

#[test]
fn options_of_a_dialect_without_its_name_suggest_the_subcommand() {
    let rows = [
        (
            &["-c", "192.0.2.7", "-R"][..],
            "`linerate iperf3 -c 192.0.2.7 -R`",
        ),
        (&["-s"], "`linerate serve`"),
        (
            &["-e", "-c", "192.0.2.7"],
            "`linerate iperf2 -e -c 192.0.2.7`",
        ),
    ];
    for (args, suggestion) in rows {
        let output = Command::new(env!("CARGO_BIN_EXE_linerate"))
            .args(args)
            .output()
            .expect("the program was just built");
        let text = String::from_utf8(output.stderr).expect("our own texts are UTF-8");
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(
            text.contains(suggestion) && output.stdout.is_empty(),
            "{text}"
        );
    }
}
