//! One second of a run as one thread saw it: small enough to be kept for every second and sent while it runs.

use linerate_model::http::{ErrorClass, Second};
use serde::{Deserialize, Serialize};

/// Answers, failures and rough times of one second.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SecondPart {
    /// Which second since the start of the warm-up.
    pub index: u32,
    /// Complete 2xx answers.
    pub ok: u64,
    /// Bytes of their bodies.
    pub payload_bytes: u64,
    /// Failures of all kinds.
    pub errors: u64,
    /// Of these: server errors and `429 Too Many Requests`.
    pub refusals: u64,
    /// Of these: requests without an answer in time.
    pub timeouts: u64,
    /// Of these: connections that could not be opened.
    pub connects: u64,
    /// Attempts to open a connection.
    pub attempts: u64,
    /// Answers that name a time to come back (`Retry-After`) with 429 or 503.
    pub retry_after: u64,
    /// Age of the oldest request that is due and not sent, at the end of the second.
    pub backlog_ns: u64,
    /// Answers by time: an octave has [`STEPS`] buckets. Shorter than [`BUCKETS`] where the rest is empty.
    buckets: Vec<u32>,
}

impl SecondPart {
    /// An empty one.
    #[must_use]
    pub fn new(index: u32) -> Self {
        Self {
            index,
            ..Self::default()
        }
    }

    /// Counts a complete 2xx answer.
    pub fn answer(&mut self, ns: u64, payload_bytes: u64) {
        self.ok += 1;
        self.payload_bytes += payload_bytes;
        let bucket = bucket_of(ns);
        if self.buckets.len() <= bucket {
            self.buckets.resize(bucket + 1, 0);
        }
        if let Some(count) = self.buckets.get_mut(bucket) {
            *count = count.saturating_add(1);
        }
    }

    /// Counts a failure.
    pub fn failure(&mut self, class: ErrorClass, is_refusal: bool) {
        self.errors += 1;
        self.refusals += u64::from(is_refusal || class == ErrorClass::Status5xx);
        self.timeouts += u64::from(class == ErrorClass::Timeout);
        self.connects += u64::from(matches!(
            class,
            ErrorClass::ConnectRefused | ErrorClass::ConnectTimeout | ErrorClass::Unreachable | ErrorClass::Tls
        ));
    }

    /// Adds what another thread saw of the same second.
    pub fn merge(&mut self, other: &Self) {
        self.ok += other.ok;
        self.payload_bytes += other.payload_bytes;
        self.errors += other.errors;
        self.refusals += other.refusals;
        self.timeouts += other.timeouts;
        self.connects += other.connects;
        self.attempts += other.attempts;
        self.retry_after += other.retry_after;
        self.backlog_ns = self.backlog_ns.max(other.backlog_ns);
        let others = other.buckets.iter().take(BUCKETS);
        if self.buckets.len() < others.len() {
            self.buckets.resize(others.len(), 0);
        }
        for (ours, theirs) in self.buckets.iter_mut().zip(others) {
            *ours = ours.saturating_add(*theirs);
        }
    }

    /// A quantile of the times within a sixteenth; absent where fewer than ten values lie above it.
    #[must_use]
    pub fn quantile_ns(&self, q: f64) -> Option<u64> {
        let n: u64 = self.buckets.iter().map(|count| u64::from(*count)).sum();
        if n as f64 * (1.0 - q) + 1e-6 < 10.0 {
            return None;
        }
        let rank = (n as f64 * q).ceil() as u64;
        let mut seen = 0;
        let place = self.buckets.iter().position(|count| {
            seen += u64::from(*count);
            seen >= rank
        })?;
        Some(middle_of(place))
    }

    /// What a record keeps of it.
    #[must_use]
    pub fn summary(&self) -> Second {
        Second {
            ok: self.ok,
            p99_ns: self.quantile_ns(0.99),
            errors: self.errors,
        }
    }
}

/// Buckets of an octave.
const STEPS: u64 = 16;
const STEP_BITS: u32 = 4;
/// Times are counted in units of 2^10 ns, about a microsecond.
const UNIT_BITS: u32 = 10;
/// Enough for an hour.
const BUCKETS: usize = 33 * STEPS as usize;

fn bucket_of(ns: u64) -> usize {
    let units = ns >> UNIT_BITS;
    if units < STEPS {
        return units as usize;
    }
    let octave = units.ilog2() - STEP_BITS;
    let place = u64::from(octave + 1) * STEPS + ((units >> octave) - STEPS);
    (place as usize).min(BUCKETS - 1)
}

fn middle_of(bucket: usize) -> u64 {
    let (octave, step) = (bucket as u64 / STEPS, bucket as u64 % STEPS);
    let (low, width) = match octave {
        0 => (step, 1),
        octave => ((STEPS + step) << (octave - 1), 1 << (octave - 1)),
    };
    (low << UNIT_BITS) + ((width << UNIT_BITS) / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_lies_within_a_sixteenth_of_its_buckets_middle() {
        for ns in (0..40).flat_map(|bits| [1_u64 << bits, (1 << bits) + (1 << bits) / 3]) {
            let middle = middle_of(bucket_of(ns));
            let error = middle.abs_diff(ns);
            assert!(error <= ns / 16 + 1024, "{ns} became {middle}");
        }
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn parts_of_two_threads_are_one_second() {
        let (mut a, mut b) = (SecondPart::new(3), SecondPart::new(3));
        for _ in 0..990 {
            a.answer(100_000, 1024);
        }
        for _ in 0..20 {
            b.answer(50_000_000, 1024);
        }
        b.failure(ErrorClass::Timeout, false);
        a.merge(&b);
        let second = a.summary();
        assert_eq!((second.ok, second.errors), (1_010, 1));
        let p99 = second.p99_ns.expect("ten lie above");
        assert!((47_000_000..54_000_000).contains(&p99), "{p99}");
    }
}
