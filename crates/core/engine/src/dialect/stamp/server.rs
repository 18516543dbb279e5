//! The session reflector: one socket, whose packets the control thread answers. Both times of an
//! answer are its own, so that the wait for this thread is no part of a round trip.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use linerate_model::service::RefusalReason;
use linerate_model::spec::{AddressFamily, ServerSpec};
use linerate_model::{Failure, ServerEvent};
use linerate_stamp::wire::reflector::{Arrival, Reflector};
use linerate_sys::socket::Protocol;
use linerate_sys::{OsError, clock, sockopt, udp};

use super::clock_error::clock_error;
use crate::error::failure;
use crate::server::{
    Accepted, ByteTotals, Recognised, ServerContext, ServerDialect, Session, SessionTable,
    Sessions, Stopped, open_bound_with,
};

/// Packets that are read per turn of the control thread, so that a flood delays no client.
const PACKETS_PER_TURN: u32 = 64;
/// No datagram is longer.
const PACKET_LEN_MAX: usize = 1 << 16;

pub(crate) struct StampServer {
    fd: OwnedFd,
    /// Without a session; its event loop has the socket.
    sessions: Sessions<NoSession>,
    address: SocketAddr,
    reflector: Reflector,
    buffer: Vec<u8>,
}

impl StampServer {
    /// Binds the socket.
    pub(super) fn open(spec: &ServerSpec, address: SocketAddr) -> Result<Self, Failure> {
        if spec.policy.access.allow.is_empty() {
            return Err(failure("STAMP needs a list of allowed addresses"));
        }

        let port = address.port();
        let failed =
            |error: OsError| failure(format!("port {port} (STAMP, UDP): {}", error.text()));
        let fd = socket(spec, address).map_err(failed)?;
        let mut sessions = Sessions::new().map_err(failed)?;
        sessions.watch(&fd, 0, 0).map_err(failed)?;
        // It has no connections, so that it does not keep a server from its end.
        sessions.close();

        Ok(Self {
            fd,
            sessions,
            address,
            reflector: Reflector::new(port),
            buffer: vec![0; PACKET_LEN_MAX],
        })
    }

    /// Answers the next packet if its source is allowed; `None` when no packet waits.
    fn answer(&mut self, server: &ServerContext<'_>) -> Option<()> {
        let message = udp::recv_message(&self.fd, &mut self.buffer).ok()?;
        let now_ns = clock::unix_ns();
        let len = message.data.len();
        let to = message.to;
        let Some(from) = message.from.filter(|from| server.access.admits(from.ip())) else {
            return Some(());
        };
        let arrival = Arrival {
            from,
            ttl: message.ttl.unwrap_or_default(),
            // The clock may have been set back in between.
            received_ns: message.stamped_unix_ns.map_or(now_ns, |ns| ns.min(now_ns)),
        };

        let packet = self.buffer.get_mut(..len)?;
        let error = clock_error();
        if self
            .reflector
            .reflect(packet, arrival, clock::unix_ns().max(now_ns), error)
        {
            // An answer that the kernel refuses is lost, like one that the path drops.
            let _ = udp::send_from(&self.fd, packet, to, &from);
        }
        Some(())
    }
}

fn socket(spec: &ServerSpec, address: SocketAddr) -> Result<OwnedFd, OsError> {
    let bind = &spec.local.bind;
    let v6_only = bind.family == Some(AddressFamily::V6);
    let fd = open_bound_with(address, Protocol::Udp, v6_only, |fd| {
        // With it a second reflector would take the packets of the first (socket(7)).
        sockopt::SO_REUSEADDR.set(fd, false)?;
        match &bind.device {
            Some(device) => sockopt::bind_device(fd, device),
            None => Ok(()),
        }
    })?;

    // Without these a time is that of the read, the TTL in an answer is 0, and a host of several
    // addresses may answer from another one than the sender sent to.
    let _ = sockopt::SO_TIMESTAMPNS.set(&fd, true);
    let _ = sockopt::set_receive_ttl(&fd, true);
    let _ = sockopt::set_receive_destination(&fd, true);
    Ok(fd)
}

/// Packets begin no session.
enum NoSession {}

impl Session for NoSession {
    fn totals(&mut self) -> ByteTotals {
        match *self {}
    }

    fn stop(&mut self, _reason: RefusalReason) {}
}

impl ServerDialect for StampServer {
    fn name(&self) -> &'static str {
        "stamp"
    }

    fn start(&mut self, server: &mut ServerContext<'_>) -> Result<(), Failure> {
        let address = self.address;
        server.out.server_event(&ServerEvent::Stamp { address });
        Ok(())
    }

    fn recognise(&self, _first_bytes: &[u8]) -> Recognised {
        Recognised::NotMine
    }

    fn sessions(&self) -> &dyn SessionTable {
        &self.sessions
    }

    fn sessions_mut(&mut self) -> &mut dyn SessionTable {
        &mut self.sessions
    }

    fn accept(&mut self, _: Accepted, _: &mut ServerContext<'_>) -> Result<(), Failure> {
        Ok(())
    }

    fn evict(&mut self, _id: u64, _reason: RefusalReason, _server: &mut ServerContext<'_>) {}

    /// What is left wakes the control thread again.
    fn advance(&mut self, server: &mut ServerContext<'_>) -> Result<(), Failure> {
        let mut turn = 0..PACKETS_PER_TURN;
        while turn.next().is_some() && self.answer(server).is_some() {}
        Ok(())
    }

    fn stop(&mut self, _signal_text: &str, _server: &mut ServerContext<'_>) -> Stopped {
        Stopped::Ended
    }
}
