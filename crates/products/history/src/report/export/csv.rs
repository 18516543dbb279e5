//! Measures and series as comma-separated values (RFC 4180), one value a line.

use linerate_document::table::csv_line;
use linerate_model::printable::printable;
use linerate_model::record::{RunRecord, SeriesOf, Trial};
use linerate_model::stored_name;

use super::unit_symbol;

/// One line per measure of each trial.
pub fn measures(runs: &[RunRecord]) -> String {
    let mut text = csv_line(["run", "trial", "factors", "measure", "way", "value", "unit"]);
    for (run, trial) in trials(runs) {
        for measure in &trial.measures {
            let info = measure.name.info();
            text += &csv_line([
                run.run_id.to_string(),
                trial.no.to_string(),
                factors(trial),
                info.name.to_owned(),
                stored_name(measure.way),
                measure.value.to_string(),
                unit_symbol(info.unit).to_owned(),
            ]);
        }
    }

    text
}

/// One line per value of each series; `start_ns` and `end_ns` are those of its interval since the
/// start of the trial.
pub fn series(runs: &[RunRecord]) -> String {
    let mut text = csv_line([
        "run", "trial", "series", "of", "way", "start_ns", "end_ns", "value",
    ]);
    for (run, trial) in trials(runs) {
        for series in &trial.series {
            for (at, value) in series.values.iter().enumerate() {
                let Some((start_ns, end_ns)) = series.times.interval(at) else {
                    break;
                };
                text += &csv_line([
                    run.run_id.to_string(),
                    trial.no.to_string(),
                    quotable(&series.name),
                    of(&series.of),
                    stored_name(series.way),
                    start_ns.to_string(),
                    end_ns.to_string(),
                    value.map_or_else(String::new, |value| value.to_string()),
                ]);
            }
        }
    }

    text
}

fn trials(runs: &[RunRecord]) -> impl Iterator<Item = (&RunRecord, &Trial)> {
    runs.iter()
        .flat_map(|run| run.trials.iter().map(move |trial| (run, trial)))
}

fn factors(trial: &Trial) -> String {
    let factors: Vec<String> = trial
        .factors
        .iter()
        .map(|(name, level)| format!("{name}={level}"))
        .collect();
    quotable(&factors.join(";"))
}

fn of(of: &SeriesOf) -> String {
    match of {
        SeriesOf::Stream(number) => format!("stream {number}"),
        SeriesOf::Sum => "sum".to_owned(),
        SeriesOf::Host(role) => quotable(&format!("host {role}")),
    }
}

/// Text that a spreadsheet does not take for a formula, nor a terminal for a control sequence.
pub(crate) fn quotable(text: &str) -> String {
    let text = printable(text);
    // A spreadsheet takes these for the begin of a formula.
    if text.starts_with(['=', '+', '-', '@']) {
        format!("'{text}")
    } else {
        text
    }
}
