//! Two experiments side by side.

use linerate_model::http::{Cell, CellKey, CellRun, Flag, Phase, Study, VerdictClass};
use linerate_model::measure::MeasureName;
use linerate_model::two_sample::{Judged, MARGIN, adjust};
use serde::Serialize;

use super::environment::changes;
use super::medians::counted;
use super::plan::Plan;

/// One cell of two experiments.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ComparedCell {
    /// The cell.
    pub key: CellKey,
    /// Responses per second of the runs; absent where the cell was not run or is invalid.
    pub ok_per_s: Option<Judged>,
    /// 99th percentile of the latency.
    pub p99: Option<Judged>,
    /// CPU time of the server per answer, after as a multiple of before.
    pub server_cpu_per_request: Option<f64>,
}

/// Two experiments side by side.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// All cells of either, by phase, payload and connections.
    pub cells: Vec<ComparedCell>,
    /// What makes them hard to compare.
    pub notes: Vec<String>,
}

/// Compares two experiments cell by cell.
#[must_use]
pub fn compare(before: &Study, after: &Study) -> Comparison {
    let mut keys: Vec<CellKey> = before
        .cells
        .iter()
        .chain(&after.cells)
        .map(|cell| cell.key)
        .collect();
    keys.sort_unstable();
    keys.dedup();

    let mut cells: Vec<ComparedCell> = keys
        .into_iter()
        .map(|key| compared(key, before, after))
        .collect();
    adjust(cells.iter_mut().filter_map(|cell| cell.ok_per_s.as_mut()));
    adjust(cells.iter_mut().filter_map(|cell| cell.p99.as_mut()));

    Comparison {
        cells,
        notes: notes(before, after),
    }
}

fn compared(key: CellKey, before: &Study, after: &Study) -> ComparedCell {
    let (one, two) = (valid(before, key), valid(after, key));
    let judged = |measure: MeasureName, value: fn(&CellRun) -> Option<f64>| {
        let values = |study, cell| -> Vec<f64> {
            counted(runs(study, cell))
                .into_iter()
                .filter(|run| is_sound(run))
                .filter_map(value)
                .collect()
        };
        Judged::new(
            &measure.info(),
            MARGIN,
            &values(before, one?),
            &values(after, two?),
            &[],
        )
    };

    let cpu = |cell: &Cell| cell.median.server_cpu_ns_per_request.filter(|ns| *ns > 0.0);
    ComparedCell {
        key,
        ok_per_s: judged(MeasureName::OkPerS, |run| run.load.as_ref()?.ok_per_s()),
        p99: judged(MeasureName::LatencyP99Ns, |run| {
            Some(run.load.as_ref()?.latency.p99?.ns as f64)
        }),
        server_cpu_per_request: one
            .and_then(cpu)
            .zip(two.and_then(cpu))
            .map(|(one, two)| two / one),
    }
}

/// The runs of a cell. Those of a payload that the matrix has with as many connections stand there.
fn runs<'a>(study: &'a Study, cell: &'a Cell) -> &'a [CellRun] {
    let mut key = cell.key;
    key.phase = Phase::Matrix;
    let is_same = |other: &&Cell| other.key == key;
    let twin = study
        .cells
        .iter()
        .find(is_same)
        .filter(|_| cell.runs.is_empty());

    &twin.unwrap_or(cell).runs
}

/// Whether the path and the server decided the run.
fn is_sound(run: &CellRun) -> bool {
    const UNSOUND: [Flag; 5] = [
        Flag::Unsteady,
        Flag::DirtyStart,
        Flag::GeneratorLate,
        Flag::ControlLost,
        Flag::Interrupted,
    ];

    !run.flags.iter().any(|flag| UNSOUND.contains(flag))
}

fn valid(study: &Study, key: CellKey) -> Option<&Cell> {
    let cell = study.cells.iter().find(|cell| cell.key == key)?;
    (cell.verdict.primary.class != VerdictClass::Invalid).then_some(cell)
}

/// What makes two experiments hard to compare.
#[must_use]
pub fn notes(before: &Study, after: &Study) -> Vec<String> {
    let mut notes = Vec::new();
    for (which, study) in [("first", before), ("second", after)] {
        if !study.is_complete {
            notes.push(format!("the {which} experiment did not come to its end"));
        }
    }

    if are_different_plans(&before.plan, &after.plan) {
        notes.push("the plans differ".to_owned());
    }

    notes.extend(change_of_protocol(before, after));
    for (whose, one, two) in [
        ("client", Some(&before.client), Some(&after.client)),
        ("server", before.server.as_ref(), after.server.as_ref()),
    ] {
        let changes = one
            .zip(two)
            .map_or_else(Vec::new, |(one, two)| changes(one, two));
        notes.extend(
            changes
                .into_iter()
                .map(|change| format!("{whose}: {change}")),
        );
    }

    notes
}

/// By their values, not by their comments.
fn are_different_plans(before: &str, after: &str) -> bool {
    let name = |text: &str| Plan::parse(text).map(|plan| plan.hash());
    match (name(before), name(after)) {
        (Ok(before), Ok(after)) => before != after,
        _ => before != after,
    }
}

/// Change of the protocol, where both experiments have it.
fn change_of_protocol(before: &Study, after: &Study) -> Option<String> {
    let words = |study: &Study| {
        let protocol = study.protocol.iter().map(ToString::to_string);
        protocol.collect::<Vec<_>>().join(" and ")
    };
    let is_change = !before.protocol.is_empty()
        && !after.protocol.is_empty()
        && before.protocol != after.protocol;
    is_change.then(|| format!("protocol: {}, now {}", words(before), words(after)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::study::fixtures::{seed_input, study_of};
    use linerate_model::http::HttpVersion;
    use linerate_model::two_sample::Verdict;

    /// The matrix cell of one payload with six runs, and with the loads of `change`.
    fn repeated(study: &mut Study, change: fn(&mut CellRun)) -> usize {
        let is_matrix = |cell: &Cell| cell.key.phase == Phase::Matrix;
        let index = study.cells.iter().position(is_matrix).expect("cells");
        let runs = &mut study.cells[index].runs;
        runs.extend(runs.clone());

        for (run, repeat) in runs.iter_mut().zip(1..) {
            run.repeat = repeat;
            change(run);
        }

        index
    }

    #[test]
    fn the_same_experiment_twice_differs_nowhere() {
        let mut study = study_of(&seed_input());
        let index = repeated(&mut study, |_| {});
        let comparison = compare(&study, &study);
        assert_eq!(comparison.cells.len(), study.cells.len());

        for (position, cell) in comparison.cells.iter().enumerate() {
            let Some(judged) = &cell.ok_per_s else {
                continue;
            };
            let expected = if position == index {
                Verdict::Same
            } else {
                Verdict::TooFew
            };
            assert_eq!(
                (judged.estimate, judged.verdict),
                (1.0, expected),
                "{judged:?}"
            );
        }

        assert!(comparison.notes.is_empty(), "{:?}", comparison.notes);
    }

    #[test]
    fn a_cell_is_worse_when_its_runs_show_it() {
        let (mut before, mut after) = (study_of(&seed_input()), study_of(&seed_input()));
        let index = repeated(&mut before, |_| {});
        repeated(&mut after, |run| {
            let load = run.load.as_mut().expect("a load");
            load.ok = load.ok * 9 / 10;
            let p99 = load.latency.p99.as_mut().expect("a quantile");
            p99.ns = p99.ns * 9 / 10 - 40_000;
        });

        let cell = &compare(&before, &after).cells[index];
        let verdicts =
            [&cell.ok_per_s, &cell.p99].map(|judged| judged.as_ref().map(|judged| judged.verdict));
        assert_eq!(
            verdicts,
            [Some(Verdict::Worse), Some(Verdict::Better)],
            "{cell:?}"
        );
    }

    #[test]
    fn cells_of_one_alone_have_no_ratio_and_other_hosts_are_noted() {
        let mut before = study_of(&seed_input());
        before.client.cpus = Some(4);
        let mut after = before.clone();
        after.cells.truncate(1);
        after.is_complete = false;
        after.client.cpus = Some(2);
        after.plan = after.plan.replace("seed = 1", "seed = 2");

        let comparison = compare(&before, &after);
        assert_eq!(comparison.cells.len(), before.cells.len());
        assert_eq!(comparison.cells[1].ok_per_s, None);
        assert_eq!(comparison.notes.len(), 3, "{:?}", comparison.notes);
    }

    #[test]
    fn another_protocol_is_noted_and_another_explanation_of_the_plan_is_not() {
        let before = study_of(&seed_input());
        let mut after = before.clone();
        after.plan.push_str("# said otherwise\n");
        assert!(compare(&before, &after).notes.is_empty());
        after.protocol[0].http = HttpVersion::Http2;

        let notes = compare(&before, &after).notes;
        assert_eq!(
            notes,
            ["protocol: HTTP/1.1 in plain text, now HTTP/2 in plain text"]
        );

        // Written before this was kept.
        after.protocol.clear();
        assert!(compare(&before, &after).notes.is_empty());
    }
}
