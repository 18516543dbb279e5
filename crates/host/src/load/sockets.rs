//! Sockets of this network namespace (sock_diag(7), `linux/inet_diag.h`).

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use linerate_model::http::Peak;
use linerate_sys::netlink::{ANSWER_BYTES_MAX, Family, Netlink};
use linerate_sys::tcp_info::{TcpInfo, decode};

use super::error::ReadError;
use crate::netlink::{self as nl, attribute, u16_at, u32_at};

const BY_FAMILY: u16 = 20;
const TCP: u8 = 6;
/// `INET_DIAG_INFO`.
const INFO: u8 = 2;
const FAMILIES: [u8; 2] = [2, 10];
/// States of `net/tcp_states.h`.
const LISTEN: u8 = 10;
const ESTABLISHED: u8 = 1;
/// Every state in which a local port is taken by a connection.
const CONNECTED: u32 = 0xfff & !(1 << LISTEN) & !(1 << 7);
/// Messages of one response that are read; no host has more sockets.
const SOCKETS_MAX: u32 = 4_000_000;

/// One TCP socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TcpSocket {
    /// Number of its state (`net/tcp_states.h`).
    pub(crate) state: u8,
    /// Its own address.
    pub(crate) local: SocketAddr,
    /// Address of the other end.
    pub(crate) remote: SocketAddr,
    /// Of a listener: connections that wait to be accepted. Otherwise: bytes that wait to be read.
    pub(crate) receive_queue: u32,
    /// Of a listener: its backlog. Otherwise: bytes that wait to be acknowledged.
    pub(crate) send_queue: u32,
    /// Number by which `/proc/*/fd` names it; 0 for one that no process has.
    pub(crate) inode: u32,
    /// `TCP_INFO` of the connection, where it was requested.
    pub(crate) info: Option<TcpInfo>,
}

/// Reads one socket (`struct inet_diag_msg`).
#[must_use]
pub(crate) fn socket(payload: &[u8]) -> Option<TcpSocket> {
    const MESSAGE_BYTES: usize = 72;
    if payload.len() < MESSAGE_BYTES {
        return None;
    }
    let (family, state) = (*payload.first()?, *payload.get(1)?);
    let port = |at| u16_at(payload, at).map(u16::from_be);
    let address = |at| address(family, payload.get(at..at + 16)?);
    Some(TcpSocket {
        state,
        local: SocketAddr::new(address(8)?, port(4)?),
        remote: SocketAddr::new(address(24)?, port(6)?),
        receive_queue: u32_at(payload, 56)?,
        send_queue: u32_at(payload, 60)?,
        inode: u32_at(payload, 68)?,
        info: attribute(payload.get(MESSAGE_BYTES..)?, INFO.into()).and_then(decode),
    })
}

fn address(family: u8, bytes: &[u8]) -> Option<IpAddr> {
    match family {
        2 => {
            let octets: [u8; 4] = bytes.get(..4)?.try_into().ok()?;
            Some(Ipv4Addr::from(octets).into())
        }
        10 => {
            let octets: [u8; 16] = bytes.get(..16)?.try_into().ok()?;
            Some(Ipv6Addr::from(octets).to_canonical())
        }
        _ => None,
    }
}

/// Which sockets are requested.
#[derive(Debug, Clone, Copy)]
struct Wanted {
    states: u32,
    local_port: u16,
    remote_port: u16,
    /// With [`TcpSocket::info`].
    has_info: bool,
}

impl Wanted {
    /// Established connections of ports, 0 for any, with their `TCP_INFO`.
    fn established(local_port: u16, remote_port: u16) -> Self {
        Self {
            states: 1 << ESTABLISHED,
            local_port,
            remote_port,
            has_info: true,
        }
    }
}

/// `struct inet_diag_req_v2`.
fn question(family: u8, wanted: &Wanted) -> Vec<u8> {
    let extensions = if wanted.has_info { 1 << (INFO - 1) } else { 0 };
    let mut body = vec![family, TCP, extensions, 0];
    body.extend(wanted.states.to_ne_bytes());
    body.extend(wanted.local_port.to_be_bytes());
    body.extend(wanted.remote_port.to_be_bytes());
    body.resize(48, 0);
    // No particular socket (`INET_DIAG_NOCOOKIE`).
    body.extend([0xff; 8]);
    body
}

/// Connections by state (`net/tcp_states.h`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct States([u64; NAMES.len()]);

/// Names of the states as in ss(8).
const NAMES: [&str; 13] = [
    "unknown",
    "established",
    "syn-sent",
    "syn-recv",
    "fin-wait-1",
    "fin-wait-2",
    "time-wait",
    "closed",
    "close-wait",
    "last-ack",
    "listen",
    "closing",
    "new-syn-recv",
];

impl States {
    fn count(&mut self, state: u8) {
        if let Some(count) = self.0.get_mut(usize::from(state)) {
            *count += 1;
        }
    }

    /// All of them.
    pub(crate) fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Established ones.
    pub(crate) fn established(&self) -> u64 {
        self.0.get(usize::from(ESTABLISHED)).copied().unwrap_or(0)
    }

    /// Those states in which there are any.
    pub(crate) fn named(&self) -> BTreeMap<String, u64> {
        let found = NAMES.iter().zip(self.0).filter(|(_, count)| *count > 0);
        found.map(|(name, count)| ((*name).to_owned(), count)).collect()
    }
}

/// Asks the kernel for sockets.
#[derive(Debug)]
pub(crate) struct Sockets {
    netlink: Netlink,
    room: Vec<u8>,
    sequence: u32,
}

impl Sockets {
    /// Opens the way to the kernel.
    ///
    /// # Errors
    /// When the kernel refuses; kernels without `CONFIG_INET_DIAG` do not respond.
    pub(crate) fn open() -> Result<Self, ReadError> {
        let netlink = Netlink::open(Family::SockDiag)?;
        Ok(Self {
            netlink,
            room: vec![0; ANSWER_BYTES_MAX],
            sequence: 0,
        })
    }

    /// The queue of the listeners on a port, all together, against their backlogs; absent without a listener.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub(crate) fn accept_queue(&mut self, port: u16) -> Result<Option<Peak>, ReadError> {
        let mut found: Option<(u64, u64)> = None;
        self.listeners(port, |socket| {
            let (waiting, backlog) = found.unwrap_or_default();
            found = Some((
                waiting + u64::from(socket.receive_queue),
                backlog + u64::from(socket.send_queue),
            ));
        })?;
        Ok(found.map(|(peak, limit)| Peak {
            peak,
            limit: Some(limit),
        }))
    }

    /// Every listener on a port; on all ports for port 0.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub(crate) fn listeners(&mut self, port: u16, mut see: impl FnMut(&TcpSocket)) -> Result<(), ReadError> {
        let wanted = Wanted {
            states: 1 << LISTEN,
            local_port: port,
            remote_port: 0,
            has_info: false,
        };
        self.each(&wanted, |socket| {
            if port == 0 || socket.local.port() == port {
                see(socket);
            }
        })
    }

    /// Connections of a local port.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub(crate) fn of_port(&mut self, port: u16) -> Result<States, ReadError> {
        let wanted = Wanted {
            states: CONNECTED,
            local_port: port,
            remote_port: 0,
            has_info: false,
        };
        let mut states = States::default();
        self.each(&wanted, |socket| {
            if socket.local.port() == port {
                states.count(socket.state);
            }
        })?;
        Ok(states)
    }

    /// Connections to a server; each holds a local port, TIME_WAIT included.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub(crate) fn towards(&mut self, server: SocketAddr) -> Result<States, ReadError> {
        let wanted = Wanted {
            states: CONNECTED,
            local_port: 0,
            remote_port: server.port(),
            has_info: false,
        };
        let server = SocketAddr::new(server.ip().to_canonical(), server.port());
        let mut states = States::default();
        self.each(&wanted, |socket| {
            if socket.remote == server {
                states.count(socket.state);
            }
        })?;
        Ok(states)
    }

    /// Payload of a full segment that leaves by the connections of a local port, on most of them; absent without any.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub(crate) fn mss_of_port(&mut self, port: u16) -> Result<Option<u32>, ReadError> {
        let wanted = Wanted::established(port, 0);
        self.most_common(&wanted, |socket| {
            let info = socket.info.filter(|_| socket.local.port() == port)?;
            Some(info.snd_mss_bytes)
        })
    }

    /// Payload of the largest segment that may come by the connections to a server, on most of them; absent without any.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub(crate) fn mss_towards(&mut self, server: SocketAddr) -> Result<Option<u32>, ReadError> {
        let server = SocketAddr::new(server.ip().to_canonical(), server.port());
        let wanted = Wanted::established(0, server.port());
        self.most_common(&wanted, |socket| {
            let info = socket.info.filter(|_| socket.remote == server)?;
            Some(info.advertised_mss_bytes)
        })
    }

    /// The most common of the values that sockets have. One of 0 is none.
    fn most_common(
        &mut self,
        wanted: &Wanted,
        value: impl Fn(&TcpSocket) -> Option<u32>,
    ) -> Result<Option<u32>, ReadError> {
        let mut counts: BTreeMap<u32, u32> = BTreeMap::new();
        self.each(wanted, |socket| {
            if let Some(value) = value(socket).filter(|value| *value > 0) {
                *counts.entry(value).or_default() += 1;
            }
        })?;
        let most = counts.into_iter().max_by_key(|(_, count)| *count);
        Ok(most.map(|(value, _)| value))
    }

    fn each(&mut self, wanted: &Wanted, mut see: impl FnMut(&TcpSocket)) -> Result<(), ReadError> {
        FAMILIES
            .iter()
            .try_for_each(|family| self.dump(*family, wanted, &mut see))
    }

    fn dump(&mut self, family: u8, wanted: &Wanted, see: &mut impl FnMut(&TcpSocket)) -> Result<(), ReadError> {
        self.sequence = self.sequence.wrapping_add(1);
        let request = nl::request(BY_FAMILY, nl::DUMP, self.sequence, &question(family, wanted));
        self.netlink.send(&request)?;
        let mut left = SOCKETS_MAX;
        while left > 0 {
            let datagram = self.netlink.receive_into(&mut self.room)?;
            for message in nl::messages(datagram).filter(|message| message.sequence == self.sequence) {
                left = left.saturating_sub(1);
                match message.kind {
                    nl::DONE => return Ok(()),
                    nl::ERROR => return failure(nl::errno(message.payload)),
                    _ => socket(message.payload).iter().for_each(&mut *see),
                }
            }
        }
        Ok(())
    }
}

/// A kernel without IPv6 has no sockets of it.
fn failure(errno: i32) -> Result<(), ReadError> {
    const ENOENT: i32 = 2;
    match errno {
        0 => Ok(()),
        ENOENT => Err(ReadError::not_found("the kernel has no inet_diag")),
        errno => Err(ReadError::System(format!(
            "sock_diag: {}",
            linerate_sys::error::strerror(errno)
        ))),
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn listener_has_its_accept_queue_and_connection_its_port() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let server = listener.local_addr().expect("an address");
        let mut sockets = Sockets::open().expect("sock_diag");
        let before = sockets
            .accept_queue(server.port())
            .expect("an answer")
            .expect("a listener");
        assert_eq!(before.peak, 0);
        assert!(before.limit.is_some_and(|limit| limit > 0));
        let clients: Vec<TcpStream> = (0..3).map(|_| TcpStream::connect(server).expect("connect")).collect();
        let waiting = sockets
            .accept_queue(server.port())
            .expect("an answer")
            .expect("a listener");
        assert_eq!(waiting.peak, 3);
        let accepted = listener.accept().expect("one waits");
        assert_eq!(
            sockets
                .accept_queue(server.port())
                .expect("an answer")
                .map(|queue| queue.peak),
            Some(2)
        );
        let states = sockets.of_port(server.port()).expect("an answer");
        assert_eq!((states.established(), states.total()), (3, 3), "accepted or not");
        assert_eq!(states.named(), [("established".to_owned(), 3)].into());
        assert_eq!(sockets.towards(server).expect("an answer").total(), 3);
        let (sent, announced) = (sockets.mss_of_port(server.port()), sockets.mss_towards(server));
        let (sent, announced) = (sent.expect("an answer"), announced.expect("an answer"));
        assert!(sent > Some(0) && sent <= announced, "{sent:?} {announced:?}");
        drop((clients, accepted, listener));
        assert_eq!(sockets.accept_queue(server.port()), Ok(None), "no listener, no queue");
        assert_eq!(sockets.mss_towards(server), Ok(None), "no connection, no segment");
    }

    #[test]
    fn a_socket_is_read_and_a_short_one_is_not() {
        let mut message = vec![2, LISTEN, 0, 0];
        message.extend(8080_u16.to_be_bytes());
        message.extend(0_u16.to_be_bytes());
        message.extend([127, 0, 0, 1]);
        message.resize(56, 0);
        for number in [7_u32, 4096, 0, 31_337] {
            message.extend(number.to_ne_bytes());
        }
        let found = socket(&message).expect("whole");
        assert_eq!(found.local, "127.0.0.1:8080".parse().expect("an address"));
        assert_eq!((found.receive_queue, found.send_queue, found.inode), (7, 4096, 31_337));
        for length in 0..message.len() {
            assert_eq!(socket(&message[..length]), None, "{length}");
        }
        message[0] = 9;
        assert_eq!(socket(&message), None, "a family that is no IP");
    }
}
