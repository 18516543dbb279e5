//! TLS 1.3 with raw public keys, without I/O.

mod certificates;
mod config;
mod error;
mod limits;
mod records;
mod session;
mod verifier;

pub use certificates::{TrustError, verifier};
pub use config::{ClientConfig, ServerConfig};
pub use error::TlsError;
pub use limits::{HANDSHAKE_BYTES_MAX, PLAINTEXT_BYTES_MAX};
pub use session::{ClientSession, ServerSession};

/// Protocol that both ends negotiate (ALPN, RFC 7301). Its number is the major version.
pub const ALPN: &str = "linerate/1";

/// Label of the exporter that binds proofs to a session (`tls-exporter` of RFC 9266).
pub const CHANNEL_BINDING: &str = "EXPORTER-Channel-Binding";
