//! Numbered messages over a connection that may break: order, acknowledgement, repetition,
//! liveness.

use std::collections::VecDeque;
use std::marker::PhantomData;
use std::time::{Duration, Instant};

use crate::wire::message::{Envelope, Fault, FrameReader, Message, decode, encode};

/// Silence of this end after which it sends `keep`.
pub const KEEP_INTERVAL: Duration = Duration::from_secs(5);
/// Silence of the peer after which the connection is lost.
pub const SILENCE_MAX: Duration = Duration::from_secs(20);
/// Longest life of a session without a connection.
pub const RESUME_MAX: Duration = Duration::from_secs(30);
/// Most messages of a peer per second.
pub(crate) const MESSAGES_PER_SECOND: u32 = 64;
/// Most messages that are kept until they are acknowledged.
const UNACKNOWLEDGED_MAX: usize = 64;
/// Most bytes that are kept until they are acknowledged.
const UNACKNOWLEDGED_MAX_BYTES: usize = 1 << 20;
/// Messages after which this end acknowledges without a message of its own.
const ACKNOWLEDGE_AFTER: u32 = 16;

/// One end's side of the messages: `I` arrive, `O` are sent.
#[derive(Debug)]
pub(crate) struct Exchange<I, O> {
    reader: FrameReader,
    rate: RateBound,
    /// Number of the last message of this end.
    sent: u64,
    /// Highest number that arrived in order.
    received: u64,
    unacknowledged: Unacknowledged,
    is_connected: bool,
    last_sent: Instant,
    last_received: Instant,
    /// Numbered messages that arrived since the last message of this end.
    unanswered: u32,
    messages: PhantomData<(I, O)>,
}

impl<I: Message, O: Message> Exchange<I, O> {
    /// `burst` messages may arrive at once.
    pub(crate) fn new(now: Instant, burst: u32) -> Self {
        Self {
            reader: FrameReader::new(I::MAX_BYTES),
            rate: RateBound::new(burst),
            sent: 0,
            received: 0,
            unacknowledged: Unacknowledged::default(),
            is_connected: true,
            last_sent: now,
            last_received: now,
            unanswered: 0,
            messages: PhantomData,
        }
    }

    /// The next new message at the front of `input`. Those that arrived before are dropped.
    pub(crate) fn receive(&mut self, now: Instant, input: &mut &[u8]) -> Result<Option<I>, Fault> {
        if !input.is_empty() {
            self.last_received = now;
        }

        while let Some(text) = self.reader.read(input)? {
            // Counted before it is parsed: parsing is what a flood would cost.
            if !self.rate.admits(now) {
                return Err(Fault::new(
                    "message",
                    format!("more than {MESSAGES_PER_SECOND} per second"),
                ));
            }

            let Envelope {
                number,
                received,
                message,
            } = decode::<I>(&text)?;
            if !self.is_connected {
                // The peer's first messages on a new connection may be those of a machine that does
                // not know the session.
                return Ok(Some(message));
            }
            // An acknowledgement of the future would drop messages that never arrived.
            if received > self.sent {
                return Err(Fault::new(
                    "got",
                    format!("{received}, but only {} were sent", self.sent),
                ));
            }

            self.unacknowledged.acknowledge(received);
            if number == 0 {
                return Ok(Some(message));
            }

            self.unanswered = self.unanswered.saturating_add(1);
            // Repeated after a resumption, although it had arrived.
            if number <= self.received {
                continue;
            }

            let expected = self.received.saturating_add(1);
            if number != expected {
                return Err(Fault::new("n", format!("{number}, but {expected} is next")));
            }

            self.received = number;
            return Ok(Some(message));
        }

        Ok(None)
    }

    /// The frame to be sent now. `None` while there is no connection; a numbered message follows
    /// after the resumption.
    pub(crate) fn send(&mut self, now: Instant, message: O) -> Result<Option<Vec<u8>>, Fault> {
        let is_numbered = message.is_numbered();
        let number = if is_numbered {
            self.sent.saturating_add(1)
        } else {
            0
        };
        let frame = encode(&Envelope {
            number,
            received: self.received,
            message,
        })?;

        // Kept until the peer acknowledges it, for a resumption.
        if is_numbered {
            self.sent = number;
            self.unacknowledged.keep(number, &frame);
        }

        // It is repeated after the resumption.
        if !self.is_connected {
            return Ok(None);
        }

        self.mark_sent(now);
        Ok(Some(frame))
    }

    /// The connection is lost, or a new one takes its place: an unfinished frame will not be
    /// finished.
    pub(crate) fn disconnect(&mut self) {
        self.is_connected = false;
        self.reader = FrameReader::new(I::MAX_BYTES);
    }

    /// A new connection is there; nothing but the messages of the resumption is sent before
    /// [`Self::repeat`].
    pub(crate) fn attach(&mut self, now: Instant) {
        self.reader = FrameReader::new(I::MAX_BYTES);
        // The repeated messages of a resumption arrive at once.
        self.rate.reset();
        self.last_received = now;
    }

    /// A frame of the resumption: outside of the numbers, since its receiver may not know the
    /// session.
    pub(crate) fn frame(&mut self, now: Instant, message: O) -> Result<Vec<u8>, Fault> {
        self.mark_sent(now);
        encode(&Envelope {
            number: 0,
            received: 0,
            message,
        })
    }

    /// The messages that did not arrive at the peer, which has those up to `peer_received`. `None`
    /// if one of them is no longer kept or the number is impossible.
    pub(crate) fn repeat(&mut self, now: Instant, peer_received: u64) -> Option<Vec<Vec<u8>>> {
        if peer_received > self.sent || !self.unacknowledged.reaches_back_to(peer_received) {
            return None;
        }

        self.is_connected = true;
        self.unacknowledged.acknowledge(peer_received);
        self.mark_sent(now);
        Some(self.unacknowledged.frames().collect())
    }

    /// Number of the last message of this end, and of the last one that arrived.
    pub(crate) fn numbers(&self) -> (u64, u64) {
        (self.sent, self.received)
    }

    /// A sign of life or an acknowledgement is due.
    pub(crate) fn needs_keep(&self, now: Instant) -> bool {
        self.is_connected
            && (self.unanswered >= ACKNOWLEDGE_AFTER
                || at_least(now, self.last_sent, KEEP_INTERVAL))
    }

    /// Nothing arrived for too long.
    pub(crate) fn is_silent(&self, now: Instant) -> bool {
        at_least(now, self.last_received, SILENCE_MAX)
    }

    /// When one of the two becomes true.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let silence = self.last_received.checked_add(SILENCE_MAX);
        let keep = self
            .last_sent
            .checked_add(KEEP_INTERVAL)
            .filter(|_| self.is_connected);
        earliest([silence, keep])
    }

    fn mark_sent(&mut self, now: Instant) {
        self.last_sent = now;
        self.unanswered = 0;
    }
}

/// The earliest of the deadlines that exist.
pub(crate) fn earliest<const N: usize>(deadlines: [Option<Instant>; N]) -> Option<Instant> {
    deadlines.into_iter().flatten().min()
}

fn at_least(now: Instant, since: Instant, limit: Duration) -> bool {
    now.saturating_duration_since(since) >= limit
}

/// Frames that the peer has not acknowledged, oldest first. If they are too many the oldest are
/// dropped; a resumption that needs one of those fails.
#[derive(Debug, Default)]
struct Unacknowledged {
    frames: VecDeque<(u64, Vec<u8>)>,
    bytes: usize,
    /// Highest number that was dropped without an acknowledgement.
    dropped: u64,
}

impl Unacknowledged {
    fn keep(&mut self, number: u64, frame: &[u8]) {
        self.bytes += frame.len();
        self.frames.push_back((number, frame.to_vec()));

        // A peer that acknowledges nothing must not fill the memory.
        while self.frames.len() > UNACKNOWLEDGED_MAX || self.bytes > UNACKNOWLEDGED_MAX_BYTES {
            let Some((number, frame)) = self.frames.pop_front() else {
                break;
            };
            self.bytes -= frame.len();
            // A resumption that needs it must fail rather than leave a gap.
            self.dropped = number;
        }
    }

    fn acknowledge(&mut self, number: u64) {
        while self.frames.front().is_some_and(|(kept, _)| *kept <= number) {
            let Some((_, frame)) = self.frames.pop_front() else {
                break;
            };
            self.bytes -= frame.len();
        }
    }

    fn reaches_back_to(&self, peer_received: u64) -> bool {
        self.dropped <= peer_received
    }

    fn frames(&self) -> impl Iterator<Item = Vec<u8>> {
        self.frames.iter().map(|(_, frame)| frame.clone())
    }
}

/// Token bucket over messages (GCRA): `burst` at once, [`MESSAGES_PER_SECOND`] on the average.
#[derive(Debug)]
struct RateBound {
    burst: u32,
    /// When the bucket is full again.
    full_at: Option<Instant>,
}

const MESSAGE_SPACING: Duration = Duration::from_nanos(1_000_000_000 / MESSAGES_PER_SECOND as u64);

impl RateBound {
    fn new(burst: u32) -> Self {
        Self {
            burst,
            full_at: None,
        }
    }

    fn reset(&mut self) {
        self.full_at = None;
    }

    fn admits(&mut self, now: Instant) -> bool {
        let full_at = self.full_at.map_or(now, |at| at.max(now));
        let spent = full_at.saturating_duration_since(now);
        // The bucket is empty when it would be full only after the whole burst.
        if spent > MESSAGE_SPACING.saturating_mul(self.burst.saturating_sub(1)) {
            return false;
        }

        self.full_at = full_at.checked_add(MESSAGE_SPACING);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::message::{ClientMessage, ServerMessage};

    type Client = Exchange<ServerMessage, ClientMessage>;
    type Server = Exchange<ClientMessage, ServerMessage>;

    fn pair() -> (Instant, Client, Server) {
        let now = Instant::now();
        (now, Exchange::new(now, 64), Exchange::new(now, 64))
    }

    fn start(phase: u32) -> ClientMessage {
        ClientMessage::Start { phase }
    }

    fn sent(client: &mut Client, now: Instant, message: ClientMessage) -> Vec<u8> {
        client
            .send(now, message)
            .expect("short enough")
            .expect("connected")
    }

    #[test]
    fn the_65th_message_of_a_second_is_a_fault() {
        let (now, mut client, mut server) = pair();
        let keep = sent(&mut client, now, ClientMessage::Keep);
        let second = Duration::from_secs(1);

        for n in 0..64 {
            assert_eq!(
                server.receive(now, &mut &keep[..]),
                Ok(Some(ClientMessage::Keep)),
                "{n}"
            );
        }

        let fault = server.receive(now, &mut &keep[..]).expect_err("too many");
        assert_eq!(fault.member, "message");
        let mut server = Server::new(now, 64);

        for n in 0..640_u32 {
            let at = now + second * n / 64;
            assert!(
                server.receive(at, &mut &keep[..]).is_ok(),
                "64 per second, message {n}"
            );
        }
    }

    #[test]
    fn what_arrived_is_done_once_and_a_gap_is_a_fault() {
        let (now, mut client, mut server) = pair();
        let frames: Vec<_> = (1..4)
            .map(|phase| sent(&mut client, now, start(phase)))
            .collect();
        assert_eq!(server.receive(now, &mut &frames[0][..]), Ok(Some(start(1))));
        assert_eq!(server.receive(now, &mut &frames[0][..]), Ok(None));
        assert_eq!(
            server
                .receive(now, &mut &frames[2][..])
                .map_err(|fault| fault.member),
            Err("n".to_owned())
        );

        let mut both = Server::new(now, 64);
        let wire = [&frames[0][..], &frames[0], &frames[1]].concat();
        let mut input = &wire[..];
        assert_eq!(both.receive(now, &mut input), Ok(Some(start(1))));
        assert_eq!(both.receive(now, &mut input), Ok(Some(start(2))));
        assert!(input.is_empty());
    }

    #[test]
    fn an_acknowledgement_of_what_was_not_sent_is_a_fault() {
        let (now, mut client, _) = pair();
        let keep = encode(&Envelope {
            number: 0,
            received: 1,
            message: ServerMessage::Keep,
        })
        .expect("short");
        assert_eq!(
            client
                .receive(now, &mut &keep[..])
                .map_err(|fault| fault.member),
            Err("got".to_owned())
        );
    }

    #[test]
    fn only_what_did_not_arrive_is_repeated() {
        let (now, mut client, mut server) = pair();
        let first = sent(&mut client, now, start(1));
        sent(&mut client, now, start(2));
        assert!(server.receive(now, &mut &first[..]).is_ok());
        client.disconnect();
        assert_eq!(client.send(now, start(3)), Ok(None));
        assert_eq!(client.send(now, ClientMessage::Keep), Ok(None));
        assert_eq!(client.repeat(now, 4), None, "never sent");
        client.attach(now);

        let frames = client
            .repeat(now, server.numbers().1)
            .expect("all are kept");
        let wire = frames.concat();
        let mut input = &wire[..];
        assert_eq!(server.receive(now, &mut input), Ok(Some(start(2))));
        assert_eq!(server.receive(now, &mut input), Ok(Some(start(3))));
        assert_eq!(client.repeat(now, 3), Some(Vec::new()));
    }

    #[test]
    fn a_dropped_message_can_not_be_repeated_until_it_is_acknowledged() {
        let (now, mut client, _) = pair();
        for phase in 1..=65 {
            sent(&mut client, now, start(phase));
        }

        assert_eq!(
            (
                client.unacknowledged.frames.len(),
                client.unacknowledged.dropped
            ),
            (64, 1)
        );
        assert_eq!(client.repeat(now, 0), None);
        assert_eq!(client.repeat(now, 1).map(|frames| frames.len()), Some(64));

        let (now, _, mut server) = pair();
        for _ in 0..3 {
            let reason = "x".repeat(500_000);
            let sent = server.send(now, ServerMessage::Bye { reason });
            assert!(sent.is_ok());
        }

        assert_eq!(server.unacknowledged.frames.len(), 2);
        assert!(server.unacknowledged.bytes <= UNACKNOWLEDGED_MAX_BYTES);
    }

    #[test]
    fn silence_of_either_end_has_its_time() {
        let (now, mut client, mut server) = pair();
        let second = Duration::from_secs(1);
        assert!(!client.needs_keep(now + second * 4) && client.needs_keep(now + second * 5));
        assert!(!client.is_silent(now + second * 19) && client.is_silent(now + second * 20));
        assert_eq!(client.poll_timeout(), Some(now + second * 5));

        let keep = sent(&mut client, now + second * 5, ClientMessage::Keep);
        assert!(server.receive(now + second * 6, &mut &keep[..3]).is_ok());
        assert!(
            !server.is_silent(now + second * 25),
            "part of a message is a sign of life"
        );
    }

    #[test]
    fn a_row_of_messages_is_acknowledged_without_one_of_our_own() {
        let (now, mut client, mut server) = pair();
        for phase in 1..=16 {
            assert!(!server.needs_keep(now));
            let frame = sent(&mut client, now, start(phase));
            assert!(server.receive(now, &mut &frame[..]).is_ok());
        }

        assert!(server.needs_keep(now));
        let keep = server
            .send(now, ServerMessage::Keep)
            .expect("short")
            .expect("connected");
        assert!(client.receive(now, &mut &keep[..]).is_ok());
        assert!(client.unacknowledged.frames.is_empty());
        assert!(!server.needs_keep(now));
    }
}
