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

use super::error::{AuthError, Refusal};
use super::pem;

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
        let key = PrivateDecryptingKey::from_pkcs8(&pem::private_key_pkcs8(private_key_pem)?)
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
    let key =
        PublicEncryptingKey::from_der(&pem::public_key_spki(public_key_pem)?).map_err(bad_key)?;
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
