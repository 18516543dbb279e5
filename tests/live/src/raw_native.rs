//! A native client by hand, for tests in which it breaks the rules. The wire formats are written
//! here once more, so that both ends of the program cannot be wrong alike.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use linerate_trust::{CHANNEL_BINDING, ClientConfig, ClientSession, Role, Token, proof};
use serde_json::{Value, json};

use crate::wire::frame;

/// A client of which the test decides every message.
pub struct RawNative {
    stream: TcpStream,
    tls: ClientSession,
    received: Vec<u8>,
    /// Bytes that [`Self::pour`] has encrypted, and how much of it the server has taken.
    unsent: Vec<u8>,
    poured: usize,
    /// Numbers of the last message of each direction.
    sent_number: u64,
    received_number: u64,
}

/// Longest silence of a server before the test calls it hung.
const SILENCE: Duration = Duration::from_secs(20);

impl RawNative {
    /// A client whose first message the server awaits.
    #[track_caller]
    pub fn connect(address: impl Into<SocketAddr>) -> Self {
        Self::over(Self::recognised(address)).expect("the server completes the handshake")
    }

    /// A connection whose ClientHello the server awaits.
    #[track_caller]
    pub fn recognised(address: impl Into<SocketAddr>) -> TcpStream {
        let stream = TcpStream::connect(address.into()).expect("the server listens");
        stream
            .set_read_timeout(Some(SILENCE))
            .expect("the time is not zero");
        stream.set_nodelay(true).expect("the socket is connected");
        Self::recognise(stream).expect("the server answers the cookie")
    }

    /// Has a server recognise a new connection; `None` where it does not.
    pub fn recognise(mut stream: TcpStream) -> Option<TcpStream> {
        stream.write_all(&native_cookie()).ok()?;
        let mut answer = [0; 4];
        stream.read_exact(&mut answer).ok()?;
        (&answer == b"LRN\x01").then_some(stream)
    }

    /// A client over a connection whose ClientHello the server awaits; `None` where the handshake
    /// is not completed.
    pub fn over(stream: TcpStream) -> Option<Self> {
        let tls = ClientSession::new(&ClientConfig::new());
        let mut client = Self {
            stream,
            tls,
            received: Vec::new(),
            unsent: Vec::new(),
            poured: 0,
            sent_number: 0,
            received_number: 0,
        };
        while client.tls.is_handshaking() {
            client.flush();
            if !client.try_read().ok()? {
                return None;
            }
        }

        client.flush();
        Some(client)
    }

    /// A client with a session; also what the server states about it.
    #[track_caller]
    pub fn welcomed(address: impl Into<SocketAddr>) -> (Self, Value) {
        let mut client = Self::connect(address);
        client.send(hello());
        let welcome = client.expect("welcome");
        (client, welcome)
    }

    /// A first message with the proof of a token.
    pub fn hello_with_token(&self, name: &str, secret: &str) -> Value {
        let token = Token::named(name, secret).expect("a token");
        let exporter = self
            .tls
            .exporter(CHANNEL_BINDING)
            .expect("the handshake is complete");
        let proof: String = proof(&token, &exporter, Role::Client)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let mut hello = hello();
        hello["token"] = json!({ "name": name, "proof": proof });

        hello
    }

    /// Sends a numbered message.
    pub fn send(&mut self, mut message: Value) {
        self.sent_number += 1;
        message["n"] = self.sent_number.into();
        message["got"] = self.received_number.into();
        self.send_bytes(&frame(&message.to_string()));
    }

    /// Sends bytes inside TLS. A server that has closed the connection is no error here.
    pub fn send_bytes(&mut self, bytes: &[u8]) {
        // What no longer fits was refused by a peer that reads nothing.
        let _ = self.tls.send(bytes);
        self.flush();
    }

    /// Sends pieces, each in a TLS record of its own, as far as the server takes them within the
    /// write timeout of the socket. The rest goes out with the next call, which sends no new pieces
    /// before. All are encrypted before the first is sent: the server decrypts no faster than they
    /// arrive. False once the connection is closed.
    pub fn pour<'a>(&mut self, pieces: impl IntoIterator<Item = &'a [u8]>) -> bool {
        if self.poured == self.unsent.len() {
            self.unsent.clear();
            self.poured = 0;

            for piece in pieces {
                // A session that has ended keeps nothing.
                let _ = self.tls.send(piece);
                self.unsent.extend(self.tls.take_outgoing());
            }
        }

        match self.stream.write(&self.unsent[self.poured..]) {
            Ok(length) => {
                self.poured += length;
                true
            }
            Err(error) => is_timeout(&error),
        }
    }

    /// The next message; `None` when the server has closed the connection.
    #[track_caller]
    pub fn receive(&mut self) -> Option<Value> {
        self.try_receive()
            .unwrap_or_else(|error| panic!("the server keeps the connection open: {error}"))
    }

    /// The same.
    ///
    /// # Errors
    /// When the server sends nothing for the read timeout of the socket.
    pub fn try_receive(&mut self) -> io::Result<Option<Value>> {
        loop {
            let length = self
                .received
                .first_chunk()
                .map(|length| u32::from_be_bytes(*length) as usize);
            if let Some(length) = length.filter(|length| self.received.len() >= 4 + length) {
                let text: Vec<u8> = self.received.drain(..4 + length).skip(4).collect();
                let message: Value = serde_json::from_slice(&text).expect("JSON");
                self.received_number = message["n"].as_u64().unwrap_or(self.received_number);
                return Ok(Some(message));
            }

            if !self.try_read()? {
                return Ok(None);
            }
        }
    }

    /// The next message of this type, whatever is before it.
    #[track_caller]
    pub fn expect(&mut self, kind: &str) -> Value {
        let mut seen = Vec::new();
        loop {
            match self.receive() {
                Some(message) if message["type"] == kind => return message,
                Some(message) => seen.push(message),
                None => panic!("no {kind}, but {seen:?}"),
            }
        }
    }

    /// The same; `None` when the server refuses, is silent, or has closed the connection.
    pub fn try_expect(&mut self, kind: &str) -> Option<Value> {
        loop {
            let message = self.try_receive().ok()??;
            if message["type"] == kind {
                return Some(message);
            }
            if message["type"] == "refused" {
                return None;
            }
        }
    }

    /// Everything until the server closes the connection.
    #[track_caller]
    pub fn drain(&mut self) -> Vec<Value> {
        std::iter::from_fn(|| self.receive()).collect()
    }

    /// Opens a phase; returns its tokens.
    #[track_caller]
    pub fn open_phase(&mut self, phase: u32, spec: &Value) -> Value {
        self.send(json!({ "type": "open_phase", "phase": phase, "spec": spec }));
        self.expect("ready")
    }

    fn flush(&mut self) {
        // A closed connection shows when it is read.
        let _ = self.stream.write_all(&self.tls.take_outgoing());
    }

    /// False at the end of the connection; an error when nothing arrives in time.
    fn try_read(&mut self) -> io::Result<bool> {
        let mut bytes = [0; 16 * 1024];
        match self.stream.read(&mut bytes) {
            Ok(0) => Ok(false),
            Ok(length) => {
                let is_valid = self.tls.receive(&bytes[..length]).is_ok();
                self.received.extend(self.tls.take_received());
                self.flush();
                Ok(is_valid)
            }
            Err(error) if is_timeout(&error) => Err(error),
            Err(_) => Ok(false),
        }
    }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

/// A first message as a client of ours sends it.
pub fn hello() -> Value {
    json!({
        "type": "hello", "minor": 0, "program": "by hand", "streams_max": 4, "duration_max_ns": 60_000_000_000_u64,
        "wants": ["idle", "down", "up"],
    })
}

/// A cookie that a native server recognises, different from all others of this process.
pub fn native_cookie() -> [u8; 37] {
    static NEXT: AtomicU32 = AtomicU32::new(0);

    let mut number = NEXT.fetch_add(1, Ordering::Relaxed);
    let mut cookie = [b'a'; 37];
    cookie[..12].copy_from_slice(b"lrnative2222");

    for byte in &mut cookie[12..18] {
        *byte = b'a' + (number % 16) as u8;
        number /= 16;
    }

    cookie[36] = 0;
    cookie
}

/// Head of a load stream.
pub fn stream_head(token: [u8; 16], flags: u8) -> Vec<u8> {
    head(1, token, flags)
}

/// Head of a stream of another kind: 2 for a probe, 3 for requests (`rr`), 4 for one request
/// (`crr`, `cps`).
pub fn probe_head(kind: u8, token: [u8; 16]) -> Vec<u8> {
    head(kind, token, 0)
}

/// Magic, kind, flags, number, token, time.
fn head(kind: u8, token: [u8; 16], flags: u8) -> Vec<u8> {
    [
        &[0xe5, 0x6c, 0x72, 0x01, kind, flags, 0, 0][..],
        &token,
        &[0; 8],
    ]
    .concat()
}

/// A token as messages have it.
#[track_caller]
pub fn token(text: &Value) -> [u8; 16] {
    let text = text.as_str().expect("a token");
    let byte = |at: usize| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).expect("hexadecimal");
    std::array::from_fn(byte)
}

/// A datagram of this kind: magic, kind, flags, flow, tag, sequence, time, body.
pub fn datagram(kind: u8, flow: u32, tag: u64, sequence: u64, body: &[u8]) -> Vec<u8> {
    let (flow, tag, sequence) = (
        flow.to_be_bytes(),
        tag.to_be_bytes(),
        sequence.to_be_bytes(),
    );
    [
        &[0xa5, 0x01, kind, 0][..],
        &flow,
        &tag,
        &sequence,
        &[0; 8],
        body,
    ]
    .concat()
}

/// A knock with this token, 64 bytes long.
pub fn knock(flow: u32, token: [u8; 16]) -> Vec<u8> {
    datagram(0, flow, 0, 0, &[&token[..], &[0; 16]].concat())
}
