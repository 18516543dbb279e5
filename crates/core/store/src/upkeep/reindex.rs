//! Recomputes measures for records of versions that defined them in another way.

use crate::{Builder, Filter, Store, StoreError, playback};
use linerate_model::EventSink;
use linerate_model::record::{Detail, Measure, RunId, Trial};

use crate::database::params;
use crate::write::{put_measures, put_row, row_of};

impl Store {
    /// Recomputes the measures of every throughput test and returns the number of trials where they
    /// differ.
    ///
    /// # Errors
    /// What the database reports; runs before that have their new measures.
    pub fn reindex(&self) -> Result<usize, StoreError> {
        let runs = self.list(&Filter::default())?;
        runs.iter().try_fold(
            0,
            |changed, run| Ok(changed + self.reindex_run(run.run_id)?),
        )
    }

    fn reindex_run(&self, run: RunId) -> Result<usize, StoreError> {
        let transaction = self.write()?;
        let Some(row) = row_of(&*transaction, run)? else {
            return Ok(0);
        };
        let Ok((mut record, damage)) = self.load_row(row) else {
            return Ok(0);
        };

        // A trial whose values over time are lost has no other measures than the stored ones.
        let mut changed = 0;
        for trial in record.trials.iter_mut().filter(|_| damage.is_empty()) {
            let Some(measures) = measures(trial).filter(|measures| *measures != trial.measures)
            else {
                continue;
            };
            transaction.execute(
                "DELETE FROM measure WHERE run = $1 AND trial = $2",
                &params![row, trial.no],
            )?;
            put_measures(&*transaction, row, trial.no, &measures)?;
            trial.measures = measures;
            changed += 1;
        }

        if changed > 0 {
            put_row(&*transaction, &record)?;
            transaction.commit()?;
        }

        Ok(changed)
    }
}

/// The measures of a throughput test by the present definitions; `None` for what cannot be played
/// back.
fn measures(trial: &Trial) -> Option<Vec<Measure>> {
    let Some(Detail::Test(test)) = &trial.detail else {
        return None;
    };
    let mut builder = Builder::new(test.header.clone());
    playback(trial)
        .iter()
        .try_for_each(|event| builder.event(event))
        .ok()?;

    Some(builder.finish().measures).filter(|measures| !measures.is_empty())
}
