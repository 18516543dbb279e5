//! Makes the events of a test of its trial.

use std::collections::BTreeMap;

use linerate_model::event::{Endpoint, TestHeader};
use linerate_model::record::{Detail, Series, SeriesOf, TestDetail, TestStep, Trial, Way};
use linerate_model::{Event, Flow, IntervalReport, StreamId, StreamInterval, StreamRole};
use serde_json::{Map, Value};

use super::fields;

/// The events the trial was made of, in order; none for a trial that is not a throughput test.
/// Intervals that were merged are one event, and histograms are in the summary only.
pub fn playback(trial: &Trial) -> Vec<Event> {
    let Some(Detail::Test(detail)) = &trial.detail else {
        return Vec::new();
    };
    let mut streams = detail.streams.iter();
    let mut data_paths = detail.data_paths.iter();
    let mut intervals = Intervals::new(detail, &trial.series);
    let mut events = Vec::new();

    for step in &detail.sequence {
        match step {
            TestStep::Header => events.push(Event::TestAccepted(Box::new(detail.header.clone()))),
            TestStep::Stream => events.extend(streams.next().cloned().map(Event::StreamOpened)),
            TestStep::DataPath => events.extend(data_paths.next().cloned().map(Event::DataPath)),
            TestStep::Intervals {
                count,
                is_omitted,
                is_last,
            } => {
                let count = intervals.left().min(*count as usize);
                events.extend(
                    (0..count).map(|_| Event::Interval(intervals.next(*is_omitted, *is_last))),
                );
            }
            TestStep::Summary => events.extend(
                detail
                    .summary
                    .clone()
                    .map(|summary| Event::Summary(Box::new(summary))),
            ),
            TestStep::Event(event) => events.push((**event).clone()),
            _ => {}
        }
    }

    events
}

/// The series of all streams, interval by interval.
struct Intervals<'a> {
    header: &'a TestHeader,
    /// In the order of the rows of a report.
    lanes: Vec<StreamSeries<'a>>,
    at: usize,
    length: usize,
    measured_from_ns: u64,
}

struct StreamSeries<'a> {
    id: u32,
    flow: Flow,
    series: Vec<&'a Series>,
}

impl<'a> Intervals<'a> {
    fn new(detail: &'a TestDetail, series: &'a [Series]) -> Self {
        let mut lanes: Vec<StreamSeries<'a>> = Vec::new();
        for series in series {
            let (SeriesOf::Stream(id), Some(flow)) = (&series.of, flow_of(series.way)) else {
                continue;
            };
            match lanes
                .iter_mut()
                .find(|lane| (lane.id, lane.flow) == (*id, flow))
            {
                Some(lane) => lane.series.push(series),
                None => lanes.push(StreamSeries {
                    id: *id,
                    flow,
                    series: vec![series],
                }),
            }
        }

        let length = series
            .iter()
            .map(|series| series.values.len())
            .max()
            .unwrap_or(0);
        Self {
            header: &detail.header,
            lanes,
            at: 0,
            length,
            measured_from_ns: 0,
        }
    }

    fn left(&self) -> usize {
        self.length - self.at
    }

    fn next(&mut self, omitted: bool, last: bool) -> IntervalReport {
        let offset_ns = if omitted { 0 } else { self.measured_from_ns };
        let rows = self
            .lanes
            .iter()
            .filter_map(|lane| lane.row(self.at, offset_ns, self.header.endpoint));
        let report = IntervalReport {
            omitted,
            last,
            ..IntervalReport::new(rows.collect())
        };

        if omitted {
            let ends = report.streams.iter().map(|row| row.end_ns);
            self.measured_from_ns = ends.max().unwrap_or(0).max(self.measured_from_ns);
        }

        self.at += 1;
        report
    }
}

impl StreamSeries<'_> {
    /// The row of an interval, if the stream existed in it.
    fn row(&self, at: usize, offset_ns: u64, endpoint: Endpoint) -> Option<StreamInterval> {
        let value = |series: &Series| series.values.get(at).copied().flatten();
        let named = |name: &str| self.series.iter().find(|series| series.name == name);
        let bytes = named("bytes")?;
        let (start_ns, end_ns) = bytes.times.interval(at)?;
        let start_ns = named(fields::START)
            .and_then(|series| value(series))
            .map_or(start_ns, |start| start as u64);
        let mut groups: BTreeMap<Group, Map<String, Value>> = BTreeMap::new();

        for series in &self.series {
            if let Some((group, name)) = group_of(&series.name)
                && let Some(number) = value(series)
            {
                fields::set(groups.entry(group).or_default(), name, number);
            }
        }

        let mut group = |group| groups.remove(&group).map(fields::with_arrays);
        let row = StreamInterval {
            id: StreamId(self.id),
            role: role_of(endpoint, self.flow),
            flow: self.flow,
            start_ns: start_ns.saturating_sub(offset_ns),
            end_ns: end_ns.saturating_sub(offset_ns),
            bytes: value(bytes)? as u64,
            tcp: group(Group::Tcp).and_then(|tcp| serde_json::from_value(tcp).ok()),
            udp: group(Group::Udp).and_then(|udp| serde_json::from_value(udp).ok()),
            metrics: group(Group::Metrics).and_then(|metrics| serde_json::from_value(metrics).ok()),
        };

        Some(row)
    }
}

/// Member of an interval that holds a measurement.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Group {
    Tcp,
    Udp,
    Metrics,
}

fn group_of(name: &str) -> Option<(Group, &str)> {
    match name.strip_prefix(fields::METRICS) {
        _ if name.starts_with(fields::MIN) || name.starts_with(fields::MAX) => None,
        Some(metric) => Some((Group::Metrics, metric)),
        None if name == "bytes" || name == fields::START => None,
        None if fields::UDP.contains(&name) => Some((Group::Udp, name)),
        None => Some((Group::Tcp, name)),
    }
}

fn flow_of(way: Way) -> Option<Flow> {
    match way {
        Way::Forward => Some(Flow::Forward),
        Way::Reverse => Some(Flow::Reverse),
        Way::Sum => None,
    }
}

fn role_of(endpoint: Endpoint, flow: Flow) -> StreamRole {
    match (endpoint, flow) {
        (Endpoint::Client, Flow::Forward) | (Endpoint::Server, Flow::Reverse) => StreamRole::Sender,
        _ => StreamRole::Receiver,
    }
}
