//! Deliberate differences from the original: the rows of docs/iperf3.md that no other test covers.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use linerate_interop::{
    Control, Process, Report, Server, Signal, TIMEOUT, each_case, established, original, ours,
    ours_only, run_pair, wait_until, words,
};

/// From 3.16 on the original checks the amount only when an interval ends.
#[test]
fn timed_an_amount_ends_the_test_at_once_and_to_the_block() {
    let program = ours_only!("it has what 3.12 lacks");
    let cases = [
        ("-n 1000000", 1_000_000.0),
        ("-n 1000000 -P 4", 1_000_000.0),
        ("-k 500 -l 1000", 500_000.0),
    ];
    each_case(&cases, |(options, amount)| {
        let options: Vec<_> = options.split(' ').chain(["-J"]).collect();
        let pair = run_pair((program, &[]), (program, &options));
        let report = Report::parse(&pair.client.expect_clean().stdout);
        let block = report.number("/start/test_start/blksize");
        let streams = report.number("/start/test_start/num_streams");
        let sent = report.number("/end/sum_sent/bytes");
        assert!(
            sent >= *amount && sent < amount + block * streams,
            "{sent} bytes instead of {amount}"
        );
        assert!(
            pair.client.elapsed < Duration::from_millis(900),
            "{:?}",
            pair.client
        );
    });
}

/// A block of 128 KiB is ten seconds' worth at this rate; sent as one it would be a rate of its
/// own. The last interval completes the block.
#[test]
fn a_rate_below_one_block_per_interval_is_kept_until_the_last_one() {
    let program = ours_only!("it has what 3.12 lacks");
    for options in [
        ["-t", "2", "-b", "100K", "-J"],
        ["-t", "2", "-b", "400K", "-J"],
    ] {
        let pair = run_pair((program, &[]), (program, &options));
        let report = Report::parse(&pair.client.expect_clean().stdout);
        let wanted = report.number("/start/test_start/target_bitrate");
        let ratio = report.number("/intervals/0/sum/bits_per_second") / wanted;
        assert!(
            (0.8..1.2).contains(&ratio),
            "{ratio} times the rate of {wanted} bit/s"
        );
    }
}

#[test]
fn settings_of_one_client_do_not_reach_the_next() {
    let server = Server::start(ours(), &[]);
    let first = words("-J -n 64K --get-server-output --repeating-payload -T first --extra-data x");
    assert!(
        server
            .run(original(), &first)
            .expect_clean()
            .stdout
            .contains("server_output_text")
    );
    ours_only!("3.12 keeps the first client's parameters");

    let second = server.run(original(), &["-J", "-n", "64K"]);
    assert!(
        !second.expect_clean().stdout.contains("server_output"),
        "{second:?}"
    );
}

#[test]
fn a_failed_report_has_one_error() {
    let program = ours_only!("it has what 3.12 lacks");
    let server = Server::start(program, &["--server-max-duration", "1"]);
    let client = server.run(program, &["-J", "-t", "5"]);
    client.expect_code(1);
    assert_eq!(client.stdout.matches("\"error\"").count(), 1, "{client:?}");
}

/// In the original this option of SCTP falls through into the bit rate.
#[test]
fn nstreams_does_not_set_the_rate() {
    let program = ours_only!("it has what 3.12 lacks");
    let (listener, port) = Control::listen();

    let client = Process::start(program.command([
        "-c",
        "127.0.0.1",
        "-p",
        &port.to_string(),
        "--nstreams",
        "40000",
    ]));
    let (control, parameters) = Control::parametrised(&listener);
    assert!(!parameters.contains("bandwidth"), "{parameters}");
    drop(control);
    client.finish().expect_code(1);
}

/// The original prints raw lines on standard output before the document.
#[test]
fn verbose_json_is_still_json() {
    let program = ours_only!("it has what 3.12 lacks");
    let pair = run_pair(
        (program, &["-J", "-V"]),
        (program, &["-J", "-V", "-d", "-n", "64K"]),
    );
    assert!(Report::parse(&pair.client.expect_code(0).stdout).number("/end/sum_sent/bytes") > 0.0);
    assert!(
        Report::parse(&pair.server.expect_code(0).stdout).number("/end/sum_received/bytes") > 0.0
    );
}

/// Interrupted early, the original divides by the end of the last interval, or by nothing.
#[test]
fn timed_an_interrupt_before_the_first_interval_reports_the_time_that_passed() {
    let program = ours_only!("it has what 3.12 lacks");
    let server = Server::start(original(), &["-1"]);
    let client = server.client(program, "127.0.0.1", &["-t", "60", "-i", "10", "-b", "8M"]);

    assert!(
        wait_until(TIMEOUT, || established(server.port).len() >= 4),
        "the test runs"
    );
    client.signal(Signal::Interrupt);
    let client = client.finish();
    let rows = client
        .stdout
        .lines()
        .filter(|line| line.ends_with("sender"));
    for row in rows {
        let span = row
            .split_whitespace()
            .find(|word| word.contains('-'))
            .unwrap_or("");
        let end: f64 = span
            .split_once('-')
            .and_then(|(_, end)| end.parse().ok())
            .unwrap_or(f64::INFINITY);
        assert!(
            end <= client.elapsed.as_secs_f64() + 0.01,
            "{row} after {:?}",
            client.elapsed
        );
    }

    client.expect_code(0);
}

/// The original's server prints a row of its own for the time in which the end of the test is under
/// way: 3.12 with `-R`.
#[test]
fn timed_the_last_row_of_a_server_covers_the_end_of_the_test() {
    let program = ours_only!("it has what 3.12 lacks");
    for options in [&["-t", "2", "-b", "8M"][..], &["-t", "2", "-R"]] {
        let pair = run_pair((program, &[]), (original(), options));
        let rows = pair
            .server
            .stdout
            .lines()
            .filter(|line| line.contains(" sec ") && !line.ends_with("er"));
        let starts: Vec<&str> = rows
            .filter_map(|row| row.split_whitespace().find_map(|word| word.split_once('-')))
            .map(|(start, _)| start)
            .collect();
        assert_eq!(starts, ["0.00", "1.00"], "{:?}", pair.server);
    }
}

/// A full disk costs the report, neither the server nor a test.
#[test]
fn a_server_outlives_its_log() {
    let program = ours_only!("it has what 3.12 lacks");
    let server = Server::start(program, &["--logfile", "/dev/full"]);

    for _ in 0..2 {
        server.run(program, &["-n", "64K"]).expect_clean();
    }

    server.process.signal(Signal::Terminate);
    let server = server.finish();
    server
        .expect_code(0)
        .expect_stderr("lines of the report could not be written");
    assert_eq!(
        server.stderr.matches("could not be written").count(),
        1,
        "{}",
        server.stderr
    );
}

#[test]
fn output_the_log_file_rejects_is_on_standard_error() {
    let program = ours_only!("it has what 3.12 lacks");
    let server = Server::start(program, &[]);
    let client = server.run(program, &["-n", "64K", "--logfile", "/dev/full"]);
    client
        .expect_code(1)
        .expect_stderr("unable to write the report: No space left on device");
}

#[test]
fn an_interrupted_server_reports_it_once() {
    let program = ours_only!("it has what 3.12 lacks");
    let server = Server::start(program, &[]);
    let client = server.client(
        program,
        "127.0.0.1",
        &["-t", "20", "-b", "1M", "--forceflush"],
    );
    client.wait_for_stdout("/sec", 1);
    server.process.signal(Signal::Terminate);

    let server = server.finish();
    assert_eq!(
        server
            .stderr
            .matches("the server has terminated by signal")
            .count(),
        1,
        "{server:?}"
    );
}

/// The original prints the cause of an unreadable key in a line of its own as well, in OpenSSL's
/// words.
#[test]
fn the_cause_of_a_file_or_device_that_cannot_be_used_is_reported() {
    let program = ours_only!("it has what 3.12 lacks");
    for (options, cause) in [
        (
            &[
                "-c",
                "127.0.0.1",
                "--username",
                "x",
                "--rsa-public-key-path",
                "/none",
            ][..],
            "iperf3: /none: No such file or directory\n\niperf3: parameter error - you must \
             specify a username",
        ),
        (
            &[
                "-s",
                "--rsa-private-key-path",
                "/none",
                "--authorized-users-path",
                "/dev/null",
            ],
            "iperf3: /none: No such file or directory\n\niperf3: parameter error - you must \
             specify a path",
        ),
        (
            &["-c", "127.0.0.1", "--bind-dev", "nope0"],
            "etc.: No such device",
        ),
    ] {
        let ended = Process::start(program.command(options)).finish();
        ended.expect_code(1).expect_stderr(cause);
    }
}

#[test]
fn the_file_with_the_process_id_belongs_to_its_owner_alone() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("pid");
    let server = Server::start(ours(), &["-I", path.to_str().expect("a plain path")]);
    let mode = std::fs::metadata(&path)
        .expect("the file is there")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    drop(server);
}

/// Other tests on the server lower a result; the client's text has a warning, its JSON is the
/// original's.
#[test]
fn client_is_warned_of_concurrent_tests() {
    let program = ours_only!("it has what 3.12 lacks");
    let server = Server::start(program, &[]);
    let beside = server.client(
        program,
        "127.0.0.1",
        &["-t", "20", "-b", "1M", "--forceflush"],
    );
    beside.wait_for_stdout("/sec", 1);

    let text = server.run(program, &["-n", "64K"]);
    text.expect_code(0)
        .expect_stderr("warning: another test ran on the server at the same time");
    assert_eq!(text.stderr.lines().count(), 1, "{text:?}");

    let json = server.run(program, &["-n", "64K", "-J"]);
    assert!(
        Report::parse(&json.expect_clean().stdout)
            .get("/end/linerate")
            .is_none()
    );
}
