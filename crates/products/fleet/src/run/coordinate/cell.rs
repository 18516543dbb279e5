//! Cells from the results of a round.

use std::collections::BTreeMap;

use crate::TaskId;
use crate::conclude::period::{ByteInterval, Period, TestIntervals, common};
use crate::protocol::coordinator::NotRun as Reason;
use crate::protocol::message::{FailCode, Outcome, Role, TaskEnd};
use linerate_model::fleet::{
    Cell, CellFlag, CellOutcome, FleetMode, Measurement, NotRun, NotRunReason, StartTimes, Task,
};
use linerate_model::measure::MeasureName;
use linerate_model::record::{Series, SeriesOf, Times, Trial, Way};

use crate::run::members::CLOCK_BUDGET_NS;
use crate::spec::TestOptions;

/// Most intervals that are read of a test.
const INTERVALS_MAX: usize = 1 << 13;

/// Reports that arrived about one task.
#[derive(Default)]
pub(super) struct TaskReport {
    pub client: Option<Received>,
    pub server: Option<Received>,
    /// Why there is none, and in words.
    pub not_run: Option<(Reason, String)>,
    /// Amounts that the sink received over time.
    intervals: Option<TestIntervals>,
}

/// The part of one end's result that counts. Its record, which is several times as long, is not
/// kept.
pub(super) struct Received {
    role: Role,
    end: TaskEnd,
    is_plausible: bool,
    /// Agent's clock minus coordinator's clock; `None` where that is not known.
    offset_ns: Option<i64>,
    retransmits: Option<u64>,
    rtt_us: Option<u64>,
    /// Amounts over time, of the end that received.
    intervals: Option<TestIntervals>,
}

/// A task of a round.
pub(super) struct PlannedCell {
    pub task: Task,
    pub id: TaskId,
    /// The smaller of the highest rates of both links.
    pub nominal_bps: Option<f64>,
    /// The server sends.
    pub is_reversed: bool,
}

/// One cell for each task.
pub(super) fn cells(
    mode: FleetMode,
    planned: &[PlannedCell],
    mut reports: BTreeMap<TaskId, TaskReport>,
    test: TestOptions,
) -> Vec<Cell> {
    // Amounts that the sinks received over time, on the coordinator's clock.
    let mut series = Vec::new();
    for cell in planned {
        let Some(report) = reports.get_mut(&cell.id) else {
            continue;
        };
        let sink = if cell.is_reversed {
            &mut report.client
        } else {
            &mut report.server
        };
        report.intervals = sink.as_mut().and_then(|sink| sink.intervals.take());
        series.extend(report.intervals.clone());
    }

    let period = common(&series, test.omit_ns(), test.time_ns());
    // A single test is compared with none and needs no common period.
    let is_compared = series.len() > 1;
    let mut cells = Vec::new();
    for cell in planned {
        let report = reports.remove(&cell.id).unwrap_or_default();
        let outcome = report.outcome(cell, period, is_compared);
        cells.push(Cell::new(cell.task.clone(), mode, outcome));
    }

    cells
}

impl TaskReport {
    pub(super) fn take(&mut self, received: Received) {
        match received.role {
            Role::Client => self.client = Some(received),
            Role::Server => self.server = Some(received),
        }
    }

    fn outcome(
        &self,
        planned: &PlannedCell,
        period: Option<Period>,
        is_compared: bool,
    ) -> CellOutcome {
        let Some(client) = &self.client else {
            return CellOutcome::NotRun(self.not_run());
        };
        let end = &client.end;
        if end.outcome != Outcome::Done {
            let reason = match (end.outcome, end.reason.as_deref()) {
                (Outcome::Aborted, Some("lease")) => NotRunReason::Lease,
                (Outcome::Aborted, Some("deadline")) => NotRunReason::Deadline,
                _ => NotRunReason::Failed,
            };
            let mut not_run = NotRun::new(reason);
            not_run.detail = end.reason.clone();
            return CellOutcome::NotRun(not_run);
        }

        // Bytes per nanosecond times 8e9 is bit/s.
        let mut goodput_bps = end.bytes as f64 * 8e9 / end.elapsed_ns.max(1) as f64;
        let mut flags = client.flags();
        match (&self.intervals, period) {
            (Some(intervals), Some(period)) => goodput_bps = intervals.rate_bps(period),
            (Some(_), None) if is_compared => flags.push(CellFlag::NoCommonPeriod),
            _ => {}
        }

        CellOutcome::Measured(Measurement {
            goodput_bps,
            nominal_bps: planned.nominal_bps,
            retransmits: client.retransmits,
            rtt_us: client.rtt_us,
            // A client without an agent reports no start; its server does.
            start: client.start().or_else(|| self.server.as_ref()?.start()),
            flags,
            ..Measurement::default()
        })
    }

    fn not_run(&self) -> NotRun {
        let Some((reason, detail)) = &self.not_run else {
            return NotRun::new(NotRunReason::Failed);
        };
        let reason = match reason {
            Reason::HostOut => NotRunReason::Unreachable,
            Reason::HostLost => NotRunReason::PeerLost,
            Reason::SlowControl | Reason::NoClock | Reason::NoResult => NotRunReason::SlowControl,
            Reason::Refused(FailCode::Late) => NotRunReason::Late,
            Reason::Refused(_) => NotRunReason::Refused,
            Reason::Cancelled => NotRunReason::Cancelled,
        };
        let mut not_run = NotRun::new(reason);
        not_run.detail = Some(detail.clone());

        not_run
    }
}

impl Received {
    /// Reads a result. The offset is agent's clock minus coordinator's clock, where it is known.
    pub(super) fn new(
        role: Role,
        end: TaskEnd,
        record: &str,
        is_plausible: bool,
        offset_ns: Option<i64>,
    ) -> Self {
        let record = linerate_store::text::read(record).ok();
        let trials = record.as_ref().map_or(&[][..], |record| &record.trials);
        let mut received = Self {
            role,
            end,
            is_plausible,
            offset_ns,
            retransmits: None,
            rtt_us: None,
            intervals: None,
        };
        let Some(trial) = trials.first() else {
            return received;
        };

        // The server sends.
        let mut is_sink = trial.series.iter().any(|of| of.way == Way::Reverse);
        if role == Role::Client {
            let count = figure(trial, MeasureName::Retransmits);
            received.retransmits = count.map(|count| count as u64);
            let rtt_ns = figure(trial, MeasureName::RttMeanNs);
            received.rtt_us = rtt_ns.map(|ns| (ns / 1e3) as u64);
        } else {
            is_sink = true;
        }

        if is_sink && trials.len() == 1 && received.end.outcome == Outcome::Done {
            let started_ns = received.end.started_ns;
            let here_ns = started_ns.and_then(|at_ns| received.here_ns(at_ns));
            received.intervals = here_ns.and_then(|at_ns| test_intervals(&trial.series, at_ns));
        }
        received
    }

    /// A time of the agent's clock on this one: the offset is agent minus coordinator.
    fn here_ns(&self, agent_ns: u64) -> Option<u64> {
        agent_ns.checked_add_signed(self.offset_ns?.checked_neg()?)
    }

    fn flags(&self) -> Vec<CellFlag> {
        let mut flags = Vec::new();
        if !self.is_plausible {
            flags.push(CellFlag::Implausible);
        }
        if let Some(start) = self.start()
            && start.actual_ns > start.planned_ns.saturating_add(CLOCK_BUDGET_NS)
        {
            flags.push(CellFlag::LateStart);
        }
        if self.end.clock_step_ns.unsigned_abs() > CLOCK_BUDGET_NS {
            flags.push(CellFlag::ClockStep);
        }
        // Without its clock neither its start nor its place in the common period is known.
        if self.end.started_ns.is_some() && self.offset_ns.is_none() {
            flags.push(CellFlag::NoClock);
        }

        flags
    }

    fn start(&self) -> Option<StartTimes> {
        Some(StartTimes {
            planned_ns: self.here_ns(self.end.planned_ns?)?,
            actual_ns: self.here_ns(self.end.started_ns?)?,
        })
    }
}

/// A figure of the one direction of a test.
fn figure(trial: &Trial, name: MeasureName) -> Option<f64> {
    // A test of one direction has the measure in that direction only.
    let mut measures = trial.measures.iter();
    let found =
        measures.find(|of| of.name == name && [Way::Forward, Way::Reverse].contains(&of.way));
    Some(found?.value).filter(|value| value.is_finite() && *value >= 0.0)
}

/// Bytes of all streams over time; `None` of a trial without them.
fn test_intervals(series: &[Series], started_ns: u64) -> Option<TestIntervals> {
    let mut intervals = Vec::new();
    for of in series {
        if of.name == "bytes" && matches!(of.of, SeriesOf::Stream(_)) {
            add_intervals(&mut intervals, of, started_ns);
        }
    }

    Some(TestIntervals {
        start_ns: started_ns,
        end_ns: intervals.iter().map(|interval| interval.end_ns).max()?,
        intervals,
    })
}

fn add_intervals(intervals: &mut Vec<ByteInterval>, series: &Series, started_ns: u64) {
    let (Times::Grid { t0_ns, .. } | Times::Ends { t0_ns, .. }) = &series.times;
    let mut from_ns = *t0_ns;
    for (at, bytes) in series.values.iter().enumerate().take(INTERVALS_MAX) {
        let to_ns = match &series.times {
            Times::Grid { step_ns, .. } => from_ns.saturating_add(*step_ns),
            Times::Ends { ends_ns, .. } => match ends_ns.get(at) {
                Some(end_ns) => *end_ns,
                None => return,
            },
        };
        intervals.push(ByteInterval {
            start_ns: started_ns.saturating_add(from_ns),
            end_ns: started_ns.saturating_add(to_ns),
            // A missing value counts as nothing received: the series has a gap there.
            bytes: bytes.unwrap_or(0.0).max(0.0) as u64,
        });
        from_ns = to_ns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(name: &str, stream: u32, times: Times, values: &[f64]) -> Series {
        Series::new(
            name,
            SeriesOf::Stream(stream),
            Way::Forward,
            times,
            values.iter().map(|value| Some(*value)).collect(),
        )
    }

    #[test]
    fn start_on_an_unknown_clock_is_absent_with_a_flag() {
        let end = || TaskEnd {
            planned_ns: Some(5),
            started_ns: Some(6),
            ..TaskEnd::done()
        };
        let known = Received::new(Role::Client, end(), "", true, Some(-10));
        let start = StartTimes {
            planned_ns: 15,
            actual_ns: 16,
        };
        assert_eq!((known.start(), known.flags()), (Some(start), Vec::new()));

        let unknown = Received::new(Role::Client, end(), "", true, None);
        assert_eq!(
            (unknown.start(), unknown.flags()),
            (None, vec![CellFlag::NoClock])
        );
    }

    #[test]
    fn bytes_of_all_streams_count_in_the_period_that_tests_have_in_common() {
        let grid = Times::Grid {
            t0_ns: 0,
            step_ns: 100,
        };
        let ends = Times::Ends {
            t0_ns: 0,
            ends_ns: vec![100, 200, 300],
        };
        let all = [
            series("bytes", 1, grid.clone(), &[1.0, 2.0, 3.0]),
            series("rtt_us", 1, grid, &[9.0, 9.0, 9.0]),
            series("bytes", 2, ends, &[10.0, 20.0, 30.0]),
        ];
        let test = test_intervals(&all, 1_000).expect("intervals");
        assert_eq!((test.start_ns, test.end_ns), (1_000, 1_300));

        // 5 bytes of the first stream and 50 of the second one in 200 ns.
        assert!(
            (test.rate_bps(Period {
                start_ns: 1_100,
                end_ns: 1_300
            }) - 55.0 * 8e9 / 200.0)
                .abs()
                < 1.0
        );
        assert!(test_intervals(&all[1..2], 0).is_none());
    }
}
