//! `linerate test`: how good a path is, and what limits it. Joins the plan, the phases, the
//! judgement and the diagnosis.

mod ceilings;
mod examination;
mod finished;
mod host_port;
pub(crate) mod identity;
mod iperf3;
mod observers;
mod searches;
mod steering;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use linerate_engine::Interrupts;
use linerate_engine::dialect::native::client::{self, Announcement, NativeError, Opened, Turn};
use linerate_lab::path::{ConcludeInput, Offer, conclude, plan, samples};
use linerate_model::finding::Diagnosis;
use linerate_model::path::{
    EVENT_SCHEMA, PathEvent, PathReport, PathSpec, PathState, PathTarget, PhaseKind, ProbeKind,
    SampleSeries,
};
use linerate_model::record::{Body, RunKind, RunState, Trial};
use linerate_store::keys;
use linerate_sys::clock;

use crate::record::{RecordOptions, Recorded, Recording, Run};
use crate::{Error, Outcome};
use examination::Examination;
pub use host_port::host_and_port;
pub use identity::{forget, host_key_file};
pub use linerate_engine::dialect::native::client::{Login, Target};
use linerate_host::connect_advice::{TEST_SERVER, connect_failure};
pub use observers::Observers;

/// What is examined, and how.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PathTest {
    /// The server.
    pub target: Target,
    /// Phases, time and data.
    pub spec: PathSpec,
    /// What its identity must be.
    pub identity: IdentityOptions,
    /// The server's facts are wanted for the diagnosis.
    pub wants_facts: bool,
    /// Longest wait for a server that is busy.
    pub wait_max: Duration,
    /// How often the examination is repeated, at least once.
    pub repeat: u32,
    /// What measures the delay beside the tests of an iperf3 server.
    pub side_probe: SideProbe,
    /// The result has every single probe.
    pub wants_samples: bool,
}

impl PathTest {
    /// One examination of the path to `target`, without facts of the server, demands on its
    /// identity, or a wait.
    #[must_use]
    pub fn new(target: Target, spec: PathSpec) -> Self {
        Self {
            target,
            spec,
            identity: IdentityOptions::default(),
            wants_facts: false,
            wait_max: Duration::ZERO,
            repeat: 1,
            side_probe: SideProbe::default(),
            wants_samples: false,
        }
    }
}

/// What measures the delay beside the tests of an iperf3 server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SideProbe {
    /// The first of the others that works.
    #[default]
    Auto,
    /// ICMP echo.
    Icmp,
    /// Connections to the port of the server while it is busy; it refuses them at once.
    Busy,
    /// Connections to another TCP port of the server's host, which are closed once they are
    /// established.
    Tcp(u16),
    /// Nothing.
    None,
}

/// What the user demands of the server's identity.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct IdentityOptions {
    /// Fingerprint of its key: `sha256:…`.
    pub pin: Option<String>,
    /// File of a token that both ends prove.
    pub token_file: Option<PathBuf>,
    /// User and password for a server that demands them.
    pub login: Option<Login>,
    /// The login is sent also to a server that is met for the first time.
    pub accept_new: bool,
    /// Nothing is demanded, and nothing is remembered.
    pub insecure: bool,
    /// A server of another dialect is a failure.
    pub requires_native: bool,
}

/// What was found.
#[derive(Debug)]
#[non_exhaustive]
pub struct PathResult {
    /// The report of the last repetition.
    pub report: PathReport,
    /// What limits the path.
    pub diagnosis: Option<Diagnosis>,
    /// Single probes of the last repetition, where they are wanted.
    pub samples: Vec<SampleSeries>,
    /// The record of all repetitions.
    pub recorded: Recorded,
    /// [`Outcome::Done`], or why it did not reach its end.
    pub outcome: Outcome,
}

/// One examination.
struct Examined {
    report: PathReport,
    diagnosis: Option<Diagnosis>,
    samples: Vec<SampleSeries>,
    outcome: Outcome,
}

/// Which repetition of a test, and when it began.
#[derive(Debug, Clone, Copy)]
struct Repetition {
    number: u32,
    started: Instant,
}

/// Connections at the same time that a search for the highest rate of connections announces.
const CONNECTIONS_MAX: u32 = 10_000;

/// Examines a path. A signal ends it with a report of the phases that are complete.
///
/// # Errors
/// Where nothing was measured: the server does not answer, refuses, or is not the one that was
/// demanded.
pub fn test_path(
    test: &PathTest,
    record: RecordOptions,
    interrupts: &dyn Interrupts,
    observers: &mut Observers<'_>,
) -> Result<PathResult, Error> {
    let mut recording = Recording::begin(record, run(test));
    let mut last = None;

    for repeat in 0..test.repeat.max(1) {
        let started_ns = recording.elapsed_ns();
        let repetition = Repetition {
            number: repeat,
            started: Instant::now(),
        };
        let examined = match examine(test, repetition, interrupts, observers) {
            Ok(examined) => examined,
            Err(error) => {
                let message = recording.fail(&error).message;
                message
                    .iter()
                    .for_each(|line| observers.progress.line(line));
                return Err(error);
            }
        };
        (observers.on_event)(&PathEvent::Trial {
            repeat,
            report: &examined.report,
        });
        recording.add(trial(&examined, repeat, started_ns, recording.elapsed_ns()));

        let is_over = examined.outcome != Outcome::Done;
        last = Some(examined);
        if is_over {
            break;
        }
    }

    let Examined {
        report,
        diagnosis,
        samples,
        outcome,
    } = last.ok_or_else(|| Error::failed("no examination was made"))?;
    if let Some(diagnosis) = &diagnosis {
        recording.diagnosed(diagnosis.clone(), None);
    }

    let (state, reason) = match outcome {
        Outcome::Done => (RunState::Complete, None),
        Outcome::Interrupted => (RunState::Interrupted, None),
        _ => (RunState::Partial, report.absent.values().next().cloned()),
    };
    let recorded = recording.finish(state, reason, Body::Test);
    Ok(PathResult {
        report,
        diagnosis,
        samples,
        recorded,
        outcome,
    })
}

fn run(test: &PathTest) -> Run {
    Run {
        kind: RunKind::Test,
        body: Body::Test,
        server: Some(test.target.host.clone()),
        spec_key: keys::spec_key("path", &test.spec),
        peer: None,
    }
}

fn trial(examined: &Examined, repeat: u32, started_ns: u64, ended_ns: u64) -> Trial {
    let mut trial = Trial::of_path(&examined.report);
    trial.elapsed_ns = ended_ns.saturating_sub(started_ns);
    trial.repeat = repeat;
    trial.started_ns = started_ns;

    if examined.outcome == Outcome::Interrupted {
        trial.state = RunState::Interrupted;
    }

    trial
}

fn examine(
    test: &PathTest,
    repetition: Repetition,
    interrupts: &dyn Interrupts,
    observers: &mut Observers<'_>,
) -> Result<Examined, Error> {
    let demand = identity::demand(&test.identity, &test.target)?;
    let announcement = announcement_of(test);
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
            Ok(native(test, *client, repetition, interrupts, observers))
        }
        Ok(Opened::Iperf3(established)) => {
            iperf3::examine(test, established, repetition, interrupts, observers)
        }
        Err(error) => Err(failed(&error, &test.target)),
    }
}

/// States what the phases of the plan need, and no more: the server counts it when it admits the
/// session.
fn announcement_of(test: &PathTest) -> Announcement {
    let planned = plan(&test.spec, &Offer::native());
    let of_phases = |has_transactions: bool| {
        let specs = planned.phases.iter().map(|phase| &phase.spec);
        let fitting = specs.filter(move |spec| spec.kind.has_transactions() == has_transactions);
        fitting.map(|spec| spec.streams_max).max().unwrap_or(0)
    };

    let mut kinds: Vec<PhaseKind> = planned.phases.iter().map(|phase| phase.spec.kind).collect();
    kinds.dedup();

    // Its connections do not wait for each other.
    let connections_max = if kinds.contains(&PhaseKind::Cps) {
        CONNECTIONS_MAX
    } else {
        of_phases(true)
    };

    Announcement {
        streams_max: of_phases(false).max(1),
        connections_max,
        duration_max: Duration::from_secs(planned.seconds()),
        kinds,
        wants_facts: test.wants_facts,
        bytes_max: test.spec.bytes_max,
        wait_max: test.wait_max,
    }
}

fn native(
    test: &PathTest,
    client: client::NativeClient,
    repetition: Repetition,
    interrupts: &dyn Interrupts,
    observers: &mut Observers<'_>,
) -> Examined {
    let target = identity::target(test, &client);
    let planned = plan(&test.spec, &Offer::native());
    let key = client.peer().fingerprint;
    observers.progress.line(&format!(
        "{}: {} s at most, key {key}",
        test.target.host,
        planned.seconds()
    ));
    announce(test, repetition, &target, planned.seconds(), observers);

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
    let diagnosis = (!report.phases.is_empty())
        .then(|| linerate_doctor::path::diagnose_path(&report, collected.observed));

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
        "waiting for the server: {} others in front, about {} s",
        turn.ahead,
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
