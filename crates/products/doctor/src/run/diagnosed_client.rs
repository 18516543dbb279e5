//! The client of a diagnosed test (`--lr-doctor`): both ends read their hosts while it runs, the
//! server sends its observation with its results, and the client's report ends with a diagnosis.

use std::path::PathBuf;
use std::time::Duration;

use linerate_document::Style;
use linerate_document::progress::style;
use linerate_engine::Interrupts;
use linerate_engine::dialect::iperf3::client::{self, ClientResult};
use linerate_iperf3::report::{Appendix, TestReport};
use linerate_model::finding::Diagnosis;
use linerate_model::outcome::failure;
use linerate_model::sink::Tee;
use linerate_model::spec::ClientSpec;
use linerate_model::{Event, EventSink, Failure, SinkError};

use super::profile_files::ProfileFiles;
use super::test_observer::TestObserver;
use crate::observation::{EndpointObservation, diagnose_test};
use crate::report;
use crate::work::UNWATCHED;

/// The first datagram is sent three times within it.
pub const UDP_ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// Name of the diagnosis in structured reports.
const NAME: &str = "lr_doctor";

/// Runs one test as its client and adds a diagnosis to its report, which `verbose` makes long.
/// Returns the outcome of the test and what limited it.
pub fn run_client(
    spec: &ClientSpec,
    report: &mut dyn TestReport,
    interrupts: &dyn Interrupts,
    verbose: bool,
) -> (Result<(), Failure>, Option<Diagnosis>) {
    let mut observer = TestObserver::new();
    let spec = &explained(spec);
    let result = client::run_before_end(spec, &mut Tee(&mut observer, &mut *report), interrupts);
    let mut diagnosis = None;

    // A failure to report the end cannot be reported.
    let _ = report_end(spec, &result, report, observer, verbose, &mut diagnosis);
    (result.outcome, diagnosis)
}

/// The test whose failure names UDP that is blocked, where iperf3 waits for 30 s and has an error
/// of the system.
fn explained(spec: &ClientSpec) -> ClientSpec {
    let mut spec = spec.clone();
    spec.local.udp_answer_timeout = Some(UDP_ANSWER_TIMEOUT);
    spec
}

/// Runs one test as its client and diagnoses it.
pub(super) fn diagnosed(
    spec: &ClientSpec,
    interrupts: &dyn Interrupts,
) -> Result<Diagnosis, Failure> {
    let mut observer = TestObserver::default();
    let spec = &explained(spec);
    let result = client::run(spec, &mut observer, interrupts);
    result.outcome?;

    let client = observer
        .observation()
        .ok_or_else(|| failure(&"this host could not be observed"))?;
    let server = result
        .peer_facts
        .and_then(|facts| EndpointObservation::from_peer(&facts).ok());
    Ok(diagnose_test(client, server))
}

/// Reports the diagnosis and the end of the test.
fn report_end(
    spec: &ClientSpec,
    result: &ClientResult,
    report: &mut dyn TestReport,
    mut observer: TestObserver,
    verbose: bool,
    found: &mut Option<Diagnosis>,
) -> Result<(), SinkError> {
    let server = match result
        .peer_facts
        .as_deref()
        .map(EndpointObservation::from_peer)
    {
        Some(Err(_)) => {
            report.event(&Event::Warning(
                "the server's diagnostic data cannot be parsed".into(),
            ))?;
            None
        }
        observation => observation.and_then(Result::ok),
    };
    let last = result.last_event();
    observer.event(&last)?;

    let client = observer.observation();
    if let Some(path) = &spec.local.flame
        && let Err(reason) = draw(path.clone(), &observer, client.as_ref())
    {
        report.event(&Event::Warning(format!("no flame graph: {reason}")))?;
    }

    if let Some(client) = client {
        let diagnosis = found.insert(diagnose_test(client, server));
        report.append(&Appendix {
            name: NAME,
            text: report::text_after_test(
                diagnosis,
                verbose,
                Style {
                    is_coloured: false,
                    ..style()
                },
            )
            .trim_end()
            .to_owned(),
            json: report::json(diagnosis),
        })?;
    }

    report.event(&last)
}

/// Draws what the CPUs of this host did during the test.
fn draw(
    path: PathBuf,
    observer: &TestObserver,
    observation: Option<&EndpointObservation>,
) -> Result<(), String> {
    let reason = || observation.and_then(|one| one.snapshot.text(UNWATCHED));
    let stacks = observer
        .stacks()
        .ok_or_else(|| reason().unwrap_or("the CPUs were not sampled").to_owned())?;
    let files = ProfileFiles {
        flame: Some(path),
        ..ProfileFiles::default()
    };
    files.write(&stacks).map_err(|error| error.to_string())
}
