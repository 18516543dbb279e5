//! State of a watch: `ok` or `failing`. Only a change of it is an alert.

use linerate_model::outcome::Outcome;

/// Failed runs in a row that make a watch failing.
pub const FAILURES_BEFORE_ALERT: u32 = 3;

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
    /// Takes the outcome of the next run: [`Outcome::NotCompleted`] of one without values, any other
    /// but [`Outcome::Done`] of one whose values are bad.
    pub fn observe(&mut self, result: Outcome) -> Option<Transition> {
        self.failures_in_a_row = if result == Outcome::NotCompleted {
            self.failures_in_a_row + 1
        } else {
            0
        };
        let is_failing = match result {
            Outcome::Done => false,
            Outcome::NotCompleted => {
                // Only a good run recovers: further failures keep the state, and repeat no alert.
                self.is_failing || self.failures_in_a_row >= FAILURES_BEFORE_ALERT
            }
            _ => true,
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
    use Outcome::{Done as Good, NotCompleted as Failed, ObjectiveMissed as Missed, Worse};

    use super::*;

    fn transitions(results: &[Outcome]) -> Vec<(usize, Transition)> {
        let mut alarm = Alarm::default();
        let after = |(number, result): (usize, &Outcome)| Some((number, alarm.observe(*result)?));
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
