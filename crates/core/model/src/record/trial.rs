//! A trial: the unit of repetition in a run.

use std::borrow::Cow;
use std::collections::BTreeMap;

use linerate_macros::{sparse, stored};
use serde::{Deserialize, Serialize, Serializer};

use super::{Measure, RunState, Way};
use crate::data_path::DataPath;
use crate::event::{Event, TestHeader};
use crate::fleet;
use crate::http::CellRun;
use crate::measure::of_path;
use crate::path::{PathReport, PathState};
use crate::stream::Stream;
use crate::summary::Summary;

/// One repetition.
#[sparse]
#[stored(Default)]
pub struct Trial {
    /// Its number in the run, from 0.
    pub no: u32,
    /// Which repetition of its factors it is, from 0.
    #[serde(default)]
    pub repeat: u32,
    /// Factor and level: `streams`, `4`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub factors: BTreeMap<String, String>,
    /// It is not compared.
    #[serde(default)]
    pub is_warm_up: bool,
    /// Its end state.
    pub state: RunState,
    /// Why it did not.
    pub reason: Option<String>,
    /// Start in ns since the start of the run.
    pub started_ns: u64,
    /// Time from start to end in ns.
    pub elapsed_ns: u64,
    /// Why its values need care: `unsteady`, `dirty-start`, `generator-late`, `foreign-load`,
    /// `steal`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<String>,
    /// Its measures.
    pub measures: Vec<Measure>,
    /// Its measures over time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<Series>,
    /// Everything else.
    pub detail: Option<Detail>,
}

impl Trial {
    /// A trial that reached its end after this time, without anything measured.
    pub fn complete(elapsed_ns: u64) -> Self {
        Self {
            state: RunState::Complete,
            elapsed_ns,
            ..Self::default()
        }
    }

    /// The trial of an examined path.
    pub fn of_path(report: &PathReport) -> Self {
        let mut trial = Self::complete(report.elapsed_ns);
        if report.state == PathState::Partial {
            trial.state = RunState::Partial;
        }

        trial.measures = of_path(report);
        trial.detail = Some(Detail::Path(Box::new(report.clone())));
        trial
    }
}

/// A figure over time.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(from = "StoredSeries<'static>")]
pub struct Series {
    /// Its name with its unit: `bytes`, `retransmits`, `snd_cwnd_bytes`, `rtt_us`. Of a series
    /// `NAME` that is thinned, `min.NAME` and `max.NAME` are the extremes of the merged neighbours.
    pub name: String,
    /// Its subject.
    pub of: SeriesOf,
    /// Its direction.
    pub way: Way,
    /// When each value was read, in ns since the start of the trial.
    pub times: Times,
    /// One value for each interval; absent was not measured.
    pub values: Vec<Option<f64>>,
    /// Neighbours were merged.
    pub is_thinned: bool,
}

impl Series {
    /// One value for each interval of `times`.
    pub fn new(
        name: impl Into<String>,
        of: SeriesOf,
        way: Way,
        times: Times,
        values: Vec<Option<f64>>,
    ) -> Self {
        Self {
            name: name.into(),
            of,
            way,
            times,
            values,
            is_thinned: false,
        }
    }
}

/// A figure over time. Its values are of intervals that begin at `t0_ns` and have the length
/// `step_ns` or the ends `ends_ns`.
// A flattened or untagged member would be read into a buffer of its own first.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct StoredSeries<'a> {
    /// Its name with its unit: `bytes`, `retransmits`, `snd_cwnd_bytes`, `rtt_us`. Of a series
    /// `NAME` that is thinned, `min.NAME` and `max.NAME` are the extremes of the merged neighbours.
    name: Cow<'a, str>,
    /// Its subject.
    of: Cow<'a, SeriesOf>,
    /// Its direction.
    way: Way,
    /// Start of the first interval in ns since the start of the trial.
    t0_ns: u64,
    /// Length of every interval in ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    step_ns: Option<u64>,
    /// Ends of the intervals in ns since the start of the trial, ascending.
    #[serde(default, skip_serializing_if = "<[u64]>::is_empty")]
    ends_ns: Cow<'a, [u64]>,
    /// One value for each interval; `null` was not measured.
    values: Cow<'a, [Option<f64>]>,
    /// Neighbours were merged.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_thinned: bool,
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Series {
    fn schema_name() -> Cow<'static, str> {
        "Series".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        StoredSeries::json_schema(generator)
    }
}

impl From<StoredSeries<'_>> for Series {
    fn from(stored: StoredSeries<'_>) -> Self {
        let t0_ns = stored.t0_ns;
        let times = match stored.step_ns {
            Some(step_ns) => Times::Grid { t0_ns, step_ns },
            None => Times::Ends {
                t0_ns,
                ends_ns: stored.ends_ns.into_owned(),
            },
        };

        Self {
            name: stored.name.into_owned(),
            of: stored.of.into_owned(),
            way: stored.way,
            times,
            values: stored.values.into_owned(),
            is_thinned: stored.is_thinned,
        }
    }
}

impl Serialize for Series {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let (t0_ns, step_ns, ends_ns) = match &self.times {
            Times::Grid { t0_ns, step_ns } => (*t0_ns, Some(*step_ns), &[][..]),
            Times::Ends { t0_ns, ends_ns } => (*t0_ns, None, &ends_ns[..]),
        };
        let stored = StoredSeries {
            name: Cow::Borrowed(&self.name),
            of: Cow::Borrowed(&self.of),
            way: self.way,
            t0_ns,
            step_ns,
            ends_ns: Cow::Borrowed(ends_ns),
            values: Cow::Borrowed(&self.values),
            is_thinned: self.is_thinned,
        };
        stored.serialize(to)
    }
}

/// Subject of a series.
#[stored(Eq, PartialOrd, Ord, Hash)]
pub enum SeriesOf {
    /// The stream with this number.
    Stream(u32),
    /// All streams of the direction.
    Sum,
    /// The host of this role.
    Host(String),
}

/// Times of the values of a series.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Times {
    /// At equal distances.
    Grid {
        /// Start of the first interval in ns.
        t0_ns: u64,
        /// Length of every interval in ns.
        step_ns: u64,
    },
    /// At these ends, in ns, ascending; the first interval begins at `t0_ns`.
    Ends {
        /// Start of the first interval in ns.
        t0_ns: u64,
        /// Ends of the intervals in ns.
        ends_ns: Vec<u64>,
    },
}

impl Times {
    /// Start and end of an interval in ns; `None` beyond the last one.
    pub fn interval(&self, at: usize) -> Option<(u64, u64)> {
        match self {
            Self::Grid { t0_ns, step_ns } => {
                // The step of a record that was read can have any value.
                let point = |k: u64| step_ns.checked_mul(k)?.checked_add(*t0_ns);
                Some((point(at as u64)?, point(at as u64 + 1)?))
            }
            Self::Ends { t0_ns, ends_ns } => {
                let start_ns = at
                    .checked_sub(1)
                    .map_or(Some(*t0_ns), |before| ends_ns.get(before).copied());
                Some((start_ns?, *ends_ns.get(at)?))
            }
        }
    }
}

/// Everything of a trial that is neither a measure nor a series.
#[stored]
pub enum Detail {
    /// A throughput test.
    Test(Box<TestDetail>),
    /// A run of an HTTP cell.
    Cell(Box<CellRun>),
    /// A test of a path.
    Path(Box<PathReport>),
    /// A test between two hosts of a fleet.
    FleetCell(Box<fleet::Cell>),
}

/// Everything of a throughput test but its intervals, which are series.
#[sparse(Vec)]
#[stored(Default)]
pub struct TestDetail {
    /// Who tested what with whom; of a test that failed before it was agreed, what was planned.
    pub header: TestHeader,
    /// The streams.
    pub streams: Vec<Stream>,
    /// Data paths.
    pub data_paths: Vec<DataPath>,
    /// Counts of each end; absent of a test that failed before its end.
    pub summary: Option<Summary>,
    /// Its events in order; those that are members of the trial by reference.
    pub sequence: Vec<TestStep>,
}

/// One event of a test, or several of a kind.
#[stored]
pub enum TestStep {
    /// The test was agreed: the header.
    Header,
    /// The next stream was opened.
    Stream,
    /// The next data path was chosen.
    DataPath,
    /// The next intervals of the series.
    Intervals {
        /// Their number.
        count: u32,
        /// They belong to the warm-up.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_omitted: bool,
        /// They ended with the test and not at the reporting grid.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_last: bool,
    },
    /// The summary.
    Summary,
    /// Any other event.
    Event(Box<Event>),
    /// Number of events that were not kept because there were too many.
    Dropped(u64),
}
