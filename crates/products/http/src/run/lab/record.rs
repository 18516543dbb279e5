//! The directory of an experiment: its plan, the hosts it ran on, and every run as soon as it
//! ends.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use linerate_model::http::{Baseline, CellRun, RunState};
use linerate_model::outcome::Error;
use linerate_sys::file_system;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::spec::{Directory, PLAN_FILE};
use crate::conclude::start_record::StartRecord;
use crate::conclude::study::Kept;
use crate::plan::Plan;
use crate::plan::cells::PlannedRun;

/// The directory of an experiment.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) path: PathBuf,
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
        found.runs.retain(|run| run.state == RunState::Done);
        // readdir(3) returns names in no particular order.
        found.runs.sort_by_key(|run| run.started_unix_ms);
        let start = record.read_json(START)?;
        Ok((record, found, start))
    }

    pub(super) fn keep_start(&self, start: &StartRecord) -> Result<(), Error> {
        self.write_json(START, start)
    }

    pub(super) fn keep_baseline(&self, baseline: &[Baseline]) -> Result<(), Error> {
        self.write_json(BASELINE, &baseline)
    }

    pub(super) fn keep_run(&self, planned: &PlannedRun, run: &CellRun) -> Result<(), Error> {
        self.write_json(&format!("{CELLS}/{}", planned.file_name()), run)
    }

    /// The whole, judged, as it is reported.
    pub(super) fn keep_study(&self, json: &str) -> Result<(), Error> {
        self.write(&self.path.join(STUDY), json.as_bytes())
    }

    fn write_json(&self, name: &str, value: &impl Serialize) -> Result<(), Error> {
        // Only one type is indented, so that no other is compiled for it.
        let plain = serde_json::to_string(value).map_err(Error::failed)?;
        let value: Value = serde_json::from_str(&plain).map_err(Error::failed)?;
        let bytes = serde_json::to_vec_pretty(&value).map_err(Error::failed)?;
        self.write(&self.path.join(name), &bytes)
    }

    /// Under another name first, and to the disk before it gets its own: whatever ends this
    /// program, a file that is there is whole.
    fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), Error> {
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
const START: &str = "env.json";
const BASELINE: &str = "baseline.json";
const STUDY: &str = "run.json";
const FILE_MAX_BYTES: u64 = 64 << 20;
