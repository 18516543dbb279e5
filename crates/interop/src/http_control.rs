//! The control channel of `linerate http serve` and `linerate http agent`, requested byte by byte.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use serde_json::Value;

use crate::deadline::TIMEOUT;
use crate::process::Process;

/// The token of every channel of a test.
pub const CONTROL_TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// A control channel.
#[derive(Debug, Clone, Copy)]
pub struct HttpControl {
    /// Where it listens.
    pub address: SocketAddr,
}

impl HttpControl {
    /// The channel of a process that prints its URL.
    pub fn of(process: &Process) -> Self {
        let url = process.printed("control");
        let address = url.strip_prefix("http://").and_then(|address| address.parse().ok());
        Self { address: address.unwrap_or_else(|| panic!("{url} is no control channel: {process:?}")) }
    }

    /// A new connection.
    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).expect("the channel accepts");
        stream.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
        stream
    }

    /// Sends bytes; status and everything received until the channel closes.
    pub fn raw(&self, bytes: impl AsRef<[u8]>) -> (u16, String) {
        let mut stream = self.connect();
        // The channel may close before it has read everything.
        let _ = stream.write_all(bytes.as_ref());
        let mut response = Vec::new();
        let _ = stream.read_to_end(&mut response);
        let response = String::from_utf8_lossy(&response).into_owned();
        let status = response.split(' ').nth(1).and_then(|word| word.parse().ok());
        (status.unwrap_or_default(), response)
    }

    /// Status and body of the response to a request with the token and these header fields.
    pub fn ask_with(&self, fields: &str, method: &str, path: &str, body: &str) -> (u16, String) {
        let length = body.len();
        self.raw(format!(
            "{method} {path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {CONTROL_TOKEN}\r\nConnection: close\r\n\
             {fields}Content-Length: {length}\r\n\r\n{body}"
        ))
    }

    /// Status and JSON of the response to a request with the token.
    pub fn ask(&self, method: &str, path: &str, body: &str) -> (u16, Value) {
        let (status, response) = self.ask_with("", method, path, body);
        let (_, body) = response.split_once("\r\n\r\n").unwrap_or_default();
        (status, serde_json::from_str(body).unwrap_or_default())
    }

    /// The same, where it has to succeed.
    #[track_caller]
    pub fn get(&self, method: &str, path: &str, body: &str) -> Value {
        let (status, value) = self.ask(method, path, body);
        assert_eq!(status, 200, "{method} {path}: {value}");
        value
    }
}
