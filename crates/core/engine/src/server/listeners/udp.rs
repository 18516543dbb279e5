//! First datagrams of UDP flows, on the server's port.
//!
//! UDP has no accept: the first datagram of a flow arrives at the server's port like any other. The
//! listener is the unconnected socket on that port, open while a dialect needs it. The first bytes
//! of a datagram decide on its dialect. When a flow is accepted, a new socket takes the listener's
//! place and the old one is connected to the sender, so that from then on the kernel itself keeps
//! the flows apart. Datagrams of others that had arrived in the old socket before are kept for the
//! dialects. One for which the kernel had looked up the old socket a moment before may still arrive
//! there after that (`__udp4_lib_lookup` holds no lock): the owner of a flow gives back what is not
//! from its sender.

use std::collections::{BTreeSet, VecDeque};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use linerate_model::spec::LocalOptions;
use linerate_sys::poll::{Epoll, Interest};
use linerate_sys::socket::{self, Connect, Protocol};
use linerate_sys::{OsError, udp};

use super::open_bound;
use crate::error::{EngineError, Operation};

/// The unconnected socket on the server's port.
pub(crate) struct UdpListener {
    /// Readable while the socket is.
    epoll: Epoll,
    socket: Option<Socket>,
    /// Dialects that need it.
    users: BTreeSet<&'static str>,
    waiting: VecDeque<FirstDatagram>,
}

struct Socket {
    fd: OwnedFd,
    local: LocalOptions,
    address: SocketAddr,
}

/// A datagram from an address without a flow.
#[derive(PartialEq, Eq)]
pub(crate) struct FirstDatagram {
    pub from: SocketAddr,
    /// The address as the socket has it, possibly IPv4-mapped.
    raw: SocketAddr,
    /// Its first bytes, at most [`FIRST_BYTES_MAX`].
    pub bytes: Vec<u8>,
}

/// Bytes of a first datagram that are kept.
const FIRST_BYTES_MAX: usize = 128;
/// Datagrams read per turn.
const DATAGRAMS_PER_TURN: usize = 256;

impl UdpListener {
    pub(crate) fn new() -> Result<Self, EngineError> {
        let epoll = Epoll::new().map_err(Operation::Init.failed())?;
        Ok(Self {
            epoll,
            socket: None,
            users: BTreeSet::new(),
            waiting: VecDeque::new(),
        })
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    /// Opens the socket for a dialect, at the address of the TCP listener.
    pub(crate) fn open(
        &mut self,
        user: &'static str,
        local: &LocalOptions,
        address: SocketAddr,
    ) -> Result<(), EngineError> {
        if self.socket.is_none() {
            let fd = self.bind(local, address)?;
            self.socket = Some(Socket {
                fd,
                local: local.clone(),
                address,
            });
        }

        self.users.insert(user);
        Ok(())
    }

    /// A dialect needs it no more.
    pub(crate) fn close(&mut self, user: &str) {
        self.users.remove(user);
        if self.users.is_empty() {
            self.socket = None;
            self.waiting.clear();
        }
    }

    /// Datagrams arrived at a socket that is a flow now.
    pub(crate) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Datagrams received since the last call. One that the network doubled is returned once.
    pub(crate) fn take(&mut self) -> Vec<FirstDatagram> {
        let mut datagrams: Vec<FirstDatagram> = self.waiting.drain(..).collect();
        if let Some(socket) = &self.socket {
            datagrams.extend(read(&socket.fd));
        }

        let mut seen: Vec<FirstDatagram> = Vec::with_capacity(datagrams.len());
        for datagram in datagrams {
            // A doubled first datagram would open a second flow for the same sender.
            if !seen.contains(&datagram) {
                seen.push(datagram);
            }
        }

        seen
    }

    /// Accepts a flow: the socket that received its first datagram is connected to its sender.
    pub(crate) fn accept(&mut self, first: &FirstDatagram) -> Result<OwnedFd, EngineError> {
        let fail = Operation::AcceptStream.failed();
        let Some(Socket { fd, local, address }) = self.socket.take() else {
            return Err(fail(OsError::new(
                "accept",
                first.from,
                ErrorKind::NotConnected.into(),
            )));
        };
        match self.bind(&local, address) {
            // Bound before the old socket is connected: at no moment the port is without a socket,
            // so no datagram meets an ICMP port unreachable.
            Ok(next) => {
                self.socket = Some(Socket {
                    fd: next,
                    local,
                    address,
                });
            }
            Err(error) => {
                self.socket = Some(Socket { fd, local, address });
                return Err(error);
            }
        }

        // Its data belong to a worker from here on.
        let _ = self.epoll.remove(&fd);
        match socket::connect(&fd, &first.raw).map_err(&fail)? {
            Connect::Done | Connect::InProgress => {}
        }

        // Datagrams that arrived before connect(2) stay in the queue, of any sender; the filter
        // of a connected socket applies to later ones only.
        self.waiting.extend(
            read(&fd)
                .into_iter()
                .filter(|datagram| datagram.from != first.from),
        );
        Ok(fd)
    }

    /// Takes back a datagram of another sender that a flow received.
    pub(crate) fn take_back(&mut self, datagram: FirstDatagram) {
        self.waiting.push_back(datagram);
    }

    /// Answers a first datagram without a flow for it.
    #[cfg(feature = "native")]
    pub(crate) fn answer(&self, first: &FirstDatagram, answer: &[u8]) -> std::io::Result<()> {
        let socket = self.socket.as_ref().ok_or(ErrorKind::NotConnected)?;
        udp::send_to(&socket.fd, answer, &first.raw).map(drop)
    }

    fn bind(&self, local: &LocalOptions, address: SocketAddr) -> Result<OwnedFd, EngineError> {
        let fail = Operation::ListenStream.failed();
        let fd = open_bound(local, address, Protocol::Udp).map_err(&fail)?;
        self.epoll.add(&fd, 0, Interest::READ).map_err(&fail)?;
        Ok(fd)
    }
}

/// Reads what arrived at the listener, or at a flow before its data.
pub(crate) fn read(fd: impl AsFd) -> Vec<FirstDatagram> {
    let mut buffer = [0; FIRST_BYTES_MAX];
    let mut datagrams = Vec::new();

    for _ in 0..DATAGRAMS_PER_TURN {
        let Ok((len, raw)) = udp::recv_from(&fd, &mut buffer) else {
            break;
        };
        let bytes = buffer.get(..len).unwrap_or(&buffer).to_vec();
        datagrams.push(FirstDatagram {
            from: socket::unmap(raw),
            raw,
            bytes,
        });
    }

    datagrams
}
