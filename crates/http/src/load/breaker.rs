//! The circuit breaker: a load that the server cannot bear ends by itself.

use super::second::SecondPart;

/// Trips when failures stay above their limits for three seconds in a row, when the server asks to come back later, or
/// when enough bytes were received.
#[derive(Debug, Clone, Default)]
pub struct Breaker {
    tolerates_failures: bool,
    bytes_max: Option<u64>,
    bytes: u64,
    bad_seconds: u32,
}

impl Breaker {
    /// One that lets through at most `bytes_max` bytes of bodies, and no failing server unless it `tolerates_failures`.
    #[must_use]
    pub fn new(tolerates_failures: bool, bytes_max: Option<u64>) -> Self {
        Self {
            tolerates_failures,
            bytes_max,
            ..Self::default()
        }
    }

    /// Looks at the next second; whether the load must end.
    pub fn is_tripped_by(&mut self, second: &SecondPart) -> bool {
        self.bytes += second.payload_bytes;
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
/// Server errors and `429 Too Many Requests` of all that ended.
const REFUSALS_MAX_PERCENT: u64 = 5;
/// Requests without an answer in time of all that ended.
const TIMEOUTS_MAX_PERCENT: u64 = 5;
/// Connections that could not be opened of those tried.
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
    fn three_bad_seconds_in_a_row_trip_it() {
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
    fn a_server_that_asks_for_a_pause_gets_it() {
        let mut asked = SecondPart::default();
        (asked.ok, asked.retry_after) = (1_000, 1);
        assert!(Breaker::default().is_tripped_by(&asked));
    }

    #[test]
    fn enough_is_enough() {
        let mut breaker = Breaker::new(true, Some(1_000));
        let mut large = second(0, 100);
        large.payload_bytes = 600;
        assert!(!breaker.is_tripped_by(&large));
        assert!(breaker.is_tripped_by(&large));
    }
}
