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
    /// Until the handshake has ended.
    fd: Option<OwnedFd>,
    outcome: ProbeOutcome,
    rtt_ns: Option<u64>,
}

impl Probe {
    fn end(&mut self, result: Result<(), OsError>) {
        // The time is read first: the lookup of the outcome is no part of the round trip.
        let rtt_ns = clock::monotonic_ns().saturating_sub(self.sent_ns);
        self.fd = None;
        match result {
            Ok(()) => {
                self.outcome = ProbeOutcome::Ok;
                self.rtt_ns = Some(rtt_ns);
            }
            Err(error) => self.outcome = outcome_of(&error),
        }
    }
}

impl Probes {
    /// Begins all handshakes. The sockets have the tokens from `first_token` on.
    pub(super) fn start(
        targets: &[ProbeTarget],
        facts: Option<Box<Snapshot>>,
        first_token: u64,
        epoll: &Epoll,
    ) -> Self {
        let mut probes = Vec::new();
        for (token, target) in (first_token..).zip(targets) {
            let mut probe = Probe {
                target: *target,
                sent_ns: clock::monotonic_ns(),
                fd: None,
                outcome: ProbeOutcome::Timeout,
                rtt_ns: None,
            };
            match connect(*target, token, epoll) {
                Ok(None) => probe.end(Ok(())),
                Ok(fd) => probe.fd = fd,
                Err(error) => probe.end(Err(error)),
            }
            probes.push(probe);
        }

        Self {
            first_token,
            probes,
            deadline_ns: clock::monotonic_ns().saturating_add(TIMEOUT_NS),
            facts,
        }
    }

    /// A handshake ended.
    pub(super) fn handle_ready(&mut self, token: u64) {
        let at = token.saturating_sub(self.first_token) as usize;
        if let Some(probe) = self.probes.get_mut(at)
            && let Some(fd) = &probe.fd
        {
            // A socket that becomes writable has the outcome of connect(2) in SO_ERROR.
            let result = socket::take_error(fd.as_fd());
            probe.end(result);
        }
    }

    /// All handshakes have ended, or had their time.
    pub(super) fn is_over(&self, now_ns: u64) -> bool {
        now_ns >= self.deadline_ns || self.probes.iter().all(|probe| probe.fd.is_none())
    }

    pub(super) fn deadline_ns(&self) -> u64 {
        self.deadline_ns
    }

    /// The report; handshakes that have not ended are timeouts.
    pub(super) fn finish(self) -> Preflighted {
        let peers: Vec<IpAddr> = self.probes.iter().map(|probe| probe.target.peer).collect();
        let mut reports = Vec::new();
        for (probe, route) in self.probes.into_iter().zip(routes(&peers)) {
            let ProbeTarget { peer, port } = probe.target;
            let mut report = ProbeReport {
                peer,
                port,
                outcome: probe.outcome,
                rtt_ns: probe.rtt_ns,
                device: None,
                mtu_bytes: None,
                bridge_port: None,
            };
            if let Some(route) = route {
                let device = route.device.as_ref();
                let port = device.and_then(|device| bridge_port(device, peer));
                report.bridge_port = port.map(|port| BridgePort {
                    name: port.name,
                    slot: port.slot,
                });
                report.mtu_bytes = route.mtu_bytes;
                report.device = route.device;
            }
            reports.push(report);
        }

        Preflighted {
            peers: reports,
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
