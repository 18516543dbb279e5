//! The two ends of a bounce-back test. They own no socket: a caller moves their bytes.

use std::time::{Duration, Instant};

use super::{BounceError, BounceHead, HEAD_LEN};
use crate::wire::stamp::Timestamp;
use crate::wire::take;

/// The server's end.
#[derive(Debug, Default)]
pub struct Responder {
    head: Vec<u8>,
    /// The request whose digits are still arriving.
    current: Option<BounceHead>,
    digits_missing: usize,
}

/// The effect of a complete request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// Wait for the hold of this head, then send its reply.
    Send(BounceHead),
    /// The client has finished; nothing is sent.
    Stop,
}

impl Responder {
    /// Bytes that are missing of the current request, or of its head while its length is unknown;
    /// at least 1.
    pub fn missing(&self) -> usize {
        match self.current {
            Some(_) => self.digits_missing,
            None => HEAD_LEN - self.head.len(),
        }
    }

    /// Takes bytes of one request from the front of `input`; `now` is this end's clock, and becomes
    /// the time at which the request had arrived.
    ///
    /// # Errors
    /// When the bytes are no request, or one beyond the limits.
    pub fn read(
        &mut self,
        now: Timestamp,
        input: &mut &[u8],
    ) -> Result<Option<Reply>, BounceError> {
        take(input, &mut self.head, HEAD_LEN);
        let Some(bytes) = self.head.first_chunk() else {
            return Ok(None);
        };
        let head = match self.current {
            Some(head) => head,
            None => BounceHead::parse(bytes)?,
        };

        if self.current.is_none() {
            self.current = Some(head);
            self.digits_missing = head.request_bytes as usize - HEAD_LEN;
        }

        let (_, rest) = input.split_at(self.digits_missing.min(input.len()));
        self.digits_missing -= input.len() - rest.len();
        *input = rest;

        if self.digits_missing > 0 {
            return Ok(None);
        }

        self.head.clear();
        self.current = None;
        Ok(Some(if head.stop {
            Reply::Stop
        } else {
            Reply::Send(BounceHead {
                received: Some(now),
                ..head
            })
        }))
    }
}

impl BounceHead {
    /// The reply to this request, written at `now` of the server's clock.
    pub fn reply(&self, now: Timestamp) -> Vec<u8> {
        let head = Self {
            replied: Some(now),
            ..*self
        };
        head.message(self.reply_len())
    }
}

/// The client's end: one request at a time, in bursts on a fixed grid.
#[derive(Debug)]
pub struct Requester {
    template: BounceHead,
    burst_len: u32,
    period: Duration,
    phase: Phase,
    /// Requests of the current burst that are still to be sent.
    left_in_burst: u32,
    next_burst: Instant,
    reply: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The next request may be sent when its time comes.
    Ready,
    /// A reply is awaited.
    Awaiting { sent: Instant },
}

/// One request and its reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoundTrip {
    /// Time from writing the request to having the whole reply.
    pub round_trip: Duration,
    /// Number of the burst.
    pub burst: u32,
    /// One-way delays in ns, request and reply, if both ends sent their clock.
    pub one_way_ns: Option<(i64, i64)>,
}

impl Requester {
    /// An end whose first burst is due at `start`. `template` is the head of every request.
    pub fn new(start: Instant, template: BounceHead, burst_len: u32, period: Duration) -> Self {
        Self {
            template: BounceHead {
                burst: 0,
                ..template
            },
            burst_len: burst_len.max(1),
            period,
            phase: Phase::Ready,
            left_in_burst: 0,
            next_burst: start,
            reply: Vec::new(),
        }
    }

    /// When the next request is due; `None` while a reply is awaited.
    pub fn due(&self) -> Option<Instant> {
        match self.phase {
            Phase::Awaiting { .. } => None,
            Phase::Ready => Some(self.next_burst),
        }
    }

    /// The next request, if it is due: `now` and `clock` are the same moment.
    pub fn request(&mut self, now: Instant, clock: Timestamp) -> Option<Vec<u8>> {
        if self.phase != Phase::Ready || (self.left_in_burst == 0 && now < self.next_burst) {
            return None;
        }

        if self.left_in_burst == 0 {
            self.begin_burst(now);
        }

        self.left_in_burst -= 1;
        self.phase = Phase::Awaiting { sent: now };
        self.template.sent = clock;
        Some(self.template.message(self.template.request_bytes))
    }

    /// Bytes of the reply that are still missing.
    pub fn missing(&self) -> usize {
        match self.phase {
            Phase::Ready => 0,
            Phase::Awaiting { .. } => {
                (self.template.reply_len() as usize).saturating_sub(self.reply.len())
            }
        }
    }

    /// Takes bytes of the reply from the front of `input`.
    ///
    /// # Errors
    /// When the reply is none.
    pub fn read(
        &mut self,
        now: Instant,
        clock: Timestamp,
        input: &mut &[u8],
    ) -> Result<Option<RoundTrip>, BounceError> {
        let Phase::Awaiting { sent } = self.phase else {
            return Ok(None);
        };
        take(input, &mut self.reply, self.template.reply_len() as usize);
        if self.missing() > 0 {
            return Ok(None);
        }

        self.phase = Phase::Ready;
        let reply = std::mem::take(&mut self.reply);
        let head = reply
            .first_chunk()
            .ok_or(BounceError::Mark)
            .and_then(BounceHead::parse)?;

        Ok(Some(RoundTrip {
            round_trip: now.saturating_duration_since(sent),
            burst: self.template.burst,
            one_way_ns: head.received.zip(head.replied).map(|(received, replied)| {
                (
                    received.ns_since(self.template.sent),
                    clock.ns_since(replied),
                )
            }),
        }))
    }

    /// The request that ends the test.
    #[must_use]
    pub fn stop(&self, clock: Timestamp) -> Vec<u8> {
        let head = BounceHead {
            stop: true,
            sent: clock,
            ..self.template
        };
        head.message(self.template.request_bytes)
    }

    /// Bursts that could not begin because the one before took too long are left out; the grid
    /// stays.
    fn begin_burst(&mut self, now: Instant) {
        self.template.burst = self.template.burst.wrapping_add(1);
        self.left_in_burst = self.burst_len;

        if self.period.is_zero() {
            self.next_burst = now;
            return;
        }

        let late = now.saturating_duration_since(self.next_burst);
        let periods = (late.as_nanos() / self.period.as_nanos()).saturating_add(1);
        let step = self
            .period
            .saturating_mul(u32::try_from(periods).unwrap_or(u32::MAX));
        self.next_burst = self.next_burst.checked_add(step).unwrap_or(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn template() -> BounceHead {
        BounceHead {
            request_bytes: 100,
            quick_ack: true,
            trip_times: true,
            ..BounceHead::default()
        }
    }

    fn clock(us: u64) -> Timestamp {
        Timestamp::from_unix_ns(1_800_000_000_000_000_000 + us * 1000)
    }

    #[test]
    fn a_round_trip_is_measured_at_both_ends() {
        let start = Instant::now();
        let mut client = Requester::new(start, template(), 2, Duration::from_secs(1));
        let mut server = Responder::default();
        let request = client.request(start, clock(0)).expect("due at once");
        assert_eq!(client.request(start, clock(0)), None, "one at a time");

        let mut reply = None;
        // One byte at a time.
        for byte in &request {
            let mut input = std::slice::from_ref(byte);
            reply = server.read(clock(40), &mut input).expect("a request");
        }

        let Some(Reply::Send(head)) = reply else {
            panic!("{reply:?}")
        };
        let bytes = head.reply(clock(70));
        let trip = client
            .read(start + MS, clock(100), &mut bytes.as_slice())
            .expect("a reply");
        let trip = trip.expect("all of it");
        assert_eq!(trip.round_trip, MS);
        assert_eq!(trip.one_way_ns, Some((40_000, 30_000)));
        assert_eq!(trip.burst, 1);
    }

    #[test]
    fn bursts_keep_to_their_grid() {
        let start = Instant::now();
        let mut client = Requester::new(start, template(), 2, Duration::from_secs(1));
        let mut sent = Vec::new();

        for step in 0..40_u32 {
            let now = start + step * MS * 100;
            while let Some(request) = client.request(now, clock(0)) {
                sent.push(step);
                let head: &[u8; HEAD_LEN] = request.first_chunk().expect("a head");
                let bytes = BounceHead::parse(head).expect("our own").reply(clock(0));
                client
                    .read(now, clock(0), &mut bytes.as_slice())
                    .expect("a reply");
            }
        }

        assert_eq!(sent, [0, 0, 10, 10, 20, 20, 30, 30]);
        assert_eq!(client.due(), Some(start + 4000 * MS));
    }

    #[test]
    fn the_last_request_is_not_answered() {
        let client = Requester::new(Instant::now(), template(), 1, Duration::ZERO);
        let mut server = Responder::default();
        let stop = client.stop(clock(0));
        assert_eq!(
            server.read(clock(1), &mut stop.as_slice()),
            Ok(Some(Reply::Stop))
        );
    }

    #[test]
    fn greedy_requests_are_refused_before_they_cost_anything() {
        for (at, word, expected) in [
            (0, 0x0080_0001, BounceError::Mark),
            (4, 63, BounceError::Size(63)),
            (4, u32::MAX, BounceError::Size(u32::MAX)),
            (44, 60_000_001, BounceError::Hold(60_000_001)),
            (60, 1 << 30, BounceError::Size(1 << 30)),
        ] {
            let head = BounceHead {
                reply_bytes: Some(100),
                ..template()
            };
            let mut request = head.message(100);
            crate::wire::put_word(&mut request, at, word);
            assert_eq!(
                Responder::default().read(clock(0), &mut request.as_slice()),
                Err(expected)
            );
        }
    }
}
