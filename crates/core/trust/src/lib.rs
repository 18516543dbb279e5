//! Who the other end is, and that nothing changes between the two.
//!
//! A server is identified by the [`Fingerprint`] of its [`HostKey`], or by proof of a [`Token`]
//! that both ends hold. A client keeps the fingerprints of servers in [`KnownHosts`].
//! [`ClientSession`] and [`ServerSession`] are TLS 1.3 (RFC 8446) with raw public keys (RFC 7250),
//! from bytes to bytes: they own no socket and never block. A TLS session by itself proves
//! possession of a key, not whose key it is: the client compares [`ClientSession::peer`], or both
//! ends exchange a [`proof`] over [`ClientSession::exporter`].
//!
//! No bytes of a peer lead to a panic, and all that is kept of them is bounded. Files are read and
//! written here because their modes are part of what they prove.

#![forbid(unsafe_code)]

#[cfg(any(test, fuzzing))]
#[path = "../fuzzing.rs"]
pub mod fuzzing;

mod files;
mod fingerprint;
mod host_key;
mod known_hosts;
mod proof;
mod tls;
mod token;

pub use files::FileError;
pub use fingerprint::{BadFingerprint, Fingerprint};
pub use host_key::{HostKey, KeyError};
pub use known_hosts::{KnownHosts, KnownHostsError, KnownHostsWarning};
pub use linerate_sys::random::bytes as random;
pub use proof::{FlowOpener, address_proof, digest, flow_tag, resume_proof, verify_resume};
pub use tls::{
    ALPN, CHANNEL_BINDING, ClientConfig, ClientSession, HANDSHAKE_BYTES_MAX, PLAINTEXT_BYTES_MAX,
    ServerConfig, ServerSession, TlsError, TrustError, verifier,
};
pub use token::{BadToken, Role, Token, TokenError, Tokens, proof, verify};
