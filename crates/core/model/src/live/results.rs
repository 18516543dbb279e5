//! Results of test pages, by label or client.

use std::collections::{BTreeMap, VecDeque};

use crate::service::PageResult;

/// The newest results of each label or client.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PageResults {
    by_subject: BTreeMap<String, VecDeque<PageResult>>,
}

/// Most labels and clients; the one that was silent for longest makes room for another one.
const SUBJECTS_MAX: usize = 500;
/// Most results of one.
const RESULTS_MAX: usize = 24;

impl PageResults {
    /// Adds a result.
    pub fn push(&mut self, result: &PageResult) {
        let is_new = !self.by_subject.contains_key(&result.subject);
        if is_new && self.by_subject.len() >= SUBJECTS_MAX {
            let newest = |of: &VecDeque<PageResult>| of.back().map(|result| result.at_unix_ms);
            let oldest = self.by_subject.iter().min_by_key(|(_, of)| newest(of));
            if let Some(oldest) = oldest.map(|(subject, _)| subject.clone()) {
                self.by_subject.remove(&oldest);
            }
        }

        let of_subject = self.by_subject.entry(result.subject.clone()).or_default();
        if of_subject.len() >= RESULTS_MAX {
            of_subject.pop_front();
        }
        of_subject.push_back(result.clone());
    }

    /// Label or client with its results, the newest last.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &VecDeque<PageResult>)> {
        self.by_subject
            .iter()
            .map(|(subject, results)| (subject.as_str(), results))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_results_of_the_newest_subjects_are_kept() {
        let result = |subject: usize, at_unix_ms| PageResult {
            subject: subject.to_string(),
            at_unix_ms,
            down_bps: None,
            up_bps: None,
            loaded_ms: None,
        };
        let mut results = PageResults::default();
        for at_ms in 0..=RESULTS_MAX as u64 {
            results.push(&result(0, at_ms));
        }
        let (_, kept) = results.iter().next().expect("one");
        assert_eq!((kept.len(), kept[0].at_unix_ms), (RESULTS_MAX, 1));

        for subject in 1..=SUBJECTS_MAX {
            results.push(&result(subject, 100));
        }
        assert_eq!(results.iter().count(), SUBJECTS_MAX);
        assert!(results.iter().all(|(subject, _)| subject != "0"));
    }
}
