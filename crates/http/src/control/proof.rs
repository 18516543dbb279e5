//! Mutual authentication without sending the token.
//!
//! `GET /v1/nonce` gives a nonce, once per connection. A request then carries
//! `Authorization: Linerate nonce=N, proof=P` with a nonce of the client; its response `Authentication-Info: proof=P`. Each
//! proof is HMAC-SHA-256 (RFC 2104) keyed with the token over both nonces, the number of the request on its connection,
//! and the content of the request or response; of an endless response only over its status. A recorded proof is therefore
//! invalid for any other request, connection or response, and an impostor learns nothing that helps to guess a long token.

use std::fmt;
use std::io;

use aws_lc_rs::hmac;
use serde::{Deserialize, Serialize};

use super::token::{self, Token};

/// 32 random bytes in hexadecimal digits, used once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Nonce(String);

/// Body of a response to `/v1/nonce`.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Challenge {
    pub(super) nonce: Nonce,
}

impl Nonce {
    pub(super) fn fresh() -> io::Result<Self> {
        token::random_digits().map(Self)
    }
}

impl TryFrom<String> for Nonce {
    type Error = &'static str;

    /// Of one length, so that signed bytes can be split in one way only.
    fn try_from(digits: String) -> Result<Self, Self::Error> {
        let is_nonce = digits.len() == 2 * token::FRESH_BYTES && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_nonce.then_some(Self(digits)).ok_or("no nonce")
    }
}

impl fmt::Display for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Nonces and number of one request and its response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Exchange {
    pub(super) server: Nonce,
    pub(super) client: Nonce,
    /// Number of the authenticated request on its connection.
    pub(super) number: u64,
}

impl Exchange {
    /// Proof of a request: method, target as sent, and body.
    pub(super) fn of_request(&self, token: &Token, method: &str, target: &str, body: &[u8]) -> String {
        let line = format!("{method} {target}\n");
        self.proof(token, b"request\n", line.as_bytes(), body)
    }

    /// Proof of a response.
    pub(super) fn of_response(&self, token: &Token, status: u16, body: &[u8]) -> String {
        self.proof(token, b"response\n", format!("{status}\n").as_bytes(), body)
    }

    fn proof(&self, token: &Token, kind: &[u8], line: &[u8], body: &[u8]) -> String {
        let key = hmac::Key::new(hmac::HMAC_SHA256, token.reveal().as_bytes());
        let mut context = hmac::Context::with_key(&key);
        let about = format!("{} {} {}\n", self.server, self.client, self.number);
        for part in [kind, about.as_bytes(), line, body] {
            context.update(part);
        }
        token::digits(context.sign().as_ref())
    }
}

/// Parses an `Authorization` field: the client's nonce and its proof; `None` for another scheme.
pub(super) fn read_authorization(value: &[u8]) -> Option<(Nonce, &[u8])> {
    let words = value.strip_prefix(b"Linerate nonce=")?;
    let (nonce, rest) = words.split_at_checked(2 * token::FRESH_BYTES)?;
    let nonce = Nonce::try_from(String::from_utf8(nonce.to_vec()).ok()?).ok()?;
    Some((nonce, rest.strip_prefix(b", proof=")?))
}

/// Proof in the `Authentication-Info` field of a response header.
pub(super) fn read_response(head: &[u8]) -> Option<Vec<u8>> {
    let mut fields = [httparse::EMPTY_HEADER; crate::message::response::FIELDS_MAX];
    let mut response = httparse::Response::new(&mut fields);
    response.parse(head).ok()?;
    let is_info = |field: &&httparse::Header<'_>| field.name.eq_ignore_ascii_case("authentication-info");
    let field = response.headers.iter().find(is_info)?;
    field.value.strip_prefix(b"proof=").map(<[u8]>::to_vec)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exchange(number: u64) -> Exchange {
        Exchange { server: Nonce("a".repeat(64)), client: Nonce("b".repeat(64)), number }
    }

    #[test]
    fn proof_covers_all_its_inputs() {
        let token = Token::new("0123456789abcdef").expect("a token");
        let other = Token::new("0123456789abcdeg").expect("a token");
        let swapped = Exchange { server: exchange(1).client, client: exchange(1).server, number: 1 };
        let proofs = [
            exchange(1).of_request(&token, "GET", "/v1/cell", b""),
            exchange(2).of_request(&token, "GET", "/v1/cell", b""),
            exchange(1).of_request(&other, "GET", "/v1/cell", b""),
            exchange(1).of_request(&token, "POST", "/v1/cell", b""),
            exchange(1).of_request(&token, "GET", "/v1/cell?", b""),
            exchange(1).of_request(&token, "GET", "/v1/cell", b"x"),
            swapped.of_request(&token, "GET", "/v1/cell", b""),
            exchange(1).of_response(&token, 200, b""),
            exchange(1).of_response(&token, 404, b""),
            exchange(1).of_response(&token, 200, b"x"),
        ];
        for (at, proof) in proofs.iter().enumerate() {
            assert!(!proofs[..at].contains(proof), "{at}");
            assert!(
                proof.len() == 64
                    && token::is_same(proof, proof.as_bytes())
                    && !token::is_same(proof, &proof.as_bytes()[1..])
            );
        }
    }

    #[test]
    fn fields_are_parsed_strictly() {
        let nonce = "ab".repeat(32);
        let good = format!("Linerate nonce={nonce}, proof=xy");
        assert_eq!(read_authorization(good.as_bytes()), Some((Nonce(nonce), &b"xy"[..])));
        for bad in [
            "",
            "Bearer x",
            "Linerate nonce=",
            &good[..30],
            &good.replace("ab", "é"),
            &good.replace("ab", "zz"),
            &good.replace(", proof", ",proof"),
        ] {
            assert_eq!(read_authorization(bad.as_bytes()), None, "{bad}");
        }
        let head = b"HTTP/1.1 200 OK\r\nauthentication-info: proof=xy\r\n\r\n";
        assert_eq!(read_response(head), Some(b"xy".to_vec()));
        assert_eq!(read_response(b"HTTP/1.1 200 OK\r\n\r\n"), None);
    }
}
