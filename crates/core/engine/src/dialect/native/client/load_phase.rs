//! A phase with load: streams that grow in number while probes measure what the load does to
//! others.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{Duration, Instant};

use linerate_model::EventSink;
use linerate_model::event::Endpoint;
use linerate_model::path::{
    LoadControl, LoadDecision, PathDirection, PhaseKind, PhaseResult, PhaseSpec,
};
use linerate_sys::clock;
use linerate_sys::poll::{Epoll, Interest};

use super::control::NativeClient;
use super::prober::Prober;
use super::streams::{self, Opened, StreamPlan, Wanted};
use super::{NativeError, is_refusal};
use crate::data::quota::Quota;
use crate::dialect::native::load::{EchoSamples, LoadRun, LoadStream};
use crate::dialect::native::probe_budget::ProbeBudget;
use crate::error::Operation;
use crate::interrupts::Interrupts;
use crate::reporter::Reporter;

/// Controller of a running load and the sink of its events.
pub struct LoadController<'a> {
    /// Decides on the number of streams and on the end.
    pub control: &'a mut dyn LoadControl,
    /// Receives the events of the load, as those of a test.
    pub sink: Box<dyn EventSink>,
}

/// Streams of this phase that are not opened yet.
struct PendingStreams {
    plan: StreamPlan,
    directions: Vec<PathDirection>,
    tokens: Vec<[u8; 16]>,
    next: u16,
    opening: Vec<Receiver<Opened>>,
    /// Streams that were not opened, and why.
    failed: Vec<(u16, io::Error)>,
}

const NOTICE: u64 = 0;
const CONTROL: u64 = 1;
const INTERRUPT: u64 = 2;
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
    prober: Option<Prober>,
    steering: LoadController<'_>,
    interrupts: &dyn Interrupts,
    result: &mut PhaseResult,
) -> Result<(), NativeError> {
    let budget = prober.as_ref().map(Prober::budget).unwrap_or_default();
    let echoes = Arc::new(EchoSamples::new(Arc::clone(&budget)));
    let LoadController { control, sink } = steering;
    let reporter = Reporter::boxed(sink);

    let mut load = LoadRun::new(
        spec,
        Quota::default(),
        Endpoint::Client,
        client.remote(),
        reporter,
    )?;
    let mut pending = PendingStreams::new(client.stream_plan(spec, &echoes), spec, tokens);
    let streams = pending.open(control.first_streams());
    if streams.is_empty() {
        pending.report_failures(result);
        client.stop_phase(interrupts)?;
        return Ok(());
    }

    for stream in streams {
        load.add(stream)?;
    }

    client.start_phase(interrupts)?;
    load.start()?;
    result.started_ns = load.start_ns().unwrap_or_default();

    let driven = drive(
        client,
        &mut load,
        &mut pending,
        &Probes {
            prober: prober.as_ref(),
            budget: &budget,
        },
        control,
        interrupts,
    );
    let interrupted = match driven {
        Err(NativeError::Interrupted(signal_text)) => Some(signal_text),
        Err(error) => return Err(error),
        Ok(()) => None,
    };

    // A receiver that closes first resets the connections of the server's senders, which would
    // count as failures.
    load.stop_senders();
    result.remote = client.stop_phase(interrupts)?.map(|remote| *remote);
    result.local = load.finish().0;
    pending.report_failures(result);
    result.in_band = echoes.take();

    if let Some(prober) = prober {
        result.is_drained = drain(&prober, client.idle_rtt_ns());
        client.take_probes(prober, result);
    }

    interrupted.map_or(Ok(()), |signal_text| {
        Err(NativeError::Interrupted(signal_text))
    })
}

/// Probes that run during a load.
struct Probes<'a> {
    prober: Option<&'a Prober>,
    budget: &'a ProbeBudget,
}

/// Until the steering ends the load.
fn drive(
    client: &mut NativeClient,
    load: &mut LoadRun,
    pending: &mut PendingStreams,
    probes: &Probes<'_>,
    control: &mut dyn LoadControl,
    interrupts: &dyn Interrupts,
) -> Result<(), NativeError> {
    let system = |error| NativeError::from(Operation::Poll.failed()(error));
    let epoll = Epoll::new().map_err(system)?;
    epoll
        .add(load.notice_fd(), NOTICE, Interest::READ)
        .map_err(system)?;

    // One that was made before the load began is watched like the first.
    client.takes_new_connection();
    watch_control(&epoll, client)?;
    epoll
        .add(interrupts.fd(), INTERRUPT, Interest::READ)
        .map_err(system)?;

    let mut events = Vec::new();
    loop {
        let wait_ns = load.deadline_ns().saturating_sub(clock::monotonic_ns());
        // An interrupted wait is repeated.
        let _ = epoll.wait(&mut events, Some(Duration::from_nanos(wait_ns)));

        for event in &events {
            match event.token {
                CONTROL => client.on_control(),
                INTERRUPT => {
                    if let Some(signal_text) = interrupts.take() {
                        return Err(NativeError::Interrupted(signal_text));
                    }
                }
                _ => {}
            }
        }

        client.on_time(interrupts)?;
        if client.takes_new_connection() {
            watch_control(&epoll, client)?;
        }

        let Some(sample) = load.advance() else {
            continue;
        };
        for stream in pending.take_opened() {
            load.add(stream)?;
        }

        probes.budget.on_sample(&sample);
        let newest_rtt_ns = probes.prober.and_then(Prober::newest_rtt_ns);
        match control.sample(&sample, newest_rtt_ns) {
            LoadDecision::Continue => {}
            LoadDecision::AddStreams(count) => pending.open_in_background(count),
            LoadDecision::End => return Ok(()),
        }
    }
}

/// A closed descriptor leaves the event loop by itself.
fn watch_control(epoll: &Epoll, client: &NativeClient) -> Result<(), NativeError> {
    let Some(fd) = client.control_fd() else {
        return Ok(());
    };
    epoll
        .add(fd, CONTROL, Interest::READ)
        .map_err(|error| Operation::Poll.failed()(error).into())
}

/// Waits until the queue of the load has emptied; `None` where nothing shows it.
fn drain(prober: &Prober, idle_rtt_ns: Option<i64>) -> Option<bool> {
    let idle_ns = idle_rtt_ns?;
    let limit_ns = idle_ns + (idle_ns / 10).max(DRAINED_NS);
    let is_delayed = || {
        prober
            .newest_rtt_ns()
            .is_some_and(|rtt_ns| rtt_ns > limit_ns)
    };

    let end = Instant::now() + DRAIN_MAX;
    while is_delayed() {
        if Instant::now() >= end {
            return Some(false);
        }
        std::thread::sleep(DRAIN_POLL);
    }

    Some(true)
}

impl PendingStreams {
    fn new(plan: StreamPlan, spec: &PhaseSpec, tokens: Vec<[u8; 16]>) -> Self {
        let directions = match spec.kind {
            PhaseKind::Down => vec![PathDirection::Down],
            PhaseKind::Up => vec![PathDirection::Up],
            _ => vec![PathDirection::Down, PathDirection::Up],
        };
        Self {
            plan,
            directions,
            tokens,
            next: 0,
            opening: Vec::new(),
            failed: Vec::new(),
        }
    }

    /// The next `count` streams per direction.
    fn wanted(&mut self, count: u32) -> Vec<Wanted> {
        let mut wanted = Vec::new();
        for _ in 0..count {
            for direction in &self.directions {
                let Some(token) = self.tokens.pop() else {
                    return wanted;
                };
                wanted.push(Wanted {
                    number: self.next,
                    direction: *direction,
                    token,
                });
                self.next += 1;
            }
        }

        wanted
    }

    /// Opens the first streams.
    fn open(&mut self, count: u32) -> Vec<LoadStream> {
        let wanted = self.wanted(count);
        let mut opened = Vec::with_capacity(wanted.len());

        for stream in wanted {
            match streams::open(&self.plan, stream) {
                Ok(stream) => opened.push(stream),
                Err(error) => self.failed.push((stream.number, error)),
            }
        }

        opened
    }

    fn open_in_background(&mut self, count: u32) {
        let wanted = self.wanted(count);
        // Without a thread the load stays as it is.
        self.opening
            .extend(streams::open_in_background(&self.plan, wanted).ok());
    }

    fn take_opened(&mut self) -> Vec<LoadStream> {
        let (mut opened, failed) = (Vec::new(), &mut self.failed);
        self.opening.retain(|receiver| {
            loop {
                match receiver.try_recv() {
                    Ok((_, Ok(stream))) => opened.push(stream),
                    Ok((number, Err(error))) => failed.push((number, error)),
                    Err(TryRecvError::Empty) => return true,
                    Err(TryRecvError::Disconnected) => return false,
                }
            }
        });
        opened
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
