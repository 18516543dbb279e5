//! The token of the control channel.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};

use aws_lc_rs::constant_time;

/// Bytes of a generated token.
pub(super) const FRESH_BYTES: usize = 32;
/// Shorter tokens can be guessed.
const LENGTH_MIN: usize = 16;
/// Upper bound.
const LENGTH_MAX: usize = 256;

/// A secret shared by both ends. Disclosed by [`Token::reveal`] alone.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

/// Why text is no token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a token is {LENGTH_MIN} to {LENGTH_MAX} visible ASCII characters")]
pub struct BadToken;

impl Token {
    /// Generates one: 32 random bytes in hexadecimal digits.
    ///
    /// # Errors
    /// Those of the random number source.
    pub fn fresh() -> io::Result<Self> {
        random_digits().map(Self)
    }

    /// From text; surrounding white space is removed.
    ///
    /// # Errors
    /// [`BadToken`] for one that is too short, too long, or invalid in a header.
    pub fn new(words: &str) -> Result<Self, BadToken> {
        let words = words.trim();
        let is_good =
            (LENGTH_MIN..=LENGTH_MAX).contains(&words.len()) && words.bytes().all(|byte| byte.is_ascii_graphic());
        is_good.then(|| Self(words.to_owned())).ok_or(BadToken)
    }

    /// The token itself.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Whether an `Authorization` field contains it (RFC 6750). Takes equally long for wrong tokens of the same length.
    #[must_use]
    pub fn is_in(&self, authorization: &[u8]) -> bool {
        const SCHEME: &[u8] = b"Bearer ";
        let Some((scheme, given)) = authorization.split_at_checked(SCHEME.len()) else {
            return false;
        };
        scheme.eq_ignore_ascii_case(SCHEME) && is_same(&self.0, given)
    }
}

/// 32 random bytes in hexadecimal digits.
pub(super) fn random_digits() -> io::Result<String> {
    let mut bytes = [0; FRESH_BYTES];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(digits(&bytes))
}

/// Compares in constant time.
pub(super) fn is_same(expected: &str, given: &[u8]) -> bool {
    constant_time::verify_slices_are_equal(expected.as_bytes(), given).is_ok()
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
    fn only_the_token_itself_matches() {
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
    fn generated_tokens_differ_and_are_not_printed() {
        let (one, other) = (Token::fresh().expect("random"), Token::fresh().expect("random"));
        assert_ne!(one, other);
        assert_eq!(one.reveal().len(), 64);
        assert_eq!(Token::new(one.reveal()), Ok(one.clone()));
        assert!(!format!("{one:?}").contains(one.reveal()));
    }

    #[test]
    fn guessable_and_unsendable_text_is_refused() {
        for bad in ["", "short", "with a blank inside", "0123456789abcde\u{e9}", &"x".repeat(257)] {
            assert_eq!(Token::new(bad), Err(BadToken), "{bad}");
        }
    }
}
