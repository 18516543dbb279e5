//! State of a watch: `ok` or `failing`. Only a change of it is an alert.

/// Failed runs in a row that make a watch failing.
pub const FAILURES_BEFORE_ALERT: u32 = 3;

/// Result of one run of a watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunResult {
    /// It has values, and they are as expected.
    Good,
    /// It has no values.
    Failed,
    /// An expectation was missed.
    Missed,
    /// Its values belong to a change to the worse that still lasts.
    Worse,
}

/// A change of state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transition {
    /// From `ok` to `failing`.
    Failing,
    /// From `failing` to `ok`.
    Recovered,
}

/// State after a number of runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Alarm {
    is_failing: bool,
    failures_in_a_row: u32,
}

impl Alarm {
    /// Takes the result of the next run.
    pub fn observe(&mut self, result: RunResult) -> Option<Transition> {
        self.failures_in_a_row = if result == RunResult::Failed {
            self.failures_in_a_row + 1
        } else {
            0
        };
        let is_failing = match result {
            RunResult::Good => false,
            RunResult::Missed | RunResult::Worse => true,
            RunResult::Failed => self.is_failing || self.failures_in_a_row >= FAILURES_BEFORE_ALERT,
        };
        let was_failing = std::mem::replace(&mut self.is_failing, is_failing);
        match (was_failing, is_failing) {
            (false, true) => Some(Transition::Failing),
            (true, false) => Some(Transition::Recovered),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use RunResult::{Failed, Good, Missed, Worse};

    use super::*;

    fn transitions(results: &[RunResult]) -> Vec<(usize, Transition)> {
        let mut alarm = Alarm::default();
        let after = |(number, result): (usize, &RunResult)| Some((number, alarm.observe(*result)?));
        results.iter().enumerate().filter_map(after).collect()
    }

    #[test]
    fn third_failure_in_a_row_alerts_once_and_the_next_good_run_recovers_once() {
        let runs = [
            Good, Failed, Failed, Good, Failed, Failed, Failed, Failed, Failed, Good, Good,
        ];
        assert_eq!(
            transitions(&runs),
            [(6, Transition::Failing), (9, Transition::Recovered)]
        );
    }

    #[test]
    fn missed_expectation_and_change_alert_at_once_and_failures_between_them_do_not_repeat_it() {
        let runs = [
            Good, Missed, Missed, Failed, Failed, Failed, Good, Worse, Worse, Good,
        ];
        let expected = [
            (1, Transition::Failing),
            (6, Transition::Recovered),
            (7, Transition::Failing),
            (9, Transition::Recovered),
        ];
        assert_eq!(transitions(&runs), expected);
    }
}
