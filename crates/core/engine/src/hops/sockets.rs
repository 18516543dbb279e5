//! Sockets of the probes.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use linerate_native::wire::datagram::FlowId;
use linerate_sys::socket::{self, Protocol};
use linerate_sys::sockopt;

use super::trace::OTHER_FLOWS;
use crate::random::Sequence;

/// Connected sockets, one for each flow.
pub struct HopSockets {
    pub(super) fds: Vec<OwnedFd>,
    /// In the payload of all probes: a quote without it is ignored.
    pub(super) id: FlowId,
}

impl HopSockets {
    /// Sockets towards `remote`, whose port should be closed: the other end answers then. `prepare`
    /// binds each before it is connected.
    ///
    /// # Errors
    /// When the system has no socket left, or no route.
    pub fn open(
        remote: &SocketAddr,
        prepare: impl Fn(BorrowedFd<'_>) -> io::Result<()>,
    ) -> io::Result<Self> {
        let mut numbers = Sequence::seeded();
        let id = FlowId {
            flow: 0,
            tag: numbers.next(),
        };
        let first = open(remote, &prepare)?;
        Self::of_flow(first, id, remote, prepare)
    }

    /// Sockets whose first one is a flow that the other end has opened and answers.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub(crate) fn of_flow(
        first: OwnedFd,
        id: FlowId,
        remote: &SocketAddr,
        prepare: impl Fn(BorrowedFd<'_>) -> io::Result<()>,
    ) -> io::Result<Self> {
        let mut fds = vec![first];
        for _ in 0..OTHER_FLOWS {
            fds.push(open(remote, &prepare)?);
        }

        for fd in &fds {
            sockopt::set_receive_errors(fd, true)?;
            sockopt::SO_TIMESTAMPNS.set(fd, true)?;
            // Kernels before 5.9 have no extensions.
            let _ = sockopt::set_receive_icmp_extensions(fd);
        }
        Ok(Self { fds, id })
    }
}

fn open(
    remote: &SocketAddr,
    prepare: impl Fn(BorrowedFd<'_>) -> io::Result<()>,
) -> io::Result<OwnedFd> {
    let fd = socket::open(remote, Protocol::Udp)?;
    prepare(fd.as_fd())?;
    socket::connect(&fd, remote)?;
    Ok(fd)
}
