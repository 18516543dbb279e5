//! Loading whole runs.

use std::collections::BTreeMap;

use linerate_model::measure::MeasureName;
use linerate_model::record::{Measure, RunId, RunRecord, Series, Trial};
use linerate_model::snapshot::Fact;

use crate::database::{Access, Row, params};
use crate::encoding::series::Group;
use crate::encoding::{Packed, variant};
use crate::{Store, StoreError};

impl Store {
    /// The record of a run. A series, a trial's details or facts with a wrong checksum are absent,
    /// and a note of the record names them.
    ///
    /// # Errors
    /// An unknown run, a damaged document, or what the database reports.
    pub fn load(&self, run: RunId) -> Result<RunRecord, StoreError> {
        // Several statements read one state of the database.
        let _read = self.database.transaction(Access::Read)?;
        let (mut record, damage) = self.load_row(self.known(run)?)?;
        record.notes.extend(damage);

        Ok(record)
    }

    /// The record of a row, and what of it is damaged. Only a damaged document is an error.
    pub(crate) fn load_row(&self, row: i64) -> Result<(RunRecord, Vec<String>), StoreError> {
        let mut damage = Vec::new();
        let mut record = self.document(row).or_else(|error| {
            // The document of a run survives a damaged row of the list.
            let alone = self.document_alone(row).map_err(|_| error);
            damage.push("row of the list: damaged".to_owned());
            alone
        })?;
        for (position, host) in (0..).zip(&mut record.hosts) {
            if let Some(snapshot) = &mut host.snapshot {
                let facts = self.facts(row, position, &mut damage);
                snapshot.facts = or_default(facts, "facts", &mut damage);
            }
        }

        let complete = self.trials(row, &mut record.trials, &mut damage);
        or_default(complete, "trials", &mut damage);
        record.labels = or_default(self.labels(row), "labels", &mut damage);
        Ok((record, damage))
    }

    /// The record without its parts, with the state of the list.
    fn document(&self, row: i64) -> Result<RunRecord, StoreError> {
        let query = "SELECT size, checksum, blob, state, reason, elapsed_ns FROM run JOIN document \
                     ON run = id WHERE id = $1";
        let read = |row: &Row| Ok((Packed::of(row, 0)?, row.get(3)?, row.get(4)?, row.get(5)?));
        let found = self.database.one(query, &params![row], read)?;
        let (packed, state, reason, elapsed_ns) =
            found.ok_or_else(|| StoreError::damaged(format!("document {row}"), "missing"))?;
        let mut record: RunRecord = packed.parse(&|| format!("document {row}"))?;
        record.state = variant(state)?;
        record.reason = reason;
        record.elapsed_ns = elapsed_ns;

        Ok(record)
    }

    fn document_alone(&self, row: i64) -> Result<RunRecord, StoreError> {
        let query = "SELECT size, checksum, blob FROM document WHERE run = $1";
        let packed = self
            .database
            .one(query, &params![row], |row| Packed::of(row, 0))?;
        let packed =
            packed.ok_or_else(|| StoreError::damaged(format!("document {row}"), "missing"))?;
        packed.parse(&|| format!("document {row}"))
    }

    fn facts(
        &self,
        row: i64,
        position: i64,
        damage: &mut Vec<String>,
    ) -> Result<BTreeMap<String, Fact>, StoreError> {
        let query = "SELECT size, checksum, blob, area FROM host JOIN facts ON key = facts_key \
                     WHERE run = $1 AND position = $2 ORDER BY area";
        let mut all = BTreeMap::new();
        self.database
            .query(query, &params![row, position], &mut |row| {
                let packed = Packed::of(row, 0)?;
                let area = row.get::<String>(3)?;
                let facts: Result<BTreeMap<String, Fact>, _> =
                    packed.parse(&|| format!("facts {area} of host {position}"));
                facts.map_or_else(
                    |error| damage.push(error.to_string()),
                    |facts| all.extend(facts),
                );
                Ok(())
            })?;

        Ok(all)
    }

    /// Adds the trials until one cannot be read.
    fn trials(
        &self,
        row: i64,
        trials: &mut Vec<Trial>,
        damage: &mut Vec<String>,
    ) -> Result<(), StoreError> {
        let query = "SELECT size, checksum, detail, no, repeat, state, reason, is_warm_up, \
                     factors, flags, started_ns, elapsed_ns FROM trial WHERE run = $1 ORDER BY no";
        self.database.query(query, &params![row], &mut |found| {
            let no: u32 = found.get(3)?;
            let json = |column: usize| found.get::<String>(column);
            let wrong =
                |error: serde_json::Error| StoreError::damaged(format!("trial {no}"), error);
            let series = self.series(row, no, damage);
            let series = or_default(series, &format!("series of trial {no}"), damage);
            let detail = Packed::of(found, 0)?.parse(&|| format!("detail of trial {no}"));
            let repetition = Trial {
                no,
                repeat: found.get(4)?,
                factors: serde_json::from_str(&json(8)?).map_err(wrong)?,
                is_warm_up: found.get(7)?,
                state: variant(found.get(5)?)?,
                reason: found.get(6)?,
                started_ns: found.get(10)?,
                flags: serde_json::from_str(&json(9)?).map_err(wrong)?,
                measures: self.measures(row, no)?,
                series,
                detail: detail.unwrap_or_else(|error| {
                    damage.push(error.to_string());
                    None
                }),
                ..Trial::complete(found.get(11)?)
            };
            trials.push(repetition);

            Ok(())
        })
    }

    /// The measures of a trial. Names of a newer version are passed over.
    fn measures(&self, row: i64, no: u32) -> Result<Vec<Measure>, StoreError> {
        let query = "SELECT name, way, value, n, is_lower_bound FROM measure WHERE run = $1 AND \
                     trial = $2 ORDER BY position";
        let mut measures = Vec::new();
        self.database
            .query(query, &params![row, no], &mut |found| {
                // A newer version writes measures that this one does not know.
                let Ok(name) = found.get::<String>(0)?.parse::<MeasureName>() else {
                    return Ok(());
                };
                let figure = Measure {
                    n: found.get(3)?,
                    is_lower_bound: found.get(4)?,
                    ..Measure::new(name, variant(found.get(1)?)?, found.get(2)?)
                };
                measures.push(figure);
                Ok(())
            })?;

        Ok(measures)
    }

    fn series(
        &self,
        row: i64,
        no: u32,
        damage: &mut Vec<String>,
    ) -> Result<Vec<Series>, StoreError> {
        let query = "SELECT size, checksum, blob, names, of, way, is_thinned, n, t0_ns, step_ns \
                     FROM series WHERE run = $1 AND trial = $2 ORDER BY position";
        let mut all = Vec::new();
        self.database
            .query(query, &params![row, no], &mut |found| {
                match group(found).and_then(Group::series) {
                    Ok(series) => all.extend(series),
                    Err(error) => damage.push(format!("trial {no}: {error}")),
                }
                Ok(())
            })?;

        Ok(all)
    }

    pub(crate) fn labels(&self, row: i64) -> Result<BTreeMap<String, String>, StoreError> {
        let query = "SELECT key, value FROM label WHERE run = $1";
        let labels = self
            .database
            .all(query, &params![row], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(labels.into_iter().collect())
    }
}

/// The value, or none of it and a line about the damage.
fn or_default<T: Default>(value: Result<T, StoreError>, what: &str, damage: &mut Vec<String>) -> T {
    value.unwrap_or_else(|error| {
        damage.push(format!("{what}: {error}"));
        T::default()
    })
}

fn group(row: &Row) -> Result<Group, StoreError> {
    let of: String = row.get(4)?;
    Ok(Group {
        names: row
            .get::<String>(3)?
            .split(',')
            .map(str::to_owned)
            .collect(),
        of: serde_json::from_str(&of).map_err(|error| StoreError::damaged("series", error))?,
        way: variant(row.get(5)?)?,
        is_thinned: row.get(6)?,
        points: row.get::<u32>(7)? as usize,
        t0_ns: row.get(8)?,
        step_ns: row.get(9)?,
        packed: Packed::of(row, 0)?,
    })
}
