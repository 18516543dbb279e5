//! Runs the phases of a plan against a native server.

use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use linerate_doctor::observation::{EndpointObservation, PEER_IS_HERE};
use linerate_doctor::path::ObservedPhase;
use linerate_engine::Interrupts;
use linerate_engine::dialect::native::client::{LoadController, NativeClient, NativeError};
use linerate_model::path::{
    FinishedPhase, PathDirection, PathSpec, PathTarget, PhaseKind, PhaseResult, PhaseSpec,
    ProbeKind, RateLadder, absent,
};
use linerate_sys::clock;

use super::finished;
use super::observers::Observers;
use super::searches::is_search;
use super::steering::{Position, SharedObserver, ShownLoad, TestExtent};
use crate::conclude::{ClockFacts, goodput_bps, is_partial, round_trips, unmeasured};
use crate::plan::{LoadPlan, PlannedPhase, PlannedTest, load_within};

/// An examination that runs.
pub(super) struct Examination {
    pub(super) client: NativeClient,
    plan: PlannedTest,
    spec: PathSpec,
    dscps: Vec<u8>,
    target: PathTarget,
    pub(super) phases: Vec<PhaseResult>,
    pub(super) ladders: Vec<RateLadder>,
    observed: Vec<ObservedPhase>,
    pub(super) absent: Vec<(String, String)>,
    /// Rates that the loads found, for the datagrams after them.
    down_bps: Option<f64>,
    up_bps: Option<f64>,
    has_failed: bool,
    /// A phase or a search has values.
    has_result: bool,
    /// Time that each load took longer than planned.
    overruns: Vec<Duration>,
    /// Not announced yet.
    extent: Option<TestExtent>,
}

/// Result of an examination.
pub(super) struct Collected {
    pub(super) target: PathTarget,
    pub(super) phases: Vec<PhaseResult>,
    pub(super) ladders: Vec<RateLadder>,
    pub(super) observed: Vec<ObservedPhase>,
    pub(super) absent: Vec<(String, String)>,
    pub(super) clock: ClockFacts,
    pub(super) resumed: u32,
    pub(super) concurrent_max: Option<u32>,
}

impl Examination {
    pub(super) fn new(
        mut client: NativeClient,
        plan: &PlannedTest,
        spec: &PathSpec,
        target: PathTarget,
    ) -> Self {
        let absent = plan.absent.clone();
        let extent = TestExtent {
            load_seconds: plan.phases.iter().map(load_seconds).sum(),
            seconds: plan.estimate_s as f64,
            bytes_max: spec.bytes_max,
        };

        client.set_host_drops(Rc::new(linerate_host::drops));
        Self {
            client,
            plan: plan.clone(),
            spec: spec.clone(),
            dscps: spec.probe_dscps.clone(),
            target,
            phases: Vec::new(),
            ladders: Vec::new(),
            observed: Vec::new(),
            absent,
            down_bps: None,
            up_bps: None,
            has_failed: false,
            has_result: false,
            overruns: Vec::new(),
            extent: Some(extent),
        }
    }

    pub(super) fn remote(&self) -> SocketAddr {
        self.client.peer().remote
    }

    /// No phase failed, and something was measured.
    pub(super) fn is_whole(&self) -> bool {
        !self.has_failed && (self.has_result || !self.ladders.is_empty())
    }

    /// Runs all phases. One that the server refuses leaves the others alone.
    pub(super) fn run(
        &mut self,
        interrupts: &dyn Interrupts,
        observers: &mut Observers<'_>,
    ) -> Result<(), NativeError> {
        let started = Instant::now();
        let time_max = self.plan.time_max();
        let phases = std::mem::take(&mut self.plan.phases);
        let count = u32::try_from(phases.len()).unwrap_or(u32::MAX);

        for (index, planned) in phases.iter().enumerate() {
            let kind = planned.spec.kind;
            let number = u32::try_from(index + 1).unwrap_or(u32::MAX);
            let left = time_max.saturating_sub(started.elapsed());
            // At 1 Mbit/s behind a queue of 1 s the default profile took 33 to 37 s, of 27 s that
            // were announced.
            let load = load_within(
                phases.get(index..).unwrap_or_default(),
                left,
                self.overrun(),
            );
            let duration_max = load.map_or(planned.duration_max, |load| load.duration_max);

            let position = Position {
                kind,
                number,
                count,
                planned_ns: clock::as_ns(duration_max),
            };
            let begun = Instant::now();

            let ran = match is_search(kind) {
                true => {
                    let found = self.ladders.len();
                    let ran = self.run_search(planned, position, interrupts, observers);
                    self.show_searches(found, observers);
                    ran
                }
                false => self.run_phase(planned, load, position, interrupts, observers),
            };
            if load.is_some() {
                self.overruns
                    .push(begun.elapsed().saturating_sub(duration_max));
            }

            match ran {
                Ok(()) => {}
                Err(NativeError::Refused { clause, text }) => {
                    let reason = format!("the server refuses it: {text} ({clause})");
                    self.fail(kind, &reason, observers);
                }
                Err(error) => {
                    self.fail(kind, &error.to_string(), observers);
                    return Err(error);
                }
            }
        }

        Ok(())
    }

    /// Time that a load took longer than planned so far, on average.
    fn overrun(&self) -> Duration {
        let count = u32::try_from(self.overruns.len()).unwrap_or(u32::MAX);
        self.overruns
            .iter()
            .sum::<Duration>()
            .checked_div(count)
            .unwrap_or_default()
    }

    pub(super) fn fail(&mut self, kind: PhaseKind, reason: &str, observers: &mut Observers<'_>) {
        self.has_failed = true;
        observers.finished(FinishedPhase::Failed { kind, reason });
        self.absent
            .push((kind.name().to_owned(), reason.to_owned()));
    }

    fn run_phase(
        &mut self,
        planned: &PlannedPhase,
        load: Option<LoadPlan>,
        position: Position,
        interrupts: &dyn Interrupts,
        observers: &mut Observers<'_>,
    ) -> Result<(), NativeError> {
        let spec = self.resolved(planned);
        if spec.direction.is_some() && spec.rate_bps.is_none() {
            self.absent.push((
                spec.kind.name().to_owned(),
                "no load found a rate for it".to_owned(),
            ));
            return Ok(());
        }

        let mut result = PhaseResult::of(spec.clone());
        let observer = SharedObserver::new();

        let ran = match load {
            Some(load) => {
                let mut shown =
                    ShownLoad::new(load, position, observers.reborrow(), self.extent.take());
                let steering = LoadController {
                    control: &mut shown,
                    sink: Box::new(observer.clone()),
                };
                let ran = self.client.run_phase(
                    &spec,
                    &self.dscps,
                    Some(steering),
                    interrupts,
                    &mut result,
                );

                result.load = Some(shown.outcome());
                ran
            }
            None => {
                if observers.progress.is_terminal() {
                    observers.progress.update(&format!(
                        "{} {}/{}",
                        spec.kind.name(),
                        position.number,
                        position.count
                    ));
                }

                self.client
                    .run_phase(&spec, &self.dscps, None, interrupts, &mut result)
            }
        };
        let is_interrupted = matches!(ran, Err(NativeError::Interrupted(_)));
        let has_ended = ran.is_ok() || is_interrupted && result.local.elapsed_ns > 0;

        match unmeasured(&result) {
            _ if !has_ended => {}
            // A test with UDP blocked is complete as long as something else was measured.
            Some(_) if load.is_none() && is_udp_blocked(&result) => self.phases.push(result),
            // The interruption is the reason.
            Some(_) if is_interrupted => {}
            Some(reason) => {
                self.fail(spec.kind, &reason, observers);
                // Streams that are open and carry nothing are something to diagnose.
                if !result.local.streams.is_empty() {
                    self.keep(result, &observer, is_interrupted, interrupts);
                }
            }
            None => {
                self.has_result = true;
                self.has_failed |= is_partial(&result);
                self.keep(result, &observer, is_interrupted, interrupts);
                self.show_finished(observers);
            }
        }

        ran
    }

    fn show_finished(&self, observers: &mut Observers<'_>) {
        let clock = (ProbeKind::Udp, self.clock_facts());
        finished::show(&self.phases, &self.target, &self.spec, clock, observers);
    }

    /// Results of searches from this one on.
    fn show_searches(&self, first: usize, observers: &mut Observers<'_>) {
        for ladder in self.ladders.iter().skip(first) {
            observers.finished(FinishedPhase::Ladder(ladder));
        }
    }

    fn clock_facts(&self) -> ClockFacts {
        ClockFacts {
            is_same_boot: self.client.is_same_boot(),
            disciplined: self.client.disciplined_offset(),
        }
    }

    /// Length of an IP packet with one of the datagrams.
    pub(super) fn packet_bytes(&self, spec: &PhaseSpec) -> u32 {
        let headers = if self.remote().is_ipv6() { 48 } else { 28 };
        spec.datagram_bytes + headers
    }

    /// Parameters that both ends agree on, with a rate that depends on the loads before.
    fn resolved(&self, planned: &PlannedPhase) -> PhaseSpec {
        let mut spec = planned.spec.clone();
        let packet_bytes = self.packet_bytes(&spec);
        if let Some(rate_bps) = planned.datagram_rate_bps(self.down_bps, self.up_bps, packet_bytes)
        {
            spec.rate_bps = Some(rate_bps);
        }
        spec
    }

    fn keep(
        &mut self,
        result: PhaseResult,
        observer: &SharedObserver,
        is_interrupted: bool,
        interrupts: &dyn Interrupts,
    ) {
        let kind = result.spec.kind;
        // After a load the client waits until its probes are near this round trip.
        if kind == PhaseKind::Idle {
            self.client.set_idle_rtt_ns(round_trips(&result.udp).p50_ns);
        }

        if result.load.is_some() {
            // After each load: counters of a whole examination would mix idle, down and up.
            let facts = if is_interrupted {
                None
            } else {
                self.client.facts(interrupts)
            };
            let server = facts
                .as_deref()
                .and_then(|facts| EndpointObservation::from_peer(facts).ok());
            let mut client = observer.0.borrow_mut().observation();
            if let Some(client) = client.as_mut().filter(|_| self.client.is_same_boot()) {
                client.snapshot.set(PEER_IS_HERE, true, "boot_id");
            }

            self.observed.push(ObservedPhase {
                kind,
                client,
                server,
                remote: result.remote.clone(),
            });
            self.note_rates(&result);
        }

        self.phases.push(result);
    }

    /// Rates for the datagrams after the loads.
    fn note_rates(&mut self, result: &PhaseResult) {
        match result.spec.kind {
            PhaseKind::Down => self.down_bps = goodput_bps(result, PathDirection::Down),
            PhaseKind::Up => self.up_bps = goodput_bps(result, PathDirection::Up),
            _ => {}
        }
    }

    /// Ends the session.
    pub(super) fn finish(self, failure: Option<&NativeError>) -> Collected {
        let clock = self.clock_facts();
        // Tests that began after this one are in the results of its phases.
        let during = self
            .phases
            .iter()
            .filter_map(|phase| phase.remote.as_ref()?.concurrent_max);
        let concurrent_max = during.chain([self.client.welcome().concurrent]).max();

        let collected = Collected {
            clock,
            target: self.target,
            phases: self.phases,
            ladders: self.ladders,
            observed: self.observed,
            absent: self.absent,
            resumed: self.client.resumed(),
            concurrent_max,
        };
        // After any other failure the server is gone, or may not be trusted.
        if matches!(failure, None | Some(NativeError::Interrupted(_))) {
            self.client.close();
        }

        collected
    }
}

/// The phase has no result for a reason that leaves the rest of the test as it is.
fn is_udp_blocked(result: &PhaseResult) -> bool {
    result
        .absent
        .iter()
        .any(|(_, reason)| reason == absent::UDP_BLOCKED)
}

/// Seconds of a load that a phase has at most, of both directions together.
fn load_seconds(planned: &PlannedPhase) -> f64 {
    let directions = match (planned.spec.kind, planned.load) {
        (PhaseKind::Both, Some(_)) => 2.0,
        (_, Some(_)) => 1.0,
        (_, None) => 0.0,
    };
    planned.duration_max.as_secs_f64() * directions
}
