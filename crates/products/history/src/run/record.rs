//! Records of the runs of this process: made beside the reports, written to the history.
//!
//! A run never waits for its record, and what goes wrong with one is a line for the user and
//! nothing more.

mod sessions;

use std::collections::BTreeMap;
use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::time::Instant;

use jiff::Timestamp;
use linerate_host::{Request, collect};
use linerate_model::event::TestHeader;
use linerate_model::finding::Diagnosis;
use linerate_model::outcome::{Error, Outcome};
use linerate_model::printable::printable_json;
use linerate_model::record::{Body, Detail, HostPart, RunId, RunKind, RunRecord, RunState, Trial};
use linerate_model::snapshot::Snapshot;
use linerate_model::spec::ClientSpec;
use linerate_model::{Event, EventSink, SinkError};
use linerate_store::{Builder, Place, Recorder, Trials, keys, parse_label, scrubbed, text};
use linerate_sys::{clock, interfaces, process, random};

pub use sessions::SessionRecords;

/// Labels that a run may have.
const LABELS_MAX: usize = 64;

/// Labels of a run.
pub type Labels = BTreeMap<String, String>;

/// Where a record goes, and what the user adds to it. The default is a record that is only
/// returned.
#[derive(Debug, Clone, Default)]
pub struct RecordOptions {
    /// The history; `None` for a record that is only printed.
    pub place: Option<Place>,
    /// Title of the run.
    pub title: Option<String>,
    /// Labels of the run.
    pub labels: Labels,
}

impl RecordOptions {
    /// A record in the history of `store`, of `LINERATE_STORE`, or of the user; in none where that
    /// is `off`.
    ///
    /// # Errors
    /// A place that is none.
    pub fn new(store: Option<&str>, title: Option<String>, labels: Labels) -> Result<Self, Error> {
        Ok(Self {
            place: Place::find(store).map_err(Error::failed)?,
            title,
            labels,
        })
    }
}

/// Labels as typed: `key=value,key=value`, or nothing.
///
/// # Errors
/// The first one that is none, or too many.
pub fn labels(typed: &str) -> Result<Labels, Error> {
    // An empty text and a comma at the end add no label.
    let texts: Vec<&str> = typed.split(',').filter(|text| !text.is_empty()).collect();
    if texts.len() > LABELS_MAX {
        return Err(Error::usage(format!(
            "{} labels: a run has at most {LABELS_MAX}",
            texts.len()
        )));
    }

    let parsed = texts
        .into_iter()
        .map(|text| parse_label(text).map(|label| (label.key, label.value)));
    parsed.collect::<Result<_, _>>().map_err(Error::usage)
}

/// A record as `--json` prints it.
pub fn json(record: &RunRecord) -> String {
    printable_json(&text::write(record)) + "\n"
}

/// A run that is recorded.
#[derive(Debug, Clone)]
pub struct Run {
    /// Kind of the run.
    pub kind: RunKind,
    /// Part of the record that only this kind has.
    pub body: Body,
    /// The server as the user named it.
    pub server: Option<String>,
    /// Key of what is measured.
    pub spec_key: String,
    /// Address of the server, where no trial names it.
    pub peer: Option<SocketAddr>,
}

impl Run {
    /// A run of the kind of `body`; runs with the same `spec_key` are comparable.
    pub fn new(kind: RunKind, body: Body, spec_key: impl Into<String>) -> Self {
        Self {
            kind,
            body,
            server: None,
            spec_key: spec_key.into(),
            peer: None,
        }
    }
}

/// A run that is being recorded.
#[derive(Debug)]
pub struct Recording {
    record: RunRecord,
    /// `None` for a record that is only printed.
    recorder: Option<Recorder>,
    started: Instant,
    peer: Option<SocketAddr>,
    /// This host, where it was read for the run itself.
    snapshot: Option<Snapshot>,
}

/// The record of a run that ended.
#[derive(Debug)]
pub struct Recorded {
    /// The record.
    pub record: RunRecord,
    /// Message for the user about its place in the history.
    pub message: Option<String>,
}

impl Recording {
    /// The run begins.
    pub fn begin(options: RecordOptions, run: Run) -> Self {
        let mut record = head(run.kind, run.body, options.title, options.labels);
        record.path.server = run.server;
        record.path.spec_key = run.spec_key;
        record.path.client = Some(process::uname().node);

        let recorder = options.place.map(Recorder::new);
        if let Some(recorder) = &recorder {
            // Written at once: a run whose process ends early is in the history as `ended`.
            recorder.begin(record.clone());
        }

        Self {
            record,
            recorder,
            started: Instant::now(),
            peer: run.peer,
            snapshot: None,
        }
    }

    /// Time since the run began in ns.
    pub fn elapsed_ns(&self) -> u64 {
        clock::as_ns(self.started.elapsed())
    }

    /// Start in ms since 1970.
    pub fn started_unix_ms(&self) -> u64 {
        self.record.started_unix_ms
    }

    /// Identity of the run.
    pub fn run_id(&self) -> RunId {
        self.record.run_id
    }

    /// Adds a trial.
    pub fn add(&mut self, mut trial: Trial) {
        let no = u32::try_from(self.record.trials.len()).unwrap_or(u32::MAX);
        trial.no = no;
        self.record.trials.push(trial.clone());
        self.pass_on(vec![trial]);
    }

    /// Passes trials on to the history, so that they survive a crash. They are not kept here:
    /// [`Self::finish_with`] has them.
    pub fn pass_on(&self, trials: Vec<Trial>) {
        if let Some(recorder) = &self.recorder {
            recorder.add_trials(self.record.run_id, trials);
        }
    }

    /// The record goes to a history.
    pub fn has_history(&self) -> bool {
        self.recorder.is_some()
    }

    /// Part of the record that only this kind of run has.
    pub fn body_mut(&mut self) -> &mut Body {
        &mut self.record.body
    }

    /// The run continues an earlier one.
    pub fn follow(&mut self, earlier: RunId) {
        self.record.links.parent = Some(earlier);
    }

    /// Sets the hosts of a run with more of them than a client and a server, and the name of the
    /// path between them.
    pub fn between(&mut self, hosts: Vec<HostPart>, path: &str) {
        let server = self.record.path.server.as_deref().unwrap_or_default();
        self.record.path.key = keys::path_key(&host_key().unwrap_or_default(), server, "", path);
        self.record.hosts = hosts;
    }

    /// Adds what a reader should know, one sentence each.
    pub fn note(&mut self, notes: impl IntoIterator<Item = String>) {
        self.record.notes.extend(notes);
    }

    /// Adds what was concluded, and this host as it was read for that.
    pub fn diagnosed(&mut self, diagnosis: Diagnosis, snapshot: Option<Snapshot>) {
        self.record.diagnosis = Some(Box::new(diagnosis));
        self.snapshot = snapshot;
    }

    /// The run ended with the state of its only trial, which ends now.
    #[must_use]
    pub fn finish_trial(mut self, mut trial: Trial) -> Recorded {
        let state = trial.state;
        let reason = trial.reason.clone();
        let body = self.record.body.clone();
        trial.started_ns = self.elapsed_ns().saturating_sub(trial.elapsed_ns);
        self.add(trial);
        self.finish(state, reason, body)
    }

    /// As [`Self::finish`], with trials that are not kept here. What the user should know about its
    /// place in the history.
    pub fn finish_with(
        self,
        state: RunState,
        reason: Option<String>,
        trials: Trials,
    ) -> Option<String> {
        let elapsed_ns = self.elapsed_ns();
        let recorder = self.recorder?;
        let mut record = self.record;
        record.state = state;
        record.reason = reason;
        record.elapsed_ns = elapsed_ns;
        recorder.finish_with(record, trials);

        recorder.close().message()
    }

    /// The run ended with an error.
    #[must_use]
    pub fn fail(self, error: &Error) -> Recorded {
        let reason = error.to_string();
        let state = match error.outcome {
            Outcome::Interrupted => RunState::Interrupted,
            // Trials before the failure are results.
            _ if !self.record.trials.is_empty() => RunState::Partial,
            _ => RunState::of_failure(&reason),
        };

        let body = self.record.body.clone();
        self.finish(state, Some(reason), body)
    }

    /// The run ended, and this was found.
    #[must_use]
    pub fn finish(mut self, state: RunState, reason: Option<String>, body: Body) -> Recorded {
        self.record.elapsed_ns = self.elapsed_ns();
        self.record.state = state;
        self.record.reason = reason;
        self.record.body = body;

        // A run that named its hosts has its path already.
        if self.record.hosts.is_empty() {
            describe_path(&mut self.record, self.peer, self.snapshot);
        }

        let message = self.recorder.and_then(|recorder| {
            recorder.finish(self.record.clone());
            recorder.close().message()
        });
        Recorded {
            record: self.record,
            message,
        }
    }
}

/// A test of a client that is being recorded; takes its events.
#[derive(Debug)]
pub struct TestRecording {
    recording: Recording,
    builder: Builder,
}

impl TestRecording {
    /// The test begins.
    pub fn begin(options: RecordOptions, spec: &ClientSpec) -> Self {
        let run = Run {
            kind: RunKind::Test,
            body: Body::Test,
            server: Some(spec.host.clone()),
            spec_key: keys::spec_key("test", &spec.test),
            peer: None,
        };
        let recording = Recording::begin(options, run);
        let planned = TestHeader {
            peer_host: spec.host.clone(),
            peer_port: spec.local.port,
            started_at_unix_ms: recording.record.started_unix_ms,
            spec: spec.test.clone(),
            ..TestHeader::default()
        };

        Self {
            recording,
            builder: Builder::new(planned),
        }
    }

    /// The test ended, by the user if `is_interrupted`, with the diagnosis of a test that was
    /// observed.
    #[must_use]
    pub fn finish(mut self, is_interrupted: bool, diagnosis: Option<Diagnosis>) -> Recorded {
        let mut trial = self.builder.finish();
        if is_interrupted {
            trial.state = RunState::Interrupted;
        }

        if let Some(diagnosis) = diagnosis {
            self.recording.diagnosed(diagnosis, None);
        }

        self.recording.finish_trial(trial)
    }
}

impl EventSink for TestRecording {
    fn event(&mut self, event: &Event) -> Result<(), SinkError> {
        self.builder.event(event)
    }
}

/// A time in ms since 1970.
pub(super) fn timestamp(unix_ms: u64) -> Timestamp {
    i64::try_from(unix_ms)
        .ok()
        .and_then(|ms| Timestamp::from_millisecond(ms).ok())
        .unwrap_or_default()
}

/// A time as ms since 1970.
pub(super) fn unix_ms(time: Timestamp) -> u64 {
    u64::try_from(time.as_millisecond()).unwrap_or(0)
}

/// The start of a run as its record has it.
pub(super) fn started_at(unix_ms: u64) -> String {
    format!("{:.3}", timestamp(unix_ms))
}

/// A record of a run that begins now.
pub fn head(kind: RunKind, body: Body, title: Option<String>, labels: Labels) -> RunRecord {
    let unix_ms = clock::unix_ms();
    let argv: Vec<String> = std::env::args_os()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let mut record = RunRecord::new(
        RunId::new(unix_ms, random::bytes()),
        kind,
        body,
        started_at(unix_ms),
        unix_ms,
    );
    record.title = title;
    record.origin.tool = "linerate".to_owned();
    record.origin.version = Some(env!("CARGO_PKG_VERSION").to_owned());
    // A command line can contain passwords and tokens, which a record must not.
    record.origin.argv = scrubbed(&argv);
    record.labels = labels;

    record
}

/// Key of what a test measured. That of an examined path is known before: its profile and options
/// are no part of the report.
fn spec_key_of(trial: &Trial) -> String {
    match &trial.detail {
        Some(Detail::Test(detail)) => keys::spec_key("test", &detail.header.spec),
        _ => String::new(),
    }
}

fn title_of(trial: &Trial) -> Option<String> {
    match &trial.detail {
        Some(Detail::Test(detail)) => detail.header.spec.title.clone(),
        _ => None,
    }
}

/// Adds this host and the addresses of the data.
fn describe_path(record: &mut RunRecord, peer: Option<SocketAddr>, known: Option<Snapshot>) {
    let details = || {
        record
            .trials
            .iter()
            .filter_map(|trial| trial.detail.as_ref())
    };
    let stream = details().find_map(stream_addresses);
    // The data's address comes first: the control connection may take another path.
    let remote = stream
        .map(|(_, remote)| remote)
        .or_else(|| details().find_map(server_address))
        .or(peer);
    let request = Request {
        peer: remote.map(|remote| remote.ip()),
        ..Request::default()
    };
    let snapshot = known.unwrap_or_else(|| collect(&request));
    let device = snapshot
        .value("route.peer.dev")
        .map(ToString::to_string)
        .unwrap_or_default();

    let name = snapshot.host.clone();
    let role = if record.kind == RunKind::Doctor {
        "here"
    } else {
        "client"
    };
    let host = HostPart {
        host_key: host_key(),
        facts_key: Some(keys::facts_key(&snapshot)),
        is_same_host: match stream {
            Some((local, remote)) => local.ip() == remote.ip(),
            // Without a stream, an address of this host shows a path that stays in it.
            None => remote.is_some_and(|remote| interfaces::is_local(remote.ip())),
        },
        snapshot: Some(Box::new(snapshot)),
        ..HostPart::new(role, name)
    };

    let server = record.path.server.clone().unwrap_or_default();
    record.path.key = path_key(&host, &server, remote, &device);
    let ends = stream.map(|(local, _)| local).into_iter().chain(remote);
    record.path.addresses = ends.map(|end| end.to_string()).collect();
    record.hosts = vec![host];
}

/// Local and remote address of the first stream.
fn stream_addresses(detail: &Detail) -> Option<(SocketAddr, SocketAddr)> {
    match detail {
        Detail::Test(test) => test
            .streams
            .first()
            .map(|stream| (stream.local, stream.remote)),
        Detail::Path(report) => {
            let mut streams = report.phases.iter().flat_map(|phase| &phase.stream_info);
            streams.find_map(|stream| Some((stream.local?, stream.remote?)))
        }
        _ => None,
    }
}

/// Address of the server of an examined path, which may have had no load.
fn server_address(detail: &Detail) -> Option<SocketAddr> {
    match detail {
        Detail::Path(report) => Some(SocketAddr::new(
            report.target.address.parse().ok()?,
            report.target.port,
        )),
        _ => None,
    }
}

fn path_key(client: &HostPart, server: &str, remote: Option<SocketAddr>, device: &str) -> String {
    let family = match remote.map(|remote| remote.ip()) {
        Some(IpAddr::V4(_)) => "ipv4",
        Some(IpAddr::V6(_)) => "ipv6",
        None => "",
    };
    keys::path_key(
        client.host_key.as_deref().unwrap_or(&client.name),
        server,
        family,
        device,
    )
}

/// Key of this host, made of its `/etc/machine-id`; `None` where the file is missing or empty.
pub fn host_key() -> Option<String> {
    fs::read_to_string("/etc/machine-id")
        .ok()
        .filter(|id| !id.trim().is_empty())
        // The id is confidential and is published as a hash alone (machine-id(5)).
        .map(|id| keys::host_key(&id))
}
