//! Annotations of runs: labels, notes, baselines. Records themselves never change.

use linerate_model::record::RunId;
use linerate_sys::clock;

use crate::database::{Row, params};
use crate::write::{put_label, row_of};
use crate::{Store, StoreError};

/// A label: a name and a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    /// Its name: `[a-z0-9_.-]`, at most 64 characters.
    pub key: String,
    /// Its value, at most 256 characters.
    pub value: String,
}

/// A sentence a user added to a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// When, in ms since 1970.
    pub written_unix_ms: u64,
    /// The sentence.
    pub text: String,
}

/// No run has more.
const MAX_LABELS: usize = 64;

/// Parses `key=value`.
///
/// # Errors
/// Characters or lengths that are not permitted.
pub fn parse_label(text: &str) -> Result<Label, StoreError> {
    let wrong = |why| StoreError::label(text, why);
    let (key, value) = text
        .split_once('=')
        .ok_or_else(|| wrong("write key=value"))?;
    check_key(key).map_err(wrong)?;

    if value.chars().count() > 256 {
        return Err(wrong("a value has at most 256 characters"));
    }

    Ok(Label {
        key: key.to_owned(),
        value: value.to_owned(),
    })
}

fn check_key(key: &str) -> Result<(), &'static str> {
    let is_permitted = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_.-".contains(c);
    // Permitted characters are ASCII, so that bytes count them.
    let fits = (1..=64).contains(&key.len()) && key.chars().all(is_permitted);
    if fits {
        Ok(())
    } else {
        Err("a key has 1 to 64 characters of a-z, 0-9, '_', '.' and '-'")
    }
}

impl Store {
    /// Sets and removes labels of a run.
    ///
    /// # Errors
    /// An unknown run, more than 64 labels, or what the database reports; nothing is changed then.
    pub fn label(&self, run: RunId, set: &[Label], remove: &[String]) -> Result<(), StoreError> {
        let transaction = self.write()?;
        let row = self.known(run)?;

        for key in remove {
            transaction.execute(
                "DELETE FROM label WHERE run = $1 AND key = $2",
                &params![row, key],
            )?;
        }

        for label in set {
            put_label(&*transaction, row, &label.key, &label.value)?;
        }

        // The count includes labels that were there; without a commit nothing changes.
        if self.labels(row)?.len() > MAX_LABELS {
            return Err(StoreError::label(
                &run.short(),
                "a run has at most 64 labels",
            ));
        }

        transaction.commit()
    }

    /// Adds a note to a run.
    ///
    /// # Errors
    /// An unknown run, or what the database reports.
    pub fn add_note(&self, run: RunId, text: &str) -> Result<(), StoreError> {
        let transaction = self.write()?;
        let statement = "INSERT INTO note (run, written_ms, text) VALUES ($1, $2, $3)";
        transaction.execute(
            statement,
            &params![self.known(run)?, clock::unix_ms(), text],
        )?;
        transaction.commit()
    }

    /// The notes of a run, oldest first.
    ///
    /// # Errors
    /// An unknown run, or what the database reports.
    pub fn notes(&self, run: RunId) -> Result<Vec<Note>, StoreError> {
        self.notes_of(self.known(run)?)
    }

    pub(crate) fn notes_of(&self, row: i64) -> Result<Vec<Note>, StoreError> {
        let note = |row: &Row| {
            Ok(Note {
                written_unix_ms: row.get(0)?,
                text: row.get(1)?,
            })
        };
        self.database.all(
            "SELECT written_ms, text FROM note WHERE run = $1 ORDER BY id",
            &params![row],
            note,
        )
    }

    /// Gives a run the name of a baseline, which another run may have had.
    ///
    /// # Errors
    /// An unknown run, or what the database reports.
    pub fn set_baseline(&self, name: &str, run: RunId) -> Result<(), StoreError> {
        check_key(name).map_err(|why| StoreError::label(name, why))?;
        let transaction = self.write()?;
        let statement = "INSERT INTO baseline (name, run) VALUES ($1, $2) ON CONFLICT (name) DO \
                         UPDATE SET run = excluded.run";
        transaction.execute(statement, &params![name, self.known(run)?])?;
        transaction.commit()
    }

    /// Removes a baseline; the run stays. Returns whether there was one.
    ///
    /// # Errors
    /// What the database reports.
    pub fn remove_baseline(&self, name: &str) -> Result<bool, StoreError> {
        let transaction = self.write()?;
        let removed =
            transaction.execute("DELETE FROM baseline WHERE name = $1", &params![name])?;
        transaction.commit()?;
        Ok(removed > 0)
    }

    /// All baselines by name.
    ///
    /// # Errors
    /// What the database reports.
    pub fn baselines(&self) -> Result<Vec<(String, RunId)>, StoreError> {
        let query =
            "SELECT name, run_id FROM baseline JOIN run ON run.id = baseline.run ORDER BY name";
        self.database
            .all(query, &[], |row| Ok((row.get(0)?, row.get(1)?)))
    }

    /// The run of a baseline.
    pub(crate) fn baseline(&self, name: &str) -> Result<Option<RunId>, StoreError> {
        let query = "SELECT run_id FROM baseline JOIN run ON run.id = baseline.run WHERE name = $1";
        self.database.one(query, &params![name], |row| row.get(0))
    }

    /// The row of a run of the store.
    pub(crate) fn known(&self, run: RunId) -> Result<i64, StoreError> {
        row_of(&*self.database, run)?
            .ok_or_else(|| StoreError::Usage(format!("no run {:?}", run.to_string())))
    }
}
