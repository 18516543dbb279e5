//! Why a session ends.

use rustls::{AlertDescription, CertificateError, Error};

use super::limits::{HANDSHAKE_BYTES_MAX, PLAINTEXT_BYTES_MAX};

/// Reason why a TLS session cannot continue. The peer is at fault, but for [`TlsError::SendLimit`]
/// and [`TlsError::Closed`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TlsError {
    /// The first bytes are no TLS.
    #[error("the peer does not use TLS on this connection")]
    NotTls,
    /// Another protocol inside TLS, or another major version of this one.
    #[error("the peer does not agree to {} (ALPN)", super::ALPN)]
    Protocol,
    /// No common version, suite or form of key.
    #[error("the peer's TLS is incompatible: {0}")]
    Incompatible(String),
    /// A key of another kind, or a signature that is not of this key.
    #[error("the peer does not possess its key: {0}")]
    Key(String),
    /// A certificate that is not trusted, or not for this server.
    #[error("the certificate of the server is not trusted: {0}")]
    Untrusted(String),
    /// More bytes than any handshake has.
    #[error("the peer's handshake exceeds {HANDSHAKE_BYTES_MAX} bytes")]
    HandshakeLimit,
    /// The owner took less than the peer sent.
    #[error("more than {PLAINTEXT_BYTES_MAX} bytes received and not taken")]
    ReceiveLimit,
    /// The owner sends more than a session keeps. Nothing is sent, and the session continues.
    #[error("more than {PLAINTEXT_BYTES_MAX} bytes sent and not taken")]
    SendLimit,
    /// The peer ended the session.
    #[error("the peer ended the session: {0}")]
    Alert(String),
    /// Nothing is sent after [`super::ClientSession::close`] or [`super::ServerSession::close`].
    #[error("the session is closed")]
    Closed,
    /// A record that is invalid, altered, or out of order.
    #[error("the session is broken: {0}")]
    Broken(String),
}

impl TlsError {
    pub(super) fn of(error: &Error, is_handshaking: bool) -> Self {
        match error {
            // After the handshake, bytes that are no record are damage and not another protocol.
            Error::InvalidMessage(_) if is_handshaking => Self::NotTls,
            Error::NoApplicationProtocol
            | Error::AlertReceived(AlertDescription::NoApplicationProtocol) => Self::Protocol,
            Error::AlertReceived(alert) => Self::Alert(format!("{alert:?}")),
            Error::PeerIncompatible(why) => Self::Incompatible(format!("{why:?}")),
            Error::InvalidCertificate(CertificateError::BadSignature) => {
                Self::Key("invalid signature".to_owned())
            }
            Error::InvalidCertificate(CertificateError::BadEncoding) => {
                Self::Key("another kind of key".to_owned())
            }
            Error::InvalidCertificate(why) => Self::Untrusted(why.to_string()),
            other => Self::Broken(other.to_string()),
        }
    }
}
