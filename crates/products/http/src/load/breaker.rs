//! Circuit breaker: ends a load the server cannot sustain.

use super::stats::SecondPart;

/// Trips when failure rates exceed their limits for three seconds in a row, on `Retry-After`, or
/// when the limit of received bytes is reached.
#[derive(Debug, Clone, Default)]
pub struct Breaker {
    tolerates_failures: bool,
    bytes_max: Option<u64>,
    bytes: u64,
    bad_seconds: u32,
}

impl Breaker {
    /// Allows `bytes_max` bytes of bodies, and failures if it `tolerates_failures`.
    pub fn new(tolerates_failures: bool, bytes_max: Option<u64>) -> Self {
        Self {
            tolerates_failures,
            bytes_max,
            ..Self::default()
        }
    }

    /// Evaluates the next second; whether the load must end.
    pub fn is_tripped_by(&mut self, second: &SecondPart) -> bool {
        self.bytes += second.payload_bytes;
        // The limit of bytes protects a foreign server, whatever failures are tolerated.
        if self.bytes_max.is_some_and(|max| self.bytes > max) {
            return true;
        }
        !self.tolerates_failures && self.is_failing(second)
    }

    fn is_failing(&mut self, second: &SecondPart) -> bool {
        let ended = second.ok + second.errors;
        let is_bad = exceeds(second.refusals, ended, REFUSALS_MAX_PERCENT)
            || exceeds(second.timeouts, ended, TIMEOUTS_MAX_PERCENT)
            || exceeds(second.connects, second.attempts, CONNECTS_MAX_PERCENT);
        self.bad_seconds = if is_bad { self.bad_seconds + 1 } else { 0 };
        self.bad_seconds >= SECONDS || second.retry_after > 0
    }
}

fn exceeds(part: u64, whole: u64, percent: u64) -> bool {
    part > 0 && part * 100 > whole * percent
}

/// Bad seconds in a row.
const SECONDS: u32 = 3;
/// Share of status 5xx and 429 in percent.
const REFUSALS_MAX_PERCENT: u64 = 5;
/// Share of response timeouts in percent.
const TIMEOUTS_MAX_PERCENT: u64 = 5;
/// Share of failed connection attempts in percent.
const CONNECTS_MAX_PERCENT: u64 = 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn second(ok: u64, refusals: u64) -> SecondPart {
        let mut second = SecondPart::default();
        (second.ok, second.errors, second.refusals) = (ok, refusals, refusals);
        second
    }

    #[test]
    fn three_bad_seconds_in_a_row_trip() {
        let mut breaker = Breaker::default();
        let seconds = [
            second(90, 10),
            second(90, 10),
            second(99, 1),
            second(90, 10),
            second(90, 10),
        ];
        assert!(!seconds.iter().any(|second| breaker.is_tripped_by(second)));
        assert!(breaker.is_tripped_by(&second(0, 1)));
    }

    #[test]
    fn retry_after_trips() {
        let mut asked = SecondPart::default();
        (asked.ok, asked.retry_after) = (1_000, 1);
        assert!(Breaker::default().is_tripped_by(&asked));
    }

    #[test]
    fn byte_limit_trips() {
        let mut breaker = Breaker::new(true, Some(1_000));
        let mut large = second(0, 100);
        large.payload_bytes = 600;
        assert!(!breaker.is_tripped_by(&large));
        assert!(breaker.is_tripped_by(&large));
    }
}
