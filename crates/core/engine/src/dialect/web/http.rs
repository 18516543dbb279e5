//! A connection until its request is answered, or has become a WebSocket.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use linerate_sys::clock;
use linerate_web::wire::http2::{Http2, PREFACE};
use linerate_web::wire::request::{HeadError, Request};

use crate::layer::Layer;
use crate::server::Accepted;
use crate::wait::if_ready;

/// One of them.
pub(super) struct HttpConnection {
    pub fd: OwnedFd,
    pub layer: Layer,
    pub peer: SocketAddr,
    /// Bytes read so far; behind the head those of the WebSocket.
    pub read: Vec<u8>,
    /// HTTP/2, and the stream of the request.
    pub http2: Option<(Box<Http2>, u32)>,
    /// Bytes of HTTP/2 before the request.
    opening_bytes: usize,
    /// Its request is answered.
    has_response: bool,
    /// The connection ends then.
    pub until: Instant,
    /// Who has logged in.
    pub user: Option<String>,
    pub login: Option<Login>,
    /// A WebSocket that waits for its turn.
    pub queued: Option<Request>,
}

/// A request whose login is checked, or refused later.
pub(super) struct Login {
    pub request: Request,
    /// When it is refused.
    pub refused_at: Option<Instant>,
}

/// Its state.
pub(super) enum Progress {
    Incomplete,
    Request(Box<Request>),
    Refused(HeadError),
    /// The response is sent.
    Answered,
    Closed,
}

/// Time for a request, and for each response.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Bytes that are read in one turn.
const TURN_BYTES: usize = 4096;
/// Bytes of HTTP/2 in which a request has to be.
const OPENING_BYTES_MAX: usize = 32 << 10;

impl HttpConnection {
    /// `read` are the bytes read so far.
    pub(super) fn new(connection: Accepted, layer: Layer, read: Vec<u8>) -> Self {
        Self {
            fd: connection.fd,
            layer,
            peer: connection.peer,
            read,
            http2: None,
            opening_bytes: 0,
            has_response: false,
            // Progress does not extend it.
            until: Instant::now() + TIMEOUT,
            user: None,
            login: None,
            queued: None,
        }
    }

    /// Reads the request, or writes what is left of the response.
    pub(super) fn advance(&mut self) -> Progress {
        match if_ready(self.try_advance()) {
            Ok(progress) => progress.unwrap_or(Progress::Incomplete),
            Err(_) => Progress::Closed,
        }
    }

    fn try_advance(&mut self) -> io::Result<Progress> {
        if self.has_response {
            return self.write();
        }

        let mut buffer = [0; TURN_BYTES];
        loop {
            match self.request() {
                Ok(Some(request)) => return Ok(Progress::Request(Box::new(request))),
                Ok(None) => {}
                Err(progress) => return Ok(progress),
            }
            match self.layer.recv(&self.fd, &mut buffer)? {
                0 => return Ok(Progress::Closed),
                len => self
                    .read
                    .extend_from_slice(buffer.get(..len).unwrap_or_default()),
            }
        }
    }

    /// The request, if it has arrived.
    fn request(&mut self) -> Result<Option<Request>, Progress> {
        if self.http2.is_none() && self.layer.is_tls() {
            if self.read.starts_with(PREFACE) {
                self.http2 = Some(Default::default());
            } else if PREFACE.starts_with(&self.read) {
                return Ok(None);
            }
        }
        let Some((http2, stream)) = &mut self.http2 else {
            let parsed = Request::parse(&self.read).map_err(Progress::Refused)?;
            return Ok(parsed.map(|(request, len)| {
                self.read.drain(..len);
                request
            }));
        };

        let read = std::mem::take(&mut self.read);
        self.opening_bytes += read.len();
        let fed = http2.feed(&read, clock::monotonic_ns());
        // A failure shows at the next read.
        let _ = self.layer.queue(&self.fd, &http2.take_outgoing());
        if fed.is_err() || self.opening_bytes > OPENING_BYTES_MAX {
            return Err(Progress::Closed);
        }
        Ok(http2.take_request().map(|(id, request)| {
            *stream = id;
            request
        }))
    }

    fn write(&mut self) -> io::Result<Progress> {
        self.layer.flush(&self.fd)?;
        if self.layer.has_unsent() {
            return Ok(Progress::Incomplete);
        }

        self.layer.close(&self.fd);
        Ok(Progress::Answered)
    }

    /// Begins a response.
    pub(super) fn respond(&mut self, response: &[u8]) {
        self.has_response = true;
        let framed = self.http2.as_mut().map(|(http2, stream)| {
            http2.respond(*stream, response);
            http2.end();
            http2.take_outgoing()
        });
        // A failure shows at the next write.
        let _ = self
            .layer
            .queue(&self.fd, framed.as_deref().unwrap_or(response));
        self.until = Instant::now() + TIMEOUT;
    }
}
