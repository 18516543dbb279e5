//! What a browser sends, byte by byte.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::deadline::TIMEOUT;

/// A connection of a browser, or of who pretends to be one.
#[derive(Debug)]
pub struct RawBrowser {
    /// The connection.
    pub stream: TcpStream,
}

/// Subprotocol of ndt7.
pub const NDT7: &str = "net.measurementlab.ndt.v7";

impl RawBrowser {
    /// Connects to a server of this host.
    pub fn connect(port: u16) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).expect("the server listens");
        stream.set_read_timeout(Some(TIMEOUT)).expect("a time");
        Self { stream }
    }

    /// Head and body of the response to a GET request.
    pub fn get(port: u16, path: &str) -> (String, String) {
        let mut browser = Self::connect(port);
        browser.send(format!(
            "GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n"
        ));
        let text = browser.rest();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        (head.to_owned(), body.to_owned())
    }

    /// Requests a WebSocket, and returns the connection with the status line.
    pub fn upgrade(port: u16, path: &str, protocol: &str, fields: &str) -> (Self, String) {
        let mut browser = Self::connect(port);
        browser.send(format!(
            "GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: \
             Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: \
             dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: {protocol}\r\n{fields}\r\n"
        ));
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n")
            && browser.stream.read(&mut byte).is_ok_and(|len| len > 0)
        {
            head.extend(byte);
        }
        let head = String::from_utf8_lossy(&head);
        let status = head.lines().next().unwrap_or_default().to_owned();
        (browser, status)
    }

    /// Sends bytes; a peer that has closed the connection takes none.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.stream.write_all(bytes.as_ref()).is_ok()
    }

    /// The next frame of the server: its first byte and its payload. `None` at the end.
    pub fn frame(&mut self) -> Option<(u8, Vec<u8>)> {
        let mut exact = |len: usize| {
            let mut bytes = vec![0; len];
            self.stream.read_exact(&mut bytes).ok().map(|()| bytes)
        };
        let head = exact(2)?;
        let extension = match head[1] {
            126 => 2,
            127 => 8,
            _ => 0,
        };
        let length = exact(extension)?;
        let len = length
            .iter()
            .fold(0, |len, byte| len << 8 | usize::from(*byte));
        let len = if extension == 0 { head[1].into() } else { len };
        Some((head[0], exact(len)?))
    }

    /// The next text of the server.
    pub fn text(&mut self) -> Option<String> {
        while let Some((first, payload)) = self.frame() {
            if first == 0x81 {
                return Some(String::from_utf8_lossy(&payload).into_owned());
            }
        }
        None
    }

    /// True if the server ends the connection and is not silent for this long before.
    pub fn ends_within(&mut self, silence_max: Duration) -> bool {
        let _ = self.stream.set_read_timeout(Some(silence_max));
        let mut buffer = [0; 4096];
        loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => return true,
                Ok(_) => {}
                Err(error) => return error.kind() != ErrorKind::WouldBlock,
            }
        }
    }

    /// Everything up to the end of the connection.
    fn rest(&mut self) -> String {
        let mut bytes = Vec::new();
        // A reset is an end, too.
        let _ = self.stream.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// A client's frame with this first byte, masked.
pub fn masked(first: u8, payload: &[u8]) -> Vec<u8> {
    let mask = [1, 2, 3, 4];
    let mut bytes = match u16::try_from(payload.len()) {
        Ok(len @ 0..126) => vec![first, 0x80 | len as u8],
        Ok(len) => [&[first, 0xfe][..], &len.to_be_bytes()].concat(),
        Err(_) => [&[first, 0xff][..], &(payload.len() as u64).to_be_bytes()].concat(),
    };
    bytes.extend(mask);
    bytes.extend(
        payload
            .iter()
            .zip(mask.iter().cycle())
            .map(|(byte, mask)| byte ^ mask),
    );
    bytes
}
