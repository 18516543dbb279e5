//! Intervals of a test as columns, one per stream and measurement.

use linerate_model::record::{Series, SeriesOf, Times, Way};
use linerate_model::{IntervalReport, StreamInterval};
use serde::Serialize;
use serde_json::Value;

use super::fields;

/// Columns of all streams. The times of the warm-up and of the measured part are on one axis.
#[derive(Debug, Default)]
pub(crate) struct Columns {
    streams: Vec<StreamColumns>,
    intervals: usize,
    /// End of the warm-up, where the measured part begins.
    measured_from_ns: u64,
    is_thinned: bool,
}

/// The columns of one stream in one direction.
#[derive(Debug)]
struct StreamColumns {
    of: SeriesOf,
    way: Way,
    starts_ns: Vec<u64>,
    ends_ns: Vec<u64>,
    columns: Vec<Column>,
}

/// One measurement of a stream, with NaN where it is absent.
#[derive(Debug)]
struct Column {
    name: String,
    values: Vec<f64>,
    /// Extremes of merged neighbours; empty until something was merged.
    extremes: Vec<(f64, f64)>,
}

impl Columns {
    /// Values of all columns.
    pub(crate) fn points(&self) -> usize {
        self.streams
            .iter()
            .map(|stream| stream.columns.len() * stream.ends_ns.len())
            .sum()
    }

    /// End of the last interval in ns since the start of the trial.
    pub(crate) fn end_ns(&self) -> u64 {
        self.streams
            .iter()
            .filter_map(|stream| stream.ends_ns.last())
            .copied()
            .max()
            .unwrap_or(0)
    }

    /// Appends one interval.
    pub(crate) fn push(&mut self, report: &IntervalReport) {
        // Times of a report begin again after the warm-up, as those of iperf3.
        let offset_ns = if report.omitted {
            0
        } else {
            self.measured_from_ns
        };
        let end_ns = report
            .streams
            .iter()
            .map(|row| row.end_ns.saturating_add(offset_ns))
            .max();

        for row in &report.streams {
            let before = self.intervals;
            let stream = self.stream(SeriesOf::Stream(row.id.0), row.flow.into());
            // A second row of a stream in one interval has no place.
            if stream.ends_ns.len() > before {
                continue;
            }

            stream
                .starts_ns
                .push(row.start_ns.saturating_add(offset_ns));
            stream.ends_ns.push(row.end_ns.saturating_add(offset_ns));
            stream.push(row);
        }

        self.intervals += 1;
        for stream in &mut self.streams {
            stream.pad(self.intervals, end_ns);
        }

        if report.omitted {
            self.measured_from_ns = self.end_ns();
        }
    }

    fn stream(&mut self, of: SeriesOf, way: Way) -> &mut StreamColumns {
        let known = self
            .streams
            .iter()
            .position(|stream| stream.of == of && stream.way == way);
        let at = known.unwrap_or_else(|| {
            let mut stream = StreamColumns {
                of,
                way,
                starts_ns: Vec::new(),
                ends_ns: Vec::new(),
                columns: Vec::new(),
            };
            stream.pad(
                self.intervals,
                self.streams
                    .first()
                    .and_then(|stream| stream.ends_ns.first())
                    .copied(),
            );
            self.streams.push(stream);
            self.streams.len() - 1
        });
        &mut self.streams[at]
    }

    /// Merges neighbours; `groups` are the numbers of intervals that become one, in order.
    pub(crate) fn merge(&mut self, groups: &[usize]) {
        for stream in &mut self.streams {
            merged(&mut stream.starts_ns, groups, |group| group[0]);
            merged(&mut stream.ends_ns, groups, |group| group[group.len() - 1]);
            for column in &mut stream.columns {
                column.merge(groups);
            }
        }

        self.intervals = groups.len();
        self.is_thinned = true;
    }

    /// The last value of a column of a direction.
    pub(crate) fn last(&self, way: Way, name: &str) -> Option<f64> {
        let columns = self
            .streams
            .iter()
            .filter(|stream| stream.way == way)
            .flat_map(|stream| &stream.columns);
        columns
            .filter(|column| column.name == name)
            .find_map(|column| column.values.iter().rev().find(|v| !v.is_nan()).copied())
    }

    pub(crate) fn into_series(self) -> Vec<Series> {
        self.streams
            .into_iter()
            .flat_map(|stream| stream.into_series(self.is_thinned))
            .collect()
    }
}

impl StreamColumns {
    fn push(&mut self, row: &StreamInterval) {
        self.set("bytes", row.bytes as f64);
        let groups = [
            ("", to_value(&row.tcp)),
            ("", to_value(&row.udp)),
            (fields::METRICS, to_value(&row.metrics)),
        ];
        for (prefix, group) in groups {
            fields::flatten(prefix, &group, &mut |name, number| self.set(name, number));
        }
    }

    /// Sets the value of the interval that is being appended.
    fn set(&mut self, name: &str, value: f64) {
        let before = self.ends_ns.len() - 1;
        let known = self.columns.iter().position(|column| column.name == name);
        let at = known.unwrap_or_else(|| {
            let column = Column {
                name: name.into(),
                values: vec![f64::NAN; before],
                extremes: Vec::new(),
            };
            self.columns.push(column);
            self.columns.len() - 1
        });
        // A name that occurs twice in a row keeps its last value.
        self.columns[at].values.truncate(before);
        self.columns[at].values.push(value);
    }

    /// Completes all columns to `intervals` values; an interval without this stream ends at
    /// `end_ns`.
    fn pad(&mut self, intervals: usize, end_ns: Option<u64>) {
        let end_ns = end_ns.or(self.ends_ns.last().copied()).unwrap_or(0);
        let start_ns = self.ends_ns.last().copied().unwrap_or(end_ns);
        self.starts_ns.resize(intervals, start_ns);
        self.ends_ns.resize(intervals, end_ns);

        for column in &mut self.columns {
            column.values.resize(intervals, f64::NAN);
        }
    }

    fn into_series(mut self, is_thinned: bool) -> Vec<Series> {
        let is_contiguous = self
            .ends_ns
            .iter()
            .zip(self.starts_ns.iter().skip(1))
            .all(|(end, start)| end == start);
        if !is_contiguous {
            let values = self.starts_ns.iter().map(|start| *start as f64).collect();
            self.columns.push(Column {
                name: fields::START.into(),
                values,
                extremes: Vec::new(),
            });
        }

        let times = times(self.starts_ns.first().copied().unwrap_or(0), self.ends_ns);
        let mut all = Vec::new();

        for column in self.columns {
            let series = |name: String, values: Vec<f64>| {
                let values = values
                    .into_iter()
                    .map(|value| (!value.is_nan()).then_some(value))
                    .collect();
                let mut series =
                    Series::new(name, self.of.clone(), self.way, times.clone(), values);
                series.is_thinned = is_thinned;
                series
            };
            if !column.extremes.is_empty() {
                let (extremes, rest) = (&column.extremes, &column.values[column.extremes.len()..]);
                let of = |end: fn(&(f64, f64)) -> f64| {
                    extremes
                        .iter()
                        .map(end)
                        .chain(rest.iter().copied())
                        .collect()
                };
                all.push(series(
                    format!("{}{}", fields::MIN, column.name),
                    of(|extremes| extremes.0),
                ));
                all.push(series(
                    format!("{}{}", fields::MAX, column.name),
                    of(|extremes| extremes.1),
                ));
            }

            all.push(series(column.name, column.values));
        }

        all
    }
}

impl Column {
    fn merge(&mut self, groups: &[usize]) {
        self.extremes.extend(
            self.values[self.extremes.len()..]
                .iter()
                .map(|value| (*value, *value)),
        );
        // f64::min and f64::max pass over NaN.
        merged(&mut self.extremes, groups, |group| {
            group
                .iter()
                .copied()
                .fold((f64::NAN, f64::NAN), |(min, max), (low, high)| {
                    (min.min(low), max.max(high))
                })
        });
        let is_counter = fields::is_counter(&self.name);
        merged(&mut self.values, groups, |group| {
            let mut known = group.iter().copied().filter(|value| !value.is_nan());
            let value = if is_counter {
                known.reduce(|sum, next| sum + next)
            } else {
                known.next_back()
            };
            value.unwrap_or(f64::NAN)
        });
    }
}

fn to_value(group: &impl Serialize) -> Value {
    serde_json::to_value(group).unwrap_or_default()
}

fn merged<T>(values: &mut Vec<T>, groups: &[usize], merge: impl Fn(&[T]) -> T) {
    let mut from = 0;
    *values = groups
        .iter()
        .map(|count| {
            from += count;
            merge(&values[from - count..from])
        })
        .collect();
}

fn times(t0_ns: u64, ends_ns: Vec<u64>) -> Times {
    let step_ns = ends_ns.first().copied().unwrap_or(0).saturating_sub(t0_ns);
    let is_grid = (1..)
        .zip(&ends_ns)
        .all(|(k, end)| step_ns.checked_mul(k).and_then(|at| t0_ns.checked_add(at)) == Some(*end));
    if is_grid {
        Times::Grid { t0_ns, step_ns }
    } else {
        Times::Ends { t0_ns, ends_ns }
    }
}
