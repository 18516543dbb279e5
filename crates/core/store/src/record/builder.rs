//! Makes a trial of the events of a test.

use linerate_model::event::TestHeader;
use linerate_model::record::{Detail, RunState, TestDetail, TestStep, Trial, Way};
use linerate_model::{
    Event, EventSink, Failure, FailureKind, Flow, IntervalReport, SinkError, Summary,
};

use super::columns::Columns;
use super::measures;

/// Points of the series of a trial that are kept; neighbours are merged beyond it.
const POINTS_MAX: usize = 1 << 20;
/// Events and rows of bursts that are kept beside the intervals.
const EVENTS_MAX: usize = 1 << 12;

/// Makes a [`Trial`] of the events of one test. Its memory is bounded whatever the length of the
/// test.
#[derive(Debug)]
pub struct Builder {
    detail: TestDetail,
    columns: Columns,
    points_max: usize,
    events: usize,
    /// Where the sequence has the number of dropped events.
    dropped_at: Option<usize>,
    /// Summaries after the first one.
    further: Vec<Summary>,
    end: Option<Result<(), Failure>>,
}

/// A permit key admits to a server (iperf 2, `--permit-key`); records are shared.
fn without_secrets(mut header: TestHeader) -> TestHeader {
    header.spec.workload.permit_key = None;
    header
}

impl Default for Builder {
    fn default() -> Self {
        Self::new(TestHeader::default())
    }
}

impl Builder {
    /// For a test that was planned like this; the header of the test replaces it.
    pub fn new(planned: TestHeader) -> Self {
        let detail = TestDetail {
            header: without_secrets(planned),
            ..TestDetail::default()
        };
        Self {
            detail,
            columns: Columns::default(),
            points_max: POINTS_MAX,
            events: 0,
            dropped_at: None,
            further: Vec::new(),
            end: None,
        }
    }

    /// Keeps no more than this number of points.
    #[must_use]
    pub fn points_max(self, points_max: usize) -> Self {
        Self { points_max, ..self }
    }

    /// The test has ended, or its events end here.
    #[must_use]
    pub fn finish(self) -> Trial {
        let summary = self.detail.summary.as_ref().map(|first| {
            let further = self
                .further
                .iter()
                .flat_map(|summary| summary.streams.iter().cloned());
            let mut totals = first.clone();
            totals.streams = first.streams.iter().cloned().chain(further).collect();
            totals
        });
        let measures = summary.map_or_else(Vec::new, |summary| {
            let mss_bytes = |flow: Flow| {
                self.columns
                    .last(Way::from(flow), "mss_bytes")
                    .map(|mss| mss as u32)
            };
            measures::of_test(&summary, &self.detail.header, mss_bytes)
        });
        let moved = !measures.is_empty();
        let (state, reason) = match self.end {
            Some(Ok(())) => (RunState::Complete, None),
            Some(Err(failure)) => (state_of(&failure, moved), Some(failure.message)),
            // Without an end the process ended early, or the report is cut off.
            None if moved || self.columns.points() > 0 => (RunState::Partial, None),
            None => (RunState::Failed, None),
        };

        let elapsed_ns = elapsed_ns(&self.detail, &self.columns);
        Trial {
            state,
            reason,
            measures: if state.has_failed() {
                Vec::new()
            } else {
                measures
            },
            series: self.columns.into_series(),
            detail: Some(Detail::Test(Box::new(self.detail))),
            ..Trial::complete(elapsed_ns)
        }
    }

    fn interval(&mut self, report: &IntervalReport) {
        self.columns.push(report);
        let omitted = report.omitted;
        let last = report.last;

        match self.detail.sequence.last_mut() {
            Some(TestStep::Intervals {
                count,
                is_omitted,
                is_last,
            }) if (*is_omitted, *is_last) == (omitted, last) => {
                *count += 1;
            }
            _ => self.step(TestStep::Intervals {
                count: 1,
                is_omitted: omitted,
                is_last: last,
            }),
        }

        if self.columns.points() > self.points_max {
            self.thin();
        }
    }

    /// Merges neighbours that follow each other without another event between them.
    fn thin(&mut self) {
        let mut groups = Vec::new();
        for step in &mut self.detail.sequence {
            let TestStep::Intervals { count, .. } = step else {
                continue;
            };
            // Pairs stay within a step, so that warm-up and measurement do not mix.
            groups.extend((0..*count / 2).map(|_| 2));
            groups.extend((0..*count % 2).map(|_| 1));
            *count = count.div_ceil(2);
        }

        self.columns.merge(&groups);
    }

    fn step(&mut self, step: TestStep) {
        self.detail.sequence.push(step);
    }

    /// Keeps an event as it is, or counts it.
    fn keep(&mut self, event: &Event) {
        self.events += if let Event::Bursts(rows) = event {
            rows.len()
        } else {
            1
        };
        let is_end = matches!(event, Event::Finished | Event::Failed(_));
        if self.events <= EVENTS_MAX || is_end {
            return self.step(TestStep::Event(Box::new(event.clone())));
        }

        let sequence = &mut self.detail.sequence;
        match self.dropped_at.and_then(|at| sequence.get_mut(at)) {
            Some(TestStep::Dropped(count)) => *count += 1,
            _ => {
                self.dropped_at = Some(sequence.len());
                sequence.push(TestStep::Dropped(1));
            }
        }
    }
}

impl EventSink for Builder {
    fn event(&mut self, event: &Event) -> Result<(), SinkError> {
        let is_first = |steps: &[TestStep], step: &TestStep| !steps.contains(step);
        match event {
            Event::TestAccepted(header) if is_first(&self.detail.sequence, &TestStep::Header) => {
                self.detail.header = without_secrets((**header).clone());
                self.step(TestStep::Header);
            }
            Event::StreamOpened(stream) => {
                self.detail.streams.push(stream.clone());
                self.step(TestStep::Stream);
            }
            Event::DataPath(path) => {
                self.detail.data_paths.push(path.clone());
                self.step(TestStep::DataPath);
            }
            Event::Interval(report) => self.interval(report),
            Event::Summary(summary) if self.detail.summary.is_none() => {
                self.detail.summary = Some((**summary).clone());
                self.step(TestStep::Summary);
            }
            _ => self.keep(event),
        }

        match event {
            Event::Summary(summary) if self.detail.summary.as_ref() != Some(&**summary) => {
                self.further.push((**summary).clone());
            }
            Event::Finished => self.end = Some(Ok(())),
            Event::Failed(failure) => self.end = Some(Err(failure.clone())),
            _ => {}
        }

        Ok(())
    }
}

fn state_of(failure: &Failure, moved: bool) -> RunState {
    match failure.kind {
        FailureKind::Interrupted => RunState::Interrupted,
        _ if moved => RunState::Partial,
        _ => RunState::of_failure(&failure.message),
    }
}

/// Length of the warm-up and of the measured part.
fn elapsed_ns(detail: &TestDetail, columns: &Columns) -> u64 {
    let omit_ns = u64::try_from(detail.header.spec.omit.as_nanos()).unwrap_or(u64::MAX);
    let streams = detail.summary.iter().flat_map(|summary| &summary.streams);
    let measured_ns = streams
        .filter_map(|stream| stream.local())
        .map(|end| end.duration_ns)
        .max();

    measured_ns
        .map_or(0, |ns| ns.saturating_add(omit_ns))
        .max(columns.end_ns())
}
