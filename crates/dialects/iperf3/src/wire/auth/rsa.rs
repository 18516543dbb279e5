//! The cryptography, all of it from the library: RSA with both paddings, SHA-256, comparison in
//! constant time.

use aws_lc_rs::digest;
use aws_lc_rs::error::KeyRejected;
use aws_lc_rs::rsa::{
    OAEP_SHA1_MGF1SHA1, OaepPrivateDecryptingKey, OaepPublicEncryptingKey,
    Pkcs1PrivateDecryptingKey, Pkcs1PublicEncryptingKey, PrivateDecryptingKey, PublicEncryptingKey,
};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use linerate_model::spec::AcceptedPadding;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{PrivateKeyDer, SubjectPublicKeyInfoDer};

use super::error::{AuthError, Refusal};

/// Base64 of the largest ciphertext, 8192 bits; more is not worth decoding.
const MAX_TOKEN_LEN: usize = 1368;

pub(super) struct PrivateKey {
    oaep: Option<OaepPrivateDecryptingKey>,
    pkcs1: Option<Pkcs1PrivateDecryptingKey>,
    accepted: &'static str,
    size_bytes: usize,
}

impl PrivateKey {
    pub(super) fn new(private_key_pem: &str, padding: AcceptedPadding) -> Result<Self, AuthError> {
        let key = PrivateDecryptingKey::from_pkcs8(&private_key_pkcs8(private_key_pem)?)
            .map_err(bad_key)?;
        let (oaep, pkcs1, accepted) = match padding {
            AcceptedPadding::Oaep => (true, false, "OAEP"),
            AcceptedPadding::Pkcs1 => (false, true, "PKCS#1 v1.5"),
            AcceptedPadding::Both => (true, true, "OAEP or PKCS#1 v1.5"),
        };

        let size_bytes = key.key_size_bytes();
        let oaep = oaep
            .then(|| OaepPrivateDecryptingKey::new(key.clone()))
            .transpose();
        let pkcs1 = pkcs1
            .then(|| Pkcs1PrivateDecryptingKey::new(key))
            .transpose();

        Ok(Self {
            oaep: oaep.map_err(unspecified)?,
            pkcs1: pkcs1.map_err(unspecified)?,
            accepted,
            size_bytes,
        })
    }

    /// OAEP first; the old padding only when it is accepted.
    pub(super) fn decrypt(&self, token: &str) -> Result<Vec<u8>, Refusal> {
        // Before any decoding: the length is the choice of the peer.
        if token.len() > MAX_TOKEN_LEN {
            return Err(Refusal::Malformed);
        }

        let cipher = BASE64_STANDARD
            .decode(token)
            .map_err(|_| Refusal::Malformed)?;
        if cipher.is_empty() {
            return Err(Refusal::Malformed);
        }

        let mut plain = vec![0; self.size_bytes];
        if let Some(oaep) = &self.oaep
            && let Ok(text) = oaep.decrypt(&OAEP_SHA1_MGF1SHA1, &cipher, &mut plain, None)
        {
            return Ok(text.to_vec());
        }
        if let Some(pkcs1) = &self.pkcs1
            && let Ok(text) = pkcs1.decrypt(&cipher, &mut plain)
        {
            return Ok(text.to_vec());
        }

        Err(Refusal::Padding {
            accepted: self.accepted,
        })
    }
}

pub(super) fn encrypt(
    public_key_pem: &str,
    pkcs1_padding: bool,
    plain: &[u8],
) -> Result<String, AuthError> {
    let key = PublicEncryptingKey::from_der(&public_key_spki(public_key_pem)?).map_err(bad_key)?;
    let mut cipher = vec![0; key.key_size_bytes()];
    let cipher = if pkcs1_padding {
        let key = Pkcs1PublicEncryptingKey::new(key).map_err(unspecified)?;
        key.encrypt(plain, &mut cipher)
            .map_err(|_| AuthError::TooLong)?
    } else {
        let key = OaepPublicEncryptingKey::new(key).map_err(unspecified)?;
        key.encrypt(&OAEP_SHA1_MGF1SHA1, plain, &mut cipher, None)
            .map_err(|_| AuthError::TooLong)?
    };

    Ok(BASE64_STANDARD.encode(cipher))
}

pub(super) fn sha256_hex(text: &str) -> String {
    use std::fmt::Write as _;

    let mut hex = String::with_capacity(64);
    for byte in digest::digest(&digest::SHA256, text.as_bytes()).as_ref() {
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

pub(super) fn equal(one: &[u8], other: &[u8]) -> bool {
    aws_lc_rs::constant_time::verify_slices_are_equal(one, other).is_ok()
}

#[allow(clippy::needless_pass_by_value)] // the shape map_err wants
fn bad_key(rejected: KeyRejected) -> AuthError {
    AuthError::BadKey(rejected.to_string())
}

#[allow(clippy::needless_pass_by_value)] // the shape map_err wants
fn unspecified(error: aws_lc_rs::error::Unspecified) -> AuthError {
    AuthError::BadKey(error.to_string())
}

/// `rsaEncryption` with its NULL parameter (RFC 3279 section 2.3.1), as a complete
/// AlgorithmIdentifier.
const RSA_ALGORITHM: &[u8] = &[
    0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05, 0x00,
];

const SEQUENCE: u8 = 0x30;
const OCTET_STRING: u8 = 0x04;
const BIT_STRING: u8 = 0x03;
const VERSION_0: &[u8] = &[0x02, 0x01, 0x00];
const NO_UNUSED_BITS: &[u8] = &[0];

/// Checks for a passphrase of a private key: PKCS#8 (RFC 5958, section 3), or the older form with a
/// header (RFC 1421).
pub fn is_encrypted(private_key_pem: &str) -> bool {
    private_key_pem.contains("-----BEGIN ENCRYPTED PRIVATE KEY-----")
        || private_key_pem.contains("Proc-Type: 4,ENCRYPTED")
}

/// The private key as PKCS#8 (RFC 5958), from `PRIVATE KEY` or `RSA PRIVATE KEY`.
fn private_key_pkcs8(pem: &str) -> Result<Vec<u8>, AuthError> {
    match PrivateKeyDer::from_pem_slice(pem.as_bytes()) {
        // The older form has the label of an unencrypted key.
        Ok(_) if is_encrypted(pem) => Err(AuthError::Encrypted),
        Ok(PrivateKeyDer::Pkcs8(key)) => Ok(key.secret_pkcs8_der().to_vec()),
        Ok(PrivateKeyDer::Pkcs1(key)) => {
            let key = element(OCTET_STRING, &[key.secret_pkcs1_der()]);
            Ok(element(SEQUENCE, &[VERSION_0, RSA_ALGORITHM, &key]))
        }
        _ if is_encrypted(pem) => Err(AuthError::Encrypted),
        _ => Err(AuthError::NoKey("private")),
    }
}

/// The public key as SubjectPublicKeyInfo (RFC 5280 section 4.1), from `PUBLIC KEY` or
/// `RSA PUBLIC KEY`.
fn public_key_spki(pem: &str) -> Result<Vec<u8>, AuthError> {
    if let Ok(key) = SubjectPublicKeyInfoDer::from_pem_slice(pem.as_bytes()) {
        return Ok(key.to_vec());
    }

    // The PEM reader knows no PKCS#1 public keys; under the other label it decodes them all the
    // same.
    let relabelled = pem.replace("RSA PUBLIC KEY-----", "PUBLIC KEY-----");
    let key = SubjectPublicKeyInfoDer::from_pem_slice(relabelled.as_bytes())
        .map_err(|_| AuthError::NoKey("public"))?;
    let key = element(BIT_STRING, &[NO_UNUSED_BITS, &key]);

    Ok(element(SEQUENCE, &[RSA_ALGORITHM, &key]))
}

/// One DER element: tag, length, contents.
fn element(tag: u8, contents: &[&[u8]]) -> Vec<u8> {
    let body = contents.concat();
    let length = body.len().to_be_bytes();
    let significant = length
        .iter()
        .position(|byte| *byte != 0)
        .unwrap_or(length.len() - 1);
    let mut out = vec![tag];

    if body.len() < 0x80 {
        out.push(length[length.len() - 1]);
    } else {
        out.push(0x80 | (length.len() - significant) as u8);
        out.extend_from_slice(&length[significant..]);
    }

    out.extend_from_slice(&body);
    out
}
