//! Adds runs that other programs reported to the history.

use std::collections::HashMap;
use std::fs::File;
use std::path::Path;
use std::time::UNIX_EPOCH;
use std::{fmt, io};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use linerate_model::event::Endpoint;
use linerate_model::outcome::Error;
use linerate_model::path::PathSpec;
use linerate_model::record::{
    Body, Detail, Origin, RunId, RunKind, RunPath, RunRecord, RunState, Session, TestDetail, Trial,
};
use linerate_model::service::Outcome as SessionOutcome;
use linerate_model::{Event, EventSink, Summary};
use linerate_store::{Builder, Label, Place, Saved, Store, keys, text};
use linerate_sys::{clock, file_system};

use super::record::started_at;
use crate::readers::{Contents, Imported, ImportedPath, TEXT_BYTES_MAX, decode, import};

/// Outcome of the import of the reports of one file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileImport {
    /// Whole runs that are added.
    pub new: usize,
    /// Runs that the history has, and repetitions within the file.
    pub known: usize,
    /// Runs that are added and whose report is cut off.
    pub partial: usize,
    /// Lines of no report.
    pub unread_lines: usize,
    /// Reports that are not added, and why.
    pub refused: Vec<String>,
}

impl fmt::Display for FileImport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} new, {} known, {} partial",
            self.new, self.known, self.partial
        )?;
        if self.unread_lines > 0 {
            write!(f, ", {} lines of no report", self.unread_lines)?;
        }

        self.refused
            .iter()
            .try_for_each(|reason| write!(f, "; {reason}"))
    }
}

/// Adds the runs in a file, `-` for the standard input, to the history of `store`, of
/// `LINERATE_STORE`, or of the user. All of them get the labels, also those that the history has.
///
/// # Errors
/// No place for the history, a file that cannot be read, or one without a report.
pub fn import_file(store: Option<&str>, file: &str, labels: &[Label]) -> Result<FileImport, Error> {
    let place = Place::find(store).map_err(Error::failed)?;
    let place =
        place.ok_or_else(|| Error::usage("--store off: there is no history to import into"))?;
    let (contents, written_ms) = contents(file)?;
    let store = Store::open(&place).map_err(Error::failed)?;
    add(&store, &contents, written_ms, labels)
        .map_err(|error| Error::failed(format!("{file}: {error}")))
}

/// The runs in a file, which are not added to a history.
pub(super) fn runs_in(file: &str) -> Result<Vec<RunRecord>, Error> {
    let (contents, written_ms) = contents(file)?;
    records(&contents, written_ms, &|_| None)
        .map_err(|error| Error::failed(format!("{file}: {error}")))
}

/// The reports in a file, and when it was written.
fn contents(file: &str) -> Result<(Contents, u64), Error> {
    let (text, written_ms) =
        read(file).map_err(|error| Error::failed(format!("{file}: {error}")))?;
    let name = Path::new(file)
        .file_name()
        .filter(|_| file != "-")
        .map(|name| name.to_string_lossy());
    let contents = import(name.as_deref(), &text, &utc_offset_s);

    contents
        .map(|contents| (contents, written_ms))
        .map_err(|error| Error::failed(format!("{file}: {error}")))
}

/// The text of a file and when it was written, in ms since 1970.
fn read(file: &str) -> io::Result<(String, u64)> {
    // The standard input, and a file system without times, count as written now.
    let mut written_ms = clock::unix_ms();
    let bytes = if file == "-" {
        file_system::read_all(io::stdin(), TEXT_BYTES_MAX as u64)?
    } else {
        let file = File::open(file)?;
        let modified = file
            .metadata()?
            .modified()
            .ok()
            .and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        written_ms = modified
            .and_then(|time| u64::try_from(time.as_millis()).ok())
            .unwrap_or(written_ms);
        file_system::read_all(file, TEXT_BYTES_MAX as u64)?
    };
    let text = decode(&bytes).map_err(io::Error::other)?;

    Ok((text, written_ms))
}

/// Offset of the local time zone at a local time in seconds since 1970.
fn utc_offset_s(local_s: i64) -> i64 {
    let local = Timestamp::from_second(local_s)
        .ok()
        .map(|time| time.to_zoned(TimeZone::UTC).datetime());
    let zoned = local.and_then(|local| local.to_zoned(TimeZone::system()).ok());
    zoned.map_or(0, |zoned| i64::from(zoned.offset().seconds()))
}

fn add(
    store: &Store,
    contents: &Contents,
    written_ms: u64,
    labels: &[Label],
) -> Result<FileImport, String> {
    let mut counts = FileImport {
        known: contents.repeated,
        unread_lines: contents.unread.len(),
        refused: contents.refused.clone(),
        ..FileImport::default()
    };
    for record in records(contents, written_ms, &|twin| {
        store.imported(twin).ok().flatten()
    })? {
        let saved = store.save(&record).map_err(|error| error.to_string())?;
        let run = match saved {
            Saved::Known(run) => run,
            Saved::New => record.run_id,
        };

        // A run that the history has gets the labels as well.
        if !labels.is_empty() {
            store
                .label(run, labels, &[])
                .map_err(|error| error.to_string())?;
        }

        match saved {
            Saved::Known(_) => counts.known += 1,
            Saved::New if record.state == RunState::Partial => counts.partial += 1,
            Saved::New => counts.new += 1,
        }
    }

    Ok(counts)
}

/// The runs in a text. `stored` finds the run that was imported from the other end's report.
fn records(
    contents: &Contents,
    written_ms: u64,
    stored: &dyn Fn(&str) -> Option<RunId>,
) -> Result<Vec<RunRecord>, String> {
    let mut records = Vec::new();
    for record in &contents.records {
        records.push(text::read(record).map_err(|error| error.to_string())?);
    }

    let id = |test: &Imported| run_id(&test.source_key, test.started_unix_ms.unwrap_or(written_ms));
    let ids: HashMap<&str, RunId> = contents
        .tests
        .iter()
        .map(|test| (test.source_key.as_str(), id(test)))
        .collect();

    for test in &contents.tests {
        let mut record = run(test, written_ms);
        let twin = test.twin_key.as_deref();
        record.links.twin = twin.and_then(|twin| stored(twin).or_else(|| ids.get(twin).copied()));
        records.push(record);
    }

    for path in &contents.paths {
        // Its bounds are those of a record.
        let record = path_run(path, written_ms);
        records.push(text::read(&text::write(&record)).map_err(|error| error.to_string())?);
    }

    Ok(records)
}

/// Equal whenever the report is imported.
fn run_id(source_key: &str, started_unix_ms: u64) -> RunId {
    let hash = keys::sha256(source_key.as_bytes());
    // The 64 digits of SHA-256 are more than an identity takes.
    let byte = |at: usize| u8::from_str_radix(&hash[2 * at..2 * at + 2], 16).unwrap_or(0);
    RunId::new(started_unix_ms, std::array::from_fn(byte))
}

/// Record and totals of the only test in a report that was written now; `None` where the report has
/// none that ended.
pub fn record_of(report: &str) -> Option<(RunRecord, Summary)> {
    let contents = import(None, report, &|_| 0).ok()?;
    let [test] = contents.tests.as_slice() else {
        return None;
    };

    let summary = |event: &Event| {
        if let Event::Summary(summary) = event {
            Some((**summary).clone())
        } else {
            None
        }
    };
    Some((
        run(test, clock::unix_ms()),
        test.events.iter().find_map(summary)?,
    ))
}

/// The record of a test.
fn run(test: &Imported, written_ms: u64) -> RunRecord {
    let mut builder = Builder::default();
    for event in &test.events {
        // A builder takes every event.
        let _ = builder.event(event);
    }

    let mut trial = builder.finish();
    // A report without its end is not one of a test that failed.
    if test.is_partial() && trial.state.has_failed() {
        trial.state = RunState::Partial;
    }

    let (kind, body) = body(test.endpoint, &trial);
    let mut record = head(
        &test.source_key,
        test.started_unix_ms,
        written_ms,
        (kind, body),
        &test.origin,
    );
    record.title = detail(&trial).and_then(|detail| detail.header.spec.title.clone());
    record.path = path(test, kind, &trial);

    with_trial(record, trial)
}

/// The record of a test of a path. Its report does not have the host of the client.
fn path_run(path: &ImportedPath, written_ms: u64) -> RunRecord {
    let test = &path.test;
    let what = (RunKind::Test, Body::Test);

    let mut record = head(
        &path.source_key,
        test.started_unix_ms,
        written_ms,
        what,
        &path.origin,
    );
    record.diagnosis = test.diagnosis.clone().map(Box::new);

    if let Some(share) = test.lost_share {
        record.notes.push(format!(
            "{} reported a packet loss of {:.2} %",
            test.tool,
            share * 100.0
        ));
    }

    let (report, target) = (&test.report, &test.report.target);
    let spec = PathSpec {
        profile: report.profile,
        ..PathSpec::default()
    };
    record.path.server = Some(target.host.clone());
    record.path.key = keys::path_key("", &target.host, &target.family, "");
    record.path.spec_key = keys::spec_key("path", &spec);

    let address = Some(target.address.clone()).filter(|address| !address.is_empty());
    record.path.addresses = address.into_iter().collect();

    let mut trial = Trial::of_path(report);
    trial.elapsed_ns = report.elapsed_ns;
    with_trial(record, trial)
}

/// A record without its trial. Without a time of its own the test started when the file was
/// written.
fn head(
    source_key: &str,
    started_unix_ms: Option<u64>,
    written_ms: u64,
    (kind, body): (RunKind, Body),
    origin: &Origin,
) -> RunRecord {
    let known_ms = started_unix_ms.unwrap_or(written_ms);
    let mut record = RunRecord::new(
        run_id(source_key, known_ms),
        kind,
        body,
        started_at(known_ms),
        known_ms,
    );
    record.origin = origin.clone();

    if started_unix_ms.is_none() {
        record
            .notes
            .push("the report has no time: the start is when its file was written".to_owned());
    }

    record
}

fn with_trial(mut record: RunRecord, trial: Trial) -> RunRecord {
    record.state = trial.state;
    record.reason = trial.reason.clone();
    record.elapsed_ns = trial.elapsed_ns;
    record.trials = vec![trial];
    record
}

fn detail(trial: &Trial) -> Option<&TestDetail> {
    match &trial.detail {
        Some(Detail::Test(detail)) => Some(&**detail),
        _ => None,
    }
}

/// The report of a server is the test of one client.
fn body(endpoint: Endpoint, trial: &Trial) -> (RunKind, Body) {
    let detail = detail(trial).filter(|_| endpoint == Endpoint::Server);
    let Some((detail, stream)) = detail.and_then(|detail| Some((detail, detail.streams.first()?)))
    else {
        return (RunKind::Test, Body::Test);
    };

    let outcome = match &trial.reason {
        Some(reason) => SessionOutcome::Partial {
            reason: reason.clone(),
        },
        None => SessionOutcome::Complete,
    };
    let spec = &detail.header.spec;
    let session = Session {
        number: 0,
        peer: stream.remote,
        user: None,
        transport: spec.transport,
        direction: spec.direction,
        streams: spec.streams,
        ran_beside_max: 0,
        outcome,
    };

    (RunKind::Session, Body::Session(session))
}

fn path(test: &Imported, kind: RunKind, trial: &Trial) -> RunPath {
    let Some(detail) = detail(trial) else {
        return RunPath::default();
    };
    let header = &detail.header;
    let stream = detail.streams.first();
    let here = test.host_name.clone();
    // A report without the name of its host has the address of its first stream.
    let here = here.or_else(|| stream.map(|stream| stream.local.ip().to_string()));
    let peer = Some(header.peer_host.clone()).filter(|host| !host.is_empty());
    let (client, server) = match test.endpoint {
        Endpoint::Client => (here, peer),
        Endpoint::Server => (peer, here),
    };

    let family = stream.map_or("", |stream| {
        if stream.local.is_ipv4() {
            "ipv4"
        } else {
            "ipv6"
        }
    });
    let addresses = stream.map(|stream| match test.endpoint {
        Endpoint::Client => [stream.local, stream.remote],
        Endpoint::Server => [stream.remote, stream.local],
    });
    let name = |host: &Option<String>| host.clone().unwrap_or_default();

    let kind = if kind == RunKind::Session {
        "session"
    } else {
        "test"
    };

    RunPath {
        key: keys::path_key(&name(&client), &name(&server), family, ""),
        spec_key: keys::spec_key(kind, &header.spec),
        client,
        server,
        addresses: addresses
            .into_iter()
            .flatten()
            .map(|address| address.to_string())
            .collect(),
    }
}

#[cfg(test)]
mod tests;
