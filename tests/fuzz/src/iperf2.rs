//! Checks of fuzz targets and property tests of `linerate-iperf2`: functions over arbitrary bytes
//! that panic when a promise is broken.

use std::time::{Duration, Instant};

use linerate_model::EndCondition;

use linerate_iperf2::wire::ack::ServerAck;
use linerate_iperf2::wire::amount::Amount;
use linerate_iperf2::wire::bounceback::{BounceHead, MESSAGE_LEN_MAX, Reply, Responder};
use linerate_iperf2::wire::burst::BurstReader;
use linerate_iperf2::wire::client::{FlowClient, FlowClientSetup, StreamClient, StreamClientSetup};
use linerate_iperf2::wire::datagram::{DatagramHead, FlowOpening, NumberWidth};
use linerate_iperf2::wire::frame::FrameWords;
use linerate_iperf2::wire::header::{
    Header, Mode, TCP_HEADER_LEN_MAX, TcpHeaderReader, parse_tcp, parse_udp,
};
use linerate_iperf2::wire::machine::{Action, Input};
use linerate_iperf2::wire::report::FinalReport;
use linerate_iperf2::wire::server::{FlowServer, Policy, StreamServer};
use linerate_iperf2::wire::settings::{BLOCK_LEN_MAX_BYTES, DATAGRAM_LEN_MAX_BYTES, server_spec};
use linerate_iperf2::wire::stamp::Timestamp;
use linerate_iperf2::wire::version::Version;

use super::script::{Op, drive, failure, start};

const TICK: Duration = Duration::from_millis(50);

/// Headers that are accepted survive being written again, describe a test within limits, and are
/// read alike in pieces.
pub fn header(bytes: &[u8]) {
    let whole = parse_tcp(bytes);
    let mut reader = TcpHeaderReader::default();
    let mut in_pieces = Ok(None);

    for byte in bytes {
        let mut input = std::slice::from_ref(byte);
        in_pieces = reader.read(&mut input);
        assert!(reader.bytes().len() <= TCP_HEADER_LEN_MAX);

        if !matches!(in_pieces, Ok(None)) {
            break;
        }
    }

    if let (Ok(header), Ok(Some((piecewise, len)))) = (&whole, &in_pieces) {
        assert_eq!(header, piecewise);
        assert!(*len <= bytes.len());
    }

    if let Ok(header) = &whole {
        check_test(header, linerate_model::Transport::Tcp, BLOCK_LEN_MAX_BYTES);
        let again = parse_tcp(&header.emit_tcp()).expect("our own header is valid");
        assert_eq!(
            (again.mode, again.amount, again.tos),
            (header.mode, header.amount, header.tos)
        );
        assert_eq!(again.permit_key, header.permit_key);
    }

    if let Ok(header) = parse_udp(bytes) {
        check_test(
            &header,
            linerate_model::Transport::Udp,
            DATAGRAM_LEN_MAX_BYTES,
        );
        let again = parse_udp(&header.emit_udp()).expect("our own header is valid");
        assert_eq!((again.mode, again.start), (header.mode, header.start));

        // The unit of a rate is sent only to a server that keeps it.
        if header.mode.server_sends() {
            assert_eq!(again.rate, header.rate);
        }
    }

    let _ = ServerAck::parse(bytes);
}

fn check_test(header: &Header, transport: linerate_model::Transport, len_max: u32) {
    let spec = server_spec(header, transport);
    assert!((1..=len_max).contains(&spec.block_len_bytes));

    if let Some(frames) = header.frames {
        assert!(frames.per_s > 0.0 && frames.mean.is_finite());
    }

    assert_eq!(spec.end, header.end());
    if let EndCondition::Bytes(bytes) = spec.end {
        assert!(bytes <= u64::from(Amount::BYTES_MAX));
    }
}

/// Reports, heads and openings of datagrams.
pub fn datagram(bytes: &[u8]) {
    if let Some(report) = FinalReport::parse(bytes) {
        assert!(report.jitter_s.is_finite());
        assert!(
            report
                .transit_s
                .is_none_or(|spread| spread.deviation().is_finite())
        );
        let again = FinalReport::parse(&report.emit(16)).expect("our own report is valid");
        assert_eq!(
            (again.bytes, again.lost, again.datagrams),
            (report.bytes, report.lost, report.datagrams)
        );
    }

    for width in [NumberWidth::Narrow, NumberWidth::Wide] {
        let _ = DatagramHead::parse(bytes, width);
    }

    for version in [Version::V2_1_8, Version::V2_2_1] {
        let _ = FrameWords::parse(bytes, version);
    }

    if let Some(opening) = FlowOpening::parse(bytes) {
        assert!(opening.head.number > 0);
    }
}

/// Framed data and bounce-back requests: nothing grows, every byte is consumed, replies are
/// bounded.
pub fn stream_data(bytes: &[u8]) {
    let mut reader = BurstReader::default();
    let mut input = bytes;
    while !input.is_empty() {
        let _ = reader.read(&mut input);
    }

    let mut responder = Responder::default();
    let mut input = bytes;
    while !input.is_empty() {
        match responder.read(Timestamp::default(), &mut input) {
            Ok(Some(Reply::Send(head))) => {
                assert!(head.reply_len() <= MESSAGE_LEN_MAX);
                check_head(&head);
            }
            Ok(_) => assert!(responder.missing() > 0),
            Err(_) => return,
        }
    }
}

fn check_head(head: &BounceHead) {
    // A reply has its stated length; large ones are left out to keep the fuzzer fast.
    if head.reply_len() < 4096 {
        assert_eq!(
            head.reply(Timestamp::default()).len(),
            head.reply_len() as usize
        );
    }
}

/// Any events end each of the four machines exactly once, with the last action.
pub fn machines(script: &[u8]) {
    stream_server(script);
    stream_client(script);
    flow_server(script);
    flow_client(script);
}

fn stream_server(script: &[u8]) {
    let has_key = script.first().is_some_and(|byte| byte % 8 == 0);
    let policy = Policy {
        permit_key: has_key.then(|| b"secret123".to_vec()),
        ..Policy::default()
    };

    let step = |server: &mut StreamServer, now: Instant, op: Op<'_>| match op {
        Op::Bytes(bytes) => {
            let _ = server.handle_bytes(clock(), bytes);
        }
        Op::Eof => server.handle_eof(now),
        Op::Error => server.handle_local(now, Input::Failed(failure())),
        Op::Time => server.handle_timeout(now),
        Op::Item(kind) => {
            let _ = server.handle_bytes(clock(), &sample_header(&[kind]).emit_tcp());
        }
        Op::Local(0..=200) => server.handle_local(now, Input::SendingDone { next_number: 0 }),
        Op::Local(201..=220) => server.handle_local(now, Input::Interrupted),
        Op::Local(_) => server.handle_local(now, Input::Failed(failure())),
    };
    let poll = |server: &mut StreamServer| Some(matches!(server.poll_action()?, Action::Close(_)));

    let server = StreamServer::new(start(), clock(), policy);
    drive(script, TICK, server, step, poll, StreamServer::poll_timeout);
}

fn stream_client(script: &[u8]) {
    let mut header = sample_header(script);
    header.detect_peer = script.first().is_some_and(|byte| byte % 2 == 0);
    let setup = StreamClientSetup {
        header: Some(header),
        time_limit: Some(Duration::from_secs(10)),
    };

    let step = |client: &mut StreamClient, now: Instant, op: Op<'_>| match op {
        Op::Bytes(bytes) => {
            let _ = client.handle_bytes(now, clock(), bytes);
        }
        Op::Eof => client.handle_eof(now),
        Op::Error => client.handle_local(now, Input::Failed(failure())),
        Op::Time => client.handle_timeout(now),
        Op::Item(kind) => {
            let _ = client.handle_bytes(now, clock(), &sample_header(&[kind]).emit_tcp());
        }
        Op::Local(0..=180) => client.handle_local(now, Input::SendingDone { next_number: 0 }),
        Op::Local(181..=220) => client.handle_local(now, Input::Interrupted),
        Op::Local(_) => client.handle_local(now, Input::Failed(failure())),
    };
    let poll = |client: &mut StreamClient| Some(matches!(client.poll_action()?, Action::Close(_)));

    let client = StreamClient::new(start(), setup);
    drive(script, TICK, client, step, poll, StreamClient::poll_timeout);
}

fn flow_server(script: &[u8]) {
    let mut first = sample_header(script).emit_udp();
    let (number, sent) = (1, clock());
    DatagramHead { number, sent }.write(&mut first);

    let step = |flow: &mut FlowServer, now: Instant, op: Op<'_>| match op {
        Op::Time => flow.handle_timeout(now),
        Op::Bytes(_) => flow.handle_local(now, Input::DataArrived),
        Op::Item(bytes) => flow.handle_local(now, Input::DatagramArrived(bytes.into())),
        Op::Eof | Op::Error => flow.handle_local(now, Input::Failed(failure())),
        Op::Local(0..=100) => flow.handle_local(now, Input::SendingDone { next_number: 0 }),
        Op::Local(101..=240) => {
            flow.handle_local(now, Input::LastArrived(Box::default()));
        }
        Op::Local(_) => flow.handle_local(now, Input::Interrupted),
    };
    let poll = |flow: &mut FlowServer| Some(matches!(flow.poll_action()?, Action::Close(_)));
    let flow = FlowServer::new(start(), clock(), Policy::default(), &first, false)
        .expect("a valid first datagram");
    drive(script, TICK, flow, step, poll, FlowServer::poll_timeout);
}

fn flow_client(script: &[u8]) {
    let setup = FlowClientSetup {
        header: Some(sample_header(script)),
        datagram_bytes: 1470,
        time_limit: Some(Duration::from_secs(10)),
        wants_report: script.len().is_multiple_of(3),
    };
    let next_number = i64::from(*script.last().unwrap_or(&0)) - 100;

    let step = |flow: &mut FlowClient, now: Instant, op: Op<'_>| match op {
        Op::Time => flow.handle_timeout(now, clock()),
        Op::Bytes(bytes) => flow.handle_datagram(now, bytes),
        Op::Eof | Op::Error => flow.handle_local(now, clock(), Input::Failed(failure())),
        Op::Item(lost) => {
            flow.handle_datagram(
                now,
                &FinalReport {
                    lost: lost.into(),
                    ..FinalReport::default()
                }
                .emit(16),
            );
        }
        Op::Local(0..=60) => flow.handle_local(now, clock(), Input::DataArrived),
        Op::Local(61..=100) => flow.handle_local(now, clock(), Input::LastArrived(Box::default())),
        Op::Local(101..=240) => {
            flow.handle_local(now, clock(), Input::SendingDone { next_number });
        }
        Op::Local(_) => flow.handle_local(now, clock(), Input::Interrupted),
    };
    let poll = |flow: &mut FlowClient| Some(matches!(flow.poll_action()?, Action::Close(_)));
    let flow = FlowClient::new(start(), clock(), setup);
    drive(script, TICK, flow, step, poll, FlowClient::poll_timeout);
}

fn sample_header(script: &[u8]) -> Header {
    const MODES: [Mode; 5] = [
        Mode::Forward,
        Mode::Reverse,
        Mode::FullDuplex,
        Mode::Dual,
        Mode::TradeOff,
    ];

    let choice = script.first().copied().unwrap_or_default();
    Header {
        mode: MODES[usize::from(choice) % MODES.len()],
        trip_times: choice & 0x40 != 0,
        start: Some(clock()),
        ..Header::new(Version::V2_1_8, 5001, Amount::Ticks(100))
    }
}

fn clock() -> Timestamp {
    Timestamp::from_unix_ns(1_800_000_000_000_000_000)
}
