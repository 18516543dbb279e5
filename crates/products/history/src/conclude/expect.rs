//! Limits for the measures of a run: `rx>=900M,retr<10,p99<5ms,all:loss<=0.1%`.

pub mod parse;

use std::fmt;

use linerate_model::measure::{MeasureName, Unit, why_absent};
use linerate_model::path::PathReport;
use linerate_model::record::{Detail, Measure, RunState, Trial, Way};
use linerate_model::stats::median;

/// Limits, all of which must hold.
#[derive(Debug, Clone, PartialEq)]
pub struct Expectations(Vec<Clause>);

/// Bounds are typed as digits, so they are equal to themselves.
impl Eq for Expectations {}

/// One limit.
#[derive(Debug, Clone, PartialEq)]
struct Clause {
    /// As typed.
    text: String,
    /// Every trial must hold it, not only their median.
    is_for_all: bool,
    names: Names,
    operator: Operator,
    bound: f64,
    /// The bound was typed without a unit.
    is_bare: bool,
}

/// Meaning of the name of a clause. Both measures have one unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Names {
    /// In tests of a path only.
    OfPath(Target),
    /// In other runs only, or in all.
    Same(Target),
    /// Another measure in tests of a path.
    Different { of_path: Target, other: Target },
}

/// A measure and a direction; `None` for every direction that was measured.
type Target = (MeasureName, Option<Way>);

impl Names {
    fn target(self, trials: &[&Trial]) -> Target {
        match self {
            Self::OfPath(target) | Self::Same(target) => target,
            Self::Different { of_path, .. } if trials.iter().any(|trial| path(trial).is_some()) => {
                of_path
            }
            Self::Different { other, .. } => other,
        }
    }

    /// Any of the measures, for its unit.
    fn measure(self) -> MeasureName {
        let (Self::OfPath((measure, _))
        | Self::Same((measure, _))
        | Self::Different {
            other: (measure, _),
            ..
        }) = self;
        measure
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Less,
    AtMost,
    More,
    AtLeast,
    Equal,
}

/// A limit that a run missed.
#[derive(Debug, Clone, PartialEq)]
pub struct Missed {
    /// The limit as typed.
    pub clause: String,
    /// Direction of the measure, where the run has several: `up`, `down`, or `both`.
    pub way: Option<&'static str>,
    /// The value that was found.
    pub found: Found,
}

/// The value of a run to which a limit applies.
#[derive(Debug, Clone, PartialEq)]
pub enum Found {
    /// A value beyond the limit.
    Value {
        /// The value.
        value: f64,
        /// The limit.
        bound: f64,
        /// Unit of both.
        unit: Unit,
        /// Number of the trial; `None` for the median of all.
        trial: Option<u32>,
    },
    /// No value, for this reason.
    Nothing(String),
}

/// `rx>=900M: 853 Mbit/s, 47.0 Mbit/s (5.2 %) below 900 Mbit/s`
impl fmt::Display for Missed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.clause)?;
        if let Some(way) = self.way {
            write!(f, "{way}: ")?;
        }

        match &self.found {
            Found::Nothing(reason) => f.write_str(reason),
            Found::Value {
                value,
                bound,
                unit,
                trial,
            } => {
                let trial = trial.map_or_else(String::new, |no| format!("trial {no}: "));
                let distance = unit.text((value - bound).abs());
                let percent = 100.0 * (value - bound).abs() / bound.abs();
                // A limit of 0 has no share.
                let share = if bound.abs() > 0.0 {
                    format!(" ({percent:.1} %)")
                } else {
                    String::new()
                };

                let side = if value < bound { "below" } else { "above" };
                // A ratio of shares has no meaning: 59.6 % would be 5860 % above 1 %.
                let is_bare = unit == &Unit::Share || !unit.scale().is_empty();
                if is_bare && value.total_cmp(bound).is_ne() {
                    return write!(
                        f,
                        "{trial}{}, {side} {}",
                        unit.text(*value),
                        unit.text(*bound)
                    );
                }

                if value.total_cmp(bound).is_eq() {
                    write!(f, "{trial}{}, which is the limit itself", unit.text(*value))
                } else {
                    write!(
                        f,
                        "{trial}{}, {distance}{share} {side} {}",
                        unit.text(*value),
                        unit.text(*bound)
                    )
                }
            }
        }
    }
}

impl Expectations {
    /// Limits that the trials missed, in the order in which they were typed.
    pub fn missed(&self, trials: &[&Trial]) -> Vec<Missed> {
        let trials: Vec<&Trial> = trials
            .iter()
            .filter(|trial| !trial.is_warm_up)
            .copied()
            .collect();
        self.0
            .iter()
            .flat_map(|clause| clause.missed(&trials))
            .collect()
    }

    /// Notes on the unit of limits that were typed without one.
    pub fn notes(&self) -> impl Iterator<Item = String> {
        let is_large = |clause: &&Clause| clause.is_bare && clause.unit_name().is_some();
        let note = |clause: &Clause| {
            format!(
                "{}: {} {}",
                clause.text,
                clause.bound,
                clause.unit_name().unwrap_or_default()
            )
        };
        self.0.iter().filter(is_large).map(note)
    }
}

impl Clause {
    fn missed(&self, trials: &[&Trial]) -> Vec<Missed> {
        let target = self.names.target(trials);
        let ways = ways(trials, target);
        if ways.is_empty() {
            return vec![self.nothing(absence(trials, target))];
        }

        let has_several = ways.len() > 1;
        let of_way = |way: Way| {
            let measure = target.0;
            let found = if self.is_for_all {
                self.missed_by_any(trials, measure, way)
            } else {
                self.missed_by_median(trials, measure, way)
            };
            let way = has_several.then(|| way.words().unwrap_or("both"));
            Some(Missed {
                clause: self.text.clone(),
                way,
                found: found?,
            })
        };
        ways.into_iter().filter_map(of_way).collect()
    }

    fn missed_by_median(&self, trials: &[&Trial], measure: MeasureName, way: Way) -> Option<Found> {
        let values: Vec<f64> = trials
            .iter()
            .filter_map(|trial| value(trial, measure, way))
            .collect();
        let middle = median(&values)?;
        (!self.holds(middle)).then(|| self.value(middle, None))
    }

    fn missed_by_any(&self, trials: &[&Trial], measure: MeasureName, way: Way) -> Option<Found> {
        trials
            .iter()
            .find_map(|trial| match value(trial, measure, way) {
                Some(value) if self.holds(value) => None,
                Some(value) => Some(self.value(value, Some(trial.no))),
                None => {
                    let reason = absence(&[*trial], (measure, Some(way)));
                    Some(Found::Nothing(format!("trial {}: {reason}", trial.no)))
                }
            })
    }

    fn value(&self, value: f64, trial: Option<u32>) -> Found {
        Found::Value {
            value,
            bound: self.bound,
            unit: self.names.measure().info().unit,
            trial,
        }
    }

    fn nothing(&self, reason: String) -> Missed {
        Missed {
            clause: self.text.clone(),
            way: None,
            found: Found::Nothing(reason),
        }
    }

    fn holds(&self, value: f64) -> bool {
        // One part in 10⁹ is lost in conversions.
        let distance = (value - self.bound).abs();
        let is_equal = distance <= 1e-9 * self.bound.abs();

        match self.operator {
            Operator::Less => value < self.bound && !is_equal,
            Operator::AtMost => value < self.bound || is_equal,
            Operator::More => value > self.bound && !is_equal,
            Operator::AtLeast => value > self.bound || is_equal,
            Operator::Equal => is_equal,
        }
    }

    fn unit_name(&self) -> Option<&'static str> {
        match self.names.measure().info().unit {
            Unit::BitsPerSecond => Some("bit/s"),
            Unit::BytesPerSecond => Some("byte/s"),
            _ => None,
        }
    }
}

/// The directions to check: the one that was typed, or each that has values; the sum where there
/// is only that.
fn ways(trials: &[&Trial], (measure, way): Target) -> Vec<Way> {
    let is_measured = |way: &Way| {
        trials
            .iter()
            .any(|trial| value(trial, measure, *way).is_some())
    };
    let chosen = way.map_or_else(|| vec![Way::Forward, Way::Reverse], |way| vec![way]);
    let found: Vec<Way> = chosen.into_iter().filter(is_measured).collect();
    let sum = [Way::Sum]
        .into_iter()
        .filter(|sum| found.is_empty() && way.is_none() && is_measured(sum));

    sum.chain(found.iter().copied()).collect()
}

/// Report of a trial on a path; `None` of one that did something else.
fn path(trial: &Trial) -> Option<&PathReport> {
    match &trial.detail {
        Some(Detail::Path(report)) => Some(&**report),
        _ => None,
    }
}

fn value(trial: &Trial, name: MeasureName, way: Way) -> Option<f64> {
    let is_it = |measure: &&Measure| {
        // Values of a trial that was cut off are those of a shorter time than the limit is for.
        measure.name == name && measure.way == way && trial.state == RunState::Complete
    };
    trial
        .measures
        .iter()
        .find(is_it)
        .map(|measure| measure.value)
}

/// Why no trial has a value.
fn absence(trials: &[&Trial], (measure, way): Target) -> String {
    let of_path = trials.iter().filter_map(|trial| path(trial));
    if let Some(reason) = of_path
        .filter_map(|report| why_absent(report, measure, way))
        .next()
    {
        return format!("{measure} is absent: {reason}");
    }

    let complete = trials.iter().any(|trial| trial.state == RunState::Complete);
    let reason = trials.iter().find_map(|trial| trial.reason.clone());
    match (complete, reason) {
        (true, _) => format!("{measure} was not measured"),
        (false, Some(reason)) => format!("no complete trial: {reason}"),
        (false, None) => "no complete trial".to_owned(),
    }
}

impl fmt::Display for Expectations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<&str> = self.0.iter().map(|clause| clause.text.as_str()).collect();
        f.write_str(&texts.join(","))
    }
}

#[cfg(test)]
mod tests;
