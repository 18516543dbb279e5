//! Rate limit for log lines caused by remote peers.

use std::time::{Duration, Instant};

/// Lets a number of messages pass per period and counts the others.
#[derive(Debug, Default)]
pub struct LogRateLimit {
    begun: Option<Instant>,
    passed: u32,
    held_back: u64,
}

/// Messages per period.
const MESSAGES: u32 = 50;
const PERIOD: Duration = Duration::from_secs(10);

impl LogRateLimit {
    /// True if a message may pass.
    pub fn passes(&mut self, now: Instant) -> bool {
        if self
            .begun
            .is_none_or(|t| now.saturating_duration_since(t) >= PERIOD)
        {
            // A period begins with a message, so that a burst after silence passes.
            self.begun = Some(now);
            self.passed = 0;
        }

        let passes = self.passed < MESSAGES;
        if passes {
            self.passed += 1;
        } else {
            self.held_back += 1;
        }

        passes
    }

    /// Number of suppressed messages since the last call, once their period has ended.
    pub fn take_held_back(&mut self, now: Instant) -> Option<u64> {
        let over = self
            .begun
            .is_some_and(|t| now.saturating_duration_since(t) >= PERIOD);
        (over && self.held_back > 0).then(|| std::mem::take(&mut self.held_back))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_becomes_a_number() {
        let (mut gate, now) = (LogRateLimit::default(), Instant::now());
        let passed = (0..1000).filter(|_| gate.passes(now)).count();
        assert_eq!(passed, MESSAGES as usize);
        assert_eq!(gate.take_held_back(now), None, "the flood may continue");
        assert_eq!(gate.take_held_back(now + PERIOD), Some(950));
        assert_eq!(gate.take_held_back(now + PERIOD), None);
        assert!(gate.passes(now + PERIOD));
    }
}
