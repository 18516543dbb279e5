//! Servers that break every rule against our client. The client must end soon, with code 1 and one
//! line that says why.

use std::net::TcpListener;
use std::time::Duration;

use linerate_interop::{
    Control, Finished, Process, Report, each_case, frame, ours, ours_only, state,
};

/// Longer than any time-out a client may have after the server has gone wrong.
const SOON: Duration = Duration::from_secs(15);

/// Plays the server up to some point and returns its connections, the control connection first.
type Stage = fn(&TcpListener) -> Vec<Control>;

/// Name, what the client must report, how far the server follows the protocol, what it sends then,
/// and whether it ends the control connection.
type Script = (&'static str, &'static str, Stage, Vec<u8>, bool);

fn scripts() -> [Script; 21] {
    let error = |numbers: &[u8]| [&[state::SERVER_ERROR][..], numbers].concat();
    let (idle, results) = (
        "idle timeout for receiving data",
        "unable to receive results",
    );
    [
        ("end at once", "control", greeted, vec![], true),
        (
            "busy",
            "the server is busy running a test. try again later",
            greeted,
            vec![state::ACCESS_DENIED],
            false,
        ),
        (
            "terminated at once",
            "the server has terminated",
            greeted,
            vec![state::SERVER_TERMINATE],
            false,
        ),
        (
            "an unknown state",
            "received an unknown control message",
            greeted,
            vec![77],
            false,
        ),
        (
            "end after the parameters",
            "control",
            after_parameters,
            vec![],
            true,
        ),
        (
            "an error without words",
            "error",
            after_parameters,
            error(&[]),
            true,
        ),
        (
            "an error with one word",
            "test authorization failed",
            after_parameters,
            error(&[0, 0, 0, 142]),
            true,
        ),
        (
            "an error with both words",
            "total required bandwidth is larger than server limit",
            after_parameters,
            error(&[0, 0, 0, 27, 0, 0, 0, 0]),
            false,
        ),
        (
            "an unknown error",
            "int_errno=2147483647",
            after_parameters,
            error(&GREATEST),
            false,
        ),
        ("end instead of a start", "control", connected, vec![], true),
        ("end while running", "control", running, vec![], true),
        (
            "terminated while running",
            "the server has terminated",
            running,
            vec![state::SERVER_TERMINATE],
            false,
        ),
        (
            "an unknown state while running",
            "received an unknown control message",
            running,
            vec![99],
            false,
        ),
        (
            "an error while running",
            idle,
            running,
            error(&[0, 0, 0, 144, 0, 0, 0, 0]),
            false,
        ),
        ("end instead of results", results, exchanging, vec![], true),
        ("results of length 0", results, exchanging, vec![0; 4], true),
        (
            "results of the greatest length",
            results,
            exchanging,
            vec![0xFF; 4],
            true,
        ),
        (
            "results cut short",
            results,
            exchanging,
            frame("{\"streams\":[]}")[..9].to_vec(),
            true,
        ),
        (
            "results that are no JSON",
            results,
            exchanging,
            frame("nonsense"),
            true,
        ),
        (
            "results without their keys",
            results,
            exchanging,
            frame("{}"),
            true,
        ),
        (
            "results nested without end",
            results,
            exchanging,
            frame(&"[".repeat(100_000)),
            true,
        ),
    ]
}

/// The greatest error number, and −1.
const GREATEST: [u8; 8] = [0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF];

#[test]
fn the_client_ends_with_a_reason() {
    each_case(&scripts(), |(_, reason, stage, bytes, ends)| {
        let client = play(&[], *stage, bytes, *ends);
        client.expect_code(1);
        assert!(client.stderr.starts_with("iperf3: "), "{client:?}");

        // What 3.12 says of an error without words, or of results it cannot read, depends on its
        // memory.
        if !ours().is_original() {
            client.expect_stderr(reason);
        }
    });
}

#[test]
fn the_json_report_holds_the_reason() {
    ours_only!("3.12 writes warnings before its JSON and forgets the exit code");
    each_case(&scripts(), |(_, reason, stage, bytes, ends)| {
        let client = play(&["-J"], *stage, bytes, *ends);
        client.expect_code(1);
        assert_eq!(client.stderr, "", "{client:?}");

        let report = Report::parse(&client.stdout);
        assert!(
            report.text("/error").contains(reason),
            "{}",
            report.text("/error")
        );
    });
}

/// State byte and two words: whatever is missing at the end, the client must neither wait for it
/// nor invent it.
#[test]
fn an_error_may_be_cut_at_every_byte() {
    const MESSAGE: [u8; 9] = [state::SERVER_ERROR, 0, 0, 0, 37, 0, 0, 0, 13];

    let cuts: Vec<_> = (1..=MESSAGE.len()).collect();
    each_case(&cuts, |cut| {
        let client = play(&[], after_parameters, &MESSAGE[..*cut], true);
        client.expect_code(1);

        let says = if *cut < 5 {
            "error"
        } else {
            "client's requested duration exceeds the server's maximum"
        };
        if !ours().is_original() {
            client.expect_stderr(says);
            let knows_errno = *cut == MESSAGE.len();
            assert_eq!(
                client.stderr.contains("errno: Permission denied"),
                knows_errno,
                "{client:?}"
            );
        }
    });
}

fn play(options: &[&str], stage: Stage, bytes: &[u8], ends: bool) -> Finished {
    let (listener, port) = Control::listen();
    let port = port.to_string();

    let base = [
        "-c",
        "127.0.0.1",
        "-p",
        &port,
        "-t",
        "1",
        "-b",
        "1M",
        "-l",
        "1K",
    ];
    let client = Process::start(ours().command(base.iter().chain(options)));
    let mut open = stage(&listener);
    open[0].send(bytes);

    if ends {
        open[0].half_close();
    }

    client.finish_within(SOON)
}

fn greeted(listener: &TcpListener) -> Vec<Control> {
    vec![Control::greeted(listener)]
}

fn after_parameters(listener: &TcpListener) -> Vec<Control> {
    let (control, parameters) = Control::parametrised(listener);
    assert!(parameters.starts_with("{\"tcp\":true"));
    vec![control]
}

/// With one data connection.
fn connected(listener: &TcpListener) -> Vec<Control> {
    let mut open = after_parameters(listener);
    open[0].send(&[state::CREATE_STREAMS]);
    open.push(Control::greeted(listener));
    open
}

fn running(listener: &TcpListener) -> Vec<Control> {
    let mut open = connected(listener);
    open[0].send(&[state::TEST_START, state::TEST_RUNNING]);
    assert_eq!(open[1].take(1024).len(), 1024);
    open
}

/// A finished test whose client has sent its results and waits for those of the server; the data
/// connection is closed.
fn exchanging(listener: &TcpListener) -> Vec<Control> {
    let mut open = running(listener);
    open[0].expect(state::TEST_END);
    open[0].send(&[state::EXCHANGE_RESULTS]);
    assert!(open[0].take_json().starts_with('{'));
    open.truncate(1);
    open
}
