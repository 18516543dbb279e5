//! The loop of a worker.

use std::io;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use linerate_model::StreamRole;
use linerate_model::spec::{IoStrategy, ReceiveWait};
use linerate_sys::clock::{self, ThreadCpuClock};
use linerate_sys::poll::{Epoll, EventFd, Interest, Ready};

use super::assignments::{Assignments, Migration, StreamAssignment};
use super::control::{Notice, Phase, RunControl};
use crate::data::worker::{Ended, Pumped, Scratch};

struct Slot {
    stream: StreamAssignment,
    state: SlotState,
}

#[derive(PartialEq, Eq)]
enum SlotState {
    Ready,
    Blocked,
    Until(u64),
    Precisely {
        due_ns: u64,
        /// When to begin to spin.
        wake_ns: u64,
    },
    /// As blocked; its receive queue held data until a moment ago.
    Drained,
    Done,
}

/// CPU time and waits of one worker so far.
#[derive(Default)]
pub(crate) struct WorkerLoad {
    cpu: OnceLock<ThreadCpuClock>,
    waits: AtomicU64,
}

impl WorkerLoad {
    /// CPU time in ns; 0 before the thread runs and after it has ended.
    pub(crate) fn cpu_ns(&self) -> u64 {
        self.cpu
            .get()
            .and_then(|clock| clock.read_ns())
            .unwrap_or_default()
    }

    /// Number of times without work: it has slept, paused or polled.
    pub(crate) fn waits(&self) -> u64 {
        self.waits.load(Ordering::Relaxed)
    }

    fn count_wait(&self) {
        self.waits.store(self.waits() + 1, Ordering::Relaxed);
    }
}

pub(crate) struct Worker {
    slots: Vec<Slot>,
    strategy: IoStrategy,
    load: Arc<WorkerLoad>,
    control: Arc<RunControl>,
    wake: Arc<EventFd>,
    assignments: Arc<Assignments>,
    epoll: Epoll,
    wake_lateness: WakeLateness,
    stopped: bool,
}

const WAKE_TOKEN: u64 = u64::MAX;
/// Least time to spin before a hard deadline.
const SPIN_MIN_NS: u64 = 10_000;
/// Most time to spin: this fraction of the wait, within these bounds.
const SPIN_SHARE: u64 = 8;
const SPIN_MAX_NS: RangeInclusive<u64> = 40_000..=500_000;
/// Period of polls of a receiver that spins. One at once takes cache lines from the CPU that
/// delivers the data, which costs most where the CPUs share no cache.
const POLL_PERIOD_NS: u64 = 5_000;
/// Polls without data before it sleeps.
const SPIN_POLLS: u64 = 10;
/// Bounds of the last reads before a stop is acknowledged: a peer that continues to send must not
/// delay the end.
const DRAIN_TIME_NS: u64 = 100_000_000;
const DRAIN_CALLS: u32 = 1024;

impl Worker {
    pub(crate) fn new(
        control: Arc<RunControl>,
        wake: Arc<EventFd>,
        assignments: Arc<Assignments>,
        load: Arc<WorkerLoad>,
    ) -> linerate_sys::Result<Self> {
        let epoll = Epoll::new()?;
        epoll.add(
            &wake,
            WAKE_TOKEN,
            Interest {
                read: true,
                write: false,
                // Level-triggered: a wake-up that arrives between a check of the phase and the wait
                // must not be lost.
                edge: false,
            },
        )?;
        Ok(Self {
            slots: Vec::new(),
            strategy: control.strategy(),
            load,
            control,
            wake,
            assignments,
            epoll,
            wake_lateness: WakeLateness {
                median_ns: WakeLateness::FIRST_NS,
            },
            stopped: false,
        })
    }

    pub(crate) fn assign(&mut self, share: Vec<StreamAssignment>) -> linerate_sys::Result<()> {
        for mut stream in share {
            stream
                .pump
                .set_blocks_per_call(self.strategy.blocks_per_call);
            let sends = stream.role == StreamRole::Sender;
            // Only the wanted direction: every event costs a turn of the loop, and a sender's
            // socket becomes readable too when the peer closes its side.
            let both = stream.pump.is_duplex();
            let interest = Interest {
                read: !sends || both,
                write: sends || both,
                // Edge-triggered (epoll(7)): a blocked stream needs no call to disarm its event,
                // and a ready one is pumped without asking epoll again.
                edge: true,
            };
            self.epoll
                .add(&stream.fd, self.slots.len() as u64, interest)?;
            self.slots.push(Slot {
                stream,
                state: SlotState::Ready,
            });
        }

        Ok(())
    }

    /// Streams that came while this one was at work, and requests for some of its own.
    fn take_assignments(&mut self) {
        loop {
            let (streams, request) = self.assignments.take();
            self.assign_each(streams);
            let Some(migration) = request else {
                return;
            };

            // After a stop each worker keeps what it has counted.
            if !self.stopped {
                self.migrate(&migration);
            }
        }
    }

    fn assign_each(&mut self, streams: Vec<StreamAssignment>) {
        for stream in streams {
            let id = stream.id;
            if let Err(error) = self.assign(vec![stream]) {
                self.control
                    .notify(Notice::Ended(id, Ended::Failed(error.into())));
            }
        }
    }

    /// Moves some streams to another worker. Those that stay are reassigned, because their tokens
    /// are their places.
    fn migrate(&mut self, migration: &Migration) {
        let mut kept = Vec::new();
        let open = std::mem::take(&mut self.slots)
            .into_iter()
            .filter(|slot| slot.state != SlotState::Done);
        for (index, slot) in open.enumerate() {
            // The descriptor is open: the stream holds it.
            let _ = self.epoll.remove(&slot.stream.fd);
            if migration.part().contains(index) {
                migration.push(slot.stream);
            } else {
                kept.push(slot.stream);
            }
        }

        self.assign_each(kept);
    }

    pub(crate) fn run(mut self) {
        // Without it the kernel may be up to 50 µs late; everything still works.
        let _ = clock::set_timer_slack_ns(1);
        if let Some(clock) = ThreadCpuClock::of_this_thread() {
            let _ = self.load.cpu.set(clock);
        }

        let mut scratch = Scratch::default();
        let mut events = Vec::new();

        loop {
            match self.control.phase() {
                Phase::Run => {}
                // Bytes of a stream on its way to this worker would be missing from the totals that
                // the acknowledgement makes final.
                Phase::StopSending | Phase::StopAndDrain if self.assignments.expects_streams() => {}
                Phase::StopSending if !self.stopped => self.stop(false, &mut scratch),
                Phase::StopAndDrain if !self.stopped => self.stop(true, &mut scratch),
                Phase::Quit => return,
                _ => {}
            }

            self.follow_strategy();
            self.take_assignments();
            self.pump_ready(&mut scratch);

            if let Err(error) = self.wait(&mut events) {
                self.fail_all(&error);
                return;
            }
        }
    }

    fn follow_strategy(&mut self) {
        let strategy = self.control.strategy();
        if strategy.blocks_per_call != self.strategy.blocks_per_call {
            for slot in &mut self.slots {
                slot.stream
                    .pump
                    .set_blocks_per_call(strategy.blocks_per_call);
            }
        }

        self.strategy = strategy;
    }

    fn pump_ready(&mut self, scratch: &mut Scratch) {
        // One reading of the clock for all streams of a turn: it costs some 30 ns, and a pump may
        // move only 32 bytes.
        let now_ns = clock::monotonic_ns();
        for slot in &mut self.slots {
            let due = match slot.state {
                SlotState::Ready => true,
                SlotState::Until(t) | SlotState::Precisely { due_ns: t, .. } => t <= now_ns,
                SlotState::Blocked | SlotState::Drained | SlotState::Done => false,
            };
            if due {
                slot.advance(
                    now_ns,
                    scratch,
                    &self.control,
                    &self.epoll,
                    &self.wake_lateness,
                );
            }
        }
    }

    /// Waits until a socket is ready, a deadline is due, or the control thread signals.
    fn wait(&mut self, events: &mut Vec<Ready>) -> io::Result<()> {
        let receive_wait = self.strategy.receive_wait;
        let timeout = match Wait::of(&self.slots, receive_wait != ReceiveWait::Event) {
            // Every stream is ready: polling would only cost a call.
            Wait::AllReady => return Ok(()),
            Wait::SomeReady => Some(Duration::ZERO),
            Wait::Pause => {
                self.load.count_wait();
                match receive_wait {
                    ReceiveWait::Event => {}
                    ReceiveWait::Spin => return self.spin(events),
                    ReceiveWait::Pause(us) => {
                        // Not a wait for events: the data that arrives in the pause would end it,
                        // and the sender would pay an interrupt for each segment.
                        clock::sleep_until_ns(clock::monotonic_ns() + u64::from(us) * 1000);
                    }
                }

                if let [only] = &mut self.slots[..] {
                    // A read finds out as well as a question for readiness, and saves that call.
                    only.state = SlotState::Ready;
                    return Ok(());
                }

                Some(Duration::ZERO)
            }
            Wait::Until(until_ns) => return self.wait_until(until_ns, events),
            Wait::Events => {
                self.load.count_wait();
                None
            }
        };
        self.take_events(events, timeout)
    }

    /// Waits until this time, and notes how late it has become; shorter where a socket is ready or
    /// the control thread signals.
    fn wait_until(&mut self, until_ns: u64, events: &mut Vec<Ready>) -> io::Result<()> {
        let wait_ns = until_ns.saturating_sub(clock::monotonic_ns());
        self.take_events(events, Some(Duration::from_nanos(wait_ns)))?;

        if wait_ns > 0 && events.is_empty() {
            let late_ns = clock::monotonic_ns().saturating_sub(until_ns);
            self.wake_lateness.note(late_ns);
        }

        Ok(())
    }

    /// Polls every few microseconds until a socket is ready or the control thread signals, for a
    /// bounded time.
    fn spin(&mut self, events: &mut Vec<Ready>) -> io::Result<()> {
        let end_ns = clock::monotonic_ns() + SPIN_POLLS * POLL_PERIOD_NS;
        loop {
            let poll_ns = clock::monotonic_ns() + POLL_PERIOD_NS;
            // A poll at once would take the cache lines of the queue from the CPU that fills it.
            while clock::monotonic_ns() < poll_ns {
                std::hint::spin_loop();
            }

            self.take_events(events, Some(Duration::ZERO))?;
            if !events.is_empty() || poll_ns >= end_ns {
                return Ok(());
            }
        }
    }

    fn take_events(
        &mut self,
        events: &mut Vec<Ready>,
        timeout: Option<Duration>,
    ) -> io::Result<()> {
        for slot in &mut self.slots {
            // The next wait without data lasts until there is some.
            if slot.state == SlotState::Drained {
                slot.state = SlotState::Blocked;
            }
        }

        self.epoll.wait(events, timeout)?;
        for event in events.iter() {
            if event.token == WAKE_TOKEN {
                self.wake.drain();
            // A timed stream stays asleep although its socket is writable: its rate decides, not
            // the kernel.
            } else if let Some(slot) = self.slots.get_mut(event.token as usize)
                && slot.state == SlotState::Blocked
            {
                slot.state = SlotState::Ready;
            }
        }

        Ok(())
    }

    fn stop(&mut self, drain: bool, scratch: &mut Scratch) {
        // Pending migrations have arrived; their streams are drained too.
        self.take_assignments();
        self.stopped = true;
        // A bound in time and in calls, because a peer that never stops would otherwise hold up the
        // exchange of results.
        let until_ns = clock::monotonic_ns().saturating_add(DRAIN_TIME_NS);

        for slot in &mut self.slots {
            match slot.stream.role {
                StreamRole::Sender => slot.finish(&self.epoll),
                StreamRole::Receiver if drain => {
                    slot.drain(
                        until_ns,
                        scratch,
                        &self.control,
                        &self.epoll,
                        &self.wake_lateness,
                    );
                }
                StreamRole::Receiver => {}
            }
        }

        self.control.notify(Notice::Stopped);
    }

    fn fail_all(&mut self, error: &io::Error) {
        for slot in &mut self.slots {
            let copy = io::Error::from(error.kind());
            self.control
                .notify(Notice::Ended(slot.stream.id, Ended::Failed(copy)));
        }
    }
}

/// How late this thread wakes from a wait: in a guest whose CPU slept as well, tens of
/// microseconds. Spinning for an eighth of each wait took 13 % of a CPU for UDP at 10 Mbit/s in
/// datagrams of 1460 bytes, and met no more of the late ones: their p99 is several times as long.
struct WakeLateness {
    median_ns: u64,
}

impl WakeLateness {
    /// Before anything is known.
    const FIRST_NS: u64 = 50_000;
    const STEP_NS: u64 = 1_000;

    /// A wait ended that much too late. The median rises with a later one as much as it falls with
    /// others.
    fn note(&mut self, late_ns: u64) {
        self.median_ns = if late_ns > self.median_ns {
            (self.median_ns + Self::STEP_NS).min(*SPIN_MAX_NS.end())
        } else {
            self.median_ns.saturating_sub(Self::STEP_NS)
        };
    }

    /// Time before the end of a wait at which the thread wakes, to spin until then.
    fn spin_ns(&self, wait_ns: u64) -> u64 {
        let most_ns = (wait_ns / SPIN_SHARE).clamp(*SPIN_MAX_NS.start(), *SPIN_MAX_NS.end());
        self.median_ns.clamp(SPIN_MIN_NS, most_ns)
    }
}

impl Slot {
    fn advance(
        &mut self,
        now_ns: u64,
        scratch: &mut Scratch,
        control: &RunControl,
        epoll: &Epoll,
        wake_lateness: &WakeLateness,
    ) {
        self.state = match self.stream.pump.pump(now_ns, scratch) {
            Pumped::Again => SlotState::Ready,
            Pumped::Blocked => SlotState::Blocked,
            Pumped::Until(t) => SlotState::Until(t),
            Pumped::Precisely(due_ns) => {
                let spin_ns = wake_lateness.spin_ns(due_ns.saturating_sub(now_ns));
                SlotState::Precisely {
                    due_ns,
                    wake_ns: due_ns.saturating_sub(spin_ns),
                }
            }
            Pumped::Drained => SlotState::Drained,
            Pumped::Ended(why) => {
                self.finish(epoll);
                control.notify(Notice::Ended(self.stream.id, why));
                SlotState::Done
            }
        };
    }

    fn drain(
        &mut self,
        until_ns: u64,
        scratch: &mut Scratch,
        control: &RunControl,
        epoll: &Epoll,
        wake_lateness: &WakeLateness,
    ) {
        for _ in 0..DRAIN_CALLS {
            let now_ns = clock::monotonic_ns();
            if self.state == SlotState::Done || now_ns > until_ns {
                return;
            }

            self.advance(now_ns, scratch, control, epoll, wake_lateness);
            if self.state != SlotState::Ready {
                return;
            }
        }
    }

    fn finish(&mut self, epoll: &Epoll) {
        if self.state != SlotState::Done {
            // The descriptor is open: the slot holds it.
            let _ = epoll.remove(&self.stream.fd);
            self.state = SlotState::Done;
        }
    }
}

/// Events that a worker waits for.
enum Wait {
    AllReady,
    SomeReady,
    /// Every stream waits, and queues that were just emptied may fill for a while.
    Pause,
    Until(u64),
    Events,
}

impl Wait {
    fn of(slots: &[Slot], may_pause: bool) -> Self {
        let mut ready = 0;
        let mut open = 0;
        let mut drained = 0;
        let mut earliest = u64::MAX;

        for slot in slots {
            match slot.state {
                SlotState::Done => continue,
                SlotState::Ready => ready += 1,
                SlotState::Blocked => {}
                SlotState::Until(t) => earliest = earliest.min(t),
                SlotState::Precisely { wake_ns, .. } => earliest = earliest.min(wake_ns),
                SlotState::Drained => drained += 1,
            }

            open += 1;
        }

        match (open, ready) {
            (0, _) => Self::Events,
            // A stop is seen all the same: the loop reads the phase in each turn, before it waits.
            _ if ready == open => Self::AllReady,
            _ if ready > 0 => Self::SomeReady,
            // Before pauses: a portion that is due soon must not wait for the end of one.
            _ if earliest < u64::MAX => Self::Until(earliest),
            _ if may_pause && drained > 0 => Self::Pause,
            _ => Self::Events,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_ends_as_early_as_the_thread_usually_wakes_late() {
        let mut lateness = WakeLateness {
            median_ns: WakeLateness::FIRST_NS,
        };
        // 20 to 39 us, and one of a hundred a millisecond.
        for wait in 0_u64..5_000 {
            lateness.note(match wait % 100 {
                0 => 1_000_000,
                other => 20_000 + other % 20 * 1_000,
            });
        }

        assert!((20_000..40_000).contains(&lateness.spin_ns(1_000_000)));
        assert_eq!(
            lateness.spin_ns(80_000),
            lateness.spin_ns(320_000).min(40_000)
        );
    }

    #[test]
    fn the_thread_spins_for_an_eighth_of_a_wait_at_most() {
        let late = WakeLateness { median_ns: 400_000 };
        assert_eq!(late.spin_ns(1_000_000), 125_000);
        assert_eq!(late.spin_ns(100_000_000), 400_000);

        let exact = WakeLateness { median_ns: 0 };
        assert_eq!(exact.spin_ns(100_000_000), SPIN_MIN_NS);
    }
}
