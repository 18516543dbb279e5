//! First datagrams of UDP flows, on the server's port.
//!
//! UDP has no accept: the first datagram of a flow arrives at the server's port like any other. The
//! listener is the unconnected socket on that port, open while a dialect needs it. The first bytes
//! of a datagram decide on its dialect. An accepted flow gets a socket of its own, connected to the
//! sender, so that from then on the kernel itself keeps the flows apart. Datagrams of others that
//! arrive there between bind(2) and connect(2) are kept for the dialects. One for which the kernel
//! had looked up that socket a moment before may still arrive after that (`__udp4_lib_lookup` holds
//! no lock): the owner of a flow gives back what is not from its sender.

use std::collections::{BTreeSet, VecDeque};
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, SocketAddrV6};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use linerate_model::spec::LocalOptions;
use linerate_sys::poll::{Epoll, Interest};
use linerate_sys::socket::{self, Connect, Protocol};
use linerate_sys::{OsError, sockopt, udp};

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
    /// Local address that it was sent to.
    to: Option<IpAddr>,
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
            let fail = Operation::ListenStream.failed();
            let fd = open_bound(local, address, Protocol::Udp).map_err(&fail)?;
            sockopt::set_receive_destination(&fd, true).map_err(&fail)?;
            self.epoll.add(&fd, 0, Interest::READ).map_err(&fail)?;
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

    /// Accepts a flow: a socket that is connected to the sender of its first datagram.
    pub(crate) fn accept(&mut self, first: &FirstDatagram) -> Result<OwnedFd, EngineError> {
        let fail = Operation::AcceptStream.failed();
        let Some(Socket { local, address, .. }) = &self.socket else {
            return Err(fail(OsError::new(
                "accept",
                first.from,
                ErrorKind::NotConnected.into(),
            )));
        };

        let own = flow_address(*address, first.from, first.to);
        let fd = open_bound(local, own, Protocol::Udp).map_err(&fail)?;
        match socket::connect(&fd, &first.from).map_err(&fail)? {
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
        udp::send_from(&socket.fd, answer, first.to, &first.from).map(drop)
    }
}

/// Local address of the socket of a flow: where the listener is bound, or of a listener on all
/// addresses the one that the first datagram was sent to.
///
/// On a socket bound to all addresses, connect(2) chooses the local address by the route to the
/// sender, which may be another one, and moves the socket to another hash chain of the kernel. A
/// lookup that has reached such a socket then misses the listener, and the sender of another
/// datagram gets an ICMP port unreachable: Linux 6.18, loopback, 600,000 flows accepted beside two
/// senders: 2,100 of 4.3 million datagrams refused (9 of 3.6 million where the listener itself is
/// connected and replaced), none of 14.4 million with a bound address.
pub(crate) fn flow_address(
    listener: SocketAddr,
    from: SocketAddr,
    to: Option<IpAddr>,
) -> SocketAddr {
    let Some(to) = to.filter(|_| listener.ip().is_unspecified()) else {
        return listener;
    };

    match (to, from) {
        // A link-local address is bound together with its interface (ipv6(7)).
        (IpAddr::V6(to), SocketAddr::V6(from)) => {
            SocketAddrV6::new(to, listener.port(), 0, from.scope_id()).into()
        }
        _ => SocketAddr::new(to, listener.port()),
    }
}

/// Reads what arrived at the listener, or at a flow before its data.
pub(crate) fn read(fd: impl AsFd) -> Vec<FirstDatagram> {
    let mut buffer = [0; FIRST_BYTES_MAX];
    let mut datagrams = Vec::new();

    for _ in 0..DATAGRAMS_PER_TURN {
        let Ok(message) = udp::recv_message(&fd, &mut buffer) else {
            break;
        };
        let Some(from) = message.from else { continue };
        datagrams.push(FirstDatagram {
            from,
            to: message.to,
            bytes: message.data.to_vec(),
        });
    }

    datagrams
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr, UdpSocket};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    use super::*;

    const FLOWS: u32 = 20_000;

    #[test]
    fn no_datagram_is_refused_while_flows_are_accepted() -> Result<(), Box<dyn std::error::Error>> {
        let port = UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0))?
            .local_addr()?
            .port();
        let mut listener = UdpListener::new()?;
        let all = SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), port);
        listener.open("test", &LocalOptions::default(), all)?;

        let others = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        others.connect((Ipv4Addr::LOCALHOST, port))?;
        let first = FirstDatagram {
            from: (Ipv4Addr::new(127, 0, 0, 2), port).into(),
            to: Some(Ipv4Addr::LOCALHOST.into()),
            bytes: vec![0],
        };
        let are_accepted = AtomicBool::new(false);

        thread::scope(|scope| -> Result<(), Box<dyn std::error::Error>> {
            let sender = scope.spawn(|| {
                while !are_accepted.load(Ordering::Relaxed) {
                    // An ICMP port unreachable is an error of the next call.
                    others.send(&[0])?;
                }
                Ok::<(), std::io::Error>(())
            });

            let accepted = (0..FLOWS).try_for_each(|_| {
                let flow = listener.accept(&first).map(drop);
                listener.take();
                flow
            });
            are_accepted.store(true, Ordering::Relaxed);
            sender.join().map_err(|_| "the sender panicked")??;
            accepted?;
            Ok(())
        })
    }

    #[test]
    fn a_flow_is_bound_where_its_first_datagram_was_sent_to() -> Result<(), std::net::AddrParseError>
    {
        // Listener, sender, destination, address of the flow.
        let cases = [
            ("[::]:5201", "192.0.2.9:7", "192.0.2.1", "192.0.2.1:5201"),
            ("0.0.0.0:5201", "192.0.2.9:7", "192.0.2.1", "192.0.2.1:5201"),
            (
                "192.0.2.1:5201",
                "192.0.2.9:7",
                "192.0.2.1",
                "192.0.2.1:5201",
            ),
            ("[::]:5201", "[fe80::9%3]:7", "fe80::1", "[fe80::1%3]:5201"),
            (
                "[::]:5201",
                "[2001:db8::9]:7",
                "2001:db8::1",
                "[2001:db8::1]:5201",
            ),
            (
                "239.1.1.1:5001",
                "192.0.2.9:7",
                "239.1.1.1",
                "239.1.1.1:5001",
            ),
        ];
        for (listener, from, to, own) in cases {
            let bound = flow_address(listener.parse()?, from.parse()?, Some(to.parse()?));
            assert_eq!(bound, own.parse()?, "{listener}");
        }

        Ok(())
    }
}
