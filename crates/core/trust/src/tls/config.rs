//! Configurations of both ends.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use linerate_model::http::Trust;
use linerate_sys::file_system;
use rustls::client::Resumption;
use rustls::crypto::{CryptoProvider, aws_lc_rs as library};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::{AlwaysResolvesServerRawPublicKeys, NoServerSessionStorage};
use rustls::version::TLS13;

use super::ALPN;
use super::certificates::verifier;
use super::verifier::AnyKey;
use crate::files::read_private;
use crate::host_key::HostKey;

/// Configuration that the sessions of a server share. Cheap to clone.
#[derive(Clone)]
pub struct ServerConfig {
    pub(super) config: Arc<rustls::ServerConfig>,
    /// Protocol that clients have to agree to; `None` where they may name none.
    pub(super) alpn: Option<&'static str>,
}

/// Configuration that the sessions of a client share. Cheap to clone.
#[derive(Clone)]
pub struct ClientConfig {
    pub(super) config: Arc<rustls::ClientConfig>,
    /// The name of the server, which its certificate is for.
    pub(super) name: ServerName<'static>,
    /// Protocol that servers have to agree to; `None` where they may name none.
    pub(super) alpn: Option<&'static str>,
}

impl ServerConfig {
    /// TLS 1.3 alone, the key as a raw public key, no session tickets, no early data: every session
    /// is a full handshake, so its exporter is bound to the key.
    pub fn new(key: &HostKey) -> Self {
        let mut config = rustls::ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&TLS13])
            .expect(HAS_SUITES)
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(
                key.certified(),
            )));
        config.alpn_protocols = vec![ALPN.into()];
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        config.max_early_data_size = 0;

        Self {
            config: Arc::new(config),
            alpn: Some(ALPN),
        }
    }

    /// TLS 1.3 with a certificate, for browsers: HTTP/2 or HTTP/1.1, no session tickets, no early
    /// data. The files are PEM: the chain of certificates, the server's own first, and a private key that its
    /// owner alone may read.
    ///
    /// # Errors
    /// Files that cannot be read, have no certificate or key, or do not belong together; in words.
    pub fn with_certificate(chain: &Path, key: &Path) -> Result<Self, String> {
        let named = |path: &Path, error: &dyn fmt::Display| format!("{}: {error}", path.display());
        let text = file_system::read_text(chain, PEM_BYTES_MAX).map_err(|e| named(chain, &e))?;
        let certificates = CertificateDer::pem_slice_iter(text.as_bytes())
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| named(chain, &error))?;
        let secret = read_private(key, PEM_BYTES_MAX).map_err(|error| error.to_string())?;
        let secret = PrivateKeyDer::from_pem_slice(&secret).map_err(|error| named(key, &error))?;

        let mut config = rustls::ServerConfig::builder_with_provider(library_provider())
            .with_protocol_versions(&[&TLS13])
            .expect(HAS_SUITES)
            .with_no_client_auth()
            .with_single_cert(certificates, secret)
            .map_err(|error| named(chain, &error))?;
        config.alpn_protocols = HTTP.map(Vec::from).to_vec();
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        config.max_early_data_size = 0;
        Ok(Self {
            config: Arc::new(config),
            alpn: None,
        })
    }
}

impl ClientConfig {
    /// Accepts any Ed25519 key that the server proves to possess. Whose key it is must be decided
    /// by the caller, see [`super::ClientSession::peer`].
    pub fn new() -> Self {
        let provider = provider();
        let verifier = AnyKey::new(provider.signature_verification_algorithms);

        let mut config = rustls::ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])
            .expect(HAS_SUITES)
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        config.alpn_protocols = vec![ALPN.into()];
        config.resumption = Resumption::disabled();
        config.enable_early_data = false;

        // A key has no name, and the name of the server is nothing for others on the path.
        config.enable_sni = false;
        Self {
            config: Arc::new(config),
            // Never sent, and never compared: the identity is the key.
            name: ServerName::try_from("linerate").expect("a name of letters"),
            alpn: Some(ALPN),
        }
    }

    /// TLS 1.3 with a server of HTTP/1.1 that has a trusted certificate for `name`.
    ///
    /// # Errors
    /// An invalid name, or certificates that cannot be read; in words.
    pub fn with_certificates(name: &str, trust: &Trust) -> Result<Self, String> {
        let server = ServerName::try_from(name.to_owned())
            .map_err(|_| format!("{name:?} is not a valid DNS name or IP address"))?;
        let provider = library_provider();
        let verifier = verifier(trust, &provider).map_err(|error| error.to_string())?;
        let mut config = rustls::ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])
            .expect(HAS_SUITES)
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth();
        config.alpn_protocols = vec![HTTP1.into()];
        config.resumption = Resumption::disabled();
        Ok(Self {
            config: Arc::new(config),
            name: server,
            alpn: None,
        })
    }
}

impl Default for ClientConfig {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for ServerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ServerConfig")
    }
}

impl fmt::Debug for ClientConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientConfig")
    }
}

/// Longest file of certificates or of a key.
const PEM_BYTES_MAX: u64 = 1 << 20;
/// Versions of HTTP, the best first (RFC 9113, section 3.2; RFC 7301, section 6).
const HTTP: [&str; 2] = ["h2", HTTP1];
const HTTP1: &str = "http/1.1";
const HAS_SUITES: &str = "the provider has suites of TLS 1.3";

/// Suites and groups for any client.
fn library_provider() -> Arc<CryptoProvider> {
    Arc::new(library::default_provider())
}

/// One cipher suite for CPUs with instructions for AES, one for those without. Both ends are of
/// this program: with one group a handshake is one round trip, always.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(CryptoProvider {
        cipher_suites: vec![
            library::cipher_suite::TLS13_AES_128_GCM_SHA256,
            library::cipher_suite::TLS13_CHACHA20_POLY1305_SHA256,
        ],
        kx_groups: vec![library::kx_group::X25519],
        ..library::default_provider()
    })
}
