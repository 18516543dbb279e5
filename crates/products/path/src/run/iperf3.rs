//! Examination against a server of iperf3: ordinary tests one after the other, with a probe beside
//! them. What its protocol does not have is named, never estimated.

mod phase_over_iperf3;
mod result;
mod side_probe;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use linerate_doctor::observation::EndpointObservation;
use linerate_doctor::path::{ObservedPhase, diagnose_path};
use linerate_engine::Interrupts;
use linerate_engine::dialect::native::client::Established;
use linerate_model::outcome::{Error, Outcome};
use linerate_model::path::absent::{self, IPERF3_ONLY};
use linerate_model::path::{
    ConcurrentProbes, FinishedPhase, PathDirection, PathSpec, PathState, PathTarget, PhaseKind,
    PhaseResult, PhaseTransport, ProbeSample,
};
use linerate_sys::clock;

use super::observers::Observers;
use super::steering::{Position, SharedObserver};
use super::{Examined, Repetition, announce, ceilings, finished, identity};
use crate::conclude::{
    ClockFacts, ConcludeInput, conclude, goodput_bps, is_partial, samples, unmeasured,
};
use crate::plan::{LoadPlan, Offer, PlannedPhase, plan};
use crate::spec::PathTest;
use phase_over_iperf3::{Connection, Ended, Finished};
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
pub(super) fn examine(
    test: &PathTest,
    established: Established,
    repetition: Repetition,
    interrupts: &dyn Interrupts,
    observers: &mut Observers<'_>,
) -> Result<Examined, Error> {
    let host = &test.target.host;
    if test.spec.transport == PhaseTransport::Tls {
        let text = format!(
            "{host} answers as an iperf3 server, which has no TLS; test it without --transport tls"
        );
        return Err(Error::new(Outcome::Unreachable, text));
    }

    let target = identity::unproven(&test.target, &established);
    let remote = established.remote;
    let planned = plan(&test.spec, &Offer::iperf3());
    observers.progress.line(&format!(
        "{host}: an iperf3 server, {} s at most, identity unproven",
        planned.estimate_s
    ));
    announce(test, repetition, &target, planned.estimate_s, observers);

    let (method, refusal) = Method::choose(test, remote);
    let mut absent: Vec<(String, String)> = planned
        .absent
        .into_iter()
        .filter(|(name, _)| name != SIZE)
        .collect();
    absent.extend(refusal.map(|reason| (absent::LOADED_RTT.to_owned(), reason)));

    let examination = Examination {
        test,
        remote,
        connection: Connection::new(established),
        method,
        phases: Vec::new(),
        observed: Vec::new(),
        handshakes: Vec::new(),
        absent,
        down_bps: None,
        up_bps: None,
        failure: None,
        has_facts: false,
    };
    examination.run(
        &planned.phases,
        target,
        repetition.started,
        interrupts,
        observers,
    )
}

/// The phase whose measures are named one by one.
const SIZE: &str = "size";

/// An examination that runs.
struct Examination<'a> {
    test: &'a PathTest,
    remote: SocketAddr,
    connection: Connection,
    method: Method,
    phases: Vec<PhaseResult>,
    observed: Vec<ObservedPhase>,
    /// TCP handshakes of all tests.
    handshakes: Vec<ProbeSample>,
    absent: Vec<(String, String)>,
    /// Rates that the loads found, for the datagrams after them.
    down_bps: Option<f64>,
    up_bps: Option<f64>,
    /// The first phase that failed, and why.
    failure: Option<String>,
    has_facts: bool,
}

impl Examination<'_> {
    fn run(
        mut self,
        phases: &[PlannedPhase],
        target: PathTarget,
        started: Instant,
        interrupts: &dyn Interrupts,
        observers: &mut Observers<'_>,
    ) -> Result<Examined, Error> {
        let count = u32::try_from(phases.len()).unwrap_or(u32::MAX);
        self.handshakes.extend(self.connection.handshake());
        let mut is_interrupted = false;

        for (number, planned) in (1..).zip(phases) {
            let kind = planned.spec.kind;
            let position = Position {
                kind,
                number,
                count,
                planned_ns: clock::as_ns(planned.duration_max),
            };

            let known = self.phases.len();
            match self.phase(planned, position, interrupts, observers) {
                Ok(()) if self.phases.len() > known => self.show_finished(&target, observers),
                Ok(()) => {}
                Err(Ended::Interrupted) => {
                    is_interrupted = true;
                    break;
                }
                Err(Ended::Failed(reason)) => {
                    observers.finished(FinishedPhase::Failed {
                        kind,
                        reason: &reason,
                    });
                    self.failure.get_or_insert_with(|| reason.clone());
                    self.absent.push((kind.name().to_owned(), reason));
                }
            }
        }

        self.finish(target, started, is_interrupted)
    }

    /// Delays without load that are the handshakes of all tests are complete at the end.
    fn show_finished(&self, target: &PathTarget, observers: &mut Observers<'_>) {
        let is_complete = self
            .phases
            .last()
            .is_some_and(|phase| phase.spec.kind != PhaseKind::Idle)
            || self.method.needs_no_test();
        if is_complete {
            let clock = (self.method.kind(), ClockFacts::default());
            finished::show(&self.phases, target, &self.test.spec, clock, observers);
        }
    }

    fn phase(
        &mut self,
        planned: &PlannedPhase,
        position: Position,
        interrupts: &dyn Interrupts,
        observers: &mut Observers<'_>,
    ) -> Result<(), Ended> {
        if observers.progress.is_terminal() {
            observers.progress.update(&format!(
                "{} {}/{}",
                position.kind.name(),
                position.number,
                position.count
            ));
        }

        let ran = match (position.kind, planned.load) {
            (PhaseKind::Idle, _) => self.idle(planned, interrupts),
            (_, Some(load)) => self.load(planned, load, position, interrupts, observers),
            _ => self.datagrams(planned, interrupts),
        };
        observers.progress.clear();
        ran
    }

    /// Delays without load: ICMP echo or connections to another port for the planned time, or the
    /// handshakes of the tests, which are added at the end.
    fn idle(&mut self, planned: &PlannedPhase, interrupts: &dyn Interrupts) -> Result<(), Ended> {
        let mut result = PhaseResult::of(planned.spec.clone());
        result.started_ns = clock::monotonic_ns();
        let mut ended = Ok(());

        if self.method.needs_no_test() {
            let prober =
                SideProber::start(self.method, self.test, self.remote, None).map_err(failed)?;
            ended = phase_over_iperf3::wait(planned.duration_max, interrupts);
            result.udp = prober.finish();
            result.local.elapsed_ns = clock::monotonic_ns().saturating_sub(result.started_ns);
        }

        self.phases.push(result);
        ended
    }

    fn load(
        &mut self,
        planned: &PlannedPhase,
        load: LoadPlan,
        position: Position,
        interrupts: &dyn Interrupts,
        observers: &mut Observers<'_>,
    ) -> Result<(), Ended> {
        let load = fixed(load, &self.test.spec, self.method);
        let mut spec = planned.spec.clone();
        spec.streams_max = load.streams_max;

        let observer = SharedObserver::new();
        let context = phase_over_iperf3::Context {
            test: self.test,
            remote: self.remote,
            method: self.method,
            interrupts,
        };
        let finished = context.load(
            &mut self.connection,
            &spec,
            load,
            position,
            observer.clone(),
            observers,
        );

        let Finished {
            result,
            handshakes,
            facts,
            ended,
        } = finished;
        self.handshakes.extend(handshakes);
        let reason = unmeasured(&result);

        if result.local.elapsed_ns > 0 {
            if reason.is_none() && is_partial(&result) {
                self.failure.get_or_insert_with(|| {
                    format!("{}: a direction moved no data", spec.kind.name())
                });
            }

            let server = facts.and_then(|facts| EndpointObservation::from_peer(&facts).ok());
            self.has_facts |= server.is_some();
            let client = observer.0.borrow_mut().observation();
            self.observed.push(ObservedPhase {
                kind: spec.kind,
                client,
                server,
                remote: None,
            });
            self.note_rates(&result);
            self.phases.push(result);
        }

        ended.and_then(|()| reason.map_or(Ok(()), |reason| Err(Ended::Failed(reason))))
    }

    fn datagrams(
        &mut self,
        planned: &PlannedPhase,
        interrupts: &dyn Interrupts,
    ) -> Result<(), Ended> {
        let mut spec = planned.spec.clone();
        let packet_bytes = spec.datagram_bytes + result::headers_bytes(self.remote);
        spec.rate_bps = planned
            .datagram_rate_bps(self.down_bps, self.up_bps, packet_bytes)
            .or(spec.rate_bps);

        if spec.rate_bps.is_none() {
            return Err(Ended::Failed("no load found a rate for it".to_owned()));
        }

        let context = phase_over_iperf3::Context {
            test: self.test,
            remote: self.remote,
            method: self.method,
            interrupts,
        };
        let Finished { result, ended, .. } = context.datagrams(&mut self.connection, &spec);
        ended?;

        if let Some(reason) = unmeasured(&result) {
            return Err(Ended::Failed(reason));
        }

        self.phases.push(result);
        Ok(())
    }

    /// Rates for the datagrams after the loads.
    fn note_rates(&mut self, result: &PhaseResult) {
        match result.spec.kind {
            PhaseKind::Down => self.down_bps = goodput_bps(result, PathDirection::Down),
            PhaseKind::Up => self.up_bps = goodput_bps(result, PathDirection::Up),
            _ => {}
        }
    }

    fn finish(
        mut self,
        target: PathTarget,
        started: Instant,
        is_interrupted: bool,
    ) -> Result<Examined, Error> {
        let has_result = self.phases.iter().any(|phase| phase.local.elapsed_ns > 0);
        if !has_result && !is_interrupted {
            let reason = self.failure.unwrap_or_else(|| IPERF3_ONLY.to_owned());
            return Err(Error::failed(format!("{}: {reason}", target.host)));
        }

        self.add_handshakes();
        self.add_absent();

        let outcome = match &self.failure {
            _ if is_interrupted => Outcome::Interrupted,
            Some(_) => Outcome::NotCompleted,
            None => Outcome::Done,
        };
        let (ceiling_down, ceiling_up) = ceilings::ceilings(self.remote, &self.test.spec);

        let input = ConcludeInput {
            target,
            spec: self.test.spec.clone(),
            state: if outcome == Outcome::Done {
                PathState::Complete
            } else {
                PathState::Partial
            },
            elapsed_ns: clock::as_ns(started.elapsed()),
            resumed: 0,
            concurrent_max: None,
            probe: self.method.kind(),
            phases: self.phases,
            ladders: Vec::new(),
            clock: ClockFacts::default(),
            ceiling_down,
            ceiling_up,
            absent: self.absent,
        };
        let report = conclude(&input);
        let diagnosis = (!report.phases.is_empty()).then(|| diagnose_path(&report, self.observed));

        let samples = if self.test.wants_samples {
            samples(&input)
        } else {
            Vec::new()
        };
        Ok(Examined {
            report,
            diagnosis,
            samples,
            outcome,
        })
    }

    /// The handshakes of all tests precede their data.
    fn add_handshakes(&mut self) {
        let handshakes = std::mem::take(&mut self.handshakes);
        let Some(idle) = self
            .phases
            .iter_mut()
            .find(|phase| phase.spec.kind == PhaseKind::Idle)
        else {
            return;
        };

        if !self.method.needs_no_test() {
            idle.udp.clone_from(&handshakes);
        }

        idle.foreign = ConcurrentProbes {
            tcp: handshakes,
            ..ConcurrentProbes::default()
        };
    }

    fn add_absent(&mut self) {
        let mut missing = MISSING.to_vec();
        if !self.has_facts {
            missing.push(absent::SERVER_FACTS);
        }

        // A test of iperf3 keeps the number of streams that it began with.
        if self.test.spec.streams != Some(1) {
            missing.push(absent::SINGLE_STREAM);
        }

        self.absent.extend(
            missing
                .into_iter()
                .map(|figure| (figure.to_owned(), IPERF3_ONLY.to_owned())),
        );
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
