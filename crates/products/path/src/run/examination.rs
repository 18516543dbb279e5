//! An examination that runs, against either kind of server: what it has measured so far, and the
//! report of it.

use std::net::SocketAddr;
use std::time::Instant;

use linerate_doctor::observation::EndpointObservation;
use linerate_doctor::path::{ObservedPhase, diagnose_path};
use linerate_engine::Interrupts;
use linerate_model::finding::Diagnosis;
use linerate_model::outcome::Outcome;
use linerate_model::path::{
    EVENT_SCHEMA, FinishedPhase, PathDirection, PathEvent, PathReport, PathState, PathTarget,
    PhaseKind, PhaseResult, PhaseSpec, ProbeKind, SampleSeries,
};
use linerate_sys::clock;

use super::observers::Observers;
use super::steering::SharedObserver;
use super::{ceilings, names};
use crate::conclude::{
    CeilingFacts, ClockFacts, ConcludeInput, conclude, goodput_bps, is_partial, samples,
};
use crate::plan::{PlannedPhase, PlannedTest, headers_bytes};
use crate::report::PhaseProgress;
use crate::spec::PathTest;

/// Result of one examination.
#[derive(Debug)]
pub struct Examined {
    /// The report.
    pub report: PathReport,
    /// Limit of the path; absent where no load was measured.
    pub diagnosis: Option<Diagnosis>,
    /// Single probes, where they are wanted.
    pub samples: Vec<SampleSeries>,
    /// What the CPUs of this host did during the loads as collapsed stacks, where it is wanted.
    pub stacks: String,
    /// [`Outcome::Done`], or why it did not reach its end.
    pub outcome: Outcome,
}

/// A test that begins.
pub(super) struct Start<'a> {
    pub test: &'a PathTest,
    /// Number of the repetition, from 0.
    pub number: u32,
    pub started: Instant,
    pub interrupts: &'a dyn Interrupts,
    pub observers: Observers<'a>,
}

/// An examination; `peer` has what only one kind of server needs.
pub(super) struct Examination<'a, P> {
    pub test: &'a PathTest,
    pub peer: P,
    pub remote: SocketAddr,
    pub interrupts: &'a dyn Interrupts,
    pub observers: Observers<'a>,
    /// Measurements, of which the report is made.
    pub input: ConcludeInput,
    /// The first failure of a phase, or of a part of one.
    pub failure: Option<String>,
    pub observed: Vec<ObservedPhase>,
    pub stacks: String,
    /// Rates that the loads found, for the datagrams after them.
    down_bps: Option<f64>,
    up_bps: Option<f64>,
    started: Instant,
}

impl<'a> Start<'a> {
    /// The server at `remote` is reached, and the phases are planned.
    pub(super) fn begin<P>(
        self,
        peer: P,
        remote: SocketAddr,
        target: PathTarget,
        probe: ProbeKind,
        planned: &PlannedTest,
    ) -> Examination<'a, P> {
        let Self {
            test,
            number,
            started,
            interrupts,
            observers,
        } = self;
        (observers.on_event)(&PathEvent::Started {
            schema: EVENT_SCHEMA,
            repeat: number,
            target: &target,
            spec: &test.spec,
            seconds_max: planned.estimate_s,
        });

        Examination {
            test,
            peer,
            remote,
            interrupts,
            observers,
            input: ConcludeInput {
                target,
                spec: test.spec.clone(),
                state: PathState::Partial,
                elapsed_ns: 0,
                resumed: 0,
                concurrent_max: None,
                probe,
                phases: Vec::new(),
                ladders: Vec::new(),
                clock: ClockFacts::default(),
                ceiling_down: CeilingFacts::default(),
                ceiling_up: CeilingFacts::default(),
                absent: planned.absent.clone(),
            },
            failure: None,
            observed: Vec::new(),
            stacks: String::new(),
            down_bps: None,
            up_bps: None,
            started,
        }
    }
}

impl<P> Examination<'_, P> {
    /// Ends the observation of this host during a load.
    pub(super) fn observation(&mut self, observer: &SharedObserver) -> Option<EndpointObservation> {
        let observation = observer.observation();
        if self.test.wants_stacks {
            self.stacks.extend(observer.stacks());
        }
        observation
    }

    /// A value that the report does not have, and why.
    pub(super) fn lack(&mut self, figure: &str, reason: impl Into<String>) {
        self.input.absent.push((figure.to_owned(), reason.into()));
    }

    /// A phase has no result.
    pub(super) fn fail(&mut self, kind: PhaseKind, reason: &str) {
        self.failure.get_or_insert_with(|| reason.to_owned());
        self.observers
            .finished(FinishedPhase::Failed { kind, reason });
        self.lack(kind.name(), reason);
    }

    /// A phase begins whose progress is not known.
    pub(super) fn show_begin(&mut self, progress: &PhaseProgress) {
        if self.observers.progress.is_terminal() {
            let PhaseProgress {
                kind,
                number,
                count,
                ..
            } = progress;
            self.observers
                .progress
                .update(&format!("{} {number}/{count}", kind.name()));
        }
    }

    /// Parameters that both ends agree on, with a rate that depends on the loads before.
    pub(super) fn resolved(&self, planned: &PlannedPhase) -> PhaseSpec {
        let packet_bytes = planned.spec.datagram_bytes + headers_bytes(self.remote.is_ipv6());
        PhaseSpec {
            rate_bps: planned
                .datagram_rate_bps(self.down_bps, self.up_bps, packet_bytes)
                .or(planned.spec.rate_bps),
            ..planned.spec.clone()
        }
    }

    /// Keeps the result of a phase.
    pub(super) fn keep(&mut self, result: PhaseResult) {
        match result.spec.kind {
            PhaseKind::Down => self.down_bps = goodput_bps(&result, PathDirection::Down),
            PhaseKind::Up => self.up_bps = goodput_bps(&result, PathDirection::Up),
            _ => {}
        }

        self.input.phases.push(result);
    }

    /// A phase has values, perhaps not all of them.
    pub(super) fn note_partial(&mut self, result: &PhaseResult) {
        if is_partial(result) {
            let kind = result.spec.kind.name();
            self.failure
                .get_or_insert_with(|| format!("{kind}: a direction moved no data"));
        }
    }

    /// Shows the last phase, if it has a result.
    pub(super) fn show_finished(&mut self) {
        let Some(last) = self.input.phases.last() else {
            return;
        };
        let report = conclude(&self.input);
        if let Some(finished) = finished(&report, last.spec.kind) {
            self.observers.finished(finished);
        }
    }

    /// The report of all phases, and the server.
    pub(super) fn finish(mut self, outcome: Outcome) -> (Examined, P) {
        let input = &mut self.input;
        (input.ceiling_down, input.ceiling_up) = ceilings::ceilings(self.remote, &self.test.spec);
        input.elapsed_ns = clock::as_ns(self.started.elapsed());
        if outcome == Outcome::Done {
            input.state = PathState::Complete;
        }

        let mut report = conclude(input);
        if self.test.wants_names {
            names::look_up(&mut report.path);
        }
        let diagnosis = (!report.phases.is_empty()).then(|| diagnose_path(&report, self.observed));
        let samples = if self.test.wants_samples {
            samples(input)
        } else {
            Vec::new()
        };
        let examined = Examined {
            report,
            diagnosis,
            samples,
            stacks: self.stacks,
            outcome,
        };
        (examined, self.peer)
    }
}

fn finished(report: &PathReport, kind: PhaseKind) -> Option<FinishedPhase<'_>> {
    Some(match kind {
        PhaseKind::Size => FinishedPhase::Size(&report.size),
        PhaseKind::Idle => FinishedPhase::Idle(report.idle.as_ref()?),
        PhaseKind::Down | PhaseKind::Up | PhaseKind::Both => {
            FinishedPhase::Load(report.phases.last()?)
        }
        PhaseKind::Rr | PhaseKind::Crr => FinishedPhase::Transactions(report.transactions.last()?),
        _ => FinishedPhase::Datagrams(report.datagrams.last()?),
    })
}
