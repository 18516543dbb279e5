//! Why a proof of identity cannot be made, and why it is refused.

use thiserror::Error;

/// Key or credentials that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AuthError {
    /// The text holds no key of the wanted kind.
    #[error("not an unencrypted RSA {0} key in PEM form")]
    NoKey(&'static str),
    /// The key is encrypted.
    #[error(
        "the RSA private key is encrypted with a passphrase, which a server has no terminal to ask \
         for; `openssl pkey -in KEY -out NEW_KEY` writes it without one (keep it readable by its \
         owner alone)"
    )]
    Encrypted,
    /// The cryptographic library refuses the key.
    #[error("unusable RSA key: {0} (2048 to 8192 bits are supported)")]
    BadKey(String),
    /// Servers read both as words.
    #[error(
        "user name and password must not be empty or contain blanks: servers cannot accept them"
    )]
    Blank,
    /// RSA encrypts at most as many bytes as the key has, less the padding.
    #[error("user name and password are too long for this key")]
    TooLong,
    /// The user file separates fields by commas and lines by line ends, and `#` begins a comment.
    #[error(
        "a user name must not hold a comma or control character, begin with #, or be longer than \
         256 bytes"
    )]
    UserName,
}

/// Why a client was refused. For the operator only; the client learns nothing but the refusal.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Refusal {
    /// The client sent no token.
    #[error("the client sent no credentials")]
    NoToken,
    /// Not Base64, or not the three lines after decryption.
    #[error("malformed token: the client's token is not Base64, or not user, password and time")]
    Malformed,
    /// The token does not decrypt with the padding this server accepts.
    #[error(
        "padding mismatch: the client's token does not decrypt with {accepted} padding (clients up \
         to 3.16 use PKCS#1 v1.5, later ones OAEP; a token made with another key looks the same)"
    )]
    Padding {
        /// Paddings that the server accepts.
        accepted: &'static str,
    },
    /// The clocks differ too much.
    #[error("clock skew: the client's clock differs by {seconds} s")]
    Skew {
        /// Client minus server.
        seconds: i64,
    },
    /// The users file has no such user.
    #[error("unknown user")]
    UnknownUser,
    /// The password is another one.
    #[error("wrong password")]
    WrongPassword,
    /// The users file has no entries.
    #[error("the users file has no entries, or cannot be read")]
    NoUsers,
    /// The token was good, and was used before.
    #[error("replayed token: it has been used for a login before")]
    Replayed,
    /// Too many logins from there failed; this one was not checked.
    #[error("too many failed logins from this address")]
    LockedOut,
}

impl Refusal {
    /// A stable word for machines.
    pub fn label(&self) -> &'static str {
        match self {
            Self::NoToken => "no_credentials",
            Self::Malformed => "malformed_token",
            Self::Padding { .. } => "padding_mismatch",
            Self::Skew { .. } => "clock_skew",
            Self::UnknownUser => "unknown_user",
            Self::WrongPassword => "wrong_password",
            Self::NoUsers => "no_users",
            Self::Replayed => "replayed_token",
            Self::LockedOut => "too_many_failures",
        }
    }
}
