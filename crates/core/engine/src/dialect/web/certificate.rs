//! TLS of the port, which is recognised by its first byte.

use std::time::{Duration, Instant};

use linerate_model::policy::CertificateFiles;

use super::http::HttpConnection;
use crate::layer::Layer;
use crate::server::Accepted;
use crate::server::limits::address_counts::AddressCounts;
use tls::Config;

/// The certificate of a server; without one its port has no TLS.
pub(super) struct Certificate {
    config: Option<Config>,
    /// A handshake costs this host more than the client.
    handshakes: AddressCounts,
}

/// Content type of a handshake record (RFC 8446, section 5.1).
const HANDSHAKE: u8 = 0x16;
/// Handshakes of one address per second: twenty pages with seven connections each.
const HANDSHAKES_MAX: u32 = 150;

impl Certificate {
    /// # Errors
    /// A certificate or key that cannot be used, in words.
    pub(super) fn load(files: Option<&CertificateFiles>) -> Result<Self, String> {
        Ok(Self {
            config: files.map(tls::read).transpose()?,
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
            return Some(HttpConnection::new(accepted, Layer::plain(), first_bytes));
        };
        let address = accepted.peer.ip();
        if self.handshakes.is_exhausted(address, now) {
            return None;
        }
        self.handshakes.record(address, now);
        let layer = tls::begin(config, &accepted, &first_bytes)?;
        Some(HttpConnection::new(accepted, layer, Vec::new()))
    }

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

#[cfg(feature = "native")]
mod tls {
    pub(super) use linerate_trust::ServerConfig as Config;
    use linerate_trust::ServerSession;

    use super::{Accepted, CertificateFiles, Layer};
    use crate::tls_stream::TlsStream;

    pub(super) fn read(files: &CertificateFiles) -> Result<Config, String> {
        Config::with_certificate(&files.chain, &files.key)
    }

    pub(super) fn begin(config: &Config, accepted: &Accepted, first: &[u8]) -> Option<Layer> {
        let mut stream = TlsStream::server(ServerSession::new(config));
        stream.begin(&accepted.fd, first).ok()?;
        Some(Layer::Tls(Box::new(stream)))
    }
}

#[cfg(not(feature = "native"))]
mod tls {
    pub(super) use std::convert::Infallible as Config;

    use super::{Accepted, CertificateFiles, Layer};

    pub(super) fn read(_: &CertificateFiles) -> Result<Config, String> {
        Err("this build has no TLS".to_owned())
    }

    pub(super) fn begin(config: &Config, _: &Accepted, _: &[u8]) -> Option<Layer> {
        match *config {}
    }
}
