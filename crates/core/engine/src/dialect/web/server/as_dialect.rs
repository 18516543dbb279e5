//! The dialect as the control thread of a server drives it.

use std::net::SocketAddr;
use std::time::Instant;

use linerate_model::policy::ServerPolicy;
use linerate_model::service::RefusalReason;
use linerate_model::{Failure, ServerEvent};
use linerate_sys::{clock, process, socket};

use super::super::certificate::Certificate;
use super::stored::measured;
use super::{CONNECTION, POOL, WebServer};
use crate::error::failure;
use crate::server::{Accepted, Recognised, ServerContext, ServerDialect, SessionTable, Stopped};

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

    fn sessions(&self) -> &dyn SessionTable {
        &self.sessions
    }

    fn sessions_mut(&mut self) -> &mut dyn SessionTable {
        &mut self.sessions
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
        if self.sessions.watch(&connection.fd, id, CONNECTION).is_err() {
            server.pending_limit.leave(id);
            return Ok(());
        }
        self.connections.insert(id, connection);
        // Bytes that were read already cause no event.
        self.sessions.wake(id);
        Ok(())
    }

    fn evict(&mut self, id: u64, reason: RefusalReason, server: &mut ServerContext<'_>) {
        if let Some(connection) = self.remove(id, server) {
            server.log_refusal(connection.peer, reason);
        }
    }

    fn advance(&mut self, server: &mut ServerContext<'_>) -> Result<(), Failure> {
        let events = self.sessions.events();
        if events.iter().any(|(_, kind)| *kind == POOL) {
            self.on_checked(server);
        }

        self.advance_all(server);
        Ok(())
    }

    fn is_idle(&self) -> bool {
        self.sessions.is_empty() && self.connections.is_empty()
    }

    fn stop(&mut self, signal_text: &str, server: &mut ServerContext<'_>) -> Stopped {
        self.sessions.close();
        for session in self.sessions.wake_all() {
            session.end_early(&format!("the server ends by signal {signal_text}"));
        }

        self.advance_all(server);
        Stopped::Ended
    }
}
