//! Tests of iperf 2 on the same server, under the same access list, quotas, statistics and log.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use linerate_model::Failure;
use linerate_model::policy::Iperf2Listener;
use linerate_model::spec::ServerSpec;

use super::Server;
use crate::dialect::iperf2::server::Iperf2Server;
use crate::server::shared_state::ServerContext;

/// Opens the listeners of the policy.
pub(super) fn open(spec: &ServerSpec) -> Result<Option<Iperf2Server>, Failure> {
    match spec.policy.iperf2 {
        Iperf2Listener::Refused => Ok(None),
        Iperf2Listener::Port(port) => Iperf2Server::open_both(spec, port).map(Some),
        Iperf2Listener::SamePort => Iperf2Server::open_without_listeners(spec).map(Some),
    }
}

impl Server<'_> {
    /// Passes a connection on that turned out to be one of the other dialect.
    pub(super) fn hand_over(&mut self, fd: OwnedFd, peer: SocketAddr, opening: &[u8]) {
        self.with_iperf2(|iperf2, rules| iperf2.adopt(fd, peer, opening, rules));
    }

    pub(super) fn advance_iperf2(&mut self) {
        self.with_iperf2(Iperf2Server::advance);
    }

    pub(super) fn terminate_iperf2(&mut self) {
        self.with_iperf2(Iperf2Server::terminate);
    }

    /// What the iperf 2 tests have moved, for the statistics.
    pub(super) fn note_iperf2(&mut self) {
        for (id, moved) in self.iperf2.iter_mut().flat_map(Iperf2Server::moved) {
            self.stats.update(id, moved);
        }
    }

    fn with_iperf2<T>(&mut self, act: impl FnOnce(&mut Iperf2Server, &mut ServerContext<'_>) -> T) -> Option<T> {
        let iperf2 = self.iperf2.as_mut()?;
        let mut rules = ServerContext {
            access: self.context.access(),
            admission: &mut self.admission,
            stats: &mut self.stats,
            out: &mut *self.out,
        };
        Some(act(iperf2, &mut rules))
    }
}
