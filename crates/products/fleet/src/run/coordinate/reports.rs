//! Reports that arrive about the tasks of a round.

use std::collections::BTreeMap;

use super::cell::{Received, TaskReport};
use crate::TaskId;
use crate::protocol::coordinator::{Action, Coordinator, NotRun};
use linerate_model::printable::printable;
use linerate_sys::clock::monotonic_ns;

/// Reports of the tasks of a round.
#[derive(Default)]
pub(super) struct Reports {
    pub tasks: BTreeMap<TaskId, TaskReport>,
    /// Text of the last FAIL.
    refusal: Option<String>,
}

impl Reports {
    /// Takes an action of the coordinator; returns true if the round has ended.
    pub(super) fn take(&mut self, coordinator: &Coordinator, action: Action) -> bool {
        match action {
            // The tasks that it ends follow.
            Action::Failed { fail, .. } => self.refusal = Some(printable(&fail.text)),
            Action::Result(result) => {
                let estimate = coordinator.clock(result.host, monotonic_ns());
                let offset_ns = estimate.map(|estimate| estimate.offset_ns);
                let of = *result;
                let received =
                    Received::new(of.role, of.end, &of.record, of.is_plausible, offset_ns);
                self.tasks.entry(of.task).or_default().take(received);
            }
            Action::NotRun { task, reason } => {
                let detail = match reason {
                    // FAIL has the words of the host; the code alone would not explain the refusal.
                    NotRun::Refused(_) => self.refusal.clone().unwrap_or_default(),
                    _ => reason.to_string(),
                };
                self.tasks.entry(task).or_default().not_run = Some((reason, detail));
            }
            Action::RoundDone { .. } => return true,
            _ => {}
        }

        false
    }
}
