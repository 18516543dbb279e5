//! One second of a run in one thread, small enough to be kept for every second and sent while it
//! runs.

use linerate_model::http::{ErrorClass, Second};
use serde::{Deserialize, Serialize};

use super::distribution::Distribution;

/// Responses, failures and approximate times of one second.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SecondPart {
    /// Seconds since the start of the warm-up.
    pub index: u32,
    /// Complete 2xx responses.
    pub ok: u64,
    /// Bytes of their bodies.
    pub payload_bytes: u64,
    /// All failures.
    pub errors: u64,
    /// Errors with status 5xx and `429 Too Many Requests`.
    pub refusals: u64,
    /// Errors by response timeout.
    pub timeouts: u64,
    /// Errors of connections that could not be opened.
    pub connects: u64,
    /// Connection attempts.
    pub attempts: u64,
    /// 429 and 503 with `Retry-After`.
    pub retry_after: u64,
    /// Connections that are open at its end.
    pub open: u64,
    /// Age of the backlog at the end of the second.
    pub backlog_ns: u64,
    /// Times with an error of a sixteenth.
    times: Distribution<1>,
}

impl SecondPart {
    /// An empty one.
    pub fn new(index: u32) -> Self {
        Self {
            index,
            ..Self::default()
        }
    }

    /// Counts a complete 2xx response.
    pub fn response(&mut self, ns: u64, payload_bytes: u64) {
        self.ok += 1;
        self.payload_bytes += payload_bytes;
        self.times.record(ns);
    }

    /// Counts a failure.
    pub fn failure(&mut self, class: ErrorClass, is_refusal: bool) {
        self.errors += 1;
        self.refusals += u64::from(is_refusal || class == ErrorClass::Status5xx);
        self.timeouts += u64::from(class == ErrorClass::Timeout);
        self.connects += u64::from(matches!(
            class,
            ErrorClass::ConnectRefused
                | ErrorClass::ConnectTimeout
                | ErrorClass::Unreachable
                | ErrorClass::Tls
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
        self.open += other.open;
        self.backlog_ns = self.backlog_ns.max(other.backlog_ns);
        self.times.merge(&other.times);
    }

    /// A quantile of the times with an error of a sixteenth; `None` with fewer than ten values
    /// above it.
    pub fn quantile_ns(&self, q: f64) -> Option<u64> {
        Some(self.times.quantile(q)?.ns)
    }

    /// Part kept in the record.
    pub fn summary(&self) -> Second {
        Second {
            ok: self.ok,
            p99_ns: self.quantile_ns(0.99),
            errors: self.errors,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
