//! Series of a trial on one time axis: of each stream, and summed over the streams of a direction.

use linerate_model::record::{Detail, Series, SeriesOf, Trial, Way};

use crate::chart::STRETCHES_MAX;

/// A part of the time of each trial, in ns since its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeRange {
    /// From here.
    pub from_ns: u64,
    /// To here.
    pub to_ns: u64,
}

impl Default for TimeRange {
    fn default() -> Self {
        Self {
            from_ns: 0,
            to_ns: u64::MAX,
        }
    }
}

/// One value of an interval of a trial.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Value {
    pub from_ns: u64,
    pub to_ns: u64,
    pub value: f64,
}

impl Value {
    /// Where it is drawn: at the end of the interval.
    pub(super) fn at_s(&self) -> f64 {
        self.to_ns as f64 / 1e9
    }

    /// The value per second.
    pub(super) fn per_s(&self) -> f64 {
        // An interval of a record that was read can have no length.
        self.value / (self.to_ns.saturating_sub(self.from_ns).max(1) as f64 / 1e9)
    }
}

/// The intervals of a series within a stretch of time, without those that have no value.
pub(super) fn values(series: &Series, stretch: TimeRange) -> Vec<Value> {
    let known = series.values.iter().enumerate().filter_map(|(at, value)| {
        let (from_ns, to_ns) = series.times.interval(at)?;
        Some(Value {
            from_ns,
            to_ns,
            value: (*value)?,
        })
    });

    known
        .filter(|value| value.from_ns >= stretch.from_ns && value.to_ns <= stretch.to_ns)
        .collect()
}

/// The streams of a direction that have a series of this name.
pub(super) fn streams(
    trial: &Trial,
    name: &str,
    way: Way,
    stretch: TimeRange,
) -> Vec<(u32, Vec<Value>)> {
    let stream = |series: &Series| match series.of {
        SeriesOf::Stream(number) if series.name == name && series.way == way => Some(number),
        _ => None,
    };
    let found = trial
        .series
        .iter()
        .filter_map(|series| Some((stream(series)?, values(series, stretch))));
    found.filter(|(_, values)| !values.is_empty()).collect()
}

/// The sum of all streams of a direction; an interval in which one of them has no value has none.
pub(super) fn sum(trial: &Trial, name: &str, way: Way, stretch: TimeRange) -> Vec<Value> {
    let is_sum =
        |series: &&Series| series.name == name && series.way == way && series.of == SeriesOf::Sum;
    // A sum that was recorded is exact: streams can be missing in an interval.
    if let Some(series) = trial.series.iter().find(is_sum) {
        return values(series, stretch);
    }

    let streams = streams(trial, name, way, stretch);
    let all = by_interval(&streams)
        .into_iter()
        .filter(|values| values.len() == streams.len());

    let total = |values: Vec<Value>| {
        let add = |sum: Value, value: Value| Value {
            from_ns: sum.from_ns.min(value.from_ns),
            to_ns: sum.to_ns.max(value.to_ns),
            value: sum.value + value.value,
        };
        values.into_iter().reduce(add)
    };
    all.filter_map(total).collect()
}

/// The values of streams by interval. The last interval of each stream ends with the stream, so
/// ends belong together that are at most half an interval apart.
pub(super) fn by_interval(streams: &[(u32, Vec<Value>)]) -> Vec<Vec<Value>> {
    let mut values: Vec<Value> = streams
        .iter()
        .flat_map(|(_, values)| values.iter().copied())
        .collect();
    // In the order of their ends, those of one interval are adjacent.
    values.sort_by_key(|value| value.to_ns);
    let mut intervals: Vec<Vec<Value>> = Vec::new();

    for value in values {
        let half_ns = value.to_ns.saturating_sub(value.from_ns) / 2;
        let is_near = |first: &Value| value.to_ns.saturating_sub(first.to_ns) <= half_ns;

        match intervals.last_mut() {
            Some(interval) if interval.first().is_some_and(is_near) => interval.push(value),
            _ => intervals.push(vec![value]),
        }
    }

    intervals
}

/// Neighbours added up, so that at most [`STRETCHES_MAX`] are left.
pub(super) fn merged(values: &[Value]) -> Vec<Value> {
    let add = |chunk: &[Value]| Value {
        // Chunks are never empty.
        from_ns: chunk[0].from_ns,
        to_ns: chunk[chunk.len() - 1].to_ns,
        value: chunk.iter().map(|value| value.value).sum(),
    };
    values
        .chunks(values.len().div_ceil(STRETCHES_MAX).max(1))
        .map(add)
        .collect()
}

/// Length of the warm-up of a trial in ns.
pub(super) fn warm_up_ns(trial: &Trial) -> u64 {
    match &trial.detail {
        Some(Detail::Test(detail)) => {
            u64::try_from(detail.header.spec.omit.as_nanos()).unwrap_or(u64::MAX)
        }
        _ => 0,
    }
}
