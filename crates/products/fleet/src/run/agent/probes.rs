//! Probes of partners' ports: TCP handshakes, all at the same time.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};

use crate::protocol::message::{BridgePort, Preflighted, ProbeOutcome, ProbeReport, ProbeTarget};
use linerate_host::{bridge_port, routes};
use linerate_model::snapshot::Snapshot;
use linerate_sys::poll::{Epoll, Interest};
use linerate_sys::socket::{self, Connect, Protocol};
use linerate_sys::{OsError, clock, errno};

/// Longest wait for a handshake.
const TIMEOUT_NS: u64 = 3_000_000_000;

/// Handshakes under way and those that ended.
pub(super) struct Probes {
    first_token: u64,
    probes: Vec<Probe>,
    deadline_ns: u64,
    facts: Option<Box<Snapshot>>,
}

struct Probe {
    target: ProbeTarget,
    sent_ns: u64,
    state: State,
}

enum State {
    Connecting(OwnedFd),
    Ended(ProbeOutcome, Option<u64>),
}

impl Probes {
    /// Begins all handshakes. The sockets have the tokens from `first_token` on.
    pub(super) fn start(
        targets: &[ProbeTarget],
        facts: Option<Box<Snapshot>>,
        first_token: u64,
        epoll: &Epoll,
    ) -> Self {
        let probe = |(token, target): (u64, &ProbeTarget)| {
            let sent_ns = clock::monotonic_ns();
            let state = match connect(*target, token, epoll) {
                Ok(None) => State::Ended(
                    ProbeOutcome::Ok,
                    Some(clock::monotonic_ns().saturating_sub(sent_ns)),
                ),
                Ok(Some(fd)) => State::Connecting(fd),
                Err(error) => State::Ended(outcome_of(&error), None),
            };
            Probe {
                target: *target,
                sent_ns,
                state,
            }
        };
        let probes = (first_token..).zip(targets).map(probe).collect();
        let deadline_ns = clock::monotonic_ns().saturating_add(TIMEOUT_NS);

        Self {
            first_token,
            probes,
            deadline_ns,
            facts,
        }
    }

    /// A handshake ended.
    pub(super) fn handle_ready(&mut self, token: u64) {
        let at = token
            .checked_sub(self.first_token)
            .and_then(|at| usize::try_from(at).ok());
        let Some(probe) = at.and_then(|at| self.probes.get_mut(at)) else {
            return;
        };
        let State::Connecting(fd) = &probe.state else {
            return;
        };
        // The time is read first: the lookup of the outcome is no part of the round trip.
        let ended_ns = clock::monotonic_ns();
        // A socket that becomes writable has the outcome of connect(2) in SO_ERROR.
        let ended = match socket::take_error(fd.as_fd()) {
            Ok(()) => (
                ProbeOutcome::Ok,
                Some(ended_ns.saturating_sub(probe.sent_ns)),
            ),
            Err(error) => (outcome_of(&error), None),
        };
        probe.state = State::Ended(ended.0, ended.1);
    }

    /// All handshakes have ended, or had their time.
    pub(super) fn is_over(&self, now_ns: u64) -> bool {
        now_ns >= self.deadline_ns
            || self
                .probes
                .iter()
                .all(|probe| matches!(probe.state, State::Ended(..)))
    }

    pub(super) fn deadline_ns(&self) -> u64 {
        self.deadline_ns
    }

    /// The report; handshakes that have not ended are timeouts.
    pub(super) fn finish(self) -> Preflighted {
        let peers: Vec<IpAddr> = self.probes.iter().map(|probe| probe.target.peer).collect();
        let report = |(probe, route): (Probe, Option<linerate_host::Route>)| {
            let (outcome, rtt_ns) = match probe.state {
                State::Ended(outcome, rtt_ns) => (outcome, rtt_ns),
                State::Connecting(_) => (ProbeOutcome::Timeout, None),
            };
            let port = route
                .as_ref()
                .and_then(|route| bridge_port(route.device.as_ref()?, probe.target.peer));
            ProbeReport {
                peer: probe.target.peer,
                port: probe.target.port,
                outcome,
                rtt_ns,
                device: route.as_ref().and_then(|route| route.device.clone()),
                mtu_bytes: route.as_ref().and_then(|route| route.mtu_bytes),
                bridge_port: port.map(|port| BridgePort {
                    name: port.name,
                    slot: port.slot,
                }),
            }
        };

        let peers = self
            .probes
            .into_iter()
            .zip(routes(&peers))
            .map(report)
            .collect();
        Preflighted {
            peers,
            facts: self.facts,
        }
    }
}

/// Begins a handshake; `None` when it has ended at once.
fn connect(target: ProbeTarget, token: u64, epoll: &Epoll) -> Result<Option<OwnedFd>, OsError> {
    let remote = SocketAddr::new(target.peer, target.port);
    let fd = socket::open(&remote, Protocol::Tcp)?;
    match socket::connect(&fd, &remote)? {
        Connect::Done => Ok(None),
        Connect::InProgress => {
            epoll.add(&fd, token, Interest::WRITE)?;
            Ok(Some(fd))
        }
    }
}

fn outcome_of(error: &OsError) -> ProbeOutcome {
    match error.errno() {
        Some(errno::ECONNREFUSED) => ProbeOutcome::Refused,
        Some(errno::ETIMEDOUT) => ProbeOutcome::Timeout,
        Some(errno::ENETUNREACH | errno::EHOSTUNREACH) => ProbeOutcome::NoRoute,
        _ => ProbeOutcome::Other,
    }
}
