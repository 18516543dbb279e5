//! How a server is to be spoken to.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// A version of HTTP, in plain text or inside TLS. HTTP/1.1 in plain text is the default.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Protocol {
    /// HTTP/2: by prior knowledge in plain text, by ALPN inside TLS.
    pub is_http2: bool,
    /// Absent for plain text.
    pub tls: Option<TlsPeer>,
}

/// Whom to expect behind TLS.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlsPeer {
    /// Name or address the certificate must be for; a name is reported to the server (SNI).
    pub name: String,
    /// Which certificates are believed.
    pub trust: Trust,
}

/// Which certificates are believed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trust {
    /// Those that lead to an authority of this host's store.
    #[default]
    System,
    /// Those that lead to a certificate of this PEM file, and those in it.
    File(PathBuf),
    /// The one with this SHA-256.
    Pinned([u8; 32]),
    /// All.
    Anything,
}

impl Protocol {
    /// HTTP/1.1 in plain text, which runs over the event loop of our own.
    #[must_use]
    pub fn is_plain_http1(&self) -> bool {
        !self.is_http2 && self.tls.is_none()
    }

    /// Whether this build uses it.
    #[must_use]
    pub fn is_built(&self) -> bool {
        cfg!(feature = "tls") || self.is_plain_http1()
    }
}
