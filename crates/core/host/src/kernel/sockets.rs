//! Sockets of this network namespace (sock_diag(7), `linux/inet_diag.h`).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

use linerate_model::http::Peak;
use linerate_sys::netlink::Family;
use linerate_sys::tcp_info::{TcpInfo, decode};

use crate::prelude::*;

const BY_FAMILY: u16 = 20;
const TCP: u8 = 6;
/// `INET_DIAG_INFO` and `INET_DIAG_CONG`.
const INFO: u8 = 2;
const CONGESTION: u8 = 4;
const FAMILIES: [u8; 2] = [2, 10];
/// States of `net/tcp_states.h`.
const LISTEN: u8 = 10;
const ESTABLISHED: u8 = 1;
/// Every state in which a local port is taken by a connection.
const CONNECTED: u32 = 0xfff & !(1 << LISTEN) & !(1 << 7);

/// Which connections are those of the test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tested {
    /// None that is known.
    Nothing,
    /// Those to a port of this host.
    Server {
        /// The port.
        port: u16,
    },
    /// Those from this host to a server.
    Client {
        /// The server.
        server: SocketAddr,
        /// Local ports there are for it, over all source addresses.
        ports: Option<u64>,
    },
}

impl Tested {
    /// Local and remote port of its connections, 0 for any.
    fn ports(&self) -> (u16, u16) {
        match self {
            Self::Nothing => (0, 0),
            Self::Server { port } => (*port, 0),
            Self::Client { server, .. } => (0, server.port()),
        }
    }

    fn includes(&self, socket: &TcpSocket) -> bool {
        match self {
            Self::Nothing => false,
            Self::Server { port } => socket.local.port() == *port,
            Self::Client { server, .. } => {
                socket.remote == SocketAddr::new(server.ip().to_canonical(), server.port())
            }
        }
    }

    /// Payload of the largest segment that a server sends, or that a client accepts. 0 is unknown.
    fn mss_bytes(&self, info: &TcpInfo) -> Option<u32> {
        let bytes = match self {
            Self::Client { .. } => info.advertised_mss_bytes,
            _ => info.snd_mss_bytes,
        };
        Some(bytes).filter(|bytes| *bytes > 0)
    }
}

/// One TCP socket.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TcpSocket {
    /// Number of its state (`net/tcp_states.h`).
    pub state: u8,
    /// Its own address.
    pub local: SocketAddr,
    /// Address of the other end.
    pub remote: SocketAddr,
    /// Connections that wait to be accepted of a listener, otherwise bytes that wait to be read.
    receive_queue: u32,
    /// Backlog of a listener, otherwise bytes that wait to be acknowledged.
    send_queue: u32,
    /// Number by which `/proc/*/fd` names it; 0 for one that no process has.
    pub inode: u32,
    /// `TCP_INFO` of the connection, where it was requested.
    pub info: Option<TcpInfo>,
    /// Congestion control of the connection, where it was requested.
    pub congestion: Option<String>,
}

/// Reads one socket (`struct inet_diag_msg`).
pub(crate) fn socket(payload: &[u8]) -> Option<TcpSocket> {
    const MESSAGE_BYTES: usize = 72;

    if payload.len() < MESSAGE_BYTES {
        return None;
    }

    let family = *payload.first()?;
    let state = *payload.get(1)?;
    let port = |at| u16_at(payload, at).map(u16::from_be);
    let address = |at| address(family, payload.get(at..at + 16)?);
    let extension = |kind: u8| attribute(payload.get(MESSAGE_BYTES..)?, kind.into());

    Some(TcpSocket {
        state,
        local: SocketAddr::new(address(8)?, port(4)?),
        remote: SocketAddr::new(address(24)?, port(6)?),
        receive_queue: u32_at(payload, 56)?,
        send_queue: u32_at(payload, 60)?,
        inode: u32_at(payload, 68)?,
        info: extension(INFO).and_then(decode),
        congestion: extension(CONGESTION).map(text),
    })
}

fn address(family: u8, bytes: &[u8]) -> Option<IpAddr> {
    match family {
        2 => Some(Ipv4Addr::from(*bytes.first_chunk::<4>()?).into()),
        // A dual-stack socket has IPv4 peers as mapped addresses; reports compare them with plain
        // ones.
        10 => Some(Ipv6Addr::from(*bytes.first_chunk::<16>()?).to_canonical()),
        _ => None,
    }
}

/// `struct inet_diag_req_v2`: sockets in these states with these ports, 0 for any.
fn request(
    family: u8,
    states: u32,
    extensions: u8,
    (local_port, remote_port): (u16, u16),
) -> Vec<u8> {
    let mut body = vec![family, TCP, extensions, 0];
    body.extend(states.to_ne_bytes());
    // Ports are in network byte order, all else in that of the host (sock_diag(7)).
    body.extend(local_port.to_be_bytes());
    body.extend(remote_port.to_be_bytes());
    body.resize(48, 0);

    // No particular socket (`INET_DIAG_NOCOOKIE`).
    body.extend([0xff; 8]);
    body
}

/// Connections by state (`net/tcp_states.h`).
#[derive(Default)]
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

    /// Those states in which there are any.
    pub(crate) fn named(&self) -> impl Iterator<Item = (&'static str, u64)> {
        NAMES
            .into_iter()
            .zip(self.0)
            .filter(|(_, count)| *count > 0)
    }
}

/// Reads sockets from the kernel.
#[derive(Debug)]
pub(crate) struct Sockets(NetlinkClient);

impl Sockets {
    /// # Errors
    /// When the kernel refuses; kernels without `CONFIG_INET_DIAG` do not respond.
    pub(crate) fn open() -> Result<Self, ReadError> {
        NetlinkClient::open(Family::SockDiag).map(Self)
    }

    /// The queue of the listeners on a port, all together, against their backlogs; absent without a
    /// listener.
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
        Ok(found.map(|(peak, backlog)| Peak {
            peak,
            limit: Some(backlog),
        }))
    }

    /// Every listener on a port; on all ports for port 0.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub(crate) fn listeners(
        &mut self,
        port: u16,
        mut each: impl FnMut(&TcpSocket),
    ) -> Result<(), ReadError> {
        self.dump(1 << LISTEN, 0, (port, 0), |socket| {
            if port == 0 || socket.local.port() == port {
                each(socket);
            }
        })
    }

    /// Every established connection, with its `TCP_INFO` and congestion control.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub(crate) fn established(&mut self, each: impl FnMut(&TcpSocket)) -> Result<(), ReadError> {
        self.dump(
            1 << ESTABLISHED,
            // The mask has a bit per extension, counted from 1 (sock_diag(7), `idiag_ext`).
            1 << (INFO - 1) | 1 << (CONGESTION - 1),
            (0, 0),
            each,
        )
    }

    /// Connections of the test by state; each holds a local port, TIME_WAIT included.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub(crate) fn states(&mut self, tested: Tested) -> Result<States, ReadError> {
        let mut states = States::default();
        self.dump(CONNECTED, 0, tested.ports(), |socket| {
            if tested.includes(socket) {
                states.count(socket.state);
            }
        })?;
        Ok(states)
    }

    /// Payload of a full segment on most established connections of the test; absent without any.
    /// At the server it is what the kernel sends, at the client what it announced.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub(crate) fn mss_bytes(&mut self, tested: Tested) -> Result<Option<u32>, ReadError> {
        let mut counts: BTreeMap<u32, u32> = BTreeMap::new();
        self.dump(
            1 << ESTABLISHED,
            1 << (INFO - 1),
            tested.ports(),
            |socket| {
                let info = socket.info.filter(|_| tested.includes(socket));
                if let Some(bytes) = info.and_then(|info| tested.mss_bytes(&info)) {
                    *counts.entry(bytes).or_default() += 1;
                }
            },
        )?;
        // The most frequent one: connections of other networks on the same port may have another
        // MSS.
        let most = counts.into_iter().max_by_key(|(_, count)| *count);

        Ok(most.map(|(bytes, _)| bytes))
    }

    fn dump(
        &mut self,
        states: u32,
        extensions: u8,
        ports: (u16, u16),
        mut each: impl FnMut(&TcpSocket),
    ) -> Result<(), ReadError> {
        FAMILIES.iter().try_for_each(|family| {
            let body = request(*family, states, extensions, ports);
            self.0.dump(BY_FAMILY, &body, |payload| {
                socket(payload).iter().for_each(&mut each);
            })
        })
    }
}

/// Records the datagrams that each UDP socket of this process dropped because its receive buffer
/// was full.
pub(crate) fn record_own_udp(snapshot: &mut Snapshot) {
    const DESCRIPTORS_MAX: usize = 4096;

    let own: BTreeSet<PathBuf> = entries("/proc/self/fd")
        .take(DESCRIPTORS_MAX)
        .filter_map(|path| fs::read_link(path).ok())
        .collect();

    for file in ["/proc/net/udp", "/proc/net/udp6"] {
        // The last column of `/proc/net/udp` has the drops of each socket; sock_diag reports them
        // only with `INET_DIAG_SKMEMINFO`.
        let text = fs::read_to_string(file).unwrap_or_default();
        for (inode, drops) in udp_drops(&text)
            .filter(|(inode, _)| own.contains(Path::new(&format!("socket:[{inode}]"))))
        {
            snapshot.count(format!("self.udp.{inode}.drops"), drops);
        }
    }
}

/// `/proc/net/udp`: inode of each connected socket, as those of a test are, and the datagrams it
/// dropped.
fn udp_drops(text: &str) -> impl Iterator<Item = (u64, u64)> {
    const CONNECTED: &str = "01";

    text.lines().skip(1).filter_map(|line| {
        let mut columns = line.split_ascii_whitespace().skip(3);
        columns.next().filter(|state| *state == CONNECTED)?;
        // Five columns lie between state and inode, two between inode and drops.
        Some((columns.nth(5)?.parse().ok()?, columns.nth(2)?.parse().ok()?))
    })
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream, UdpSocket};

    use linerate_model::snapshot::Source;

    use super::*;

    #[test]
    fn drops_of_a_udp_socket_are_its_own() {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let address = socket.local_addr().expect("an address");
        socket.connect(address).expect("its own address");

        let drops = || {
            let mut snapshot = Snapshot::new("a", Source::Live);
            record_own_udp(&mut snapshot);
            snapshot.counters.values().map(|counter| counter.v).max()
        };
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);

        while drops().expect("a socket") == 0 {
            (0..1000).for_each(|_| drop(socket.send_to(&[0; 1000], address)));
            assert!(
                std::time::Instant::now() < deadline,
                "nothing reads the socket, yet it drops nothing"
            );
        }

        let text = "  sl  local_address\n    5: 0100007F:C001 0100007F:C001 01 00000000:00000000 \
                    00:00000000 00000000     0        0 4711 2 00000000f 38\n   6: cut\n   7: \
                    0100007F:C002 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 4712 2 00000000f 9\n";
        assert_eq!(udp_drops(text).collect::<Vec<_>>(), [(4711, 38)]);
    }

    #[test]
    fn listener_has_its_accept_queue_and_connection_its_port() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let server = listener.local_addr().expect("an address");
        let mut sockets = Sockets::open().expect("sock_diag");
        let before = sockets
            .accept_queue(server.port())
            .expect("a response")
            .expect("a listener");
        assert_eq!(before.peak, 0);
        assert!(before.limit.is_some_and(|limit| limit > 0));

        let clients: Vec<TcpStream> = (0..3)
            .map(|_| TcpStream::connect(server).expect("connect"))
            .collect();
        let waiting = sockets
            .accept_queue(server.port())
            .expect("a response")
            .expect("a listener");
        assert_eq!(waiting.peak, 3);

        let accepted = listener.accept().expect("one waits");
        assert_eq!(
            sockets
                .accept_queue(server.port())
                .expect("a response")
                .map(|queue| queue.peak),
            Some(2)
        );
        let at_server = Tested::Server {
            port: server.port(),
        };
        let at_client = Tested::Client {
            server,
            ports: None,
        };
        let states = sockets.states(at_server).expect("a response");
        assert_eq!(states.total(), 3, "accepted or not");
        assert_eq!(states.named().collect::<Vec<_>>(), [("established", 3)]);
        assert_eq!(sockets.states(at_client).expect("a response").total(), 3);

        let (sent, announced) = (sockets.mss_bytes(at_server), sockets.mss_bytes(at_client));
        let (sent, announced) = (sent.expect("a response"), announced.expect("a response"));
        assert!(
            sent > Some(0) && sent <= announced,
            "{sent:?} {announced:?}"
        );
        drop((clients, accepted, listener));
        assert_eq!(
            sockets.accept_queue(server.port()),
            Ok(None),
            "no listener, no queue"
        );
        assert_eq!(
            sockets.mss_bytes(at_client),
            Ok(None),
            "no connection, no segment"
        );
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
        assert_eq!(
            (found.receive_queue, found.send_queue, found.inode),
            (7, 4096, 31_337)
        );

        for length in 0..message.len() {
            assert_eq!(socket(&message[..length]), None, "{length}");
        }

        message[0] = 9;
        assert_eq!(socket(&message), None, "a family that is no IP");
    }
}
