//! TLS of the port, which is recognised by its first byte.

#[cfg(feature = "native")]
use std::time::Duration;
use std::time::Instant;

use linerate_model::policy::CertificateFiles;
#[cfg(feature = "native")]
use linerate_trust::{ServerConfig, ServerSession};

use super::http::HttpConnection;
use super::layer::Layer;
#[cfg(feature = "native")]
use crate::server::limits::address_counts::AddressCounts;
use crate::server::listeners::accepted::Accepted;
#[cfg(feature = "native")]
use crate::tls_stream::TlsStream;

/// The certificate of a server; without one its port has no TLS.
pub(super) struct Certificate {
    #[cfg(feature = "native")]
    config: Option<ServerConfig>,
    /// A handshake costs this host more than the client.
    #[cfg(feature = "native")]
    handshakes: AddressCounts,
}

/// Content type of a handshake record (RFC 8446, section 5.1).
const HANDSHAKE: u8 = 0x16;
/// Handshakes of one address per second: twenty pages with seven connections each.
#[cfg(feature = "native")]
const HANDSHAKES_MAX: u32 = 150;

#[cfg(feature = "native")]
impl Certificate {
    /// # Errors
    /// A certificate or key that cannot be used, in words.
    pub(super) fn load(files: Option<&CertificateFiles>) -> Result<Self, String> {
        let config = files.map(|files| ServerConfig::with_certificate(&files.chain, &files.key));
        Ok(Self {
            config: config.transpose()?,
            handshakes: AddressCounts::new(HANDSHAKES_MAX, Duration::from_secs(1)),
        })
    }

    pub(super) fn is_loaded(&self) -> bool {
        self.config.is_some()
    }

    /// The connection with what its first bytes begin; `None` where it cannot continue.
    pub(super) fn opened(
        &mut self,
        mut accepted: Accepted,
        now: Instant,
    ) -> Option<HttpConnection> {
        let first_bytes = std::mem::take(&mut accepted.first_bytes);
        let Some(config) = self.config.as_ref().filter(|_| is_tls(&first_bytes)) else {
            return Some(HttpConnection::new(accepted, Layer::Plain, first_bytes));
        };
        let address = accepted.peer.ip();
        if self.handshakes.is_exhausted(address, now) {
            return None;
        }
        self.handshakes.record(address, now);

        let mut stream = TlsStream::server(ServerSession::new(config));
        stream.begin(&accepted.fd, &first_bytes).ok()?;
        let layer = Layer::Tls(Box::new(stream));
        Some(HttpConnection::new(accepted, layer, Vec::new()))
    }
}

#[cfg(not(feature = "native"))]
impl Certificate {
    pub(super) fn load(files: Option<&CertificateFiles>) -> Result<Self, String> {
        match files {
            Some(_) => Err("this build has no TLS".to_owned()),
            None => Ok(Self {}),
        }
    }

    pub(super) fn is_loaded(&self) -> bool {
        false
    }

    pub(super) fn opened(
        &mut self,
        mut accepted: Accepted,
        _now: Instant,
    ) -> Option<HttpConnection> {
        let first_bytes = std::mem::take(&mut accepted.first_bytes);
        Some(HttpConnection::new(accepted, Layer::Plain, first_bytes))
    }
}

impl Certificate {
    pub(super) fn recognises(&self, first_bytes: &[u8]) -> bool {
        self.is_loaded() && is_tls(first_bytes)
    }

    pub(super) fn scheme(&self) -> &'static str {
        if self.is_loaded() { "https" } else { "http" }
    }
}

fn is_tls(first_bytes: &[u8]) -> bool {
    first_bytes.first() == Some(&HANDSHAKE)
}
