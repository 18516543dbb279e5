//! Goal: wrong command lines are answered in the args of iperf3 3.22, on the same stream, with the
//! same exit code. Method: recorded answers of the real program, and a table of the peculiarities
//! of its option parser.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Runs the program under another name and with a closed standard input.
fn call_as(name: &str, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_linerate"))
        .arg0(name)
        .args(args)
        .env_remove("IPERF3_PASSWORD")
        .stdin(Stdio::null())
        .output()
        .expect("the program was just built")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Fixture name and the options that were given behind `-c 127.0.0.1 -p PORT`.
const REFUSED: &[(&str, &str)] = &[
    ("A-2000", "-A 2000"),
    ("F-udp", "-F data.bin -u"),
    ("L-0", "-L 0"),
    ("M-40000", "-M 40000"),
    ("O-601", "-O 601"),
    ("P0", "-P 0"),
    ("P129", "-P 129"),
    ("R-bidir", "-R --bidir"),
    ("S-256", "-S 256"),
    ("b-burst-1001", "-b 1M/1001"),
    ("b-junk", "-b 1Q"),
    ("badopt", "--nosuch"),
    ("cntl-ka", "--cntl-ka=3/5/2"),
    ("daemon", "-D"),
    ("dscp-64", "--dscp 64"),
    ("f-x", "-f x"),
    ("i-0.05", "-i 0.05"),
    ("i-61", "-i 61"),
    ("idle", "--idle-timeout 5"),
    ("l-2M", "-l 2M"),
    ("n-junk", "-n abc"),
    ("nk", "-n 1M -k 3"),
    ("p-0", "-p 0"),
    ("pkcs1", "--use-pkcs1-padding"),
    ("rcvto-small", "--rcv-timeout 50 -R"),
    ("rcvto", "--rcv-timeout 1000"),
    ("serverarg", "-s"),
    ("serverlimit", "--server-bitrate-limit 1M"),
    ("sndto", "--snd-timeout -1"),
    ("t-90000", "-t 90000"),
    ("t-neg", "-t -1"),
    ("tn", "-t 1 -n 1M"),
    ("udp-l-65508", "-u -l 65508"),
    ("udp-l-8", "-u -l 8"),
    ("username", "--username x"),
    ("w-1G", "-w 1G"),
];

/// Command lines that are in order and fail only without a listener.
const NO_LISTENER: &[(&str, &str)] = &[
    ("F-missing", "-F nosuchfile"),
    ("M-10000", "-M 10000"),
    ("noserver", "-t 1"),
    ("noserver-udp", "-t 1 -u"),
    ("t-abc", "-t abc"),
];

#[test]
fn refused_command_lines_get_the_recorded_answer() {
    for (case, options) in REFUSED {
        let output = call_as("iperf3", &client_line("9", options));
        assert_recorded(case, &output);
    }
}

#[test]
fn clients_without_a_server_get_the_recorded_answer() {
    for (case, options) in NO_LISTENER {
        let output = call_as("iperf3", &client_line(&unused_port(), options));
        assert_recorded(case, &output);
    }
}

fn client_line<'a>(port: &'a str, options: &'a str) -> Vec<&'a str> {
    ["-c", "127.0.0.1", "-p", port]
        .into_iter()
        .chain(options.split(' '))
        .collect()
}

/// A port of the loopback interface without a listener.
fn unused_port() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener
        .local_addr()
        .expect("a bound socket")
        .port()
        .to_string()
}

fn assert_recorded(case: &str, output: &Output) {
    let name = format!("../../../fixtures/iperf3/err-{case}.c321.client.stderr.txt");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    let expected = std::fs::read_to_string(&path).expect("a fixture for every case");
    assert_eq!(stderr(output), expected, "{case}");
    assert_eq!(output.status.code(), Some(1), "{case}");
    assert!(output.stdout.is_empty(), "{case}");
}

/// Expected answer of a row of the table below.
enum Answer {
    /// The version on stdout and success.
    Version,
    /// This first line on stderr, exit code 1, nothing on stdout.
    Refused(&'static str),
    /// No complaint about the command line.
    Accepted,
}

#[test]
fn options_are_read_as_getopt_long_reads_them() {
    use Answer::{Accepted, Refused, Version};

    let streams =
        "iperf3: parameter error - invalid number of parallel streams (min = 1, max = 128)";
    let rows = [
        ("-v --bogus", Version),
        ("foo -v", Version),
        ("-v foo", Version),
        (
            "--vers -c",
            Refused(
                "iperf3: option '--vers' is ambiguous; possibilities: '--version' '--version4' \
                 '--version6'",
            ),
        ),
        ("--version", Version),
        (
            "--bogus -v",
            Refused("iperf3: unrecognized option '--bogus'"),
        ),
        (
            "--bogus=1 -v",
            Refused("iperf3: unrecognized option '--bogus=1'"),
        ),
        (
            "--ver",
            Refused(
                "iperf3: option '--ver' is ambiguous; possibilities: '--verbose' '--version' \
                 '--version4' '--version6'",
            ),
        ),
        (
            "--ti",
            Refused(
                "iperf3: option '--ti' is ambiguous; possibilities: '--time' '--timestamps' \
                 '--title' '--time-skew-threshold'",
            ),
        ),
        ("-c 127.0.0.1 -p 9 --rev --parallel=4", Accepted),
        ("-c 127.0.0.1 -p 9 -Rt1 -P4 -t 5", Accepted),
        ("-P=4", Refused(streams)),
        ("-P 200", Refused(streams)),
        ("-d=2", Refused("iperf3: invalid option -- '='")),
        ("-d2", Refused("iperf3: invalid option -- '2'")),
        ("-c 127.0.0.1 -p 9 --debug=2", Accepted),
        (
            "-t -5",
            Refused("iperf3: parameter error - test duration valid values are 0 to 86400 seconds"),
        ),
        ("-c 127.0.0.1 -p 9 -t 5x a b", Accepted),
        ("-c 127.0.0.1 -p 9 -- --bogus", Accepted),
        ("-t", Refused("iperf3: option requires an argument -- 't'")),
        (
            "--time",
            Refused("iperf3: option '--time' requires an argument"),
        ),
        (
            "--server=1",
            Refused("iperf3: option '--server' doesn't allow an argument"),
        ),
        ("-q", Refused("iperf3: invalid option -- 'q'")),
        (
            "",
            Refused("iperf3: parameter error - must either be a client (-c) or server (-s)"),
        ),
    ];
    for (line, expected) in rows {
        let args: Vec<&str> = line.split_whitespace().collect();
        let output = call_as("iperf3", &args);
        let stderr = stderr(&output);

        match expected {
            Version => {
                assert_eq!(output.status.code(), Some(0), "{line}");
                assert!(
                    output.stdout.starts_with(b"iperf 3.22 (linerate "),
                    "{line}"
                );
                assert_eq!(stderr, "", "{line}");
            }
            Refused(first) => {
                assert_eq!(stderr.lines().next(), Some(first), "{line}");
                assert_eq!(output.status.code(), Some(1), "{line}");
                assert!(output.stdout.is_empty(), "{line}");
            }
            Accepted => assert!(
                !stderr.contains("parameter error") && !stderr.contains("Usage"),
                "{line}: {stderr}"
            ),
        }
    }
}

#[test]
fn reading_errors_quote_the_program_as_it_was_called() {
    let output = call_as("/no/such/dir/iperf3-x", &["--bogus"]);
    let usage =
        "\n\nUsage: iperf3 [-s|-c host] [options]\nTry `iperf3 --help' for more information.\n";
    assert_eq!(
        stderr(&output),
        format!("/no/such/dir/iperf3-x: unrecognized option '--bogus'{usage}")
    );

    let output = call_as("linerate", &["iperf3", "--bogus"]);
    assert_eq!(
        stderr(&output),
        format!("iperf3: unrecognized option '--bogus'{usage}")
    );
    let output = call_as("/no/such/dir/iperf3-x", &["-t", "-1"]);
    assert!(stderr(&output).starts_with("iperf3: parameter error - "));
}

#[test]
fn bytes_that_are_no_text_come_back_unchanged() {
    let output = Command::new(env!("CARGO_BIN_EXE_linerate"))
        .arg0("iperf3")
        .arg(OsStr::from_bytes(b"--\xff\xfe"))
        .output()
        .expect("the program was just built");
    assert!(
        output
            .stderr
            .starts_with(b"iperf3: unrecognized option '--\xff\xfe'\n")
    );
}
