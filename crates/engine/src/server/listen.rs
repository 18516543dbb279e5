//! The sockets a server waits on.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use linerate_model::spec::{AddressFamily, LocalOptions};
use linerate_sys::caps::Capabilities;
use linerate_sys::socket::{self, Family, Protocol};
use linerate_sys::{OsError, errno, sockopt};

use crate::error::{EngineError, Operation};

/// TCP listener, and an SCTP one while a test needs it.
#[derive(Debug)]
pub(crate) struct Listeners {
    tcp: OwnedFd,
    /// Where the TCP listener is bound, with the true port.
    address: SocketAddr,
    sctp: Option<OwnedFd>,
}

/// As many waiting connections as the kernel allows (`net.core.somaxconn`).
const BACKLOG: i32 = i32::MAX;

impl Listeners {
    /// Opens the TCP listener; the warning is set when IPv6 is missing.
    pub(crate) fn open(local: &LocalOptions) -> Result<(Self, Option<String>), EngineError> {
        let mut address = wanted_address(local)?;
        let (tcp, warning) = match listener(local, address) {
            Err(error) if error.errno() == Some(errno::EAFNOSUPPORT) && local.bind.family.is_none() => {
                address = socket::wildcard(Family::V4, local.port);
                let text = "this system does not seem to support IPv6 - trying IPv4";
                (
                    listener(local, address).map_err(Operation::Listen.failed())?,
                    Some(text.to_owned()),
                )
            }
            result => (result.map_err(Operation::Listen.failed())?, None),
        };
        address.set_port(
            socket::local_addr(tcp.as_fd())
                .map_err(Operation::Listen.failed())?
                .port(),
        );
        Ok((
            Self {
                tcp,
                address,
                sctp: None,
            },
            warning,
        ))
    }

    /// Closes the TCP listener and opens it again.
    pub(crate) fn reopen(&mut self, local: &LocalOptions) -> Result<(), EngineError> {
        // A socket that no longer listens leaves the port to the next one.
        let _ = socket::shutdown_both(self.tcp.as_fd());
        self.tcp = Self::open(local)?.0.tcp;
        Ok(())
    }

    pub(crate) fn tcp(&self) -> BorrowedFd<'_> {
        self.tcp.as_fd()
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn sctp(&self) -> Option<BorrowedFd<'_>> {
        self.sctp.as_ref().map(OwnedFd::as_fd)
    }

    /// The listeners that are open, with their names in the event loop.
    pub(crate) fn all(&self, tokens: [u64; 2]) -> impl Iterator<Item = (BorrowedFd<'_>, u64)> {
        let listeners = [Some(self.tcp()), self.sctp()];
        listeners
            .into_iter()
            .zip(tokens)
            .filter_map(|(l, token)| Some((l?, token)))
    }

    /// Opens the SCTP listener on the same port; true when it is new.
    pub(crate) fn open_sctp(&mut self, local: &LocalOptions) -> Result<bool, EngineError> {
        if self.sctp.is_some() {
            return Ok(false);
        }
        let fail = Operation::ListenStream.failed();
        let fd = open_bound(local, self.address, Protocol::Sctp).map_err(&fail)?;
        socket::listen(fd.as_fd(), BACKLOG).map_err(&fail)?;
        self.sctp = Some(fd);
        Ok(true)
    }

    pub(crate) fn close_sctp(&mut self) {
        self.sctp = None;
    }
}

fn listener(local: &LocalOptions, address: SocketAddr) -> Result<OwnedFd, OsError> {
    // A Multipath TCP listener serves plain TCP clients as well (RFC 8684 section 3.7), so one socket is enough.
    let fd = match open_bound(local, address, Protocol::Mptcp) {
        Ok(fd) if Capabilities::probe().mptcp => fd,
        _ => open_bound(local, address, Protocol::Tcp)?,
    };
    socket::listen(fd.as_fd(), BACKLOG)?;
    Ok(fd)
}

/// A socket bound to the server's port; also used for UDP.
pub(crate) fn open_bound(local: &LocalOptions, address: SocketAddr, protocol: Protocol) -> Result<OwnedFd, OsError> {
    let fd = socket::open(&address, protocol)?;
    if let Some(device) = &local.bind.device {
        sockopt::bind_device(fd.as_fd(), device)?;
    }
    sockopt::set_reuse_addr(fd.as_fd(), true)?;
    if address.is_ipv6() {
        sockopt::set_v6_only(fd.as_fd(), local.bind.family == Some(AddressFamily::V6))?;
    }
    socket::bind(fd.as_fd(), &address)?;
    Ok(fd)
}

/// What the server binds to: the user's address, or the wildcard that covers both families.
fn wanted_address(local: &LocalOptions) -> Result<SocketAddr, EngineError> {
    let family = local.bind.family.map(|f| match f {
        AddressFamily::V4 => Family::V4,
        AddressFamily::V6 => Family::V6,
    });
    let unresolved = |source| EngineError::Resolve {
        operation: Operation::Listen,
        source,
    };
    if let Some(host) = &local.bind.host {
        let addresses = socket::resolve(host, local.port, family).map_err(|e| unresolved(Some(e)))?;
        return addresses.into_iter().next().ok_or_else(|| unresolved(None));
    }
    Ok(socket::wildcard(family.unwrap_or(Family::V6), local.port))
}

/// Connections accepted per turn, so that a flood of them leaves the sessions their turn.
const ACCEPTS_PER_TURN: u32 = 64;

/// Takes what waits at a listener.
///
/// # Errors
/// When the system has no descriptor or memory left.
pub(crate) fn accept(listener: BorrowedFd<'_>, accepted: &mut Vec<(OwnedFd, SocketAddr)>) -> io::Result<()> {
    for _ in 0..ACCEPTS_PER_TURN {
        match socket::accept(listener) {
            Ok(Some((fd, peer))) => {
                let peer = socket::unmap(peer);
                tracing::debug!(%peer, "connection accepted");
                accepted.push((fd, peer));
            }
            Ok(None) => return Ok(()),
            Err(error) if is_exhausted(&error) => return Err(error),
            // One connection that broke while it waited (accept(2), "Error handling") is no reason to leave the others.
            Err(_) => {}
        }
    }
    Ok(())
}

fn is_exhausted(error: &io::Error) -> bool {
    let code = error.raw_os_error();
    [errno::EMFILE, errno::ENFILE, errno::ENOBUFS, errno::ENOMEM]
        .into_iter()
        .any(|e| code == Some(e))
        || error.kind() == ErrorKind::OutOfMemory
}
