//! Records of runs in the forms that other programs read. The values are the measures of their
//! trials.

pub mod csv;
pub mod markdown;
pub mod otlp;
pub mod prometheus;
#[cfg(test)]
mod tests;

use linerate_document::number::percent;
use linerate_model::measure::MeasureName;
use linerate_model::measure::Unit::{self, *};
use linerate_model::record::{Detail, Measure, RunKind, RunRecord, RunState, Trial, Way};
use linerate_model::{numbers, stats, stored_name};

/// Median of each measure over the complete trials that are no warm-up, in the order of the
/// catalogue. Trials of an experiment do not count: its levels have no common value.
pub(crate) fn medians(run: &RunRecord) -> Vec<(MeasureName, Way, f64)> {
    // The cells of an experiment have no common value.
    let counts = |trial: &&Trial| {
        trial.state == RunState::Complete && !trial.is_warm_up && trial.factors.is_empty()
    };
    let measures: Vec<&Measure> = run
        .trials
        .iter()
        .filter(counts)
        .flat_map(|trial| &trial.measures)
        .collect();
    let mut kinds: Vec<(MeasureName, Way)> = measures
        .iter()
        .map(|measure| (measure.name, measure.way))
        .collect();
    kinds.sort_unstable();
    kinds.dedup();

    let values = |name, way| -> Vec<f64> {
        measures
            .iter()
            .filter(|m| (m.name, m.way) == (name, way))
            .map(|m| m.value)
            .collect()
    };
    kinds
        .into_iter()
        .filter_map(|(name, way)| Some((name, way, stats::median(&values(name, way))?)))
        .collect()
}

/// Transport of a test, `http` for a load; `None` of a run that failed before it had one.
pub(crate) fn protocol(run: &RunRecord) -> Option<String> {
    if matches!(run.kind, RunKind::HttpLoad | RunKind::HttpLab) {
        return Some("http".to_owned());
    }

    run.trials
        .iter()
        .find_map(|trial| match trial.detail.as_ref()? {
            Detail::Test(test) => Some(stored_name(test.header.spec.transport)),
            _ => None,
        })
}

/// Name of the watch that started a run, or its title.
pub(crate) fn name(run: &RunRecord) -> &str {
    run.links
        .watch
        .as_deref()
        .or(run.title.as_deref())
        .unwrap_or_default()
}

/// Symbol of a unit after UCUM, which OTLP prescribes.
pub(crate) fn unit_symbol(unit: Unit) -> &'static str {
    match unit {
        BitsPerSecond => "bit/s",
        BytesPerSecond => "By/s",
        PerSecond => "1/s",
        Nanoseconds => "ns",
        Cores => "{cpu}",
        SecondsPerGib => "s/GiBy",
        Share => "1",
        Count => "{count}",
        Bytes => "By",
        RoundTripsPerMinute => "{round_trip}/min",
        OpinionScore => "{score}",
        Grade => "{grade}",
        Confidence => "{confidence}",
    }
}

/// A value with its unit, for people.
pub fn value_text(value: f64, unit: Unit) -> String {
    match unit {
        BitsPerSecond => numbers::rate(value),
        BytesPerSecond => format!("{}/s", numbers::bytes(value)),
        PerSecond => format!("{}/s", numbers::per_s(value)),
        Nanoseconds => {
            let (value, unit) = numbers::scaled(value, 1000.0, ["ns", "µs", "ms", "s"]);
            format!("{} {unit}", numbers::digits(value))
        }
        Cores => format!("{} CPUs", numbers::digits(value)),
        SecondsPerGib => format!("{} s/GiB", numbers::digits(value)),
        Share => percent(value),
        Count => format!("{value}"),
        Bytes | RoundTripsPerMinute | OpinionScore | Grade | Confidence => unit.text(value),
    }
}
