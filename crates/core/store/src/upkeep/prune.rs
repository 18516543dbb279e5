//! Removes what is older than it must be kept. Nothing is removed unasked.

use crate::database::{Database, params};
use crate::{Store, StoreError};

/// Time for which series and runs are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keep {
    /// The series of a run, in days.
    pub points_days: u64,
    /// The run, in days.
    pub runs_days: u64,
}

/// Counts of the removed runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Runs whose series were removed.
    pub without_points: usize,
    /// Runs that were removed.
    pub runs: usize,
}

impl Default for Keep {
    /// Series 14 days, runs 13 months.
    fn default() -> Self {
        Self {
            points_days: 14,
            runs_days: 396,
        }
    }
}

impl std::str::FromStr for Keep {
    type Err = String;

    /// `points=14d,runs=13mo`; what is not named keeps its default. Units are `d`, `w`, `mo` (30
    /// days) and `y`.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut keep = Self::default();
        for part in text.split(',') {
            let (name, age) = part
                .split_once('=')
                .ok_or_else(|| format!("{part:?}: write points=14d,runs=13mo"))?;
            let days =
                days(age).ok_or_else(|| format!("{age:?}: write a number and d, w, mo or y"))?;

            match name {
                "points" => keep.points_days = days,
                "runs" => keep.runs_days = days,
                _ => return Err(format!("{name:?}: points or runs")),
            }
        }

        Ok(keep)
    }
}

fn days(age: &str) -> Option<u64> {
    let digits = age.bytes().take_while(u8::is_ascii_digit).count();
    let factor = match &age[digits..] {
        "d" => 1,
        "w" => 7,
        "mo" => 30,
        "y" => 365,
        _ => return None,
    };
    age[..digits].parse::<u64>().ok()?.checked_mul(factor)
}

/// Runs that stay whole: baselines, those with the label `keep`, those with a finding of severity
/// high or above.
const STAYS: &str = "(id IN (SELECT run FROM baseline) OR id IN (SELECT run FROM label WHERE key = \
                     'keep') OR coalesce(severity, 0) >= 3 OR state = 'running')";

impl Store {
    /// Removes series and runs that are older than they must be kept at a time in ms since 1970. A
    /// dry run only counts.
    ///
    /// # Errors
    /// What the database reports; nothing is removed then.
    pub fn prune(&self, keep: &Keep, now_ms: u64, dry_run: bool) -> Result<Pruned, StoreError> {
        let transaction = self.write()?;
        let before = |days: u64| {
            now_ms
                .saturating_sub(days.saturating_mul(86_400_000))
                .cast_signed()
        };
        let pruned = remove(
            &*transaction,
            before(keep.points_days),
            before(keep.runs_days),
        )?;

        // A dry run counts in a transaction that ends without a commit.
        if !dry_run {
            transaction.commit()?;
            self.database.shrink()?;
        }

        Ok(pruned)
    }
}

fn remove(database: &dyn Database, points_ms: i64, runs_ms: i64) -> Result<Pruned, StoreError> {
    let runs = database.execute(
        &format!("DELETE FROM run WHERE started_ms < $1 AND NOT {STAYS}"),
        &params![runs_ms],
    )?;
    let old = format!("SELECT id FROM run WHERE started_ms < $1 AND NOT {STAYS}");
    let count = format!("SELECT count(DISTINCT run) FROM series WHERE run IN ({old})");
    let without_points: Option<i64> =
        database.one(&count, &params![points_ms], |row| row.get(0))?;

    database.execute(
        &format!("DELETE FROM series WHERE run IN ({old})"),
        &params![points_ms],
    )?;
    database.execute(
        "DELETE FROM facts WHERE key NOT IN (SELECT facts_key FROM host)",
        &[],
    )?;
    Ok(Pruned {
        without_points: without_points
            .and_then(|runs| runs.try_into().ok())
            .unwrap_or(0),
        runs,
    })
}
