//! The phases of a test against a server, native or of iperf3, and the report of them.

mod ceilings;
mod examination;
mod finished;
pub mod identity;
mod iperf3;
mod observers;
mod searches;
mod steering;

use std::time::{Duration, Instant};

use linerate_doctor::path::diagnose_path;
use linerate_engine::Interrupts;
use linerate_engine::dialect::native::client::{
    self, Announcement, NativeClient, NativeError, Opened, Target, Turn,
};
use linerate_host::connect_advice::{TEST_SERVER, connect_failure};
use linerate_model::finding::Diagnosis;
use linerate_model::outcome::{Error, Outcome};
use linerate_model::path::{
    EVENT_SCHEMA, PathEvent, PathReport, PathState, PathTarget, PhaseKind, ProbeKind, SampleSeries,
};
use linerate_sys::clock;

use crate::conclude::{ConcludeInput, conclude, samples};
use crate::plan::PlannedTest;
use crate::spec::PathTest;
use examination::Examination;
pub use observers::Observers;

/// Result of one examination.
#[derive(Debug)]
pub struct Examined {
    /// The report.
    pub report: PathReport,
    /// Limit of the path; absent where no load was measured.
    pub diagnosis: Option<Diagnosis>,
    /// Single probes, where they are wanted.
    pub samples: Vec<SampleSeries>,
    /// [`Outcome::Done`], or why it did not reach its end.
    pub outcome: Outcome,
}

/// Which repetition of a test, and when it began.
#[derive(Debug, Clone, Copy)]
struct Repetition {
    number: u32,
    started: Instant,
}

/// Connections at the same time that a search for the highest rate of connections announces.
const CONNECTIONS_MAX: u32 = 10_000;

/// Examines a path once. A signal ends it with a report of the phases that are complete. `planned`
/// is the plan for a native server, and `number` that of the repetition, from 0.
///
/// # Errors
/// Where nothing was measured: the server does not answer, refuses, or is not the one that was
/// demanded.
pub fn examine(
    test: &PathTest,
    planned: &PlannedTest,
    number: u32,
    interrupts: &dyn Interrupts,
    observers: &mut Observers<'_>,
) -> Result<Examined, Error> {
    let repetition = Repetition {
        number,
        started: Instant::now(),
    };
    let demand = identity::demand(&test.identity, &test.target)?;
    let announcement = announcement(test, planned);
    let mut on_turn = |turn: Turn| observers.progress.update(&queued_line(turn));

    match client::open(
        &test.target,
        &demand,
        &announcement,
        &mut on_turn,
        interrupts,
    ) {
        Ok(Opened::Native(client)) => {
            for remark in identity::remember(&test.target, client.peer()) {
                observers.progress.line(&format!("linerate test: {remark}"));
            }
            Ok(native(
                test, planned, *client, repetition, interrupts, observers,
            ))
        }
        Ok(Opened::Iperf3(established)) => {
            iperf3::examine(test, established, repetition, interrupts, observers)
        }
        Err(error) => Err(failed(&error, &test.target)),
    }
}

/// States what the phases of the plan need, and no more: the server counts it when it admits the
/// session.
fn announcement(test: &PathTest, planned: &PlannedTest) -> Announcement {
    let kinds = planned.kinds();
    // The connections of a search for their rate do not wait for each other.
    let connections_max = if kinds.contains(&PhaseKind::Cps) {
        CONNECTIONS_MAX
    } else {
        planned.streams.transactions
    };

    Announcement {
        streams_max: planned.streams.loads.max(1),
        connections_max,
        duration_max: Duration::from_secs(planned.estimate_s),
        kinds,
        wants_facts: test.wants_facts,
        bytes_max: test.spec.bytes_max,
        wait_max: test.wait_max,
    }
}

fn native(
    test: &PathTest,
    planned: &PlannedTest,
    client: NativeClient,
    repetition: Repetition,
    interrupts: &dyn Interrupts,
    observers: &mut Observers<'_>,
) -> Examined {
    let target = identity::target(&test.target, &client);
    let key = client.peer().fingerprint;
    observers.progress.line(&format!(
        "{}: {} s at most, key {key}",
        test.target.host, planned.estimate_s
    ));
    announce(test, repetition, &target, planned.estimate_s, observers);

    let mut examination = Examination::new(client, planned, &test.spec, target);
    let failure = examination.run(interrupts, observers).err();
    let (ceiling_down, ceiling_up) = ceilings::ceilings(examination.remote(), &test.spec);

    let outcome = match &failure {
        None if examination.is_whole() => Outcome::Done,
        Some(NativeError::Interrupted(_)) => Outcome::Interrupted,
        _ => Outcome::NotCompleted,
    };
    let collected = examination.finish(failure.as_ref());
    let input = ConcludeInput {
        target: collected.target,
        spec: test.spec.clone(),
        state: if outcome == Outcome::Done {
            PathState::Complete
        } else {
            PathState::Partial
        },
        elapsed_ns: clock::as_ns(repetition.started.elapsed()),
        resumed: collected.resumed,
        concurrent_max: collected.concurrent_max,
        probe: ProbeKind::Udp,
        phases: collected.phases,
        ladders: collected.ladders,
        clock: collected.clock,
        ceiling_down,
        ceiling_up,
        absent: collected.absent,
    };
    let report = conclude(&input);
    let diagnosis = (!report.phases.is_empty()).then(|| diagnose_path(&report, collected.observed));

    let samples = if test.wants_samples {
        samples(&input)
    } else {
        Vec::new()
    };
    Examined {
        report,
        diagnosis,
        samples,
        outcome,
    }
}

/// The server is reached and the phases are planned.
fn announce(
    test: &PathTest,
    repetition: Repetition,
    target: &PathTarget,
    seconds_max: u64,
    observers: &mut Observers<'_>,
) {
    let (repeat, spec) = (repetition.number, &test.spec);
    (observers.on_event)(&PathEvent::Started {
        schema: EVENT_SCHEMA,
        repeat,
        target,
        spec,
        seconds_max,
    });
}

fn queued_line(turn: Turn) -> String {
    format!(
        "queued at the server: position {}, about {} s",
        turn.ahead + 1,
        turn.wait.as_secs()
    )
}

/// The outcome of a test in which nothing was measured.
fn failed(error: &NativeError, target: &Target) -> Error {
    let outcome = match error {
        NativeError::Unreachable(_)
        | NativeError::ConnectionRefused(_)
        | NativeError::NotNative(_)
        | NativeError::Identity(_)
        | NativeError::Refused { .. } => Outcome::Unreachable,
        NativeError::Interrupted(_) => Outcome::Interrupted,
        _ => Outcome::NotCompleted,
    };
    match error {
        NativeError::Unreachable(_) | NativeError::ConnectionRefused(_) => {
            let (host, port) = target
                .control_via
                .clone()
                .unwrap_or_else(|| (target.host.clone(), target.port));
            Error::new(
                outcome,
                connect_failure(&error.to_string(), &host, port, TEST_SERVER),
            )
        }
        _ => Error::new(outcome, error),
    }
}
