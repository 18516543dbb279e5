//! Tokens that were accepted, for as long as their time would be accepted again.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// Every token is good for one login: its padding is random, so no honest client makes the same one
/// twice.
#[derive(Default)]
pub(super) struct AcceptedTokens(Mutex<BTreeSet<(i64, String)>>);

/// Tokens that are remembered; the oldest is forgotten for one more. Only valid users fill this.
const TOKENS_MAX: usize = 65_536;

impl AcceptedTokens {
    /// Remembers a token with this digest and time in s since 1970; `false` when it is known. Those
    /// from before `oldest_unix_s` are refused for their time, so they are forgotten.
    pub(super) fn is_first_use(&self, digest: String, unix_s: i64, oldest_unix_s: i64) -> bool {
        let mut tokens = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *tokens = tokens.split_off(&(oldest_unix_s, String::new()));
        let is_first = tokens.insert((unix_s, digest));

        if tokens.len() > TOKENS_MAX {
            // The oldest one: its time is the first to be refused anyway.
            tokens.pop_first();
        }
        is_first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_good_once_and_is_forgotten_when_its_time_is_over() {
        let tokens = AcceptedTokens::default();
        let uses = [
            ("a", 100, 90),
            ("b", 100, 90),
            ("a", 100, 100),
            ("a", 100, 101),
        ];
        let first =
            uses.map(|(digest, unix_s, oldest)| tokens.is_first_use(digest.into(), unix_s, oldest));
        assert_eq!(first, [true, true, false, true]);
    }

    #[test]
    fn memory_is_bounded() {
        let tokens = AcceptedTokens::default();
        for n in 0..=i64::try_from(TOKENS_MAX).expect("small") {
            assert!(tokens.is_first_use("a".into(), n, 0));
        }
        assert_eq!(tokens.0.lock().expect("no panic before").len(), TOKENS_MAX);
    }
}
