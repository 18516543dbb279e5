//! The directory of an experiment: its plan, the hosts it ran on, and every run as soon as it
//! ends.

use std::fs::{self, File};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use linerate_history::run::record::{Recording, Run};
use linerate_model::http::{CellRun, RunState as CellState, Study};
use linerate_model::outcome::Error;
use linerate_model::record::{Body, RunKind, RunState};
use linerate_store::keys;
use linerate_sys::file_system;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::spec::{Directory, LabSpec, PLAN_FILE};
use crate::conclude::ceiling::Link;
use crate::conclude::changes::StartRecord;
use crate::conclude::study::Kept;
use crate::conclude::trials;
use crate::plan::Plan;
use crate::plan::cells::PlannedRun;

/// The directory of an experiment.
#[derive(Debug)]
pub(super) struct Record {
    pub path: PathBuf,
}

impl Record {
    /// Makes a new directory, or opens one that holds the beginning of the same experiment.
    ///
    /// # Errors
    /// A directory that is not empty, or of another plan; what cannot be read or written.
    pub(super) fn open(
        directory: &Directory,
        plan: &Plan,
    ) -> Result<(Self, Kept, Option<StartRecord>), Error> {
        match directory {
            Directory::New(path) => Self::create(path.clone().unwrap_or_else(dated_name), plan),
            Directory::Resumed(path) => Self::resume(path, plan),
        }
    }

    fn create(path: PathBuf, plan: &Plan) -> Result<(Self, Kept, Option<StartRecord>), Error> {
        let record = Self { path };
        let cells = record.path.join(CELLS);
        fs::create_dir_all(&cells).map_err(|error| io_failure("make", &cells, &error))?;

        let plan_file = record.path.join(PLAN_FILE);
        if plan_file.exists() {
            return Err(Error::usage(format!(
                "{} holds an experiment already; continue it by --resume, or choose another --out",
                record.path.display()
            )));
        }

        record.write(&plan_file, plan.to_toml().as_bytes())?;
        Ok((record, Kept::default(), None))
    }

    fn resume(path: &Path, plan: &Plan) -> Result<(Self, Kept, Option<StartRecord>), Error> {
        let record = Self {
            path: path.to_path_buf(),
        };
        let plan_file = path.join(PLAN_FILE);
        let text = read(&plan_file)?;
        let kept = Plan::parse(&text)
            .map_err(|error| Error::usage(format!("{}: {error}", plan_file.display())))?;
        if kept.hash() != plan.hash() {
            return Err(Error::usage(format!(
                "{} is of another plan; the runs of two plans do not make one experiment",
                path.display()
            )));
        }

        let mut found = Kept {
            baseline: record.read_json(BASELINE)?.unwrap_or_default(),
            ..Kept::default()
        };
        let cells = path.join(CELLS);
        let entries = fs::read_dir(&cells).map_err(|error| io_failure("read", &cells, &error))?;
        for entry in entries.flatten() {
            let name = entry.file_name();
            // A file that was incomplete when the program ended has another name.
            if name.to_string_lossy().ends_with(".json") {
                found.runs.push(parse(&entry.path())?);
            }
        }

        // Aborted and skipped runs are made again.
        found.runs.retain(|run| run.state == CellState::Done);
        // readdir(3) returns names in no particular order.
        found.runs.sort_by_key(|run| run.started_unix_ms);
        let start = record.read_json(START)?;
        Ok((record, found, start))
    }

    pub(super) fn keep_run(&self, planned: &PlannedRun, run: &CellRun) -> Result<(), Error> {
        self.write_json(&format!("{CELLS}/{}", planned.file_name()), run)
    }

    pub(super) fn write_json(&self, name: &str, value: &impl Serialize) -> Result<(), Error> {
        // Only one type is indented, so that no other is compiled for it.
        let plain = serde_json::to_string(value).map_err(Error::failed)?;
        let value: Value = serde_json::from_str(&plain).map_err(Error::failed)?;
        let bytes = serde_json::to_vec_pretty(&value).map_err(Error::failed)?;
        self.write(&self.path.join(name), &bytes)
    }

    /// Under another name first, and to the disk before it gets its own: whatever ends this
    /// program, a file that is there is whole.
    pub(super) fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), Error> {
        let unfinished = path.with_extension("part");
        let write = || -> io::Result<()> {
            let mut file = File::create(&unfinished)?;
            file.write_all(bytes)?;
            file.sync_all()?;
            fs::rename(&unfinished, path)
        };
        write().map_err(|error| io_failure("write", path, &error))
    }

    fn read_json<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, Error> {
        let path = self.path.join(name);
        if path.exists() {
            parse(&path).map(Some)
        } else {
            Ok(None)
        }
    }
}

fn parse<T: DeserializeOwned>(path: &Path) -> Result<T, Error> {
    serde_json::from_str(&read(path)?)
        .map_err(|error| Error::usage(format!("{}: {error}", path.display())))
}

fn read(path: &Path) -> Result<String, Error> {
    file_system::read_text(path, FILE_MAX_BYTES).map_err(|error| io_failure("read", path, &error))
}

fn io_failure(what: &str, path: &Path, error: &io::Error) -> Error {
    Error::failed(format!(
        "cannot {what} {}: {}",
        path.display(),
        linerate_sys::error::io_text(error)
    ))
}

fn dated_name() -> PathBuf {
    let now = jiff::Zoned::now();
    PathBuf::from(format!("linerate-http-{}", now.strftime("%Y%m%d-%H%M%S")))
}

const CELLS: &str = "cells";
pub(super) const START: &str = "env.json";
pub(super) const BASELINE: &str = "baseline.json";
pub(super) const STUDY: &str = "run.json";
const FILE_MAX_BYTES: u64 = 64 << 20;

/// The history's record of an experiment while it runs.
pub(super) struct HistoryRecord {
    recording: Recording,
}

impl HistoryRecord {
    /// The experiment begins; `None` where it is not recorded.
    pub(super) fn begin(spec: &LabSpec, server: SocketAddr) -> Option<Self> {
        spec.record.place.as_ref()?;
        let plan = Plan {
            target: None,
            ..spec.plan.clone()
        };

        let spec_key = keys::spec_key("http-lab", &(plan.to_toml(), format!("{:?}", spec.phases)));
        let run = Run {
            server: Some(spec.target.host.clone()),
            peer: Some(server),
            ..Run::new(RunKind::HttpLab, Body::HttpLab(None), spec_key)
        };
        Some(Self {
            recording: Recording::begin(spec.record.clone(), run),
        })
    }

    /// A run has ended, or was made before the experiment was resumed.
    pub(super) fn add(&mut self, run: &CellRun, link: Option<&Link>) {
        // One that was made before begins with the record.
        let ms = run
            .started_unix_ms
            .saturating_sub(self.recording.started_unix_ms());
        let mut trial = trials::trial(run, link);
        trial.started_ns = ms * 1_000_000;
        self.recording.add(trial);
    }

    /// The experiment ended. Returns what the user should know about the record.
    pub(super) fn finish(
        self,
        outcome: &Result<Study, Error>,
        is_server_gone: bool,
    ) -> Option<String> {
        let (state, reason, body) = match outcome {
            Err(error) => {
                let reason = error.to_string();
                (RunState::of_failure(&reason), Some(reason), None)
            }
            Ok(study) => {
                let (state, reason) = match study.is_complete {
                    _ if is_server_gone => {
                        (RunState::Partial, Some("the server was gone".to_owned()))
                    }
                    false => (RunState::Interrupted, Some("interrupted".to_owned())),
                    true => (RunState::Complete, None),
                };
                (
                    state,
                    reason,
                    Some(Box::new(trials::without_runs(study.clone()))),
                )
            }
        };
        self.recording
            .finish(state, reason, Body::HttpLab(body))
            .message
    }
}
