//! The drop-in program refuses what it leaves out.
#![cfg(not(feature = "full"))]

use std::process::{Command, Output};

fn run(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_linerate"))
        .args(args)
        .output()
        .expect("the program was just built")
}

#[test]
fn a_command_of_the_full_program_is_unknown() {
    for args in [
        &["doctor", "eth0", "--window", "5s"][..],
        &["sweep", "192.0.2.7"],
        &["http", "serve"],
        &["watch", "--every", "5m", "--", "iperf3", "-c", "192.0.2.7"],
        &["generate", "systemd", "--every", "5m"],
        &["serve", "--record"],
        &["serve", "--tui"],
    ] {
        let output = run(args);
        assert_eq!(
            (output.status.code(), output.stdout.len()),
            (Some(2), 0),
            "{args:?}"
        );
    }
}

#[test]
fn an_option_of_the_full_program_is_refused_as_the_dialect_refuses_values() {
    for args in [
        &["iperf3", "-c", "192.0.2.7", "--lr-doctor"][..],
        &["iperf3", "-c", "192.0.2.7", "--lr-expect=rx>=1M"],
        &["iperf3", "-s", "--lr-record"],
        &["iperf2", "-c", "192.0.2.7", "--lr-expect=rx>=1M"],
        &["iperf2", "-c", "192.0.2.7", "--lr-record=a=b"],
    ] {
        let output = run(args);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(
            text.contains("is not in this build; the full program `linerate` has it\n"),
            "{args:?}: {text}"
        );
        assert_eq!(
            (output.status.code(), output.stdout.len()),
            (Some(1), 0),
            "{args:?}"
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
