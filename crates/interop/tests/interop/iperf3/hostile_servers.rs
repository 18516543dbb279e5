//! Servers that break every rule against our client. The client must end soon, with code 1 and one line that says why.

use std::net::TcpListener;
use std::time::Duration;

use linerate_interop::{Control, Finished, Process, Report, cookie, each_case, frame, ours, ours_only, state};

/// Longer than any time-out a client may have after the server has gone wrong.
const SOON: Duration = Duration::from_secs(15);

#[derive(Debug)]
struct Script {
    #[expect(dead_code, reason = "shown for a case that fails")]
    name: &'static str,
    /// Plays the server; the listener is where data connections arrive. What it returns is kept open until the client
    /// has ended.
    run: fn(&TcpListener) -> Vec<Control>,
    /// What the client must say.
    says: &'static str,
}

const fn script(name: &'static str, says: &'static str, run: fn(&TcpListener) -> Vec<Control>) -> Script {
    Script { name, run, says }
}

const SCRIPTS: [Script; 21] = [
    script("end at once", "control", |listener| sending(greeted(listener), &[], true)),
    script("busy", "the server is busy running a test. try again later", |listener| {
        sending(greeted(listener), &[state::ACCESS_DENIED], false)
    }),
    script("terminated at once", "the server has terminated", |listener| {
        sending(greeted(listener), &[state::SERVER_TERMINATE], false)
    }),
    script("an unknown state", "received an unknown control message", |listener| {
        sending(greeted(listener), &[77], false)
    }),
    script("end after the parameters", "control", |listener| sending(after_parameters(listener), &[], true)),
    script("an error without words", "error", |listener| {
        sending(after_parameters(listener), &[state::SERVER_ERROR], true)
    }),
    script("an error with one word", "test authorization failed", |listener| {
        sending(after_parameters(listener), &[0xFE, 0, 0, 0, 142], true)
    }),
    script("an error with both words", "total required bandwidth is larger than server limit", |listener| {
        sending(after_parameters(listener), &[0xFE, 0, 0, 0, 27, 0, 0, 0, 0], false)
    }),
    script("an error nobody knows", "int_errno=2147483647", |listener| {
        sending(after_parameters(listener), &[0xFE, 0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF], false)
    }),
    script("end instead of a start", "control", |listener| {
        let (control, data) = connected(listener);
        both(sending(control, &[], true), data)
    }),
    script("end while running", "control", |listener| {
        let (control, data) = running(listener);
        both(sending(control, &[], true), data)
    }),
    script("terminated while running", "the server has terminated", |listener| {
        let (control, data) = running(listener);
        both(sending(control, &[state::SERVER_TERMINATE], false), data)
    }),
    script("an unknown state while running", "received an unknown control message", |listener| {
        let (control, data) = running(listener);
        both(sending(control, &[99], false), data)
    }),
    script("an error while running", "idle timeout for receiving data", |listener| {
        let (control, data) = running(listener);
        both(sending(control, &[0xFE, 0, 0, 0, 144, 0, 0, 0, 0], false), data)
    }),
    script("end instead of results", "unable to receive results", |listener| sending(exchanging(listener), &[], true)),
    script("results of length 0", "unable to receive results", |listener| sending(exchanging(listener), &[0; 4], true)),
    script("results of the greatest length", "unable to receive results", |listener| {
        sending(exchanging(listener), &[0xFF; 4], true)
    }),
    script("results cut short", "unable to receive results", |listener| {
        sending(exchanging(listener), &frame("{\"streams\":[]}")[..9], true)
    }),
    script("results that are no JSON", "unable to receive results", |listener| {
        sending(exchanging(listener), &frame("nonsense"), true)
    }),
    script("results without their keys", "unable to receive results", |listener| {
        sending(exchanging(listener), &frame("{}"), true)
    }),
    script("results nested without end", "unable to receive results", |listener| {
        sending(exchanging(listener), &frame(&"[".repeat(100_000)), true)
    }),
];

#[test]
fn the_client_ends_with_a_reason() {
    each_case(&SCRIPTS, |script| {
        let client = play(script, &[]);
        client.expect_code(1);
        assert!(client.stderr.starts_with("iperf3: "), "{client:?}");
        // What 3.12 says of an error without words, or of results it cannot read, depends on its memory.
        if !ours().is_original() {
            client.expect_stderr(script.says);
        }
    });
}

#[test]
fn the_json_report_holds_the_reason() {
    ours_only!("3.12 writes warnings in front of its JSON and forgets the exit code");
    each_case(&SCRIPTS, |script| {
        let client = play(script, &["-J"]);
        client.expect_code(1);
        assert_eq!(client.stderr, "", "{client:?}");
        let report = Report::parse(&client.stdout);
        assert!(report.text("/error").contains(script.says), "{}", report.text("/error"));
    });
}

/// State byte and two words: whatever is missing at the end, the client must neither wait for it nor invent it.
#[test]
fn an_error_may_be_cut_at_every_byte() {
    const MESSAGE: [u8; 9] = [state::SERVER_ERROR, 0, 0, 0, 37, 0, 0, 0, 13];
    let cuts: Vec<_> = (1..=MESSAGE.len()).collect();
    each_case(&cuts, |cut| {
        let client = play_with(&[], |listener| sending(after_parameters(listener), &MESSAGE[..*cut], true));
        client.expect_code(1);
        let says = if *cut < 5 { "error" } else { "client's requested duration exceeds the server's maximum" };
        if !ours().is_original() {
            client.expect_stderr(says);
            let knows_errno = *cut == MESSAGE.len();
            assert_eq!(client.stderr.contains("errno: Permission denied"), knows_errno, "{client:?}");
        }
    });
}

fn play(script: &Script, options: &[&str]) -> Finished {
    play_with(options, script.run)
}

fn play_with(options: &[&str], server: impl Fn(&TcpListener) -> Vec<Control>) -> Finished {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let port = listener.local_addr().expect("the listener is bound").port().to_string();
    let base = ["-c", "127.0.0.1", "-p", &port, "-t", "1", "-b", "1M", "-l", "1K"];
    let client = Process::start(ours().command(base.iter().chain(options)));
    let open = server(&listener);
    let finished = client.finish_within(SOON);
    drop(open);
    finished
}

fn greeted(listener: &TcpListener) -> Control {
    let mut control = Control::accept(listener);
    assert_eq!(control.take(37).len(), cookie().len());
    control
}

fn after_parameters(listener: &TcpListener) -> Control {
    let mut control = greeted(listener);
    control.send(&[state::PARAM_EXCHANGE]);
    assert!(control.take_json().starts_with("{\"tcp\":true"));
    control
}

/// The control connection and one data connection.
fn connected(listener: &TcpListener) -> (Control, Control) {
    let mut control = after_parameters(listener);
    control.send(&[state::CREATE_STREAMS]);
    let mut data = Control::accept(listener);
    assert_eq!(data.take(37).len(), cookie().len());
    (control, data)
}

fn running(listener: &TcpListener) -> (Control, Control) {
    let (mut control, mut data) = connected(listener);
    control.send(&[state::TEST_START, state::TEST_RUNNING]);
    assert_eq!(data.take(1024).len(), 1024);
    (control, data)
}

/// A finished test whose client has sent its results and waits for ours.
fn exchanging(listener: &TcpListener) -> Control {
    let (mut control, _data) = running(listener);
    control.expect(state::TEST_END);
    control.send(&[state::EXCHANGE_RESULTS]);
    assert!(control.take_json().starts_with('{'));
    control
}

fn both(mut controls: Vec<Control>, data: Control) -> Vec<Control> {
    controls.push(data);
    controls
}

fn sending(mut control: Control, bytes: &[u8], then_end: bool) -> Vec<Control> {
    control.send(bytes);
    if then_end {
        control.half_close();
    }
    vec![control]
}
