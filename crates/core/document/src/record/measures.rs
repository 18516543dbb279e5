//! The measures of a run: one value per trial, median and interval of several.

use std::collections::{BTreeMap, BTreeSet};

use linerate_model::measure::{Better, MeasureInfo, MeasureName, Unit};
use linerate_model::record::{Body, PRIMARY, RunRecord, Trial, Way};
use linerate_model::stats::{median, median_interval, range};

use crate::frame::Card;
use crate::number::without_unit_of;
use crate::numbers::{MISSING, digits};
use crate::table::{Cell, Table};

/// Confidence of the interval of a median.
const CONFIDENCE: f64 = 0.95;

/// A value with its unit.
pub(super) fn value(info: &MeasureInfo, value: f64) -> String {
    match info.measure {
        MeasureName::FairnessJain => digits(value),
        _ => info.unit.text(value),
    }
}

/// Direction of a figure; nothing where it has none.
pub(super) const fn way(way: Way) -> &'static str {
    match way.words() {
        Some(words) => words,
        None => "",
    }
}

/// Values of one measure in one direction, one for each trial that has it.
pub(super) struct Values<'a> {
    pub info: MeasureInfo,
    pub way: Way,
    /// Number of the trial, its value, and whether the true value may be higher.
    pub values: Vec<(&'a Trial, f64, bool)>,
}

impl<'a> Values<'a> {
    fn plain(&self) -> Vec<f64> {
        self.values.iter().map(|(_, value, _)| *value).collect()
    }

    pub(super) fn median(&self) -> Option<f64> {
        median(&self.plain())
    }

    /// The interval of the median; of few trials from the lowest to the highest, with what it is.
    pub(super) fn interval(&self) -> Option<(f64, f64, &'static str)> {
        let values = self.plain();
        let sure = median_interval(&values, CONFIDENCE)
            .map(|interval| (interval.low, interval.high, "95 % interval"));
        let all = || range(&values).map(|range| (range.low, range.high, "lowest to highest"));
        // One value has no spread.
        sure.or_else(all).filter(|_| values.len() > 1)
    }

    /// The values of each setting, in the order of the first trial of each.
    pub(super) fn settings(&self) -> Vec<(String, Self)> {
        let mut settings: Vec<(String, Self)> = Vec::new();
        for one in &self.values {
            let name = setting(one.0);
            let at = settings
                .iter()
                .position(|(known, _)| *known == name)
                .unwrap_or_else(|| {
                    settings.push((
                        name,
                        Self {
                            info: self.info,
                            way: self.way,
                            values: Vec::new(),
                        },
                    ));
                    settings.len() - 1
                });
            settings[at].1.values.push(*one);
        }

        settings
    }

    fn text(&self, number: f64, is_lower_bound: bool) -> String {
        format!(
            "{}{}",
            if is_lower_bound { "≥ " } else { "" },
            value(&self.info, number)
        )
    }

    /// The setting with the best median, of a run with several: `streams 4: 941.3 Mbit/s ...`
    pub(super) fn best(&self) -> Option<String> {
        let settings = self.settings();
        let sign = if self.info.better == Better::Less {
            -1.0
        } else {
            1.0
        };
        let rank = |of: &Values<'_>| {
            of.median()
                // A setting without a value is never the best.
                .map_or(f64::NEG_INFINITY, |median| sign * median)
        };
        let best = settings
            .iter()
            .max_by(|a, b| rank(&a.1).total_cmp(&rank(&b.1)))?;
        let sentence = best.1.sentence()?;

        Some(match settings.len() {
            1 => sentence,
            count => format!("{}, best of {count} settings: {sentence}", best.0),
        })
    }

    /// As [`Self::best`], where the interval has a place of its own.
    pub(super) fn best_median(&self) -> Option<String> {
        match self.settings().len() {
            1 => self.median_words(),
            _ => self.best(),
        }
    }

    /// `941 Mbit/s down`
    fn median_words(&self) -> Option<String> {
        let middle = value(&self.info, self.median()?);
        let what = match (self.info.measure, self.way.words()) {
            (MeasureName::ReceivedBps, None) => " received".to_owned(),
            (MeasureName::SentBps, None) => " sent".to_owned(),
            (MeasureName::IdleRttP50Ns, None) => " round trip without load".to_owned(),
            (MeasureName::OkPerS, None) => {
                let per_s = middle.trim_end_matches("/s");
                return Some(format!("{per_s} responses/s"));
            }
            (MeasureName::SentBps, Some(way)) => format!(" sent {way}"),
            (_, Some(way)) => format!(" {way}"),
            (_, None) => String::new(),
        };
        Some(format!("{middle}{what}"))
    }

    /// `941 Mbit/s down, median of 5 trials (lowest to highest: 940 to 942 Mbit/s)`
    pub(super) fn sentence(&self) -> Option<String> {
        let spread = self
            .interval()
            .map_or_else(String::new, |(low, high, interval)| {
                let [low, high] = [low, high].map(|end| value(&self.info, end));
                let low = without_unit_of(&low, &high);
                format!(
                    ", median of {} trials ({interval}: {low} to {high})",
                    self.values.len()
                )
            });
        Some(self.median_words()? + &spread)
    }
}

/// `streams 4, window 1M`
fn setting(trial: &Trial) -> String {
    let levels: Vec<String> = trial
        .factors
        .iter()
        .map(|(name, level)| format!("{name} {level}"))
        .collect();
    levels.join(", ")
}

/// Trials that count.
pub(super) fn counted(record: &RunRecord) -> impl Iterator<Item = &Trial> {
    let is_over = |trial: &&Trial| !trial.is_warm_up && !trial.state.has_failed();
    record.trials.iter().filter(is_over)
}

/// The report of its kind has all trials with what it compares.
pub(super) fn has_own_trials(record: &RunRecord) -> bool {
    match &record.body {
        Body::Sweep(found) => found.is_some(),
        Body::Fleet(run) => run.report.is_some(),
        _ => false,
    }
}

/// All measures of a run, in the order of the catalogue.
pub(super) fn all(record: &RunRecord) -> Vec<Values<'_>> {
    let mut found: BTreeMap<(usize, Way), Values<'_>> = BTreeMap::new();
    for trial in counted(record) {
        for measure in &trial.measures {
            let info = measure.name.info();
            let key = (measure.name as usize, measure.way);
            let values = found.entry(key).or_insert_with(|| Values {
                info,
                way: measure.way,
                values: Vec::new(),
            });
            values
                .values
                .push((trial, measure.value, measure.is_lower_bound));
        }
    }

    found.into_values().collect()
}

/// The measures that answer what a run was made for, one for each direction.
pub(super) fn primary<'a, 'b>(measures: &'b [Values<'a>]) -> Vec<&'b Values<'a>> {
    let of = |name: &MeasureName| {
        let values: Vec<_> = measures
            .iter()
            .filter(|values| values.info.measure == *name)
            .collect();
        (!values.is_empty()).then_some(values)
    };
    PRIMARY.iter().find_map(of).unwrap_or_default()
}

/// The measures that answer what a run was made for, with their intervals; none of a run with
/// settings.
pub(super) fn cards(measures: &[Values<'_>]) -> Vec<Card> {
    let primary = primary(measures).into_iter();
    let shown = primary.filter(|values| values.settings().len() == 1);
    let card = |values: &Values<'_>| {
        let middle = value(&values.info, values.median()?);
        let note = values.interval().map(|(low, high, what)| {
            let [low, high] = [low, high].map(|end| value(&values.info, end));
            format!("{low} to {high}: {what} of {} trials", values.values.len())
        });
        let name = match way(values.way) {
            "" => values.info.words(),
            way => way.to_owned(),
        };
        Some(Card::new(name, middle, note.unwrap_or_default()))
    };
    shown.filter_map(card).collect()
}

/// Median and interval of every measure.
pub(super) fn table(measures: &[Values<'_>]) -> Option<Table> {
    let has_several = measures.iter().any(|values| values.values.len() > 1);
    let head = if has_several { "median" } else { "value" };

    let middle = |values: &Values<'_>| {
        let is_lower_bound = values
            .values
            .iter()
            .any(|(_, _, is_lower_bound)| *is_lower_bound);
        values.median().map_or_else(
            || MISSING.to_owned(),
            |median| values.text(median, is_lower_bound),
        )
    };
    let mut table = Table::of("", "", measures)
        .text("figure", |values| values.info.meaning)
        .text("direction", |values| way(values.way))
        .number(head, middle);

    if has_several {
        let end = |values: &Values<'_>, at: usize| {
            let ends = values.interval().map(|(low, high, _)| [low, high]);
            ends.map_or_else(String::new, |ends| value(&values.info, ends[at]))
        };
        table = table
            .number("from", move |values| end(values, 0))
            .number("to", move |values| end(values, 1))
            .number("trials", |values| values.values.len().to_string());
        let what = measures
            .iter()
            .filter_map(Values::interval)
            .map(|(.., what)| what);
        let what: BTreeSet<&str> = what.collect();
        table = table.notes(
            what.into_iter()
                .map(|what| format!("from, to: {what} of the trials")),
        );
    }

    table.non_empty()
}

/// One row per trial.
pub(super) fn trials(record: &RunRecord, measures: &[Values<'_>]) -> Option<Table> {
    // The only trial is the run itself.
    if record.trials.len() < 2 {
        return None;
    }

    let cell = |trial: &Trial, values: &Values<'_>| -> Cell {
        let found = values.values.iter().find(|(of, ..)| of.no == trial.no);
        found
            .map_or_else(
                || MISSING.to_owned(),
                |(_, number, bound)| values.text(*number, *bound),
            )
            .into()
    };
    let state = |trial: &Trial| {
        let warm_up = trial.is_warm_up.then_some("warm-up");
        let reason = trial.reason.as_deref();
        let state = trial.state.words();
        let words = warm_up.into_iter().chain([state]).chain(reason);
        words
            .chain(trial.flags.iter().map(String::as_str))
            .collect::<Vec<_>>()
            .join(", ")
    };

    let mut table =
        // Reports number trials from 1, records from 0.
        Table::of("", "", &record.trials).number("trial", |trial| (trial.no + 1).to_string());
    if record.trials.iter().any(|trial| !trial.factors.is_empty()) {
        table = table.text("setting", setting);
    }

    table = table.number("start", |trial| {
        Unit::Nanoseconds.text(trial.started_ns as f64)
    });
    let shown: Vec<usize> = (0..measures.len()).collect();

    let head = |at: usize| {
        let name = measures[at].info.words();
        match measures[at].way.words() {
            Some(way) => format!("{name} {way}"),
            None => name,
        }
    };
    let table = table.numbers(shown, head, |trial, at| cell(trial, &measures[at]));
    Some(table.text("state", state).table())
}
