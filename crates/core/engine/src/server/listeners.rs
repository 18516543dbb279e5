//! The sockets a server accepts connections on, and connections that have no session yet or no
//! more.

pub(crate) mod accept_pause;
pub(crate) mod accepted;
pub(crate) mod acceptor;
pub(crate) mod closing;
pub(crate) mod udp;

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use linerate_model::spec::{AddressFamily, LocalOptions};
use linerate_sys::caps::Capabilities;
use linerate_sys::poll::{self, Epoll, Interest};
use linerate_sys::socket::{self, Family, Protocol};
use linerate_sys::{OsError, errno, sockopt};

use super::intake::Intake;
use super::tokens::{LISTENER, token};
use crate::error::{EngineError, Operation};
use crate::wait::family;

/// The listeners of a server, by their index in the event loop.
pub(crate) struct Listeners {
    entries: BTreeMap<u64, Listener>,
    next_index: u64,
    /// Where the shared TCP listener is bound, with the true port.
    address: SocketAddr,
}

struct Listener {
    fd: OwnedFd,
    /// Index of the dialect of its connections, or of those that no dialect recognises.
    dialect: usize,
    /// The first bytes of a connection decide on its dialect.
    is_shared: bool,
    is_watched: bool,
}

const SHARED_TCP: u64 = 0;
/// On the same port, while a test needs it.
const SHARED_SCTP: u64 = 1;

/// As many waiting connections as the kernel allows (`net.core.somaxconn`).
const BACKLOG: i32 = i32::MAX;

impl Default for Listeners {
    fn default() -> Self {
        Self {
            entries: BTreeMap::new(),
            next_index: SHARED_SCTP + 1,
            address: socket::wildcard(Family::V6, 0),
        }
    }
}

impl Listeners {
    /// Opens the shared TCP listener, or opens it again; the warning is set when IPv6 is missing.
    pub(crate) fn open_shared(
        &mut self,
        local: &LocalOptions,
    ) -> Result<Option<String>, EngineError> {
        if let Some(Listener { fd, .. }) = self.entries.get(&SHARED_TCP) {
            // A socket that no longer listens leaves the port to the next one.
            let _ = socket::shutdown_both(fd);
        }

        let fail = Operation::Listen.failed();
        let mut address = wanted_address(local)?;
        let (fd, warning) = match listener(local, address) {
            Err(error)
                if error.errno() == Some(errno::EAFNOSUPPORT) && local.bind.family.is_none() =>
            {
                address = socket::wildcard(Family::V4, local.port);
                let text = "this system does not seem to support IPv6 - trying IPv4";
                (
                    listener(local, address).map_err(&fail)?,
                    Some(text.to_owned()),
                )
            }
            result => (result.map_err(&fail)?, None),
        };
        address.set_port(socket::local_addr(&fd).map_err(&fail)?.port());
        self.address = address;
        self.entries.insert(SHARED_TCP, Listener::new(fd, 0, true));

        Ok(warning)
    }

    /// Adds a listener all of whose connections belong to one dialect.
    pub(super) fn add(&mut self, fd: OwnedFd, dialect: usize) {
        self.entries
            .insert(self.next_index, Listener::new(fd, dialect, false));
        self.next_index += 1;
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Opens an SCTP listener on the port of the shared one, if there is none.
    pub(crate) fn open_sctp(&mut self, local: &LocalOptions) -> Result<(), EngineError> {
        if self.entries.contains_key(&SHARED_SCTP) {
            return Ok(());
        }

        let fail = Operation::ListenStream.failed();
        let fd = open_bound(local, self.address, Protocol::Sctp).map_err(&fail)?;
        socket::listen(&fd, BACKLOG).map_err(&fail)?;
        self.entries.insert(SHARED_SCTP, Listener::new(fd, 0, true));

        Ok(())
    }

    pub(crate) fn close_sctp(&mut self) {
        self.entries.remove(&SHARED_SCTP);
    }

    /// Closes the listeners of dialects that have closed, and waits for connections where they are
    /// accepted now.
    pub(super) fn watch(
        &mut self,
        epoll: &Epoll,
        may_accept: bool,
        intake: impl Fn(usize) -> Intake,
    ) {
        self.entries.retain(|_, listener| {
            let is_open = intake(listener.dialect) != Intake::Closed;
            if !is_open {
                let _ = socket::shutdown_both(&listener.fd);
            }
            is_open
        });
        for (index, listener) in &mut self.entries {
            let wanted = may_accept && intake(listener.dialect) != Intake::Paused;
            if wanted == listener.is_watched {
                continue;
            }

            // It fails only when memory is short, and is tried again in the next turn.
            let outcome = if wanted {
                epoll.add(&listener.fd, token(*index, LISTENER), Interest::READ)
            } else {
                epoll.remove(&listener.fd)
            };
            if outcome.is_ok() {
                listener.is_watched = wanted;
            }
        }
    }

    /// Connections wait that are not accepted now.
    pub(crate) fn have_waiting(&self) -> bool {
        let mut unwatched = self
            .entries
            .values()
            .filter(|listener| !listener.is_watched);
        unwatched.any(|listener| {
            poll::wait_fd(&listener.fd, Interest::READ, Some(Duration::ZERO))
                .is_ok_and(|waits| waits)
        })
    }

    /// Takes the connections of a listener; returns its dialect, whether it is shared, and an error
    /// when the system has no descriptor or memory left.
    pub(super) fn accept(
        &self,
        index: u64,
        accepted: &mut Vec<(OwnedFd, SocketAddr)>,
    ) -> Option<(usize, bool, io::Result<()>)> {
        let listener = self.entries.get(&index)?;
        let outcome = accept(listener.fd.as_fd(), accepted);
        Some((listener.dialect, listener.is_shared, outcome))
    }
}

impl Listener {
    fn new(fd: OwnedFd, dialect: usize, is_shared: bool) -> Self {
        Self {
            fd,
            dialect,
            is_shared,
            is_watched: false,
        }
    }
}

fn listener(local: &LocalOptions, address: SocketAddr) -> Result<OwnedFd, OsError> {
    // A Multipath TCP listener serves plain TCP clients as well (RFC 8684 section 3.7), so one
    // socket is enough.
    let fd = match open_bound(local, address, Protocol::Mptcp) {
        Ok(fd) if Capabilities::probe().mptcp => fd,
        _ => open_bound(local, address, Protocol::Tcp)?,
    };
    socket::listen(&fd, BACKLOG)?;
    Ok(fd)
}

/// A socket bound to the server's port, with the server's options; also used for UDP.
fn open_bound(
    local: &LocalOptions,
    address: SocketAddr,
    protocol: Protocol,
) -> Result<OwnedFd, OsError> {
    let v6_only = local.bind.family == Some(AddressFamily::V6);
    open_bound_with(address, protocol, v6_only, |fd| match &local.bind.device {
        Some(device) => sockopt::bind_device(fd, device),
        None => Ok(()),
    })
}

/// A socket bound to the server's port; `prepare` sets options before that.
pub(crate) fn open_bound_with(
    address: SocketAddr,
    protocol: Protocol,
    v6_only: bool,
    prepare: impl FnOnce(&OwnedFd) -> Result<(), OsError>,
) -> Result<OwnedFd, OsError> {
    let fd = socket::open(&address, protocol)?;
    sockopt::SO_REUSEADDR.set(&fd, true)?;

    if address.is_ipv6() {
        sockopt::IPV6_V6ONLY.set(&fd, v6_only)?;
    }

    prepare(&fd)?;
    socket::bind(&fd, &address)?;
    Ok(fd)
}

/// Address that the server binds to: the user's, or the wildcard that covers both families.
fn wanted_address(local: &LocalOptions) -> Result<SocketAddr, EngineError> {
    let family = local.bind.family.map(family);
    let unresolved = |source| EngineError::Resolve {
        operation: Operation::Listen,
        source,
    };

    if let Some(host) = &local.bind.host {
        let addresses =
            socket::resolve(host, local.port, family).map_err(|e| unresolved(Some(e)))?;
        return addresses.into_iter().next().ok_or_else(|| unresolved(None));
    }

    Ok(socket::wildcard(family.unwrap_or(Family::V6), local.port))
}

/// Limit of connections accepted per turn, for fairness to the sessions.
const ACCEPTS_PER_TURN: u32 = 64;

fn accept(listener: BorrowedFd<'_>, accepted: &mut Vec<(OwnedFd, SocketAddr)>) -> io::Result<()> {
    for _ in 0..ACCEPTS_PER_TURN {
        match socket::accept(listener) {
            Ok(Some((fd, peer))) => {
                let peer = socket::unmap(peer);
                tracing::debug!(%peer, "connection accepted");
                accepted.push((fd, peer));
            }
            Ok(None) => return Ok(()),
            Err(error) if is_exhausted(&error) => return Err(error),
            // One connection that broke while it waited (accept(2), "Error handling") is no reason
            // to leave the others.
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
