//! Proofs of secrets: HMAC-SHA-256 (RFC 2104) over what binds them to one TLS session.
//!
//! The exporter of a session (RFC 8446, 7.5) differs between any two sessions, so an attacker who
//! terminates TLS towards both ends cannot pass a proof on. A proof that an impostor obtains
//! permits offline guessing: tokens must be long, and a server proves a token only to a client
//! that has proved it.

use std::net::{IpAddr, SocketAddr};

use aws_lc_rs::hmac;

/// Proof of a client that it resumes its own session on a new connection.
///
/// `secret` is the resume secret of the session, `exporter` that of the new connection, `number`
/// the last number of a message that the client sent and `received` the last one that it received
/// in order.
pub fn resume_proof(
    secret: &[u8; 32],
    exporter: &[u8; 32],
    number: u64,
    received: u64,
) -> [u8; 32] {
    sign(
        secret,
        &[
            RESUME_LABEL,
            exporter,
            &number.to_be_bytes(),
            &received.to_be_bytes(),
        ],
    )
}

/// True if `proof` is [`resume_proof`], in constant time.
#[must_use]
pub fn verify_resume(
    secret: &[u8; 32],
    exporter: &[u8; 32],
    number: u64,
    received: u64,
    proof: &[u8],
) -> bool {
    is_signed(
        secret,
        &[
            RESUME_LABEL,
            exporter,
            &number.to_be_bytes(),
            &received.to_be_bytes(),
        ],
        proof,
    )
}

const RESUME_LABEL: &[u8] = b"linerate/1 resume\0";

/// Tag of the datagrams of a flow: the first 8 bytes of HMAC(`secret`, `flow`), numbers big-endian.
///
/// Prevents injection by hosts that are not on the path.
pub fn flow_tag(secret: &[u8; 32], flow: u32) -> u64 {
    let [a, b, c, d, e, f, g, h, ..] = sign(secret, &[&flow.to_be_bytes()]);
    u64::from_be_bytes([a, b, c, d, e, f, g, h])
}

/// Who opens a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowOpener {
    /// Number of the session.
    pub session: u64,
    /// Number of the flow in its session.
    pub flow: u32,
    /// Source of its datagrams.
    pub address: SocketAddr,
}

/// Proof that the opener of a flow receives what is sent to its address: 63 bits of HMAC(`secret`,
/// address, port, session, flow, `period`), numbers big-endian. The server alone has the secret,
/// and `period` is the time by its clock.
pub fn address_proof(secret: &[u8; 32], opener: &FlowOpener, period: u64) -> u64 {
    // A dual-stack socket reports IPv4 sources as mapped addresses (RFC 4291, section 2.5.5.2).
    let octets = match opener.address.ip() {
        IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
        IpAddr::V6(ip) => ip.octets(),
    };
    let port = opener.address.port().to_be_bytes();
    let (session, flow) = (opener.session.to_be_bytes(), opener.flow.to_be_bytes());
    let [a, b, c, d, e, f, g, h, ..] = sign(
        secret,
        &[&octets, &port, &session, &flow, &period.to_be_bytes()],
    );

    u64::from_be_bytes([a, b, c, d, e, f, g, h]) >> 1
}

/// SHA-256 of bytes that are not to be shown.
pub fn digest(bytes: &[u8]) -> [u8; 32] {
    let mut digest = [0; 32];
    digest.copy_from_slice(aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, bytes).as_ref());
    digest
}

pub(crate) fn sign(secret: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
    let mut context = hmac::Context::with_key(&key);

    // Parts of one secret have fixed lengths: no two lists of parts are the same bytes.
    for part in parts {
        context.update(part);
    }

    let mut bytes = [0; 32];
    bytes.copy_from_slice(context.sign().as_ref());
    bytes
}

pub(crate) fn is_signed(secret: &[u8], parts: &[&[u8]], proof: &[u8]) -> bool {
    // A comparison that stops at the first difference would show how many bytes are right.
    aws_lc_rs::constant_time::verify_slices_are_equal(&sign(secret, parts), proof).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token::{Role, Token, proof, verify};

    fn token(secret: &str) -> Token {
        Token::new(secret).expect("a token")
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Expected values by Python's `hmac`: both ends of a path may be of different versions.
    #[test]
    fn proofs_are_hmac_sha_256_of_label_and_exporter() {
        let token = token("0123456789abcdef012345");
        assert_eq!(
            hex(&proof(&token, &[1; 32], Role::Client)),
            "2059102442e4c2da849de48e426c45a9667dbb0883b1d2ead3c4a7ced1d499c9"
        );
        assert_eq!(
            hex(&proof(&token, &[1; 32], Role::Server)),
            "0d38931b1bfe3dd268b1ce070b5f20fcdbba4a8069aecb36f6b890ea3f3df8f8"
        );
        assert_eq!(
            hex(&resume_proof(&[2; 32], &[1; 32], 3, 4)),
            "4c00fe02aedc0074020e6baa032151d4feecd31ef5ea619d28c52cb3ac6dc8cd"
        );
        assert_eq!(flow_tag(&[2; 32], 5), 0x9a5f_6430_f7ba_8006);
    }

    #[test]
    fn proofs_differ_by_role_exporter_and_token() {
        let (one, other) = (
            token("0123456789abcdef012345"),
            token("0123456789abcdef012346"),
        );
        let proofs = [
            proof(&one, &[1; 32], Role::Client),
            proof(&one, &[1; 32], Role::Server),
            proof(&one, &[2; 32], Role::Client),
            proof(&other, &[1; 32], Role::Client),
        ];
        for (at, proof) in proofs.iter().enumerate() {
            assert!(!proofs[..at].contains(proof), "{at}");
            assert_eq!(verify(&one, &[1; 32], Role::Client, proof), at == 0, "{at}");
        }

        for near in [&[][..], &proofs[0][1..], &[&proofs[0][..], &[0]].concat()] {
            assert!(!verify(&one, &[1; 32], Role::Client, near));
        }
    }

    #[test]
    fn resume_proofs_cover_all_inputs() {
        let good = resume_proof(&[2; 32], &[1; 32], 3, 4);
        let rows = [
            ([2; 32], [1; 32], 3, 4, true),
            ([3; 32], [1; 32], 3, 4, false),
            ([2; 32], [2; 32], 3, 4, false),
            ([2; 32], [1; 32], 4, 4, false),
            ([2; 32], [1; 32], 3, 3, false),
            ([2; 32], [1; 32], 4, 3, false),
        ];
        for (secret, exporter, number, received, is_good) in rows {
            assert_eq!(
                verify_resume(&secret, &exporter, number, received, &good),
                is_good,
                "{number} {received}"
            );
        }

        assert!(!verify_resume(&[2; 32], &[1; 32], 3, 4, &good[..31]));
    }

    #[test]
    fn tags_differ_by_flow_and_secret() {
        let tags = [
            flow_tag(&[2; 32], 5),
            flow_tag(&[2; 32], 6),
            flow_tag(&[3; 32], 5),
        ];
        assert!(tags[0] != tags[1] && tags[0] != tags[2] && tags[1] != tags[2]);
    }

    #[test]
    fn proofs_of_addresses_cover_all_inputs_and_fit_a_stamp() {
        let opener = |address: &str, session, flow| {
            let address = address.parse().expect("an address");
            FlowOpener {
                session,
                flow,
                address,
            }
        };
        let proofs = [
            address_proof(&[2; 32], &opener("192.0.2.1:5", 1, 7), 3),
            address_proof(&[3; 32], &opener("192.0.2.1:5", 1, 7), 3),
            address_proof(&[2; 32], &opener("192.0.2.2:5", 1, 7), 3),
            address_proof(&[2; 32], &opener("192.0.2.1:6", 1, 7), 3),
            address_proof(&[2; 32], &opener("192.0.2.1:5", 2, 7), 3),
            address_proof(&[2; 32], &opener("192.0.2.1:5", 1, 8), 3),
            address_proof(&[2; 32], &opener("192.0.2.1:5", 1, 7), 4),
            address_proof(&[2; 32], &opener("[2001:db8::1]:5", 1, 7), 3),
        ];
        let distinct: std::collections::BTreeSet<u64> = proofs.into_iter().collect();
        assert_eq!(distinct.len(), proofs.len());
        assert!(proofs.iter().all(|proof| *proof <= i64::MAX as u64));
    }
}
