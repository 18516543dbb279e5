//! Phases of an experiment: TCP alone, then the cells in their order, then cells around the knees,
//! then the cells that leave ports and sockets behind. Runs that are kept from before are not
//! repeated.

use std::collections::BTreeSet;
use std::time::Duration;

use linerate_model::http::units::nanoseconds;
use linerate_model::http::{
    Baseline, CellKey, CellRun, Check, CheckStatus, Flag, LossWithoutLoad, Phase, RunState, Study,
};
use linerate_model::words::joined;

use crate::conclude::study::{self, Kept, Setup, StudyInput};
use crate::plan::cells::{self, PlannedRun, PlannedTest};

/// Rounds of refinement: each adds at most one cell to a payload, and may move its knee.
const REFINEMENT_ROUNDS_MAX: u32 = 2;
/// Repeats that are disturbed as well: on such hosts more of them only take time.
const VAIN_REPEATS_MAX: u32 = 2;

/// The hosts under test, as an experiment uses them.
pub(super) trait CellRunner {
    /// Why the experiment cannot continue.
    type Error;

    /// The path loses or is slow, so that results of HTTP would be results of the path.
    fn path_not_clean(&self, defects: &[String]) -> Self::Error;

    /// Time since the experiment began.
    fn elapsed(&self) -> Duration;

    /// True if the user has ended the experiment.
    fn is_stopped(&mut self) -> bool;

    /// Runs a TCP test. `None`: the user ended it.
    ///
    /// # Errors
    /// Why it has no result, and what to try.
    fn test_tcp(&mut self, test: &PlannedTest) -> Result<Option<Baseline>, String>;

    /// TCP alone by a download from the server under test, which needs no other server. `None`: the
    /// user ended it.
    ///
    /// # Errors
    /// Why it has no result.
    fn download(&mut self) -> Result<Option<Baseline>, String>;

    /// Loss at a tenth of this rate in bit/s, where the queues of the path are empty. `None` where
    /// it cannot be measured.
    fn loss_without_load(&mut self, goodput_bps: f64) -> Option<LossWithoutLoad>;

    /// Waits at least `least`, then until both hosts are at rest. Returns whether they are.
    fn rest(&mut self, least: Duration) -> bool;

    /// Runs a cell once.
    ///
    /// # Errors
    /// A failure that every further run would have.
    fn run(&mut self, planned: &PlannedRun) -> Result<CellRun, Self::Error>;

    /// Keeps all TCP tests.
    ///
    /// # Errors
    /// When they cannot be stored.
    fn keep_baseline(&mut self, baseline: &[Baseline]) -> Result<(), Self::Error>;

    /// Keeps a run.
    ///
    /// # Errors
    /// When it cannot be stored.
    fn keep_run(&mut self, planned: &PlannedRun, run: &CellRun) -> Result<(), Self::Error>;

    /// Runs were added to those of the plan.
    fn runs_added(&mut self, count: u32);
}

/// Runs an experiment, or the rest of it, and judges it; `kept` holds the results of an interrupted
/// one. With `is_forced`, cells that a check advises against are run, and a path that is not clean
/// is only noted.
///
/// # Errors
/// The runner's.
pub(super) fn run<R: CellRunner>(
    setup: &Setup,
    is_forced: bool,
    kept: Kept,
    runner: &mut R,
) -> Result<Study, R::Error> {
    let mut experiment = Experiment {
        setup,
        is_forced,
        kept,
        runner,
        is_first_run: true,
        is_server_gone: false,
        vain_repeats: 0,
    };
    experiment.baseline()?;
    let planned = cells::runs(&setup.plan, setup.phases);
    let (isolated, later): (Vec<_>, Vec<_>) = planned
        .into_iter()
        .partition(|run| matches!(run.key.phase, Phase::Payload | Phase::Matrix));
    experiment.run_all(isolated)?;
    // Before the phase of many connections, which leaves ports and sockets behind.
    experiment.refine()?;
    experiment.run_all(later)?;

    let is_complete = !experiment.is_ended();
    Ok(study::study(&experiment.input(is_complete)))
}

struct Experiment<'a, R> {
    setup: &'a Setup,
    is_forced: bool,
    kept: Kept,
    runner: &'a mut R,
    is_first_run: bool,
    is_server_gone: bool,
    /// Runs that were disturbed again when they were repeated.
    vain_repeats: u32,
}

impl<R: CellRunner> Experiment<'_, R> {
    fn baseline(&mut self) -> Result<(), R::Error> {
        let planned = cells::tests(&self.setup.plan, self.setup.phases);
        let is_wanted = self.setup.phases.has(0);
        // Ceilings need the goodput of TCP without phase 0 as well, unless the user names the rate;
        // on loopback there is no link.
        let is_needed =
            is_wanted || self.setup.plan.line_rate_bps.is_none() && !self.setup.client.is_loopback;
        if planned.is_empty() || !self.kept.baseline.is_empty() || !is_needed {
            return Ok(());
        }

        let is_complete = if is_wanted {
            self.test_tcp(planned)
        } else {
            self.download(None)
        };
        if !is_complete || self.kept.baseline.is_empty() {
            return Ok(());
        }

        if !self.setup.client.is_loopback
            && let Some(last) = self.kept.baseline.last_mut()
        {
            // TCP alone fills the queue of any path, so what it loses is no defect of the path.
            last.without_load = self.runner.loss_without_load(last.goodput_bps);
        }

        self.runner.keep_baseline(&self.kept.baseline)?;
        self.kept
            .notes
            .extend(study::slow_tests(&self.kept.baseline));
        let defects = study::path_defects(&self.kept.baseline);
        // Without phase 0 the path is not judged: TCP alone serves the ceilings.
        if defects.is_empty() || self.setup.client.is_loopback || !is_wanted {
            return Ok(());
        }
        if !self.is_forced {
            return Err(self.runner.path_not_clean(&defects));
        }

        self.kept.notes.extend(defects);
        Ok(())
    }

    /// The TCP tests of phase 0, or a download where there is no server for them. Returns whether
    /// they are complete.
    fn test_tcp(&mut self, planned: Vec<PlannedTest>) -> bool {
        for test in planned {
            if self.runner.is_stopped() {
                return false;
            }

            match self.runner.test_tcp(&test) {
                Ok(Some(baseline)) => self.kept.baseline.push(baseline),
                Ok(None) => return false,
                Err(reason) => return self.download(Some(reason)),
            }
        }

        true
    }

    /// TCP alone by a download, in place of tests that failed for `reason`. Returns whether it is
    /// complete.
    fn download(&mut self, reason: Option<String>) -> bool {
        let has_tests = !self.kept.baseline.is_empty();
        if let Some(reason) = reason
            .as_ref()
            .filter(|_| has_tests || self.setup.client.is_loopback)
        {
            self.kept.notes.push(format!("no TCP baseline: {reason}"));
            return has_tests;
        }

        match self.runner.download() {
            Ok(Some(baseline)) => {
                let note = |reason| {
                    format!("TCP alone is a download over HTTP, without tests of TCP: {reason}")
                };
                self.kept.notes.extend(reason.map(note));
                self.kept.baseline.push(baseline);
                true
            }
            Ok(None) => false,
            Err(why) => {
                let reasons = joined(reason.into_iter().chain([why]), "; ");
                self.kept.notes.push(format!("no TCP baseline: {reasons}"));
                false
            }
        }
    }

    /// Adds the cells that narrow the knees most.
    fn refine(&mut self) -> Result<(), R::Error> {
        for _ in 0..REFINEMENT_ROUNDS_MAX {
            let keys = study::refinements(&self.input(false));
            let runs = self.remaining(cells::refinement_runs(&self.setup.plan, &keys));
            if runs.is_empty() || self.is_ended() {
                return Ok(());
            }

            self.runner
                .runs_added(u32::try_from(runs.len()).unwrap_or(0));
            self.run_all(runs)?;
        }

        Ok(())
    }

    /// Makes the runs that are not finished.
    fn run_all(&mut self, runs: Vec<PlannedRun>) -> Result<(), R::Error> {
        for planned in self.remaining(runs) {
            if self.is_ended() {
                return Ok(());
            }

            let run = if !self.is_forced && is_blocked(&self.setup.checks, &planned.key) {
                let started_unix_ms =
                    self.setup.started_unix_ms + nanoseconds(self.runner.elapsed()) / 1_000_000;
                skipped(
                    &planned,
                    started_unix_ms,
                    "a check before the experiment failed; see the checks",
                )
            } else {
                self.run_one(&planned)?
            };
            self.runner.keep_run(&planned, &run)?;
            // Cells after the end of the server would be stored as finished, and `--resume` would
            // not make them.
            self.is_server_gone = run.flags.contains(&Flag::ServerGone);

            if let Some(reason) = run.reason.as_ref().filter(|_| self.is_server_gone) {
                let name = planned.key.name();
                self.kept.notes.push(format!(
                    "ended at {name}: {reason}; --resume makes this run and the missing ones"
                ));
            }

            self.kept.runs.push(run);
        }

        Ok(())
    }

    /// True if the user ended it, or the server is gone.
    fn is_ended(&mut self) -> bool {
        self.is_server_gone || self.runner.is_stopped()
    }

    /// Runs a cell, and once more when it was not steady or the control channel was lost, unless
    /// repeats are in vain here.
    fn run_one(&mut self, planned: &PlannedRun) -> Result<CellRun, R::Error> {
        // Before the first run there is no load of an earlier one to wait for.
        let is_first = std::mem::replace(&mut self.is_first_run, false);
        let cooldown = self.setup.plan.defaults.cooldown;
        let is_rested = self
            .runner
            .rest(if is_first { Duration::ZERO } else { cooldown });
        let mut run = self.runner.run(planned)?;
        let is_disturbed = |run: &CellRun| {
            let mut flags = run.flags.iter();
            run.state == RunState::Done
                && flags.any(|flag| matches!(flag, Flag::Unsteady | Flag::ControlLost))
        };
        // On hosts full of other work repeats stay unsteady: with three of them an experiment that
        // was estimated at 0:59 took 1:13.
        if is_disturbed(&run) && self.vain_repeats < VAIN_REPEATS_MAX {
            run = self.runner.run(planned)?;
            self.vain_repeats += u32::from(is_disturbed(&run));
        }

        run.flags
            .extend((!is_rested && run.load.is_some()).then_some(Flag::DirtyStart));
        Ok(run)
    }

    /// Runs that are not finished.
    fn remaining(&self, mut runs: Vec<PlannedRun>) -> Vec<PlannedRun> {
        let kept = self.kept.runs.iter();
        let finished: BTreeSet<_> = kept
            .map(|run| PlannedRun {
                key: run.key,
                repeat: run.repeat,
            })
            .collect();
        runs.retain(|run| !finished.contains(run));

        runs
    }

    fn input(&self, is_complete: bool) -> StudyInput<'_> {
        StudyInput {
            setup: self.setup,
            elapsed_ns: nanoseconds(self.runner.elapsed()),
            is_complete,
            kept: &self.kept,
        }
    }
}

/// True if a failed check concerns the cell.
fn is_blocked(checks: &[Check], key: &CellKey) -> bool {
    let name = key.name();
    let mut failed = checks
        .iter()
        .filter(|check| check.status == CheckStatus::Fail);
    failed.any(|check| check.cells.is_empty() || check.cells.contains(&name))
}

/// A run that was not made.
pub(super) fn skipped(planned: &PlannedRun, started_unix_ms: u64, reason: &str) -> CellRun {
    CellRun {
        reason: Some(reason.to_owned()),
        started_unix_ms,
        ..CellRun::new(planned.key, planned.repeat, RunState::Skipped)
    }
}

#[cfg(test)]
mod tests;
