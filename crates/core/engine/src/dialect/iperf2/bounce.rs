//! Requests and replies on one connection.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use linerate_iperf2::wire::bounceback::{Reply, Requester, Responder, RoundTrip};
use linerate_iperf2::wire::settings::bounce_head;
use linerate_model::TestSpec;
use linerate_model::metrics::HistogramKind;
use linerate_model::workload::BounceBack;
use linerate_sys::{OsError, PageBuffer, clock, sockopt, stream_io};

use super::machine::wall;
use crate::data::run::PumpInputs;
use crate::data::worker::{Ended, Pump, Pumped, Scratch};
use crate::measure::counters::StreamCounters;
use crate::measure::stream_stats::StreamStats;
use crate::send_buffer::SendBuffer;
use crate::wait::if_ready;

/// One socket and what is still to be written to it.
struct Line {
    fd: Arc<OwnedFd>,
    counters: Arc<StreamCounters>,
    stats: Arc<StreamStats>,
    unsent: SendBuffer,
    quick_ack: bool,
    /// Received messages are requests.
    answers: bool,
    /// The message ends the test and is no part of its amount.
    is_last: bool,
}

/// Room for one read.
const READ_BYTES: usize = 64 * 1024;

impl Line {
    fn new(inputs: PumpInputs, stats: Arc<StreamStats>, quick_ack: bool, answers: bool) -> Self {
        Self {
            fd: inputs.fd,
            counters: inputs.counters,
            stats,
            unsent: SendBuffer::default(),
            quick_ack,
            answers,
            is_last: false,
        }
    }

    /// Writes what is left; false while the socket takes no more.
    fn flush(&mut self) -> io::Result<bool> {
        let sent = self
            .unsent
            .flush(|bytes| stream_io::send(&self.fd, bytes))?;
        if !self.is_last && sent > 0 {
            self.count(sent as u64, 0);
        }

        Ok(self.unsent.is_empty())
    }

    /// At most `wanted` bytes; `None` while there are none.
    fn read<'b>(&mut self, wanted: usize, scratch: &'b mut [u8]) -> io::Result<Option<&'b [u8]>> {
        let len = wanted.min(scratch.len());
        if self.quick_ack {
            // The kernel resets the option, so it is set for each read; without it the test is only
            // slower.
            let _ = sockopt::TCP_QUICKACK.set(&self.fd, true);
        }

        let received = if_ready(stream_io::recv(&self.fd, &mut scratch[..len]))?;
        if received.is_some() && self.answers {
            self.begin_exchange(clock::monotonic_ns());
        }

        match received {
            Some(len) => Ok(Some(&scratch[..len])),
            None => Ok(None),
        }
    }

    /// A request is about to be counted.
    fn begin_exchange(&self, now_ns: u64) {
        self.stats.end_interval_before(now_ns, &self.counters);
    }

    fn count(&self, sent_bytes: u64, received_bytes: u64) {
        self.counters.add(sent_bytes + received_bytes, 0);
        self.stats.update(|samples| {
            samples.sent_bytes += sent_bytes;
            samples.received_bytes += received_bytes;

            if received_bytes > 0 {
                // Requests and replies are shorter than an eighth of a block.
                let reads = samples.reads.get_or_insert_default();
                reads.calls += 1;
                reads.bins[0] += 1;
            }
        });
    }
}

/// Steps until nothing can be done now.
fn pump(mut step: impl FnMut() -> io::Result<Option<Pumped>>) -> Pumped {
    loop {
        match step() {
            Ok(None) => {}
            Ok(Some(pumped)) => return pumped,
            Err(error) => return Pumped::Ended(Ended::Failed(error)),
        }
    }
}

/// The client's end.
pub(super) struct BounceClient {
    line: Line,
    requester: Requester,
    scratch: PageBuffer,
    ends_ns: u64,
    is_over: bool,
    /// The clocks of both ends can be compared.
    has_delays: bool,
}

impl BounceClient {
    pub(super) fn new(
        inputs: PumpInputs,
        spec: &TestSpec,
        bounce: &BounceBack,
        stats: Arc<StreamStats>,
    ) -> Result<Self, OsError> {
        let requester = Requester::new(
            Instant::now(),
            bounce_head(bounce, spec),
            bounce.burst,
            bounce.period,
        );
        let time = spec.end.duration().unwrap_or(Duration::MAX);
        Ok(Self {
            ends_ns: inputs.start_ns.saturating_add(clock::as_ns(time)),
            line: Line::new(inputs, stats, bounce.quick_ack, false),
            requester,
            scratch: PageBuffer::zeroed(READ_BYTES)?,
            is_over: false,
            has_delays: spec.workload.trip_times,
        })
    }

    fn step(&mut self, now_ns: u64) -> io::Result<Option<Pumped>> {
        if !self.line.flush()? {
            return Ok(Some(Pumped::Blocked));
        }
        if self.is_over {
            return Ok(Some(Pumped::Ended(Ended::AmountReached)));
        }
        if self.requester.due().is_none() {
            return self.take_reply();
        }

        if now_ns >= self.ends_ns {
            self.is_over = true;
            self.line.is_last = true;
            self.line.unsent.push(&self.requester.stop(wall()));
            return Ok(None);
        }

        match self.requester.request(Instant::now(), wall()) {
            Some(request) => {
                self.line.begin_exchange(now_ns);
                self.line.unsent.push(&request);
                Ok(None)
            }
            None => {
                let due = self.requester.due().unwrap_or_else(Instant::now);
                let wait = due.saturating_duration_since(Instant::now());
                Ok(Some(Pumped::Until(
                    now_ns.saturating_add(clock::as_ns(wait)).min(self.ends_ns),
                )))
            }
        }
    }

    fn take_reply(&mut self) -> io::Result<Option<Pumped>> {
        let wanted = self.requester.missing();
        let Some(mut bytes) = self.line.read(wanted, &mut self.scratch)? else {
            return Ok(Some(Pumped::Blocked));
        };
        if bytes.is_empty() {
            return Ok(Some(Pumped::Ended(Ended::Eof)));
        }

        self.line.count(0, bytes.len() as u64);
        if let Some(trip) = self
            .requester
            .read(Instant::now(), wall(), &mut bytes)
            .map_err(io::Error::other)?
        {
            note(&self.line.stats, &trip, self.has_delays);
        }

        Ok(None)
    }
}

fn note(stats: &StreamStats, trip: &RoundTrip, has_delays: bool) {
    let round_trip_s = trip.round_trip.as_secs_f64();
    let unix_s = clock::unix_ns() as f64 / 1e9;
    let one_way_ns = trip.one_way_ns.filter(|_| has_delays);
    let one_way_s = one_way_ns.map(|(out, back)| (out as f64 / 1e9, back as f64 / 1e9));
    stats.update(|samples| {
        samples.round_trips.add(round_trip_s);
        samples.add_to_histogram(HistogramKind::RoundTrips, round_trip_s, unix_s);

        if let Some((out_s, back_s)) = one_way_s {
            samples.add_to_histogram(HistogramKind::Out, out_s, unix_s);
            samples.add_to_histogram(HistogramKind::Back, back_s, unix_s);
            samples.out.add(out_s);
            samples.back.add(back_s);
            samples.asymmetry.add((back_s - out_s).abs());
        }
    });
}

impl Pump for BounceClient {
    fn is_duplex(&self) -> bool {
        true
    }

    fn pump(&mut self, now_ns: u64, _: &mut Scratch) -> Pumped {
        // A reply that does not come must not hold the end up.
        if now_ns >= self.ends_ns.saturating_add(REPLY_GRACE_NS) {
            return Pumped::Ended(Ended::AmountReached);
        }

        pump(|| self.step(clock::monotonic_ns()))
    }
}

/// Time a last reply is waited for.
const REPLY_GRACE_NS: u64 = 1_000_000_000;

/// The server's end.
pub(super) struct BounceServer {
    line: Line,
    responder: Responder,
    scratch: PageBuffer,
    /// A reply that waits for its time.
    held: Option<(u64, Reply)>,
    /// Bytes of a request that is not complete.
    uncounted_bytes: u64,
}

impl BounceServer {
    /// The beginning of the first request has been `received` already.
    pub(super) fn new(
        inputs: PumpInputs,
        stats: Arc<StreamStats>,
        quick_ack: bool,
        received: &[u8],
    ) -> io::Result<Self> {
        let line = Line::new(inputs, stats, quick_ack, true);
        let mut server = Self {
            line,
            responder: Responder::default(),
            scratch: PageBuffer::zeroed(READ_BYTES).map_err(|error| error.source)?,
            held: None,
            uncounted_bytes: 0,
        };
        server.take(received)?;

        Ok(server)
    }

    fn take(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        self.uncounted_bytes = self.uncounted_bytes.saturating_add(bytes.len() as u64);
        if let Some(reply) = self
            .responder
            .read(wall(), &mut bytes)
            .map_err(io::Error::other)?
        {
            let request_bytes = std::mem::take(&mut self.uncounted_bytes);
            let hold = match &reply {
                Reply::Send(head) => {
                    self.line.count(0, request_bytes);
                    head.hold
                }
                // The request that ends the test is no part of its amount.
                Reply::Stop => Duration::ZERO,
            };
            self.held = Some((
                clock::monotonic_ns().saturating_add(clock::as_ns(hold)),
                reply,
            ));
        }

        Ok(())
    }

    fn step(&mut self) -> io::Result<Option<Pumped>> {
        if !self.line.flush()? {
            return Ok(Some(Pumped::Blocked));
        }

        match self.held.take() {
            Some((due_ns, reply)) if due_ns > clock::monotonic_ns() => {
                self.held = Some((due_ns, reply));
                return Ok(Some(Pumped::Precisely(due_ns)));
            }
            Some((_, Reply::Send(head))) => {
                self.line.unsent.push(&head.reply(wall()));
                return Ok(None);
            }
            Some((_, Reply::Stop)) => return Ok(Some(Pumped::Ended(Ended::Eof))),
            None => {}
        }

        let wanted = self.responder.missing();
        let Some(n) = self.line.read(wanted, &mut self.scratch)?.map(<[u8]>::len) else {
            return Ok(Some(Pumped::Blocked));
        };
        if n == 0 {
            return Ok(Some(Pumped::Ended(Ended::Eof)));
        }

        let bytes = self.scratch[..n].to_vec();
        self.take(&bytes)?;
        Ok(None)
    }
}

impl Pump for BounceServer {
    fn is_duplex(&self) -> bool {
        true
    }

    fn pump(&mut self, _: u64, _: &mut Scratch) -> Pumped {
        pump(|| self.step())
    }
}
