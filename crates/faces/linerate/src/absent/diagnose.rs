//! Diagnosis of tests in a build without the feature `doctor`: requests are refused.

use crate::Error;

/// Refuses a test with a diagnosis.
pub(crate) fn check_doctor() -> Result<(), Error> {
    Err(Error::absent("the doctor"))
}

pub(crate) mod observed_test {
    use linerate_engine::Interrupts;
    use linerate_iperf3::report::TestReport;
    use linerate_model::sink::CollectorFactory;
    use linerate_model::spec::ClientSpec;

    use crate::Error;
    use crate::client::Reported;
    use linerate_model::outcome::failure;

    /// Refuses the test.
    pub(crate) fn run_client(
        _: &ClientSpec,
        _: &mut dyn TestReport,
        _: &dyn Interrupts,
        _: bool,
    ) -> Reported {
        Reported {
            outcome: Err(failure(&Error::absent("the doctor"))),
            diagnosis: None,
        }
    }

    /// Counts no drops.
    pub(crate) fn drops_for_clients() -> Option<linerate_model::path::HostDropsReader> {
        None
    }

    /// Sends no facts.
    pub(crate) fn facts_for_clients() -> Option<CollectorFactory<String>> {
        None
    }
}
