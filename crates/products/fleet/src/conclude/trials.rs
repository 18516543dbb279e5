//! Cells of a fleet as trials of a record.

use std::collections::BTreeMap;

use linerate_model::fleet::{Cell, FleetReport, Measurement, Task};
use linerate_model::measure::MeasureName;
use linerate_model::record::{Detail, Measure, RunState, Trial, Way};
use linerate_model::stored_name;

/// A cell with a result as a trial; `None` of one without. Its number and its times are those of
/// the run it belongs to, and set there.
pub fn trial(cell: &Cell) -> Option<Trial> {
    let measurement = cell.measurement()?;
    let task = &cell.task;
    let mut trial = Trial {
        repeat: task.repetition,
        detail: Some(Detail::FleetCell(Box::new(cell.clone()))),
        ..Trial::complete(0)
    };
    for (name, level) in [
        ("source", task.source.as_str()),
        ("sink", task.sink.as_str()),
        ("path", &task.path),
        ("variant", &task.variant),
    ] {
        if !level.is_empty() {
            trial.factors.insert(name.to_owned(), level.to_owned());
        }
    }

    for flag in &measurement.flags {
        trial.flags.push(stored_name(*flag));
    }
    match cell.usable() {
        Some(usable) => trial.measures = measures(usable),
        None => {
            trial.state = RunState::Failed;
            trial.reason = Some(trial.flags.join(", "));
        }
    }

    Some(trial)
}

/// The source is the client.
fn measures(measured: &Measurement) -> Vec<Measure> {
    let mut measures = Vec::new();
    for (name, value) in [
        (MeasureName::ReceivedBps, Some(measured.goodput_bps)),
        (
            MeasureName::Retransmits,
            measured.retransmits.map(|count| count as f64),
        ),
        (
            MeasureName::RttMeanNs,
            // Microseconds to nanoseconds.
            measured.rtt_us.map(|us| us as f64 * 1e3),
        ),
    ] {
        measures.extend(value.map(|value| Measure::new(name, Way::Forward, value)));
    }

    measures
}

/// The cells of trials, in the order of their tasks; of a task that was run again the last one.
pub fn cells(trials: &[Trial]) -> Vec<Cell> {
    by_task(trials).into_values().collect()
}

fn by_task(trials: &[Trial]) -> BTreeMap<&Task, Cell> {
    let mut cells = BTreeMap::new();
    for trial in trials {
        // A later trial of the same task replaces the earlier one, so a repeated test counts once.
        if let Some(Detail::FleetCell(cell)) = &trial.detail {
            cells.insert(&cell.task, (**cell).clone());
        }
    }

    cells
}

/// The report without the cells that are trials of its record.
pub fn without_trials(report: &FleetReport) -> FleetReport {
    let mut rest = report.clone();
    // Cells with a measurement are read from the trials, so the record has each of them once.
    rest.cells.retain(|cell| cell.measurement().is_none());
    rest
}

/// The report with all of its cells.
pub fn with_trials(report: &FleetReport, trials: &[Trial]) -> FleetReport {
    let mut cells = by_task(trials);
    cells.extend(report.cells.iter().map(|cell| (&cell.task, cell.clone())));
    FleetReport {
        cells: cells.into_values().collect(),
        ..report.clone()
    }
}

#[cfg(test)]
mod tests {
    use linerate_model::fleet::{CellFlag, CellOutcome, FleetMode, HostId, NotRun, NotRunReason};

    use super::*;

    fn cell(source: &str, repetition: u32, outcome: CellOutcome) -> Cell {
        let id = |name: &str| name.parse::<HostId>().expect("an id");
        let mut task = Task::new(id(source), id("z"), "lab");
        task.repetition = repetition;
        Cell::new(task, FleetMode::Rounds, outcome)
    }

    fn measured(goodput_bps: f64, flags: &[CellFlag]) -> CellOutcome {
        let measurement = Measurement {
            goodput_bps,
            rtt_us: Some(250),
            flags: flags.to_vec(),
            ..Measurement::default()
        };
        CellOutcome::Measured(measurement)
    }

    #[test]
    fn cell_with_a_result_survives_as_a_trial_and_one_without_is_none() {
        let kept = cell("a", 2, measured(9e8, &[CellFlag::CaughtUp]));
        let trial = trial(&kept).expect("a trial");
        assert_eq!(
            (trial.state, trial.repeat, trial.flags.as_slice()),
            (RunState::Complete, 2, &["caught-up".to_owned()][..])
        );

        let factors: Vec<_> = trial
            .factors
            .iter()
            .map(|(name, level)| (name.as_str(), level.as_str()))
            .collect();
        assert_eq!(factors, [("path", "lab"), ("sink", "z"), ("source", "a")]);

        let values: Vec<_> = trial
            .measures
            .iter()
            .map(|measure| (measure.name, measure.value))
            .collect();
        assert_eq!(
            values,
            [
                (MeasureName::ReceivedBps, 9e8),
                (MeasureName::RttMeanNs, 250_000.0)
            ]
        );
        assert_eq!(cells(&[trial]), [kept]);

        let not_run = CellOutcome::NotRun(NotRun::new(NotRunReason::Unreachable));
        assert_eq!(super::trial(&cell("a", 0, not_run)), None);
    }

    #[test]
    fn implausible_cell_has_no_measures_and_of_a_task_run_twice_the_last_counts() {
        let first = trial(&cell("a", 0, measured(1e8, &[]))).expect("a trial");
        let last = trial(&cell("a", 0, measured(9e12, &[CellFlag::Implausible]))).expect("a trial");
        assert_eq!(
            (last.state, last.reason.as_deref()),
            (RunState::Failed, Some("implausible"))
        );
        assert_eq!(last.measures, []);

        let goodput: Vec<f64> = cells(&[first, last])
            .iter()
            .filter_map(Cell::measurement)
            .map(|measured| measured.goodput_bps)
            .collect();
        assert_eq!(goodput, [9e12]);
    }
}
