//! The end of a run.

use super::{Action, Coordinator, DONE_TIMEOUT_NS, NotRun, Step};
use crate::TaskId;
use crate::protocol::message::{Cancel, CoordinatorMessage};

impl Coordinator {
    /// Ends the run at all hosts, whatever is in progress.
    pub(super) fn cancel(&mut self, now_ns: u64) {
        if self
            .barrier
            .as_ref()
            .is_some_and(|barrier| barrier.step == Step::End)
        {
            return;
        }

        if let Some(round) = &self.round {
            let open = round.tasks.iter().filter(|task| !task.is_settled);
            let open: Vec<TaskId> = open.map(|task| task.plan.task).collect();
            open.into_iter()
                .for_each(|task| self.settle(task, NotRun::Cancelled));
        }

        self.round = None;
        self.next_round = None;
        let connected = self.hosts_where(super::Host::is_connected);
        self.send(
            connected.clone(),
            CoordinatorMessage::Cancel(Cancel::default()),
        );
        self.open(Step::End, connected, now_ns.saturating_add(DONE_TIMEOUT_NS));
    }

    pub(super) fn finish(&mut self, unconfirmed: Vec<usize>) {
        self.is_over = true;
        self.actions.push_back(Action::Finished { unconfirmed });
    }
}
