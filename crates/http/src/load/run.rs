//! Leading a run: its phases, its seconds, and the limits that end it early.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use linerate_model::http::{Flag, LoadResult};
use linerate_sys::clock;

use super::breaker::Breaker;
use super::crew::{Crew, Team};
use super::message::{Message, Order};
use super::second::SecondPart;
use super::spec::LoadSpec;
use super::tally::Tally;

/// Watches a run, and may end it.
pub trait Observer {
    /// The generator is there; it works in these processes beside this one.
    fn started(&mut self, workers: &[u32]) {
        let _ = workers;
    }

    /// The connections are open, as far as they could be opened; the load begins.
    fn ramped(&mut self, opened: u64, wanted: u64) {
        let _ = (opened, wanted);
    }

    /// The load begins in a moment, with what is not recorded.
    fn load_begins(&mut self) {}

    /// Recording begins now.
    fn window_opened(&mut self) {}

    /// A second of all lanes is over.
    fn second(&mut self, second: &SecondPart) {
        let _ = second;
    }

    /// Recording ends now; outstanding answers are still waited for.
    fn window_closed(&mut self) {}

    /// Asked several times a second: whether the user wants an end.
    fn is_stopped(&mut self) -> bool {
        false
    }
}

/// A run that could not be made.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A thread, a process or a descriptor could not be had.
    #[error("cannot start the load generator: {0}")]
    Start(#[from] std::io::Error),
    /// A part of the generator gave up.
    #[error("the load generator failed: {0}")]
    Lane(String),
}

/// Makes one run and waits for its end.
///
/// # Errors
/// A part of the generator that could not start or failed. What goes wrong with the server is in the result.
pub fn run(
    spec: LoadSpec,
    crew: &Crew,
    breaker: Option<Breaker>,
    observer: &mut dyn Observer,
) -> Result<LoadResult, LoadError> {
    let spec = Arc::new(spec);
    let (reports, messages) = channel();
    let team = Team::start(&spec, crew, &reports)?;
    drop(reports);
    observer.started(&team.workers());
    let leader = Leader {
        spec: &spec,
        left: team.lanes,
        team,
        messages,
        breaker,
        seconds: BTreeMap::new(),
        tally: Tally::default(),
        flags: Vec::new(),
        told: 0,
    };
    leader.lead(observer)
}

struct Leader<'a> {
    spec: &'a LoadSpec,
    team: Team,
    /// Lanes that are not through.
    left: u32,
    messages: Receiver<Message>,
    breaker: Option<Breaker>,
    seconds: BTreeMap<u32, (u32, SecondPart)>,
    tally: Tally,
    flags: Vec<Flag>,
    /// Seconds the observer knows.
    told: u32,
}

impl Leader<'_> {
    fn lead(mut self, observer: &mut dyn Observer) -> Result<LoadResult, LoadError> {
        let opened = self.ramp(observer)?;
        observer.ramped(opened, u64::from(self.spec.connections));
        let mut window_ns = 0;
        if opened > 0 && self.flags.is_empty() {
            window_ns = self.load(observer)?;
        }
        self.team.order(Order::Stop);
        while self.left > 0 {
            self.listen(PATIENCE, observer)?;
        }
        let seconds: Vec<SecondPart> = self.seconds.into_values().map(|(_, second)| second).collect();
        Ok(self.tally.result(self.spec, window_ns, &seconds, &self.flags))
    }

    /// Waits until every lane has opened what it could.
    fn ramp(&mut self, observer: &mut dyn Observer) -> Result<u64, LoadError> {
        let (mut waiting, mut sum) = (self.left, 0);
        while waiting > 0 && self.flags.is_empty() {
            if let Some(Message::Ramped { opened }) = self.listen(TICK, observer)? {
                waiting -= 1;
                sum += opened;
            }
            self.notice_stop(observer);
        }
        Ok(sum)
    }

    /// Warm-up, window and drain; returns the length of the window.
    fn load(&mut self, observer: &mut dyn Observer) -> Result<u64, LoadError> {
        let begin_ns = clock::monotonic_ns() + LEAD_NS;
        self.team.order(Order::Begin { at_ns: begin_ns });
        observer.load_begins();
        let open_ns = begin_ns + self.spec.warmup_ns;
        let end_ns = open_ns + self.spec.duration_ns;
        self.wait_until(open_ns, observer)?;
        observer.window_opened();
        self.wait_until(end_ns, observer)?;
        let now_ns = clock::monotonic_ns();
        observer.window_closed();
        if self.flags.is_empty() {
            let drained_ns = end_ns + self.spec.timeout_ns + PATIENCE.as_nanos() as u64;
            self.wait_until(drained_ns, observer)?;
        }
        // A run that was cut short has the window it had.
        Ok(now_ns.min(end_ns).saturating_sub(open_ns))
    }

    /// Listens until a time, the end of all lanes, or a reason to end the run.
    fn wait_until(&mut self, until_ns: u64, observer: &mut dyn Observer) -> Result<(), LoadError> {
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

    /// Takes the next message, if one comes in time. What concerns the figures is dealt with here.
    fn listen(&mut self, patience: Duration, observer: &mut dyn Observer) -> Result<Option<Message>, LoadError> {
        let message = match self.messages.recv_timeout(patience) {
            Ok(message) => message,
            Err(RecvTimeoutError::Timeout) => return Ok(None),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(LoadError::Lane("a thread ended without a word".to_owned()));
            }
        };
        match message {
            Message::Second(second) => {
                self.add(&second, observer);
                Ok(None)
            }
            Message::Finished(tally) => {
                self.left -= 1;
                self.tally.merge(*tally);
                Ok(None)
            }
            Message::Failed(text) => Err(LoadError::Lane(text)),
            ramped @ Message::Ramped { .. } => Ok(Some(ramped)),
        }
    }

    /// Adds a lane's second; one that all lanes have told is shown, and those before it that some had no news of.
    fn add(&mut self, part: &SecondPart, observer: &mut dyn Observer) {
        let index = part.index;
        let empty = (0, SecondPart::new(index));
        let (lanes, second) = self.seconds.entry(index).or_insert(empty);
        *lanes += 1;
        second.merge(part);
        if *lanes < self.team.lanes {
            return;
        }
        for (_, (_, second)) in self.seconds.range(self.told..=index) {
            observer.second(second);
            if let Some(breaker) = &mut self.breaker
                && breaker.is_tripped_by(second)
                && self.flags.is_empty()
            {
                self.flags.push(Flag::BreakerTripped);
            }
        }
        self.told = self.told.max(index + 1);
    }
}

/// From the order to begin to the beginning: every lane hears of it before.
const LEAD_NS: u64 = 20_000_000;
/// How late the user's wish to stop may be noticed. Each look costs a wake-up, also while connections only idle.
const TICK: Duration = Duration::from_millis(200);
/// How long after its deadline a lane may take to hand in its figures.
const PATIENCE: Duration = Duration::from_secs(5);
