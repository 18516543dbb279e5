//! Results of pages, for a time and within bounds; in a directory as well, where there is one.

mod files;

use std::collections::{HashMap, VecDeque};
use std::io;
use std::path::Path;
use std::time::Duration;

use files::ResultFiles;

/// The results by their names.
pub(super) struct Results {
    kept: HashMap<String, String>,
    /// ms since 1970 and name, in the order in which they were stored.
    order: VecDeque<(u64, String)>,
    bytes: usize,
    keep_ms: u64,
    files: Option<ResultFiles>,
}

/// Most results; one more replaces the oldest.
const RESULTS_MAX: usize = 10_000;
/// Most bytes of all results.
const BYTES_MAX: usize = 64 << 20;

impl Results {
    pub(super) fn new(keep: Duration) -> Self {
        Self {
            kept: HashMap::new(),
            order: VecDeque::new(),
            bytes: 0,
            keep_ms: u64::try_from(keep.as_millis()).unwrap_or(u64::MAX),
            files: None,
        }
    }

    /// Reads the results of earlier servers from a directory, and keeps later ones there.
    ///
    /// # Errors
    /// When the directory cannot be read or made.
    pub(super) fn open(&mut self, directory: &Path, now_ms: u64) -> io::Result<()> {
        let (files, saved) = ResultFiles::open(directory)?;
        self.files = Some(files);
        for (at_ms, name) in saved {
            match files::read(directory, &name) {
                Some(text) => self.insert(name, text, at_ms, now_ms),
                None => self.write(name, None),
            }
        }
        Ok(())
    }

    pub(super) fn store(&mut self, name: String, text: String, now_ms: u64) {
        self.write(name.clone(), Some(text.clone()));
        self.insert(name, text, now_ms, now_ms);
    }

    pub(super) fn get(&mut self, name: &str, now_ms: u64) -> Option<&str> {
        self.expire(now_ms);
        self.kept.get(name).map(String::as_str)
    }

    /// All of them, the oldest first.
    pub(super) fn texts(&self) -> impl Iterator<Item = &str> {
        let texts = self
            .order
            .iter()
            .filter_map(|(_, name)| self.kept.get(name));
        texts.map(String::as_str)
    }

    /// Why results are not in the directory, once per failure.
    pub(super) fn failure(&self) -> Option<String> {
        self.files.as_ref().and_then(ResultFiles::failure)
    }

    fn insert(&mut self, name: String, text: String, at_ms: u64, now_ms: u64) {
        self.bytes += text.len();
        self.order.push_back((at_ms, name.clone()));
        self.kept.insert(name, text);
        self.expire(now_ms);
    }

    fn expire(&mut self, now_ms: u64) {
        let is_full =
            |results: &Self| results.kept.len() > RESULTS_MAX || results.bytes > BYTES_MAX;
        while let Some((at_ms, _)) = self.order.front()
            && (is_full(self) || now_ms.saturating_sub(*at_ms) >= self.keep_ms)
            && let Some((_, name)) = self.order.pop_front()
        {
            self.bytes -= self.kept.remove(&name).map_or(0, |text| text.len());
            self.write(name, None);
        }
    }

    fn write(&self, name: String, text: Option<String>) {
        if let Some(files) = &self.files {
            files.write(name, text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_kept_for_a_time_and_within_bounds() {
        let start = 1_000_000;
        let mut results = Results::new(Duration::from_secs(10));
        results.store("a".into(), "x".repeat(BYTES_MAX / 2), start);
        results.store("b".into(), "y".repeat(BYTES_MAX / 2), start);
        assert!(results.get("a", start).is_some());
        results.store("c".into(), "z".into(), start + 5000);
        assert!(results.get("a", start).is_none() && results.get("b", start).is_some());

        let late = start + 10_000;
        assert!(results.get("b", late).is_none() && results.get("c", late) == Some("z"));
        for number in 0..=RESULTS_MAX {
            results.store(number.to_string(), String::new(), late);
        }
        assert!(results.kept.len() == RESULTS_MAX && results.get("c", late).is_none());
    }
}
