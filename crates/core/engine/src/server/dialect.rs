//! The seam between a server and the protocols it serves.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::Instant;

use linerate_model::Failure;
use linerate_model::policy::ServerPolicy;
use linerate_model::service::RefusalReason;

use super::admission::Admission;
use super::context::ServerContext;
use super::intake::Intake;
use super::listeners::accepted::Accepted;
use super::listeners::udp::FirstDatagram;
use super::sessions::SessionTable;
use crate::error::{EngineError, failure};

/// A protocol of a server. The first dialect of a server is that of connections none has
/// recognised.
pub(crate) trait ServerDialect {
    fn name(&self) -> &'static str;

    /// Listeners all of whose connections are of this dialect.
    fn take_listeners(&mut self) -> Vec<OwnedFd> {
        Vec::new()
    }

    /// All ports are bound.
    fn start(&mut self, _server: &mut ServerContext<'_>) -> Result<(), Failure> {
        Ok(())
    }

    /// Takes over what can change while the server runs.
    ///
    /// # Errors
    /// What stays as it was, and why.
    fn reload(&mut self, _policy: &ServerPolicy) -> Result<(), String> {
        Ok(())
    }

    /// True if a connection to the shared listener that begins with these bytes is of this dialect.
    fn recognise(&self, first_bytes: &[u8]) -> Recognised;

    /// Its sessions, and the event loop of its descriptors.
    fn sessions(&self) -> &dyn SessionTable;

    fn sessions_mut(&mut self) -> &mut dyn SessionTable;

    /// Treatment of new connections.
    fn intake(&self, _admission: &Admission) -> Intake {
        if self.sessions().is_closed() {
            Intake::Closed
        } else {
            Intake::Open
        }
    }

    /// Takes a connection that is of this dialect, with the bytes read from it.
    fn accept(
        &mut self,
        connection: Accepted,
        server: &mut ServerContext<'_>,
    ) -> Result<(), Failure>;

    /// True if a datagram to the server's port that begins with these bytes is of this dialect.
    fn recognises_datagram(&self, _first_bytes: &[u8]) -> bool {
        false
    }

    /// Takes a datagram of this dialect that belongs to no flow.
    fn first_datagram(&mut self, _datagram: &FirstDatagram, _server: &mut ServerContext<'_>) {}

    /// The last message to a connection that is refused before it has a session.
    fn refusal(&self, _reason: RefusalReason) -> Vec<u8> {
        Vec::new()
    }

    /// No dialect recognised a connection in time. Returns the last message to it.
    fn header_timeout(
        &mut self,
        _peer: SocketAddr,
        _server: &mut ServerContext<'_>,
    ) -> Result<Vec<u8>, Failure> {
        Ok(Vec::new())
    }

    /// Ends an accepted connection whose test is not known yet, if it is of this dialect.
    fn evict(&mut self, id: u64, reason: RefusalReason, server: &mut ServerContext<'_>);

    /// When [`ServerDialect::advance`] is due at the latest.
    fn deadline(&self) -> Option<Instant> {
        self.sessions().deadline()
    }

    /// Does what is to be done now.
    fn advance(&mut self, server: &mut ServerContext<'_>) -> Result<(), Failure>;

    /// There is neither a session nor an accepted connection without one.
    fn is_idle(&self) -> bool {
        self.sessions().is_empty()
    }

    /// A signal ends the server.
    fn stop(&mut self, signal_text: &str, server: &mut ServerContext<'_>) -> Stopped;

    /// States an error of the server.
    fn failure(&self, error: EngineError) -> Failure {
        failure(error)
    }
}

/// Result of matching the first bytes of a connection.
pub(crate) enum Recognised {
    Mine,
    NotMine,
    /// Undecided before there are this many bytes; no more are read until then.
    NeedMore(usize),
}

/// Reaction of a dialect to a signal.
#[derive(PartialEq, Eq)]
pub(crate) enum Stopped {
    /// Its tests run to their end, and so does the server.
    Draining,
    /// Its tests have ended.
    Ended,
    /// Its tests have ended, and their reports contain the signal.
    Reported,
}
