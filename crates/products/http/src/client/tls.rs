//! TLS client, and the certificates it trusts.

use std::io;
use std::path::Path;
use std::sync::Arc;

use aws_lc_rs::digest;
use linerate_model::http::NegotiatedTls;
use linerate_model::words::joined;
use linerate_sys::error::io_text;
use linerate_sys::file_system;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, aws_lc_rs as library, verify_tls12_signature,
    verify_tls13_signature,
};
use rustls::server::ParsedCertificate;
use rustls::{
    AlertDescription, CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct,
    Error, OtherError, ProtocolVersion, RootCertStore, SignatureScheme,
};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::failure::{ClientError, Refusal};
use crate::protocol::{TlsPeer, Trust};

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

/// Verifies certificates according to the user's trust. Possession of the key is always verified.
#[derive(Debug)]
struct Verifier {
    anchors: TrustAnchors,
    algorithms: WebPkiSupportedAlgorithms,
}

#[derive(Debug)]
enum TrustAnchors {
    Anything,
    Pinned([u8; 32]),
    /// Certificates that lead to one of these authorities, and these certificates themselves: a
    /// self-signed authority is not valid as an end entity by the rules of authorities.
    SignedBy(RootCertStore, Vec<CertificateDer<'static>>),
}

/// # Errors
/// Unreadable or missing certificates.
fn verifier(
    trust: &Trust,
    provider: &CryptoProvider,
) -> Result<Arc<dyn ServerCertVerifier>, ClientError> {
    Ok(Arc::new(Verifier {
        anchors: match trust {
            Trust::Anything => TrustAnchors::Anything,
            Trust::Pinned(fingerprint) => TrustAnchors::Pinned(*fingerprint),
            Trust::System => TrustAnchors::SignedBy(system_store()?, Vec::new()),
            Trust::File(path) => of_file(path)?,
            // No authority: what is not known here trusts no certificate.
        },
        algorithms: provider.signature_verification_algorithms,
    }))
}

fn system_store() -> Result<RootCertStore, ClientError> {
    let mut store = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    // Stores contain certificates that cannot be parsed.
    let (added, _) = store.add_parsable_certificates(found.certs);
    if added > 0 {
        return Ok(store);
    }

    let why = found
        .errors
        .first()
        .map_or_else(String::new, |error| format!(" ({error})"));
    Err(ClientError::NoStore(why))
}

/// Longest file of certificates that is read; those of a whole distribution have a quarter of a
/// megabyte.
const FILE_BYTES_MAX: u64 = 16 << 20;

fn of_file(path: &Path) -> Result<TrustAnchors, ClientError> {
    let named = |error: &dyn std::fmt::Display| ClientError::File {
        path: path.to_owned(),
        text: error.to_string(),
    };
    let pem =
        file_system::read_bytes(path, FILE_BYTES_MAX).map_err(|error| named(&io_text(&error)))?;
    let own: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let own = own.map_err(|error| named(&error))?;
    if own.is_empty() {
        return Err(named(&"no certificate in PEM form"));
    }

    let mut store = RootCertStore::empty();
    for certificate in &own {
        store
            .add(certificate.clone())
            .map_err(|error| named(&error))?;
    }

    Ok(TrustAnchors::SignedBy(store, own))
}

fn not_pinned(fingerprint: [u8; 32]) -> Error {
    let text = format!("its SHA-256 is another one, {}", pairs(&fingerprint));
    CertificateError::Other(OtherError(Arc::new(io::Error::other(text)))).into()
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match &self.anchors {
            TrustAnchors::Anything => {}
            TrustAnchors::Pinned(expected) if fingerprint(certificate) == *expected => {}
            TrustAnchors::Pinned(_) => return Err(not_pinned(fingerprint(certificate))),
            TrustAnchors::SignedBy(store, own) => {
                let parsed = ParsedCertificate::try_from(certificate)?;
                // A certificate of the file itself is trusted, also self-signed and out of date.
                if !own.iter().any(|known| known == certificate) {
                    let algorithms = self.algorithms.all;
                    verify_server_cert_signed_by_trust_anchor(
                        &parsed,
                        store,
                        intermediates,
                        now,
                        algorithms,
                    )?;
                }

                verify_server_name(&parsed, name)?;
            }
        }

        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// SHA-256 of a certificate.
fn fingerprint(certificate: &[u8]) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest::digest(&digest::SHA256, certificate).as_ref());
    bytes
}

/// Hexadecimal pairs separated by colons, as browsers and openssl print them.
fn pairs(bytes: &[u8]) -> String {
    joined(bytes.iter().map(|byte| format!("{byte:02X}")), ":")
}
