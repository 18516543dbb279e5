//! The measuring part of a test, the same for a client and for each session of a server.
//!
//! A [`TestRun`] owns the data streams, the workers that move their bytes, the sampler and the
//! timeline. Its owner, the control thread, calls [`TestRun::poll`] when a deadline passed or a
//! worker sent a notice, and gets back the events it has to handle.

mod adjusting;
mod amount;
mod data_path;
mod drain;
mod incoming_cpus;
mod load_sample;
mod open_stream;
mod plan_facts;
mod pump_factory;
mod settings;
mod slot_pairs;
mod stopping;
mod strategy_trials;
mod summary;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use linerate_model::{Event, Stream, StreamId, StreamRole, Transport};
use linerate_sys::{OsError, clock, sockopt};

use crate::data::idle_timeout::IdleTimeout;
use crate::data::plan::plan;
use crate::data::quota::Quota;
use crate::data::worker::{Ended, Notice, RunControl, StreamAssignment, WorkerPool};
use crate::error::{EngineError, Operation};
use crate::measure::counters::{Counts, StreamCounters};
use crate::measure::cpu_usage::CpuMeter;
use crate::measure::sampler::Sampler;
use crate::measure::stream_stats::StreamStats;
use crate::measure::timeline::{Due, Timeline};
use crate::random::Sequence;
use crate::reporter::Reporter;
use amount::Amount;
pub(crate) use drain::Drain;
use open_stream::OpenStream;
use pump_factory::PumpFactory;
pub(crate) use settings::{PumpBuilder, PumpInputs, RunSettings};
use strategy_trials::StrategyTrials;

/// Events that the owner of a run handles.
pub(crate) enum RunEvent {
    /// The end condition is met; only the end that decides sees this.
    EndReached,
    /// The requested stop is complete; totals are final.
    Stopped,
    /// A stream failed or nothing was received for too long; the test cannot continue.
    Failed(EngineError),
    /// A stream ended or failed (independent streams only).
    StreamEnded {
        id: StreamId,
        error: Option<io::Error>,
    },
}

/// One test's data plane.
pub(crate) struct TestRun {
    settings: RunSettings,
    control: Arc<RunControl>,
    streams: Vec<OpenStream>,
    sampler: Sampler,
    amount: Amount,
    /// Limits of the server on this test.
    quota: Quota,
    started: Option<Started>,
    stop: Stop,
    /// Workers whose senders have not stopped yet, after a request.
    senders_stopping: Option<usize>,
    /// Sockets of senders hold little that is not sent yet.
    limits_unsent: bool,
    /// Absent while there is nothing to choose.
    trials: Option<StrategyTrials>,
    /// After `pool` is dropped no thread uses the sockets any more.
    pool: Option<WorkerPool>,
}

/// State that exists once the clock runs.
struct Started {
    start_ns: u64,
    timeline: Timeline,
    cpu: CpuMeter,
    silence: IdleTimeout,
    end: End,
}

/// State of the end of the test.
enum End {
    NotReached,
    /// Everything is handed to the kernel; the peer has not acknowledged all of it.
    Draining(Drain),
    Reached,
}

/// State of a stop.
enum Stop {
    NotAsked,
    /// Waits for bytes that the peer has sent and that have not arrived.
    Draining(Drain),
    Waiting {
        missing: usize,
        deadline_ns: u64,
    },
    Done,
}

/// A worker acknowledges a stop within microseconds; this bound only keeps a broken one from
/// hanging the process.
const STOP_TIMEOUT_NS: u64 = 2_000_000_000;

impl TestRun {
    pub(crate) fn new(settings: RunSettings) -> linerate_sys::Result<Self> {
        let strategy = settings
            .local
            .io_strategy
            .unwrap_or(strategy_trials::INITIAL);
        let control = RunControl::new(strategy)?;
        let amount = Amount::new(&settings, &control);
        let sampler = Sampler::new(settings.spec.transport);

        Ok(Self {
            settings,
            control,
            streams: Vec::new(),
            sampler,
            amount,
            quota: Quota::default(),
            started: None,
            stop: Stop::NotAsked,
            senders_stopping: None,
            limits_unsent: false,
            trials: None,
            pool: None,
        })
    }

    /// Keeps the streams that follow within `quota`.
    pub(crate) fn limit(&mut self, quota: Quota) {
        self.quota = quota;
    }

    fn of_role(&self, role: StreamRole) -> impl Iterator<Item = &OpenStream> {
        self.streams
            .iter()
            .filter(move |open| open.stream.role == role)
    }

    fn receives(&self) -> bool {
        self.of_role(StreamRole::Receiver).next().is_some()
    }

    /// The kernel paces what a sender has written, so that a limited rate has no bursts.
    fn pace(&self, stream: &Stream, fd: impl AsFd) {
        if stream.role == StreamRole::Sender
            && let Some(rate_bps) = self.quota.rate_bps()
        {
            let wanted = sockopt::get_max_pacing_rate(&fd)
                .ok()
                .flatten()
                .unwrap_or(u64::MAX);
            // Workers keep to the rate where the kernel cannot.
            let _ = sockopt::set_max_pacing_rate(&fd, wanted.min((rate_bps / 8).max(1)));
        }
    }

    /// Adds a connected stream; its data starts with [`TestRun::start_data`].
    /// With `peer_coalesces` the other end takes large bursts of datagrams.
    pub(crate) fn add(&mut self, stream: Stream, fd: OwnedFd, peer_coalesces: bool) {
        self.pace(&stream, &fd);
        let paced =
            self.settings.spec.pacing.rate_bps.is_some() && stream.role == StreamRole::Sender;

        if self.settings.spec.transport == Transport::Udp && stream.role == StreamRole::Receiver {
            // Without it datagrams count as arrived when they are read.
            let _ = sockopt::SO_TIMESTAMPNS.set(&fd, true);
        }

        let counters = Arc::new(StreamCounters::new(paced));
        self.open(
            OpenStream {
                stream,
                fd: Arc::new(fd),
                counters,
                peer_coalesces,
                build_pump: None,
                has_own_pump: false,
                ended: false,
            },
            None,
        );
    }

    /// Adds a stream with a pump and statistics of its own. A stream may join a test that runs; its
    /// data starts with [`TestRun::start_data`] or [`TestRun::start_stream`]. `moved` bytes of it
    /// have been moved already.
    pub(crate) fn join(
        &mut self,
        stream: Stream,
        fd: Arc<OwnedFd>,
        stats: Arc<StreamStats>,
        build_pump: PumpBuilder,
        moved: u64,
    ) {
        self.pace(&stream, &fd);
        let counters = Arc::new(StreamCounters::default());
        let build_pump = Some(build_pump);
        counters.add(moved, 0);

        let open = OpenStream {
            stream,
            fd,
            counters,
            peer_coalesces: false,
            build_pump,
            has_own_pump: true,
            ended: false,
        };
        self.open(open, Some(stats));
    }

    fn open(&mut self, open: OpenStream, stats: Option<Arc<StreamStats>>) {
        self.sampler.add(
            open.stream.clone(),
            Arc::clone(&open.fd),
            Arc::clone(&open.counters),
            stats,
        );
        self.streams.push(open);
    }

    /// Starts the data of a stream that joined a running test.
    pub(crate) fn start_stream(&mut self, id: StreamId) -> Result<(), EngineError> {
        let start_ns = clock::monotonic_ns();
        let mut pump_factory =
            PumpFactory::new(&self.settings, &self.amount, &self.quota, start_ns);
        let Some(open) = self.streams.iter_mut().find(|s| s.stream.id == id) else {
            return Ok(());
        };
        let assignment = pump_factory.assignment(open)?;

        match &mut self.pool {
            Some(pool) => pool
                .add(assignment)
                .map_err(Operation::CreateThread.failed()),
            None => self.start_workers(vec![assignment]),
        }
    }

    /// Counts a last datagram that this thread sends. Only after the stream's worker has
    /// finished.
    pub(crate) fn count_last(&self, id: StreamId, bytes: u64) {
        if let Some(open) = self.streams.iter().find(|s| s.stream.id == id) {
            open.counters.add(bytes, 1);
            open.counters.set_packets(open.counters.read().packets + 1);
        }
    }

    /// Counts of a stream so far.
    pub(crate) fn counts(&self, id: StreamId) -> Counts {
        let open = self.streams.iter().find(|s| s.stream.id == id);
        open.map_or_else(Counts::default, |s| s.counters.read())
    }

    /// A stream ends while others continue.
    pub(crate) fn end_stream(&mut self, id: StreamId) {
        self.sampler.end_stream(id);
    }

    /// Ends the senders only. [`RunEvent::Stopped`] follows, and the test continues.
    pub(crate) fn stop_senders(&mut self) {
        // What is still on its way is part of the last interval.
        let receives = self.receives();
        if let Some(started) = &mut self.started
            && !receives
        {
            started.timeline.stop_ticks();
        }

        if let Some(pool) = &self.pool {
            pool.request_stop(false);
            self.senders_stopping = Some(pool.size());
        } else {
            self.senders_stopping = Some(0);
        }
    }

    /// Streams added so far.
    pub(crate) fn stream_count(&self) -> usize {
        self.streams.len()
    }

    /// Becomes readable when [`TestRun::poll`] has something to do before its deadline.
    pub(crate) fn notice_fd(&self) -> BorrowedFd<'_> {
        self.control.notice_fd()
    }

    /// The test began.
    pub(crate) fn has_started(&self) -> bool {
        self.started.is_some()
    }

    /// Start of the clock (monotonic), once it runs.
    pub(crate) fn start_ns(&self) -> Option<u64> {
        self.started.as_ref().map(|started| started.start_ns)
    }

    /// Time between two interval reports.
    pub(crate) fn interval(&self) -> Option<Duration> {
        self.settings.local.interval
    }

    /// Starts the clock; warm-up and rates count from here.
    pub(crate) fn start_clock(&mut self, now_ns: u64) {
        let RunSettings {
            spec,
            local,
            decides_end,
            ..
        } = &self.settings;
        self.sampler.begin(now_ns);
        let receives = self.receives();
        let timeline = Timeline::new(spec, local.interval, *decides_end, now_ns);
        self.started = Some(Started {
            start_ns: now_ns,
            timeline: if self.settings.keeps_grid {
                timeline.on_grid()
            } else {
                timeline
            },
            cpu: CpuMeter::start(now_ns),
            silence: IdleTimeout::new(receives.then_some(local.rcv_timeout), now_ns),
            end: End::NotReached,
        });

        if spec.omit.is_zero() {
            self.amount.arm();
        }
    }

    /// Starts the workers.
    pub(crate) fn start_data(&mut self) -> Result<(), EngineError> {
        let start_ns = self
            .started
            .as_ref()
            .map_or_else(clock::monotonic_ns, |s| s.start_ns);
        let mut pump_factory =
            PumpFactory::new(&self.settings, &self.amount, &self.quota, start_ns);
        let assignments = self
            .streams
            .iter_mut()
            .map(|s| pump_factory.assignment(s))
            .collect::<Result<Vec<_>, _>>()?;

        self.start_workers(assignments)
    }

    fn start_workers(&mut self, assignments: Vec<StreamAssignment>) -> Result<(), EngineError> {
        let RunSettings {
            spec, local, cpu, ..
        } = &self.settings;
        let cpus = plan_facts::usable_cpus(*cpu);
        let facts = plan_facts::facts(&self.settings, &self.streams, &cpus);
        let plan = plan(&facts);
        let pool = WorkerPool::start(&self.control, assignments, plan, cpus, *cpu);
        self.pool = Some(pool.map_err(Operation::CreateThread.failed())?);

        if local.io_strategy.is_none() {
            self.limits_unsent = plan_facts::limit_unsent(spec, &self.streams);
            let started = self.started.as_ref();
            self.trials = StrategyTrials::new(
                &plan_facts::adjustable(spec, &self.streams, &facts, &plan),
                self.streams.len(),
                clock::monotonic_ns(),
                started.and_then(|started| started.timeline.planned_end_ns()),
                Sequence::seeded(),
            );
        }

        Ok(())
    }

    /// When [`TestRun::poll`] has to be called even without a notice, monotonic ns.
    pub(crate) fn next_deadline_ns(&self) -> Option<u64> {
        let stopping = match self.stop {
            Stop::Draining(ref drain) => Some(drain.poll_ns),
            Stop::Waiting { deadline_ns, .. } => Some(deadline_ns),
            Stop::NotAsked | Stop::Done => None,
        };
        let started = self
            .started
            .as_ref()
            .filter(|_| matches!(self.stop, Stop::NotAsked));
        let timeline = started.and_then(|s| s.timeline.next_ns());
        let silence = started.and_then(|s| s.silence.next_ns());
        let flush = started.and_then(|s| match s.end {
            End::Draining(ref drain) => Some(drain.poll_ns),
            End::NotReached | End::Reached => None,
        });
        let trial = started
            .and(self.trials.as_ref())
            .map(StrategyTrials::next_ns);
        let workers = started
            .and(self.pool.as_ref())
            .and_then(WorkerPool::next_check_ns);

        [stopping, timeline, silence, flush, trial, workers]
            .into_iter()
            .flatten()
            .min()
    }

    /// Handles notices and deadlines.
    pub(crate) fn poll(&mut self, now_ns: u64, reporter: &mut Reporter<'_>) -> Vec<RunEvent> {
        let mut events = Vec::new();
        for notice in self.control.take_notices() {
            self.on_notice(notice, now_ns, &mut events);
        }

        if self.senders_stopping == Some(0) {
            self.senders_stopping = None;
            events.push(RunEvent::Stopped);
        }

        if let Stop::Draining(drain) = &mut self.stop
            && drain.is_over(now_ns, self.sampler.received_bytes())
        {
            self.stop_workers(now_ns, true);
        }

        match self.stop {
            Stop::NotAsked => self.on_deadlines(now_ns, reporter, &mut events),
            Stop::Waiting {
                missing,
                deadline_ns,
            } if missing == 0 || now_ns >= deadline_ns => {
                self.stop = Stop::Done;
                events.push(RunEvent::Stopped);
            }
            Stop::Draining(_) | Stop::Waiting { .. } | Stop::Done => {}
        }

        events
    }

    fn on_notice(&mut self, notice: Notice, now_ns: u64, events: &mut Vec<RunEvent>) {
        match notice {
            Notice::Stopped => {
                if let Some(missing) = &mut self.senders_stopping {
                    *missing = missing.saturating_sub(1);
                } else if let Stop::Waiting { missing, .. } = &mut self.stop {
                    *missing = missing.saturating_sub(1);
                }
            }
            Notice::TargetReached => self.reach_end(events),
            Notice::Ended(id, ended) if self.settings.independent => {
                let error = match ended {
                    Ended::Failed(error) => Some(error),
                    Ended::AmountReached | Ended::Eof => None,
                };
                events.push(RunEvent::StreamEnded { id, error });
            }
            Notice::Ended(id, Ended::AmountReached) => self.on_sender_end(id, now_ns),
            // The control connection carries the reason.
            Notice::Ended(id, Ended::Eof) => self.mark_ended(id),
            Notice::Ended(id, Ended::Failed(error)) => {
                self.mark_ended(id);
                if matches!(self.stop, Stop::NotAsked) {
                    let stream = self.streams.get(id.0 as usize);
                    let operation = match stream.map(|s| s.stream.role) {
                        Some(StreamRole::Receiver) => Operation::ReadStream,
                        _ => Operation::WriteStream,
                    };
                    let error = operation.failed()(OsError::new("stream", "", error));
                    events.push(RunEvent::Failed(error));
                }
            }
        }
    }

    fn mark_ended(&mut self, id: StreamId) {
        if let Some(stream) = self.streams.get_mut(id.0 as usize) {
            stream.ended = true;
        }
    }

    fn on_sender_end(&mut self, id: StreamId, now_ns: u64) {
        self.mark_ended(id);
        let all_ended = self.of_role(StreamRole::Sender).all(|s| s.ended);

        if let Some(started) = &mut self.started
            && all_ended
            && self.settings.decides_end
            && matches!(started.end, End::NotReached)
        {
            started.end = End::Draining(Drain::of_senders(now_ns));
        }
    }

    fn reach_end(&mut self, events: &mut Vec<RunEvent>) {
        if let Some(started) = &mut self.started
            && !matches!(started.end, End::Reached)
        {
            started.end = End::Reached;
            events.push(RunEvent::EndReached);
        }
    }

    /// Ends the test before its end condition is met; true if it had not ended.
    pub(crate) fn end_early(&mut self) -> bool {
        let mut events = Vec::new();
        self.reach_end(&mut events);
        !events.is_empty()
    }

    fn on_deadlines(
        &mut self,
        now_ns: u64,
        reporter: &mut Reporter<'_>,
        events: &mut Vec<RunEvent>,
    ) {
        while let Some(due) = self
            .started
            .as_mut()
            .and_then(|s| s.timeline.take_due(now_ns))
        {
            match due {
                Due::Tick => {
                    let omitting = self.started.as_ref().is_some_and(|s| s.timeline.omitting());
                    self.report_interval(omitting, reporter);
                }
                Due::OmitEnd => self.end_warm_up(now_ns, reporter),
                Due::End => self.reach_end(events),
            }
        }

        self.adjust_workers(now_ns);
        self.advance_trials(now_ns);
        self.check_send_queues(now_ns, events);

        let received = self.sampler.received_bytes();
        if let Some(started) = &mut self.started
            && started.silence.is_expired(now_ns, received)
        {
            events.push(RunEvent::Failed(EngineError::Idle));
        }
    }

    /// Closes the current interval and reports it.
    fn report_interval(&mut self, omitting: bool, reporter: &mut Reporter<'_>) {
        let report = self.sampler.close_interval(omitting, false);
        if !report.streams.is_empty() {
            reporter.emit(&Event::Interval(report));
        }
    }

    fn end_warm_up(&mut self, now_ns: u64, reporter: &mut Reporter<'_>) {
        if self.settings.local.interval.is_some() {
            reporter.emit(&Event::Interval(self.sampler.close_interval(true, true)));
        }

        self.sampler.begin(now_ns);
        self.amount.arm();

        if let Some(started) = &mut self.started {
            started.cpu = CpuMeter::start(now_ns);
        }

        reporter.emit(&Event::OmitEnded);
    }

    /// Discards notices that arrived after the totals were taken.
    pub(crate) fn discard_notices(&mut self) {
        self.control.take_notices();
    }

    /// Ends the workers and returns the sockets of the streams.
    pub(crate) fn into_sockets(mut self) -> Vec<Arc<OwnedFd>> {
        self.pool = None;
        self.streams.into_iter().map(|s| s.fd).collect()
    }

    /// Streams on which nothing has moved yet.
    pub(crate) fn untouched(&self) -> impl Iterator<Item = &Stream> {
        self.streams
            .iter()
            .filter(|s| s.counters.read().bytes == 0)
            .map(|s| &s.stream)
    }
}
