//! State that all dialects of a server share: access list, admission, listeners, statistics, log.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Instant;

use linerate_model::policy::FactsAccess;
use linerate_model::service::{HandshakeCause, RefusalReason, TestFacts};
use linerate_model::spec::ServerSpec;
use linerate_model::{Failure, ServerEvent, ServerReporter, Summary, TestSpec};
use linerate_sys::poll::{Epoll, Interest};
use linerate_sys::{memory, process, stream_io};

use super::access::{AccessList, read_text};
use super::admission::Admission;
use super::limits::pending_limit::{PendingBounds, PendingLimit};
use super::listeners::Listeners;
use super::listeners::closing::ClosingConnections;
use super::listeners::udp::UdpListener;
use super::server_stats::{ByteTotals, ServerStats, record};
use super::tokens::{CLOSING, UDP_LISTENER};
use crate::error::{EngineError, Operation};

/// Lent to a dialect whenever it acts.
pub(crate) struct ServerContext<'a> {
    pub access: AccessList,
    facts: FactsAccess,
    pub admission: Admission,
    /// Connections whose test is not known yet. A dialect removes those that it has read or closed.
    pub pending_limit: PendingLimit,
    pub listeners: Listeners,
    pub udp: UdpListener,
    pub stats: ServerStats,
    pub out: &'a mut dyn ServerReporter,
    pub(super) closing: ClosingConnections,
    pub(super) epoll: Epoll,
    next_id: u64,
}

impl<'a> ServerContext<'a> {
    pub(super) fn new(
        spec: &ServerSpec,
        out: &'a mut dyn ServerReporter,
    ) -> Result<Self, EngineError> {
        // Raising the limit again returns the limit in force.
        let descriptors = process::raise_fd_limit().unwrap_or(1024);
        let bounds = PendingBounds::of_host(descriptors, memory::limit_bytes().unwrap_or(u64::MAX));
        let epoll = Epoll::new().map_err(Operation::Init.failed())?;
        let udp = UdpListener::new()?;
        epoll
            .add(udp.fd(), UDP_LISTENER, Interest::READ)
            .map_err(Operation::Init.failed())?;

        Ok(Self {
            access: AccessList::load(&spec.policy.access, read_text)?,
            facts: spec.policy.facts,
            admission: Admission::new(&spec.policy, spec.one_off).within_host(),
            pending_limit: PendingLimit::new(bounds),
            listeners: Listeners::default(),
            udp,
            stats: ServerStats::new(Instant::now()),
            out,
            closing: ClosingConnections::new(bounds.total),
            epoll,
            next_id: 1,
        })
    }

    /// Number of the next connection or test. Numbers ascend.
    pub(crate) fn new_id(&mut self) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        id
    }

    pub(crate) fn log_refusal(&mut self, peer: SocketAddr, reason: RefusalReason) {
        self.out
            .server_event(&ServerEvent::Refused { peer, reason });
    }

    pub(crate) fn log_failed_login(
        &mut self,
        peer: SocketAddr,
        cause: &'static str,
        explanation: String,
    ) {
        self.out.server_event(&ServerEvent::LoginFailed {
            peer,
            cause,
            explanation,
        });
    }

    pub(crate) fn log_failed_handshake(
        &mut self,
        peer: SocketAddr,
        cause: HandshakeCause,
        explanation: impl Into<String>,
    ) {
        self.out.server_event(&ServerEvent::HandshakeFailed {
            peer,
            cause,
            explanation: explanation.into(),
        });
    }

    /// Facts of this host go to clients that proved who they are, or are on a list of allowed
    /// addresses.
    pub(crate) fn gives_facts(&self, is_proved: bool) -> bool {
        match self.facts {
            FactsAccess::All => true,
            FactsAccess::Trusted => is_proved || self.access.has_allow_list(),
            _ => false,
        }
    }

    /// Refuses a connection with a last message, or without one.
    pub(crate) fn refuse(
        &mut self,
        fd: OwnedFd,
        peer: SocketAddr,
        reason: RefusalReason,
        message: &[u8],
    ) {
        self.log_refusal(peer, reason);
        if !message.is_empty() {
            self.close_with(fd, message);
        }
    }

    /// Sends a last message to a new connection and closes it.
    pub(crate) fn close_with(&mut self, fd: OwnedFd, message: &[u8]) {
        // A new connection has room for a few bytes; a peer that is gone needs no message.
        let _ = stream_io::send(&fd, message);
        self.close(fd, Vec::new());
    }

    /// Closes a connection when its peer has closed it too, and the others with it.
    pub(crate) fn close(&mut self, fd: OwnedFd, companions: Vec<Arc<OwnedFd>>) {
        self.closing.add(fd, companions, &self.epoll, CLOSING);
    }

    /// A test began.
    pub(crate) fn start_test(
        &mut self,
        id: u64,
        peer: SocketAddr,
        user: Option<String>,
        spec: &TestSpec,
        streams: u32,
    ) {
        let transport = spec.transport;
        let direction = spec.direction;
        let mut facts = TestFacts::new(peer, transport, direction, streams);
        facts.user = user;

        let now = Instant::now();
        self.admission.begin(id, now);
        let facts = self.stats.start(id, now, facts);
        self.out.server_event(&ServerEvent::TestStarted(facts));
    }

    /// A session has ended. False if its test had not begun.
    pub(crate) fn end_test(
        &mut self,
        id: u64,
        cookie: String,
        totals: ByteTotals,
        summary: Option<&Summary>,
        outcome: &Result<(), Failure>,
    ) -> bool {
        self.stats.update(id, totals);
        let ran_beside_max = self.stats.concurrent_max(id);
        let Some(facts) = self.stats.end(id) else {
            return false;
        };

        if self.stats.is_idle() {
            self.report_progress();
        }

        let record = record(facts, cookie, summary, outcome, ran_beside_max);
        self.out.server_event(&ServerEvent::TestEnded(record));
        true
    }

    pub(super) fn report_progress(&mut self) {
        let mut progress = self.stats.progress(Instant::now());
        let reserved = self.admission.quotas().reserved();
        progress.reserved_descriptors = reserved.descriptors;
        progress.reserved_memory_bytes = reserved.memory_bytes;
        self.out.server_event(&ServerEvent::Progress(progress));
    }
}
