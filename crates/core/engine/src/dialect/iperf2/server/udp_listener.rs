//! Accepts UDP flows: a socket that receives the first datagrams of all clients.
//!
//! A flow gets a socket of its own, connected to its client, so that the kernel keeps flows apart
//! from then on. Between bind and connect that socket may receive datagrams of others, and the
//! listener may have caught some of this flow: all of them are read here and given to whom they
//! belong, in the order of their arrival.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Instant;

use linerate_iperf2::wire::FlowServer;
use linerate_iperf2::wire::server::{FlowRefusal, Policy};
use linerate_model::TestSpec;
use linerate_model::service::{HandshakeCause, RefusalReason};
use linerate_sys::socket::{self, Protocol};
use linerate_sys::{OsError, sockopt};

use super::half_open::{HalfOpenFlows, Step};
use super::pending::AcceptedConnection;
use crate::dialect::iperf2::datagram_reader::{DatagramReader, ReceivedDatagram};
use crate::dialect::iperf2::machine::{Machine, wall};
use crate::dialect::iperf2::sockets;
use crate::server::listeners::udp::flow_address;
use crate::server::{ServerContext, open_bound_with};

/// The socket, and where it is bound.
pub(super) struct UdpListener {
    fd: OwnedFd,
    pub address: SocketAddr,
    v6_only: bool,
    reader: DatagramReader,
    /// Sender of the last datagram that was refused: each of its datagrams is, and one line of the
    /// log is enough.
    refused: Option<SocketAddr>,
}

/// Flows that may begin in one turn.
const NEW_FLOWS_PER_TURN: usize = 64;

impl UdpListener {
    pub(super) fn open(
        address: SocketAddr,
        v6_only: bool,
        test: &TestSpec,
    ) -> Result<Self, OsError> {
        let fd = bound(address, v6_only)?;
        sockopt::set_receive_destination(&fd, true)?;
        sockets::prepare(&fd, test, false, true);
        Ok(Self {
            fd,
            address,
            v6_only,
            reader: DatagramReader::new()?,
            refused: None,
        })
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Opens the flows whose second datagram has arrived. `is_known` is true for addresses that
    /// have one.
    pub(super) fn new_flows(
        &mut self,
        policy: &Policy,
        test: &TestSpec,
        half_open: &mut HalfOpenFlows,
        is_known: impl Fn(SocketAddr) -> bool,
        server: &mut ServerContext<'_>,
    ) -> Vec<AcceptedConnection> {
        let mut arrived = VecDeque::new();
        self.reader.drain(&self.fd, &mut arrived);

        let mut found: BTreeMap<SocketAddr, AcceptedConnection> = BTreeMap::new();
        while let Some(ReceivedDatagram {
            datagram,
            from: peer,
            to,
            at_ns,
        }) = arrived.pop_front()
        {
            if let Some(flow) = found.get_mut(&peer) {
                flow.early.push((datagram, at_ns));
                continue;
            }

            let is_admitted = server.access.admits(peer.ip());
            if is_known(peer) || !is_admitted || found.len() >= NEW_FLOWS_PER_TURN {
                continue;
            }

            let is_group = self.address.ip().is_multicast();
            let machine = |first: &[u8]| {
                FlowServer::new(Instant::now(), wall(), policy.clone(), first, is_group)
            };
            let (first, first_ns) = match half_open.take(at_ns, peer, &datagram) {
                Step::Follows(first, first_ns) => (first, first_ns),
                Step::Held => {
                    if let Err(refusal) = machine(&datagram)
                        && self.refused.replace(peer) != Some(peer)
                    {
                        server.log_refusal(peer, reason(refusal));
                    }
                    continue;
                }
                Step::Foreign => continue,
            };
            let Ok(machine) = machine(&first) else {
                continue;
            };

            let fd = match self.connect(peer, to, test) {
                Ok(fd) => fd,
                Err(error) => {
                    server.log_failed_handshake(peer, HandshakeCause::Streams, error.text());
                    continue;
                }
            };
            self.drain_both(&fd, &mut arrived);

            let accepted = AcceptedConnection {
                fd,
                peer,
                machine: Machine::FlowServer(machine),
                accepted_ns: None,
                early: vec![(first, first_ns), (datagram, at_ns)],
            };
            found.insert(peer, accepted);
        }

        found.into_values().collect()
    }

    /// Reads the listener and the socket of a new flow. A flow has datagrams in both: those before
    /// bind(2) in the listener, later ones in its own; others have theirs between bind(2) and
    /// connect(2) in the new one.
    fn drain_both(&mut self, flow: &OwnedFd, arrived: &mut VecDeque<ReceivedDatagram>) {
        self.reader.drain(flow, arrived);
        self.reader.drain(&self.fd, arrived);
        arrived.make_contiguous().sort_by_key(|one| one.at_ns);
    }

    fn connect(
        &self,
        remote: SocketAddr,
        to: Option<IpAddr>,
        test: &TestSpec,
    ) -> Result<OwnedFd, OsError> {
        let own = flow_address(self.address, remote, to);
        let fd = bound(own, self.v6_only)?;
        sockets::prepare(&fd, test, true, true);

        if self.address.ip().is_multicast() {
            sockopt::join_group(&fd, self.address.ip(), None)?;
        }

        socket::connect(&fd, &remote)?;
        Ok(fd)
    }
}

fn reason(refusal: FlowRefusal) -> RefusalReason {
    match refusal {
        FlowRefusal::Amount => RefusalReason::Duration,
        FlowRefusal::UdpReverse | FlowRefusal::NoFlow => RefusalReason::UdpReverse,
    }
}

/// A socket bound to the server's port.
fn bound(address: SocketAddr, v6_only: bool) -> Result<OwnedFd, OsError> {
    open_bound_with(address, Protocol::Udp, v6_only, |fd| {
        // Without it datagrams count as arrived when they are read.
        let _ = sockopt::SO_TIMESTAMPNS.set(fd, true);
        Ok(())
    })
}
