//! Accepts connections and UDP streams, and assigns them to clients.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::Instant;

use linerate_iperf3::{Cookie, ErrorCode};
use linerate_model::service::RefusalReason;
use linerate_model::{Failure, ServerEvent};

use super::acceptor::{self, Accepted, FirstBytes};
use super::registry::AdmissionDecision;
use super::session::{ServerSockets, Session};
use super::udp_listener::{Hello, UdpListener};
use super::{CLOSING, READ, SCTP_LISTENER, Server, UDP_LISTENER, sink_failure, tokens};
use crate::server::listen;

impl Server<'_> {
    pub(super) fn accept(&mut self, token: u64) -> Result<(), Failure> {
        let mut accepted = Vec::new();
        let listener = match token {
            SCTP_LISTENER => self.listeners.sctp(),
            _ => Some(self.listeners.tcp()),
        };
        if let Some(listener) = listener
            && let Err(error) = listen::accept(listener, &mut accepted)
        {
            self.out_of_descriptors(token, &error);
        }
        for (fd, peer) in accepted {
            self.greet(fd, peer);
        }
        Ok(())
    }

    /// Existing sessions continue; the largest source of pending connections loses its oldest.
    pub(super) fn out_of_descriptors(&mut self, token: u64, error: &std::io::Error) {
        if self.acceptor.pause(Instant::now()) {
            self.out.warning(&format!("unable to accept a connection: {error}"));
        }
        let listener = match token {
            SCTP_LISTENER => self.listeners.sctp(),
            _ => Some(self.listeners.tcp()),
        };
        if let Some(listener) = listener {
            // It is taken in again when the pause is over; a second removal finds nothing.
            let _ = self.epoll.remove(listener);
        }
        self.closing.close_all();
        if let Some(victim) = self.acceptor.largest_source() {
            self.evict(victim);
        }
    }

    /// A new connection is a client or a stream of one; its first 37 bytes decide.
    pub(super) fn greet(&mut self, fd: OwnedFd, peer: SocketAddr) {
        if !self.context.access().admits(peer.ip()) {
            let reason = RefusalReason::Address;
            self.out.server_event(&ServerEvent::Refused { peer, reason });
            self.closing.add(
                acceptor::send_error(fd, ErrorCode::AuthTest),
                Vec::new(),
                &self.epoll,
                CLOSING,
            );
        } else if self.registry.is_busy(&self.admission) {
            self.send_busy(fd, peer, RefusalReason::Busy);
        } else if let Accepted::InsteadOf(victim) = self.acceptor.enter(fd, peer, &self.epoll) {
            self.evict(victim);
        }
    }

    pub(super) fn send_busy(&mut self, fd: OwnedFd, peer: SocketAddr, reason: RefusalReason) {
        self.out.server_event(&ServerEvent::Refused { peer, reason });
        self.closing
            .add(acceptor::send_busy(fd), Vec::new(), &self.epoll, CLOSING);
    }

    pub(super) fn evict(&mut self, id: u64) {
        if let Some((fd, peer)) = self.acceptor.take(id, &self.epoll) {
            self.send_busy(fd, peer, RefusalReason::Crowded);
        } else {
            self.registry.evict(Instant::now(), id, RefusalReason::Crowded);
        }
        self.acceptor.forget(id);
    }

    pub(super) fn on_pending(&mut self, id: u64) -> Result<(), Failure> {
        let Some(word) = self.acceptor.read(id, &self.epoll) else {
            return Ok(());
        };
        let Some((fd, peer)) = self.acceptor.take(id, &self.epoll) else {
            return Ok(());
        };
        let cookie = match word {
            FirstBytes::Cookie(cookie) => cookie,
            FirstBytes::Other(opening) => {
                self.acceptor.forget(id);
                self.hand_over(fd, peer, &opening);
                return Ok(());
            }
        };
        match self
            .registry
            .admit_connection(Instant::now(), id, peer, cookie, &mut self.admission)
        {
            AdmissionDecision::Stream(owner) => {
                self.acceptor.forget(id);
                self.add_stream(owner, fd);
            }
            AdmissionDecision::Admitted => {
                self.open_session(id, fd, peer, cookie)?;
                self.begin(id);
            }
            AdmissionDecision::Queued => {
                self.acceptor.forget(id);
                self.open_session(id, fd, peer, cookie)?;
            }
            AdmissionDecision::Refused(reason) => {
                self.acceptor.forget(id);
                self.send_busy(fd, peer, reason);
            }
        }
        Ok(())
    }

    pub(super) fn open_session(
        &mut self,
        id: u64,
        fd: OwnedFd,
        peer: SocketAddr,
        cookie: Cookie,
    ) -> Result<(), Failure> {
        let sink = self.out.open_test().map_err(|e| sink_failure(&e))?;
        let session = Session::new(fd, peer, cookie, sink, &self.context);
        if self.epoll.add(session.control_fd(), tokens(id).control, READ).is_ok() {
            self.sessions.insert(id, session);
        } else {
            self.registry.remove(Instant::now(), id, &mut self.admission);
            self.acceptor.forget(id);
        }
        Ok(())
    }

    pub(super) fn begin(&mut self, id: u64) {
        if let Some(session) = self.sessions.get(&id) {
            self.registry
                .begin(Instant::now(), id, self.context.setup(session.cookie()));
            self.forward_inputs(id);
        }
    }

    pub(super) fn add_stream(&mut self, owner: u64, fd: OwnedFd) {
        if let Some(session) = self.sessions.get_mut(&owner) {
            let sockets = ServerSockets {
                epoll: &self.epoll,
                tokens: tokens(owner),
                listeners: &mut self.listeners,
                udp: &mut self.udp,
            };
            session.add_stream(fd, &self.context, &sockets);
            self.forward_inputs(owner);
        }
    }

    pub(super) fn on_datagrams(&mut self) {
        // Hellos may come to light while another one is let in; nothing else would announce them.
        while let Some(door) = &mut self.udp {
            let hellos = door.hellos();
            for hello in &hellos {
                self.on_hello(hello);
            }
            if !self.udp.as_ref().is_some_and(UdpListener::has_pending) {
                return;
            }
        }
    }

    /// Accepts a UDP stream that is expected from this address. Other datagrams are dropped.
    pub(super) fn on_hello(&mut self, hello: &Hello) {
        if self.sessions.values_mut().any(|s| s.repeat_reply(hello.from)) {
            return;
        }
        let Some(owner) = self.registry.udp_stream_owner(hello.from.ip()) else {
            return;
        };
        let (Some(door), Some(session)) = (&mut self.udp, self.sessions.get_mut(&owner)) else {
            return;
        };
        let reply = session.udp_reply();
        match door.admit(hello, &self.context.spec.local, &self.epoll, UDP_LISTENER, reply) {
            Ok(fd) => self.add_stream(owner, fd),
            Err(error) => {
                session.fail(&error);
                self.forward_inputs(owner);
            }
        }
        self.advance_sessions();
    }

    /// Evicts connections whose cookie is not complete in time.
    pub(super) fn on_header_timeouts(&mut self, now: Instant) -> Result<(), Failure> {
        let mut reported = !self.sessions.is_empty();
        for id in self.acceptor.late(now) {
            let Some((fd, peer)) = self.acceptor.take(id, &self.epoll) else {
                continue;
            };
            self.acceptor.forget(id);
            self.note_header_timeout(peer);
            if reported {
                self.closing
                    .add(acceptor::send_busy(fd), Vec::new(), &self.epoll, CLOSING);
            } else {
                reported = true;
                self.closing.add(
                    acceptor::send_error(fd, ErrorCode::RecvCookie),
                    Vec::new(),
                    &self.epoll,
                    CLOSING,
                );
                self.report_header_timeout()?;
            }
        }
        Ok(())
    }
}
