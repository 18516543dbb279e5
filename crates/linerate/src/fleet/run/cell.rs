//! Cells from the results of a round.

use std::collections::BTreeMap;

use linerate_fleet::TaskId;
use linerate_fleet::coordinator::{HostResult, NotRun as Reason};
use linerate_fleet::message::{FailCode, Outcome, Role};
use linerate_lab::fleet::analysis::period::{ByteInterval, Period, TestIntervals, common};
use linerate_model::fleet::{
    Cell, CellFlag, CellOutcome, FleetMode, Measurement, NotRun, NotRunReason, StartTimes, Task,
};
use linerate_model::record::{Series, SeriesOf, Times, Trial};

use crate::fleet::connect::CLOCK_BUDGET_NS;

/// Most intervals that are read of a test.
const INTERVALS_MAX: usize = 1 << 13;

/// What arrived about one task.
#[derive(Debug, Default)]
pub(super) struct TaskReport {
    pub(super) client: Option<Received>,
    pub(super) server: Option<Received>,
    pub(super) not_run: Option<Reason>,
}

/// The result of one end. Offsets are agent's clock minus coordinator's clock.
#[derive(Debug)]
pub(super) struct Received {
    pub(super) result: Box<HostResult>,
    pub(super) offset_ns: i64,
}

/// Length of the tests of a round.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lengths {
    pub(super) omit_ns: u64,
    pub(super) test_ns: u64,
}

/// One cell for each task.
pub(super) fn cells(
    mode: FleetMode,
    tasks: &[(Task, TaskId, Option<f64>)],
    mut reports: BTreeMap<TaskId, TaskReport>,
    lengths: Lengths,
) -> Vec<Cell> {
    let series: BTreeMap<TaskId, TestIntervals> =
        reports.iter().filter_map(|(id, report)| Some((*id, report.intervals()?))).collect();
    let all: Vec<TestIntervals> = series.values().cloned().collect();
    let period = common(&all, lengths.omit_ns, lengths.test_ns).ok();
    let cell = |(task, id, nominal_bps): &(Task, TaskId, Option<f64>)| {
        let report = reports.remove(id).unwrap_or_default();
        let outcome = report.outcome(series.get(id), period, all.len() > 1, *nominal_bps);
        Cell { task: task.clone(), mode, outcome }
    };
    tasks.iter().map(cell).collect()
}

impl TaskReport {
    pub(super) fn take(&mut self, received: Received) {
        match received.result.role {
            Role::Client => self.client = Some(received),
            Role::Server => self.server = Some(received),
        }
    }

    fn outcome(
        &self,
        series: Option<&TestIntervals>,
        period: Option<Period>,
        is_compared: bool,
        nominal_bps: Option<f64>,
    ) -> CellOutcome {
        let Some(client) = &self.client else { return CellOutcome::NotRun(self.not_run()) };
        let end = &client.result.end;
        if end.outcome != Outcome::Done {
            let reason = match (end.outcome, end.reason.as_deref()) {
                (Outcome::Aborted, Some("lease")) => NotRunReason::Lease,
                (Outcome::Aborted, Some("deadline")) => NotRunReason::Deadline,
                _ => NotRunReason::Failed,
            };
            return CellOutcome::NotRun(NotRun { reason, detail: end.reason.clone() });
        }
        let total_bps = end.bytes as f64 * 8e9 / end.elapsed_ns.max(1) as f64;
        let in_common = series.zip(period).map(|(series, period)| series.rate_bps(period));
        let mut flags = client.flags();
        if is_compared && series.is_some() && period.is_none() {
            flags.push(CellFlag::NoCommonPeriod);
        }
        CellOutcome::Measured(Measurement {
            goodput_bps: in_common.unwrap_or(total_bps),
            nominal_bps,
            start: client.start(),
            flags,
            ..Measurement::default()
        })
    }

    fn not_run(&self) -> NotRun {
        let reason = match self.not_run {
            Some(Reason::HostOut) => NotRunReason::Unreachable,
            Some(Reason::HostLost) => NotRunReason::PeerLost,
            Some(Reason::SlowControl | Reason::NoResult) => NotRunReason::SlowControl,
            Some(Reason::Refused(FailCode::Late)) => NotRunReason::Late,
            Some(Reason::Refused(_)) => NotRunReason::Refused,
            Some(Reason::Cancelled) => NotRunReason::Cancelled,
            Some(_) | None => NotRunReason::Failed,
        };
        NotRun { reason, detail: self.not_run.map(|reason| reason.to_string()) }
    }

    /// What the sink received over time, on the coordinator's clock.
    fn intervals(&self) -> Option<TestIntervals> {
        let sink = self.server.as_ref().filter(|sink| sink.result.end.outcome == Outcome::Done)?;
        let started_ns = sink.result.end.started_ns?.checked_add_signed(sink.offset_ns.checked_neg()?)?;
        let record = linerate_record::text::read(&sink.result.record).ok()?;
        let [trial] = record.trials.as_slice() else { return None };
        let intervals = byte_intervals(trial, started_ns)?;
        Some(TestIntervals { start_ns: started_ns, end_ns: intervals.last()?.end_ns, intervals })
    }
}

impl Received {
    fn flags(&self) -> Vec<CellFlag> {
        let is_late = self.start().is_some_and(|start| start.actual_ns > start.planned_ns + CLOCK_BUDGET_NS);
        let has_step = self.result.end.clock_step_ns.unsigned_abs() > CLOCK_BUDGET_NS;
        let flags = [
            (!self.result.is_plausible, CellFlag::Implausible),
            (is_late, CellFlag::LateStart),
            (has_step, CellFlag::ClockStep),
        ];
        flags.into_iter().filter_map(|(is_set, flag)| is_set.then_some(flag)).collect()
    }

    fn start(&self) -> Option<StartTimes> {
        let here = |agent_ns: u64| agent_ns.checked_add_signed(self.offset_ns.checked_neg()?);
        let end = &self.result.end;
        Some(StartTimes { planned_ns: here(end.planned_ns?)?, actual_ns: here(end.started_ns?)? })
    }
}

/// Bytes of all streams of the series of a trial.
fn byte_intervals(trial: &Trial, started_ns: u64) -> Option<Vec<ByteInterval>> {
    let is_bytes = |series: &&Series| series.name == "bytes" && matches!(series.of, SeriesOf::Sum);
    let series = trial.series.iter().find(is_bytes)?;
    let ends: Vec<(u64, u64)> = match &series.times {
        Times::Grid { t0_ns, step_ns } => {
            let begin = |at: u64| t0_ns.saturating_add(step_ns.saturating_mul(at));
            (0..series.values.len() as u64).map(|at| (begin(at), begin(at + 1))).collect()
        }
        Times::Ends { t0_ns, ends_ns } => {
            std::iter::once(t0_ns).chain(ends_ns).copied().zip(ends_ns.iter().copied()).collect()
        }
    };
    let interval = |((from_ns, to_ns), bytes): ((u64, u64), &Option<f64>)| ByteInterval {
        start_ns: started_ns.saturating_add(from_ns),
        end_ns: started_ns.saturating_add(to_ns),
        bytes: bytes.unwrap_or(0.0).max(0.0) as u64,
    };
    Some(ends.into_iter().zip(&series.values).take(INTERVALS_MAX).map(interval).collect())
}
