//! Lines about limits that were missed.

use linerate::Outcome;
use linerate::expect::{Expectations, LimitedTest};
use linerate_history::conclude::expect::Missed;

use crate::output::complain;

/// Reports the limits that were missed on standard error, one a line.
pub(super) fn missed(
    command: &str,
    limits: Option<&Expectations>,
    missed: &[Missed],
    outcome: Outcome,
) -> Outcome {
    for note in limits.into_iter().flat_map(Expectations::notes) {
        complain(command, &note, outcome);
    }
    missed.iter().fold(outcome, |_, missed| {
        complain(command, &missed.to_string(), Outcome::ObjectiveMissed)
    })
}

/// As [`missed`], of the test of a client. A test that failed has its own exit code.
pub(super) fn missed_by_test(
    command: &str,
    limits: Option<&Expectations>,
    test: Option<LimitedTest>,
    outcome: Outcome,
) -> Outcome {
    match test {
        Some(test) if outcome == Outcome::Done => missed(command, limits, &test.missed(), outcome),
        _ => outcome,
    }
}
