//! Verification by a client: possession of the key.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::{
    CertificateError, DigitallySignedStruct, Error, PeerIncompatible, PeerMisbehaved,
    SignatureScheme,
};

/// Accepts every Ed25519 key whose possession is proved.
#[derive(Debug)]
pub(super) struct AnyKey {
    algorithms: WebPkiSupportedAlgorithms,
}

impl AnyKey {
    pub(super) const fn new(algorithms: WebPkiSupportedAlgorithms) -> Self {
        Self { algorithms }
    }
}

/// `SubjectPublicKeyInfo` of an Ed25519 key up to the 32 bytes of the key (RFC 8410, 4 and 10.1).
const ED25519_PREFIX: [u8; 12] = [
    0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00,
];
const ED25519_LEN: usize = ED25519_PREFIX.len() + 32;

impl ServerCertVerifier for AnyKey {
    /// One form of one kind of key: two encodings of a key would have two fingerprints.
    fn verify_server_cert(
        &self,
        key: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let is_key = key.len() == ED25519_LEN
            && key.starts_with(&ED25519_PREFIX)
            && intermediates.is_empty();
        is_key
            .then(ServerCertVerified::assertion)
            .ok_or(Error::InvalidCertificate(CertificateError::BadEncoding))
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _key: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Error::PeerIncompatible(PeerIncompatible::Tls12NotOffered))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        key: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        if signed.scheme != SignatureScheme::ED25519 {
            return Err(Error::PeerMisbehaved(
                PeerMisbehaved::SignedHandshakeWithUnadvertisedSigScheme,
            ));
        }

        let key = SubjectPublicKeyInfoDer::from(key.as_ref());
        verify_tls13_signature_with_raw_key(message, &key, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}
