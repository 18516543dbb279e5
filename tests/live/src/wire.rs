//! The control connection by hand, for peers that misbehave.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::Value;

use crate::deadline::{TIMEOUT, wait_for};

/// Numbers of the control dialogue.
pub mod state {
    /// Reset counters.
    pub const TEST_START: u8 = 1;
    /// Move data.
    pub const TEST_RUNNING: u8 = 2;
    /// The client decided that the test has ended.
    pub const TEST_END: u8 = 4;
    /// Send the parameters.
    pub const PARAM_EXCHANGE: u8 = 9;
    /// Open the data streams.
    pub const CREATE_STREAMS: u8 = 10;
    /// The server got a signal.
    pub const SERVER_TERMINATE: u8 = 11;
    /// The client got a signal.
    pub const CLIENT_TERMINATE: u8 = 12;
    /// Send the results.
    pub const EXCHANGE_RESULTS: u8 = 13;
    /// Print the summary.
    pub const DISPLAY_RESULTS: u8 = 14;
    /// The client is finished.
    pub const IPERF_DONE: u8 = 16;
    /// Two error words follow.
    pub const SERVER_ERROR: u8 = 0xFE;
    /// Busy.
    pub const ACCESS_DENIED: u8 = 0xFF;
}

/// Longest silence of a peer before the test calls it hung; longer than the ten seconds a server
/// may take to give up.
const SILENCE: Duration = Duration::from_secs(20);

/// A well-formed cookie that no other test of this process uses.
pub fn fresh_cookie() -> [u8; 37] {
    static NEXT: AtomicU32 = AtomicU32::new(0);

    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let mut cookie = cookie();
    for (place, byte) in cookie.iter_mut().take(8).enumerate() {
        *byte = b'a' + ((number >> (4 * place)) & 15) as u8;
    }

    // Different from the fixed one.
    cookie[8] = b'z';
    cookie
}

/// A well-formed cookie.
pub fn cookie() -> [u8; 37] {
    let mut cookie = [b'a'; 37];
    cookie[36] = 0;
    cookie
}

/// JSON as it travels: length, text.
pub fn frame(json: &str) -> Vec<u8> {
    let length = u32::try_from(json.len()).expect("test texts are short");
    [&length.to_be_bytes(), json.as_bytes()].concat()
}

/// One control or data connection under the test's hand.
#[derive(Debug)]
pub struct Control {
    stream: TcpStream,
}

/// Event of a peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Received {
    /// It sent this byte.
    Byte(u8),
    /// It closed the connection.
    Closed,
    /// It kept silent.
    Silence,
}

impl Control {
    /// Connects to a server.
    #[track_caller]
    pub fn connect(port: u16) -> Self {
        Self::over(TcpStream::connect(("127.0.0.1", port)).expect("the server listens"))
    }

    /// Takes the next client of a scripted server.
    #[track_caller]
    pub fn accept(listener: &TcpListener) -> Self {
        listener
            .set_nonblocking(true)
            .expect("a listener can be asked without waiting");
        let stream = wait_for(TIMEOUT, || listener.accept().ok())
            .expect("a client connects")
            .0;

        // Linux does not hand the listener's mode on, others do.
        stream
            .set_nonblocking(false)
            .expect("the socket is connected");
        Self::over(stream)
    }

    /// A port for a scripted server.
    #[track_caller]
    pub fn listen() -> (TcpListener, u16) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let port = listener.local_addr().expect("the listener is bound").port();
        (listener, port)
    }

    /// The next client of a scripted server, which has sent its cookie.
    #[track_caller]
    pub fn greeted(listener: &TcpListener) -> Self {
        let mut control = Self::accept(listener);
        let cookie = control.take(37);
        assert!(
            cookie[..36]
                .iter()
                .all(|byte| b"abcdefghijklmnopqrstuvwxyz234567".contains(byte))
                && cookie[36] == 0
        );

        control
    }

    /// The same, which has sent its parameters as well.
    #[track_caller]
    pub fn parametrised(listener: &TcpListener) -> (Self, String) {
        let mut control = Self::greeted(listener);
        control.send(&[state::PARAM_EXCHANGE]);
        let parameters = control.take_json();
        (control, parameters)
    }

    fn over(stream: TcpStream) -> Self {
        stream
            .set_read_timeout(Some(SILENCE))
            .expect("the time is not zero");
        stream.set_nodelay(true).expect("the socket is connected");
        Self { stream }
    }

    /// Sends bytes; a peer that has already closed is no error here.
    pub fn send(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).is_ok()
    }

    /// Ends our direction.
    pub fn half_close(&self) {
        self.stream.shutdown(std::net::Shutdown::Write).ok();
    }

    /// Waits for one byte.
    pub fn response(&mut self) -> Received {
        self.response_within(SILENCE)
    }

    /// Waits for one byte, for some time.
    pub fn response_within(&mut self, limit: Duration) -> Received {
        self.stream
            .set_read_timeout(Some(limit))
            .expect("the time is not zero");
        let mut byte = [0];
        match self.stream.read(&mut byte) {
            Ok(1) => Received::Byte(byte[0]),
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
                ) =>
            {
                Received::Silence
            }
            _ => Received::Closed,
        }
    }

    /// Waits for the peer to close, and returns what it sent before.
    #[track_caller]
    pub fn drain(&mut self) -> Vec<u8> {
        let mut output = Vec::new();
        loop {
            match self.response() {
                Received::Byte(byte) => output.push(byte),
                Received::Closed => return output,
                Received::Silence => {
                    panic!("the peer keeps the connection open; it said {output:?}")
                }
            }
        }
    }

    /// Waits for one byte of a kind.
    #[track_caller]
    pub fn expect(&mut self, byte: u8) {
        assert_eq!(self.response(), Received::Byte(byte));
    }

    /// Reads exactly `count` bytes.
    #[track_caller]
    pub fn take(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.stream
            .read_exact(&mut bytes)
            .expect("the peer sends what the protocol demands");
        bytes
    }

    /// Reads one JSON text.
    #[track_caller]
    pub fn take_json(&mut self) -> String {
        let length = self
            .take(4)
            .iter()
            .fold(0, |sum, byte| sum * 256 + usize::from(*byte));
        String::from_utf8(self.take(length)).expect("JSON is UTF-8")
    }
}

/// A client of which the test decides every step; its methods wait for what the server sends in
/// between.
#[derive(Debug)]
pub struct RawClient {
    /// The control connection.
    pub control: Control,
    /// The data connection.
    pub data: Option<Control>,
    cookie: [u8; 37],
    port: u16,
}

impl RawClient {
    /// A client whose cookie the server awaits.
    #[track_caller]
    pub fn connect(port: u16) -> Self {
        Self {
            control: Control::connect(port),
            data: None,
            cookie: fresh_cookie(),
            port,
        }
    }

    /// One whose parameters the server awaits.
    #[track_caller]
    pub fn named(port: u16) -> Self {
        let mut client = Self::connect(port);
        client.control.send(&client.cookie);
        client.control.expect(state::PARAM_EXCHANGE);
        client
    }

    /// One whose streams the server awaits.
    #[track_caller]
    pub fn accepted(port: u16, parameters: &str) -> Self {
        let mut client = Self::named(port);
        client.control.send(&frame(parameters));
        client.control.expect(state::CREATE_STREAMS);
        client
    }

    /// One whose test of one TCP stream runs.
    #[track_caller]
    pub fn running(port: u16, parameters: &str) -> Self {
        let mut client = Self::accepted(port, parameters);
        client.open_stream();
        client
    }

    /// Opens the only stream and waits for the start of the test.
    #[track_caller]
    pub fn open_stream(&mut self) {
        let mut data = Control::connect(self.port);
        data.send(&self.cookie);
        self.data = Some(data);
        self.expect_start();
    }

    /// Waits for the start of the test, when its streams are open.
    #[track_caller]
    pub fn expect_start(&mut self) {
        self.control.expect(state::TEST_START);
        self.control.expect(state::TEST_RUNNING);
    }

    /// Ends the test; the server awaits results.
    #[track_caller]
    pub fn end(&mut self) {
        self.control.send(&[state::TEST_END]);
        self.control.expect(state::EXCHANGE_RESULTS);
    }

    /// Exchanges results; the server awaits the last message.
    #[track_caller]
    pub fn exchange_results(&mut self) -> Value {
        let cpu = r#""cpu_util_total":0,"cpu_util_user":0,"cpu_util_system":0,"sender_has_retransmits":0"#;
        self.control
            .send(&frame(&format!("{{{cpu},\"streams\":[]}}")));
        let results = self.control.take_json();

        self.control.expect(state::DISPLAY_RESULTS);
        serde_json::from_str(&results).expect("JSON")
    }

    /// Ends the test and returns the server's results.
    #[track_caller]
    pub fn finish(mut self) -> Value {
        self.end();
        let results = self.exchange_results();
        self.control.send(&[state::IPERF_DONE]);
        results
    }
}
