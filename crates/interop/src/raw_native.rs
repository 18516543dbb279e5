//! A native client by hand, for tests in which it breaks the rules. The wire formats are written here once more, so that both
//! ends of the program cannot be wrong alike.

use std::io::{ErrorKind, Read, Write};
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
        let stream = Self::recognised(address);
        let tls = ClientSession::new(&ClientConfig::new());
        let mut client = Self { stream, tls, received: Vec::new(), sent_number: 0, received_number: 0 };
        while client.tls.is_handshaking() {
            client.flush();
            assert!(client.read(), "the server completes the handshake");
        }
        client.flush();
        client
    }

    /// A connection whose ClientHello the server awaits.
    #[track_caller]
    pub fn recognised(address: impl Into<SocketAddr>) -> TcpStream {
        let mut stream = TcpStream::connect(address.into()).expect("the server listens");
        stream.set_read_timeout(Some(SILENCE)).expect("the time is not zero");
        stream.set_nodelay(true).expect("the socket is connected");
        stream.write_all(&native_cookie()).expect("the server reads");
        let mut answer = [0; 4];
        stream.read_exact(&mut answer).expect("the server answers");
        assert_eq!(&answer, b"LRN\x01");
        stream
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
        let exporter = self.tls.exporter(CHANNEL_BINDING).expect("the handshake is complete");
        let proof: String = proof(&token, &exporter, Role::Client).iter().map(|byte| format!("{byte:02x}")).collect();
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

    /// The next message; `None` when the server has closed the connection.
    #[track_caller]
    pub fn receive(&mut self) -> Option<Value> {
        loop {
            let length = self.received.first_chunk().map(|length| u32::from_be_bytes(*length) as usize);
            if let Some(length) = length.filter(|length| self.received.len() >= 4 + length) {
                let text: Vec<u8> = self.received.drain(..4 + length).skip(4).collect();
                let message: Value = serde_json::from_slice(&text).expect("JSON");
                self.received_number = message["n"].as_u64().unwrap_or(self.received_number);
                return Some(message);
            }
            if !self.read() {
                return None;
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

    /// False at the end of the connection.
    #[track_caller]
    fn read(&mut self) -> bool {
        let mut bytes = [0; 16 * 1024];
        match self.stream.read(&mut bytes) {
            Ok(0) => false,
            Ok(length) => {
                let is_valid = self.tls.receive(&bytes[..length]).is_ok();
                self.received.extend(self.tls.take_received());
                self.flush();
                is_valid
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                panic!("the server keeps the connection open")
            }
            Err(_) => false,
        }
    }
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

/// Head of a load stream: magic, kind 1, flags, number, token, time.
pub fn stream_head(token: [u8; 16], flags: u8) -> Vec<u8> {
    [&[0xe5, 0x6c, 0x72, 0x01, 1, flags, 0, 0][..], &token, &[0; 8]].concat()
}

/// A datagram of this kind: magic, kind, flags, flow, tag, sequence, time, body.
pub fn datagram(kind: u8, flow: u32, tag: u64, sequence: u64, body: &[u8]) -> Vec<u8> {
    let (flow, tag, sequence) = (flow.to_be_bytes(), tag.to_be_bytes(), sequence.to_be_bytes());
    [&[0xa5, 0x01, kind, 0][..], &flow, &tag, &sequence, &[0; 8], body].concat()
}

/// A knock with this token, 64 bytes long.
pub fn knock(flow: u32, token: [u8; 16]) -> Vec<u8> {
    datagram(0, flow, 0, 0, &[&token[..], &[0; 16]].concat())
}
