//! The measuring part of a test, the same for a client and for each session of a server.
//!
//! A [`TestRun`] owns the data streams, the workers that move their bytes, the sampler and the timeline. Its owner, the
//! control thread, calls [`TestRun::poll`] when a deadline passed or a worker had something to say, and gets back what
//! it has to tell the peer.

mod amount;
mod describing;
mod flushing;
mod gathering;
mod makings;
mod numbers;
mod strategy_trials;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use linerate_iperf3::ErrorCode;
use linerate_model::details::{Details, Totals};
use linerate_model::spec::LocalOptions;
use linerate_model::summary::{FileSummary, StreamSummary, Summary};
use linerate_model::{Event, Flow, Stream, StreamId, StreamRole, TestSpec, Transport};
use linerate_sys::poll::{self, Interest};
use linerate_sys::{OsError, clock, sockopt, stream_io};

use crate::counters::{Counts, StreamCounters};
use crate::cpu_usage::CpuMeter;
use crate::data_socket::{SetupError, setup};
use crate::gauge::Gauge;
use crate::overflow;
use crate::quota::Quota;
use crate::random::Sequence;
use crate::reporter::Reporter;
use crate::sampler::Sampler;
use crate::silence::SilenceGuard;
use crate::timeline::{Due, Timeline};
use crate::worker::{Assignment, Crew, Ended, Notice, Pump, RunControl, is_adjustable, pause_max_us};
use amount::Amount;
use describing::StrategyUsed;
pub(crate) use flushing::Flushing;
pub(crate) use gathering::Gathering;
use makings::Makings;
use strategy_trials::{Adjustable, Reading, StrategyTrials};

/// What the owner of a run has to react to.
#[derive(Debug)]
pub(crate) enum RunEvent {
    /// The end condition is met; only the end that decides sees this.
    EndReached,
    /// The stop that was asked for is complete; totals are final.
    Stopped,
    /// Nothing was received for too long.
    Silent,
    /// A stream failed; the test cannot go on.
    StreamFailed { role: StreamRole, error: io::Error },
    /// Of streams that end one by one: this one is through, or failed.
    StreamEnded { id: StreamId, error: Option<io::Error> },
}

/// What decides how a run goes, fixed before it starts.
pub(crate) struct RunSettings {
    pub(crate) spec: TestSpec,
    pub(crate) local: LocalOptions,
    /// This end decides when the test is over (clients do).
    pub(crate) decides_end: bool,
    /// Processor for the workers.
    pub(crate) cpu: Option<u32>,
    /// Streams begin and end one by one; what happens to one leaves the others alone.
    pub(crate) independent: bool,
}

/// What a pump is made of.
pub(crate) struct Parts {
    pub(crate) fd: Arc<OwnedFd>,
    pub(crate) counters: Arc<StreamCounters>,
    /// When the test began, monotonic ns.
    pub(crate) start_ns: u64,
}

/// Makes the pump of a stream when its data is to flow.
pub(crate) type MakePump = Box<dyn FnOnce(Parts) -> Result<Box<dyn Pump>, OsError> + Send>;

/// One test's data plane.
pub(crate) struct TestRun {
    settings: RunSettings,
    control: Arc<RunControl>,
    streams: Vec<OpenStream>,
    sampler: Sampler,
    amount: Amount,
    /// What a server lets this test move.
    quota: Quota,
    started: Option<Started>,
    stop: Stop,
    /// Workers whose senders have not stopped yet, once they were asked to.
    senders_stopping: Option<usize>,
    /// Absent while there is nothing to choose.
    trials: Option<StrategyTrials>,
    /// After `crew` is dropped nobody touches the sockets any more.
    crew: Option<Crew>,
}

struct OpenStream {
    stream: Stream,
    fd: Arc<OwnedFd>,
    counters: Arc<StreamCounters>,
    peer_coalesces: bool,
    /// Of a stream whose dialect makes the pump itself, until it is made.
    make: Option<MakePump>,
    /// The sender used up its amount, or the receiver read to the end.
    through: bool,
}

/// State that exists once the clock runs.
struct Started {
    start_ns: u64,
    timeline: Timeline,
    cpu: CpuMeter,
    silence: SilenceGuard,
    end: End,
}

/// How far the end of the test has come.
enum End {
    NotReached,
    /// Everything is handed to the kernel; the peer has not acknowledged all of it.
    Flushing(Flushing),
    Reached,
}

/// How far a stop has come.
enum Stop {
    NotAsked,
    /// Waits for bytes that the peer has sent and that have not arrived.
    Gathering(Gathering),
    Waiting {
        missing: usize,
        deadline_ns: u64,
    },
    Done,
}

/// A worker acknowledges a stop within microseconds; this bound only keeps a broken one from hanging the process.
const STOP_PATIENCE_NS: u64 = 2_000_000_000;

impl TestRun {
    pub(crate) fn new(settings: RunSettings) -> linerate_sys::Result<Self> {
        let strategy = settings.local.io_strategy.unwrap_or(strategy_trials::INITIAL);
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
            trials: None,
            crew: None,
        })
    }

    /// Keeps the streams that follow within `quota`.
    pub(crate) fn limit(&mut self, quota: Quota) {
        self.quota = quota;
    }

    /// The kernel paces what a sender has written, so that a limited rate has no bursts.
    fn pace(&self, stream: &Stream, fd: BorrowedFd<'_>) {
        if stream.role == StreamRole::Sender
            && let Some(rate_bps) = self.quota.rate_bps()
        {
            let wanted = sockopt::get_max_pacing_rate(fd).ok().flatten().unwrap_or(u64::MAX);
            // Workers keep to the rate where the kernel cannot.
            let _ = sockopt::set_max_pacing_rate(fd, wanted.min((rate_bps / 8).max(1)));
        }
    }

    /// Adds a connected stream; its data starts with [`TestRun::start_data`].
    /// `peer_coalesces` tells that the other end takes large bursts of datagrams.
    pub(crate) fn add(&mut self, stream: Stream, fd: OwnedFd, peer_coalesces: bool) {
        self.pace(&stream, fd.as_fd());
        let paced = self.settings.spec.pacing.rate_bps.is_some() && stream.role == StreamRole::Sender;
        if self.settings.spec.transport == Transport::Udp && stream.role == StreamRole::Receiver {
            // Without it datagrams count as arrived when they are read.
            let _ = sockopt::set_receive_stamps(fd.as_fd(), true);
        }
        let (fd, counters) = (Arc::new(fd), Arc::new(StreamCounters::new(paced)));
        self.sampler
            .add(stream.clone(), Arc::clone(&fd), Arc::clone(&counters), None);
        self.streams.push(OpenStream {
            stream,
            fd,
            counters,
            peer_coalesces,
            make: None,
            through: false,
        });
    }

    /// Adds a stream with a pump and a gauge of its own. A stream may join a test that runs; its data starts with
    /// [`TestRun::start_data`] or [`TestRun::start_stream`]. `moved` bytes of it have been moved already.
    pub(crate) fn join(&mut self, stream: Stream, fd: Arc<OwnedFd>, gauge: Arc<Gauge>, make: MakePump, moved: u64) {
        self.pace(&stream, fd.as_fd());
        let counters = Arc::new(StreamCounters::default());
        self.sampler
            .add(stream.clone(), Arc::clone(&fd), Arc::clone(&counters), Some(gauge));
        counters.add(moved, 0);
        self.streams.push(OpenStream {
            stream,
            fd,
            counters,
            peer_coalesces: false,
            make: Some(make),
            through: false,
        });
    }

    /// Starts the data of a stream that joined a running test.
    pub(crate) fn start_stream(&mut self, id: StreamId) -> Result<(), SetupError> {
        let start_ns = clock::monotonic_ns();
        let mut makings = Makings::new(&self.settings, &self.amount, &self.quota, start_ns);
        let Some(open) = self.streams.iter_mut().find(|s| s.stream.id == id) else {
            return Ok(());
        };
        let assignment = makings.assignment(open)?;
        match &mut self.crew {
            Some(crew) => crew.add(assignment).map_err(setup(ErrorCode::PthreadCreate)),
            None => self.start_crew(vec![assignment]),
        }
    }

    /// Counts a last datagram that this thread sends. Only when the worker of the stream is through.
    pub(crate) fn count_last(&self, id: StreamId, bytes: u64) {
        if let Some(open) = self.streams.iter().find(|s| s.stream.id == id) {
            open.counters.add(bytes, 1);
            open.counters.set_packets(open.counters.read().packets + 1);
        }
    }

    /// What a stream has moved so far.
    pub(crate) fn counts(&self, id: StreamId) -> Counts {
        let open = self.streams.iter().find(|s| s.stream.id == id);
        open.map_or_else(Counts::default, |s| s.counters.read())
    }

    /// A stream is through while others go on.
    pub(crate) fn end_stream(&mut self, id: StreamId) {
        self.sampler.end_stream(id);
    }

    /// Ends the senders and leaves the receivers alone. [`RunEvent::Stopped`] follows, and the test goes on.
    pub(crate) fn stop_senders(&mut self) {
        if let Some(crew) = &self.crew {
            crew.request_stop(false);
            self.senders_stopping = Some(crew.size());
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
        let receives = self.streams.iter().any(|s| s.stream.role == StreamRole::Receiver);
        self.started = Some(Started {
            start_ns: now_ns,
            timeline: Timeline::new(spec, local.interval, *decides_end, now_ns),
            cpu: CpuMeter::start(now_ns),
            silence: SilenceGuard::new(receives.then_some(local.rcv_timeout), now_ns),
            end: End::NotReached,
        });
        if spec.omit.is_zero() {
            self.amount.arm();
        }
    }

    /// Starts the workers.
    pub(crate) fn start_data(&mut self) -> Result<(), SetupError> {
        let start_ns = self.started.as_ref().map_or_else(clock::monotonic_ns, |s| s.start_ns);
        let mut makings = Makings::new(&self.settings, &self.amount, &self.quota, start_ns);
        let assignments = self
            .streams
            .iter_mut()
            .map(|s| makings.assignment(s))
            .collect::<Result<Vec<_>, _>>()?;
        self.start_crew(assignments)
    }

    fn start_crew(&mut self, assignments: Vec<Assignment>) -> Result<(), SetupError> {
        let crew = Crew::start(&self.control, assignments, self.settings.cpu);
        self.crew = Some(crew.map_err(setup(ErrorCode::PthreadCreate))?);
        if self.settings.local.io_strategy.is_none() {
            let adjustable = adjustable(&self.settings.spec, &self.streams);
            self.trials = StrategyTrials::new(
                adjustable,
                self.streams.len(),
                clock::monotonic_ns(),
                Sequence::seeded(),
            );
        }
        Ok(())
    }

    /// Ends a slot of a trial, or begins one.
    fn advance_trials(&mut self, now_ns: u64) {
        let (Some(trials), Some(crew)) = (&mut self.trials, &self.crew) else {
            return;
        };
        if now_ns < trials.next_ns() {
            return;
        }
        let (cpu_ns, waits) = crew.load();
        let strategy = trials.advance(Reading {
            at_ns: now_ns,
            bytes: self.sampler.total_bytes(),
            cpu_ns,
            waits,
        });
        self.control.set_strategy(strategy);
    }

    /// When [`TestRun::poll`] has to be called even without a notice, monotonic ns.
    pub(crate) fn next_deadline_ns(&self) -> Option<u64> {
        let stopping = match self.stop {
            Stop::Gathering(ref gathering) => Some(gathering.look_ns()),
            Stop::Waiting { deadline_ns, .. } => Some(deadline_ns),
            Stop::NotAsked | Stop::Done => None,
        };
        let started = self.started.as_ref().filter(|_| matches!(self.stop, Stop::NotAsked));
        let timeline = started.and_then(|s| s.timeline.next_ns());
        let silence = started.and_then(|s| s.silence.next_ns());
        let flush = started.and_then(|s| match s.end {
            End::Flushing(ref flushing) => Some(flushing.look_ns()),
            End::NotReached | End::Reached => None,
        });
        let trial = started.and(self.trials.as_ref()).map(StrategyTrials::next_ns);
        [stopping, timeline, silence, flush, trial].into_iter().flatten().min()
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
        if let Stop::Gathering(gathering) = &mut self.stop
            && gathering.is_over(now_ns, self.sampler.received_bytes())
        {
            self.stop_workers(now_ns, true);
        }
        match self.stop {
            Stop::NotAsked => self.on_deadlines(now_ns, reporter, &mut events),
            Stop::Waiting { missing, deadline_ns } if missing == 0 || now_ns >= deadline_ns => {
                self.stop = Stop::Done;
                events.push(RunEvent::Stopped);
            }
            Stop::Gathering(_) | Stop::Waiting { .. } | Stop::Done => {}
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
            Notice::Ended(id, Ended::AmountReached) => self.on_sender_through(id, now_ns),
            // The control connection tells why; a stream alone says nothing.
            Notice::Ended(id, Ended::Eof) => self.mark_through(id),
            Notice::Ended(id, Ended::Failed(error)) => {
                self.mark_through(id);
                let role = self
                    .streams
                    .get(id.0 as usize)
                    .map_or(StreamRole::Sender, |s| s.stream.role);
                if matches!(self.stop, Stop::NotAsked) {
                    events.push(RunEvent::StreamFailed { role, error });
                }
            }
        }
    }

    fn mark_through(&mut self, id: StreamId) {
        if let Some(stream) = self.streams.get_mut(id.0 as usize) {
            stream.through = true;
        }
    }

    fn on_sender_through(&mut self, id: StreamId, now_ns: u64) {
        self.mark_through(id);
        let all_through = self
            .streams
            .iter()
            .filter(|s| s.stream.role == StreamRole::Sender)
            .all(|s| s.through);
        if let Some(started) = &mut self.started
            && all_through
            && self.settings.decides_end
            && matches!(started.end, End::NotReached)
        {
            started.end = End::Flushing(Flushing::new(now_ns));
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

    fn on_deadlines(&mut self, now_ns: u64, reporter: &mut Reporter<'_>, events: &mut Vec<RunEvent>) {
        while let Some(due) = self.started.as_mut().and_then(|s| s.timeline.take_due(now_ns)) {
            match due {
                Due::Tick => {
                    let omitting = self.started.as_ref().is_some_and(|s| s.timeline.omitting());
                    self.report_interval(omitting, false, reporter);
                }
                Due::OmitEnd => self.end_warm_up(now_ns, reporter),
                Due::End => self.reach_end(events),
            }
        }
        self.advance_trials(now_ns);
        self.look_at_send_queues(now_ns, events);
        let received = self.sampler.received_bytes();
        if let Some(started) = &mut self.started
            && started.silence.is_silent(now_ns, received)
        {
            events.push(RunEvent::Silent);
        }
    }

    /// Closes the current interval and reports it.
    pub(crate) fn report_interval(&mut self, omitting: bool, last: bool, reporter: &mut Reporter<'_>) {
        let report = self.sampler.close_interval(omitting, last);
        let measured = self.sampler.take_measured();
        if report.streams.is_empty() {
            return;
        }
        if !measured.is_empty() {
            reporter.emit(&Event::Details(Details::Interval(measured)));
        }
        reporter.emit(&Event::Interval(report));
    }

    /// What was measured beyond bytes, one for each stream.
    pub(crate) fn totals(&self) -> Vec<Totals> {
        self.sampler.totals()
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

    /// A limited test ends when its last byte is acknowledged, so that its rate is the network's and not that of a
    /// copy into the send buffer.
    fn look_at_send_queues(&mut self, now_ns: u64, events: &mut Vec<RunEvent>) {
        let Some(End::Flushing(flushing)) = self.started.as_ref().map(|s| &s.end) else {
            return;
        };
        if now_ns < flushing.look_ns() {
            return;
        }
        let left = self.outstanding_bytes();
        let over = match self.started.as_mut().map(|s| &mut s.end) {
            Some(End::Flushing(flushing)) => flushing.is_over(now_ns, left),
            _ => false,
        };
        if over {
            self.reach_end(events);
        }
    }

    /// Bytes of the senders that the peer has not acknowledged.
    pub(crate) fn outstanding_bytes(&self) -> u64 {
        if self.settings.spec.transport == Transport::Udp {
            return 0;
        }
        let senders = self.streams.iter().filter(|s| s.stream.role == StreamRole::Sender);
        senders
            .map(|s| sockopt::outq_bytes(s.fd.as_fd()).map_or(0, u64::from))
            .sum()
    }

    /// The peer has ended the test: receives what it sent before, then stops. [`RunEvent::Stopped`] follows.
    pub(crate) fn request_stop(&mut self, now_ns: u64) {
        if !matches!(self.stop, Stop::NotAsked) {
            return;
        }
        let receives = self.streams.iter().any(|s| s.stream.role == StreamRole::Receiver);
        match Gathering::of(&self.settings.spec, now_ns) {
            Some(gathering) if receives && self.crew.is_some() => self.stop = Stop::Gathering(gathering),
            _ => self.stop_workers(now_ns, true),
        }
    }

    /// With `drain` the receivers read what has already arrived before they acknowledge.
    fn stop_workers(&mut self, now_ns: u64, drain: bool) {
        if matches!(self.stop, Stop::Waiting { .. } | Stop::Done) {
            return;
        }
        let missing = self.crew.as_ref().map_or(0, Crew::size);
        if let Some(crew) = &self.crew {
            crew.request_stop(drain);
        }
        // Without workers nobody will send the notice that makes the owner look.
        let patience_ns = if missing == 0 { 0 } else { STOP_PATIENCE_NS };
        self.stop = Stop::Waiting {
            missing,
            deadline_ns: now_ns.saturating_add(patience_ns),
        };
    }

    /// Stops the senders and waits until it is done; a matter of microseconds.
    pub(crate) fn stop_now(&mut self, reporter: &mut Reporter<'_>) {
        self.stop_workers(clock::monotonic_ns(), false);
        while let Stop::Waiting { deadline_ns, .. } = self.stop {
            self.poll(clock::monotonic_ns(), reporter);
            if matches!(self.stop, Stop::Waiting { .. }) {
                let left_ns = deadline_ns.saturating_sub(clock::monotonic_ns());
                // An error ends in the deadline.
                let _ = poll::wait_fd(self.notice_fd(), Interest::READ, Some(Duration::from_nanos(left_ns)));
            }
        }
    }

    /// The time of the test is up: stops the senders and takes their totals. Receivers go on.
    pub(crate) fn end_senders(&mut self, reporter: &mut Reporter<'_>) {
        self.stop_now(reporter);
        for stream in self.streams.iter().filter(|s| s.stream.role == StreamRole::Sender) {
            self.sampler.end_stream(stream.stream.id);
        }
    }

    /// Every byte stream that is received here has been read to its end.
    pub(crate) fn has_read_all_streams(&self) -> bool {
        let mut receivers = self.streams.iter().filter(|s| s.stream.role == StreamRole::Receiver);
        receivers.all(|s| s.through || has_nothing_left(s.fd.as_fd()))
    }

    /// This end receives byte streams, whose end is seen.
    pub(crate) fn receives_byte_streams(&self) -> bool {
        let receives = |s: &OpenStream| s.stream.role == StreamRole::Receiver;
        self.settings.spec.transport != Transport::Udp && self.streams.iter().any(receives)
    }

    /// Ends the workers; nobody reads the streams any more.
    pub(crate) fn quit(&mut self) {
        self.crew = None;
    }

    /// Forgets what the workers said after the totals were taken.
    pub(crate) fn discard_notices(&mut self) {
        self.control.take_notices();
    }

    /// Closes the last interval and adds up this end's half of the test.
    pub(crate) fn finish(&mut self, now_ns: u64, reporter: &mut Reporter<'_>) -> Summary {
        let Some(started) = &self.started else {
            return Summary::default();
        };
        let omitting = started.timeline.omitting();
        let cpu = started.cpu.usage(now_ns);
        let report = self.sampler.close_interval(omitting, true);
        let measured = self.sampler.take_measured();
        if !measured.is_empty() {
            reporter.emit(&Event::Details(Details::Interval(measured)));
        }
        if worth_reporting(&report, self.settings.local.interval) {
            reporter.emit(&Event::Interval(report));
        }
        let strategy = self.strategy_used();
        for path in describing::paths(&self.settings.spec, &self.streams, strategy) {
            reporter.emit(&Event::DataPath(path));
        }
        describing::remarks(&self.streams).for_each(|line| reporter.emit(&Event::Addition(line)));
        let file_name = self.settings.local.file.as_deref();
        let mut summary = Summary {
            cpu_local: cpu,
            overflows_local: self.overflows(),
            ..Summary::default()
        };
        for (stream, half, tcp) in self.sampler.halves() {
            let sends = stream.role == StreamRole::Sender;
            summary.streams.push(StreamSummary {
                id: stream.id,
                role: stream.role,
                flow: stream.flow,
                sender: sends.then_some(half),
                receiver: (!sends).then_some(half),
                tcp,
                file: file_name.map(|path| FileSummary {
                    name: path.display().to_string(),
                    size_bytes: std::fs::metadata(path).map_or(0, |m| m.len()),
                }),
            });
        }
        self.name_congestion(&mut summary);
        summary
    }

    fn strategy_used(&self) -> StrategyUsed {
        match &self.trials {
            Some(trials) => StrategyUsed {
                strategy: trials.current(),
                trials: Some(trials.decided()),
            },
            None => StrategyUsed {
                strategy: self.settings.local.io_strategy.unwrap_or(strategy_trials::INITIAL),
                trials: None,
            },
        }
    }

    fn overflows(&self) -> Option<u64> {
        let udp = self.settings.spec.transport == Transport::Udp;
        let receivers = self
            .streams
            .iter()
            .filter(|s| udp && s.stream.role == StreamRole::Receiver);
        overflow::count(receivers.map(|s| s.fd.as_fd()))
    }

    fn name_congestion(&self, summary: &mut Summary) {
        let main = if self.streams.iter().any(|s| s.stream.flow == Flow::Forward) {
            Flow::Forward
        } else {
            Flow::Reverse
        };
        let Some(first) = self.streams.iter().find(|s| s.stream.flow == main) else {
            return;
        };
        let name = first.stream.effective.congestion.clone();
        match first.stream.role {
            StreamRole::Sender => summary.sender_congestion = name,
            StreamRole::Receiver => summary.receiver_congestion = name,
        }
    }

    /// Payload bytes of all streams so far, both directions.
    pub(crate) fn total_bytes(&self) -> u64 {
        self.sampler.total_bytes()
    }

    /// Payload bytes that have arrived here so far.
    pub(crate) fn received_bytes(&self) -> u64 {
        self.sampler.received_bytes()
    }

    /// Payload bytes that only a living peer can have moved: those that arrived and those it has acknowledged. `None`
    /// when nothing of the kind can be seen, because this end sends datagrams only.
    pub(crate) fn progress_bytes(&self) -> Option<u64> {
        let received_bytes = self.sampler.received_bytes();
        if self.settings.spec.transport == Transport::Udp {
            let receives = self.streams.iter().any(|s| s.stream.role == StreamRole::Receiver);
            return receives.then_some(received_bytes);
        }
        let sent_bytes = self.sampler.total_bytes().saturating_sub(received_bytes);
        Some(received_bytes + sent_bytes.saturating_sub(self.outstanding_bytes()))
    }

    /// Gives the sockets of the streams away; nobody here reads or writes them any more.
    pub(crate) fn into_sockets(mut self) -> Vec<Arc<OwnedFd>> {
        self.crew = None;
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

/// What a test leaves open to this end.
fn adjustable(spec: &TestSpec, streams: &[OpenStream]) -> Adjustable {
    let has = |role| streams.iter().any(|open| open.stream.role == role);
    Adjustable {
        blocks: is_adjustable(spec) && has(StreamRole::Sender),
        pause_max_us: if has(StreamRole::Receiver) {
            pause_max_us(spec)
        } else {
            0
        },
    }
}

/// The peer has closed this stream, and all that came before has been read. A worker that was woken for data and end at once
/// reads the data and waits.
fn has_nothing_left(fd: BorrowedFd<'_>) -> bool {
    match stream_io::peek(fd, &mut [0]) {
        Ok(bytes) => bytes == 0,
        Err(error) => error.kind() != io::ErrorKind::WouldBlock,
    }
}

/// A last interval of less than a tenth of the grid in which nothing moved is a sliver.
fn worth_reporting(report: &linerate_model::IntervalReport, interval: Option<Duration>) -> bool {
    let moved = report.streams.iter().any(|s| s.bytes > 0);
    let length_s = report
        .streams
        .first()
        .map_or(0.0, linerate_model::StreamInterval::seconds);
    moved || interval.is_none_or(|i| length_s >= i.as_secs_f64() / 10.0)
}
