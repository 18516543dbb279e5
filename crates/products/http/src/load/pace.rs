//! When a free connection gets its next request.

use std::collections::VecDeque;

use linerate_model::http::{Arrivals, Mode};

use super::recorder::Recorder;
use super::spec::LoadSpec;

/// Pace of one worker.
#[derive(Debug)]
pub(crate) enum Pace {
    /// Nothing is sent.
    Held,
    /// Closed loop.
    Closed,
    /// Closed loop with think time.
    Thinking {
        pause_ns: u64,
        /// Pausing connections in the order of their ends: all pauses have one length.
        pausing: VecDeque<(u64, u32)>,
    },
    /// Open loop.
    Open(Schedule),
}

impl Pace {
    pub(crate) fn new(spec: &LoadSpec, begin_ns: u64, index: WorkerIndex) -> Self {
        let schedule = |rate_per_s, arrivals| {
            Self::Open(Schedule::new(
                begin_ns, rate_per_s, arrivals, index, spec.seed,
            ))
        };
        match spec.mode {
            Mode::Closed { think_ns: 0, .. } => Self::Closed,
            Mode::Closed { think_ns, .. } => Self::Thinking {
                pause_ns: think_ns,
                pausing: VecDeque::new(),
            },
            Mode::Open {
                rate_per_s,
                arrivals,
            } => schedule(rate_per_s, arrivals),
            // Evenly over the period, without bursts.
            Mode::Idle {
                heartbeat_ns: Some(period_ns),
            } => schedule(
                f64::from(spec.connections) * 1e9 / period_ns.max(1) as f64,
                Arrivals::Uniform,
            ),
            Mode::Idle { heartbeat_ns: None } => Self::Held,
        }
    }

    /// Due time of the next request, if it has come.
    pub(crate) fn due(&self, now_ns: u64) -> Option<u64> {
        match self {
            Self::Held => None,
            Self::Closed | Self::Thinking { .. } => Some(now_ns),
            Self::Open(schedule) => Some(schedule.next_ns).filter(|due_ns| *due_ns <= now_ns),
        }
    }

    /// The due request was sent.
    pub(crate) fn take(&mut self) {
        if let Self::Open(schedule) = self {
            schedule.take();
        }
    }

    /// When the next action is due.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        match self {
            Self::Held | Self::Closed => None,
            Self::Thinking { pausing, .. } => pausing.front().map(|(end_ns, _)| *end_ns),
            Self::Open(schedule) => Some(schedule.next_ns),
        }
    }

    /// When the action after that is due, where known.
    pub(crate) fn following_ns(&self) -> Option<u64> {
        match self {
            Self::Open(schedule) => Some(schedule.following_ns),
            Self::Held | Self::Closed | Self::Thinking { .. } => None,
        }
    }

    /// The next action needs a free connection.
    pub(crate) fn needs_free(&self) -> bool {
        matches!(self, Self::Open(_))
    }

    /// A response is complete.
    pub(crate) fn pause(&mut self, number: u32, now_ns: u64) {
        if let Self::Thinking { pause_ns, pausing } = self {
            pausing.push_back((now_ns.saturating_add(*pause_ns), number));
        }
    }

    /// Frees the connections whose pause has ended.
    pub(crate) fn end_pauses(&mut self, now_ns: u64, mut free: impl FnMut(u32)) {
        if let Self::Thinking { pausing, .. } = self {
            while let Some((_, number)) = pausing
                .front()
                .copied()
                .filter(|(end_ns, _)| *end_ns <= now_ns)
            {
                pausing.pop_front();
                free(number);
            }
        }
    }

    /// Counts requests due before `end_ns` that are never sent.
    pub(crate) fn abandon(&mut self, end_ns: u64, now_ns: u64, recorder: &mut Recorder) {
        if let Self::Open(schedule) = self {
            while schedule.next_ns < end_ns {
                recorder.unsent(schedule.take(), now_ns);
            }
        }
    }
}

/// Index of a worker, and number of workers.
pub(crate) type WorkerIndex = (u32, u32);

/// Due times of one of several threads that share a rate.
///
/// They depend on the start and the number of a request alone, never on the time a thread woke up:
/// a late thread must not hide its lateness by shifting the schedule.
#[derive(Debug, Clone)]
pub(crate) struct Schedule {
    start_ns: u64,
    next_ns: u64,
    following_ns: u64,
    gaps: Gaps,
}

#[derive(Debug, Clone)]
enum Gaps {
    /// Request `number` of all threads is due at `start + number / rate`.
    Uniform {
        rate_per_s: f64,
        number: u64,
        step: u64,
    },
    /// Independent exponential gaps; the sum of such streams is one of the summed rate.
    Poisson {
        mean_ns: f64,
        due_ns: f64,
        random: fastrand::Rng,
    },
}

impl Schedule {
    /// The schedule of thread `index` of `threads`, which together send `rate_per_s` requests from
    /// `start_ns` on.
    pub(crate) fn new(
        start_ns: u64,
        rate_per_s: f64,
        arrivals: Arrivals,
        (index, threads): WorkerIndex,
        seed: u64,
    ) -> Self {
        let threads = threads.max(1);
        let rate_per_s = rate_per_s.max(RATE_MIN_PER_S);
        let gaps = match arrivals {
            Arrivals::Uniform => Gaps::Uniform {
                rate_per_s,
                number: u64::from(index),
                step: u64::from(threads),
            },
            Arrivals::Poisson => Gaps::Poisson {
                mean_ns: 1e9 * f64::from(threads) / rate_per_s,
                due_ns: 0.0,
                // The increment of SplitMix64 keeps the streams of the threads apart.
                random: fastrand::Rng::with_seed(
                    seed.wrapping_add(u64::from(index).wrapping_mul(0x9e37_79b9_7f4a_7c15)),
                ),
            },
        };

        let mut schedule = Self {
            start_ns,
            next_ns: start_ns,
            following_ns: start_ns,
            gaps,
        };
        // `take` moves the first due time from the following to the next one.
        schedule.following_ns = schedule.find(true);
        schedule.take();

        schedule
    }

    /// Removes the next request and returns its due time.
    pub(crate) fn take(&mut self) -> u64 {
        let due = self.next_ns;
        self.next_ns = self.following_ns;
        self.following_ns = self.find(false);
        due
    }

    fn find(&mut self, is_first: bool) -> u64 {
        let after_start = match &mut self.gaps {
            Gaps::Uniform {
                rate_per_s,
                number,
                step,
            } => {
                if !is_first {
                    *number += *step;
                }
                // Computed from the number: rounding errors of added gaps would shift a long
                // schedule.
                *number as f64 * 1e9 / *rate_per_s
            }
            Gaps::Poisson {
                mean_ns,
                due_ns,
                random,
            } => {
                // 1 - f64() is never 0, whose logarithm would be infinite.
                *due_ns += -(1.0 - random.f64()).ln() * *mean_ns;
                *due_ns
            }
        };
        // The cast saturates, as the addition does.
        self.start_ns.saturating_add(after_start as u64)
    }
}

/// One a day: the lowest rate.
const RATE_MIN_PER_S: f64 = 1.0 / 86_400.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_together_are_due_at_every_multiple() {
        let mut due: Vec<u64> = Vec::new();
        for index in 0..3 {
            let mut part = Schedule::new(1_000, 300.0, Arrivals::Uniform, (index, 3), 1);
            due.extend((0..100).map(|_| part.take()));
        }

        due.sort_unstable();
        for (k, due_ns) in due.iter().enumerate() {
            let expected = 1_000 + (k as u64 * 1_000_000_000) / 300;
            assert!(
                due_ns.abs_diff(expected) <= 1,
                "request {k}: {due_ns}, not {expected}"
            );
        }
    }

    #[test]
    fn poisson_arrivals_have_the_rate_and_variance_of_independent_users() {
        let mut part = Schedule::new(0, 1_000.0, Arrivals::Poisson, (0, 1), 7);
        let due: Vec<u64> = (0..20_000).map(|_| part.take()).collect();
        let elapsed_s = *due.last().expect("some") as f64 / 1e9;
        assert!((19.0..21.0).contains(&elapsed_s), "{elapsed_s}");

        let gaps: Vec<f64> = due
            .windows(2)
            .map(|pair| (pair[1] - pair[0]) as f64)
            .collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        let variation = variance.sqrt() / mean;
        assert!((0.95..1.05).contains(&variation), "{variation}");
    }

    #[test]
    fn seed_reproduces_arrivals() {
        let times = |seed| {
            let mut part = Schedule::new(0, 10.0, Arrivals::Poisson, (1, 2), seed);
            (0..50).map(|_| part.take()).collect::<Vec<_>>()
        };
        assert_eq!(times(3), times(3));
        assert_ne!(times(3), times(4));
    }
}
