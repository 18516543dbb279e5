//! Certificates that a client trusts.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aws_lc_rs::digest;
use linerate_model::http::Trust;
use linerate_model::words::joined;
use linerate_sys::error::io_text;
use linerate_sys::file_system;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, DigitallySignedStruct, Error, OtherError, RootCertStore, SignatureScheme,
};

/// Why it is not known which certificates are trusted.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// No store, or nothing in it that can be read.
    #[error(
        "this host has no store of trusted certificates{0}; --cacert FILE names some, --pin-sha256 \
         HEX names the server's, --insecure trusts any"
    )]
    NoStore(String),
    /// A file without certificates, or one that cannot be read.
    #[error("--cacert {}: {text}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why, in words.
        text: String,
    },
}

/// Verifies certificates according to the user's trust.
///
/// # Errors
/// Unreadable or missing certificates.
pub fn verifier(
    trust: &Trust,
    provider: &CryptoProvider,
) -> Result<Arc<dyn ServerCertVerifier>, TrustError> {
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

/// Possession of the key is always verified.
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

fn system_store() -> Result<RootCertStore, TrustError> {
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
    Err(TrustError::NoStore(why))
}

/// Longest file of certificates that is read; those of a whole distribution have a quarter of a
/// megabyte.
const FILE_BYTES_MAX: u64 = 16 << 20;

fn of_file(path: &Path) -> Result<TrustAnchors, TrustError> {
    let named = |error: &dyn std::fmt::Display| TrustError::File {
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
