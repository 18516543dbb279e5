//! `linerate test`: examinations of a path, recorded as one run.

use linerate_engine::Interrupts;
use linerate_model::finding::Diagnosis;
use linerate_model::path::{Dialect, PathEvent, PathReport, SampleSeries};
use linerate_model::record::{Body, RunKind, RunState, Trial};
use linerate_path::run::{Examined, examine};
use linerate_store::keys;

use crate::record::{RecordOptions, Recorded, Recording, Run};
use crate::{Error, Outcome};

pub use linerate_engine::dialect::native::client::{Login, Target};
pub use linerate_path::plan::plan;
pub use linerate_path::report;
pub use linerate_path::run::Observers;
pub use linerate_path::run::identity::{forget, host_key_file};
pub use linerate_path::spec::{IdentityOptions, PathTest, STAMP_PORT, SideProbe, host_and_port};

/// Result of the examination of a path.
#[derive(Debug)]
#[non_exhaustive]
pub struct PathResult {
    /// The report of the last repetition.
    pub report: PathReport,
    /// Limits of the path.
    pub diagnosis: Option<Diagnosis>,
    /// Single probes of the last repetition, where they are wanted.
    pub samples: Vec<SampleSeries>,
    /// What the CPUs of this host did during the loads of the last repetition as collapsed stacks,
    /// where it is wanted.
    pub stacks: String,
    /// The record of all repetitions.
    pub recorded: Recorded,
    /// [`Outcome::Done`], or why it did not reach its end.
    pub outcome: Outcome,
}

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
    let planned = plan(&test.spec, Dialect::Native);
    let mut recording = Recording::begin(record, run(test));
    let mut last = None;

    for repeat in 0..test.repeat.max(1) {
        let started_ns = recording.elapsed_ns();
        let examined = match examine(test, &planned, repeat, interrupts, observers) {
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
        stacks,
        outcome,
    } = last.ok_or_else(|| Error::failed("no examination was made"))?;
    if let Some(diagnosis) = &diagnosis {
        recording.diagnosed(diagnosis.clone(), None);
    }

    let (state, reason) = match outcome {
        Outcome::Done => (RunState::Complete, None),
        Outcome::Interrupted => (RunState::Interrupted, None),
        // The first phase that is absent has the reason.
        _ => (RunState::Partial, report.absent.values().next().cloned()),
    };
    let recorded = recording.finish(state, reason, Body::Test);
    Ok(PathResult {
        report,
        diagnosis,
        samples,
        stacks,
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
