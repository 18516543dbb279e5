//! `linerate http serve`, and clients that speak to it byte by byte.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;

use crate::deadline::{TIMEOUT, wait_for};
use crate::namespaces::{Net, inside};
use crate::net::free_http_port;
use crate::process::{Finished, Process, Signal};
use crate::program::ours;

/// A running server, by default on a port of its own of 127.0.0.1, without its control channel and
/// without TCP tests.
#[derive(Debug)]
pub struct HttpServer {
    /// Where it listens.
    pub address: SocketAddr,
    /// Its process.
    pub process: Process,
}

impl HttpServer {
    /// Starts the server and waits until it listens.
    pub fn start(arguments: &[&str]) -> Self {
        let address = SocketAddr::from(([127, 0, 0, 1], free_http_port()));
        Self::start_by(Command::new(ours().path()), address, arguments)
    }

    /// In the server's namespace, at this address.
    pub fn in_net(net: &Net, address: &str, arguments: &[&str]) -> Self {
        let command = inside(&net.b, ours().path(), &[]);
        Self::start_by(
            command,
            address.parse().expect("an address and a port"),
            arguments,
        )
    }

    /// At this address, by a command that ends in the program's name.
    pub fn start_by(mut command: Command, address: SocketAddr, arguments: &[&str]) -> Self {
        command
            .args([
                "http",
                "serve",
                "--no-control",
                "--tcp=0",
                "--bind",
                &address.to_string(),
            ])
            .args(arguments);
        let process = Process::start(command);
        process.wait_for_stdout("Listening on", 1);

        Self { address, process }
    }

    /// The URL of a path.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// A new connection.
    pub fn connect(&self) -> HttpClient {
        let stream = TcpStream::connect(self.address).expect("the server listens");
        stream.set_read_timeout(Some(TIMEOUT)).expect("a deadline");
        stream.set_write_timeout(Some(TIMEOUT)).expect("a deadline");
        stream
            .set_nodelay(true)
            .expect("an option every socket has");

        HttpClient {
            stream,
            received: Vec::new(),
        }
    }

    /// Ends it and returns its output.
    pub fn stop(self) -> Finished {
        self.process.signal(Signal::Terminate);
        self.process.finish()
    }
}

/// A connection whose bytes the test decides.
#[derive(Debug)]
pub struct HttpClient {
    /// Its socket.
    pub stream: TcpStream,
    received: Vec<u8>,
}

/// A response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpResponse {
    /// Status code.
    pub status: u16,
    /// Status line and fields.
    pub header: String,
    /// As many bytes as `Content-Length` gives.
    pub body: Vec<u8>,
}

impl HttpClient {
    /// Sends bytes as they are.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream
            .write_all(bytes.as_ref())
            .expect("the server reads");
    }

    /// Asks for a path.
    pub fn ask(&mut self, path: &str) {
        self.send(format!("GET {path} HTTP/1.1\r\nHost: test\r\n\r\n"));
    }

    /// Sends a request and waits for the response.
    pub fn get(&mut self, path: &str) -> HttpResponse {
        self.ask(path);
        self.response()
    }

    /// The next response, its body framed by `Content-Length` or absent.
    #[track_caller]
    pub fn response(&mut self) -> HttpResponse {
        self.try_response()
            .expect("an answer before the end of the connection")
    }

    /// The next response; `None` when the server has closed the connection instead.
    #[track_caller]
    pub fn try_response(&mut self) -> Option<HttpResponse> {
        let end = loop {
            if let Some(end) = self
                .received
                .windows(4)
                .position(|four| four == b"\r\n\r\n")
            {
                break end + 4;
            }

            if !self.receive() {
                assert!(
                    self.received.is_empty(),
                    "half an answer: {:?}",
                    self.received
                );
                return None;
            }
        };
        let header = String::from_utf8(self.received.drain(..end).collect()).expect("text");
        let status = header.split(' ').nth(1).and_then(|code| code.parse().ok());
        let mut fields = header.lines().filter_map(|line| line.split_once(": "));
        let length = fields.find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
        let length = length.map_or(0, |(_, length)| length.parse().expect("a length"));
        while self.received.len() < length {
            assert!(self.receive(), "the body ends early");
        }

        Some(HttpResponse {
            status: status.expect("a status line"),
            header,
            body: self.received.drain(..length).collect(),
        })
    }

    /// True if the server closed the connection without another byte.
    pub fn is_closed(&mut self) -> bool {
        self.received.is_empty() && !self.receive()
    }

    /// Reads some bytes; `false` at the end. A reset is an end, too.
    fn receive(&mut self) -> bool {
        let mut chunk = [0; 65_536];
        loop {
            match self.stream.read(&mut chunk) {
                Ok(0) => return false,
                Ok(count) => {
                    self.received
                        .extend_from_slice(chunk.get(..count).unwrap_or_default());
                    return true;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return false,
                Err(error) => panic!("nothing from the server: {error}"),
            }
        }
    }
}

/// Waits until a connection is answered with this status. Returns how many were answered in another
/// way or closed.
pub fn wait_for_status(server: &HttpServer, status: u16) -> usize {
    let mut others = 0;
    let seen = wait_for(TIMEOUT, || {
        let mut client = server.connect();
        client.ask("/0");
        let response = client
            .try_response()
            .filter(|response| response.status == status);
        others += usize::from(response.is_none());
        response
    });
    assert!(seen.is_some(), "no answer {status} from {server:?}");

    others
}
