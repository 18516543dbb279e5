//! Sockets of the probes.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use linerate_native::wire::datagram::FlowId;
use linerate_sys::icmp_quote::QuoteSocket;
use linerate_sys::socket::{self, Protocol};
use linerate_sys::sockopt;

use super::trace::OTHER_FLOWS;
use crate::random::Sequence;

/// Connected sockets, one for each flow.
pub struct HopSockets {
    pub(super) fds: Vec<OwnedFd>,
    /// In the payload of all probes: a quote without it is ignored.
    pub(super) id: FlowId,
    /// TOS byte of each flow; absent of the first one, whose mark is that of the load.
    pub(super) tos: Vec<Option<u8>>,
    /// Headers of probes as routers received them; absent without `CAP_NET_RAW`.
    pub(super) quotes: Option<QuoteSocket>,
}

/// ECN-capable, ECT(0) (RFC 3168 section 5): a router that clears the field shows it.
const ECT_0: u8 = 0b10;

impl HopSockets {
    /// Sockets towards `remote`, whose port should be closed: the other end answers then. `prepare`
    /// binds each before it is connected. All flows but the first one have the DSCPs in turn.
    ///
    /// # Errors
    /// When the system has no socket left, or no route.
    pub fn open(
        remote: &SocketAddr,
        dscps: &[u8],
        prepare: impl Fn(BorrowedFd<'_>) -> io::Result<()>,
    ) -> io::Result<Self> {
        let mut numbers = Sequence::seeded();
        let id = FlowId {
            flow: 0,
            tag: numbers.next(),
        };
        let first = open(remote, &prepare)?;
        Self::of_flow(first, id, remote, dscps, prepare)
    }

    /// Sockets whose first one is a flow that the other end has opened and answers.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub(crate) fn of_flow(
        first: OwnedFd,
        id: FlowId,
        remote: &SocketAddr,
        dscps: &[u8],
        prepare: impl Fn(BorrowedFd<'_>) -> io::Result<()>,
    ) -> io::Result<Self> {
        let mut fds = vec![first];
        let mut tos = vec![None];
        for dscp in dscps.iter().cycle().take(OTHER_FLOWS) {
            let fd = open(remote, &prepare)?;
            let mark = dscp << 2 | ECT_0;
            // Where the kernel refuses, the flow has no mark that could change.
            tos.push(sockopt::set_tos(&fd, mark).ok().map(|()| mark));
            fds.push(fd);
        }

        for fd in &fds {
            sockopt::set_receive_errors(fd, true)?;
            sockopt::SO_TIMESTAMPNS.set(fd, true)?;
            // Kernels before 5.9 have no extensions.
            let _ = sockopt::set_receive_icmp_extensions(fd);
        }
        Ok(Self {
            fds,
            id,
            tos,
            quotes: QuoteSocket::open(remote.is_ipv6()).ok(),
        })
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
