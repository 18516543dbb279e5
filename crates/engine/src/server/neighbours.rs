//! Tests without a control connection, under the same rules as all others: who may come, limits, figures and log.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use linerate_model::Failure;
use linerate_model::sharing::Uncontrolled;
use linerate_model::spec::ServerSpec;

use super::Server;
use super::rules::Rules;
use crate::iperf2::server::House;

/// Opens what the rules name.
pub(super) fn open(spec: &ServerSpec) -> Result<Option<House>, Failure> {
    match spec.sharing.uncontrolled {
        Uncontrolled::Refused => Ok(None),
        Uncontrolled::Port(port) => House::open_both(spec, port).map(Some),
        Uncontrolled::SamePort => House::open_nothing(spec).map(Some),
    }
}

impl Server<'_> {
    /// Passes a connection on that turned out to be one of the other dialect.
    pub(super) fn hand_over(&mut self, fd: OwnedFd, peer: SocketAddr, opening: &[u8]) {
        self.with_house(|house, rules| house.adopt(fd, peer, opening, rules));
    }

    pub(super) fn advance_house(&mut self) {
        self.with_house(House::advance);
    }

    pub(super) fn terminate_house(&mut self) {
        self.with_house(House::terminate);
    }

    /// What the tests of the house have moved, for the figures.
    pub(super) fn note_house(&mut self) {
        for (id, moved) in self.house.iter_mut().flat_map(House::moved) {
            self.tally.note(id, moved);
        }
    }

    fn with_house<T>(&mut self, act: impl FnOnce(&mut House, &mut Rules<'_>) -> T) -> Option<T> {
        let house = self.house.as_mut()?;
        let mut rules = Rules {
            access: self.context.access(),
            ledger: self.desk.ledger(),
            tally: &mut self.tally,
            out: &mut *self.out,
        };
        Some(act(house, &mut rules))
    }
}
