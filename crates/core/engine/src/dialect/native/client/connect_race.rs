//! Connects to the first address of a server that answers; the families race (RFC 8305).

use std::collections::VecDeque;
use std::fmt;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use linerate_model::spec::BindSpec;
use linerate_sys::poll::Interest;
use linerate_sys::socket::{self, Family, Protocol};
use linerate_sys::{OsError, errno, sockopt};

use super::NativeError;
use super::event_loop::EventLoop;
use crate::interrupts::Interrupts;
use crate::wait::{family, first_address};

/// Where to connect to, and from where.
#[derive(Debug, Clone)]
pub struct Target {
    /// Name or address.
    pub host: String,
    /// TCP and UDP port.
    pub port: u16,
    /// Host and port of the control connection, where they are others than those of the data.
    pub control_via: Option<(String, u16)>,
    /// Local address and device.
    pub bind: BindSpec,
    /// Longest time for all addresses together.
    pub timeout: Duration,
}

impl Target {
    /// The server at `port` of `host`, from any local address; `timeout` is for all addresses of
    /// the host together.
    pub fn new(host: impl Into<String>, port: u16, timeout: Duration) -> Self {
        Self {
            host: host.into(),
            port,
            control_via: None,
            bind: BindSpec::default(),
            timeout,
        }
    }

    /// Where the control connection goes. To another host than the data it leaves by any local
    /// address.
    pub(super) fn control(&self) -> Self {
        match self.control_via.clone() {
            Some((host, port)) => Self {
                host,
                port,
                control_via: None,
                bind: BindSpec::default(),
                timeout: self.timeout,
            },
            None => self.clone(),
        }
    }
}

impl fmt::Display for Target {
    /// As command lines name it: `HOST:PORT`, and `[ADDRESS]:PORT` for IPv6.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// A connection that was made.
#[derive(Debug)]
pub struct Connection {
    /// The connection; calls on it do not block.
    pub fd: OwnedFd,
    /// Address of the server.
    pub remote: SocketAddr,
    /// Time of the TCP handshake.
    pub connect_time: Duration,
}

struct Attempt {
    fd: OwnedFd,
    remote: SocketAddr,
    started: Instant,
}

/// Head start of an address over the next one, RFC 8305 section 5.
const HEAD_START: Duration = Duration::from_millis(250);

/// Connects.
pub(super) fn dial(target: &Target, events: &mut EventLoop<'_>) -> Result<Connection, NativeError> {
    let wanted = target.bind.family.map(family);
    let addresses = socket::resolve(&target.host, target.port, wanted)
        .map_err(|error| NativeError::Unreachable(format!("{}: {error}", target.host)))?;
    race(interleaved(addresses), target, events)
}

/// Connects to one address.
pub(super) fn dial_address(
    remote: SocketAddr,
    target: &Target,
    interrupts: &dyn Interrupts,
) -> Result<Connection, NativeError> {
    race(
        VecDeque::from([remote]),
        target,
        &mut EventLoop::new(interrupts)?,
    )
}

/// Addresses of the two families in turns, in the resolver's order (RFC 8305 section 4).
fn interleaved(addresses: Vec<SocketAddr>) -> VecDeque<SocketAddr> {
    let first = addresses.first().map(SocketAddr::is_ipv6);
    let (mut one, mut other): (VecDeque<_>, VecDeque<_>) = addresses
        .into_iter()
        .partition(|address| Some(address.is_ipv6()) == first);
    let mut merged = VecDeque::new();

    while !one.is_empty() || !other.is_empty() {
        merged.extend(one.pop_front());
        merged.extend(other.pop_front());
    }

    merged
}

fn race(
    mut addresses: VecDeque<SocketAddr>,
    target: &Target,
    events: &mut EventLoop<'_>,
) -> Result<Connection, NativeError> {
    let end = Instant::now() + target.timeout;
    let mut attempts: Vec<Option<Attempt>> = Vec::new();
    let mut next = Instant::now();
    let mut last_error = NativeError::Unreachable(format!(
        "{}:{}: connection timed out",
        target.host, target.port
    ));
    loop {
        let now = Instant::now();
        let none_open = attempts.iter().all(Option::is_none);

        if let Some(remote) = addresses.front().copied()
            // A failed attempt does not wait for the head start (RFC 8305 section 5).
            && (now >= next || none_open)
        {
            addresses.pop_front();
            next = now + HEAD_START;

            match begin(remote, target) {
                Ok(attempt) => {
                    let watched =
                        // A connect that completes or fails makes the socket writable (connect(2),
                        // EINPROGRESS).
                        events.epoll.add(&attempt.fd, attempts.len() as u64, Interest::WRITE);
                    attempts.push(watched.is_ok().then_some(attempt));
                }
                Err(error) => last_error = failed(remote, &error),
            }

            continue;
        }

        if now >= end || none_open {
            return Err(last_error);
        }

        let until = if addresses.is_empty() {
            end
        } else {
            end.min(next)
        };
        events.wait(until.saturating_duration_since(now))?;

        for event in &events.ready {
            let index = usize::try_from(event.token).unwrap_or(usize::MAX);
            let Some(attempt) = attempts.get_mut(index).and_then(Option::take) else {
                continue;
            };
            // The other attempts are closed with this function; their servers see a connection
            // without a byte.
            let _ = events.epoll.remove(&attempt.fd);

            match socket::take_error(&attempt.fd) {
                Ok(()) => return Ok(attempt.won()),
                Err(error) => last_error = failed(attempt.remote, &error),
            }
        }
    }
}

fn failed(remote: SocketAddr, error: &OsError) -> NativeError {
    let text = format!("{remote}: {}", error.text());
    match error.errno() {
        Some(errno::ECONNREFUSED) => NativeError::ConnectionRefused(text),
        _ => NativeError::Unreachable(text),
    }
}

impl Attempt {
    fn won(self) -> Connection {
        let connect_time = self.started.elapsed();
        // Messages are small and wait for answers: with Nagle's algorithm each would wait for the
        // acknowledgement of the one before (RFC 896).
        let _ = sockopt::TCP_NODELAY.set(&self.fd, true);
        Connection {
            fd: self.fd,
            remote: socket::unmap(self.remote),
            connect_time,
        }
    }
}

fn begin(remote: SocketAddr, target: &Target) -> Result<Attempt, OsError> {
    match connect(remote, target, None) {
        // The kernel has no port to assign, for instance beside a load that holds them all.
        Err(error) if is_taken(&error) && target.bind.host.is_none() => {
            let mut attempts = PORTS.rev().map(|port| connect(remote, target, Some(port)));
            let connected = attempts.find(|attempt| !attempt.as_ref().is_err_and(is_taken));
            connected.unwrap_or(Err(error))
        }
        begun => begun,
    }
}

/// Ports for connections where the kernel assigns none, of which `net.ipv4.ip_local_port_range` is
/// a part.
const PORTS: RangeInclusive<u16> = 1024..=u16::MAX;

fn is_taken(error: &OsError) -> bool {
    matches!(
        error.errno(),
        Some(errno::EADDRINUSE | errno::EADDRNOTAVAIL)
    )
}

/// Segments of a control connection, in both directions: the smallest MTU of IPv6 (RFC 8200,
/// section 5) without IP and TCP headers. Its messages pass a path that drops full-size packets,
/// which is for the test to find.
const SEGMENT_MAX_BYTES: u32 = 1_280 - 40 - 20;

/// Begins to connect, from a port that the kernel assigns, or from this one.
fn connect(remote: SocketAddr, target: &Target, port: Option<u16>) -> Result<Attempt, OsError> {
    let fd = socket::open(&remote, Protocol::Tcp)?;
    bind(&fd, &target.bind, &remote)?;
    // Before connect(2): the value is announced in the SYN (tcp(7)).
    sockopt::TCP_MAXSEG.set(&fd, SEGMENT_MAX_BYTES)?;

    if let Some(port) = port {
        // Ports in TIME_WAIT of earlier connections are usable then.
        sockopt::SO_REUSEADDR.set(&fd, true)?;
        socket::bind(&fd, &socket::wildcard(Family::of(&remote), port))?;
    }

    let started = Instant::now();
    // Also of one that is complete at once the event follows.
    socket::connect(&fd, &remote)?;
    Ok(Attempt {
        fd,
        remote,
        started,
    })
}

/// Binds a socket to the local address and device that the user named.
///
/// # Errors
/// The operating system's; `EADDRNOTAVAIL` for a name without an address of the family.
pub fn bind(fd: impl AsFd, wanted: &BindSpec, remote: &SocketAddr) -> Result<(), OsError> {
    if let Some(device) = &wanted.device {
        sockopt::bind_device(&fd, device)?;
    }

    let Some(host) = &wanted.host else {
        return Ok(());
    };
    let found = first_address(host, 0, Some(Family::of(remote)));
    let absent = || {
        OsError::new(
            "bind",
            host,
            std::io::Error::from_raw_os_error(errno::EADDRNOTAVAIL),
        )
    };
    socket::bind(fd, &found.ok_or_else(absent)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_take_turns_in_the_order_of_the_resolver() {
        let addresses = ["[::1]:1", "[::2]:1", "127.0.0.1:1", "[::3]:1"]
            .map(|text| text.parse().expect("an address"));
        let texts: Vec<String> = interleaved(addresses.to_vec())
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(texts, ["[::1]:1", "127.0.0.1:1", "[::2]:1", "[::3]:1"]);
    }
}
