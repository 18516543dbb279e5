//! TLS client.

use std::io;
use std::sync::Arc;

use linerate_model::http::NegotiatedTls;
use linerate_trust::verifier;
use rustls::crypto::{CryptoProvider, aws_lc_rs as library};
use rustls::{AlertDescription, CertificateError, ClientConfig, ClientConnection, ProtocolVersion};
use rustls_pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::failure::{ClientError, Refusal};
use crate::protocol::TlsPeer;

/// Expected identity of a server.
pub(super) struct Tls {
    connector: TlsConnector,
    name: ServerName<'static>,
    is_http2: bool,
}

impl Tls {
    /// # Errors
    /// An invalid name, or unreadable certificates.
    pub(super) fn new(peer: &TlsPeer, is_http2: bool) -> Result<Self, ClientError> {
        let name = ServerName::try_from(peer.name.clone());
        let provider = Arc::new(provider());
        let verifier = verifier(&peer.trust, &provider)?;
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth();

        // One protocol is offered (RFC 7301), so that no load runs over another one.
        let alpn: &[u8] = if is_http2 { b"h2" } else { b"http/1.1" };
        config.alpn_protocols = vec![alpn.to_vec()];
        Ok(Self {
            connector: TlsConnector::from(Arc::new(config)),
            name: name.map_err(|_| ClientError::Name(peer.name.clone()))?,
            is_http2,
        })
    }

    /// Performs the handshake.
    ///
    /// # Errors
    /// Its failure, or a server without HTTP/2.
    pub(super) async fn secure(&self, stream: TcpStream) -> Result<TlsStream<TcpStream>, Refusal> {
        let connected = self.connector.connect(self.name.clone(), stream).await;
        let stream = connected.map_err(|error| refusal(&error))?;
        // A server that ignores ALPN completes the handshake as well (RFC 7301).
        if self.is_http2 && session(&stream).alpn_protocol() != Some(b"h2") {
            return Err(Refusal::Tls(NO_HTTP2.to_owned()));
        }

        Ok(stream)
    }
}

/// Negotiated parameters.
pub(super) fn protocol(stream: &TlsStream<TcpStream>) -> NegotiatedTls {
    let session = session(stream);
    let suite = session.negotiated_cipher_suite();

    NegotiatedTls {
        version: match session.protocol_version() {
            Some(ProtocolVersion::TLSv1_2) => "1.2".to_owned(),
            Some(ProtocolVersion::TLSv1_3) => "1.3".to_owned(),
            other => format!("{other:?}"),
        },
        cipher: suite.map_or_else(String::new, |suite| format!("{:?}", suite.suite())),
    }
}

fn session(stream: &TlsStream<TcpStream>) -> &ClientConnection {
    stream.get_ref().1
}

fn refusal(error: &io::Error) -> Refusal {
    let cause = error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match cause {
        Some(rustls::Error::InvalidCertificate(CertificateError::Other(why))) => {
            Refusal::Untrusted(format!("invalid peer certificate: {why}"))
        }
        Some(cause @ rustls::Error::InvalidCertificate(_)) => Refusal::Untrusted(cause.to_string()),
        Some(rustls::Error::AlertReceived(AlertDescription::NoApplicationProtocol)) => {
            Refusal::Tls(NO_HTTP2.to_owned())
        }
        // An answer in plain text is no TLS record.
        Some(rustls::Error::InvalidMessage(_)) => {
            Refusal::Tls("the server does not speak TLS on this port".to_owned())
        }
        Some(cause) => Refusal::Tls(cause.to_string()),
        None if error.kind() == io::ErrorKind::UnexpectedEof => {
            Refusal::Tls("the server closed the connection in the handshake".to_owned())
        }
        None => Refusal::Tls(format!(
            "in the handshake: {}",
            linerate_sys::error::io_text(error)
        )),
    }
}

const NO_HTTP2: &str = "the server does not agree to HTTP/2 (ALPN)";

/// Cipher suites and groups of which every peer of the last ten years has one; each further one
/// enlarges the program.
fn provider() -> CryptoProvider {
    CryptoProvider {
        cipher_suites: vec![
            library::cipher_suite::TLS13_AES_128_GCM_SHA256,
            library::cipher_suite::TLS13_AES_256_GCM_SHA384,
            library::cipher_suite::TLS13_CHACHA20_POLY1305_SHA256,
            library::cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
            library::cipher_suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
        ],
        kx_groups: vec![library::kx_group::X25519, library::kx_group::SECP256R1],
        ..library::default_provider()
    }
}
