//! Runs the phases of a plan against a native server.

use std::rc::Rc;
use std::time::{Duration, Instant};

use linerate_doctor::observation::{EndpointObservation, PEER_IS_HERE};
use linerate_doctor::path::ObservedPhase;
use linerate_engine::dialect::native::client::{LoadController, NativeClient, NativeError};
use linerate_model::outcome::Outcome;
use linerate_model::path::{FinishedPhase, PhaseKind, PhaseResult, ProbeKind, absent};

use super::examination::{Examination, Examined, Start};
use super::identity;
use super::steering::{SharedObserver, ShownLoad, TestExtent};
use crate::conclude::{ClockFacts, round_trips, unmeasured};
use crate::plan::{LoadPlan, PlannedPhase, PlannedTest, load_within};
use crate::report::PhaseProgress;

/// A native server.
pub(super) struct NativePeer {
    pub client: NativeClient,
    /// A phase or a search has values.
    has_result: bool,
    /// Time that each load took longer than planned.
    overruns: Vec<Duration>,
    /// Not announced yet.
    extent: Option<TestExtent>,
}

/// Examines a path to a native server.
pub(super) fn examine(
    start: Start<'_>,
    mut client: NativeClient,
    planned: &PlannedTest,
) -> Examined {
    let target = &start.test.target;
    let key = client.peer().fingerprint;
    let remote = client.peer().remote;
    start.observers.progress.line(&format!(
        "{}: {} s at most, key {key}",
        target.host, planned.estimate_s
    ));

    let target = identity::target(target, &client);
    client.set_host_drops(Rc::new(linerate_host::drops));
    let peer = NativePeer {
        client,
        has_result: false,
        overruns: Vec::new(),
        extent: Some(TestExtent {
            load_seconds: planned.phases.iter().map(load_seconds).sum(),
            seconds: planned.estimate_s as f64,
            bytes_max: start.test.spec.bytes_max,
        }),
    };
    let mut examination = start.begin(peer, remote, target, ProbeKind::Udp, planned);
    let ran = examination.run(planned);
    examination.end(&ran)
}

impl Examination<'_, NativePeer> {
    /// Runs all phases. One that the server refuses leaves the others alone.
    fn run(&mut self, planned: &PlannedTest) -> Result<(), NativeError> {
        let started = Instant::now();
        let phases = &planned.phases;
        let count = u32::try_from(phases.len()).unwrap_or(u32::MAX);

        for (index, planned_phase) in phases.iter().enumerate() {
            let kind = planned_phase.spec.kind;
            let number = u32::try_from(index + 1).unwrap_or(u32::MAX);
            let left = planned.time_max().saturating_sub(started.elapsed());
            // At 1 Mbit/s behind a queue of 1 s the default profile took 33 to 37 s, of 27 s that
            // were announced.
            let load = load_within(
                phases.get(index..).unwrap_or_default(),
                left,
                self.overrun(),
            );
            let duration_max =
                load.map_or(planned_phase.spec.duration_max, |load| load.duration_max);

            let progress = PhaseProgress::new(kind, number, count, duration_max);
            let begun = Instant::now();

            let ran = if is_search(kind) {
                let found = self.input.ladders.len();
                let ran = self.run_search(&planned_phase.spec, &progress);
                for ladder in self.input.ladders.iter().skip(found) {
                    self.observers.finished(FinishedPhase::Ladder(ladder));
                }
                ran
            } else {
                self.run_phase(planned_phase, load, progress)
            };
            if load.is_some() {
                self.peer
                    .overruns
                    .push(begun.elapsed().saturating_sub(duration_max));
            }

            match ran {
                Ok(()) => {}
                Err(NativeError::Refused { clause, text }) => {
                    self.fail(kind, &format!("the server refuses it: {text} ({clause})"));
                }
                Err(error) => {
                    self.fail(kind, &error.to_string());
                    return Err(error);
                }
            }
        }

        Ok(())
    }

    /// Time that a load took longer than planned so far, on average.
    fn overrun(&self) -> Duration {
        let overruns = &self.peer.overruns;
        let count = u32::try_from(overruns.len()).unwrap_or(u32::MAX);
        overruns
            .iter()
            .sum::<Duration>()
            .checked_div(count)
            .unwrap_or_default()
    }

    fn run_phase(
        &mut self,
        planned: &PlannedPhase,
        load: Option<LoadPlan>,
        progress: PhaseProgress,
    ) -> Result<(), NativeError> {
        let spec = self.resolved(planned);
        if spec.direction.is_some() && spec.rate_bps.is_none() {
            self.lack(spec.kind.name(), absent::NO_RATE);
            return Ok(());
        }

        let mut result = PhaseResult::of(spec.clone());
        let observer = SharedObserver::default();
        let dscps = &self.test.spec.probe_dscps;

        let ran = match load {
            Some(load) => {
                let extent = self.peer.extent.take();
                let mut shown = ShownLoad::new(load, progress, self.observers.reborrow(), extent);
                let steering = LoadController {
                    control: &mut shown,
                    sink: Box::new(observer.clone()),
                };
                let ran = self.peer.client.run_phase(
                    &spec,
                    dscps,
                    Some(steering),
                    self.interrupts,
                    &mut result,
                );

                result.load = Some(shown.outcome());
                ran
            }
            None => {
                self.show_begin(&progress);
                self.peer
                    .client
                    .run_phase(&spec, dscps, None, self.interrupts, &mut result)
            }
        };
        let is_interrupted = matches!(ran, Err(NativeError::Interrupted(_)));
        // A phase that a signal ends keeps what it measured until then.
        let has_ended = ran.is_ok() || is_interrupted && result.local.elapsed_ns > 0;

        match unmeasured(&result) {
            _ if !has_ended => {}
            // A test with UDP blocked is complete as long as something else was measured.
            Some(_) if load.is_none() && is_udp_blocked(&result) => self.keep(result),
            // The interruption is the reason.
            Some(_) if is_interrupted => {}
            Some(reason) => {
                self.fail(spec.kind, &reason);
                // Streams that are open and carry nothing are something to diagnose.
                if !result.local.streams.is_empty() {
                    self.keep_observed(result, &observer, is_interrupted);
                }
            }
            None => {
                self.peer.has_result = true;
                self.note_partial(&result);
                self.keep_observed(result, &observer, is_interrupted);
                self.input.clock = self.clock_facts();
                self.show_finished();
            }
        }

        ran
    }

    fn clock_facts(&self) -> ClockFacts {
        ClockFacts {
            is_same_boot: self.peer.client.is_same_boot(),
            disciplined: self.peer.client.disciplined_offset(),
        }
    }

    fn keep_observed(
        &mut self,
        result: PhaseResult,
        observer: &SharedObserver,
        is_interrupted: bool,
    ) {
        let kind = result.spec.kind;
        // After a load the client waits until its probes are near this round trip.
        if kind == PhaseKind::Idle {
            let idle = round_trips(&result.udp).p50_ns;
            self.peer.client.set_idle_rtt_ns(idle);
        }

        if result.load.is_some() {
            // After each load: counters of a whole examination would mix idle, down and up.
            let facts = if is_interrupted {
                None
            } else {
                self.peer.client.facts(self.interrupts)
            };
            let server = facts
                .as_deref()
                .and_then(|facts| EndpointObservation::from_peer(facts).ok());
            let mut observation = self.observation(observer);
            let is_same_boot = self.peer.client.is_same_boot();
            if let Some(here) = observation.as_mut().filter(|_| is_same_boot) {
                here.snapshot.set(PEER_IS_HERE, true, "boot_id");
            }

            self.observed.push(ObservedPhase {
                kind,
                client: observation,
                server,
                remote: result.remote.clone(),
            });
        }

        self.keep(result);
    }

    /// Ends the session.
    fn end(mut self, ran: &Result<(), NativeError>) -> Examined {
        let has_values = self.peer.has_result || !self.input.ladders.is_empty();
        let outcome = match ran {
            Ok(()) if self.failure.is_none() && has_values => Outcome::Done,
            Err(NativeError::Interrupted(_)) => Outcome::Interrupted,
            _ => Outcome::NotCompleted,
        };
        // Tests that began after this one are in the results of its phases.
        let during = self
            .input
            .phases
            .iter()
            .filter_map(|phase| phase.remote.as_ref()?.concurrent_max);
        let client = &mut self.peer.client;
        self.input.concurrent_max = during.chain([client.welcome().concurrent]).max();
        self.input.resumed = client.resumed();
        self.input.clock = self.clock_facts();

        let (examined, peer) = self.finish(outcome);
        // After any other failure the server is gone, or may not be trusted.
        if matches!(ran, Ok(()) | Err(NativeError::Interrupted(_))) {
            peer.client.close();
        }

        examined
    }
}

/// The phase has no result for a reason that leaves the rest of the test as it is.
fn is_udp_blocked(result: &PhaseResult) -> bool {
    result
        .absent
        .iter()
        .any(|(_, reason)| reason == absent::UDP_BLOCKED)
}

/// A kind of phase that looks for a rate.
fn is_search(kind: PhaseKind) -> bool {
    matches!(kind, PhaseKind::Cps | PhaseKind::Pps | PhaseKind::Capacity)
}

/// Seconds of a load that a phase has at most, of both directions together.
fn load_seconds(planned: &PlannedPhase) -> f64 {
    let directions = planned.spec.kind.load_directions().len();
    planned.spec.duration_max.as_secs_f64() * directions as f64
}
