//! Goal: command lines of iperf 2 are answered in the args of the original, on the same stream,
//! with the same exit code. Method: recorded answers of 2.1.8 and 2.2.1, and a table of the
//! peculiarities of their option parser.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Time after which a program that has begun to test or to serve is ended; what it said about its
/// command line is out by then.
const LIMIT: Duration = Duration::from_secs(2);

/// Runs the program under another name, with a closed standard input and these variables only.
fn call_as(name: &str, args: &[&str], variables: &[(&str, &str)]) -> Output {
    let child = Command::new(env!("CARGO_BIN_EXE_linerate"))
        .arg0(name)
        .args(args)
        .env_clear()
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program was just built");
    let id = child.id();
    let (done, outcome) = mpsc::channel();
    thread::spawn(move || done.send(child.wait_with_output()));

    let output = outcome.recv_timeout(LIMIT).unwrap_or_else(|_| {
        let ended = Command::new("kill").arg(id.to_string()).status();
        assert!(ended.is_ok(), "kill is part of every system");
        outcome.recv().expect("the thread answers")
    });
    output.expect("a program that was started ends")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Options of a recorded client, and its message.
struct Recorded {
    args: Vec<String>,
    exit_status: String,
    stderr: String,
}

fn recorded(release: &str, case: &str) -> Recorded {
    let name = format!("../../../fixtures/iperf2/text-{release}/err_{case}.txt");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    let text = std::fs::read_to_string(&path).expect("a fixture for every case");
    let line = |start: &str| {
        text.lines()
            .find_map(|line| line.strip_prefix(start))
            .unwrap_or_default()
    };
    let command = line("# client: iperf ")
        .split("   (")
        .next()
        .unwrap_or_default();
    let command = command.split(" (iperf").next().unwrap_or_default();
    let stderr = text
        .split("=== client stderr ===\n")
        .nth(1)
        .unwrap_or_default();
    let stderr = stderr.split("=== ").next().unwrap_or_default();

    Recorded {
        args: command.split_whitespace().map(str::to_owned).collect(),
        exit_status: line("# client exit status: ")
            .split(',')
            .next()
            .unwrap_or_default()
            .to_owned(),
        stderr: stderr.to_owned(),
    }
}

fn call_recorded(release: &str, recorded: &Recorded) -> Output {
    let mut args: Vec<&str> = recorded.args.iter().map(String::as_str).collect();
    if release == "221" {
        args.insert(0, "--lr-format=2.2");
    }
    call_as("iperf", &args, &[])
}

/// Command lines that end before a test, in both releases.
const ENDED: [&str; 14] = [
    "C_R",
    "R_d",
    "b_pps_tcp",
    "b_small",
    "badlong",
    "badopt",
    "bounceback_server",
    "i_bad",
    "missingarg",
    "n_bad",
    "noargs",
    "t_bad",
    "u_X",
    "triptimes_l32",
];

#[test]
fn a_server_whose_name_is_unknown_shows_in_the_exit_code() {
    // No resolver is asked for a name with an empty label.
    let output = call_as("iperf", &["-c", "no..such", "-t", "1"], &[]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!(stderr(&output), "no..such: Host name lookup failure\n");
}

#[test]
fn command_lines_that_go_nowhere_get_the_recorded_answer() {
    for release in ["218", "221"] {
        for case in ENDED {
            // 2.1.8 accepts blocks that are too small to measure anything; we follow 2.2.1 in that.
            let recorded = recorded(
                if case == "triptimes_l32" {
                    "221"
                } else {
                    release
                },
                case,
            );
            let output = call_recorded(release, &recorded);
            assert_eq!(stderr(&output), recorded.stderr, "{release} {case}");

            let code = output.status.code().expect("an exit code").to_string();
            assert_eq!(code, recorded.exit_status, "{release} {case}");
            assert!(output.stdout.is_empty(), "{release} {case}");
        }
    }
}

#[test]
fn remarks_come_before_the_test_as_recorded() {
    for release in ["218", "221"] {
        for case in [
            "extra",
            "x_bad",
            "y_bad",
            "w_small",
            "i_small",
            "s_triptimes",
        ] {
            let recorded = recorded(release, case);
            // What the recorded test itself said.
            let remarks: String = recorded
                .stderr
                .split_inclusive('\n')
                .filter(|line| !line.contains("tcp connect"))
                .collect();
            assert!(!remarks.is_empty(), "{release} {case}");

            let output = call_recorded(release, &recorded);
            assert!(
                stderr(&output).starts_with(&remarks),
                "{release} {case}: {}",
                stderr(&output)
            );
        }
    }
}

#[test]
fn help_and_version_go_where_the_release_sends_them() {
    for (release, format) in [("218", "2.1"), ("221", "2.2")] {
        for (case, option) in [("h", "-h"), ("v", "-v")] {
            let recorded = recorded(release, case);
            let output = call_as("iperf", &["--lr-format", format, option], &[]);
            assert_eq!(
                output.status.code().expect("a code").to_string(),
                recorded.exit_status,
                "{release} {case}"
            );
            assert_eq!(
                output.stderr.is_empty(),
                recorded.stderr.is_empty(),
                "{release} {case}"
            );

            let text =
                String::from_utf8([output.stdout, output.stderr].concat()).expect("our own text");
            let start = if case == "h" {
                "Usage: iperf [-s|-c host] [options]".to_owned()
            } else {
                format!(
                    "iperf version {} (linerate ",
                    if release == "218" { "2.1.8" } else { "2.2.1" }
                )
            };
            assert!(text.starts_with(&start), "{release} {case}: {text}");
        }
    }
}

/// Expected answer of a row of the table below.
enum Answer {
    /// This on stderr, this exit code, no test.
    Ended(&'static str, i32),
    /// This on stderr, and then a test.
    Tested(&'static str),
}

#[test]
fn options_are_read_as_the_original_reads_them() {
    use Answer::{Ended, Tested};

    const USAGE: &str =
        "Usage: iperf [-s|-c host] [options]\nTry `iperf --help' for more information.\n";

    let rows = [
        ("-c h --b", Tested("iperf: option `--b' is ambiguous\n")),
        (
            "-c h --in 1",
            Tested("iperf: option `--in' is ambiguous\niperf: ignoring extra argument -- 1\n"),
        ),
        ("-c h -Q -t 1", Tested("iperf: invalid option -- Q\n")),
        ("-c h --enh --paral=3 -i1 -P2", Tested("")),
        (
            "-c h --server=1",
            Tested("iperf: option `--server' doesn't allow an argument\n"),
        ),
        (
            "-c h -t",
            Tested("iperf: option requires an argument -- t\n"),
        ),
        (
            "-c h --isochronous 60:10m,1m",
            Tested("iperf: ignoring extra argument -- 60:10m,1m\n"),
        ),
        (
            "-c h --bounceback 5",
            Tested("iperf: ignoring extra argument -- 5\n"),
        ),
        (
            "-c h -s",
            Tested("WARNING: option -s is not valid for client mode\n"),
        ),
        ("-s -c h", Tested("")),
        (
            "-d -c h",
            Tested("WARNING: option -d is not valid for server mode\n"),
        ),
        (
            "-c h -D",
            Ended("Iperf client cannot be run as a daemon\n", 0),
        ),
        (
            "-c h -W",
            Tested("The -W option is not available in this release\n"),
        ),
        (
            "-c h -p 1-3",
            Tested("WARNING: port-range and -P mismatch (adjusting -P to 3)\n"),
        ),
        ("-c h -p 1-3 -P 3", Tested("")),
        (
            "-c h -t 0",
            Tested(
                "WARNING: client will send traffic forever or until an external signal (e.g. \
                 SIGINT or SIGTERM) occurs to stop it\n",
            ),
        ),
        ("-c h -S xyz", Tested("Invalid --tos value of xyz\n")),
        (
            "-c h -C -X",
            Tested(
                "WARNING: Options of '-C' '--compatibility' AND '-X' '--peerdetect' are mutually \
                 exclusive, --peerdetect ignored\n",
            ),
        ),
        (
            "-c h -C -d",
            Ended(
                "WARNING: option -d is not valid in compatibility mode\nERROR: compatibility mode \
                 not supported with the requested with options\n",
                1,
            ),
        ),
        (
            "-c 239.1.1.1 -u -P 2",
            Ended(
                "ERROR: client option of -P greater than 1 not supported with multicast address\n",
                1,
            ),
        ),
        (
            "-c h --permit-key=abc",
            Ended(
                "ERROR: value for --permit-key must have at least 4 characters\n",
                1,
            ),
        ),
        (
            "-c h --permit-key",
            Ended(
                "ERROR: option of --permit-key requires a value on the client\n",
                1,
            ),
        ),
        (
            "-c h --burst-size 100",
            Ended(
                "ERROR: option of --burst-size 100 must be equal or larger to write length (-l) \
                 131072\n",
                1,
            ),
        ),
        (
            "-c h --isochronous -b 5m",
            Ended(
                "ERROR: options of --b and --isochronous cannot be applied together\n",
                1,
            ),
        ),
        (
            "-c h --isochronous=0",
            Ended(
                "Invalid value for frames per second in the isochronous settings\n",
                0,
            ),
        ),
        (
            "-c h -u --permit-key=abcdef",
            Ended("ERROR: Option of --permit-key not supported with UDP\n", 1),
        ),
        (
            "-c h --sum-dstip",
            Tested("WARN: option of --sum-dstip not supported on the client\n"),
        ),
        (
            "-s -X",
            Tested("WARN: option of -X or --peer-detect not supported on the server\n"),
        ),
        // What the original does not do, but should.
        (
            "-c h -p 99999",
            Ended("ERROR: -p port of '99999' must be between 1 and 65535\n", 1),
        ),
        (
            "-c h -u -l 4",
            Ended(
                "ERROR: datagrams (-l) of 4 bytes are not possible, use 16 to 65507\n",
                1,
            ),
        ),
        (
            "-c h --bounceback -l 40",
            Ended(
                "ERROR: a bounceback request of 40 bytes is too small, must be 64 or greater\n",
                1,
            ),
        ),
        (
            "-c h -R -n 3G",
            Ended(
                "ERROR: -n of 3221225472 bytes is more than a server can be asked for, use at most \
                 2147483647\n",
                1,
            ),
        ),
        ("-c h -n 3G", Tested("")),
        (
            "-c h --tap-dev",
            Ended(
                "ERROR: --tap-dev is not supported: data go through sockets only\n",
                1,
            ),
        ),
        (
            "-c h --lr-format 3",
            Ended("ERROR: --lr-format must be 2.1 or 2.2, not '3'\n", 1),
        ),
        ("", Ended(USAGE, 0)),
        ("-t 3", Ended(USAGE, 0)),
    ];
    for (line, expected) in rows {
        let args: Vec<&str> = line.split_whitespace().collect();
        let output = call_as("iperf", &args, &[]);
        let stderr = stderr(&output);

        match expected {
            Ended(text, code) => {
                assert_eq!(stderr, text, "{line}");
                assert_eq!(output.status.code(), Some(code), "{line}");
            }
            Tested(text) => {
                assert!(stderr.starts_with(text), "{line}: {stderr}");
                assert!(
                    !stderr[text.len()..].contains("ERROR") && !stderr.contains("Usage"),
                    "{line}: {stderr}"
                );
            }
        }
    }
}

#[test]
fn reading_errors_quote_the_program_as_it_was_called() {
    for (name, args, program) in [
        (
            "/no/such/dir/iperf",
            &["--nosuch"][..],
            "/no/such/dir/iperf",
        ),
        ("iperf2", &["--nosuch"], "iperf2"),
        ("linerate", &["iperf2", "--nosuch"], "iperf2"),
    ] {
        let expected = format!(
            "{program}: unrecognized option `--nosuch'\nUsage: {program} [-s|-c host] \
             [options]\nTry `{program} --help' for more information.\n"
        );
        assert_eq!(stderr(&call_as(name, args, &[])), expected);
    }
}

#[test]
fn the_environment_comes_before_the_command_line() {
    let client = [
        ("IPERF_CLIENT", "h"),
        ("IPERF_DUALTEST", ""),
        ("IPERF_FORMAT", "x"),
    ];
    let output = call_as("iperf", &["-R"], &client);
    assert_eq!(
        stderr(&output),
        "ERROR: options of --full-duplex, --reverse, -d and -r are mutually exclusive\n"
    );

    let refused = call_as(
        "iperf",
        &[],
        &[("IPERF_CLIENT", "h"), ("IPERF_TIME", "soon")],
    );
    assert_eq!(
        stderr(&refused),
        "ERROR: -t value of 'soon' not recognized\n"
    );

    let overridden = call_as(
        "iperf",
        &["-l", "1000"],
        &[("IPERF_CLIENT", "h"), ("IPERF_BANDWIDTH", "100k")],
    );
    assert!(
        !stderr(&overridden).contains("ERROR"),
        "{}",
        stderr(&overridden)
    );
    let window = call_as("iperf", &["-s"], &[("TCP_WINDOW_SIZE", "1K")]);
    assert!(stderr(&window).starts_with("WARNING: TCP window size set to 1024 bytes."));
}
