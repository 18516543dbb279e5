//! The client's opening handshake of ndt7 (ndt-server, `spec/ndt7-protocol.md`).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::NDT7;
use super::request::{Fields, HEAD_BYTES_MAX};
use super::response::accept_key;

/// Longest message of text that is kept.
pub const TEXT_BYTES_MAX: usize = 16 << 10;
/// Most fields of a response.
const FIELDS_MAX: usize = 64;

/// A handshake that was sent.
#[derive(Debug)]
pub struct Handshake {
    key: String,
}

/// Why a response is no begin of a test.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HandshakeError {
    /// No HTTP/1.1 response, or one beyond a bound.
    #[error("no HTTP response")]
    Syntax,
    /// Another status than 101.
    #[error("HTTP status {0}")]
    Status(u16),
    /// A field that is missing or wrong.
    #[error("no ndt7 server: {0} is missing or wrong")]
    Field(&'static str),
}

impl Handshake {
    /// The request of a test, `download` or `upload`, of a server at `authority`; the nonce is
    /// random (RFC 6455, section 4.1).
    pub fn new(test: &str, authority: &str, nonce: [u8; 16]) -> (Self, Vec<u8>) {
        let key = STANDARD.encode(nonce);
        let request = format!(
            "GET /ndt/v7/{test} HTTP/1.1\r\nHost: {authority}\r\nUpgrade: websocket\r\nConnection: \
             Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: \
             {key}\r\nSec-WebSocket-Protocol: {NDT7}\r\nUser-Agent: linerate/{}\r\n\r\n",
            env!("CARGO_PKG_VERSION")
        );
        (Self { key }, request.into_bytes())
    }

    /// Length of the head of the response, behind which frames begin; `None` if it is not complete.
    ///
    /// # Errors
    /// When the server does not begin the test.
    pub fn accept(&self, bytes: &[u8]) -> Result<Option<usize>, HandshakeError> {
        let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
        let mut head = httparse::Response::new(&mut fields);
        let len = match head.parse(bytes.get(..HEAD_BYTES_MAX).unwrap_or(bytes)) {
            Ok(httparse::Status::Complete(len)) => len,
            Ok(httparse::Status::Partial) if bytes.len() < HEAD_BYTES_MAX => return Ok(None),
            _ => return Err(HandshakeError::Syntax),
        };
        match head.code {
            Some(101) => {}
            code => return Err(HandshakeError::Status(code.unwrap_or_default())),
        }

        let fields = Fields(head.headers);
        let is = |name: &'static str, expected: &str| match fields.only(name) {
            Ok(Some(value)) if value == expected => Ok(()),
            _ => Err(HandshakeError::Field(name)),
        };
        is("Sec-WebSocket-Accept", &accept_key(&self.key))?;
        is("Sec-WebSocket-Protocol", NDT7)?;
        Ok(Some(len))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONCE: [u8; 16] = *b"the sample nonce";

    #[test]
    fn response_with_key_and_protocol_is_accepted_and_near_misses_are_not() {
        let (handshake, request) = Handshake::new("download", "lab:5201", NONCE);
        let request = String::from_utf8(request).expect("text");
        assert!(
            request.starts_with("GET /ndt/v7/download HTTP/1.1\r\nHost: lab:5201\r\n"),
            "{request}"
        );
        assert!(
            request.contains("Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"),
            "{request}"
        );

        let response = "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nConnection: \
                        Upgrade\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\
                        Sec-WebSocket-Protocol: net.measurementlab.ndt.v7\r\n\r\n";
        let accept = |text: &str| handshake.accept(text.as_bytes());
        assert_eq!(
            accept(&format!("{response}\u{1}")),
            Ok(Some(response.len()))
        );
        assert_eq!(accept(&response[..response.len() - 1]), Ok(None));

        let rows = [
            (
                response.replace("s3p", "S3p"),
                HandshakeError::Field("Sec-WebSocket-Accept"),
            ),
            (
                response.replace("ndt.v7", "ndt.v8"),
                HandshakeError::Field("Sec-WebSocket-Protocol"),
            ),
            (response.replace("101", "429"), HandshakeError::Status(429)),
            (
                "SSH-2.0-OpenSSH_9.2\r\n\r\n".to_owned(),
                HandshakeError::Syntax,
            ),
            (
                format!("HTTP/1.1 101 A\r\nA: {}", "a".repeat(HEAD_BYTES_MAX)),
                HandshakeError::Syntax,
            ),
        ];
        for (text, error) in rows {
            assert_eq!(accept(&text), Err(error), "{text:.60}");
        }
    }
}
