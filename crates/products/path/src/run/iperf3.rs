//! Examination against a server of iperf3: ordinary tests one after the other, with a probe beside
//! them. What its protocol does not have is named, never estimated.

mod hops;
mod phase_over_iperf3;
mod result;
mod side_probe;

use std::time::Duration;

use linerate_doctor::observation::EndpointObservation;
use linerate_doctor::path::ObservedPhase;
use linerate_engine::dialect::native::client::Established;
use linerate_engine::hops::PathTrace;
use linerate_model::outcome::{Error, Outcome};
use linerate_model::path::absent::{self, IPERF3_ONLY};
use linerate_model::path::{
    ConcurrentProbes, Dialect, PathSpec, PhaseKind, PhaseResult, PhaseTransport,
};
use linerate_sys::clock;

use super::examination::{Examination, Examined, Start};
use super::identity;
use super::steering::SharedObserver;
use crate::conclude::unmeasured;
use crate::plan::{LoadPlan, PlannedPhase, plan};
use crate::report::PhaseProgress;
use phase_over_iperf3::{Ended, Finished, Iperf3Peer};
use side_probe::{Method, SideProber};

/// Streams per direction of a load, unless the user sets them: a test of iperf3 keeps the number of
/// its start.
const STREAMS: u32 = 4;

/// Values that no server of iperf3 can show.
const MISSING: [&str; 10] = [
    absent::RESPONSIVENESS,
    absent::IN_BAND,
    absent::ONE_WAY_DELAY,
    absent::SERVER_RTT,
    absent::LOSS_BY_PLACE,
    absent::MTU_UP,
    absent::MTU_DOWN,
    absent::MARKS,
    absent::UDP_TOKENS,
    absent::RESUME,
];

/// Examines a path to a server of iperf3.
pub(super) fn examine(start: Start<'_>, established: Established) -> Result<Examined, Error> {
    let test = start.test;
    let host = &test.target.host;
    if test.spec.transport == PhaseTransport::Tls {
        let text = format!(
            "{host} answers as an iperf3 server, which has no TLS; test it without --transport tls"
        );
        return Err(Error::new(Outcome::Unreachable, text));
    }

    let target = identity::unproven(&test.target, &established);
    let remote = established.remote;
    let mut planned = plan(&test.spec, Dialect::Iperf3);
    start.observers.progress.line(&format!(
        "{host}: an iperf3 server, {} s at most, identity unproven",
        planned.estimate_s
    ));

    // Its measures are named one by one.
    planned
        .absent
        .retain(|(name, _)| name != PhaseKind::Size.name());
    let (method, refusal) = Method::choose(test, remote);
    let peer = Iperf3Peer {
        handshakes: vec![phase_over_iperf3::first_handshake(&established)],
        first: Some(established),
        method,
        has_facts: false,
        hops: PathTrace::default(),
    };
    let mut examination = start.begin(peer, remote, target, method.kind(), &planned);
    if let Some(reason) = refusal {
        examination.lack(absent::LOADED_RTT, reason);
    }

    let is_interrupted = examination.run(&planned.phases);
    examination.end(is_interrupted)
}

impl Examination<'_, Iperf3Peer> {
    /// Runs all phases; true if a signal ended them.
    fn run(&mut self, phases: &[PlannedPhase]) -> bool {
        let count = u32::try_from(phases.len()).unwrap_or(u32::MAX);
        for (number, planned) in (1..).zip(phases) {
            let kind = planned.spec.kind;
            let progress = PhaseProgress::new(kind, number, count, planned.spec.duration_max);
            let known = self.input.phases.len();
            self.show_begin(&progress);

            let ran = match (kind, planned.load) {
                (PhaseKind::Idle, _) => self.idle(planned),
                (_, Some(load)) => self.load(planned, load, progress),
                _ => self.datagrams(planned),
            };
            self.observers.progress.clear();

            // Delays without load that are the handshakes of all tests are complete at the end.
            let is_complete = kind != PhaseKind::Idle || self.peer.method.needs_no_test();
            match ran {
                Ok(()) if self.input.phases.len() > known && is_complete => self.show_finished(),
                Ok(()) => {}
                Err(Ended::Interrupted) => return true,
                Err(Ended::Failed(reason)) => self.fail(kind, &reason),
            }
        }

        false
    }

    /// Delays without load: ICMP echo or connections to another port for the planned time, or the
    /// handshakes of the tests, which are added at the end.
    fn idle(&mut self, planned: &PlannedPhase) -> Result<(), Ended> {
        let mut result = PhaseResult::of(planned.spec.clone());
        result.started_ns = clock::monotonic_ns();
        let mut ended = Ok(());

        let method = self.peer.method;
        let prober = match method.needs_no_test() {
            true => Some(SideProber::start(method, self.test, self.remote, None).map_err(failed)?),
            false => None,
        };
        let is_traced = planned.spec.hops && self.start_hops();
        if is_traced || prober.is_some() {
            ended = phase_over_iperf3::wait(planned.spec.duration_max, self.interrupts);
        }

        result.local.hops = self.peer.hops.end();
        if let Some(prober) = prober {
            result.udp = prober.finish();
            result.local.elapsed_ns = clock::monotonic_ns().saturating_sub(result.started_ns);
        }

        self.keep(result);
        ended
    }

    /// Begins to trace; false where this host has no sockets for it.
    pub(super) fn start_hops(&mut self) -> bool {
        let (test, server) = (self.test, self.remote);
        self.peer.hops.start(|| hops::open(test, server)).is_ok()
    }

    fn load(
        &mut self,
        planned: &PlannedPhase,
        load: LoadPlan,
        progress: PhaseProgress,
    ) -> Result<(), Ended> {
        let load = fixed(load, &self.test.spec, self.peer.method);
        let mut spec = planned.spec.clone();
        spec.streams_max = load.streams_max;

        let observer = SharedObserver::default();
        let Finished {
            result,
            handshakes,
            facts,
            ended,
        } = self.run_load(&spec, load, progress, observer.clone());
        self.peer.handshakes.extend(handshakes);
        let reason = unmeasured(&result);

        if result.local.elapsed_ns > 0 {
            if reason.is_none() {
                self.note_partial(&result);
            }

            let server = facts.and_then(|facts| EndpointObservation::from_peer(&facts).ok());
            self.peer.has_facts |= server.is_some();
            let client = self.observation(&observer);
            self.observed.push(ObservedPhase {
                kind: spec.kind,
                client,
                server,
                remote: None,
            });
            self.keep(result);
        }

        ended.and_then(|()| reason.map_or(Ok(()), |reason| Err(Ended::Failed(reason))))
    }

    fn datagrams(&mut self, planned: &PlannedPhase) -> Result<(), Ended> {
        let spec = self.resolved(planned);
        if spec.rate_bps.is_none() {
            return Err(Ended::Failed(absent::NO_RATE.to_owned()));
        }

        let Finished { result, ended, .. } = self.run_datagrams(&spec);
        ended?;

        if let Some(reason) = unmeasured(&result) {
            return Err(Ended::Failed(reason));
        }

        self.keep(result);
        Ok(())
    }

    fn end(mut self, is_interrupted: bool) -> Result<Examined, Error> {
        let mut phases = self.input.phases.iter();
        if !is_interrupted && !phases.any(|phase| phase.local.elapsed_ns > 0) {
            let reason = self.failure.as_deref().unwrap_or(IPERF3_ONLY);
            let host = &self.input.target.host;
            return Err(Error::failed(format!("{host}: {reason}")));
        }

        self.add_handshakes();
        self.add_absent();

        let outcome = match &self.failure {
            _ if is_interrupted => Outcome::Interrupted,
            Some(_) => Outcome::NotCompleted,
            None => Outcome::Done,
        };
        Ok(self.finish(outcome).0)
    }

    /// The handshakes of all tests precede their data.
    fn add_handshakes(&mut self) {
        let handshakes = std::mem::take(&mut self.peer.handshakes);
        let mut phases = self.input.phases.iter_mut();
        let Some(idle) = phases.find(|phase| phase.spec.kind == PhaseKind::Idle) else {
            return;
        };

        if !self.peer.method.needs_no_test() {
            idle.udp.clone_from(&handshakes);
        }

        idle.foreign = ConcurrentProbes {
            tcp: handshakes,
            ..ConcurrentProbes::default()
        };
    }

    fn add_absent(&mut self) {
        let facts = (!self.peer.has_facts).then_some(absent::SERVER_FACTS);
        // A test of iperf3 keeps the number of streams that it began with.
        let single = (self.test.spec.streams != Some(1)).then_some(absent::SINGLE_STREAM);
        for figure in MISSING.into_iter().chain(facts).chain(single) {
            self.lack(figure, IPERF3_ONLY);
        }
    }
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "errors are passed by `map_err`"
)]
fn failed(error: std::io::Error) -> Ended {
    Ended::Failed(error.to_string())
}

/// A load whose number of streams stays. Connections that the busy server refuses must end before
/// it, so its end is known.
fn fixed(load: LoadPlan, spec: &PathSpec, method: Method) -> LoadPlan {
    let streams = spec.streams.unwrap_or(STREAMS).max(1).min(load.streams_max);
    let duration_min = if method == Method::Busy {
        load.duration_max
    } else {
        load.duration_min
    };

    LoadPlan {
        streams_start: streams,
        single: Duration::ZERO,
        streams_next: streams,
        streams_step: 0,
        streams_max: streams,
        is_growing_until_stable: false,
        duration_min,
        ..load
    }
}
