//! Checks of fuzz targets and property tests of `linerate-iperf3`: functions over arbitrary bytes
//! that panic when a promise is broken.

use std::time::{Duration, Instant};

use linerate_model::CpuUsage;

use linerate_iperf3::wire::auth::Refusal;
use linerate_iperf3::wire::client::{Client, ClientAction, ClientInput, ClientSetup};
use linerate_iperf3::wire::cookie::Cookie;
use linerate_iperf3::wire::error_code::ErrorCode;
use linerate_iperf3::wire::framing::frame;
use linerate_iperf3::wire::params::Params;
use linerate_iperf3::wire::results::{Results, StreamResult};
use linerate_iperf3::wire::server::{Policy, Server, ServerAction, ServerInput, ServerSetup};
use linerate_iperf3::wire::state::State;

use super::script::{Op, drive, failure, start};

const TICK: Duration = Duration::from_secs(1);

/// Parameters that are accepted survive their own text, and describe a test within its limits.
pub fn params_json(text: &[u8]) {
    let Ok(params) = Params::parse(text) else {
        return;
    };
    let spec = params.to_spec();
    assert!(spec.streams >= 1 && spec.block_len_bytes >= 1);
    assert!(params.parallel <= 128 || params.peer_is_linerate());

    let mut again = Params::parse(&params.to_json()).expect("our own text is valid");
    // Two fields have an absent form that means another value, and one travels with UDP only.
    again.pacing_timer_us = params.pacing_timer_us;
    again.offload = params.offload;
    assert_eq!(again, params);
}

/// Results that are accepted survive their own text and contain nothing but sane numbers.
pub fn results_json(text: &[u8]) {
    let Ok(results) = Results::parse(text) else {
        return;
    };
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
        Op::Bytes(bytes) => client.handle_control(now, bytes),
        Op::Item(kind) => client.handle_control(now, &item(kind)),
        Op::Eof => client.handle_control_eof(now),
        Op::Error => client.handle_control_error(now, "Connection reset by peer"),
        Op::Local(kind) => client.handle_local(now, client_input(kind)),
        Op::Time => client.handle_timeout(now),
    };

    let poll = |client: &mut Client| Some(matches!(client.poll_action()?, ClientAction::Close(_)));
    drive(
        script,
        TICK,
        Client::new(start(), setup),
        step,
        poll,
        Client::poll_timeout,
    );
}

/// Any events end a server's session exactly once, with the last action.
pub fn server_control(script: &[u8]) {
    let setup = ServerSetup {
        cookie: Cookie::from_random([7; 36]),
        policy: Policy {
            login_required: script.first().is_some_and(|byte| byte % 2 == 1),
            ..Policy::default()
        },
        unix_s: 1_800_000_000,
    };
    let step = |server: &mut Server, now: Instant, op: Op<'_>| match op {
        Op::Bytes(bytes) => server.handle_control(now, bytes),
        Op::Item(kind) => server.handle_control(now, &item(kind)),
        Op::Eof => server.handle_control_eof(now),
        Op::Error => server.handle_control_error(now, "Connection reset by peer"),
        Op::Local(kind) => server.handle_local(now, server_input(kind)),
        Op::Time => server.handle_timeout(now),
    };

    let poll = |server: &mut Server| Some(matches!(server.poll_action()?, ServerAction::Close(_)));
    drive(
        script,
        TICK,
        Server::new(start(), setup),
        step,
        poll,
        Server::poll_timeout,
    );
}

/// Results of one stream, as both machines may exchange them.
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

/// A state, or a frame.
fn item(kind: u8) -> Vec<u8> {
    if kind < 192 {
        return vec![State::ALL[usize::from(kind) % State::ALL.len()].byte()];
    }

    match kind % 4 {
        0 => frame(b"{}"),
        1 => frame(&Params::default().to_json()),
        2 => frame(
            &Params {
                auth_token: Some("token".to_owned()),
                ..Params::default()
            }
            .to_json(),
        ),
        _ => frame(&sample_results().to_json()),
    }
}

fn client_input(kind: u8) -> ClientInput {
    match kind {
        0..=19 => ClientInput::Failed(failure()),
        20..=29 => ClientInput::Interrupted {
            signal_text: "Interrupt(2)".to_owned(),
        },
        30..=100 => ClientInput::StreamsOpened,
        101..=180 => ClientInput::EndReached,
        _ => ClientInput::Results(Box::new(sample_results())),
    }
}

fn server_input(kind: u8) -> ServerInput {
    match kind {
        0..=9 => ServerInput::Failed {
            code: ErrorCode::NoMsg,
            errno: 0,
            cause: None,
        },
        10..=14 => ServerInput::Terminated {
            signal_text: "Terminated(15)".to_owned(),
        },
        15..=19 => ServerInput::Busy,
        20..=25 => ServerInput::LoginChecked(Err(Refusal::UnknownUser)),
        26..=50 => ServerInput::LoginChecked(Ok("mario".to_owned())),
        51..=60 => ServerInput::ResultsParsed(Ok(Box::new(sample_results()))),
        61..=100 => ServerInput::Prepared,
        101..=180 => ServerInput::StreamOpened,
        _ => ServerInput::Results(Box::new(sample_results())),
    }
}
