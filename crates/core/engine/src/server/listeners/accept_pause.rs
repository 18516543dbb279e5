//! Pauses a listener when descriptors or memory ran out, with one warning a minute.

use std::time::{Duration, Instant};

/// The pause of one listener, or of several together.
#[derive(Default)]
pub(crate) struct AcceptPause {
    /// No connection is accepted before.
    until: Option<Instant>,
    warned_at: Option<Instant>,
}

/// Long enough that a listener that stays readable costs nothing.
const PAUSE: Duration = Duration::from_millis(50);
/// Time between two warnings.
const WARNING_PERIOD: Duration = Duration::from_secs(60);

impl AcceptPause {
    /// Begins a pause; true when a warning is due.
    pub(crate) fn begin(&mut self, now: Instant) -> bool {
        self.until = Some(now + PAUSE);
        let is_due = self
            .warned_at
            .is_none_or(|t| now.saturating_duration_since(t) > WARNING_PERIOD);
        if is_due {
            self.warned_at = Some(now);
        }

        is_due
    }

    /// True once when the pause has ended.
    pub(crate) fn ends(&mut self, now: Instant) -> bool {
        self.until.take_if(|t| *t <= now).is_some()
    }

    pub(crate) fn is_on(&self) -> bool {
        self.until.is_some()
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_ends_once_and_complaints_are_rare() {
        let (mut pause, now) = (AcceptPause::default(), Instant::now());
        assert!(pause.begin(now) && !pause.begin(now + PAUSE));
        assert!(!pause.ends(now + PAUSE) && pause.is_on());
        assert!(pause.ends(now + 2 * PAUSE) && !pause.ends(now + 2 * PAUSE) && !pause.is_on());
        assert!(pause.begin(now + 2 * WARNING_PERIOD));
    }
}
