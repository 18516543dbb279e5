//! The secret that opens the control channel.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};

use aws_lc_rs::constant_time;

/// Bytes of a fresh secret.
pub(super) const FRESH_BYTES: usize = 32;
/// Shorter secrets can be guessed.
const LENGTH_MIN: usize = 16;
/// Longer ones are a mistake.
const LENGTH_MAX: usize = 256;

/// A secret both ends know. Shown by [`Token::reveal`] alone.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

/// Why words are no secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a token is {LENGTH_MIN} to {LENGTH_MAX} visible ASCII characters")]
pub struct BadToken;

impl Token {
    /// A new one: 32 random bytes in hexadecimal digits.
    ///
    /// # Errors
    /// The operating system's, where it has no random numbers.
    pub fn fresh() -> io::Result<Self> {
        random_digits().map(Self)
    }

    /// The user's own; blanks and line ends around it are not part of it.
    ///
    /// # Errors
    /// [`BadToken`] for one that is too short, too long, or cannot stand in a header.
    pub fn new(words: &str) -> Result<Self, BadToken> {
        let words = words.trim();
        let is_good =
            (LENGTH_MIN..=LENGTH_MAX).contains(&words.len()) && words.bytes().all(|byte| byte.is_ascii_graphic());
        is_good.then(|| Self(words.to_owned())).ok_or(BadToken)
    }

    /// The secret itself.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Whether the value of an `Authorization` field holds it (RFC 6750). Takes as long for a wrong secret as for the
    /// right one of the same length.
    #[must_use]
    pub fn is_in(&self, authorization: &[u8]) -> bool {
        const SCHEME: &[u8] = b"Bearer ";
        let Some((scheme, shown)) = authorization.split_at_checked(SCHEME.len()) else {
            return false;
        };
        scheme.eq_ignore_ascii_case(SCHEME) && is_same(&self.0, shown)
    }
}

/// 32 random bytes in hexadecimal digits.
pub(super) fn random_digits() -> io::Result<String> {
    let mut bytes = [0; FRESH_BYTES];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(digits(&bytes))
}

/// Whether two texts are the same; takes as long whether they are or not.
pub(super) fn is_same(expected: &str, shown: &[u8]) -> bool {
    constant_time::verify_slices_are_equal(expected.as_bytes(), shown).is_ok()
}

/// Bytes in hexadecimal digits.
pub(super) fn digits(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(secret)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_secret_itself_opens() {
        let token = Token::new(" 0123456789abcdef\n").expect("long enough");
        for good in ["Bearer 0123456789abcdef", "bearer 0123456789abcdef"] {
            assert!(token.is_in(good.as_bytes()), "{good}");
        }
        for bad in [
            "",
            "Bearer",
            "Bearer ",
            "0123456789abcdef",
            "Basic  0123456789abcdef",
            "Bearer 0123456789abcdeF",
            "Bearer 0123456789abcde",
            "Bearer 0123456789abcdef0",
            "Bearer  0123456789abcdef",
        ] {
            assert!(!token.is_in(bad.as_bytes()), "{bad}");
        }
    }

    #[test]
    fn fresh_secrets_differ_and_are_not_shown_by_accident() {
        let (one, other) = (Token::fresh().expect("random"), Token::fresh().expect("random"));
        assert_ne!(one, other);
        assert_eq!(one.reveal().len(), 64);
        assert_eq!(Token::new(one.reveal()), Ok(one.clone()));
        assert!(!format!("{one:?}").contains(one.reveal()));
    }

    #[test]
    fn words_that_can_be_guessed_or_not_be_sent_are_refused() {
        for bad in [
            "",
            "short",
            "with a blank inside",
            "0123456789abcde\u{e9}",
            &"x".repeat(257),
        ] {
            assert_eq!(Token::new(bad), Err(BadToken), "{bad}");
        }
    }
}
