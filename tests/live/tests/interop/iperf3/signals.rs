//! Tests that a signal ends: who says what, which code is left behind, and what the partial report
//! is worth.

use linerate_interop::{
    Control, Pairing, Process, Program, Report, Server, Signal, TIMEOUT, each_case, established,
    ours, wait_until,
};

/// A test that would run far longer than anybody waits.
const LONG: [&str; 8] = ["-t", "60", "-i", "0.1", "--forceflush", "-b", "5M", "-P"];

/// 3.19 and later leave with 0 after a signal, older ones with 1.
fn code_after_signal(program: &Program) -> i32 {
    i32::from(program.release() < 19)
}

#[test]
fn a_client_that_is_interrupted_reports_what_it_did() {
    let signals = [Signal::Interrupt, Signal::Terminate, Signal::HangUp];
    let cases: Vec<_> = signals
        .into_iter()
        .flat_map(|signal| Pairing::ALL.map(|pairing| (signal, pairing)))
        .collect();
    each_case(&cases, |(signal, pairing)| {
        let server = Server::start(pairing.server(), &["-1"]);
        let client = server.client(pairing.client(), "127.0.0.1", &[&LONG[..], &["2"]].concat());
        client.wait_for_stdout("[SUM]", 3);
        client.signal(*signal);

        let client = client.finish();
        client.expect_code(code_after_signal(pairing.client()));
        client.expect_stderr("iperf3: interrupt - the client has terminated");

        // Two streams, their sum.
        assert_eq!(client.stdout.matches("sender").count(), 3, "{client:?}");
        let server = server.finish();
        server
            .expect_code(0)
            .expect_stderr("iperf3: the client has terminated");
        server.expect_stdout("receiver");
    });
}

#[test]
fn terminated_server_notifies_its_client() {
    let signals = [Signal::Interrupt, Signal::Terminate];
    let cases: Vec<_> = signals
        .into_iter()
        .flat_map(|signal| Pairing::ALL.map(|pairing| (signal, pairing)))
        .collect();
    each_case(&cases, |(signal, pairing)| {
        let server = Server::start(pairing.server(), &[]);
        let client = server.client(pairing.client(), "127.0.0.1", &[&LONG[..], &["2"]].concat());
        client.wait_for_stdout("[SUM]", 3);
        server.process.signal(*signal);

        let server = server.finish();
        server.expect_code(code_after_signal(pairing.server()));
        server.expect_stderr("iperf3: interrupt - the server has terminated");
        server.expect_stdout("receiver");

        let client = client.finish();
        client
            .expect_code(1)
            .expect_stderr("iperf3: error - the server has terminated");
        assert_eq!(client.stdout.matches("sender").count(), 3, "{client:?}");
    });
}

#[test]
fn an_idle_server_leaves_on_a_signal() {
    for signal in [Signal::Interrupt, Signal::Terminate] {
        let server = Server::start(ours(), &[]);
        server.process.signal(signal);
        server.finish().expect_code(code_after_signal(ours()));
    }
}

/// The report of an interrupted test covers the time that really passed, not the time that was
/// asked for and not the end of the last interval.
#[test]
fn timed_an_interrupted_json_report_is_complete_and_true() {
    let server = Server::start(ours(), &["-1", "--forceflush"]);
    let client = server.client(
        ours(),
        "127.0.0.1",
        &["-J", "-t", "60", "-i", "1", "-b", "8M"],
    );

    // A report of the kernel that data has moved; from here on the test is measurably under way.
    let has_moved = || {
        established(server.port)
            .iter()
            .any(|row| bytes_received(row) > 1_000_000)
    };
    assert!(wait_until(TIMEOUT, has_moved), "a megabyte arrives");
    client.signal(Signal::Interrupt);

    let client = client.finish();
    assert_eq!(client.stderr, "");
    let report = Report::parse(&client.stdout);
    assert!(report.text("/error").contains("the client has terminated"));

    let seconds = report.number("/end/sum_sent/seconds");
    assert!(
        seconds > 0.5 && seconds <= client.elapsed.as_secs_f64(),
        "{seconds} s of {:?}",
        client.elapsed
    );
    let rate = report.number("/end/sum_sent/bits_per_second");
    assert!(
        (0.7..1.4).contains(&(rate / 8e6)),
        "{rate} bit/s instead of 8 Mbit/s"
    );
}

fn bytes_received(row: &str) -> u64 {
    let digits = row
        .split_once("bytes_received:")
        .map_or("", |(_, rest)| rest.split(' ').next().unwrap_or(""));
    digits.parse().unwrap_or(0)
}

#[test]
fn a_client_waiting_for_a_silent_server_can_be_interrupted() {
    let (listener, port) = Control::listen();
    let client = Process::start(ours().command(["-c", "127.0.0.1", "-p", &port.to_string()]));
    let _control = Control::greeted(&listener);

    client.signal(Signal::Interrupt);
    let client = client.finish();
    client
        .expect_code(code_after_signal(ours()))
        .expect_stderr("the client has terminated");
}
