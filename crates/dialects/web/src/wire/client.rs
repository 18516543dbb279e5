//! The client's half of ndt7 (ndt-server, `spec/ndt7-protocol.md`): opening handshake, and what the
//! server reports.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use super::NDT7;
use super::measurement::AppInfo;
use super::request::HEAD_BYTES_MAX;
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

        let is = |name: &'static str, expected: &str| {
            let named = head
                .headers
                .iter()
                .filter(|field| field.name.eq_ignore_ascii_case(name));
            let mut values = named.filter_map(|field| str::from_utf8(field.value).ok());
            let is_expected = values.next().is_some_and(|value| value.trim() == expected);
            is_expected.then_some(()).ok_or(HandshakeError::Field(name))
        };
        is("Sec-WebSocket-Accept", &accept_key(&self.key))?;
        is("Sec-WebSocket-Protocol", NDT7)?;
        Ok(Some(len))
    }
}

/// A measurement of a server. What it does not report is absent. Times are microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct Report {
    /// Progress as the server's program counts it.
    pub app_info: Option<AppInfo>,
    /// State of the connection in the server's kernel.
    #[serde(rename = "TCPInfo")]
    pub tcp_info: Option<Kernel>,
}

/// `TCP_INFO` (tcp(7)) of a server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct Kernel {
    /// Since the start of the test.
    pub elapsed_time: Option<u64>,
    /// Received in order.
    pub bytes_received: Option<u64>,
    /// Segments sent again.
    pub total_retrans: Option<u32>,
    /// Smoothed round trip.
    #[serde(rename = "RTT")]
    pub rtt: Option<u32>,
    /// Deviation of the round trip.
    #[serde(rename = "RTTVar")]
    pub rtt_var: Option<u32>,
    /// Smallest round trip.
    #[serde(rename = "MinRTT")]
    pub min_rtt: Option<u32>,
    /// Payload of a full segment.
    #[serde(rename = "SndMSS")]
    pub snd_mss: Option<u32>,
    /// Time with data to send.
    pub busy_time: Option<u64>,
    /// Part of it limited by the client's window.
    #[serde(rename = "RWndLimited")]
    pub rwnd_limited: Option<u64>,
    /// Part of it limited by the server's send buffer.
    pub snd_buf_limited: Option<u64>,
}

impl Report {
    /// Reads a message of text; `None` of one that is no measurement.
    pub fn parse(text: &[u8]) -> Option<Self> {
        serde_json::from_slice(text).ok()
    }

    /// Payload that the server received by a time since the start of the test in µs.
    pub fn received(&self) -> Option<(u64, u64)> {
        let by_program = self.app_info.filter(|app| app.num_bytes > 0);
        let by_kernel = || Some((self.tcp_info?.elapsed_time?, self.tcp_info?.bytes_received?));
        by_program
            .map(|app| (app.elapsed_time, app.num_bytes))
            .or_else(by_kernel)
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

    #[test]
    fn measurements_have_what_the_server_reports_and_nothing_else() {
        // As ndt-server 0.20 writes it: without AppInfo, with members that are not read.
        let text = br#"{"BBRInfo":{"BW":1},"ConnectionInfo":{"Client":"a:1"},"Origin":"server",
            "TCPInfo":{"State":1,"RTT":12000,"MinRTT":9000,"TotalRetrans":3,"BytesReceived":500,
            "ElapsedTime":250000,"PacingRate":-1},"Test":"upload"}"#;
        let report = Report::parse(text).expect("a measurement");
        let kernel = report.tcp_info.expect("the kernel's state");
        assert_eq!(
            (kernel.rtt, kernel.total_retrans, kernel.busy_time),
            (Some(12_000), Some(3), None)
        );
        assert_eq!(report.received(), Some((250_000, 500)));

        let text = br#"{"AppInfo":{"ElapsedTime":7,"NumBytes":9},"Test":"upload"}"#;
        let report = Report::parse(text).expect("a measurement");
        assert_eq!((report.received(), report.tcp_info), (Some((7, 9)), None));
        for garbage in [
            &b""[..],
            b"[]",
            b"{\"TCPInfo\":1}",
            b"{\"TCPInfo\":{\"RTT\":-1}}",
        ] {
            assert_eq!(
                Report::parse(garbage).and_then(|report| report.received()),
                None
            );
        }
    }
}
