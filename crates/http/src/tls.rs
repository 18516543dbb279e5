//! TLS parameters.

use aws_lc_rs::digest;
use rustls::crypto::{CryptoProvider, aws_lc_rs as library};

/// Cipher suites and groups of which every peer of the last ten years has one; each further one enlarges the program.
pub(crate) fn provider() -> CryptoProvider {
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

/// SHA-256 of a certificate.
pub(crate) fn fingerprint(certificate: &[u8]) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest::digest(&digest::SHA256, certificate).as_ref());
    bytes
}

/// Hexadecimal pairs separated by colons, as browsers and openssl print them.
pub(crate) fn pairs(bytes: &[u8]) -> String {
    let pairs: Vec<String> = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
    pairs.join(":")
}
