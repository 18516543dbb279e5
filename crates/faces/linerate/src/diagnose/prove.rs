//! The tests of a proof are runs of a sweep without factors.

use linerate_doctor::proof::{Proof, ProofPlan};
use linerate_doctor::run::{self, ProofSpec, ProofTests, TestSeries};
use linerate_model::spec::ClientSpec;
use linerate_sweep::{HostChoices, Runner, Setting, SettingSpace, SweepSpec};
use linerate_sys::signal::Signals;

use crate::sweep::network::Network;
use crate::{Error, Outcome, Progress};

/// Diagnoses a test to the server, then compares tests without and with the commands of a finding,
/// which the user confirms. The former settings are in force afterwards, whatever happened; where
/// the process was killed, the next call restores them.
///
/// # Errors
/// A finding that does not exist or whose commands may interrupt connections; tests, commands or
/// files that fail; the user's refusal; a signal.
pub fn prove(spec: &ProofSpec, signals: &Signals, progress: Progress) -> Result<Proof, Error> {
    let plan = run::check_proof(spec)?;
    let tests = tests(spec, plan);
    let space = SettingSpace::new(&tests, &HostChoices::default()).map_err(Error::usage)?;
    let sweep = OneSetting {
        spec: &tests,
        space: &space,
    };
    run::prove(spec, plan, &sweep, signals, progress)
}

/// The tests without and with the fix.
fn tests(spec: &ProofSpec, plan: ProofPlan) -> SweepSpec {
    let mut tests = SweepSpec::to(&spec.server, spec.port);
    tests.time_s = plan.run_s;
    tests.omit_s = ProofPlan::OMIT_S;
    tests.repetitions = plan.runs;
    tests.budget = spec.budget;
    // A sweep without factors draws no order.
    tests.seed = 0;
    tests
}

/// A sweep without factors.
struct OneSetting<'a> {
    spec: &'a SweepSpec,
    space: &'a SettingSpace<'a>,
}

impl ProofTests for OneSetting<'_> {
    fn client(&self) -> ClientSpec {
        self.space
            .test_settings(&Setting(Vec::new()))
            .client_spec(self.spec)
    }

    fn series<'a>(&'a self, signals: &'a Signals, progress: Progress) -> Box<dyn TestSeries + 'a> {
        let mut network = Network::new(self.spec, self.space, signals, progress, None);
        // The server has run the diagnosed test.
        network.has_result = true;
        Box::new(network)
    }
}

impl TestSeries for Network<'_> {
    fn progress(&mut self) -> &mut Progress {
        &mut self.progress
    }

    fn received_bps(&mut self) -> Result<f64, Error> {
        let observed = self.run(&Setting(Vec::new())).map_err(|error| {
            let outcome = if self.is_interrupted {
                Outcome::Interrupted
            } else {
                Outcome::NotCompleted
            };
            Error::new(outcome, error)
        })?;
        Ok(observed.value)
    }
}
