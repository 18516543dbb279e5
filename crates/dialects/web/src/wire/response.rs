//! Heads of responses.

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::request::Upgrade;

/// The server's part of the opening handshake (RFC 6455, section 4.2.2).
pub fn switching(upgrade: &Upgrade, protocol: Option<&str>) -> Vec<u8> {
    let protocol = protocol.map(|name| format!("Sec-WebSocket-Protocol: {name}\r\n"));
    format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: \
         Upgrade\r\nSec-WebSocket-Accept: {}\r\n{}\r\n",
        accept_key(&upgrade.key),
        protocol.unwrap_or_default()
    )
    .into_bytes()
}

pub(super) fn accept_key(key: &str) -> String {
    // The fixed part is from RFC 6455, section 1.3, and so is SHA-1: it identifies the protocol and
    // protects nothing.
    let text = format!("{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11");
    STANDARD.encode(digest(&SHA1_FOR_LEGACY_USE_ONLY, text.as_bytes()))
}

/// A whole response, after which the connection ends.
pub fn with_body(status: &str, content_type: &str, body: &[u8]) -> Vec<u8> {
    with_fields(status, content_type, TEST_PAGE, "", body)
}

/// The page runs its own script alone, connects to its own server alone, and is in no frame.
const TEST_PAGE: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
                         img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; \
                         frame-ancestors 'none'";

/// As [`with_body`], with a Content Security Policy and more fields, each with its line end.
pub fn with_fields(
    status: &str,
    content_type: &str,
    policy: &str,
    fields: &str,
    body: &[u8],
) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}; charset=utf-8\r\nContent-Length: \
         {}\r\nConnection: close\r\nAllow: GET\r\nCache-Control: no-store\r\nX-Content-Type-Options: \
         nosniff\r\nReferrer-Policy: no-referrer\r\nContent-Security-Policy: {policy}\r\n{fields}\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// Asks for user and password (RFC 7617).
pub fn challenge() -> Vec<u8> {
    let field = "WWW-Authenticate: Basic realm=\"linerate\", charset=\"UTF-8\"\r\n";
    with_fields(
        "401 Unauthorized",
        "text/plain",
        TEST_PAGE,
        field,
        b"Log in.\n",
    )
}

/// A line of text.
pub fn line(status: &str, text: &str) -> Vec<u8> {
    with_body(status, "text/plain", format!("{text}\n").as_bytes())
}

#[cfg(test)]
mod tests {
    #[test]
    fn key_of_the_rfc_has_its_accept_key() {
        // RFC 6455, section 1.3.
        let accept = super::accept_key("dGhlIHNhbXBsZSBub25jZQ==");
        assert_eq!(accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }
}
