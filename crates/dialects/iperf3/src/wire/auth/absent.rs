//! Counterpart of the cryptography in a build without it: nothing can be constructed.

use std::convert::Infallible;

use linerate_model::spec::AcceptedPadding;

use super::{AuthError, Refusal};

pub(super) struct PrivateKey(Infallible);

impl PrivateKey {
    pub(super) fn new(_pem: &str, _padding: AcceptedPadding) -> Result<Self, AuthError> {
        Err(AuthError::NotBuilt)
    }

    pub(super) fn decrypt(&self, _token: &str) -> Result<Vec<u8>, Refusal> {
        match self.0 {}
    }
}

pub(super) fn encrypt(
    _public_key_pem: &str,
    _pkcs1_padding: bool,
    _plain: &[u8],
) -> Result<String, AuthError> {
    Err(AuthError::NotBuilt)
}

pub(super) fn sha256_hex(_text: &str) -> String {
    String::new()
}

pub(super) fn equal(_one: &[u8], _other: &[u8]) -> bool {
    false
}
