//! Names of runs on command lines.

use std::path::Path;

use crate::text::FILE_MAX_BYTES;
use linerate_model::printable::printable_start;
use linerate_model::record::{RunId, RunRecord};
use linerate_sys::file_system;

use crate::database::params;
use crate::{Filter, Place, RunRow, Store, StoreError, parse_label};

impl Store {
    /// The runs of a name: an id or its unique end, `last`, `last~2`, `@BASELINE`,
    /// `label:KEY=VALUE` (all of them, newest first). Runs that are not over have no place in
    /// `last`.
    ///
    /// # Errors
    /// A name of no run, or an end of several ids; both with candidates.
    pub fn resolve(&self, name: &str) -> Result<Vec<RunId>, StoreError> {
        let quoted_name = quoted(name);
        let unknown = || StoreError::Usage(format!("no run {quoted_name:?}{}", self.candidates()));
        // No end of an id begins with these words: they are no hexadecimal digits.
        if let Some(back) = name.strip_prefix("last") {
            let back = if back.is_empty() {
                Some(0)
            } else {
                back.strip_prefix('~').and_then(|n| n.parse().ok())
            };
            return Ok(vec![
                self.last(back.ok_or_else(unknown)?)?.ok_or_else(unknown)?,
            ]);
        }

        if let Some(baseline) = name.strip_prefix('@') {
            return Ok(vec![self.baseline(baseline)?.ok_or_else(unknown)?]);
        }

        if let Some(label) = name.strip_prefix("label:") {
            let rows = self.list(&Filter {
                labels: vec![parse_label(label)?],
                ..Filter::default()
            })?;
            let ids: Vec<RunId> = rows.iter().map(|row| row.run_id).collect();
            return if ids.is_empty() {
                Err(unknown())
            } else {
                Ok(ids)
            };
        }

        match &*self.ids_ending(&name.to_ascii_lowercase())? {
            [] => Err(unknown()),
            [one] => Ok(vec![*one]),
            several => {
                let ids: String = several
                    .iter()
                    .take(8)
                    .map(|id| format!("\n  {id}"))
                    .collect();
                Err(StoreError::Usage(format!(
                    "{quoted_name:?} is the end of several ids{ids}"
                )))
            }
        }
    }

    fn last(&self, back: u32) -> Result<Option<RunId>, StoreError> {
        let query = "SELECT run_id FROM run WHERE state <> 'running' ORDER BY started_ms DESC, id \
                     DESC LIMIT 1 OFFSET $1";
        self.database.one(query, &params![back], |row| row.get(0))
    }

    fn ids_ending(&self, end: &str) -> Result<Vec<RunId>, StoreError> {
        // So checked, the end of an id has no wildcards of LIKE.
        if end.len() < 4
            || !end
                .bytes()
                .all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
        {
            return Ok(Vec::new());
        }

        let query = "SELECT run_id FROM run WHERE run_id LIKE $1 ORDER BY run_id DESC LIMIT 9";
        let pattern = format!("%{end}");
        self.database
            .all(query, &params![pattern], |row| row.get(0))
    }

    /// The newest runs and the baselines, as lines of a message.
    fn candidates(&self) -> String {
        let newest = self
            .list(&Filter {
                limit: Some(5),
                ..Filter::default()
            })
            .unwrap_or_default();
        if newest.is_empty() {
            return ": no runs are recorded".to_owned();
        }

        let line = |row: &RunRow| {
            let server = row
                .server
                .as_deref()
                .or(row.client.as_deref())
                .unwrap_or_default();
            format!(
                "\n  {}  {}",
                row.run_id.short(),
                quoted(row.title.as_deref().unwrap_or(server))
            )
        };
        let baselines = self.baselines().unwrap_or_default();
        let baselines = baselines
            .iter()
            .take(8)
            .map(|(name, id)| format!("\n  @{name}  {}", id.short()));

        format!(
            "; the newest are{}{}",
            newest.iter().map(line).collect::<String>(),
            baselines.collect::<String>()
        )
    }
}

/// A name means a file: it has a `/` or a `.`.
pub fn is_file_name(name: &str) -> bool {
    name.contains(['/', '.']) && !name.starts_with("label:")
}

/// The records of the runs of [`Store::resolve`].
///
/// # Errors
/// As [`Store::resolve`] and [`Store::load`].
pub fn load_named(place: Option<&Place>, name: &str) -> Result<Vec<RunRecord>, StoreError> {
    let place = place.ok_or_else(|| StoreError::Usage("--store off: name a file".to_owned()))?;
    let store = Store::open_existing(place)?;
    store
        .resolve(name)?
        .into_iter()
        .map(|id| store.load(id))
        .collect()
}

pub(crate) fn read_file(path: &Path) -> Result<RunRecord, StoreError> {
    let text =
        file_system::read_text(path, FILE_MAX_BYTES as u64).map_err(StoreError::file(path))?;
    crate::text::read(&text).map_err(|error| StoreError::damaged(path.display().to_string(), error))
}

/// Longest text that a message quotes.
const QUOTED_CHARS_MAX: usize = 80;

fn quoted(text: &str) -> String {
    printable_start(text, QUOTED_CHARS_MAX)
}
