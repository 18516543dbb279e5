//! Runs of cells as trials of a record.

use linerate_model::http::units::payload_name;
use linerate_model::http::{
    CellRun, Flag, Latency, LoadResult, Quantile, RunState as CellState, Study,
};
use linerate_model::measure::MeasureName;
use linerate_model::record::{Detail, Measure, RunState, Trial, Way};
use linerate_model::stored_name;

use super::ceiling::Link;
use super::medians::{cpu_ns_per_request, cpus, wire_bps};

/// A run as a trial. Its number and its start are those of the run it belongs to, and set there.
pub(crate) fn trial(run: &CellRun, link: Option<&Link>) -> Trial {
    let state = state(run);
    let key = &run.key;
    let mut factors = vec![
        ("phase".to_owned(), stored_name(key.phase)),
        ("payload".to_owned(), payload_name(key.payload_bytes)),
        ("connections".to_owned(), key.connections.to_string()),
    ];
    factors.extend(
        key.rate_per_s
            .map(|rate| ("rate".to_owned(), rate.to_string())),
    );

    let mut repetition = Trial::complete(run.load.as_ref().map_or(0, |load| load.window_ns));
    // Cells count their repeats from 1, trials of a record from 0.
    repetition.repeat = run.repeat.saturating_sub(1);
    repetition.factors = factors.into_iter().collect();
    repetition.state = state;
    repetition.reason = reason(run, state);
    repetition.flags = run.flags.iter().map(|flag| stored_name(*flag)).collect();
    repetition.measures = if state == RunState::Failed {
        Vec::new()
    } else {
        measures(run, link)
    };
    repetition.detail = Some(Detail::Cell(Box::new(run.clone())));

    repetition
}

/// The study with its runs once, which are trials of the record.
pub(crate) fn without_runs(mut study: Study) -> Study {
    study.cells.iter_mut().for_each(|cell| cell.runs.clear());
    study
}

/// The study with the runs of its cells, which a record has as trials.
pub(crate) fn with_runs(study: &Study, trials: &[Trial]) -> Study {
    let mut study = study.clone();
    let runs = trials.iter().filter_map(|trial| match &trial.detail {
        Some(Detail::Cell(run)) => Some(&**run),
        _ => None,
    });
    for run in runs {
        if let Some(cell) = study.cells.iter_mut().find(|cell| cell.key == run.key) {
            cell.runs.push(run.clone());
        }
    }

    study
}

fn state(run: &CellRun) -> RunState {
    let is_empty =
        |load: &LoadResult| load.connections.opened == 0 || (load.requests > 0 && load.ok == 0);
    match (run.state, &run.load) {
        (CellState::Skipped, _) | (_, None) => RunState::Failed,
        _ if run.flags.contains(&Flag::Interrupted) => RunState::Interrupted,
        (_, Some(load)) if is_empty(load) => RunState::Failed,
        (CellState::Aborted, _) => RunState::Partial,
        (CellState::Done, _) if run.flags.contains(&Flag::BreakerTripped) => RunState::Partial,
        (CellState::Done, _) => RunState::Complete,
    }
}

fn reason(run: &CellRun, state: RunState) -> Option<String> {
    let own = match state {
        RunState::Complete => None,
        RunState::Interrupted => Some("interrupted"),
        RunState::Partial => Some("too many failures, or the server asked for a pause"),
        _ if run
            .load
            .as_ref()
            .is_some_and(|load| load.connections.opened == 0) =>
        {
            Some("no connection was opened")
        }
        _ => Some("no request was answered well"),
    };
    run.reason.clone().or(own.map(str::to_owned))
}

fn measures(run: &CellRun, link: Option<&Link>) -> Vec<Measure> {
    let Some(load) = &run.load else {
        return Vec::new();
    };
    let mut all = Vec::new();
    let mut add = |name, value: Option<f64>| {
        // JSON has neither NaN nor infinity (RFC 8259, section 6).
        let value = value.filter(|value| value.is_finite());
        all.extend(value.map(|value| Measure::new(name, Way::Sum, value)));
    };

    // Connections that are only held have no rate.
    if load.requests > 0 {
        add(MeasureName::OkPerS, load.ok_per_s());
        add(MeasureName::PayloadBytesPerS, load.payload_bytes_per_s());
    }

    add(MeasureName::WireBps, wire_bps(run, link));
    add(MeasureName::ErrorShare, load.error_share());
    add(MeasureName::CpuClientCores, cpus(&run.client));
    add(
        MeasureName::CpuServerCores,
        run.server.as_ref().and_then(cpus),
    );
    add(
        MeasureName::ClientCpuNsPerRequest,
        cpu_ns_per_request(run, &run.client),
    );
    add(
        MeasureName::ServerCpuNsPerRequest,
        run.server
            .as_ref()
            .and_then(|side| cpu_ns_per_request(run, side)),
    );

    let p99 = |latency: &Option<Latency>| {
        latency
            .as_ref()
            .and_then(|latency| Some((latency.n, latency.p99?)))
    };
    let of_latency = |quantile: Option<Quantile>| Some((load.latency.n, quantile?));
    let quantiles = [
        (MeasureName::LatencyP50Ns, of_latency(load.latency.p50)),
        (MeasureName::LatencyP90Ns, of_latency(load.latency.p90)),
        (MeasureName::LatencyP99Ns, of_latency(load.latency.p99)),
        (MeasureName::LatencyP999Ns, of_latency(load.latency.p999)),
        (MeasureName::ServiceP99Ns, p99(&load.service)),
        (MeasureName::SendLagP99Ns, p99(&load.send_lag)),
        (MeasureName::ConnectP99Ns, p99(&load.connect)),
    ];
    all.extend(quantiles.into_iter().filter_map(|(name, known)| {
        let (
            n,
            Quantile {
                ns, is_lower_bound, ..
            },
        ) = known?;
        Some(Measure {
            n: Some(n),
            is_lower_bound,
            ..Measure::new(name, Way::Sum, ns as f64)
        })
    }));

    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conclude::tests::fixture::done;

    fn value(trial: &Trial, name: MeasureName) -> Option<f64> {
        trial
            .measures
            .iter()
            .find(|measure| measure.name == name)
            .map(|measure| measure.value)
    }

    #[test]
    fn a_run_is_a_trial_with_the_measures_of_the_catalogue() {
        let trial = trial(&done(2, 100.0), None);
        assert_eq!(
            (trial.state, trial.repeat, trial.reason.as_ref()),
            (RunState::Complete, 1, None)
        );
        assert_eq!(value(&trial, MeasureName::OkPerS), Some(100.0));
        assert!(value(&trial, MeasureName::LatencyP50Ns).is_some_and(|ns| ns > 0.0));
        assert_eq!(trial.factors["phase"], "matrix");
        assert!(matches!(trial.detail, Some(Detail::Cell(_))));
    }

    #[test]
    fn a_run_without_an_answer_has_no_measures() {
        let mut run = done(1, 100.0);
        run.load.as_mut().expect("a load").ok = 0;
        let failed = trial(&run, None);
        assert_eq!((failed.state, failed.measures.len()), (RunState::Failed, 0));
        assert_eq!(
            failed.reason.as_deref(),
            Some("no request was answered well")
        );
        run.flags.push(Flag::Interrupted);
        assert_eq!(trial(&run, None).state, RunState::Interrupted);

        let mut aborted = done(1, 100.0);
        aborted.state = CellState::Aborted;
        aborted.reason = Some("gone".to_owned());

        let partial = trial(&aborted, None);
        assert_eq!(
            (partial.state, partial.reason.as_deref()),
            (RunState::Partial, Some("gone"))
        );
    }
}
