//! Configurations of both ends.

use std::fmt;
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::crypto::{CryptoProvider, aws_lc_rs as library};
use rustls::server::{AlwaysResolvesServerRawPublicKeys, NoServerSessionStorage};
use rustls::version::TLS13;

use super::ALPN;
use super::verifier::AnyKey;
use crate::host_key::HostKey;

/// Configuration that the sessions of a server share. Cheap to clone.
#[derive(Clone)]
pub struct ServerConfig(pub(super) Arc<rustls::ServerConfig>);

/// Configuration that the sessions of a client share. Cheap to clone.
#[derive(Clone)]
pub struct ClientConfig(pub(super) Arc<rustls::ClientConfig>);

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

        Self(Arc::new(config))
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
        Self(Arc::new(config))
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

const HAS_SUITES: &str = "the provider has suites of TLS 1.3";

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
