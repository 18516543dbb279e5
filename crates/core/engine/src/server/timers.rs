//! When each of many sessions is due.

use std::collections::{BTreeSet, HashMap};
use std::time::Instant;

/// Times by number of the session: the next one is found without a scan.
#[derive(Default)]
pub(crate) struct Timers {
    in_order: BTreeSet<(Instant, u64)>,
    by_id: HashMap<u64, Instant>,
}

impl Timers {
    /// Replaces the time of a session; `None` where it has none.
    pub(crate) fn set(&mut self, id: u64, due: Option<Instant>) {
        let before = match due {
            Some(due) => self.by_id.insert(id, due),
            None => self.by_id.remove(&id),
        };
        if let Some(before) = before {
            self.in_order.remove(&(before, id));
        }
        self.in_order.extend(due.map(|due| (due, id)));
    }

    pub(crate) fn next(&self) -> Option<Instant> {
        self.in_order.first().map(|(due, _)| *due)
    }

    /// Takes the sessions that are due.
    pub(crate) fn take_due(&mut self, now: Instant) -> Vec<u64> {
        let mut ids = Vec::new();
        while let Some((due, id)) = self.in_order.first().copied()
            && due <= now
        {
            self.set(id, None);
            ids.push(id);
        }

        ids
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn each_session_is_due_once_at_its_newest_time() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut timers = Timers::default();
        for (id, ms) in [(1, 30), (2, 10), (3, 20), (1, 5)] {
            timers.set(id, Some(at(ms)));
        }
        timers.set(3, None);

        assert_eq!(timers.next(), Some(at(5)));
        assert_eq!(timers.take_due(at(10)), [1, 2]);
        assert!(timers.take_due(at(100)).is_empty());
        assert_eq!(timers.next(), None);
    }
}
