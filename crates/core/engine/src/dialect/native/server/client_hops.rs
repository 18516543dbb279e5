//! Hops of the path to the client of a session, traced beside its phases.

use std::io;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;

use linerate_model::path::HopAnswers;
use linerate_sys::{socket, sockopt};

use crate::hops::{HopSockets, PathTrace};

/// The trace of a session. It goes to the address of the control connection and to no other, so
/// that a client cannot direct it at another host.
#[derive(Default)]
pub(super) struct ClientHops {
    trace: PathTrace,
    sockets: Option<HopSockets>,
}

impl ClientHops {
    /// Traces as long as the phase lasts. A host without descriptors for it sends no answers; the
    /// phase is the same without.
    pub(super) fn start(&mut self, control: BorrowedFd<'_>, device: Option<&str>) {
        let sockets = self
            .sockets
            .take()
            .map_or_else(|| open(control, device), Ok);
        let started = sockets.and_then(|sockets| self.trace.start(sockets));
        if let Err(error) = started {
            tracing::debug!(%error, "no trace of the hops");
        }
    }

    /// Ends the trace; returns what it found in this phase.
    pub(super) fn end(&mut self) -> Vec<HopAnswers> {
        let Some((answers, sockets)) = self.trace.end() else {
            return Vec::new();
        };
        self.sockets = Some(sockets);
        answers
    }
}

/// Sockets from the address of the control connection to that of the client. A client rarely has a
/// UDP socket with the number of its control connection, so that its host answers "port
/// unreachable".
fn open(control: BorrowedFd<'_>, device: Option<&str>) -> io::Result<HopSockets> {
    let (local, remote) = (socket::local_addr(control)?, socket::peer_addr(control)?);
    HopSockets::open(&remote, |fd| {
        if let Some(device) = device {
            sockopt::bind_device(fd, device)?;
        }
        Ok(socket::bind(fd, &SocketAddr::new(local.ip(), 0))?)
    })
}
