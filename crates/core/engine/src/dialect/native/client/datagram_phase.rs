//! Phases whose load is datagrams.

use std::time::Duration;

use linerate_model::path::{
    CapacityFeedback, PathDirection, PhaseResult, PhaseSpec, RateControl, absent,
};
use linerate_native::wire::datagram::Feedback;
use linerate_native::wire::message::Ready;
use linerate_sys::clock;

use super::NativeError;
use super::control::NativeClient;
use super::event_loop::EventLoop;
use crate::data::quota::Quota;
use crate::dialect::native::datagrams::DatagramRun;
use crate::interrupts::Interrupts;

/// Time for datagrams under way at the end of their phase.
const UNDER_WAY: Duration = Duration::from_millis(500);
/// Between two looks for reports of a receiver.
const STEERING_PERIOD: Duration = Duration::from_millis(10);
/// A report is absent when the one before it is so old: three periods of RFC 9097.
const REPORT_DUE_NS: u64 = 150_000_000;
/// Absent reports count at this distance.
const REPORT_PERIOD_NS: u64 = 50_000_000;

impl NativeClient {
    /// Sends or receives datagrams on a schedule.
    pub(super) fn run_datagrams(
        &mut self,
        spec: &PhaseSpec,
        ready: &Ready,
        events: &mut EventLoop<'_>,
        result: &mut PhaseResult,
    ) -> Result<(), NativeError> {
        let Some(mut run) = self.open_datagrams(spec, ready, events, result)? else {
            return Ok(());
        };
        let drops = self.drop_meter();
        self.start_phase(events)?;
        run.start()?;
        result.started_ns = run.start_ns;

        let mut paused = self.pause(spec.duration_max, events);
        let is_sender = spec.direction == Some(PathDirection::Up);
        run.stop_sender();

        if is_sender {
            // What is under way arrives before the server counts.
            paused = paused.and(self.pause(UNDER_WAY, events));
        }

        let remote = self.stop_phase(events)?;
        if !is_sender {
            paused = paused.and(self.pause(UNDER_WAY, events));
        }

        run.advance();
        result.local = run.finish();

        if let Some(drops) = drops {
            drops.fill(&mut result.local);
        }

        result.remote = Some(remote);
        paused
    }

    /// Runs a phase of datagrams whose rate `control` decides on from the reports of their
    /// receiver.
    ///
    /// # Errors
    /// See [`NativeError`].
    pub fn run_steered_datagrams(
        &mut self,
        spec: &PhaseSpec,
        control: &mut dyn RateControl,
        interrupts: &dyn Interrupts,
        result: &mut PhaseResult,
    ) -> Result<(), NativeError> {
        let events = &mut EventLoop::new(interrupts)?;
        let ready = self.open_phase(spec, events)?;
        let Some(mut run) = self.open_datagrams(spec, &ready, events, result)? else {
            return Ok(());
        };
        self.start_phase(events)?;
        run.steer(control.rate_bps());
        run.start()?;
        result.started_ns = run.start_ns;

        let end_ns = run.start_ns.saturating_add(clock::as_ns(spec.duration_max));
        let mut reports = Reports::new(run.start_ns, run.header_bytes);

        let mut steered = Ok(());
        while steered.is_ok() && clock::monotonic_ns() < end_ns {
            steered = self.pause(STEERING_PERIOD, events);
            run.advance();
            let now_ns = clock::monotonic_ns();

            for (stamp_ns, report) in run.reports() {
                if let Some(feedback) = reports.take(stamp_ns, report, now_ns) {
                    control.take(Some(&feedback));
                }
            }

            if reports.is_overdue(now_ns) {
                control.take(None);
            }

            run.steer(control.rate_bps());
        }

        run.stop_sender();
        let remote = self.stop_phase(events)?;
        result.local = run.finish();
        result.remote = Some(remote);

        steered
    }

    /// Opens the flow of a phase; `None`, with the reason in the result, where there is none.
    fn open_datagrams(
        &mut self,
        spec: &PhaseSpec,
        ready: &Ready,
        events: &mut EventLoop<'_>,
        result: &mut PhaseResult,
    ) -> Result<Option<DatagramRun>, NativeError> {
        let Some((id, fd)) = self.open_first_flow(ready, events)? else {
            let reason = if ready.flows.is_empty() {
                "the server grants no flow"
            } else {
                absent::UDP_BLOCKED
            };
            result
                .absent
                .push(("datagrams".to_owned(), reason.to_owned()));
            self.stop_phase(events)?;
            return Ok(None);
        };

        let is_sender = spec.direction == Some(PathDirection::Up);
        Ok(Some(DatagramRun::new(
            spec,
            id,
            fd,
            is_sender,
            Quota::default(),
        )?))
    }
}

/// From cumulative reports to what happened between two of them.
struct Reports {
    last: Option<(u64, Feedback)>,
    /// When the last one was taken, or its absence, on the clock of this end.
    taken_ns: u64,
    header_bytes: u64,
}

impl Reports {
    fn new(now_ns: u64, header_bytes: u64) -> Self {
        Self {
            last: None,
            taken_ns: now_ns,
            header_bytes,
        }
    }

    /// Growth since the last report. `None` of the first one, of one that is not newer, and without
    /// a datagram: then it is as good as absent.
    fn take(&mut self, stamp_ns: u64, report: Feedback, now_ns: u64) -> Option<CapacityFeedback> {
        if report.received == self.last.map_or(0, |(_, last)| last.received) {
            return None;
        }

        let (last_ns, last) = self.last.replace((stamp_ns, report)).unzip();
        self.taken_ns = now_ns;
        let last = last?;
        let datagrams = report.received.checked_sub(last.received)?;
        let payload = report.bytes.saturating_sub(last.bytes);

        Some(CapacityFeedback {
            elapsed_ns: stamp_ns.checked_sub(last_ns?).filter(|ns| *ns > 0)?,
            bytes: payload.saturating_add(datagrams.saturating_mul(self.header_bytes)),
            datagrams,
            errors: report.errors.saturating_sub(last.errors),
            delay_range_ns: report.delay_range_ns,
        })
    }

    /// The next report is absent; true once per period.
    fn is_overdue(&mut self, now_ns: u64) -> bool {
        let is_overdue =
            self.last.is_some() && now_ns.saturating_sub(self.taken_ns) > REPORT_DUE_NS;
        if is_overdue {
            self.taken_ns = self.taken_ns.saturating_add(REPORT_PERIOD_NS);
        }
        is_overdue
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn report(received: u64, errors: u64) -> Feedback {
        Feedback {
            received,
            bytes: received * 1222,
            errors,
            delay_range_ns: 7,
            ..Feedback::default()
        }
    }

    #[test]
    fn growth_is_that_between_two_reports_with_headers() {
        let mut reports = Reports::new(0, 28);
        assert_eq!(reports.take(1000, report(5, 0), MS), None, "the first one");

        let expected = CapacityFeedback {
            elapsed_ns: 50 * MS,
            bytes: 12_500,
            datagrams: 10,
            errors: 3,
            delay_range_ns: 7,
        };
        assert_eq!(
            reports.take(1000 + 50 * MS, report(15, 3), 51 * MS),
            Some(expected)
        );
        assert_eq!(
            reports.take(1000 + 100 * MS, report(15, 3), 101 * MS),
            None,
            "nothing arrived"
        );
        assert_eq!(
            reports.take(1000 + 50 * MS, report(16, 3), 102 * MS),
            None,
            "no time has passed"
        );
    }

    #[test]
    fn absent_reports_count_once_per_period_after_the_first_report() {
        let mut reports = Reports::new(0, 28);
        assert!(!reports.is_overdue(900 * MS), "the first one is under way");
        reports.take(1, report(1, 0), 1000 * MS);

        let overdue: Vec<u64> = (100..140)
            .map(|tick| tick * 10)
            .filter(|ms| reports.is_overdue(ms * MS))
            .collect();
        assert_eq!(overdue, [1160, 1210, 1260, 1310, 1360]);
    }
}
