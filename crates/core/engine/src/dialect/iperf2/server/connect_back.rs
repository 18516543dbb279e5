//! Connects back to a client on its request: only to its own address, with a short timeout.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use linerate_model::{TestSpec, Transport};
use linerate_sys::OsError;
use linerate_sys::poll::{self, Interest};
use linerate_sys::socket::{self, Connect};

use crate::dialect::iperf2::sockets;

/// A connection on its way back.
pub(super) struct Dial {
    pub number: u32,
    /// The address of this host that the client named, with port 0.
    local: SocketAddr,
    pub remote: SocketAddr,
    pub spec: TestSpec,
    fd: Option<OwnedFd>,
    until: Instant,
    again_at: Instant,
}

/// State of the connect.
pub(super) enum Progress {
    Pending,
    Connected(OwnedFd),
    /// The operating system's text.
    Failed(String),
}

/// The client's listener may come up after its connection.
const TIMEOUT: Duration = Duration::from_secs(1);
/// Time between two attempts.
const PAUSE: Duration = Duration::from_millis(50);
/// Poll period of an attempt.
const POLL: Duration = Duration::from_millis(5);

impl Dial {
    pub(super) fn new(number: u32, local: SocketAddr, remote: SocketAddr, spec: TestSpec) -> Self {
        let now = Instant::now();
        Self {
            number,
            local,
            remote,
            spec,
            fd: None,
            until: now + TIMEOUT,
            again_at: now,
        }
    }

    pub(super) fn deadline(&self) -> Instant {
        match self.fd {
            Some(_) => Instant::now() + POLL,
            None => self.again_at,
        }
    }

    pub(super) fn advance(&mut self) -> Progress {
        if self.fd.is_none() {
            if Instant::now() < self.again_at {
                return Progress::Pending;
            }

            match self.begin() {
                Ok((fd, Connect::Done)) => return Progress::Connected(fd),
                Ok((fd, Connect::InProgress)) => self.fd = Some(fd),
                Err(error) => return self.later(&error),
            }
        }

        let Some(fd) = &self.fd else {
            return Progress::Pending;
        };
        if !matches!(
            poll::wait_fd(fd, Interest::WRITE, Some(Duration::ZERO)),
            Ok(true)
        ) {
            if Instant::now() < self.until {
                return Progress::Pending;
            }
            return Progress::Failed("Connection timed out".to_owned());
        }

        match (socket::take_error(fd), self.fd.take()) {
            (Ok(()), Some(fd)) => Progress::Connected(fd),
            (Err(error), _) => self.later(&error),
            (Ok(()), None) => Progress::Pending,
        }
    }

    fn begin(&self) -> Result<(OwnedFd, Connect), OsError> {
        let fd = socket::open(&self.remote, sockets::protocol(self.spec.transport))?;
        sockets::prepare(&fd, &self.spec, true, false);
        // The client accepts connections from the address that it named, not from that of a route.
        socket::bind(&fd, &self.local)?;
        let outcome = socket::connect(&fd, &self.remote)?;
        Ok((fd, outcome))
    }

    fn later(&mut self, error: &OsError) -> Progress {
        if Instant::now() >= self.until || self.spec.transport == Transport::Udp {
            return Progress::Failed(error.text());
        }
        self.again_at = Instant::now() + PAUSE;
        Progress::Pending
    }
}
