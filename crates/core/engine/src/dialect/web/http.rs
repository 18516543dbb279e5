//! A connection until its request is answered, or has become a WebSocket.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

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

impl HttpConnection {
    /// `read` are the bytes read so far.
    pub(super) fn new(connection: Accepted, layer: Layer, read: Vec<u8>) -> Self {
        Self {
            fd: connection.fd,
            layer,
            peer: connection.peer,
            read,
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
            match Request::parse(&self.read) {
                Ok(Some((request, len))) => {
                    self.read.drain(..len);
                    return Ok(Progress::Request(Box::new(request)));
                }
                Ok(None) => {}
                Err(error) => return Ok(Progress::Refused(error)),
            }
            match self.layer.recv(&self.fd, &mut buffer)? {
                0 => return Ok(Progress::Closed),
                len => self
                    .read
                    .extend_from_slice(buffer.get(..len).unwrap_or_default()),
            }
        }
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
        // A failure shows at the next write.
        let _ = self.layer.queue(&self.fd, response);
        self.until = Instant::now() + TIMEOUT;
    }
}
