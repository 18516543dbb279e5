//! The drop-in build names the program that has what it leaves out.
#![cfg(not(feature = "full"))]

use std::process::{Command, Output};

fn run(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_linerate"))
        .args(words)
        .output()
        .expect("the program was just built")
}

#[test]
fn a_command_of_the_full_program_is_refused_by_name() {
    for words in [
        &["doctor", "eth0", "--window", "5s"][..],
        &["doctor", "--help"],
        &["sweep", "192.0.2.7"],
        &["http", "serve"],
        &["history", "list"],
        &["compare", "last~1", "last"],
        &["report", "last"],
        &["watch", "--every", "5m", "--", "iperf3", "-c", "192.0.2.7"],
        &[
            "generate",
            "systemd",
            "--every",
            "5m",
            "--",
            "iperf3",
            "-c",
            "192.0.2.7",
        ],
        &["serve", "--record"],
    ] {
        let output = run(words);
        let text = String::from_utf8_lossy(&output.stderr);

        let name = words
            .iter()
            .rfind(|word| ["systemd", "--record"].contains(word))
            .or(words.first())
            .expect("words");
        assert!(text.contains(name), "{words:?}: {text}");
        assert!(
            text.contains("is not in this build; the full program `linerate` has it\n"),
            "{words:?}: {text}"
        );
        assert_eq!(
            (output.status.code(), output.stdout.len()),
            (Some(2), 0),
            "{words:?}"
        );
    }
}

#[test]
fn an_option_of_the_full_program_is_refused_as_the_dialect_refuses_values() {
    for words in [
        &["iperf3", "-c", "192.0.2.7", "--lr-doctor"][..],
        &["iperf3", "-c", "192.0.2.7", "--lr-expect=rx>=1M"],
        &["iperf3", "-s", "--lr-record"],
        &["iperf2", "-c", "192.0.2.7", "--lr-expect=rx>=1M"],
        &["iperf2", "-c", "192.0.2.7", "--lr-record=a=b"],
    ] {
        let output = run(words);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(
            text.contains("is not in this build; the full program `linerate` has it\n"),
            "{words:?}: {text}"
        );
        assert_eq!(
            (output.status.code(), output.stdout.len()),
            (Some(1), 0),
            "{words:?}"
        );
    }
}

#[test]
fn the_help_lists_only_what_is_there() {
    let help = String::from_utf8(run(&["--help"]).stdout).expect("our own texts are UTF-8");
    for absent in [
        "doctor", "sweep", "compare", "history", "http", "watch", "report ",
    ] {
        assert!(
            !help.contains(&format!("  {absent}")) && !help.contains(&format!("linerate {absent}")),
            "{help}"
        );
    }

    for present in ["iperf3", "iperf2", "serve", "try", "links", "generate"] {
        assert!(
            help.contains(&format!("\n  {present} ")),
            "{present}: {help}"
        );
    }

    for (command, absent) in [("serve", "--record"), ("generate", "generate systemd")] {
        let help =
            String::from_utf8(run(&[command, "--help"]).stdout).expect("our own texts are UTF-8");
        assert!(!help.contains(absent), "{help}");
    }
}
