//! A phase with load: streams that grow in number while probes measure what the load does to
//! others.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use linerate_model::EventSink;
use linerate_model::event::Endpoint;
use linerate_model::path::{LoadControl, LoadDecision, PathDirection, PhaseResult, PhaseSpec};
use linerate_sys::poll::Interest;

use super::control::NativeClient;
use super::event_loop::EventLoop;
use super::prober::Prober;
use super::streams::{OpeningStream, StreamPlan, Wanted};
use super::{NativeError, is_refusal};
use crate::data::quota::Quota;
use crate::dialect::native::load::{EchoSamples, LoadRun, LoadStream};
use crate::dialect::native::probe_budget::ProbeBudget;
use crate::hops::HopSockets;
use crate::reporter::Reporter;
use crate::wait::time_until;

/// Controller of a running load and the sink of its events.
pub struct LoadController<'a> {
    /// Decides on the number of streams and on the end.
    pub control: &'a mut dyn LoadControl,
    /// Receives the events of the load, as those of a test.
    pub sink: Box<dyn EventSink>,
}

/// What measures the path beside a load.
pub(super) struct LoadObservers {
    pub prober: Option<Prober>,
    /// Flow of the trace of the hops, which begins with the load.
    pub hops: Option<HopSockets>,
}

/// Streams of this phase that are not opened yet, one after the other.
struct PendingStreams {
    plan: StreamPlan,
    directions: &'static [PathDirection],
    tokens: Vec<[u8; 16]>,
    next: u16,
    wanted: VecDeque<Wanted>,
    opening: Option<OpeningStream>,
    /// Streams that were not opened, and why.
    failed: Vec<(u16, io::Error)>,
}

/// The event loop's number of the load; streams that are opened have their own.
const NOTICE: u64 = 1 << 16;
/// Longest wait for the delay to return to that of before the load.
const DRAIN_MAX: Duration = Duration::from_secs(1);
const DRAIN_POLL: Duration = Duration::from_millis(20);
/// The delay has returned when it is within this much, or a tenth, of that without load.
const DRAINED_NS: i64 = 2_000_000;

/// Runs the load of a phase that the server is ready for.
pub(super) fn run(
    client: &mut NativeClient,
    spec: &PhaseSpec,
    tokens: Vec<[u8; 16]>,
    observers: LoadObservers,
    steering: LoadController<'_>,
    events: &mut EventLoop<'_>,
    result: &mut PhaseResult,
) -> Result<(), NativeError> {
    let LoadObservers { prober, hops } = observers;
    let budget = prober.as_ref().map(Prober::budget).unwrap_or_default();
    let echoes = Arc::new(EchoSamples::new(Arc::clone(&budget)));
    let LoadController { control, sink } = steering;
    let reporter = Reporter::boxed(sink);

    let mut load = LoadRun::new(
        spec,
        Quota::default(),
        Endpoint::Client,
        client.peer.remote,
        reporter,
    )?;
    let mut pending = PendingStreams::new(client.stream_plan(spec, &echoes), spec, tokens);
    pending.want(control.first_streams());
    let mut opened = 0;
    while !pending.is_empty() {
        if let Some(stream) = pending.open(events) {
            load.add(stream)?;
            opened += 1;
        } else if !pending.is_empty() {
            client.turn(events, Duration::MAX)?;
        }
    }
    if opened == 0 {
        pending.report_failures(result);
        client.stop_phase(events)?;
        return Ok(());
    }

    client.start_phase(events)?;
    load.start()?;
    result.started_ns = load.start_ns.unwrap_or_default();

    client.start_hops(spec, hops)?;
    events.epoll.add(load.notice_fd(), NOTICE, Interest::READ)?;
    let probes = prober.as_ref();
    let driven = match drive(
        client,
        &mut load,
        &mut pending,
        probes,
        &budget,
        control,
        events,
    ) {
        Err(error) if !matches!(error, NativeError::Interrupted(_)) => return Err(error),
        driven => driven,
    };
    events.epoll.remove(load.notice_fd())?;

    // A receiver that closes first resets the connections of the server's senders, which would
    // count as failures.
    load.stop_senders();
    result.remote = Some(client.stop_phase(events)?);
    result.local = load.finish().0;
    client.end_hops(result);
    pending.report_failures(result);
    result.in_band = echoes.take();

    if let Some(prober) = prober {
        let drained = drain(client, &prober, events);
        client.take_probes(prober, result);
        result.is_drained = drained?;
    }

    driven
}

/// Until the steering ends the load.
fn drive(
    client: &mut NativeClient,
    load: &mut LoadRun,
    pending: &mut PendingStreams,
    prober: Option<&Prober>,
    budget: &ProbeBudget,
    control: &mut dyn LoadControl,
    events: &mut EventLoop<'_>,
) -> Result<(), NativeError> {
    loop {
        client.turn(events, time_until(load.deadline_ns()))?;
        while let Some(stream) = pending.open(events) {
            load.add(stream)?;
        }

        let Some(sample) = load.advance() else {
            continue;
        };
        budget.on_sample(&sample);
        match control.sample(&sample, prober.and_then(Prober::newest_rtt_ns)) {
            LoadDecision::Continue => {}
            LoadDecision::AddStreams(count) => pending.want(count),
            LoadDecision::End => return Ok(()),
        }
    }
}

/// Waits until the queue of the load has emptied; `None` where nothing shows it.
fn drain(
    client: &mut NativeClient,
    prober: &Prober,
    events: &mut EventLoop<'_>,
) -> Result<Option<bool>, NativeError> {
    let Some(idle_ns) = client.idle_rtt_ns else {
        return Ok(None);
    };
    let limit_ns = idle_ns + (idle_ns / 10).max(DRAINED_NS);
    let end = Instant::now() + DRAIN_MAX;
    while prober
        .newest_rtt_ns()
        .is_some_and(|rtt_ns| rtt_ns > limit_ns)
    {
        if Instant::now() >= end {
            return Ok(Some(false));
        }
        client.pause(DRAIN_POLL, events)?;
    }

    Ok(Some(true))
}

impl PendingStreams {
    fn new(plan: StreamPlan, spec: &PhaseSpec, tokens: Vec<[u8; 16]>) -> Self {
        Self {
            plan,
            directions: spec.kind.load_directions(),
            tokens,
            next: 0,
            wanted: VecDeque::new(),
            opening: None,
            failed: Vec::new(),
        }
    }

    /// Opens another `count` streams per direction, as far as there are tokens.
    fn want(&mut self, count: u32) {
        for _ in 0..count {
            for direction in self.directions {
                let Some(token) = self.tokens.pop() else {
                    return;
                };
                self.wanted.push_back(Wanted {
                    number: self.next,
                    direction: *direction,
                    token,
                });
                self.next += 1;
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.wanted.is_empty() && self.opening.is_none()
    }

    /// The next stream that is open; `None` while one is under way, and when none is wanted.
    fn open(&mut self, events: &mut EventLoop<'_>) -> Option<LoadStream> {
        loop {
            let mut opening = match self.opening.take() {
                Some(opening) => opening,
                None => {
                    let wanted = self.wanted.pop_front()?;
                    match OpeningStream::begin(&self.plan, wanted, &events.epoll) {
                        Ok(opening) => opening,
                        Err(error) => {
                            self.failed.push((wanted.number, error));
                            continue;
                        }
                    }
                }
            };

            let number = opening.wanted.number;
            let is_ready = events.take_ready(u64::from(number));
            match opening.advance(&self.plan, is_ready, &events.epoll) {
                Ok(true) => return Some(opening.into_stream(&self.plan)),
                Ok(false) => {
                    self.opening = Some(opening);
                    return None;
                }
                Err(error) => self.failed.push((number, error)),
            }
        }
    }

    /// A stream that was not opened leaves the load with fewer.
    fn report_failures(&self, result: &mut PhaseResult) {
        for (number, error) in &self.failed {
            let is_refused = is_refusal(error);
            result.refused += u64::from(is_refused);

            let reason = if is_refused {
                format!("the server refused it: {error}")
            } else {
                error.to_string()
            };
            result.absent.push((format!("stream {number}"), reason));
        }
    }
}
