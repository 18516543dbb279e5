//! Diagnosis of tests in a build without the feature `doctor`: requests are refused.

use linerate_engine::Interrupts;
use linerate_iperf3::report::TestReport;
use linerate_model::Failure;
use linerate_model::finding::Diagnosis;
use linerate_model::outcome::failure;
use linerate_model::path::HostDropsReader;
use linerate_model::sink::CollectorFactory;
use linerate_model::spec::ClientSpec;

use crate::Error;

/// Refuses a test with a diagnosis.
pub(crate) fn check_doctor() -> Result<(), Error> {
    Err(Error::absent("the doctor"))
}

/// Refuses the test.
pub(crate) fn run_client(
    _: &ClientSpec,
    _: &mut dyn TestReport,
    _: &dyn Interrupts,
    _: bool,
) -> (Result<(), Failure>, Option<Diagnosis>) {
    (Err(failure(&Error::absent("the doctor"))), None)
}

/// Counts no drops.
pub(crate) fn drops_for_clients() -> Option<HostDropsReader> {
    None
}

/// Sends no facts.
pub(crate) fn facts_for_clients() -> Option<CollectorFactory<String>> {
    None
}
