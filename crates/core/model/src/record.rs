//! The record of a run: what one command line produced, in the form `linerate.run/1`.
//!
//! A run consists of trials, the unit of repetition. A trial has measures, each one figure, and
//! series, each a measure over time. Absent means not available.

mod host;
mod measure;
mod primary;
mod row;
mod run_id;
mod trial;

use std::collections::BTreeMap;
use std::net::SocketAddr;

use linerate_macros::{sparse, stored};

pub use host::{HostPart, Import, Origin, RunPath};
pub use measure::{Measure, Way};
pub use primary::{PRIMARY, PrimaryMeasure};
pub use row::RunRow;
pub use run_id::{RunId, RunIdError};
pub use trial::{Detail, Series, SeriesOf, TestDetail, TestStep, Times, Trial};

use crate::finding::{Diagnosis, Finding};
use crate::fleet::FleetRun;
use crate::http::{CellVerdict, Study};
use crate::measure::MeasureName;
use crate::service::Outcome;
use crate::spec::{Direction, Transport};
use crate::sweep::Sweep;

/// Schema name of a [`RunRecord`].
pub const RUN_SCHEMA: &str = "linerate.run/1";

/// Results of one command line.
#[sparse]
#[stored]
pub struct RunRecord {
    /// Always [`RUN_SCHEMA`].
    pub schema: String,
    /// Identity of the run.
    pub run_id: RunId,
    /// Kind of run.
    pub kind: RunKind,
    /// Its end state.
    pub state: RunState,
    /// Why it did not.
    pub reason: Option<String>,
    /// Title given by the user.
    pub title: Option<String>,
    /// Start, RFC 3339 with milliseconds, UTC.
    pub started_at: String,
    /// The same in ms since 1970.
    pub started_unix_ms: u64,
    /// Time from start to end in ns.
    pub elapsed_ns: u64,
    /// Which program made it.
    pub origin: Origin,
    /// Between which hosts.
    pub path: RunPath,
    /// Facts of these hosts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostPart>,
    /// The repetitions, in the order of their starts.
    pub trials: Vec<Trial>,
    /// Data of this kind of run only.
    pub body: Body,
    /// Its limit.
    pub diagnosis: Option<Box<Diagnosis>>,
    /// Remarks for readers, one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Labels given by the user. Stores keep them apart from the record, which never changes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Other runs it belongs to.
    #[serde(default, skip_serializing_if = "Links::is_empty")]
    pub links: Links,
}

impl RunRecord {
    /// The same record without trials and labels, which a store keeps apart.
    pub fn without_trials_and_labels(&self) -> Self {
        Self {
            schema: self.schema.clone(),
            run_id: self.run_id,
            kind: self.kind,
            state: self.state,
            reason: self.reason.clone(),
            title: self.title.clone(),
            started_at: self.started_at.clone(),
            started_unix_ms: self.started_unix_ms,
            elapsed_ns: self.elapsed_ns,
            origin: self.origin.clone(),
            path: self.path.clone(),
            hosts: self.hosts.clone(),
            trials: Vec::new(),
            body: self.body.clone(),
            diagnosis: self.diagnosis.clone(),
            notes: self.notes.clone(),
            labels: BTreeMap::new(),
            links: self.links.clone(),
        }
    }

    /// A run that begins, of an unknown program between unknown hosts. `started_at` and
    /// `started_unix_ms` are the same time.
    pub fn new(
        run_id: RunId,
        kind: RunKind,
        body: Body,
        started_at: String,
        started_unix_ms: u64,
    ) -> Self {
        Self {
            schema: RUN_SCHEMA.to_owned(),
            run_id,
            kind,
            state: RunState::Running,
            reason: None,
            title: None,
            started_at,
            started_unix_ms,
            elapsed_ns: 0,
            origin: Origin::default(),
            path: RunPath::default(),
            hosts: Vec::new(),
            trials: Vec::new(),
            body,
            diagnosis: None,
            notes: Vec::new(),
            labels: BTreeMap::new(),
            links: Links::default(),
        }
    }

    /// Findings of the diagnosis and of a fleet.
    pub fn findings(&self) -> impl Iterator<Item = &Finding> {
        let of_fleet = match &self.body {
            Body::Fleet(run) => run.report.as_deref(),
            _ => None,
        };
        let of_fleet = of_fleet.into_iter().flat_map(|report| &report.findings);
        self.diagnosis
            .iter()
            .flat_map(|diagnosis| &diagnosis.findings)
            .chain(of_fleet)
    }

    /// The measure that represents the run in lists, and its median over the complete trials:
    /// received bits per second of a test, successful responses per second of a load. `None` where
    /// no trial has it.
    pub fn primary(&self) -> Option<(MeasureName, f64)> {
        let mut primary = PrimaryMeasure::default();
        self.trials.iter().for_each(|trial| primary.add(trial));
        primary.median()
    }
}

/// Kind of a run.
#[stored(Copy, Eq, PartialOrd, Ord, Hash)]
#[serde(rename_all = "kebab-case")]
pub enum RunKind {
    /// A throughput test of a client.
    Test,
    /// A comparison of settings.
    Sweep,
    /// One HTTP load.
    HttpLoad,
    /// An HTTP experiment of many cells.
    HttpLab,
    /// A diagnosis of a host.
    Doctor,
    /// One test of a server.
    Session,
    /// Tests between the hosts of a fleet.
    Fleet,
}

/// End state of a run.
#[stored(Copy, Default, Eq, PartialOrd, Ord, Hash)]
#[serde(rename_all = "kebab-case")]
pub enum RunState {
    /// All of it.
    Complete,
    /// A part of it; the values are those of this part.
    Partial,
    /// It failed; there are no values.
    Failed,
    /// The server refused it; there are no values.
    Refused,
    /// The server did not answer; there are no values.
    NoAnswer,
    /// The user ended it.
    Interrupted,
    /// Its process ended without a result.
    #[serde(alias = "crashed")]
    Ended,
    /// It is not over.
    #[default]
    Running,
}

impl RunState {
    /// The state of a run without values, by the reason of its end.
    pub fn of_failure(reason: &str) -> Self {
        const REFUSED: [&str; 4] = ["refused", "refuses", "server is busy", "access denied"];

        const NO_ANSWER: [&str; 4] = [
            "timed out",
            "no route to host",
            "unreachable",
            "does not answer",
        ];

        // Programs and systems write these words with and without capitals.
        let reason = reason.to_ascii_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| reason.contains(word));

        match () {
            () if has(&REFUSED) => Self::Refused,
            () if has(&NO_ANSWER) => Self::NoAnswer,
            () => Self::Failed,
        }
    }

    /// Its name in a text for people.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Partial => "partial",
            Self::Failed => "failed",
            Self::Refused => "refused",
            Self::NoAnswer => "no answer",
            Self::Interrupted => "interrupted",
            Self::Ended => "ended",
            Self::Running => "running",
        }
    }

    /// True if it ended without values.
    pub const fn has_failed(self) -> bool {
        matches!(self, Self::Failed | Self::Refused | Self::NoAnswer)
    }
}

/// Data of one kind of run only.
#[stored]
#[serde(rename_all = "kebab-case")]
pub enum Body {
    /// All data of a test are in its trials.
    Test,
    /// Result of a sweep; absent of one that did not end. Its runs are trials, their settings the
    /// factors of these.
    Sweep(Option<Box<Sweep>>),
    /// A load. Its measurements are in its trial.
    HttpLoad(HttpLoad),
    /// An experiment without the runs of its cells, which are trials; absent of one that did not
    /// end.
    HttpLab(Option<Box<Study>>),
    /// All data of a diagnosis are in the hosts and in the diagnosis.
    Doctor,
    /// A test of a server.
    Session(Session),
    /// Tests between the hosts of a fleet.
    Fleet(Box<FleetRun>),
}

/// Load on a server, and its limit.
#[stored]
pub struct HttpLoad {
    /// The URL without secrets.
    pub target: String,
    /// Limit of the load; absent where that is not judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Box<CellVerdict>>,
}

/// Facts of a test that a server has.
#[stored]
pub struct Session {
    /// Number of the test since the server started.
    pub number: u64,
    /// Address of the client.
    pub peer: SocketAddr,
    /// User who logged in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Transport of the data.
    pub transport: Transport,
    /// Who sent, seen from the client.
    pub direction: Direction,
    /// Streams per direction.
    pub streams: u32,
    /// Most tests of the server at the same time, this one not counted.
    pub ran_beside_max: u32,
    /// Its end state.
    pub outcome: Outcome,
}

/// Other runs a run belongs to.
#[sparse]
#[stored(Default, Eq)]
pub struct Links {
    /// Name of the watch that started it.
    pub watch: Option<String>,
    /// The run it is a part of, or whose finished trials it has taken over.
    pub parent: Option<RunId>,
    /// The record of the same test by the other end.
    pub twin: Option<RunId>,
}

impl Links {
    /// True if it belongs to no other run.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
