//! Protocol of a load.

pub use linerate_model::http::Trust;
use serde::{Deserialize, Serialize};

/// A version of HTTP, in plain text or inside TLS. Default: HTTP/1.1 in plain text.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Protocol {
    /// HTTP/2: by prior knowledge in plain text, by ALPN inside TLS.
    pub is_http2: bool,
    /// `None`: plain text.
    pub tls: Option<TlsPeer>,
}

/// Expected identity of a TLS server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlsPeer {
    /// Name or address the certificate must match; a name is sent as SNI.
    pub name: String,
    /// Trusted certificates.
    pub trust: Trust,
}

impl Protocol {
    /// HTTP/1.1 in plain text, which has its own event loop.
    pub fn is_plain_http1(&self) -> bool {
        !self.is_http2 && self.tls.is_none()
    }
}
