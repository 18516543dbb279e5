//! Check, repair, prune and reindex.

mod prune;
mod reindex;
mod repair;

pub use prune::{Keep, Pruned};
pub use repair::{Repaired, repair};

use crate::{Store, StoreError, names, spool};

/// Result of the check of a store.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Check {
    /// Runs in the store.
    pub runs: usize,
    /// Records in the spool.
    pub spooled: usize,
    /// Problems, one line each.
    pub problems: Vec<String>,
}

impl Store {
    /// Examines the database file, every checksum, and the spool.
    ///
    /// # Errors
    /// Tables that cannot be read at all.
    pub fn check(&self) -> Result<Check, StoreError> {
        let mut check = Check {
            problems: self.database.integrity()?,
            ..Check::default()
        };
        let query = "SELECT id, run_id FROM run ORDER BY id";
        let runs: Vec<(i64, String)> = self
            .database
            .all(query, &[], |row| Ok((row.get(0)?, row.get(1)?)))?;
        check.runs = runs.len();

        for (row, id) in runs {
            let problems = match self.load_row(row) {
                Ok((_, damage)) => damage,
                Err(error) => vec![error.to_string()],
            };
            check.problems.extend(
                problems
                    .into_iter()
                    .map(|problem| format!("run {id}: {problem}")),
            );
        }

        let files = spool::files(&self.place);
        check.spooled = files.len();
        check.problems.extend(
            files
                .iter()
                .filter_map(|file| names::read_file(file).err())
                .map(|error| error.to_string()),
        );

        Ok(check)
    }
}
