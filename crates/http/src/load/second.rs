//! One second of a run in one thread, small enough to be kept for every second and sent while it runs.

use linerate_model::http::{ErrorClass, Second};
use serde::{Deserialize, Serialize};

/// Responses, failures and approximate times of one second.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SecondPart {
    /// Seconds since the start of the warm-up.
    pub index: u32,
    /// Complete 2xx responses.
    pub ok: u64,
    /// Bytes of their bodies.
    pub payload_bytes: u64,
    /// All failures.
    pub errors: u64,
    /// Of these: status 5xx and `429 Too Many Requests`.
    pub refusals: u64,
    /// Of these: response timeouts.
    pub timeouts: u64,
    /// Of these: connections that could not be opened.
    pub connects: u64,
    /// Connection attempts.
    pub attempts: u64,
    /// 429 and 503 with `Retry-After`.
    pub retry_after: u64,
    /// Age of the backlog at the end of the second.
    pub backlog_ns: u64,
    /// Histogram of times with [`STEPS`] buckets per octave. Shorter than [`BUCKETS`] where the rest is empty.
    buckets: Vec<u32>,
}

impl SecondPart {
    /// An empty one.
    #[must_use]
    pub fn new(index: u32) -> Self {
        Self { index, ..Self::default() }
    }

    /// Counts a complete 2xx response.
    pub fn response(&mut self, ns: u64, payload_bytes: u64) {
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

    /// Adds the same second of another thread.
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

    /// A quantile of the times with an error of a sixteenth; `None` with fewer than ten values above it.
    #[must_use]
    pub fn quantile_ns(&self, q: f64) -> Option<u64> {
        let n: u64 = self.buckets.iter().map(|count| u64::from(*count)).sum();
        if n as f64 * (1.0 - q) + 1e-6 < 10.0 {
            return None;
        }
        let rank = (n as f64 * q).ceil() as u64;
        let mut seen = 0;
        let bucket = self.buckets.iter().position(|count| {
            seen += u64::from(*count);
            seen >= rank
        })?;
        Some(middle_of(bucket))
    }

    /// Part kept in the record.
    #[must_use]
    pub fn summary(&self) -> Second {
        Second { ok: self.ok, p99_ns: self.quantile_ns(0.99), errors: self.errors }
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
    let bucket = u64::from(octave + 1) * STEPS + ((units >> octave) - STEPS);
    (bucket as usize).min(BUCKETS - 1)
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
    fn time_is_within_a_sixteenth_of_its_bucket() {
        for ns in (0..40).flat_map(|bits| [1_u64 << bits, (1 << bits) + (1 << bits) / 3]) {
            let middle = middle_of(bucket_of(ns));
            let error = middle.abs_diff(ns);
            assert!(error <= ns / 16 + 1024, "{ns} became {middle}");
        }
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn seconds_of_threads_are_merged() {
        let (mut a, mut b) = (SecondPart::new(3), SecondPart::new(3));
        for _ in 0..990 {
            a.response(100_000, 1024);
        }
        for _ in 0..20 {
            b.response(50_000_000, 1024);
        }
        b.failure(ErrorClass::Timeout, false);
        a.merge(&b);
        let second = a.summary();
        assert_eq!((second.ok, second.errors), (1_010, 1));
        let p99 = second.p99_ns.expect("ten lie above");
        assert!((47_000_000..54_000_000).contains(&p99), "{p99}");
    }
}
