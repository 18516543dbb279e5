//! A client of a broker that reads and writes the text protocol of NATS itself: what it publishes
//! is a test's choice.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::deadline::TIMEOUT;

/// A connection without a user.
pub struct NatsClient {
    stream: BufReader<TcpStream>,
}

impl NatsClient {
    /// Connects to a broker on this port of loopback.
    pub fn connect(port: u16) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).expect("a broker");
        stream
            .set_read_timeout(Some(Duration::from_millis(100)))
            .expect("a timeout");
        let mut client = Self {
            stream: BufReader::new(stream),
        };
        client.write("CONNECT {\"verbose\":false}\r\n");

        client
    }

    /// Receives what is published under a subject from now on.
    pub fn subscribe(&mut self, subject: &str) {
        self.write(&format!("SUB {subject} 1\r\nPING\r\n"));
        self.line_where(|line| line == "PONG");
    }

    /// Publishes a JSON value.
    pub fn publish(&mut self, subject: &str, value: &Value) {
        let text = value.to_string();
        self.write(&format!("PUB {subject} {}\r\n{text}\r\n", text.len()));
    }

    /// The next message that fits, as JSON.
    #[track_caller]
    pub fn wait_for(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        let until = Instant::now() + TIMEOUT;
        while Instant::now() < until {
            let head = self.line_where(|line| line.starts_with("MSG "));
            let bytes: usize = head
                .rsplit(' ')
                .next()
                .and_then(|bytes| bytes.parse().ok())
                .expect("a length");
            let mut payload = vec![0; bytes + 2];
            self.read_exact(&mut payload);

            let value: Value = serde_json::from_slice(&payload).unwrap_or_default();
            if fits(&value) {
                return value;
            }
        }

        panic!("no message that fits within {TIMEOUT:?}");
    }

    /// The next line that fits, without its end. Answers what the broker sends to see whether its
    /// client is there.
    #[track_caller]
    fn line_where(&mut self, fits: impl Fn(&str) -> bool) -> String {
        let until = Instant::now() + TIMEOUT;
        let mut line = String::new();

        while Instant::now() < until {
            match self.stream.read_line(&mut line) {
                Ok(0) => panic!("the broker closed the connection"),
                Ok(_) if line.trim_end() == "PING" => self.write("PONG\r\n"),
                Ok(_) if fits(line.trim_end()) => return line.trim_end().to_owned(),
                Ok(_) => assert!(!line.starts_with("-ERR"), "{line}"),
                // A part of a line stays.
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
                {
                    continue;
                }
                Err(error) => panic!("{error}"),
            }

            line.clear();
        }

        panic!("no line that fits within {TIMEOUT:?}");
    }

    fn read_exact(&mut self, mut rest: &mut [u8]) {
        let until = Instant::now() + TIMEOUT;
        while !rest.is_empty() {
            match self.stream.read(rest) {
                Ok(0) => panic!("the broker closed the connection"),
                Ok(count) => rest = &mut rest[count..],
                Err(_) => assert!(Instant::now() < until, "a message without an end"),
            }
        }
    }

    fn write(&mut self, text: &str) {
        self.stream
            .get_mut()
            .write_all(text.as_bytes())
            .expect("a broker");
    }
}
