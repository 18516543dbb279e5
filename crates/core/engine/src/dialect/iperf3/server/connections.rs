//! Assigns connections and UDP streams to clients.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::Instant;

use linerate_iperf3::wire::{Cookie, ErrorCode};
use linerate_model::Failure;
use linerate_sys::{OsError, udp};

use super::Iperf3Server;
use super::registry::AdmissionDecision;
use super::session::Session;
use super::tokens::CONTROL;
use crate::error::{EngineError, Operation, failure};
use crate::server::{Accepted, FirstDatagram, ServerContext, ServerDialect as _};

impl Iperf3Server {
    /// A connection is a new client, or a stream of one.
    pub(super) fn add_connection(
        &mut self,
        connection: Accepted,
        server: &mut ServerContext<'_>,
    ) -> Result<(), Failure> {
        let Accepted { id, fd, peer, .. } = connection;
        let Some(bytes) = connection.first_bytes.first_chunk() else {
            return Err(ErrorCode::RecvCookie.failure(None));
        };
        let cookie = Cookie::parse(bytes);
        let decision =
            self.registry
                .admit_connection(Instant::now(), id, peer, cookie, &mut server.admission);

        // A client is pending until its parameters are known.
        if decision != AdmissionDecision::Admitted {
            server.pending_limit.leave(id);
        }

        match decision {
            AdmissionDecision::Stream(owner) => self.add_stream(owner, fd, server),
            AdmissionDecision::Admitted => {
                self.open_session(id, fd, peer, cookie, server)?;
                self.begin(id, server);
            }
            AdmissionDecision::Queued => self.open_session(id, fd, peer, cookie, server)?,
            AdmissionDecision::Refused(reason) => {
                server.refuse(fd, peer, reason, &self.refusal(reason));
            }
        }

        Ok(())
    }

    fn open_session(
        &mut self,
        id: u64,
        fd: OwnedFd,
        peer: SocketAddr,
        cookie: Cookie,
        server: &mut ServerContext<'_>,
    ) -> Result<(), Failure> {
        let sink = server.out.open_test().map_err(failure)?;
        let session = Session::new(id, fd, peer, cookie, sink, &self.context);

        let watched = self.sessions.watch(session.control_fd(), id, CONTROL);
        if watched.is_ok() {
            self.sessions.insert(id, session);
        } else {
            self.registry
                .remove(Instant::now(), id, &mut server.admission);
            server.pending_limit.leave(id);
        }

        Ok(())
    }

    pub(super) fn begin(&mut self, id: u64, server: &ServerContext<'_>) {
        if let Some(session) = self.sessions.get(&id) {
            self.registry
                .begin(Instant::now(), id, self.context.setup(session.cookie));
            self.forward_inputs(id, server);
        }
    }

    fn add_stream(&mut self, owner: u64, fd: OwnedFd, server: &mut ServerContext<'_>) {
        if let Some((session, epoll)) = self.sessions.with_epoll(owner) {
            session.add_stream(fd, &self.context, epoll);
            self.forward_inputs(owner, server);
        }
    }

    /// Accepts a UDP stream that is expected from this address. Other datagrams are dropped.
    pub(super) fn on_hello(&mut self, hello: &FirstDatagram, server: &mut ServerContext<'_>) {
        if self
            .sessions
            .values_mut()
            .any(|s| s.repeat_reply(hello.from))
        {
            return;
        }

        let Some(owner) = self.registry.udp_stream_owner(hello.from.ip()) else {
            return;
        };
        let Some(session) = self.sessions.get_mut(&owner) else {
            return;
        };
        match accept_flow(hello, session.udp_reply(), server) {
            Ok(fd) => self.add_stream(owner, fd, server),
            Err(error) => {
                session.fail(&error);
                self.forward_inputs(owner, server);
            }
        }

        self.advance_sessions(server);
    }
}

/// Accepts a flow and answers its hello.
fn accept_flow(
    hello: &FirstDatagram,
    reply: &[u8],
    server: &mut ServerContext<'_>,
) -> Result<OwnedFd, EngineError> {
    let flow = server.udp.accept(hello)?;
    let sent = udp::send(&flow, reply).map_err(|source| OsError::new("send", hello.from, source));
    sent.map_err(Operation::WriteStream.failed())?;
    Ok(flow)
}
