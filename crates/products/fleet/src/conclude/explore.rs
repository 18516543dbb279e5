//! Runs a plan over a [`RoundRunner`] and analyses its cells.

mod rounds;

use std::collections::{BTreeMap, BTreeSet};

use linerate_model::finding::{Evidence, Finding};
use linerate_model::fleet::{Cell, FleetMode, FleetReport, HostId, HostPoisoning};

use super::effects::Analysis;
use super::ladder as ladder_analysis;
use super::runner::RoundRunner;
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
) -> FleetReport {
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
    fn pairs(mut self) -> FleetReport {
        self.tasks(self.planned.tasks.clone());
        self.test_suspects();
        self.conclude()
    }

    /// Tests of suspects with good hosts, in stages: each is a function of the cells before it.
    fn test_suspects(&mut self) {
        for _ in 0..sample::STAGES_MAX {
            let analyses = self.analyses();
            let mut suspects: BTreeSet<HostId> = BTreeSet::new();
            for analysis in &analyses {
                suspects.extend(analysis.suspects());
            }
            suspects.retain(|host| self.alive.contains(host));
            let mut references = analyses.first().map_or_else(Vec::new, Analysis::references);
            references.retain(|host| self.alive.contains(host));

            let plan = &self.planned.plan;
            let mut tasks = sample::adaptive(plan, &suspects, &references);
            tasks.retain(|task| !self.cells.contains_key(task));
            if tasks.is_empty() || self.ended.is_some() {
                return;
            }

            self.tasks(tasks.into_iter().collect());
        }
    }

    /// One analysis for each path and variant.
    fn analyses(&self) -> Vec<Analysis> {
        let racks = self.planned.plan.racks();
        let treatments = by_treatment(self.cells.values()).into_values();
        treatments
            .filter_map(|cells| super::analyse(&cells, &racks))
            .collect()
    }

    fn conclude(self) -> FleetReport {
        let racks = self.planned.plan.racks();
        let mut all: Vec<Finding> = Vec::new();
        let mut effects = Vec::new();
        let treatments = by_treatment(self.cells.values());
        let mut analyses = Vec::new();
        for ((path, variant), cells) in treatments {
            if let Some(analysis) = super::analyse(&cells, &racks) {
                analyses.push((treatment_name(path, variant), cells, analysis));
            }
        }

        let is_one = analyses.len() < 2;
        for (place, cells, analysis) in analyses {
            let mut findings = super::findings(&analysis, &racks);
            // Hosts behind a slow uplink are a group that is explained.
            if analysis.uplinks.is_empty() {
                findings.extend(self.groups(&cells, None));
            }

            for finding in &mut findings {
                if !is_one {
                    let place = Evidence::statement(place.clone());
                    finding.evidence.insert(0, place);
                }
            }
            all.extend(findings);
            effects.push(analysis.effects);
        }

        let mut report = self.into_report(all);
        report.effects = effects;
        report
    }

    fn ladder(mut self, hub: &HostId) -> FleetReport {
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

                let found = ladder_analysis::poisoning(&steps, &suspect, &self.cells);
                if let Some((rates, finding)) = found {
                    findings.extend(finding);
                    poisonings.push(HostPoisoning {
                        direction,
                        suspect: suspect.clone(),
                        rates,
                    });
                }
            }
        }

        findings.extend(ladder_analysis::findings(hub, &rows));
        for cells in ladder_analysis::alone(&steps, &self.cells) {
            findings.extend(self.groups(&cells, Some(hub)));
        }

        // Without the rate of the link neither direction can be called full.
        if let Some(bps) = self.runner.link_bps(hub) {
            findings.extend(ladder_analysis::asymmetries(hub, &rows, bps));
        }
        let mut report = self.into_report(findings);
        report.ladder = rows;
        report.poisonings = poisonings;
        report
    }
}
