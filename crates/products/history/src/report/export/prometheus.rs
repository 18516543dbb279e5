//! Results of the last runs in the text format of Prometheus (version 0.0.4), without times: the
//! collector of text files refuses them.

use std::collections::BTreeMap;

use linerate_document::exposition::Exposition;
use linerate_model::measure::MeasureName::{
    self, LatencyP50Ns, LatencyP90Ns, LatencyP99Ns, LatencyP999Ns, LostShare, PayloadBytesPerS,
    ReceivedBps, Retransmits, RttMeanNs,
};
use linerate_model::printable::printable;
use linerate_model::record::{Body, RunKind, RunRecord, RunState, Trial, Way};
use linerate_model::stored_name;

use super::{medians, name, protocol};
use crate::conclude::change_point::change_points;
use crate::conclude::grid::{Grid, RowKey};

/// Paths and specifications with a set of labels of their own; the older ones are added up.
pub const LABEL_SETS_MAX: usize = 1000;
/// Longest value of a label.
const LABEL_CHARS_MAX: usize = 128;

/// Name, type, help, and the measures with the value that is 1 in the unit of the metric and a
/// label.
type Family = (
    &'static str,
    &'static str,
    &'static str,
    &'static [(MeasureName, f64, &'static str)],
);

const FAMILIES: [Family; 5] = [
    (
        "linerate_test_goodput_bytes_per_second",
        "gauge",
        "Payload received per second in the last run.",
        &[(ReceivedBps, 8.0, ""), (PayloadBytesPerS, 1.0, "")],
    ),
    (
        "linerate_test_rtt_seconds",
        "gauge",
        "Mean round-trip time of the last run.",
        &[(RttMeanNs, 1e9, "")],
    ),
    (
        "linerate_test_loss_ratio",
        "gauge",
        "Share of the datagrams that the last run lost.",
        &[(LostShare, 1.0, "")],
    ),
    (
        "linerate_test_retransmits",
        "gauge",
        "Segments that the last run retransmitted.",
        &[(Retransmits, 1.0, "")],
    ),
    (
        "linerate_test_latency_seconds",
        "summary",
        "Latency of the responses of the last run.",
        &[
            (LatencyP50Ns, 1e9, "quantile=\"0.5\""),
            (LatencyP90Ns, 1e9, "quantile=\"0.9\""),
            (LatencyP99Ns, 1e9, "quantile=\"0.99\""),
            (LatencyP999Ns, 1e9, "quantile=\"0.999\""),
        ],
    ),
];

/// The last run of each path and specification, and of each cell of a fleet. A failed one has no values and the success 0.
pub fn exposition(runs: &[RunRecord]) -> String {
    let cells = fleet_cells(runs);
    let mut last = last_runs(runs);
    last.extend(cells.iter().map(|(run, values)| LastRun {
        run,
        labels: labels(run, ""),
        protocol: String::new(),
        values: values.clone(),
    }));
    // Each set of labels is a time series in Prometheus: of further ones only sums remain.
    let older = last.split_off(last.len().min(LABEL_SETS_MAX));
    let mut page = Exposition::default();

    for family in &FAMILIES {
        let own = last
            .iter()
            .flat_map(|last| samples(family, last.run, &last.labels));
        let (name, kind, help, _) = family;
        page.family_if_any(name, kind, help, own.chain(sums(family, &older)));
    }

    let of_runs = |value: fn(&RunRecord) -> f64| {
        last.iter()
            .map(move |last| (last.labels.clone(), value(last.run)))
    };
    for (name, help, value) in [
        (
            "linerate_test_success",
            "Whether the last run has a result.",
            (|run| f64::from(has_result(run))) as fn(&_) -> _,
        ),
        (
            "linerate_test_last_run_timestamp_seconds",
            "Start of the last run since 1970.",
            |run| run.started_unix_ms as f64 / 1e3,
        ),
        (
            "linerate_test_duration_seconds",
            "Time from start to end of the last run.",
            |run| run.elapsed_ns as f64 / 1e9,
        ),
    ] {
        page.family_if_any(name, "gauge", help, of_runs(value));
    }

    page.family_if_any(
        "linerate_change",
        "gauge",
        "Last change of the primary measure in the runs.",
        last.iter().flat_map(change),
    );
    page.family_if_any(
        "linerate_findings",
        "gauge",
        "Findings of the diagnosis of the last run.",
        last.iter().flat_map(findings),
    );
    page.0
}

struct LastRun<'a> {
    run: &'a RunRecord,
    labels: String,
    protocol: String,
    /// Values of its primary measure in it and in the runs before, earliest first.
    values: Vec<f64>,
}

/// Newest first, one for each set of labels.
fn last_runs(runs: &[RunRecord]) -> Vec<LastRun<'_>> {
    // A diagnosis has no measures, and a run that still runs no result.
    let counts = |run: &&RunRecord| run.kind != RunKind::Doctor && run.state != RunState::Running;
    let mut runs: Vec<&RunRecord> = runs.iter().filter(counts).collect();
    runs.sort_by_key(|run| std::cmp::Reverse((run.started_unix_ms, run.run_id)));

    // A run that failed early does not know its protocol, but its labels are those of the runs
    // before.
    let group = |run: &RunRecord| {
        (
            run.path.key.clone(),
            run.path.spec_key.clone(),
            name(run).to_owned(),
        )
    };
    let mut protocols = BTreeMap::new();

    for run in &runs {
        if let Some(protocol) = protocol(run) {
            protocols.entry(group(run)).or_insert(protocol);
        }
    }

    let mut last: Vec<LastRun<'_>> = Vec::new();
    let mut positions = BTreeMap::new();

    for run in runs {
        let protocol = protocols.get(&group(run)).cloned().unwrap_or_default();
        let labels = labels(run, &protocol);
        let at = *positions.entry(labels.clone()).or_insert_with(|| {
            last.push(LastRun {
                run,
                labels,
                protocol,
                values: Vec::new(),
            });
            last.len() - 1
        });
        last[at].values.extend(
            run.primary()
                .filter(|_| has_result(run))
                .map(|(_, value)| value),
        );
    }

    // The runs come last first; changes are found in the order of time.
    last.iter_mut().for_each(|last| last.values.reverse());
    last
}

/// The last run of each cell of each fleet as a run between its hosts, with its values in it and in
/// the runs before, earliest first.
fn fleet_cells(runs: &[RunRecord]) -> Vec<(RunRecord, Vec<f64>)> {
    let mut fleets: BTreeMap<(&str, &Option<String>), Vec<&RunRecord>> = BTreeMap::new();
    let counts = |run: &&RunRecord| run.kind == RunKind::Fleet && run.state != RunState::Running;
    for run in runs.iter().filter(counts) {
        fleets
            .entry((name(run), &run.path.server))
            .or_default()
            .push(run);
    }

    let mut cells = Vec::new();
    for mut runs in fleets.into_values() {
        runs.sort_by_key(|run| (run.started_unix_ms, run.run_id));
        let grid = Grid::of_fleet(runs.iter().copied());
        let has_treatments = grid.has_treatments();
        let newest = runs.last();
        cells.extend(grid.rows.into_iter().filter_map(|row| {
            let mut run = cell_of(newest?, &row.key);
            if has_treatments {
                run.path.server = Some(format!("{}, {}", row.key.sink, row.key.treatment));
            }
            Some((run, row.values.into_iter().flatten().collect()))
        }));
    }

    cells
}

/// A cell of a fleet run; one that failed where it has no result.
fn cell_of(fleet: &RunRecord, key: &RowKey) -> RunRecord {
    let started_at = fleet.started_at.clone();
    let started_unix_ms = fleet.started_unix_ms;
    let mut run = RunRecord {
        elapsed_ns: fleet.elapsed_ns,
        title: fleet.title.clone(),
        links: fleet.links.clone(),
        path: fleet.path.clone(),
        ..RunRecord::new(
            fleet.run_id,
            fleet.kind,
            Body::Test,
            started_at,
            started_unix_ms,
        )
    };
    run.path.client = Some(key.source.clone());
    run.path.server = Some(key.sink.clone());

    let of_cell = |trial: &&Trial| RowKey::of_factors(&trial.factors).as_ref() == Some(key);
    run.trials = fleet.trials.iter().filter(of_cell).cloned().collect();
    // Of a cell alone its factors have one level.
    run.trials
        .iter_mut()
        .for_each(|trial| trial.factors.clear());
    let has_result = run
        .trials
        .iter()
        .any(|trial| trial.state == RunState::Complete);
    run.state = if has_result {
        RunState::Complete
    } else {
        RunState::Failed
    };
    run
}

fn labels(run: &RunRecord, protocol: &str) -> String {
    let end = |end: &Option<String>| end.clone().unwrap_or_default();
    let spec: String = run.path.spec_key.chars().take(8).collect();

    let pairs = [
        ("client", end(&run.path.client)),
        ("server", end(&run.path.server)),
        ("protocol", protocol.to_owned()),
        ("name", name(run).to_owned()),
        ("spec", spec),
    ];
    pairs
        .map(|(name, value)| format!("{name}=\"{}\"", escaped(&value)))
        .join(",")
}

fn has_result(run: &RunRecord) -> bool {
    run.state == RunState::Complete
}

fn samples(family: &Family, run: &RunRecord, labels: &str) -> Vec<(String, f64)> {
    if !has_result(run) {
        return Vec::new();
    }

    let sample = |(measure, way, value): (MeasureName, Way, f64)| {
        let (_, unit, label) = family.3.iter().find(|(name, ..)| *name == measure)?;
        let mut labels = format!("{labels},direction=\"{}\"", stored_name(way));

        if !label.is_empty() {
            labels = format!("{labels},{label}");
        }
        Some((labels, value / unit))
    };
    medians(run).into_iter().filter_map(sample).collect()
}

/// Rates and numbers of the runs without labels of their own, added up per protocol and direction.
fn sums(family: &Family, runs: &[LastRun<'_>]) -> Vec<(String, f64)> {
    let mut sums: BTreeMap<String, f64> = BTreeMap::new();
    for run in runs
        .iter()
        // Rates and counts can be added, delays and shares cannot.
        .filter(|_| matches!(family.3[0].0, ReceivedBps | Retransmits))
    {
        let pooled = format!(
            "client=\"*\",server=\"*\",protocol=\"{}\",name=\"*\",spec=\"*\"",
            escaped(&run.protocol)
        );
        for (labels, value) in samples(family, run.run, &pooled) {
            *sums.entry(labels).or_default() += value;
        }
    }

    sums.into_iter().collect()
}

/// Which of the states the last change left: 1 for it, 0 for the others.
fn change(last: &LastRun<'_>) -> Vec<(String, f64)> {
    let Some((measure, _)) = last.run.primary() else {
        return Vec::new();
    };
    let change = change_points(&measure.info(), &last.values).pop();
    let state = change.map_or(
        "none",
        |change| if change.is_worse { "worse" } else { "better" },
    );
    let sample = |name: &str| {
        (
            format!("{},state=\"{name}\"", last.labels),
            f64::from(name == state),
        )
    };

    // A state set has a sample for every state: 1 for the one that holds, 0 for the others.
    ["none", "worse", "better"].map(sample).into()
}

fn findings(last: &LastRun<'_>) -> Vec<(String, f64)> {
    let mut counts: BTreeMap<String, f64> = BTreeMap::new();
    for finding in last
        .run
        .diagnosis
        .iter()
        .flat_map(|diagnosis| &diagnosis.findings)
    {
        let id = escaped(&finding.id);
        let severity = stored_name(finding.severity);
        *counts
            .entry(format!(
                "{},id=\"{id}\",severity=\"{severity}\"",
                last.labels
            ))
            .or_default() += 1.0;
    }

    counts.into_iter().collect()
}

fn escaped(value: &str) -> String {
    let start: String = value.chars().take(LABEL_CHARS_MAX).collect();
    printable(&start).replace('\\', "\\\\").replace('"', "\\\"")
}
