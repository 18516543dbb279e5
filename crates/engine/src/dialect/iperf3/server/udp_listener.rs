//! Accepts UDP streams.
//!
//! UDP has no accept: the first datagram of a flow arrives at the server's port like any other. The listener is the
//! unconnected socket on that port. When a hello is accepted, a new listener takes its place and the old one is connected to
//! the sender, so that from then on the kernel itself keeps the flows apart. Datagrams of others that had arrived in
//! the old socket before are handed to the new listener.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};

use linerate_iperf3::udp_header;
use linerate_model::spec::LocalOptions;
use linerate_sys::poll::Epoll;
use linerate_sys::socket::{self, Connect, Protocol};
use linerate_sys::{OsError, udp};

use super::READ;
use crate::error::{EngineError, Operation};
use crate::server::listeners::open_bound;

/// The unconnected socket on the server's port.
#[derive(Debug)]
pub(super) struct UdpListener {
    fd: OwnedFd,
    address: SocketAddr,
    waiting: VecDeque<Hello>,
}

/// A datagram from an address without a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Hello {
    pub(super) from: SocketAddr,
    /// The address as the socket knows it, possibly IPv4-mapped.
    raw: SocketAddr,
}

/// Datagrams looked at per turn.
const HELLOS_PER_TURN: usize = 256;

impl UdpListener {
    /// Binds to the address of the TCP listener.
    pub(super) fn open(
        local: &LocalOptions,
        address: SocketAddr,
        epoll: &Epoll,
        token: u64,
    ) -> Result<Self, EngineError> {
        let fail = Operation::ListenStream.failed();
        let fd = open_bound(local, address, Protocol::Udp).map_err(&fail)?;
        epoll.add(fd.as_fd(), token, READ).map_err(&fail)?;
        Ok(Self { fd, address, waiting: VecDeque::new() })
    }

    /// Hellos arrived at a socket that has become a stream since.
    pub(super) fn has_pending(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Hellos received since the last call.
    pub(super) fn hellos(&mut self) -> Vec<Hello> {
        let mut hellos: Vec<Hello> = self.waiting.drain(..).collect();
        hellos.extend(read_hellos(&self.fd));
        // A datagram that the network doubled is one hello.
        let mut seen = Vec::with_capacity(hellos.len());
        hellos.retain(|h| {
            !seen.contains(&h.from) && {
                seen.push(h.from);
                true
            }
        });
        hellos
    }

    /// Lets a flow in: its socket is connected and its hello answered.
    pub(super) fn admit(
        &mut self,
        hello: &Hello,
        local: &LocalOptions,
        epoll: &Epoll,
        token: u64,
        reply: &[u8],
    ) -> Result<OwnedFd, EngineError> {
        let fail = Operation::AcceptStream.failed();
        let next = open_bound(local, self.address, Protocol::Udp).map_err(&fail)?;
        epoll.add(next.as_fd(), token, READ).map_err(&fail)?;
        let flow = std::mem::replace(&mut self.fd, next);
        let _ = epoll.remove(flow.as_fd());
        match socket::connect(flow.as_fd(), &hello.raw).map_err(&fail)? {
            Connect::Done | Connect::InProgress => {}
        }
        self.waiting.extend(read_hellos(&flow).into_iter().filter(|h| h.from != hello.from));
        let sent = udp::send(flow.as_fd(), reply).map_err(|source| OsError::new("send", hello.from, source));
        sent.map_err(Operation::WriteStream.failed())?;
        Ok(flow)
    }
}

/// Reads the datagrams queued in a socket. A hello is recognised by its length alone, its content depends on the age and
/// byte order of the client; anything longer is late data of an earlier test.
fn read_hellos(fd: &OwnedFd) -> Vec<Hello> {
    let mut buffer = [0; 64];
    let mut hellos = Vec::new();
    for _ in 0..HELLOS_PER_TURN {
        match udp::recv_from(fd.as_fd(), &mut buffer) {
            Ok((n, _)) if n != udp_header::HELLO.len() => {}
            Ok((_, raw)) => hellos.push(Hello { from: socket::unmap(raw), raw }),
            Err(_) => break,
        }
    }
    hellos
}
