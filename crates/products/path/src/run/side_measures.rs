//! What is measured beside the tests of a server whose protocol has no probes: delays and hops.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use linerate_doctor::observation::EndpointObservation;
use linerate_doctor::path::ObservedPhase;
use linerate_engine::Interrupts;
use linerate_engine::hops::PathTrace;
use linerate_model::outcome::{Error, Outcome};
use linerate_model::path::{
    ConcurrentProbes, EndpointPhase, PathTarget, PhaseKind, PhaseResult, PhaseSpec, ProbeSample,
    absent,
};
use linerate_sys::clock;
use linerate_sys::poll::{self, Interest};

use super::examination::{Examination, Examined, Start};
use super::far_hops;
use super::side_probe::{Method, SideProber};
use super::steering::SharedObserver;
use crate::conclude::unmeasured;
use crate::plan::{PlannedPhase, PlannedTest};
use crate::report::PhaseProgress;

/// Values that no server without a protocol of ours can show.
const MISSING: [&str; 9] = [
    absent::RESPONSIVENESS,
    absent::IN_BAND,
    absent::ONE_WAY_DELAY,
    absent::LOSS_BY_PLACE,
    absent::MTU_UP,
    absent::MTU_DOWN,
    absent::MARKS,
    absent::UDP_TOKENS,
    absent::RESUME,
];

/// Why a phase did not reach its end.
pub(super) enum Ended {
    Interrupted,
    Failed(String),
}

/// Delays and hops of the path to such a server.
pub(super) struct SideMeasures {
    pub method: Method,
    /// TCP handshakes of all tests.
    pub handshakes: Vec<ProbeSample>,
    pub hops: PathTrace,
}

/// A server whose protocol has no probes.
pub(super) struct SidePeer<C> {
    /// The connection of the first test, until it begins.
    pub first: Option<C>,
    pub side: SideMeasures,
    /// It reported facts of its host, or the state of its kernel.
    pub has_facts: bool,
}

impl SideMeasures {
    /// The first connection was made within `connect_time`, some moments ago.
    pub(super) fn new(method: Method, connect_time: Duration) -> Self {
        let mut side = Self {
            method,
            handshakes: Vec::new(),
            hops: PathTrace::default(),
        };
        side.connected(connect_time);
        side
    }

    /// A connection was made some moments ago.
    pub(super) fn connected(&mut self, connect_time: Duration) {
        let now_ns = clock::monotonic_ns();
        let sent_ns = now_ns.saturating_sub(clock::as_ns(connect_time));
        self.handshakes.push(sample(sent_ns, now_ns));
    }
}

/// Begins the examination of a path to such a server, whose first connection was made within
/// `connect_time`.
pub(super) fn begin<'a, C>(
    start: Start<'a>,
    protocol: &str,
    remote: SocketAddr,
    target: PathTarget,
    planned: &PlannedTest,
    (first, connect_time): (C, Duration),
) -> Examination<'a, SidePeer<C>> {
    let test = start.test;
    start.observers.progress.line(&format!(
        "{}: an {protocol} server, {} s at most, identity unproven",
        test.target.host, planned.estimate_s
    ));

    let (method, refusal) = Method::choose(test, remote);
    let peer = SidePeer {
        first: Some(first),
        side: SideMeasures::new(method, connect_time),
        has_facts: false,
    };
    let mut examination = start.begin(peer, remote, target, method.kind(), planned);
    if let Some(reason) = refusal {
        examination.lack(absent::LOADED_RTT, reason);
    }
    examination
}

impl<C> Examination<'_, SidePeer<C>> {
    /// Runs all phases; true if a signal ended them.
    pub(super) fn run(
        &mut self,
        phases: &[PlannedPhase],
        run: impl Fn(&mut Self, &PlannedPhase, PhaseProgress) -> Result<(), Ended>,
    ) -> bool {
        let count = u32::try_from(phases.len()).unwrap_or(u32::MAX);
        for (number, planned) in (1..).zip(phases) {
            let kind = planned.spec.kind;
            let progress = PhaseProgress::new(kind, number, count, planned.spec.duration_max);
            let known = self.input.phases.len();
            self.show_begin(&progress);

            let ran = run(self, planned, progress);
            self.observers.progress.clear();

            // Delays without load that are the handshakes of all tests are complete at the end.
            let is_complete = kind != PhaseKind::Idle || self.peer.side.method.needs_no_test();
            match ran {
                Ok(()) if self.input.phases.len() > known && is_complete => self.show_finished(),
                Ok(()) => {}
                Err(Ended::Interrupted) => return true,
                Err(Ended::Failed(reason)) => self.fail(kind, &reason),
            }
        }

        false
    }

    /// Something was measured. Without a failure of a phase the reason is `otherwise`.
    pub(super) fn check_any(&self, is_interrupted: bool, otherwise: &str) -> Result<(), Error> {
        let mut phases = self.input.phases.iter();
        if is_interrupted || phases.any(|phase| phase.local.elapsed_ns > 0) {
            return Ok(());
        }
        let reason = self.failure.as_deref().unwrap_or(otherwise);
        let host = &self.input.target.host;
        Err(Error::failed(format!("{host}: {reason}")))
    }

    /// Keeps a load and what both hosts did meanwhile.
    pub(super) fn keep_load(
        &mut self,
        result: PhaseResult,
        ended: Result<(), Ended>,
        observer: &SharedObserver,
        server: Option<EndpointObservation>,
        remote: Option<EndpointPhase>,
    ) -> Result<(), Ended> {
        let reason = unmeasured(&result);
        if result.local.elapsed_ns > 0 {
            if reason.is_none() {
                self.note_partial(&result);
            }
            let client = self.observation(observer);
            self.observed.push(ObservedPhase {
                kind: result.spec.kind,
                client,
                server,
                remote,
            });
            self.keep(result);
        }
        ended.and_then(|()| reason.map_or(Ok(()), |reason| Err(Ended::Failed(reason))))
    }

    /// Values that such a server cannot show, and more of them.
    pub(super) fn lack_all(&mut self, more: impl IntoIterator<Item = &'static str>, reason: &str) {
        for figure in MISSING.into_iter().chain(more) {
            self.lack(figure, reason);
        }
    }

    /// The report.
    pub(super) fn end(mut self, is_interrupted: bool) -> Examined {
        self.add_handshakes();
        let outcome = match &self.failure {
            _ if is_interrupted => Outcome::Interrupted,
            Some(_) => Outcome::NotCompleted,
            None => Outcome::Done,
        };
        self.finish(outcome).0
    }

    /// Delays without load: ICMP echo or connections to another port for the planned time, or the
    /// handshakes of the tests, which are added at the end.
    pub(super) fn idle(&mut self, planned: &PlannedPhase) -> Result<(), Ended> {
        let mut result = PhaseResult::of(planned.spec.clone());
        result.started_ns = clock::monotonic_ns();
        let mut ended = Ok(());

        let method = self.peer.side.method;
        let prober = if method.needs_no_test() {
            Some(SideProber::start(method, self.test, self.remote, None).map_err(failed)?)
        } else {
            None
        };
        let is_traced = planned.spec.hops && self.start_hops(&planned.spec);
        if is_traced || prober.is_some() {
            ended = wait(planned.spec.duration_max, self.interrupts);
        }

        result.local.hops = self.peer.side.hops.end();
        if let Some(prober) = prober {
            result.udp = prober.finish();
            result.local.elapsed_ns = clock::monotonic_ns().saturating_sub(result.started_ns);
        }

        self.keep(result);
        ended
    }

    /// Begins to trace; false where this host has no sockets for it.
    pub(super) fn start_hops(&mut self, phase: &PhaseSpec) -> bool {
        let test = self.test;
        let server = self.remote;
        self.peer
            .side
            .hops
            .start(phase, || far_hops::open(test, server))
            .is_ok()
    }

    /// The handshakes of all tests precede their data.
    fn add_handshakes(&mut self) {
        let handshakes = std::mem::take(&mut self.peer.side.handshakes);
        let needs_no_test = self.peer.side.method.needs_no_test();
        let mut phases = self.input.phases.iter_mut();
        let Some(idle) = phases.find(|phase| phase.spec.kind == PhaseKind::Idle) else {
            return;
        };

        if !needs_no_test {
            idle.udp.clone_from(&handshakes);
        }

        idle.foreign = ConcurrentProbes {
            tcp: handshakes,
            ..ConcurrentProbes::default()
        };
    }
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "errors are passed by `map_err`"
)]
pub(super) fn failed(error: std::io::Error) -> Ended {
    Ended::Failed(error.to_string())
}

pub(super) fn sample(sent_ns: u64, received_ns: u64) -> ProbeSample {
    ProbeSample {
        sent_ns,
        peer_received_ns: None,
        peer_sent_ns: None,
        received_ns: Some(received_ns),
    }
}

/// Waits, unless a signal comes first.
pub(super) fn wait(time: Duration, interrupts: &dyn Interrupts) -> Result<(), Ended> {
    let end = Instant::now() + time;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }

        // An interrupted wait is repeated.
        let is_ready = poll::wait_fd(interrupts.fd(), Interest::READ, Some(left)).unwrap_or(false);
        if is_ready && interrupts.take().is_some() {
            return Err(Ended::Interrupted);
        }
    }
}
