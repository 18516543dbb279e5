//! Runs a plan over a [`RoundRunner`] and analyses its cells.

mod rounds;

use std::collections::{BTreeMap, BTreeSet};

use linerate_model::finding::{Evidence, Finding};
use linerate_model::fleet::{Cell, FleetMode, HostId, HostPoisoning, Task};

use super::effects::Analysis;
use super::ladder as ladder_analysis;
use super::runner::{FleetOutcome, RoundRunner};
use crate::plan::{PlannedRun, ladder, sample};
use rounds::Run;

/// Runs a plan. `finished` are the cells of an earlier part of the same run: their tasks are not
/// run again, except those without a result and those of a ladder step that is not complete.
///
/// All tasks run first. A task that a host did not confirm in time runs once more after them. Then
/// follow tests of suspects with good hosts; of a ladder, rounds without each suspect.
pub fn explore<R: RoundRunner>(
    planned: &PlannedRun,
    finished: Vec<Cell>,
    runner: &mut R,
) -> FleetOutcome {
    let run = Run::new(planned, finished, runner);
    match planned.plan.topology.hub() {
        Some(hub) => run.ladder(hub),
        None => run.pairs(),
    }
}

/// Cells by path and variant.
pub(crate) fn by_treatment<'a>(
    cells: impl Iterator<Item = &'a Cell>,
) -> BTreeMap<(&'a str, &'a str), Vec<&'a Cell>> {
    let mut treatments: BTreeMap<_, Vec<&Cell>> = BTreeMap::new();
    for cell in cells {
        let treatment = (&*cell.task.path, &*cell.task.variant);
        treatments.entry(treatment).or_default().push(cell);
    }

    treatments
}

/// `path phys`, `path phys, cc=bbr`
pub(crate) fn treatment_name(path: &str, variant: &str) -> String {
    match variant {
        "" => format!("path {path}"),
        variant => format!("path {path}, {variant}"),
    }
}

impl<R: RoundRunner> Run<'_, R> {
    fn pairs(mut self) -> FleetOutcome {
        self.tasks(self.planned.tasks.clone());
        self.test_suspects();
        self.conclude()
    }

    /// Tests of suspects with good hosts, in stages: each is a function of the cells before it.
    fn test_suspects(&mut self) {
        for _ in 0..sample::STAGES_MAX {
            let analyses = self.analyses();
            let suspects: BTreeSet<HostId> = analyses.iter().flat_map(Analysis::suspects).collect();
            let suspects: Vec<HostId> = suspects
                .into_iter()
                .filter(|host| self.alive.contains(host))
                .collect();
            let mut references = analyses.first().map_or_else(Vec::new, Analysis::references);
            references.retain(|host| self.alive.contains(host));

            let known: BTreeSet<Task> = self.cells.keys().cloned().collect();
            let tasks = sample::adaptive(&self.planned.plan, &suspects, &references, &known);
            if tasks.is_empty() || self.ended.is_some() {
                return;
            }

            self.tasks(tasks);
        }
    }

    /// One analysis for each path and variant.
    fn analyses(&self) -> Vec<Analysis> {
        let racks = self.planned.plan.racks();
        by_treatment(self.cells.values())
            .into_values()
            .filter_map(|cells| super::analyse(&cells, &racks))
            .collect()
    }

    fn conclude(self) -> FleetOutcome {
        let analyses = self.analyses();
        let racks = self.planned.plan.racks();
        let mut findings: Vec<Finding> = Vec::new();

        for analysis in &analyses {
            let effects = &analysis.effects;
            let before = findings.len();
            findings.extend(super::findings(analysis, &racks));

            // Hosts behind a slow uplink are a group that is explained.
            if analysis.uplinks.is_empty() {
                let is_of = |cell: &&Cell| {
                    *cell.task.path == effects.path && *cell.task.variant == effects.variant
                };
                let cells: Vec<&Cell> = self.cells.values().filter(is_of).collect();
                findings.extend(self.groups(&cells, None));
            }

            if analyses.len() > 1 {
                let place = Evidence::statement(treatment_name(&effects.path, &effects.variant));
                findings
                    .iter_mut()
                    .skip(before)
                    .for_each(|finding| finding.evidence.insert(0, place.clone()));
            }
        }

        let effects = analyses
            .into_iter()
            .map(|analysis| analysis.effects)
            .collect();
        self.into_outcome(findings, effects, Vec::new(), Vec::new())
    }

    fn ladder(mut self, hub: &HostId) -> FleetOutcome {
        let planned = self.planned;
        let steps = ladder::among(planned.steps.clone(), &self.alive, &self.finished());
        self.steps(&steps);
        self.give_up(&planned.tasks, FleetMode::Ladder);

        let rows = ladder_analysis::rows(&steps, &self.cells);
        let mut findings = Vec::new();
        let mut poisonings = Vec::new();

        for (direction, suspect) in ladder_analysis::suspects(&rows) {
            for (path, variant) in planned.plan.treatments() {
                let poison = ladder::poison(&planned.plan, direction, &suspect);
                let mut steps = ladder::among(poison, &self.alive, &self.finished());
                steps.retain(|step| step.path == *path && step.variant == *variant);
                self.steps(&steps);

                let Some((rates, finding)) =
                    ladder_analysis::poisoning(&steps, &suspect, &self.cells)
                else {
                    continue;
                };
                poisonings.push(HostPoisoning {
                    direction,
                    suspect: suspect.clone(),
                    rates,
                });
                findings.extend(finding);
            }
        }

        findings.extend(ladder_analysis::findings(hub, &rows));
        let alone = ladder_analysis::alone(&steps, &self.cells);
        findings.extend(
            alone
                .iter()
                .filter_map(|cells| self.groups(cells, Some(hub))),
        );

        // Without the rate of the link neither direction can be called full.
        let line_bps = self.runner.link_bps(hub);
        findings.extend(
            line_bps
                .map(|bps| ladder_analysis::asymmetries(hub, &rows, bps))
                .unwrap_or_default(),
        );
        self.into_outcome(findings, Vec::new(), rows, poisonings)
    }
}
