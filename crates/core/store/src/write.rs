//! Writing runs: at their start, after each trial, and at their end.

use std::collections::BTreeMap;

use linerate_model::record::{
    HostPart, Measure, PrimaryMeasure, RunId, RunRecord, RunState, Trial,
};
use linerate_model::snapshot::Fact;
use linerate_model::stored_name;

use crate::database::{Database, params};
use crate::encoding::{Packed, series};
use crate::keys::sha256;
use crate::{Store, StoreError, owner};

/// Outcome of saving a record that may be known already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Saved {
    /// It was not known.
    New,
    /// This run was made from the same document, or is the same run.
    Known(RunId),
}

impl Store {
    /// Writes a run that begins: its state is [`RunState::Running`].
    ///
    /// # Errors
    /// What the database reports; nothing is written then.
    pub fn begin(&self, record: &RunRecord) -> Result<(), StoreError> {
        self.finish(record)
    }

    /// Adds trials that ended together to a run that began. A trial whose number is known is not
    /// written again.
    ///
    /// # Errors
    /// An unknown run, or what the database reports; nothing is written then.
    pub fn add_trials(&self, run: RunId, trials: &[Trial]) -> Result<(), StoreError> {
        let transaction = self.write()?;
        let row = row_of(&*transaction, run)?
            .ok_or_else(|| StoreError::damaged(run, "not in the store"))?;
        trials
            .iter()
            .try_for_each(|trial| put_trial(&*transaction, row, trial))?;
        transaction.execute(
            "UPDATE run SET trials = trials + $1 WHERE id = $2",
            &params![trials.len() as i64, row],
        )?;

        transaction.commit()
    }

    /// Writes a run at its end, with the trials that are not written yet.
    ///
    /// # Errors
    /// What the database reports; nothing is written then.
    pub fn finish(&self, record: &RunRecord) -> Result<(), StoreError> {
        let transaction = self.write()?;
        put(&*transaction, record)?;
        transaction.commit()
    }

    /// As [`Self::finish`], for a record whose trials are not kept in it.
    ///
    /// # Errors
    /// What the database reports; nothing is written then.
    pub fn finish_with(
        &self,
        record: &RunRecord,
        trials: impl Iterator<Item = Trial>,
    ) -> Result<(), StoreError> {
        let transaction = self.write()?;
        let row = put(&*transaction, record)?;
        let mut count = 0_i64;
        let mut primary = PrimaryMeasure::default();

        for trial in trials {
            put_trial(&*transaction, row, &trial)?;
            primary.add(&trial);
            count += 1;
        }

        let (measure, value) = primary.median().unzip();
        let statement =
            "UPDATE run SET trials = $1, primary_measure = $2, primary_value = $3 WHERE id = $4";
        transaction.execute(
            statement,
            &params![
                count,
                measure.map(|measure| measure.info().name),
                value,
                row
            ],
        )?;

        transaction.commit()
    }

    /// The run that was imported from the report with this key.
    ///
    /// # Errors
    /// What the database reports.
    pub fn imported(&self, key: &str) -> Result<Option<RunId>, StoreError> {
        let query = "SELECT run_id FROM run WHERE source_key = $1";
        self.database.one(query, &params![key], |row| row.get(0))
    }

    /// Writes a run unless it, or another one of the same imported document, is there. A run of the
    /// same document that was cut off earlier is replaced.
    ///
    /// # Errors
    /// What the database reports; nothing is written then.
    pub fn save(&self, record: &RunRecord) -> Result<Saved, StoreError> {
        let transaction = self.write()?;
        let query = "SELECT run_id, source_key IS NOT DISTINCT FROM $1 AND (elapsed_ns < $2 OR \
                     state = 'partial' AND $3 = 1) FROM run WHERE source_key = $1 OR run_id = $4 \
                     AND state <> 'running'";
        let key = source_key(record);
        let is_whole = record.state != RunState::Partial;
        let known = params![&key, record.elapsed_ns, is_whole, record.run_id];
        let known = transaction.one(query, &known, |row| Ok((row.get(0)?, row.get(1)?)))?;
        match known {
            // A report that was cut off when it was imported.
            Some((known, true)) if key.is_some() => {
                let known: RunId = known;
                transaction.execute("DELETE FROM run WHERE run_id = $1", &params![known])?;
            }
            Some((known, _)) => return Ok(Saved::Known(known)),
            None => {}
        }

        put(&*transaction, record)?;
        transaction.commit()?;
        Ok(Saved::New)
    }

    /// Runs whose process ended while it wrote them keep their trials and become
    /// [`RunState::Ended`].
    pub(crate) fn mark_ended(&self) -> Result<(), StoreError> {
        // Most histories have none, and a search alone does not wait for other writers.
        if self.orphans()?.is_empty() {
            return Ok(());
        }

        let transaction = self.write()?;
        // Looked for again: the process may have written its end before it ended.
        for row in self.orphans()? {
            let reason = "its process ended without a result".to_owned();
            // A damaged record cannot be written again; its row has to end all the same.
            let Ok((mut record, _)) = self.load_row(row) else {
                let statement =
                    "UPDATE run SET state = 'ended', reason = $1, owner = NULL WHERE id = $2";
                transaction.execute(statement, &params![reason, row])?;
                continue;
            };
            let ends = record
                .trials
                .iter()
                .map(|trial| trial.started_ns.saturating_add(trial.elapsed_ns));
            let elapsed_ns = ends.max().unwrap_or(0);

            record.state = RunState::Ended;
            record.reason = Some(reason);
            record.elapsed_ns = elapsed_ns;
            put_row(&*transaction, &record)?;
        }

        transaction.commit()
    }

    /// Runs without an end whose process has one.
    fn orphans(&self) -> Result<Vec<i64>, StoreError> {
        let query = "SELECT id, owner FROM run WHERE state = 'running'";
        let found: Vec<(i64, Option<String>)> = self
            .database
            .all(query, &[], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let ended = found
            .into_iter()
            .filter(|(_, owner)| owner.as_deref().is_none_or(owner::has_ended));

        Ok(ended.map(|(row, _)| row).collect())
    }
}

/// The key of a run in other tables.
pub(crate) fn row_of(database: &dyn Database, run: RunId) -> Result<Option<i64>, StoreError> {
    database.one(
        "SELECT id FROM run WHERE run_id = $1",
        &params![run],
        |row| row.get(0),
    )
}

/// Writes a record and returns the key of its row.
fn put(database: &dyn Database, record: &RunRecord) -> Result<i64, StoreError> {
    let row = put_row(database, record)?;
    let document = Packed::json(&without_parts(record));
    database.execute(
        "INSERT INTO document (run, size, checksum, blob) VALUES ($1, $2, $3, $4) ON CONFLICT \
         (run) DO UPDATE SET size = excluded.size, checksum = excluded.checksum, blob = \
         excluded.blob",
        &params![row, document.size, document.checksum, document.blob],
    )?;

    for (position, host) in (0_i64..).zip(&record.hosts) {
        put_facts(database, row, position, host)?;
    }

    for trial in &record.trials {
        put_trial(database, row, trial)?;
    }

    for (key, value) in &record.labels {
        put_label(database, row, key, value)?;
    }

    Ok(row)
}

pub(crate) fn put_label(
    database: &dyn Database,
    row: i64,
    key: &str,
    value: &str,
) -> Result<usize, StoreError> {
    let statement = "INSERT INTO label (run, key, value) VALUES ($1, $2, $3) ON CONFLICT (run, \
                     key) DO UPDATE SET value = excluded.value";
    database.execute(statement, &params![row, key, value])
}

/// Writes what lists show and returns the key.
pub(crate) fn put_row(database: &dyn Database, record: &RunRecord) -> Result<i64, StoreError> {
    let severity = record
        .findings()
        .map(|finding| finding.severity as i64)
        .max();
    let (measure, value) = record.primary().unzip();

    // Trials of a large run are added one by one: the count of its record may be lower.
    let statement = "INSERT INTO run (run_id, kind, state, reason, title, started_ms, elapsed_ns, \
                     tool, version, path_key, spec_key, client, server, watch, source_key, \
                     severity, trials, primary_measure, primary_value, owner) VALUES ($1, $2, $3, \
                     $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, \
                     $20) ON CONFLICT (run_id) DO UPDATE SET kind = excluded.kind, state = \
                     excluded.state, reason = excluded.reason, title = excluded.title, started_ms \
                     = excluded.started_ms, elapsed_ns = excluded.elapsed_ns, tool = \
                     excluded.tool, version = excluded.version, path_key = excluded.path_key, \
                     spec_key = excluded.spec_key, client = excluded.client, server = \
                     excluded.server, watch = excluded.watch, source_key = excluded.source_key, \
                     severity = excluded.severity, trials = CASE WHEN run.trials > excluded.trials \
                     THEN run.trials ELSE excluded.trials END, primary_measure = \
                     excluded.primary_measure, primary_value = excluded.primary_value, owner = \
                     excluded.owner RETURNING id";
    let row = database.one(
        statement,
        &params![
            record.run_id,
            stored_name(record.kind),
            stored_name(record.state),
            &record.reason,
            &record.title,
            record.started_unix_ms,
            record.elapsed_ns,
            &record.origin.tool,
            &record.origin.version,
            &record.path.key,
            &record.path.spec_key,
            &record.path.client,
            &record.path.server,
            &record.links.watch,
            source_key(record),
            severity,
            record.trials.len() as i64,
            measure.map(|measure| measure.info().name),
            value,
            (record.state == RunState::Running).then(owner::this_process),
        ],
        |row| row.get(0),
    )?;
    row.ok_or_else(|| StoreError::damaged("run", "no key returned"))
}

/// A document of a server and one of its client are different runs.
fn source_key(record: &RunRecord) -> Option<String> {
    let import = record.origin.imported.as_ref()?;
    let of_document = || format!("{}/{}", import.sha256, stored_name(record.kind));
    Some(import.key.clone().unwrap_or_else(of_document))
}

/// The record without what has tables of its own.
fn without_parts(record: &RunRecord) -> RunRecord {
    let mut rest = record.without_trials_and_labels();
    for snapshot in rest
        .hosts
        .iter_mut()
        .filter_map(|host| host.snapshot.as_mut())
    {
        snapshot.facts.clear();
    }

    rest
}

/// Stores the facts of a host by area, the first word of their keys: most areas do not change from
/// run to run.
fn put_facts(
    database: &dyn Database,
    row: i64,
    position: i64,
    host: &HostPart,
) -> Result<(), StoreError> {
    database.execute(
        "DELETE FROM host WHERE run = $1 AND position = $2",
        &params![row, position],
    )?;
    let mut areas: BTreeMap<&str, BTreeMap<&str, &Fact>> = BTreeMap::new();

    for (key, fact) in host.snapshot.iter().flat_map(|snapshot| &snapshot.facts) {
        areas
            .entry(key.split('.').next().unwrap_or_default())
            .or_default()
            .insert(key, fact);
    }

    for (area, facts) in areas {
        let json = serde_json::to_vec(&facts).expect("keys of facts are text");
        let hash = sha256(&json);
        let key = &hash[..32];
        let packed = Packed::new(&json);
        database.execute(
            "INSERT INTO facts (key, size, checksum, blob) VALUES ($1, $2, $3, $4) ON CONFLICT DO \
             NOTHING",
            &params![key, packed.size, packed.checksum, packed.blob],
        )?;
        database.execute(
            "INSERT INTO host (run, position, role, name, area, facts_key) VALUES ($1, $2, $3, $4, \
             $5, $6)",
            &params![row, position, &host.role, &host.name, area, key],
        )?;
    }

    Ok(())
}

fn put_trial(database: &dyn Database, row: i64, trial: &Trial) -> Result<(), StoreError> {
    let detail = Packed::json(&trial.detail);
    let factors = serde_json::to_string(&trial.factors).expect("a map of texts");
    let flags = serde_json::to_string(&trial.flags).expect("a list of texts");
    let added = database.execute(
        "INSERT INTO trial (run, no, repeat, state, reason, is_warm_up, factors, flags, \
         started_ns, elapsed_ns, size, checksum, detail) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, \
         $9, $10, $11, $12, $13) ON CONFLICT DO NOTHING",
        &params![
            row,
            trial.no,
            trial.repeat,
            stored_name(trial.state),
            &trial.reason,
            trial.is_warm_up,
            factors,
            flags,
            trial.started_ns,
            trial.elapsed_ns,
            detail.size,
            detail.checksum,
            detail.blob,
        ],
    )?;
    if added == 0 {
        return Ok(());
    }

    put_measures(database, row, trial.no, &trial.measures)?;
    put_series(database, row, trial)
}

/// Writes the measures of a trial. JSON has no infinite numbers, and neither have records.
pub(crate) fn put_measures(
    database: &dyn Database,
    row: i64,
    no: u32,
    measures: &[Measure],
) -> Result<(), StoreError> {
    let statement = "INSERT INTO measure (run, trial, position, name, way, value, n, \
                     is_lower_bound) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
    for (position, measure) in (0_i64..)
        .zip(measures)
        .filter(|(_, measure)| measure.value.is_finite())
    {
        let values = params![
            row,
            no,
            position,
            measure.name.info().name,
            stored_name(measure.way),
            measure.value,
            measure.n,
            measure.is_lower_bound,
        ];
        database.execute(statement, &values)?;
    }

    Ok(())
}

fn put_series(database: &dyn Database, row: i64, trial: &Trial) -> Result<(), StoreError> {
    let statement = "INSERT INTO series (run, trial, position, names, of, way, is_thinned, n, \
                     t0_ns, step_ns, size, checksum, blob) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, \
                     $9, $10, $11, $12, $13)";
    for (position, group) in (0_i64..).zip(series::groups(&trial.series)) {
        let values = params![
            row,
            trial.no,
            position,
            group.names.join(","),
            serde_json::to_string(&group.of).expect("a name or a number"),
            stored_name(group.way),
            group.is_thinned,
            group.points as i64,
            group.t0_ns,
            group.step_ns,
            group.packed.size,
            group.packed.checksum,
            group.packed.blob,
        ];
        database.execute(statement, &values)?;
    }

    Ok(())
}
