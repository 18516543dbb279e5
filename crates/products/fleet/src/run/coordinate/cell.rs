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

use crate::run::prepare::CLOCK_BUDGET_NS;
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
    let intervals = |cell: &PlannedCell| {
        Some((
            cell.id,
            reports.get_mut(&cell.id)?.intervals(cell.is_reversed)?,
        ))
    };
    let series: BTreeMap<TaskId, TestIntervals> = planned.iter().filter_map(intervals).collect();
    let all: Vec<TestIntervals> = series.values().cloned().collect();
    let period = common(&all, test.omit_ns(), test.time_ns());
    let cell = |cell: &PlannedCell| {
        let report = reports.remove(&cell.id).unwrap_or_default();
        let outcome = report.outcome(cell, series.get(&cell.id), period, all.len() > 1);
        Cell::new(cell.task.clone(), mode, outcome)
    };

    planned.iter().map(cell).collect()
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
        series: Option<&TestIntervals>,
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
        let total_bps = end.bytes as f64 * 8e9 / end.elapsed_ns.max(1) as f64;
        let in_common = series
            .zip(period)
            .map(|(series, period)| series.rate_bps(period));
        let mut flags = client.flags();

        // A single test is compared with none and needs no common period.
        if is_compared && series.is_some() && period.is_none() {
            flags.push(CellFlag::NoCommonPeriod);
        }

        let measurement = Measurement {
            goodput_bps: in_common.unwrap_or(total_bps),
            nominal_bps: planned.nominal_bps,
            retransmits: client.retransmits,
            rtt_us: client.rtt_us,
            // A client without an agent reports no start; its server does.
            start: client.start().or_else(|| self.server.as_ref()?.start()),
            flags,
            ..Measurement::default()
        };
        CellOutcome::Measured(measurement)
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

    /// Amounts that the sink received over time, on the coordinator's clock.
    fn intervals(&mut self, is_reversed: bool) -> Option<TestIntervals> {
        let sink = if is_reversed {
            &mut self.client
        } else {
            &mut self.server
        };
        sink.as_mut()?.intervals.take()
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
        let trial = record.as_ref().and_then(|record| record.trials.first());
        let of_client = trial.filter(|_| role == Role::Client);
        let is_one = record
            .as_ref()
            .is_some_and(|record| record.trials.len() == 1);
        let is_sink = |trial: &&Trial| role == Role::Server || is_reversed(trial);
        let of_sink = trial
            .filter(is_sink)
            .filter(|_| is_one && end.outcome == Outcome::Done);

        Self {
            retransmits: of_client
                .and_then(|trial| figure(trial, MeasureName::Retransmits))
                .map(|count| count as u64),
            rtt_us: of_client
                .and_then(|trial| figure(trial, MeasureName::RttMeanNs))
                .map(|ns| (ns / 1e3) as u64),
            intervals: of_sink.and_then(|trial| intervals(trial, &end, offset_ns?)),
            role,
            end,
            is_plausible,
            offset_ns,
        }
    }

    fn flags(&self) -> Vec<CellFlag> {
        let is_late = self.start().is_some_and(|start| {
            start.actual_ns > start.planned_ns.saturating_add(CLOCK_BUDGET_NS)
        });
        // Without its clock neither its start nor its place in the common period is known.
        let has_no_clock = self.end.started_ns.is_some() && self.offset_ns.is_none();
        let has_step = self.end.clock_step_ns.unsigned_abs() > CLOCK_BUDGET_NS;
        let flags = [
            (!self.is_plausible, CellFlag::Implausible),
            (is_late, CellFlag::LateStart),
            (has_step, CellFlag::ClockStep),
            (has_no_clock, CellFlag::NoClock),
        ];

        flags
            .into_iter()
            .filter_map(|(is_set, flag)| is_set.then_some(flag))
            .collect()
    }

    fn start(&self) -> Option<StartTimes> {
        // The offset is agent minus coordinator, so its negative leads back to this clock.
        let here = |agent_ns: u64| agent_ns.checked_add_signed(self.offset_ns?.checked_neg()?);
        let end = &self.end;
        Some(StartTimes {
            planned_ns: here(end.planned_ns?)?,
            actual_ns: here(end.started_ns?)?,
        })
    }
}

/// The server sends.
fn is_reversed(trial: &Trial) -> bool {
    trial.series.iter().any(|series| series.way == Way::Reverse)
}

/// Amounts that the sink received over time, on the coordinator's clock.
fn intervals(trial: &Trial, end: &TaskEnd, offset_ns: i64) -> Option<TestIntervals> {
    let started_ns = end
        .started_ns?
        .checked_add_signed(offset_ns.checked_neg()?)?;
    let intervals = byte_intervals(&trial.series, started_ns)?;
    let end_ns = intervals.iter().map(|interval| interval.end_ns).max()?;

    Some(TestIntervals {
        start_ns: started_ns,
        end_ns,
        intervals,
    })
}

/// A figure of the one direction of a test.
fn figure(trial: &Trial, name: MeasureName) -> Option<f64> {
    let of = |way| {
        trial
            .measures
            .iter()
            .find(|measure| (measure.name, measure.way) == (name, way))
    };
    // A test of one direction has the measure in that direction only.
    let found = of(Way::Forward).or_else(|| of(Way::Reverse))?;
    Some(found.value).filter(|value| value.is_finite() && *value >= 0.0)
}

/// Bytes of all streams over time; `None` of a trial without them.
fn byte_intervals(series: &[Series], started_ns: u64) -> Option<Vec<ByteInterval>> {
    let is_bytes =
        |series: &&Series| series.name == "bytes" && matches!(series.of, SeriesOf::Stream(_));
    let of_streams = series
        .iter()
        .filter(is_bytes)
        .flat_map(|series| stream_intervals(series, started_ns));
    let intervals: Vec<ByteInterval> = of_streams.collect();

    (!intervals.is_empty()).then_some(intervals)
}

fn stream_intervals(series: &Series, started_ns: u64) -> Vec<ByteInterval> {
    let ends: Vec<(u64, u64)> = match &series.times {
        Times::Grid { t0_ns, step_ns } => {
            let begin = |at: u64| t0_ns.saturating_add(step_ns.saturating_mul(at));
            (0..series.values.len() as u64)
                .map(|at| (begin(at), begin(at + 1)))
                .collect()
        }
        Times::Ends { t0_ns, ends_ns } => std::iter::once(t0_ns)
            .chain(ends_ns)
            .copied()
            .zip(ends_ns.iter().copied())
            .collect(),
    };
    let interval = |((from_ns, to_ns), bytes): ((u64, u64), &Option<f64>)| ByteInterval {
        start_ns: started_ns.saturating_add(from_ns),
        end_ns: started_ns.saturating_add(to_ns),
        // A missing value counts as nothing received: the series has a gap there.
        bytes: bytes.unwrap_or(0.0).max(0.0) as u64,
    };
    ends.into_iter()
        .zip(&series.values)
        .take(INTERVALS_MAX)
        .map(interval)
        .collect()
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
        let intervals = byte_intervals(&all, 1_000).expect("intervals");
        let test = TestIntervals {
            start_ns: 1_000,
            end_ns: 1_300,
            intervals,
        };

        // 5 bytes of the first stream and 50 of the second one in 200 ns.
        assert!(
            (test.rate_bps(Period {
                start_ns: 1_100,
                end_ns: 1_300
            }) - 55.0 * 8e9 / 200.0)
                .abs()
                < 1.0
        );
        assert_eq!(byte_intervals(&all[1..2], 0), None);
    }
}
