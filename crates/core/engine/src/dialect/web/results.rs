//! Results of pages, for a time and within bounds.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

/// Results by their names.
pub(super) struct Results {
    texts: HashMap<String, String>,
    /// In the order in which they were stored.
    names: VecDeque<(String, Instant)>,
    bytes: usize,
    keep: Duration,
}

/// Most results; one more replaces the oldest.
const RESULTS_MAX: usize = 10_000;
/// Most bytes of all results.
const BYTES_MAX: usize = 64 << 20;

impl Results {
    pub(super) fn new(keep: Duration) -> Self {
        Self {
            texts: HashMap::new(),
            names: VecDeque::new(),
            bytes: 0,
            keep,
        }
    }

    pub(super) fn store(&mut self, name: String, text: String, now: Instant) {
        self.bytes += text.len();
        self.names.push_back((name.clone(), now));
        self.texts.insert(name, text);
        self.expire(now);
    }

    pub(super) fn get(&mut self, name: &str, now: Instant) -> Option<&str> {
        self.expire(now);
        self.texts.get(name).map(String::as_str)
    }

    fn expire(&mut self, now: Instant) {
        while let Some((oldest, stored)) = self.names.front()
            && (self.names.len() > RESULTS_MAX
                || self.bytes > BYTES_MAX
                || now.saturating_duration_since(*stored) >= self.keep)
        {
            let text = self.texts.remove(oldest).unwrap_or_default();
            self.bytes -= text.len();
            self.names.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_kept_for_a_time_and_within_bounds() {
        let start = Instant::now();
        let mut results = Results::new(Duration::from_secs(10));
        results.store("a".into(), "x".repeat(BYTES_MAX / 2), start);
        results.store("b".into(), "y".repeat(BYTES_MAX / 2), start);
        assert!(results.get("a", start).is_some());
        results.store("c".into(), "z".into(), start + Duration::from_secs(5));
        assert!(results.get("a", start).is_none() && results.get("b", start).is_some());

        let late = start + Duration::from_secs(10);
        assert!(results.get("b", late).is_none() && results.get("c", late) == Some("z"));
        for number in 0..=RESULTS_MAX {
            results.store(number.to_string(), String::new(), late);
        }
        assert!(results.names.len() == RESULTS_MAX && results.get("c", late).is_none());
    }
}
