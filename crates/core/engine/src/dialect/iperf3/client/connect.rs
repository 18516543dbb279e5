//! Connecting without losing the ability to be interrupted.

use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};

use linerate_iperf3::wire::{Cookie, ErrorCode};
use linerate_model::spec::{BindSpec, ClientSpec};
use linerate_model::{Failure, FailureKind};
use linerate_sys::socket::{self, Family, Protocol, ResolveError};
use linerate_sys::{clock, sockopt};

use crate::dialect::iperf3::control_connection;
use crate::dialect::iperf3::error::failed;
use crate::interrupts::Interrupts;
use crate::wait::{WaitError, connect, family};

/// A control connection on which a server has received the cookie of a test.
#[derive(Debug)]
pub struct Established {
    /// The connection; non-blocking.
    pub fd: OwnedFd,
    /// The cookie that was sent.
    pub cookie: Cookie,
    /// Bytes of the server since then, as far as they were read.
    pub received: Vec<u8>,
}

/// A connected control socket.
pub(super) struct Connection {
    pub(super) fd: OwnedFd,
    pub(super) local: SocketAddr,
    pub(super) remote: SocketAddr,
    /// Time of the TCP handshake; absent where this client did not make the connection.
    pub(super) handshake: Option<Handshake>,
}

/// A TCP handshake of this end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Handshake {
    /// When the first segment left, monotonic ns.
    pub sent_ns: u64,
    /// When the connection was established, monotonic ns.
    pub established_ns: u64,
}

/// Takes over a connection that exists.
pub(super) fn take_over(spec: &ClientSpec, fd: OwnedFd) -> Result<Connection, Failure> {
    let fail = failed(ErrorCode::Connect);
    control_connection::prepare(&fd, &spec.local)?;
    let local = socket::local_addr(&fd).map_err(&fail)?;
    let remote = socket::peer_addr(&fd).map_err(&fail)?;

    Ok(Connection {
        fd,
        local,
        remote,
        handshake: None,
    })
}

/// Opens the control connection to the first address of the server that answers.
pub(super) fn control(
    spec: &ClientSpec,
    interrupts: &dyn Interrupts,
) -> Result<Connection, Failure> {
    let addresses = socket::resolve(
        &spec.host,
        spec.local.port,
        spec.local.bind.family.map(family),
    )
    .map_err(|e| ErrorCode::Connect.failure(Some(&e.to_string())))?;
    let mut last = ErrorCode::Connect.failure(None);

    for remote in addresses {
        match connect_one(spec, remote, interrupts) {
            Ok(connection) => return Ok(connection),
            Err(failure) if failure.kind == FailureKind::Interrupted => return Err(failure),
            Err(failure) => last = failure,
        }
    }

    Err(last)
}

fn connect_one(
    spec: &ClientSpec,
    remote: SocketAddr,
    interrupts: &dyn Interrupts,
) -> Result<Connection, Failure> {
    let fail = failed(ErrorCode::Connect);
    let fd = socket::open(&remote, Protocol::Tcp).map_err(&fail)?;
    bind(&fd, &spec.local.bind, None, &remote)?;
    control_connection::prepare(&fd, &spec.local)?;

    let sent_ns = clock::monotonic_ns();
    connect(&fd, &remote, spec.connect_timeout, interrupts)
        .map_err(|e| wait_failure(e, ErrorCode::Connect))?;
    let handshake = Some(Handshake {
        sent_ns,
        established_ns: clock::monotonic_ns(),
    });
    let local = socket::local_addr(&fd).map_err(&fail)?;

    Ok(Connection {
        local,
        remote: socket::unmap(remote),
        fd,
        handshake,
    })
}

/// Binds a client socket as the options request; `port` is that of a data stream.
pub(super) fn bind(
    fd: impl AsFd,
    wanted: &BindSpec,
    port: Option<u16>,
    remote: &SocketAddr,
) -> Result<(), Failure> {
    if let Some(device) = &wanted.device {
        sockopt::bind_device(&fd, device).map_err(failed(ErrorCode::Connect))?;
    }

    let family = Family::of(remote);
    let address = match (&wanted.host, port) {
        (Some(host), port) => {
            let found = socket::resolve(host, port.unwrap_or(0), Some(family)).map_err(
                |e: ResolveError| ErrorCode::StreamConnect.failure(Some(&e.to_string())),
            )?;
            found.into_iter().next()
        }
        (None, Some(port)) => Some(socket::wildcard(family, port)),
        (None, None) => None,
    };
    let Some(address) = address else {
        return Ok(());
    };

    sockopt::SO_REUSEADDR
        .set(&fd, true)
        .map_err(failed(ErrorCode::ReuseAddr))?;
    socket::bind(&fd, &address).map_err(failed(if port.is_some() {
        ErrorCode::StreamConnect
    } else {
        ErrorCode::Connect
    }))
}

/// The failure of a wait, with this code unless the user interrupted.
pub(super) fn wait_failure(error: WaitError, code: ErrorCode) -> Failure {
    match error {
        WaitError::Os(error) => failed(code)(error),
        WaitError::Interrupted(signal_text) => Failure::new(
            FailureKind::Interrupted,
            format!("the client has terminated by signal {signal_text}"),
        ),
    }
}
