//! Checks of fuzz targets and property tests of `linerate-native`: functions over arbitrary bytes
//! that panic when a promise is broken.

use std::fmt::Debug;
use std::time::{Duration, Instant};

use linerate_model::path::{EndpointPhase, LoadSample, PhaseKind, PhaseSpec, PhaseTransport};

use linerate_native::wire::datagram::{
    DatagramHead, Feedback, FlowOpen, HEAD_LEN, ReceivedSequence, ReplyBody, SizeAnswer,
};
use linerate_native::wire::message::{
    CLIENT_MESSAGE_MAX_BYTES, ClientMessage, ClockReply, Envelope, FrameReader, Hello, JsonText,
    Message, Ready, Refusal, Resume, SERVER_MESSAGE_MAX_BYTES, ServerMessage, TokenProof, Turn,
    Welcome, decode, encode,
};
use linerate_native::wire::opening::{self, Opening};
use linerate_native::wire::stream_frame::{Frame, FrameError};
use linerate_native::wire::stream_head::{ANSWER_LEN, LEN, StreamAnswer, StreamHead};
use linerate_native::wire::{client, server, stream_frame};

use super::script::{Op, drive, start};
use super::segments::pieces;

const TICK: Duration = Duration::from_millis(100);
const TURN: Turn = Turn {
    position: 1,
    wait_ms: 1000,
};
const CLOCK: ClockReply = ClockReply {
    sent_ns: 1,
    received_ns: 2,
    replied_ns: 3,
};

/// Frames are read alike in one piece and in segments, and nothing is kept beyond the bound.
pub fn frame(cuts: &[u8], bytes: &[u8]) {
    assert_eq!(texts([bytes]), texts(pieces(cuts, bytes)));
}

fn texts<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (Vec<Vec<u8>>, bool) {
    let (mut reader, mut found) = (FrameReader::new(CLIENT_MESSAGE_MAX_BYTES), Vec::new());
    for mut piece in pieces {
        while !piece.is_empty() {
            match reader.read(&mut piece) {
                Ok(text) => found.extend(text),
                Err(_) => return (found, true),
            }
            assert!(reader.buffered_bytes() <= CLIENT_MESSAGE_MAX_BYTES as usize + 4);
        }
    }

    (found, false)
}

/// Messages that are accepted survive their own text; a fault is short.
pub fn messages(text: &[u8]) {
    if text.len() <= CLIENT_MESSAGE_MAX_BYTES as usize {
        message::<ClientMessage>(text);
    }

    if text.len() <= SERVER_MESSAGE_MAX_BYTES as usize {
        message::<ServerMessage>(text);
    }
}

fn message<M: Message + Clone + PartialEq + Debug>(text: &[u8]) {
    match decode::<M>(text) {
        Ok(envelope) => match encode(&envelope) {
            Ok(frame) => assert_eq!(decode::<M>(frame.get(4..).expect("a length")), Ok(envelope)),
            // Members that were absent are written.
            Err(fault) => assert_eq!(fault.member, "length"),
        },
        Err(fault) => {
            assert!(fault.member.chars().count() <= 256 && fault.text.chars().count() <= 256);
        }
    }
}

/// Openings need no byte beyond their length, and heads survive.
pub fn stream_head(bytes: &[u8]) {
    for len in 0..bytes.len().min(opening::COOKIE_WIRE_LEN) {
        let whole = opening::recognise(bytes);
        match opening::recognise(bytes.get(..len).unwrap_or_default()) {
            Opening::NeedMore(missing) => {
                assert!(missing > 0 && len + missing <= opening::COOKIE_WIRE_LEN);
            }
            decided => assert_eq!(decided, whole),
        }
    }

    let _ = opening::answer(bytes);
    if let Some(head) = bytes.first_chunk::<LEN>().and_then(StreamHead::decode) {
        assert_eq!(bytes.get(..LEN), Some(&head.encode()[..]));
        assert_eq!(opening::recognise(bytes), Opening::StreamHead);
    }

    if let Some(answer) = bytes
        .first_chunk::<ANSWER_LEN>()
        .and_then(StreamAnswer::decode)
    {
        assert_eq!(bytes.get(..ANSWER_LEN), Some(&answer.encode()[..]));
    }
}

/// Frames of a stream are read alike in one piece and in segments.
pub fn stream_frames(cuts: &[u8], bytes: &[u8]) {
    let (whole, cut) = (frames([bytes]), frames(pieces(cuts, bytes)));
    assert_eq!(whole, cut);
    if let (Ok(payload), found) = whole {
        assert!(payload + stream_frame::HEAD_LEN as u64 * found.len() as u64 <= bytes.len() as u64);
    }
}

fn frames<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (Result<u64, FrameError>, Vec<Frame>) {
    let (mut reader, mut found, mut payload) =
        (stream_frame::FrameReader::default(), Vec::new(), 0);
    for piece in pieces {
        match reader.feed(piece, |frame| found.push(frame)) {
            Ok(bytes) => payload += bytes,
            Err(error) => return (Err(error), found),
        }
    }

    (Ok(payload), found)
}

/// Datagrams that are accepted survive; counters of any numbers stay within the number of
/// datagrams.
pub fn datagram(bytes: &[u8]) {
    if let Some(head) = DatagramHead::decode(bytes) {
        let mut again = bytes.to_vec();
        again.iter_mut().take(HEAD_LEN).for_each(|byte| *byte = 0);
        head.encode_into(&mut again);
        assert_eq!(again, bytes);

        let _ = FlowOpen::decode(bytes);
        if let Some(feedback) = Feedback::decode(bytes) {
            feedback.encode_into(&mut again);
        }

        if let Some(answer) = SizeAnswer::decode(bytes) {
            answer.encode_into(&mut again);
        }

        if let Some(reply) = ReplyBody::decode(bytes) {
            reply.encode_into(&mut again);
        }

        assert_eq!(again, bytes);
    }

    let mut counters = ReceivedSequence::default();
    let mut sequence = 0_u64;
    let mut count = 0;

    for [kind, step] in bytes.as_chunks::<2>().0 {
        sequence = match kind % 4 {
            0 => sequence.wrapping_add(u64::from(*step)),
            1 => sequence.saturating_sub(u64::from(*step)),
            2 => sequence.wrapping_add(u64::from(*step) << (kind / 4)),
            _ => sequence.saturating_add(1),
        };
        counters.on_datagram(sequence);
        count += 1;
    }

    assert!(counters.distinct() + counters.duplicates() + counters.too_late() <= count);
    assert!(
        counters.reordered() <= counters.distinct() && counters.extent() <= counters.distinct()
    );
    let highest = counters.highest().map_or(0, |highest| highest + 1);
    assert!(counters.longest_loss_burst(None) <= highest);
}

/// Any events end each machine exactly once, with the last action, and it never has much to send.
pub fn machines(script: &[u8]) {
    client_machine(script);
    server_machine(script);
}

/// A machine, and the number of the peer's next message.
struct Numbered<M> {
    machine: M,
    next: u64,
}

fn client_machine(script: &[u8]) {
    let step = |peer: &mut Numbered<client::Machine>, now: Instant, op: Op<'_>| {
        let client = &mut peer.machine;
        match op {
            Op::Bytes(bytes) => client.handle_bytes(now, bytes),
            Op::Item(kind) => {
                let frame = item(server_message(kind), &mut peer.next);
                client.handle_bytes(now, &frame);
            }
            Op::Eof => {
                client.control_lost(now);
                if client.resume_point().is_some() {
                    client.resume(now, &[7; 32]);
                }
            }
            Op::Error => {
                client.control_lost(now);
                client.handle_timeout(now + client::RESUME_MAX);
            }
            Op::Local(kind) => client.handle_local(now, client_input(kind)),
            Op::Time => client.handle_timeout(now),
        }
    };
    let poll = |peer: &mut Numbered<client::Machine>| match peer.machine.poll_action()? {
        client::Action::Send(bytes) => {
            assert!(bytes.len() <= CLIENT_MESSAGE_MAX_BYTES as usize + 4);
            Some(false)
        }
        action => Some(action == client::Action::Close),
    };

    let machine = Numbered {
        machine: client::Machine::new(start()),
        next: 1,
    };
    drive(script, TICK, machine, step, poll, |peer| {
        peer.machine.poll_timeout()
    });
}

fn server_machine(script: &[u8]) {
    let step = |peer: &mut Numbered<server::Machine>, now: Instant, op: Op<'_>| {
        let server = &mut peer.machine;
        match op {
            Op::Bytes(bytes) => server.handle_bytes(now, bytes),
            Op::Item(kind) => {
                let frame = item(client_message(kind), &mut peer.next);
                server.handle_bytes(now, &frame);
            }
            Op::Eof => {
                server.control_lost(now);
                let _ = server.resume(now, &resume(peer.next, 0));
            }
            Op::Error => {
                server.control_lost(now);
                server.handle_timeout(now + server::RESUME_MAX);
            }
            Op::Local(kind) => server.handle_local(now, server_input(kind)),
            Op::Time => server.handle_timeout(now),
        }

        // A message, what is repeated, and a keep-alive.
        assert!(server.pending_bytes() <= 3 << 20);
    };
    let poll = |peer: &mut Numbered<server::Machine>| match peer.machine.poll_action()? {
        server::Action::Send(bytes) => {
            assert!(bytes.len() <= SERVER_MESSAGE_MAX_BYTES as usize + 4);
            Some(false)
        }
        action => Some(matches!(action, server::Action::Close(_))),
    };

    let machine = Numbered {
        machine: server::Machine::new(start()),
        next: 1,
    };
    drive(script, TICK, machine, step, poll, |peer| {
        peer.machine.poll_timeout()
    });
}

fn item<M: Message>(message: M, next: &mut u64) -> Vec<u8> {
    let number = if message.is_numbered() { *next } else { 0 };
    *next += u64::from(number > 0);
    encode(&Envelope {
        number,
        received: 0,
        message,
    })
    .expect("short enough")
}

/// A phase that both machines may agree on.
pub fn spec() -> PhaseSpec {
    PhaseSpec {
        kind: PhaseKind::Down,
        direction: None,
        transport: PhaseTransport::Tcp,
        streams_max: 2,
        probe_flows: 1,
        duration_max: Duration::from_secs(8),
        rate_bps: None,
        connections_per_s: None,
        datagram_bytes: 0,
        bytes_max: None,
        congestion: None,
        dscp: 0,
        raw: false,
        hops: false,
        transaction: None,
    }
}

/// A hello without a proof.
pub fn hello() -> Hello {
    Hello {
        program: "test".to_owned(),
        streams_max: 2,
        duration_max_ns: 60_000_000_000,
        wants: vec![PhaseKind::Down],
        ..Hello::default()
    }
}

/// A session named `s1`.
pub fn welcome() -> Welcome {
    Welcome {
        program: "test".to_owned(),
        session: "s1".to_owned(),
        resume_secret: "ab".repeat(32),
        flow_secret: "cd".repeat(32),
        facts: true,
        ..Welcome::default()
    }
}

/// Tokens of two streams.
pub fn ready(phase: u32) -> Ready {
    Ready {
        phase,
        streams: vec!["01".repeat(16), "02".repeat(16)],
        ..Ready::default()
    }
}

fn resume(number: u64, received: u64) -> Resume {
    Resume {
        session: "s1".to_owned(),
        number,
        received,
        proof: "07".repeat(32),
    }
}

fn token() -> TokenProof {
    TokenProof {
        name: "lab".to_owned(),
        proof: "07".repeat(32),
    }
}

fn request() -> ClientMessage {
    ClientMessage::Request {
        name: "a".to_owned(),
        body: JsonText::null(),
    }
}

fn client_message(kind: u8) -> ClientMessage {
    let phase = u32::from(kind / 16 % 3);
    match kind % 16 {
        0..=2 => ClientMessage::Hello(Box::new(Hello {
            token: (kind & 64 != 0).then(token),
            user: (kind & 128 != 0).then(|| "mario".to_owned()),
            password: (kind & 128 != 0).then(|| "secret".to_owned()),
            ..hello()
        })),
        3..=6 => ClientMessage::OpenPhase {
            phase,
            spec: spec(),
        },
        7 | 8 => ClientMessage::Start { phase },
        9 | 10 => ClientMessage::Stop { phase },
        11 => ClientMessage::Clock { sent_ns: 5 },
        12 => ClientMessage::WantFacts,
        13 => ClientMessage::Resume(resume(u64::from(kind), 0)),
        14 if kind > 200 => ClientMessage::Bye,
        14 => request(),
        _ => ClientMessage::Keep,
    }
}

fn server_message(kind: u8) -> ServerMessage {
    let phase = u32::from(kind / 16 % 3);
    match kind % 16 {
        0 | 1 => ServerMessage::Welcome(Box::new(welcome())),
        2 => ServerMessage::Prove {
            proof: "07".repeat(32),
        },
        3 => ServerMessage::Turn(TURN),
        4 if kind > 200 => ServerMessage::Refused(Refusal::new("busy", "no place")),
        4..=6 => ServerMessage::Ready(ready(phase)),
        7..=9 => ServerMessage::Started { phase, at_ns: 5 },
        10 | 11 => ServerMessage::PhaseResult {
            phase,
            result: Box::default(),
        },
        12 => ServerMessage::Clock(CLOCK),
        13 => ServerMessage::Resumed {
            received: u64::from(kind / 16),
        },
        14 if kind > 200 => ServerMessage::Bye {
            reason: "stop".to_owned(),
        },
        14 if kind > 100 => ServerMessage::Response {
            body: JsonText::null(),
        },
        14 => ServerMessage::RequestRefused {
            clause: "a".to_owned(),
            text: "b".to_owned(),
        },
        _ => ServerMessage::Keep,
    }
}

fn client_input(kind: u8) -> client::Input {
    match kind {
        0..=60 => {
            let has_token = kind % 2 == 1;
            let hello = Hello {
                token: has_token.then(token),
                ..hello()
            };

            // Every fourth one expects another proof than the server sends.
            let server_proof = has_token.then_some([if kind % 4 == 3 { 8 } else { 7 }; 32]);
            client::Input::Hello {
                hello: Box::new(hello),
                server_proof,
            }
        }
        61..=130 => client::Input::OpenPhase(Box::new(spec())),
        131..=170 => client::Input::Start,
        171..=200 => client::Input::Stop,
        201..=220 => client::Input::Clock { sent_ns: 1 },
        221..=230 => client::Input::WantFacts,
        231..=240 => client::Input::Request {
            name: "a".to_owned(),
            body: JsonText::null(),
        },
        _ => client::Input::Bye,
    }
}

fn server_input(kind: u8) -> server::Input {
    let (clause, text) = ("busy", "no place");
    match kind {
        0..=40 => server::Input::ProofChecked((kind != 40).then_some([7; 32])),
        41..=60 => server::Input::LoginChecked(kind != 60),
        61..=100 => server::Input::Admitted(Box::new(welcome())),
        101..=110 => server::Input::Queued(TURN),
        111 => server::Input::Refused(Refusal::new(clause, text)),
        112 => server::Input::HandedOver,
        113..=140 => server::Input::Ready(ready(0)),
        141..=145 => server::Input::PhaseRefused(Refusal::new(clause, text)),
        146..=200 => server::Input::Started { at_ns: 1 },
        201..=220 => server::Input::PhaseEnded(Box::new(EndpointPhase {
            load: vec![LoadSample::default(); usize::from(kind - 201) * 400],
            ..EndpointPhase::default()
        })),
        221..=230 => server::Input::Clock(CLOCK),
        231..=240 => server::Input::Facts("{}".to_owned()),
        241..=248 => server::Input::Response("{}".to_owned()),
        249..=253 => server::Input::RequestRefused {
            clause: clause.to_owned(),
            text: text.to_owned(),
        },
        _ => server::Input::Stopping("stop".to_owned()),
    }
}
