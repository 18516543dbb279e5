//! RSA keys in their four PEM forms, converted to the two that the cryptographic library reads.

use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{PrivateKeyDer, SubjectPublicKeyInfoDer};

use super::error::AuthError;

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
pub(super) fn private_key_pkcs8(pem: &str) -> Result<Vec<u8>, AuthError> {
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
pub(super) fn public_key_spki(pem: &str) -> Result<Vec<u8>, AuthError> {
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
