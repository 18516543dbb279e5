//! Coordinator of a load: phases, per-second results, and limits that end it early.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use linerate_model::http::{Flag, LoadResult};
use linerate_model::outcome::Error;
use linerate_sys::clock;

use super::breaker::Breaker;
use super::run_state::{Message, WorkerCommand};
use super::spec::LoadSpec;
use super::stats::{LoadStats, SecondPart};
use super::workers::{WorkerPool, Workers};

/// Observes a run, and may stop it.
pub trait Observer {
    /// The generator has started, with these worker processes.
    fn started(&mut self, process_ids: &[u32]);

    /// The connections that could be opened are open; the load begins.
    fn ramped(&mut self, opened: u64, wanted: u64);

    /// The warm-up is about to begin.
    fn load_begins(&mut self);

    /// Recording begins.
    fn window_opened(&mut self);

    /// A second of all workers is complete.
    fn second(&mut self, second: &SecondPart);

    /// Recording ends; outstanding responses are still awaited.
    fn window_closed(&mut self);

    /// Polled several times a second: whether the user stops the run.
    fn is_stopped(&mut self) -> bool;
}

/// Runs a load to its end.
///
/// # Errors
/// A worker that could not be started or failed. Failures of the server are part of the result.
pub fn run(
    spec: LoadSpec,
    pool: &WorkerPool,
    breaker: Breaker,
    observer: &mut dyn Observer,
) -> Result<LoadResult, Error> {
    let spec = Arc::new(spec);
    let (reports, messages) = channel();
    let workers = Workers::start(&spec, pool, &reports)
        .map_err(|error| Error::failed(format!("cannot start the load generator: {error}")))?;

    // Only workers hold senders now, so the channel disconnects when the last one has ended.
    drop(reports);
    observer.started(&workers.process_ids());

    let coordinator = Coordinator {
        spec: &spec,
        left: workers.total,
        workers,
        messages,
        breaker,
        seconds: BTreeMap::new(),
        stats: LoadStats::default(),
        flags: Vec::new(),
        failures: 0,
        reported: 0,
    };
    coordinator.lead(observer)
}

struct Coordinator<'a> {
    spec: &'a LoadSpec,
    workers: Workers,
    /// Workers that have not finished.
    left: u32,
    messages: Receiver<Message>,
    breaker: Breaker,
    seconds: BTreeMap<u32, (u32, SecondPart)>,
    stats: LoadStats,
    flags: Vec<Flag>,
    /// Connections that could not be opened since the last response.
    failures: u64,
    /// Seconds passed to the observer.
    reported: u32,
}

impl Coordinator<'_> {
    fn lead(mut self, observer: &mut dyn Observer) -> Result<LoadResult, Error> {
        let opened = self.ramp(observer)?;
        observer.ramped(opened, u64::from(self.spec.connections));
        let mut window_ns = 0;
        let mut load_ns = None;

        if opened > 0 && self.flags.is_empty() {
            let period = self.load(observer)?;
            window_ns = period
                .end
                .saturating_sub(period.start + self.spec.warmup_ns);
            load_ns = Some((period.start, period.end));
        }

        self.workers.send(WorkerCommand::Stop);
        // Each worker reports its statistics after the stop.
        while self.left > 0 {
            self.listen(TIMEOUT, observer)?;
        }

        let seconds: Vec<SecondPart> = self
            .seconds
            .into_values()
            .map(|(_, second)| second)
            .collect();
        // A run that the user ended is no evidence that the server is gone.
        let is_judged = !self.flags.contains(&Flag::Interrupted);
        let outage = self
            .stats
            .outage(self.spec.mode, load_ns)
            .filter(|_| is_judged);

        // Until here the flag only ended the load; the statistics of all workers decide.
        self.flags.retain(|flag| *flag != Flag::ServerGone);
        self.flags
            .extend(outage.is_some().then_some(Flag::ServerGone));
        let mut result = self
            .stats
            .result(self.spec, window_ns, &seconds, &self.flags);
        result.outage = outage;

        Ok(result)
    }

    /// Waits until every worker has opened its connections.
    fn ramp(&mut self, observer: &mut dyn Observer) -> Result<u64, Error> {
        let mut waiting = self.left;
        let mut sum = 0;
        while waiting > 0 && self.flags.is_empty() {
            if let Some(Message::Ramped { opened }) = self.listen(TICK, observer)? {
                waiting -= 1;
                sum += opened;
            }
            self.notice_stop(observer);
        }

        Ok(sum)
    }

    /// Warm-up, window and drain; returns when the warm-up began and when the window ended.
    fn load(&mut self, observer: &mut dyn Observer) -> Result<Range<u64>, Error> {
        let begin_ns = clock::monotonic_ns() + LEAD_NS;
        self.workers.send(WorkerCommand::Begin { at_ns: begin_ns });
        observer.load_begins();

        let open_ns = begin_ns + self.spec.warmup_ns;
        let end_ns = open_ns + self.spec.duration_ns;
        self.wait_until(open_ns, observer)?;
        observer.window_opened();
        self.wait_until(end_ns, observer)?;

        let now_ns = clock::monotonic_ns();
        observer.window_closed();

        // A run that ended early awaits no outstanding responses.
        if self.flags.is_empty() {
            let drained_ns = end_ns + self.spec.timeout_ns + TIMEOUT.as_nanos() as u64;
            self.wait_until(drained_ns, observer)?;
        }

        // A run that was stopped has a shorter window.
        Ok(begin_ns..now_ns.min(end_ns))
    }

    /// Handles messages until a time, the end of all workers, or a reason to stop.
    fn wait_until(&mut self, until_ns: u64, observer: &mut dyn Observer) -> Result<(), Error> {
        while self.left > 0 && self.flags.is_empty() {
            let now_ns = clock::monotonic_ns();
            if now_ns >= until_ns {
                return Ok(());
            }

            self.listen(TICK.min(Duration::from_nanos(until_ns - now_ns)), observer)?;
            self.notice_stop(observer);
        }

        Ok(())
    }

    fn notice_stop(&mut self, observer: &mut dyn Observer) {
        if self.flags.is_empty() && observer.is_stopped() {
            self.flags.push(Flag::Interrupted);
        }
    }

    /// Receives the next message and handles results.
    fn listen(
        &mut self,
        timeout: Duration,
        observer: &mut dyn Observer,
    ) -> Result<Option<Message>, Error> {
        let message = match self.messages.recv_timeout(timeout) {
            Ok(message) => message,
            Err(RecvTimeoutError::Timeout) => return Ok(None),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(failed("a load thread exited unexpectedly"));
            }
        };
        match message {
            Message::Second(second) => {
                self.add(&second, observer);
                Ok(None)
            }
            Message::Finished(stats) => {
                self.left -= 1;
                self.stats.merge(*stats);
                Ok(None)
            }
            Message::Failed(text) => Err(failed(&text)),
            ramped @ Message::Ramped { .. } => Ok(Some(ramped)),
        }
    }

    /// Adds a worker's second. Once all workers have reported it, it goes to the observer, with
    /// earlier incomplete ones.
    fn add(&mut self, part: &SecondPart, observer: &mut dyn Observer) {
        let index = part.index;
        let empty = (0, SecondPart::new(index));
        let (workers, second) = self.seconds.entry(index).or_insert(empty);
        *workers += 1;
        second.merge(part);

        if *workers < self.workers.total {
            return;
        }

        self.failures = if second.ok > 0 {
            0
        } else {
            self.failures + second.connects
        };
        // No connection is open and none can be opened, so the rest of the load would be silence.
        if self.failures > 0 && second.ok == 0 && second.open == 0 && self.flags.is_empty() {
            self.flags.push(Flag::ServerGone);
        }

        // Each worker reports its seconds in order, so none is complete after a later one and the
        // range never begins behind its end.
        for (_, (_, second)) in self.seconds.range(self.reported..=index) {
            observer.second(second);
            if self.breaker.is_tripped_by(second) && self.flags.is_empty() {
                self.flags.push(Flag::BreakerTripped);
            }
        }

        self.reported = self.reported.max(index + 1);
    }
}

/// A worker failed.
fn failed(text: &str) -> Error {
    Error::failed(format!("the load generator failed: {text}"))
}

/// Time for the command to begin to reach every worker.
const LEAD_NS: u64 = 20_000_000;
/// Interval at which the observer is polled. Each poll costs a wake-up, also while connections are
/// idle.
const TICK: Duration = Duration::from_millis(200);
/// Time a worker may need beyond its deadline.
const TIMEOUT: Duration = Duration::from_secs(5);
