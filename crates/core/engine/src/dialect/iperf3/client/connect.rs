//! Connecting without losing the ability to be interrupted.

use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use linerate_iperf3::wire::{Cookie, ErrorCode, State};
use linerate_model::spec::{BindSpec, ClientSpec};
use linerate_model::{Event, Failure, FailureKind, PortRange};
use linerate_sys::error::io_text;
use linerate_sys::poll::Interest;
use linerate_sys::socket::{self, Family, Protocol, ResolveError};
use linerate_sys::{clock, random, sockopt, stream_io};

use crate::dialect::iperf3::control_connection;
use crate::dialect::iperf3::error::failed;
use crate::error::EngineError;
use crate::interrupts::Interrupts;
use crate::reporter::Reporter;
use crate::wait::{WaitError, connect, family, wait};

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
    pub fd: OwnedFd,
    pub local: SocketAddr,
    pub remote: SocketAddr,
    /// Time of the TCP handshake; absent where this client did not make the connection.
    pub handshake: Option<Handshake>,
}

/// A TCP handshake of this end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Handshake {
    /// When the first segment left, monotonic ns.
    pub sent_ns: u64,
    /// When the connection was established, monotonic ns.
    pub established_ns: u64,
}

/// A cookie that the server received, and its bytes since then, as far as they were read.
pub(super) type Greeting = (Cookie, Vec<u8>);

/// The control connection of a test: one that exists, the first of a range of ports that is free,
/// or a new one, without a cookie yet.
pub(super) fn open(
    established: Option<Established>,
    spec: &mut ClientSpec,
    reporter: &mut Reporter<'_>,
    interrupts: &dyn Interrupts,
) -> Result<(Connection, Option<Greeting>), Failure> {
    if let Some(Established {
        fd,
        cookie,
        received,
    }) = established
    {
        return Ok((take_over(spec, fd)?, Some((cookie, received))));
    }

    let Some(ports) = spec.ports else {
        return Ok((control(spec, interrupts)?, None));
    };
    let (connection, greeting) = first_free(ports, spec, interrupts)?;
    if let Some(remark) = ports.remark(spec.local.port) {
        reporter.emit(&Event::Warning(remark));
    }

    Ok((connection, Some(greeting)))
}

fn take_over(spec: &ClientSpec, fd: OwnedFd) -> Result<Connection, Failure> {
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

/// Why there is no control connection.
pub(super) struct Unconnected {
    failure: Failure,
    /// No server listens at the port, or it is busy: another port may serve.
    is_taken: bool,
}

impl From<Failure> for Unconnected {
    fn from(failure: Failure) -> Self {
        let is_taken = false;
        Self { failure, is_taken }
    }
}

impl From<EngineError> for Unconnected {
    fn from(error: EngineError) -> Self {
        Failure::from(error).into()
    }
}

impl From<Unconnected> for Failure {
    fn from(unconnected: Unconnected) -> Self {
        unconnected.failure
    }
}

/// Longest wait for the first byte of a server, where it decides which port is used.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// Connects to the first port of a range whose server is not busy, and sends the cookie. The port
/// is then that of `spec`. Returns with the connection what [`Established`] adds to it.
fn first_free(
    ports: PortRange,
    spec: &mut ClientSpec,
    interrupts: &dyn Interrupts,
) -> Result<(Connection, Greeting), Failure> {
    let attempt = |port, _| {
        spec.local.port = port;
        introduced(spec, interrupts)
    };
    let connected = ports.first_free(attempt, |unconnected| unconnected.is_taken);
    connected.map_err(|Unconnected { failure, is_taken }| {
        if is_taken {
            Failure {
                message: format!("ports {ports}: {failure}"),
                ..failure
            }
        } else {
            failure
        }
    })
}

fn introduced(
    spec: &ClientSpec,
    interrupts: &dyn Interrupts,
) -> Result<(Connection, Greeting), Unconnected> {
    let connection = control(spec, interrupts)?;
    let cookie = Cookie::from_random(random::bytes());
    stream_io::send(&connection.fd, &cookie.wire())
        .map_err(|error| ErrorCode::SendCookie.failure(Some(&io_text(&error))))?;

    let answered = wait(
        &connection.fd,
        Interest::READ,
        Some(ANSWER_TIMEOUT),
        interrupts,
    );
    if let Err(error @ WaitError::Interrupted(_)) = answered {
        return Err(wait_failure(error, ErrorCode::RecvMessage).into());
    }

    let mut state = [0];
    // A server without an answer may have a queue: the test waits on this connection.
    let received = stream_io::recv(&connection.fd, &mut state).unwrap_or_default();
    match state.get(..received).unwrap_or_default() {
        [byte] if *byte == State::AccessDenied.byte() => Err(Unconnected {
            failure: ErrorCode::AccessDenied.failure(None),
            is_taken: true,
        }),
        received => Ok((connection, (cookie, received.to_vec()))),
    }
}

/// Opens the control connection to the first address of the server that answers.
fn control(spec: &ClientSpec, interrupts: &dyn Interrupts) -> Result<Connection, Unconnected> {
    let addresses = socket::resolve(
        &spec.host,
        spec.local.port,
        spec.local.bind.family.map(family),
    )
    .map_err(|e| ErrorCode::Connect.failure(Some(&e.to_string())))?;
    let mut last = Unconnected::from(ErrorCode::Connect.failure(None));

    for remote in addresses {
        match connect_one(spec, remote, interrupts) {
            Ok(connection) => return Ok(connection),
            Err(error) if error.failure.kind == FailureKind::Interrupted => return Err(error),
            Err(error) => last = error,
        }
    }

    Err(last)
}

fn connect_one(
    spec: &ClientSpec,
    remote: SocketAddr,
    interrupts: &dyn Interrupts,
) -> Result<Connection, Unconnected> {
    let fail = failed(ErrorCode::Connect);
    let fd = socket::open(&remote, Protocol::Tcp).map_err(&fail)?;
    bind(&fd, &spec.local.bind, None, &remote)?;
    control_connection::prepare(&fd, &spec.local)?;

    let sent_ns = clock::monotonic_ns();
    connect(&fd, &remote, spec.connect_timeout, interrupts).map_err(|error| Unconnected {
        is_taken: error.is_refused(),
        failure: wait_failure(error, ErrorCode::Connect),
    })?;
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
