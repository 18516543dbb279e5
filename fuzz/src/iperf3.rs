//! What fuzz targets and property tests of `linerate-iperf3` check: functions over arbitrary bytes that panic when a
//! promise is broken.

use std::borrow::Cow;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use linerate_model::{CpuUsage, Failure, FailureKind};

use linerate_iperf3::auth::Refusal;
use linerate_iperf3::client::{Client, ClientAction, ClientInput, ClientSetup};
use linerate_iperf3::cookie::Cookie;
use linerate_iperf3::error_code::ErrorCode;
use linerate_iperf3::framing::frame;
use linerate_iperf3::params::Params;
use linerate_iperf3::results::{Results, StreamResult};
use linerate_iperf3::server::{Policy, Server, ServerAction, ServerInput, ServerSetup};
use linerate_iperf3::state::State;

/// Parameters that are accepted survive their own text, and describe a test within its limits.
pub fn params_json(text: &[u8]) {
    let Ok(params) = Params::parse(text) else { return };
    let spec = params.to_spec();
    assert!(spec.streams >= 1 && spec.block_len_bytes >= 1);
    assert!(params.parallel <= 128 || params.peer_is_linerate());
    let mut again = Params::parse(&params.to_json()).expect("our own text is valid");
    // Two fields have an absent form that stands for another value, and one travels with UDP only.
    again.pacing_timer_us = params.pacing_timer_us;
    again.offload = params.offload;
    assert_eq!(again, params);
}

/// Results that are accepted survive their own text and contain nothing but sane numbers.
pub fn results_json(text: &[u8]) {
    let Ok(results) = Results::parse(text) else { return };
    for stream in &results.streams {
        assert!(stream.jitter_s.is_finite() && stream.jitter_s >= 0.0);
        assert!(stream.end_time_s.is_none_or(f64::is_finite));
    }
    let again = Results::parse(&results.to_json()).expect("our own text is valid");
    assert_eq!(again.streams, results.streams);
    assert_eq!(again.congestion_used, results.congestion_used);
}

/// Any events end a client's test exactly once, with the last action.
pub fn client_control(script: &[u8]) {
    let setup = ClientSetup {
        cookie: Cookie::from_random([7; 36]),
        params: Params::default(),
        spec: Params::default().to_spec(),
    };
    let step = |client: &mut Client, now: Instant, op: Op<'_>| match op {
        Op::Control(bytes) => client.handle_control(now, &bytes),
        Op::Eof => client.handle_control_eof(now),
        Op::Error => client.handle_control_error(now, "Connection reset by peer"),
        Op::Local(kind) => client.handle_local(now, client_input(kind)),
        Op::Time => client.handle_timeout(now),
    };
    let poll = |client: &mut Client| Some(matches!(client.poll_action()?, ClientAction::Close(_)));
    drive(script, Client::new(start(), setup), step, poll, Client::poll_timeout);
}

/// Any events end a server's session exactly once, with the last action.
pub fn server_control(script: &[u8]) {
    let setup = ServerSetup {
        cookie: Cookie::from_random([7; 36]),
        policy: Policy { login_required: script.first().is_some_and(|byte| byte % 2 == 1), ..Policy::default() },
        unix_s: 1_800_000_000,
    };
    let step = |server: &mut Server, now: Instant, op: Op<'_>| match op {
        Op::Control(bytes) => server.handle_control(now, &bytes),
        Op::Eof => server.handle_control_eof(now),
        Op::Error => server.handle_control_error(now, "Connection reset by peer"),
        Op::Local(kind) => server.handle_local(now, server_input(kind)),
        Op::Time => server.handle_timeout(now),
    };
    let poll = |server: &mut Server| Some(matches!(server.poll_action()?, ServerAction::Close(_)));
    drive(script, Server::new(start(), setup), step, poll, Server::poll_timeout);
}

/// Results of one stream, as both machines may exchange them.
#[must_use]
pub fn sample_results() -> Results {
    Results {
        cpu: CpuUsage::default(),
        sender_has_retransmits: 1,
        congestion_used: None,
        server_output: None,
        streams: vec![StreamResult {
            wire_id: 1,
            bytes: 1000,
            retransmits: Some(0),
            jitter_s: 0.0,
            errors: 0,
            omitted_errors: Some(0),
            packets: 0,
            omitted_packets: Some(0),
            start_time_s: Some(0.0),
            end_time_s: Some(1.0),
        }],
        linerate: false,
        ran_beside: None,
        overflows: None,
        facts: None,
    }
}

/// Feeds a machine the events of a script, whose last one is the end of the connection; `poll` takes an action and
/// returns whether it is `Close`.
fn drive<M>(
    script: &[u8],
    mut machine: M,
    step: impl Fn(&mut M, Instant, Op<'_>),
    poll: impl Fn(&mut M) -> Option<bool>,
    timeout: impl Fn(&M) -> Option<Instant>,
) {
    let mut is_closed = false;
    play(script, |now, op| {
        step(&mut machine, now, op);
        while let Some(closes) = poll(&mut machine) {
            assert!(!is_closed, "nothing follows the end");
            is_closed = closes;
        }
        assert!(!is_closed || timeout(&machine).is_none());
    });
    assert!(is_closed, "the end of the connection ends the machine");
}

/// One event.
enum Op<'a> {
    Control(Cow<'a, [u8]>),
    Eof,
    Error,
    Local(u8),
    Time,
}

/// Reads events from arbitrary bytes and ends with the end of the connection.
fn play(script: &[u8], mut step: impl FnMut(Instant, Op<'_>)) {
    let mut now = start();
    let mut rest = script;
    while let Some(([kind, argument], tail)) = rest.split_first_chunk() {
        rest = tail;
        let op = match kind % 16 {
            0..=4 => {
                let (bytes, tail) = rest.split_at(usize::from(*argument).min(rest.len()));
                rest = tail;
                Op::Control(bytes.into())
            }
            5..=8 => Op::Control(vec![State::ALL[usize::from(*argument) % State::ALL.len()].byte()].into()),
            9 => Op::Control(sample_frame(*argument).into()),
            10 if *argument > 200 => Op::Eof,
            11 if *argument > 200 => Op::Error,
            12 => {
                now += Duration::from_secs(u64::from(*argument));
                Op::Time
            }
            _ => Op::Local(*argument),
        };
        step(now, op);
    }
    step(now, Op::Eof);
}

/// Instants have no origin of their own; one for the whole process makes scripts repeatable.
fn start() -> Instant {
    static START: OnceLock<Instant> = OnceLock::new();
    *START.get_or_init(Instant::now)
}

fn sample_frame(kind: u8) -> Vec<u8> {
    match kind % 4 {
        0 => frame(b"{}"),
        1 => frame(&Params::default().to_json()),
        2 => frame(&Params { auth_token: Some("token".to_owned()), ..Params::default() }.to_json()),
        _ => frame(&sample_results().to_json()),
    }
}

fn client_input(kind: u8) -> ClientInput {
    match kind {
        0..=9 => ClientInput::Failed(failure()),
        10..=19 => ClientInput::StreamsFailed(failure()),
        20..=29 => ClientInput::Interrupted { signal_text: "Interrupt(2)".to_owned() },
        30..=100 => ClientInput::StreamsOpened,
        101..=180 => ClientInput::EndReached,
        _ => ClientInput::Results(Box::new(sample_results())),
    }
}

fn server_input(kind: u8) -> ServerInput {
    match kind {
        0..=9 => ServerInput::Failed { code: ErrorCode::NoMsg, errno: 0, cause: None },
        10..=14 => ServerInput::Terminated { signal_text: "Terminated(15)".to_owned() },
        15..=19 => ServerInput::Busy,
        20..=25 => ServerInput::LoginChecked(Err(Refusal::UnknownUser)),
        26..=50 => ServerInput::LoginChecked(Ok("mario".to_owned())),
        51..=60 => ServerInput::ResultsParsed(Ok(Box::new(sample_results()))),
        61..=100 => ServerInput::Prepared,
        101..=180 => ServerInput::StreamOpened,
        _ => ServerInput::Results(Box::new(sample_results())),
    }
}

fn failure() -> Failure {
    Failure { kind: FailureKind::Error, message: "something failed".to_owned(), code: None }
}
