//! Chooses how streams are written and read by comparing candidates while the test runs.
//!
//! Trials of settings at run time. The best number of blocks per send call, and whether a receiver
//! should pause between two reads, depends on the CPU, its caches, the placement of both ends and
//! what else runs; constants of one machine are
//! wrong on the next. So the current strategy is compared with one challenger at a time in pairs of
//! short slots whose order is random, which cancels most of what neighbours of the machine do.
//! Payload bytes per second decide; where they are equal, CPU time per byte does. The pairs are
//! judged by their ranks (Wilcoxon's signed-rank interval), which a few slots without a CPU do not
//! move. What the original does ([`IoStrategy::PLAIN`]) is always a candidate.
//!
//! A slot in which TCP sent many segments again or received many out of order shows what congestion
//! control does: its effect outlasts the slot, and each change of the strategy moves packets to
//! another CPU, where they overtake. Such a slot ends the trial without a decision.
//!
//! Streams of one end compete for the same CPUs, so they are judged together: a stream that was
//! measured alone would choose what takes time from the others.

use linerate_model::spec::{IoStrategy, ReceiveWait};

use super::load_sample::LoadSample;
use super::slot_pairs::{PAIRS_MAX, PAIRS_MIN, Pair, Slot, is_better};
use crate::random::Sequence;

/// Settings that the user left open.
pub(super) struct Adjustable {
    /// Blocks per send call in the order of the trials; the test begins with the first.
    pub blocks: &'static [u16],
    /// Waits of receivers in the order of the trials.
    pub receive_waits: &'static [ReceiveWait],
}

/// The comparison of strategies during one test.
pub(super) struct StrategyTrials {
    candidates: Vec<Candidate>,
    /// Index of the strategy in force outside of trials.
    current: usize,
    state: State,
    /// No trial begins before this time.
    trials_from_ns: u64,
    /// When the test ends, if time decides that.
    end_ns: Option<u64>,
    /// Frequent sleeps lead to a pause without a trial, once.
    presumes_pause: bool,
    /// Trials that came to a decision.
    decided: u32,
    /// Shortest slot with this number of streams.
    slot_ns: u64,
    random: Sequence,
}

struct Candidate {
    io: IoStrategy,
    /// No trial before this time.
    retry_ns: u64,
    /// Doubles with every rejection.
    backoff_ns: u64,
}

#[derive(Debug)]
enum State {
    /// The current strategy is in force.
    Holding {
        since: LoadSample,
        until_ns: u64,
    },
    Comparing(Trial),
}

#[derive(Debug)]
struct Trial {
    challenger: usize,
    /// The challenger has the first slot of this pair.
    is_challenger_first: bool,
    first: Option<Slot>,
    /// Begin of the trial.
    since_ns: u64,
    /// Begin of the current slot.
    begin: LoadSample,
    until_ns: u64,
    pairs: Vec<Pair>,
}

/// Blocks per call that are compared, in the order of their trials; one is plain.
pub(super) const BLOCKS: &[u16] = &[8, 1, 32];
/// The same where the kernel paces by timers.
pub(super) const BLOCKS_WHERE_PACED: &[u16] = &[8, ORDERLY_BLOCKS, 1, 32];
/// Blocks per call where timers and longer calls send from different CPUs, and segments overtake
/// each other. One stream over a veth pair with BBR on Zen, without other load: 18 Gbit/s and 27,000
/// retransmissions in 3 s with one block, 17 and 64,000 with two, 28 and 27,000 with four, 25 and
/// 64,000 with eight; 3.22 18 and 26,000.
const ORDERLY_BLOCKS: u16 = 4;
/// The number where no trial decides on it.
pub(super) const USUAL_BLOCKS: &[u16] = &[INITIAL.blocks_per_call];
/// Strategy that a test begins with: the send call that was fastest in most measurements, and no
/// pause, which is right for slow paths.
pub(super) const INITIAL: IoStrategy = IoStrategy {
    blocks_per_call: 8,
    receive_wait: ReceiveWait::Event,
};

/// Strategy after frequent sleeps. Each spares the sender an interrupt of another CPU, which costs
/// most in a virtual machine, and tests too short for a trial gain too: 10 µs were never much
/// behind the best pause, a longer one sometimes was.
const PRESUMED: ReceiveWait = ReceiveWait::Pause(10);
/// The same where it is a candidate. The sooner one of several streams is read, the more of its
/// pages are still cached when its sender writes to them again, and a sleep ends late.
const PRESUMED_OF_SEVERAL: ReceiveWait = ReceiveWait::Spin;
/// Strategy after frequent sleeps where little has arrived after each: every small write pays for a
/// wake-up then, on an only CPU too. 32-byte writes were a quarter to a half faster with this pause
/// than with polls.
const PRESUMED_OF_SMALL_READS: ReceiveWait = ReceiveWait::Pause(100);
/// Less than this for each wait is little.
const LITTLE_PER_WAIT_BYTES: u64 = 4096;
/// Period in which sleeps are counted before the first trial: a hundred at the least rate that is
/// frequent.
const EARLY_CHECK_NS: u64 = 25_000_000;

/// Slots before the first trial: as many as the shortest trial has. Connections leave slow start,
/// and a test too short to gain from trials has none.
const SLOTS_BEFORE_TRIALS: u64 = 2 * PAIRS_MIN as u64;
/// Shortest slot. It holds hundreds of calls at rates where the strategy matters.
const SLOT_MIN_NS: u64 = 10_000_000;
/// A slot is at least this long for each stream. The queues of all streams (up to 10 MB each by
/// default) hold data of earlier slots, but they are about as full at the end of a slot as at its
/// beginning; what differs is a part of them.
const SLOT_PER_STREAM_NS: u64 = 1_000_000;
const SLOT_MAX_NS: u64 = 200_000_000;
/// Multiple of a rejected trial for which the current strategy is in force before the next one,
/// and the part of the payload that its challenger may have cost by then.
const TRIALS_HELD: u64 = 3;
const TRIAL_COST: f64 = 0.01;
/// Period of checks whether a trial is due.
const HOLD_NS: u64 = 100_000_000;
const BACKOFF_MIN_NS: u64 = 1_000_000_000;
const BACKOFF_MAX_NS: u64 = 32_000_000_000;
/// Payload for each segment that was sent again or received out of order, from which on these do
/// not set the rate: a hundredth of the largest segments. A loopback loses some at full speed, and
/// no path does whose rate depends on them.
const PAYLOAD_PER_DISTURBANCE_BYTES: u64 = 100 << 16;
/// Workers that use less of a CPU than this do not hold the test back.
const CPU_SHARE_MIN: f64 = 0.25;
/// Sleeps per second from which a pause can spare wake-ups, and below which it ends: it would only
/// delay.
const WAITS_PER_S_PAUSE: f64 = 4_000.0;
const WAITS_PER_S_PLAIN: f64 = 2_000.0;

impl Adjustable {
    /// Every combination, in the order of the trials.
    fn strategies(&self) -> impl Iterator<Item = IoStrategy> + '_ {
        self.blocks.iter().flat_map(|blocks| {
            self.receive_waits.iter().map(|wait| IoStrategy {
                blocks_per_call: *blocks,
                receive_wait: *wait,
            })
        })
    }
}

impl StrategyTrials {
    /// Trials of what is adjustable for this number of streams; `None` when nothing is.
    pub(super) fn new(
        adjustable: &Adjustable,
        streams: usize,
        now_ns: u64,
        end_ns: Option<u64>,
        random: Sequence,
    ) -> Option<Self> {
        let slot_ns = SLOT_PER_STREAM_NS
            .saturating_mul(streams as u64)
            .clamp(SLOT_MIN_NS, SLOT_MAX_NS);
        let candidates: Vec<Candidate> = adjustable
            .strategies()
            .map(|io| Candidate {
                io,
                retry_ns: 0,
                backoff_ns: BACKOFF_MIN_NS,
            })
            .collect();
        let initial = IoStrategy {
            receive_wait: INITIAL.receive_wait,
            ..candidates.first()?.io
        };
        let current = candidates
            .iter()
            .position(|candidate| candidate.io == initial)?;

        (candidates.len() > 1).then(|| Self {
            candidates,
            current,
            state: State::Holding {
                since: LoadSample {
                    at_ns: now_ns,
                    ..LoadSample::default()
                },
                until_ns: now_ns.saturating_add(EARLY_CHECK_NS),
            },
            trials_from_ns: now_ns.saturating_add(SLOTS_BEFORE_TRIALS * slot_ns),
            end_ns,
            presumes_pause: true,
            decided: 0,
            slot_ns,
            random,
        })
    }

    /// When to call [`StrategyTrials::advance`] next, monotonic ns.
    pub(super) fn next_ns(&self) -> u64 {
        match &self.state {
            State::Holding { until_ns, .. } => *until_ns,
            State::Comparing(trial) => trial.until_ns,
        }
    }

    /// Best strategy so far.
    pub(super) fn current(&self) -> IoStrategy {
        self.candidates[self.current].io
    }

    /// Trials that came to a decision.
    pub(super) fn decided(&self) -> u32 {
        self.decided
    }

    /// Takes the totals at the end of a slot or a hold; returns what is in force from now on.
    pub(super) fn advance(&mut self, now: LoadSample) -> IoStrategy {
        if now.at_ns < self.next_ns() {
            return self.in_force();
        }

        let hold = self.hold(now);
        match std::mem::replace(&mut self.state, hold) {
            State::Holding { since, .. } => self.end_hold(since, now),
            State::Comparing(trial) => self.end_slot(trial, now),
        }

        self.in_force()
    }

    /// Strategy of the workers now.
    fn in_force(&self) -> IoStrategy {
        match &self.state {
            State::Comparing(trial) if trial.is_challenger_first == trial.first.is_none() => {
                self.candidates[trial.challenger].io
            }
            _ => self.current(),
        }
    }

    /// The current strategy is in force until the next check. The first checks are close: streams
    /// may begin late in one.
    fn hold(&self, since: LoadSample) -> State {
        let is_early = self.presumes_pause && since.at_ns < self.trials_from_ns;
        let period_ns = if is_early { EARLY_CHECK_NS } else { HOLD_NS };
        State::Holding {
            since,
            until_ns: since.at_ns.saturating_add(period_ns),
        }
    }

    /// Begins a trial when the workers are busy enough and a challenger is due.
    fn end_hold(&mut self, since: LoadSample, now: LoadSample) {
        let elapsed_ns = now.at_ns.saturating_sub(since.at_ns).max(1) as f64;
        let cpu_share = now.cpu_ns.saturating_sub(since.cpu_ns) as f64 / elapsed_ns;
        let waits_per_s = now.waits.saturating_sub(since.waits) as f64 * 1e9 / elapsed_ns;
        if self.current().receive_wait != ReceiveWait::Event && waits_per_s < WAITS_PER_S_PLAIN {
            self.set_wait(ReceiveWait::Event);
        }

        let is_disturbed = is_disturbed(since, now);
        if is_disturbed {
            self.shorten_calls();
        }
        if cpu_share < CPU_SHARE_MIN || is_disturbed {
            return;
        }

        if self.presumes_pause && waits_per_s >= WAITS_PER_S_PAUSE && self.presume_wait(since, now)
        {
            self.presumes_pause = false;
            return;
        }

        if now.at_ns < self.trials_from_ns || !self.can_decide_before_end(now.at_ns) {
            return;
        }

        if let Some(challenger) = self.due_challenger(now, waits_per_s) {
            let is_challenger_first = self.random.coin();
            self.state = State::Comparing(Trial {
                challenger,
                is_challenger_first,
                first: None,
                since_ns: now.at_ns,
                begin: now,
                until_ns: self.slot_end_ns(now.at_ns),
                pairs: Vec::with_capacity(PAIRS_MAX),
            });
        }
    }

    /// Sets what frequent waits lead to. False if that is nothing.
    fn presume_wait(&mut self, since: LoadSample, now: LoadSample) -> bool {
        if !now.polling_competes {
            self.set_wait(PRESUMED);
            self.set_wait(PRESUMED_OF_SEVERAL);
        }

        let bytes = now.bytes.saturating_sub(since.bytes);
        let waits = now.waits.saturating_sub(since.waits);
        let reads_little = bytes < waits.saturating_mul(LITTLE_PER_WAIT_BYTES);
        if reads_little {
            self.set_wait(PRESUMED_OF_SMALL_READS);
        }

        reads_little || !now.polling_competes
    }

    /// The shortest trial would be over before the end of the test: otherwise it could only cost.
    fn can_decide_before_end(&self, now_ns: u64) -> bool {
        let shortest_ns = 2 * PAIRS_MIN as u64 * (self.slot_ns + self.slot_ns / 4);
        self.end_ns
            .is_none_or(|end_ns| now_ns.saturating_add(shortest_ns) < end_ns)
    }

    /// The same strategy with this wait is current from now on, if it is a candidate.
    fn set_wait(&mut self, receive_wait: ReceiveWait) {
        self.set_current(IoStrategy {
            receive_wait,
            ..self.current()
        });
    }

    /// Segments overtake each other: calls are no longer than those that keep their order, where
    /// these are a candidate.
    fn shorten_calls(&mut self) {
        let current = self.current();
        if current.blocks_per_call > ORDERLY_BLOCKS {
            self.set_current(IoStrategy {
                blocks_per_call: ORDERLY_BLOCKS,
                ..current
            });
        }
    }

    /// This strategy is current from now on, if it is a candidate.
    fn set_current(&mut self, io: IoStrategy) {
        if let Some(index) = self
            .candidates
            .iter()
            .position(|candidate| candidate.io == io)
        {
            self.current = index;
        }
    }

    /// A candidate that differs from the current strategy in one respect and has waited longest.
    fn due_challenger(&self, now: LoadSample, waits_per_s: f64) -> Option<usize> {
        let current = self.current();
        let is_due = |candidate: &Candidate| {
            let IoStrategy {
                blocks_per_call,
                receive_wait,
            } = candidate.io;
            let has_other_blocks = blocks_per_call != current.blocks_per_call;
            let has_other_wait = receive_wait != current.receive_wait;

            let can_spare_wake_ups = receive_wait == ReceiveWait::Event
                || current.receive_wait != ReceiveWait::Event
                || waits_per_s >= WAITS_PER_S_PAUSE;
            let may_poll = receive_wait != ReceiveWait::Spin || !now.polling_competes;
            has_other_blocks != has_other_wait
                && can_spare_wake_ups
                && may_poll
                && candidate.retry_ns <= now.at_ns
        };

        let due = self
            .candidates
            .iter()
            .enumerate()
            .filter(|(_, candidate)| is_due(candidate));
        // Of those not tried yet another wait is first: a test begins with one that was presumed.
        let order = |candidate: &Candidate| {
            (
                candidate.retry_ns,
                candidate.io.receive_wait == current.receive_wait,
            )
        };
        due.min_by_key(|(_, candidate)| order(candidate))
            .map(|(index, _)| index)
    }

    fn end_slot(&mut self, mut trial: Trial, now: LoadSample) {
        let Some(slot) = Slot::between(trial.begin, now) else {
            // Nothing moved: the end is near, or the path is gone.
            return;
        };
        if is_disturbed(trial.begin, now) {
            self.postpone(trial.challenger, now.at_ns);
            return;
        }

        match trial.first.take() {
            None => trial.first = Some(slot),
            Some(first) => {
                let (challenger, current) = if trial.is_challenger_first {
                    (first, slot)
                } else {
                    (slot, first)
                };
                trial.pairs.push(Pair::of(challenger, current));
                trial.is_challenger_first = self.random.coin();

                if let Some(is_better) = is_better(&trial.pairs) {
                    self.decide(&trial, is_better, now.at_ns);
                    return;
                }
            }
        }

        trial.begin = now;
        trial.until_ns = self.slot_end_ns(now.at_ns);
        self.state = State::Comparing(trial);
    }

    fn decide(&mut self, trial: &Trial, is_better: bool, now_ns: u64) {
        self.decided += 1;
        let loser = if is_better {
            self.current
        } else {
            trial.challenger
        };

        if is_better {
            self.current = trial.challenger;
            self.candidates[loser].backoff_ns = BACKOFF_MIN_NS;
        }

        self.postpone(loser, now_ns);
        if let State::Holding { until_ns, .. } = &mut self.state {
            // A better strategy may be one step from another.
            let hold_ns = if is_better {
                self.slot_ns
            } else {
                trial.hold_ns(now_ns)
            };
            *until_ns = now_ns.saturating_add(hold_ns);
        }
    }

    /// No trial of this candidate for a time that doubles.
    fn postpone(&mut self, candidate: usize, now_ns: u64) {
        let candidate = &mut self.candidates[candidate];
        candidate.retry_ns = now_ns.saturating_add(candidate.backoff_ns);
        candidate.backoff_ns = (candidate.backoff_ns * 2).min(BACKOFF_MAX_NS);
    }

    fn slot_end_ns(&mut self, now_ns: u64) -> u64 {
        // The random part keeps trials of the two ends out of step.
        now_ns.saturating_add(self.slot_ns + self.random.next() % (self.slot_ns / 2))
    }
}

impl Trial {
    /// Time for which the current strategy is in force after this rejected trial, half of which the
    /// challenger had.
    fn hold_ns(&self, now_ns: u64) -> u64 {
        let trial_ns = now_ns.saturating_sub(self.since_ns);
        let mean = self.pairs.iter().map(|pair| pair.rate).sum::<f64>() / self.pairs.len() as f64;
        let lost_part = 0.5 * (1.0 - mean.exp()).max(0.0);
        (TRIALS_HELD * trial_ns).max((trial_ns as f64 * lost_part / TRIAL_COST) as u64)
    }
}

/// True if congestion control may have set the rate between two samples.
fn is_disturbed(begin: LoadSample, end: LoadSample) -> bool {
    let segments = end
        .disturbed_segments
        .saturating_sub(begin.disturbed_segments);
    segments.saturating_mul(PAYLOAD_PER_DISTURBANCE_BYTES) > end.bytes.saturating_sub(begin.bytes)
}

#[cfg(test)]
#[path = "strategy_trials_tests.rs"]
mod tests;
