//! Measures and series as comma-separated values (RFC 4180), one value a line.

use linerate_model::printable::printable;
use linerate_model::record::{RunRecord, Series, SeriesOf, Times, Trial};
use linerate_model::stored_name;

use super::unit_symbol;

/// One line per measure of each trial.
#[must_use]
pub fn measures(runs: &[RunRecord]) -> String {
    let mut text =
        line(["run", "trial", "factors", "measure", "way", "value", "unit"].map(str::to_owned));
    for (run, trial) in trials(runs) {
        for measure in &trial.measures {
            let info = measure.name.info();
            text += &line([
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
#[must_use]
pub fn series(runs: &[RunRecord]) -> String {
    let mut text = line(
        [
            "run", "trial", "series", "of", "way", "start_ns", "end_ns", "value",
        ]
        .map(str::to_owned),
    );
    for (run, trial) in trials(runs) {
        for series in &trial.series {
            for ((start_ns, end_ns), value) in intervals(series).zip(&series.values) {
                text += &line([
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

fn intervals(series: &Series) -> Box<dyn Iterator<Item = (u64, u64)> + '_> {
    match &series.times {
        Times::Grid { t0_ns, step_ns } => {
            Box::new((0..).map(move |i| (t0_ns + i * step_ns, t0_ns + (i + 1) * step_ns)))
        }
        Times::Ends { t0_ns, ends_ns } => {
            let starts = std::iter::once(t0_ns).chain(ends_ns);
            Box::new(starts.copied().zip(ends_ns.iter().copied()))
        }
    }
}

/// Text that a spreadsheet does not take for a formula, nor a terminal for a control sequence.
pub(crate) fn quotable(text: &str) -> String {
    let text = printable(text);
    if text.starts_with(['=', '+', '-', '@']) {
        format!("'{text}")
    } else {
        text
    }
}

fn line<const N: usize>(fields: [String; N]) -> String {
    let quoted = fields.map(|field| match field.contains([',', '"', '\r', '\n']) {
        true => format!("\"{}\"", field.replace('"', "\"\"")),
        false => field,
    });
    quoted.join(",") + "\r\n"
}
