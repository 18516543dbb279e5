//! Timers of a session: intervals, limits, liveness, repeated replies.

use std::time::Instant;

use linerate_iperf3::wire::ErrorCode;
use linerate_iperf3::wire::server::ServerInput;
use linerate_model::service::RefusalReason;
use linerate_model::{Event, StreamId};
use linerate_sys::clock;

use super::Session;
use crate::data::run::TestRun;
use crate::error::EngineError;
use crate::server::limits::rate_guard::RateGuard;
use crate::server::{Liveness, Session as _};
use crate::wait::time_until;

impl Session {
    /// Does what is due: reports intervals, notices ends, limits and silence.
    pub(crate) fn on_time(&mut self, is_place_wanted: bool) {
        self.on_run();
        self.guard_rate();
        self.check_liveness(is_place_wanted);
        self.repeat_replies();

        if let Some(error) = self.reporter.take_failure() {
            self.inputs.push(ServerInput::Failed {
                code: ErrorCode::LogFile,
                errno: 0,
                cause: Some(error.to_string()),
            });
        }

        self.due = self.next_deadline();
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let run = self.run.as_ref().and_then(TestRun::next_deadline_ns);
        let guard = self.rate_guard.as_ref().map(RateGuard::next_ns);
        let nearest = run.into_iter().chain(guard).min();
        let nearest = nearest.map(|at_ns| Instant::now() + time_until(at_ns));
        let life = self.liveness.map(|_| Liveness::next_check());

        [nearest, life, self.flows.next_deadline()]
            .into_iter()
            .flatten()
            .min()
    }

    fn guard_rate(&mut self) {
        let (Some(guard), Some(run)) = (&mut self.rate_guard, &self.run) else {
            return;
        };
        let Some(average_bps) = guard.exceeded_bps(clock::monotonic_ns(), run.total_bytes()) else {
            return;
        };
        // Once: further samples of a test that ends would refuse it again.
        self.rate_guard = None;
        self.reporter.emit(&Event::Debug(format!(
            "average rate of {average_bps} bit/s is above the limit"
        )));
        self.fail(&EngineError::Refused(RefusalReason::Rate));
    }

    fn repeat_replies(&mut self) {
        let Some(run) = &self.run else { return };
        let now = Instant::now();
        if self.flows.next_deadline().is_none_or(|t| now < t) {
            return;
        }

        let silent: Option<Vec<StreamId>> = run
            .has_started()
            // Before the start no stream has data, so only the last answer can be missing.
            .then(|| run.untouched().map(|s| s.id).collect());
        self.flows.repeat(now, silent.as_deref());
    }
}
