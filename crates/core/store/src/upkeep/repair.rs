//! Copies what can be read of a damaged database into a new one.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use crate::database::{Database, params};
use crate::write::row_of;
use crate::{Place, Store, StoreError};

/// Result of a repair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repaired {
    /// Runs in the new database.
    pub runs: usize,
    /// Objects that are missing there, one line each.
    pub missing: Vec<String>,
    /// The damaged database under its new name.
    pub set_aside: PathBuf,
}

/// Copies every run that can be read into a new database, which takes the place of the old one. The
/// old one is kept.
///
/// # Errors
/// A file that is no database of this program, one that another process writes, or nothing that can
/// be read.
pub fn repair(place: &Place) -> Result<Repaired, StoreError> {
    if place.server().is_some() {
        let text = format!("{place}: repair reads a file; restore a backup of the server");
        return Err(StoreError::Usage(text));
    }

    let old = Store::open_damaged(place)?;
    let path = with_suffix(place.path(), ".repair");
    remove(&path)?;

    // Its runs get no records of the spool: these belong to the database of the old name.
    let new = Store::open(&Place::file(&path))?;
    let mut missing = Vec::new();
    let rows = rows(&*old.database);
    let mut runs = 0;

    for row in &rows {
        match copy(&old, &new, *row) {
            Ok(damage) => {
                runs += 1;
                missing.extend(damage);
            }
            Err(error) => missing.push(format!("run in row {row}: {error}")),
        }
    }

    if let Err(error) = copy_baselines(&old, &new) {
        missing.push(format!("baselines: {error}"));
    }

    // The last connection to close writes the log into the database, which then has one file.
    new.database.close()?;
    old.database.close()?;
    let set_aside = exchange(place.path(), &path)?;
    Ok(Repaired {
        runs,
        missing,
        set_aside,
    })
}

/// Copies a run; returns what is missing of it.
fn copy(old: &Store, new: &Store, row: i64) -> Result<Vec<String>, StoreError> {
    let (record, damage) = old.load_row(row)?;
    new.finish(&record)?;
    let mut missing: Vec<String> = damage
        .iter()
        .map(|damage| format!("run {}: {damage}", record.run_id))
        .collect();

    if let Err(error) = copy_notes(old, new, row, row_of(&*new.database, record.run_id)?) {
        missing.push(format!("run {}: notes: {error}", record.run_id));
    }

    Ok(missing)
}

fn copy_notes(old: &Store, new: &Store, from: i64, to: Option<i64>) -> Result<(), StoreError> {
    for note in old.notes_of(from)? {
        let values = params![to, note.written_unix_ms, note.text];
        new.database.execute(
            "INSERT INTO note (run, written_ms, text) VALUES ($1, $2, $3)",
            &values,
        )?;
    }

    Ok(())
}

fn copy_baselines(old: &Store, new: &Store) -> Result<(), StoreError> {
    for (name, run) in old.baselines()? {
        if row_of(&*new.database, run)?.is_some() {
            new.set_baseline(&name, run)?;
        }
    }
    Ok(())
}

/// Every row that any table or index still names, and those between: a damaged page hides its
/// neighbours from a scan, not from a search by key.
fn rows(old: &dyn Database) -> BTreeSet<i64> {
    let scans = [
        "SELECT id FROM run NOT INDEXED ORDER BY id",
        "SELECT id FROM run NOT INDEXED ORDER BY id DESC",
        "SELECT id FROM run INDEXED BY run_started ORDER BY started_ms",
        "SELECT id FROM run INDEXED BY run_started ORDER BY started_ms DESC",
        "SELECT run FROM document ORDER BY run",
        "SELECT run FROM document ORDER BY run DESC",
    ];
    let mut named = BTreeSet::new();

    for scan in scans {
        // What precedes the damage is read. A page of zeros has rows without a number.
        let _ = old.query(scan, &[], &mut |row| {
            named.extend(row.get(0).ok().filter(|row: &i64| *row > 0));
            Ok(())
        });
    }

    let between = named
        .first()
        .zip(named.last())
        .map(|(first, last)| *first..=*last);
    // Rows of pruned runs are passed over: they name nothing.
    let is_there = |row: &i64| named.contains(row) || is_found(old, *row);
    between.into_iter().flatten().filter(is_there).collect()
}

fn is_found(old: &dyn Database, row: i64) -> bool {
    matches!(
        old.one(
            "SELECT 1 FROM document WHERE run = $1",
            &params![row],
            |_| Ok(())
        ),
        Ok(Some(()))
    )
}

/// Gives the damaged database a new name, with its log, and the new one its old name.
fn exchange(old: &Path, new: &Path) -> Result<PathBuf, StoreError> {
    let free = (1..)
        .map(|number| with_suffix(old, &format!(".damaged{number}")))
        .find(|path| !path.exists());
    let set_aside = free.expect("numbers do not end");

    // SQLite finds the log of a database by its name (sqlite.org/wal.html).
    for suffix in ["", "-wal", "-shm"] {
        let from = with_suffix(old, suffix);
        if from.exists() {
            fs::rename(&from, with_suffix(&set_aside, suffix)).map_err(StoreError::file(&from))?;
        }
    }

    fs::rename(new, old).map_err(StoreError::file(new))?;
    Ok(set_aside)
}

/// Removes an unfinished repair.
fn remove(path: &Path) -> Result<(), StoreError> {
    for file in ["", "-wal", "-shm", "-journal"].map(|suffix| with_suffix(path, suffix)) {
        if file.exists() {
            fs::remove_file(&file).map_err(StoreError::file(&file))?;
        }
    }
    Ok(())
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}
