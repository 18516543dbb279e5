//! Proof of identity: user, password and time, encrypted with the server's RSA public key.
//!
//! The token is RSA-encrypted text in Base64. Releases since 3.17 pad it with OAEP (SHA-1, RFC 8017
//! section 7.1), earlier ones with PKCS#1 v1.5 (section 7.2). The server compares with a file of
//! `user,hash` lines.

mod error;
mod rsa;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use linerate_model::spec::{AcceptedPadding, Credentials};

pub use error::{AuthError, Refusal};
pub use rsa::is_encrypted;

/// Longest user name of a user file in bytes; the original reads lines of at most 1023.
const USER_NAME_BYTES_MAX: usize = 256;

/// Checks whether a user file and a token can hold this name.
///
/// # Errors
/// Why not.
pub fn check_user_name(username: &str) -> Result<(), AuthError> {
    if is_blank(username) {
        return Err(AuthError::Blank);
    }

    let separates = |c: char| c == ',' || c.is_control();
    if username.contains(separates)
        || username.starts_with('#')
        || username.len() > USER_NAME_BYTES_MAX
    {
        return Err(AuthError::UserName);
    }

    Ok(())
}

/// The line of the user file for this user and password, without a line end.
///
/// # Errors
/// When the file cannot hold the name, or no token can hold the password.
pub fn users_file_line(username: &str, password: &str) -> Result<String, AuthError> {
    check_user_name(username)?;
    if is_blank(password) {
        return Err(AuthError::Blank);
    }

    Ok(format!("{username},{}", password_hash(username, password)))
}

fn password_hash(username: &str, password: &str) -> String {
    rsa::sha256_hex(&format!("{{{username}}}{password}"))
}

/// Servers read user name and password as words.
fn is_blank(text: &str) -> bool {
    text.is_empty() || text.contains(char::is_whitespace)
}

/// Makes the token a client sends. `unix_s` is the wall-clock time in s since 1970.
///
/// # Errors
/// When the key is unusable or user name or password cannot be sent.
pub fn make_token(credentials: &Credentials, unix_s: i64) -> Result<String, AuthError> {
    if is_blank(&credentials.username) || is_blank(&credentials.password) {
        return Err(AuthError::Blank);
    }

    let Credentials {
        username, password, ..
    } = credentials;
    // The layout of encode_auth_setting (iperf_auth.c), blanks included.
    let plain = format!("user: {username}\npwd:  {password}\nts:   {unix_s}");
    rsa::encrypt(
        &credentials.public_key_pem,
        credentials.pkcs1_padding,
        plain.as_bytes(),
    )
}

/// Checks tokens with the server's private key.
pub struct Authenticator {
    key: rsa::PrivateKey,
    max_skew: Duration,
    accepted: AcceptedTokens,
}

impl fmt::Debug for Authenticator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authenticator")
            .field("max_skew", &self.max_skew)
            .finish_non_exhaustive()
    }
}

impl Authenticator {
    /// Reads the private key (PKCS#8 or PKCS#1, unencrypted PEM). The old padding invites timing
    /// attacks (CVE-2024-26306), so it must be asked for.
    ///
    /// # Errors
    /// When the key is unusable.
    pub fn new(
        private_key_pem: &str,
        padding: AcceptedPadding,
        max_skew: Duration,
    ) -> Result<Self, AuthError> {
        Ok(Self {
            key: rsa::PrivateKey::new(private_key_pem, padding)?,
            max_skew,
            accepted: AcceptedTokens::default(),
        })
    }

    /// Checks a client's token against the users file's text and returns the user's name. A token
    /// is accepted once.
    ///
    /// # Errors
    /// Why the client is refused.
    pub fn check(
        &self,
        token: Option<&str>,
        users_file: &str,
        unix_s: i64,
    ) -> Result<String, Refusal> {
        let token = token.ok_or(Refusal::NoToken)?;
        let plain = self.key.decrypt(token)?;
        let claim = Claim::parse(&plain).ok_or(Refusal::Malformed)?;

        // Known or not, on time or not: the hash is computed and every line is compared.
        let verdict = look_up(users_file, claim.user, claim.password);
        let seconds = claim.unix_s.saturating_sub(unix_s);
        if seconds.unsigned_abs() > self.max_skew.as_secs() {
            return Err(Refusal::Skew { seconds });
        }

        verdict?;
        // There is one way to write a ciphertext in Base64, so the text identifies it.
        let max_skew_s = i64::try_from(self.max_skew.as_secs()).unwrap_or(i64::MAX);
        let oldest_unix_s = unix_s.saturating_sub(max_skew_s);
        if !self
            .accepted
            .is_first_use(rsa::sha256_hex(token), claim.unix_s, oldest_unix_s)
        {
            return Err(Refusal::Replayed);
        }

        Ok(claim.user.to_owned())
    }
}

/// Checks a user name and a password that came in another way than by a token. `users_file` is the
/// text of the users file.
///
/// # Errors
/// Why the client is refused.
pub fn check_password(user: &str, password: &str, users_file: &str) -> Result<(), Refusal> {
    look_up(users_file, user, password)
}

/// Contents of a token.
struct Claim<'a> {
    user: &'a str,
    password: &'a str,
    unix_s: i64,
}

impl<'a> Claim<'a> {
    fn parse(plain: &'a [u8]) -> Option<Self> {
        let text = std::str::from_utf8(plain).ok()?;
        // Real clients end the text with a NUL or a line end.
        let mut lines = text.trim_end_matches(['\0', '\n']).splitn(3, '\n');
        let user = lines.next()?.strip_prefix("user: ")?;
        let password = lines.next()?.strip_prefix("pwd:  ")?;
        let unix_s = lines.next()?.strip_prefix("ts:   ")?.parse().ok()?;

        Some(Self {
            user,
            password,
            unix_s,
        })
    }
}

fn look_up(users_file: &str, name: &str, password: &str) -> Result<(), Refusal> {
    let hash = password_hash(name, password);
    let mut verdict = Err(Refusal::NoUsers);

    for line in users_file.lines().filter(|line| !line.starts_with('#')) {
        let mut fields = line.trim_end_matches('\r').split(',');
        let (Some(user), Some(expected)) = (fields.next(), fields.next()) else {
            continue;
        };
        // No early return: the time must not reveal which line has the name.
        let same_hash = rsa::equal(expected.as_bytes(), hash.as_bytes());
        verdict = match (verdict, user == name, same_hash) {
            (Ok(()), ..) | (_, true, true) => Ok(()),
            (_, true, false) | (Err(Refusal::WrongPassword), ..) => Err(Refusal::WrongPassword),
            _ => Err(Refusal::UnknownUser),
        };
    }

    verdict
}

/// Every token is good for one login: its padding is random, so no honest client makes the same one
/// twice.
#[derive(Default)]
struct AcceptedTokens(Mutex<BTreeSet<(i64, String)>>);

/// Tokens that are remembered; the oldest is forgotten for one more. Only valid users fill this.
const TOKENS_MAX: usize = 65_536;

impl AcceptedTokens {
    /// Remembers a token with this digest and time in s since 1970; `false` when it is known. Those
    /// from before `oldest_unix_s` are refused for their time, so they are forgotten.
    fn is_first_use(&self, digest: String, unix_s: i64, oldest_unix_s: i64) -> bool {
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
mod accepted_tokens_tests {
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
