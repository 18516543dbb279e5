//! Opens the connections and flows of a client.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use linerate_model::spec::{ClientSpec, ConnectRetry};
use linerate_model::{Failure, FailureKind, Transport};
use linerate_sys::poll::Interest;
use linerate_sys::socket::{self, Connect, Family};
use linerate_sys::{OsError, sockopt};

use super::sockets;
use crate::error::failure;
use crate::interrupts::Interrupts;
use crate::wait::{WaitError, family, first_address, pause, wait};

/// A socket on its way to being connected.
pub(super) struct Unconnected {
    pub fd: OwnedFd,
    pub remote: SocketAddr,
    pub refused: Vec<String>,
}

/// A connected socket.
pub(super) struct Connected {
    pub fd: OwnedFd,
    pub took: Duration,
}

/// Default connect timeout.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Where the server is.
pub(super) fn resolve(spec: &ClientSpec) -> Result<SocketAddr, Failure> {
    let family = spec.local.bind.family.map(family);
    first_address(&spec.host, spec.local.port, family).ok_or_else(|| {
        Failure::error(
            UNKNOWN_HOST,
            format!("{}: Host name lookup failure", spec.host),
        )
    })
}

/// The one failure of a client with an exit code of its own in the original.
const UNKNOWN_HOST: i32 = 1;

/// The socket of one stream, bound and prepared.
pub(super) fn open(
    spec: &ClientSpec,
    server: SocketAddr,
    index: u32,
) -> Result<Unconnected, Failure> {
    let fan_out = spec.test.workload.fan_out;
    let mut remote = server;

    if fan_out.destination_port {
        remote.set_port(raised_port(server.port(), index)?);
    }

    if fan_out.destination_address {
        remote.set_ip(raised(server.ip(), index));
    }

    let fd = socket::open(&remote, sockets::protocol(spec.test.transport))
        .map_err(|e| os("socket", &e))?;
    if let Some(device) = &spec.local.end.peer_device
        && !is_scoped(&remote)
    {
        sockopt::bind_device(&fd, device).map_err(|e| os("bind to device", &e))?;
    }

    bind(spec, &fd, &remote, index)?;
    let sends = spec.test.direction != linerate_model::Direction::Reverse;
    let receives = spec.test.direction != linerate_model::Direction::Forward;
    let refused = sockets::prepare(&fd, &spec.test, sends, receives);

    Ok(Unconnected {
        fd,
        remote,
        refused,
    })
}

fn bind(spec: &ClientSpec, fd: &OwnedFd, remote: &SocketAddr, index: u32) -> Result<(), Failure> {
    let wanted = &spec.local.bind;
    let port = match wanted.client_port {
        Some(port) => raised_port(port, index)?,
        None if wanted.host.is_some() => 0,
        None => return Ok(()),
    };
    let mut address = local_address(spec, remote, port)?;

    if spec.test.workload.fan_out.source_address {
        address.set_ip(raised(address.ip(), index));
    }

    sockopt::SO_REUSEADDR
        .set(fd, true)
        .map_err(|e| os("bind", &e))?;
    socket::bind(fd, &address).map_err(|e| os("bind", &e))
}

/// The address of `-B`, or all addresses, with this port.
pub(super) fn local_address(
    spec: &ClientSpec,
    remote: &SocketAddr,
    port: u16,
) -> Result<SocketAddr, Failure> {
    let family = Family::of(remote);
    match &spec.local.bind.host {
        Some(host) => first_address(host, port, Some(family))
            .ok_or_else(|| failure(format!("{host}: Host name lookup failure"))),
        None => Ok(socket::wildcard(family, port)),
    }
}

fn is_scoped(address: &SocketAddr) -> bool {
    matches!(address, SocketAddr::V6(v6) if v6.scope_id() != 0)
}

fn raised_port(port: u16, index: u32) -> Result<u16, Failure> {
    let raised = u32::from(port).saturating_add(index);
    u16::try_from(raised).map_err(|_| failure(format!("there is no port {raised}")))
}

fn raised(address: IpAddr, index: u32) -> IpAddr {
    match address {
        IpAddr::V4(v4) => IpAddr::V4(v4.to_bits().wrapping_add(index).into()),
        IpAddr::V6(v6) => IpAddr::V6(v6.to_bits().wrapping_add(u128::from(index)).into()),
    }
}

/// Connects all sockets at the same time. The outer error is an interruption.
pub(super) fn connect_all(
    unconnected: Vec<Unconnected>,
    spec: &ClientSpec,
    interrupts: &dyn Interrupts,
) -> Result<Vec<Result<Connected, Failure>>, Failure> {
    let began: Vec<(Unconnected, Instant, Result<Connect, OsError>)> = unconnected
        .into_iter()
        .map(|unconnected| {
            let start = Instant::now();
            let outcome = socket::connect(&unconnected.fd, &unconnected.remote);
            (unconnected, start, outcome)
        })
        .collect();
    let timeout = spec.connect_timeout.unwrap_or(CONNECT_TIMEOUT);
    let mut connected = Vec::with_capacity(began.len());

    for (unconnected, start, outcome) in began {
        let outcome = match outcome {
            Ok(Connect::Done) => Ok(()),
            Ok(Connect::InProgress) => {
                let left = timeout.saturating_sub(start.elapsed());
                match wait(
                    unconnected.fd.as_fd(),
                    Interest::WRITE,
                    Some(left),
                    interrupts,
                ) {
                    Ok(()) => socket::take_error(&unconnected.fd),
                    Err(WaitError::Os(error)) => Err(error),
                    Err(WaitError::Interrupted(signal)) => return Err(interruption(&signal)),
                }
            }
            Err(error) => Err(error),
        };
        connected.push(match outcome {
            Ok(()) => Ok(Connected {
                took: start.elapsed(),
                fd: unconnected.fd,
            }),
            Err(error) => Err(os(
                &format!("{} connect", name(spec.test.transport)),
                &error,
            )),
        });
    }

    Ok(connected)
}

/// Limits the attempts of a client to connect.
pub(super) struct ConnectRetries {
    retry: Option<ConnectRetry>,
    attempts: u32,
    began: Instant,
}

impl ConnectRetries {
    pub(super) fn new(retry: Option<ConnectRetry>) -> Self {
        Self {
            retry,
            attempts: 0,
            began: Instant::now(),
        }
    }

    /// Waits for the next attempt; false when there is none.
    pub(super) fn wait(&mut self, interrupts: &dyn Interrupts) -> Result<bool, Failure> {
        let Some(retry) = self.retry else {
            return Ok(false);
        };
        self.attempts += 1;
        let is_spent = retry.attempts.is_some_and(|max| self.attempts > max);
        if is_spent
            || retry
                .within
                .is_some_and(|within| self.began.elapsed() >= within)
        {
            return Ok(false);
        }

        pause(retry.pause, interrupts).map_err(|signal| interruption(&signal))?;
        Ok(true)
    }
}

pub(super) fn interruption(signal: &str) -> Failure {
    Failure::new(FailureKind::Interrupted, format!("interrupted by {signal}"))
}

fn name(transport: Transport) -> &'static str {
    if transport == Transport::Udp {
        "udp"
    } else {
        "tcp"
    }
}

pub(super) fn os(what: &str, error: &OsError) -> Failure {
    failure(format!("{what} failed: {}", error.text()))
}
