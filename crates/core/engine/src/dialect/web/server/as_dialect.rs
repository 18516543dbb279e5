//! The dialect as the control thread of a server drives it.

use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Instant;

use linerate_model::policy::ServerPolicy;
use linerate_model::service::RefusalReason;
use linerate_model::{Failure, ServerEvent};
use linerate_sys::{clock, process, socket};

use super::super::certificate::Certificate;
use super::stored::measured;
use super::{CONNECTION, KINDS, POOL, WebServer, bounds};
use crate::error::failure;
use crate::server::admission::Admission;
use crate::server::context::ServerContext;
use crate::server::dialect::{self, Recognised, ServerDialect, Stopped};
use crate::server::intake::Intake;
use crate::server::listeners::accepted::Accepted;

/// Methods by which a connection is recognised.
const METHODS: [&[u8]; 2] = [b"GET ", b"POST "];

impl ServerDialect for WebServer {
    fn name(&self) -> &'static str {
        "web"
    }

    fn start(&mut self, server: &mut ServerContext<'_>) -> Result<(), Failure> {
        let mut address = server.listeners.address();
        address.set_ip(address.ip().to_canonical());
        let scheme = self.certificate.scheme();
        // A certificate is for a name; only this network may resolve it.
        let source = socket::default_source().filter(|_| !self.certificate.is_loaded());
        let url = match (address.ip().is_unspecified(), source) {
            (true, None) => format!("{scheme}://{}:{}/", process::uname().node, address.port()),
            (true, Some(ip)) => format!("{scheme}://{}/", SocketAddr::new(ip, address.port())),
            (false, _) => format!("{scheme}://{address}/"),
        };
        let may_test = self.policy.may_test;
        server
            .out
            .server_event(&ServerEvent::Browsers { url, may_test });

        let Some(directory) = &self.policy.results else {
            return Ok(());
        };
        self.results
            .open(directory, clock::unix_ms())
            .map_err(|error| failure(format!("results in {}: {error}", directory.display())))?;
        let results: Vec<_> = self.results.texts().filter_map(measured).collect();
        for result in results {
            server.out.server_event(&ServerEvent::PageResult(result));
        }
        Ok(())
    }

    fn reload(&mut self, policy: &ServerPolicy) -> Result<(), String> {
        self.bounds = bounds(&policy.limits);
        let files = policy.browsers.as_ref();
        let files = files.and_then(|browsers| browsers.certificate.as_ref());
        if files.is_some() == self.policy.certificate.is_some() {
            self.certificate = Certificate::load(files)
                .map_err(|error| format!("the certificate stays as it was: {error}"))?;
        }
        Ok(())
    }

    /// The cookie of iperf3 has no space.
    fn recognise(&self, first_bytes: &[u8]) -> Recognised {
        if METHODS.iter().any(|method| first_bytes.starts_with(method))
            || self.certificate.recognises(first_bytes)
        {
            Recognised::Mine
        } else if METHODS.iter().any(|method| method.starts_with(first_bytes)) {
            Recognised::NeedMore(first_bytes.len() + 1)
        } else {
            Recognised::NotMine
        }
    }

    fn intake(&self, _admission: &Admission) -> Intake {
        if self.is_stopping {
            Intake::Closed
        } else {
            Intake::Open
        }
    }

    fn accept(
        &mut self,
        connection: Accepted,
        server: &mut ServerContext<'_>,
    ) -> Result<(), Failure> {
        let id = connection.id;
        let Some(connection) = self.certificate.opened(connection, Instant::now()) else {
            server.pending_limit.leave(id);
            return Ok(());
        };
        if self
            .watch(connection.fd.as_fd(), id * KINDS + CONNECTION)
            .is_err()
        {
            server.pending_limit.leave(id);
            return Ok(());
        }
        self.connections.insert(id, connection);
        // Bytes that were read already cause no event.
        self.advance_connection(id, server);
        Ok(())
    }

    fn end_silent(&mut self) -> bool {
        let silent = self
            .sessions
            .iter_mut()
            .find_map(|(id, session)| session.check_liveness(true).then_some(*id));
        self.ready.extend(silent);
        silent.is_some()
    }

    fn evict(&mut self, id: u64, reason: RefusalReason, server: &mut ServerContext<'_>) {
        if let Some(connection) = self.remove(id, server) {
            server.log_refusal(connection.peer, reason);
        }
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    fn deadline(&self) -> Option<Instant> {
        let ready = (!self.ready.is_empty()).then(Instant::now);
        ready.into_iter().chain(self.timers.next()).min()
    }

    fn advance(&mut self, server: &mut ServerContext<'_>) -> Result<(), Failure> {
        for event in self.epoll.ready() {
            if event.token == POOL {
                self.on_checked(server);
                continue;
            }
            let id = event.token / KINDS;
            if event.token % KINDS == CONNECTION {
                self.advance_connection(id, server);
            }
            self.ready.insert(id);
        }
        self.advance_all(server);
        Ok(())
    }

    fn session(&mut self, id: u64) -> Option<&mut dyn dialect::Session> {
        let session = self.sessions.get_mut(&id)?;
        self.ready.insert(id);
        Some(session)
    }

    fn is_idle(&self) -> bool {
        self.sessions.is_empty() && self.connections.is_empty()
    }

    fn stop(&mut self, signal_text: &str, server: &mut ServerContext<'_>) -> Stopped {
        self.is_stopping = true;
        for (id, session) in &mut self.sessions {
            session.end_early(&format!("the server ends by signal {signal_text}"));
            self.ready.insert(*id);
        }
        self.advance_all(server);
        Stopped::Ended
    }
}
