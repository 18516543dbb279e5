//! The end of a run.

use super::host::Host;
use super::{Action, Coordinator, DONE_TIMEOUT_NS, NotRun, Step};
use crate::protocol::message::{Cancel, CoordinatorMessage};

impl Coordinator {
    /// Ends the run at all hosts, whatever is in progress.
    pub(super) fn cancel(&mut self, now_ns: u64) {
        // A second CANCEL would move the deadline of the first one.
        if self
            .barrier
            .as_ref()
            .is_some_and(|barrier| barrier.step == Step::End)
        {
            return;
        }

        // Tasks are settled before the round is dropped, so that each has a reason.
        self.settle(NotRun::Cancelled, |_| true);
        self.round = None;
        self.next_round = None;
        let connected = self.hosts_where(Host::is_connected);
        self.send(
            connected.clone(),
            CoordinatorMessage::Cancel(Cancel::default()),
        );
        self.open(Step::End, connected, now_ns.saturating_add(DONE_TIMEOUT_NS));
    }

    /// The run has ended; the late hosts are those that have not answered.
    pub(super) fn finish(&mut self, late: Vec<usize>) {
        self.is_over = true;
        self.unconfirmed.extend(late);
        let unconfirmed = self.unconfirmed.iter().copied().collect();
        self.actions.push_back(Action::Finished { unconfirmed });
    }
}
