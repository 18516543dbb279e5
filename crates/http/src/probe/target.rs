//! Destination, result and failures of a probe.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use linerate_model::http::NegotiatedProtocol;

use crate::load::ports::Local;
use crate::load::single;
use crate::protocol::Protocol;

/// Response to the probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeResult {
    /// Negotiated protocol.
    pub protocol: NegotiatedProtocol,
    /// Status code.
    pub status: u16,
    /// Bytes of the header; `None` inside TLS and in HTTP/2, where they are not counted.
    pub head_bytes: Option<u64>,
    /// Bytes of the body, without the framing of chunks.
    pub body_bytes: u64,
    /// The connection is persistent.
    pub keeps_alive: bool,
    /// `Server` field.
    pub server: Option<String>,
    /// `Location` field.
    pub location: Option<String>,
}

/// Failure of the probe.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// The connection could not be opened.
    #[error("cannot connect to {0}: {text}", text = linerate_sys::error::io_text(.1))]
    Connect(SocketAddr, #[source] io::Error),
    /// The connection failed, or the timeout expired.
    #[error("no response from {0}: {text}", text = linerate_sys::error::io_text(.1))]
    Exchange(SocketAddr, #[source] io::Error),
    /// The response is not HTTP.
    #[error("{0} does not respond in {1}: {2}")]
    Protocol(SocketAddr, &'static str, String),
    /// The certificate is not trusted.
    #[error(
        "{0} cannot be trusted: {1}; --cacert FILE trusts the authority in a file, --pin-sha256 HEX this certificate, \
             --insecure any"
    )]
    Untrusted(SocketAddr, String),
    /// TLS failed otherwise.
    #[error("no TLS with {0}: {1}")]
    Tls(SocketAddr, String),
    /// The request cannot be sent.
    #[error("{0}")]
    Request(String),
}

/// Destination, source and protocol of a probe.
#[derive(Debug, Clone, Copy)]
pub struct ProbeTarget<'a> {
    /// Address of the server.
    pub address: SocketAddr,
    /// Local address and port.
    pub local: Local<'a>,
    /// Protocol.
    pub protocol: &'a Protocol,
    /// Timeout of the whole probe.
    pub timeout: Duration,
}

pub(super) fn connect(target: ProbeTarget<'_>) -> Result<TcpStream, ProbeError> {
    let connected = single::connect(&target.local, target.address, target.timeout);
    connected.map_err(|error| ProbeError::Connect(target.address, error))
}

pub(super) const BYTES_MAX: u64 = 1 << 30;
