//! Limits for the measures of a run: `rx>=900M,retr<10,p99<5ms,all:loss<=0.1%`.

use std::fmt;
use std::str::FromStr;

use linerate_model::measure::{MeasureName, Unit, path_names, path_target, why_absent};
use linerate_model::path::PathReport;
use linerate_model::printable::printable;
use linerate_model::record::{Detail, Measure, RunState, Trial, Way};
use linerate_model::stats::median;
use thiserror::Error;

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
    fn of(name: &str) -> Option<Self> {
        let (plain, way) = match name.rsplit_once('.') {
            Some((name, "forward")) => (name, Some(Way::Forward)),
            Some((name, "reverse")) => (name, Some(Way::Reverse)),
            _ => (name, None),
        };
        let other = plain.parse().ok().map(|measure| (measure, way));
        match (path_target(name), other) {
            (Some(of_path), Some(other)) if of_path != other => {
                Some(Self::Different { of_path, other })
            }
            (_, Some(other)) => Some(Self::Same(other)),
            (of_path, None) => of_path.map(Self::OfPath),
        }
    }

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

/// The longer ones first, so that `<=` is not read as `<`.
const OPERATORS: [(&str, Operator); 5] = [
    ("<=", Operator::AtMost),
    (">=", Operator::AtLeast),
    ("<", Operator::Less),
    (">", Operator::More),
    ("=", Operator::Equal),
];

/// A text that is no list of limits.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{reason}\n  {text}\n  {:>place$}", "^", place = at + 1)]
pub struct ExpectError {
    /// The clause as typed.
    text: String,
    /// Character it fails at, from 0.
    at: usize,
    reason: String,
}

/// A limit that a run missed.
#[derive(Debug, Clone, PartialEq)]
pub struct Missed {
    /// The limit as typed.
    pub clause: String,
    /// Direction of the measure, where the run has several: `forward` and `reverse`, or `up` and
    /// `down` of a path.
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

                match value.total_cmp(bound).is_eq() {
                    true => write!(f, "{trial}{}, which is the limit itself", unit.text(*value)),
                    false => write!(
                        f,
                        "{trial}{}, {distance}{share} {side} {}",
                        unit.text(*value),
                        unit.text(*bound)
                    ),
                }
            }
        }
    }
}

impl Expectations {
    /// Limits that the trials missed, in the order in which they were typed.
    #[must_use]
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
        let is_of_path = trials.iter().any(|trial| path(trial).is_some());

        let of_way = |way: Way| {
            let measure = target.0;
            let found = match self.is_for_all {
                true => self.missed_by_any(trials, measure, way),
                false => self.missed_by_median(trials, measure, way),
            };
            let way = has_several.then(|| way_name(way, is_of_path));
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

const fn way_name(way: Way, is_of_path: bool) -> &'static str {
    match (way, is_of_path) {
        (Way::Forward, false) => "forward",
        (Way::Reverse, false) => "reverse",
        (Way::Forward, true) => "up",
        (Way::Reverse, true) => "down",
        (Way::Sum, _) => "both",
    }
}

fn value(trial: &Trial, name: MeasureName, way: Way) -> Option<f64> {
    let is_it = |measure: &&Measure| {
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

impl FromStr for Expectations {
    type Err = ExpectError;

    fn from_str(text: &str) -> Result<Self, ExpectError> {
        let (mut clauses, mut at) = (Vec::new(), 0);
        for part in text.split(',') {
            // The error has as many characters as the text, so that its place is below the
            // character.
            let wrong = |(offset, reason): Wrong| ExpectError {
                text: printable(text),
                at: at + offset,
                reason: printable(&reason),
            };
            clauses.push(clause(part).map_err(wrong)?);
            at += part.chars().count() + 1;
        }

        Ok(Self(clauses))
    }
}

/// An error: the character at which it is, and its description.
type Wrong = (usize, String);

fn clause(text: &str) -> Result<Clause, Wrong> {
    let characters = |bytes: usize| text[..bytes].chars().count();
    let place = text.find(['<', '>', '=']);
    let at = place.ok_or_else(|| {
        (
            characters(text.len()),
            "expected <, <=, >, >= or = behind the measure, as in rx>=900M".to_owned(),
        )
    })?;
    let (sign, operator) = OPERATORS
        .into_iter()
        .find(|(sign, _)| text[at..].starts_with(sign))
        .unwrap_or(OPERATORS[4]);
    let (left, bound_text) = (&text[..at], &text[at + sign.len()..]);
    let (is_for_all, name) = left
        .trim()
        .strip_prefix("all:")
        .map_or((false, left.trim()), |name| (true, name));
    let name_at = characters(text.find(name).unwrap_or(0));
    let names = Names::of(name).ok_or_else(|| (name_at, unknown_measure(name)))?;
    let bound_at = characters(at + sign.len());
    let (bound, is_bare) =
        bound(bound_text.trim(), names.measure()).map_err(|reason| (bound_at, reason))?;

    Ok(Clause {
        text: text.trim().to_owned(),
        is_for_all,
        names,
        operator,
        bound,
        is_bare,
    })
}

/// Names a measure may have been meant by one that there is not.
#[must_use]
pub fn unknown_measure(name: &str) -> String {
    let catalogue = MeasureName::all().flat_map(|info| info.short.into_iter().chain([info.name]));
    let mut names: Vec<&str> = catalogue.chain(path_names()).collect();
    names.sort_by_key(|known| (strsim::levenshtein(known, name), known.len()));
    names.dedup();

    format!(
        "there is no measure \"{name}\"; near it: {}",
        names[..3].join(", ")
    )
}

/// Suffixes of each unit, and what they multiply with.
fn suffixes(unit: Unit) -> &'static [(&'static str, f64)] {
    const DECIMAL: &[(&str, f64)] = &[
        ("", 1.0),
        ("K", 1e3),
        ("k", 1e3),
        ("M", 1e6),
        ("G", 1e9),
        ("T", 1e12),
    ];

    match unit {
        Unit::BitsPerSecond | Unit::BytesPerSecond | Unit::PerSecond | Unit::Count => DECIMAL,
        Unit::Nanoseconds => &[
            ("ns", 1.0),
            ("us", 1e3),
            ("µs", 1e3),
            ("ms", 1e6),
            ("s", 1e9),
        ],
        Unit::Share => &[("", 1.0), ("%", 0.01)],
        Unit::Bytes => &[("", 1.0), ("B", 1.0)],
        Unit::RoundTripsPerMinute => &[("", 1.0), ("RPM", 1.0)],
        Unit::Cores | Unit::SecondsPerGib | Unit::OpinionScore | Unit::Grade | Unit::Confidence => {
            &[("", 1.0)]
        }
    }
}

/// A bound in the unit of the measure, and whether it came without a suffix.
fn bound(text: &str, measure: MeasureName) -> Result<(f64, bool), String> {
    let unit = measure.info().unit;
    if !unit.scale().is_empty() {
        let unknown = || {
            format!(
                "expected one of {}, found \"{text}\"",
                unit.scale().join(", ")
            )
        };
        return unit
            .position(text)
            .map(|place| (place, false))
            .ok_or_else(unknown);
    }

    let digits = text.len()
        - text
            .trim_start_matches(|c: char| c.is_ascii_digit() || c == '.')
            .len();
    let (number, suffix) = text.split_at(digits);
    let suffixes = suffixes(unit);
    let factor = suffixes
        .iter()
        .find(|(known, _)| *known == suffix)
        .map(|(_, factor)| factor);

    let number: Option<f64> = number.parse().ok();
    match (number, factor) {
        (Some(number), Some(factor)) => Ok((number * factor, suffix.is_empty())),
        (None, _) => Err(format!("expected a number, found \"{text}\"")),
        (Some(_), None) => {
            let names: Vec<&str> = suffixes
                .iter()
                .map(|(name, _)| *name)
                .filter(|name| !name.is_empty())
                .collect();
            let known = if names.is_empty() {
                "none".to_owned()
            } else {
                names.join(", ")
            };

            let found = if suffix.is_empty() {
                "no unit".to_owned()
            } else {
                format!("unit \"{suffix}\"")
            };
            Err(format!(
                "{found} behind the number; units of {measure}: {known}"
            ))
        }
    }
}

impl fmt::Display for Expectations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<&str> = self.0.iter().map(|clause| clause.text.as_str()).collect();
        f.write_str(&texts.join(","))
    }
}

#[cfg(test)]
mod tests {
    use linerate_model::measure::of_path;
    use serde_json::json;

    use super::*;

    fn trial(no: u32, measures: &[(MeasureName, Way, f64)]) -> Trial {
        let measure =
            |(name, way, value): &(MeasureName, Way, f64)| Measure::new(*name, *way, *value);
        let mut trial = Trial::complete(1);
        trial.no = no;
        trial.repeat = no;
        trial.measures = measures.iter().map(measure).collect();
        trial
    }

    fn missed(expectations: &str, trials: &[Trial]) -> Vec<String> {
        let expectations: Expectations = expectations.parse().expect("well-formed");
        expectations
            .missed(&trials.iter().collect::<Vec<_>>())
            .into_iter()
            .map(|missed| missed.clause)
            .collect()
    }

    const RX: MeasureName = MeasureName::ReceivedBps;

    #[test]
    fn every_operator_and_unit_has_its_meaning() {
        let trials = [trial(
            0,
            &[
                (RX, Way::Forward, 900e6),
                (MeasureName::LatencyP99Ns, Way::Sum, 5e6),
                (MeasureName::LostShare, Way::Forward, 0.001),
                (MeasureName::Retransmits, Way::Forward, 10.0),
            ],
        )];
        let held = "rx>=900M,rx<=0.9G,rx=900000K,rx>899M,rx<901M,p99<=5ms,p99=5000us,p99>4999999ns,loss<=0.1%,loss=0.001";
        assert_eq!(missed(held, &trials), Vec::<String>::new());

        let broken = "rx>900M,rx<900M,rx>=901M,rx=1G,p99<5ms,loss<0.1%,retr<10,received_bps>0.9G";
        assert_eq!(missed(broken, &trials).join(","), broken);
    }

    #[test]
    fn the_median_counts_or_with_all_every_trial() {
        let trials = [850e6, 950e6, 960e6].map(|rx| trial(1, &[(RX, Way::Forward, rx)]));
        assert_eq!(missed("rx>=900M", &trials), Vec::<String>::new());
        assert_eq!(missed("all:rx>=900M", &trials), ["all:rx>=900M"]);
        assert_eq!(missed("all:rx>=800M", &trials), Vec::<String>::new());
    }

    #[test]
    fn without_a_direction_each_must_hold() {
        let trials = [trial(
            0,
            &[(RX, Way::Forward, 9e8), (RX, Way::Reverse, 1e8)],
        )];
        assert_eq!(missed("rx>=800M", &trials).len(), 1);
        assert_eq!(missed("rx.forward>=800M", &trials), Vec::<String>::new());
        assert_eq!(missed("rx.reverse>=800M", &trials).len(), 1);

        let found = "rx>=800M"
            .parse::<Expectations>()
            .expect("well-formed")
            .missed(&[&trials[0]]);
        let line = "rx>=800M: reverse: 100 Mbit/s, 700 Mbit/s (87.5 %) below 800 Mbit/s";
        assert_eq!(found[0].to_string(), line);
    }

    #[test]
    fn what_was_not_measured_is_missed_with_its_reason() {
        let expectations: Expectations = "p99<5ms".parse().expect("well-formed");
        let measured = trial(0, &[(RX, Way::Forward, 9e8)]);
        let found = expectations.missed(&[&measured]);
        assert_eq!(
            found[0].found,
            Found::Nothing("latency_p99_ns was not measured".to_owned())
        );

        let mut failed = measured;
        failed.state = RunState::Failed;
        failed.reason = Some("connection refused".to_owned());

        let found = expectations.missed(&[&failed]);
        assert_eq!(
            found[0].found,
            Found::Nothing("no complete trial: connection refused".to_owned())
        );
        assert_eq!(expectations.missed(&[]).len(), 1);
    }

    /// A path of 95.5 Mbit/s down and 19.1 Mbit/s up, without datagrams and without a 99th
    /// percentile up.
    fn path_trial() -> Trial {
        let delay = |p50: i64, p99: Option<i64>| json!({"n": 1400, "lost": 9, "p50_ns": p50, "p95_ns": p50, "p99_ns": p99});
        let load = |kind: &str, p99: Option<i64>, rpm: f64, more: serde_json::Value| {
            let mut phase = json!({"kind": kind, "confidence": "high", "streams": 4, "rtt": delay(112_000_000, p99),
                "added_p50_ns": 99_600_000, "rpm": rpm});
            phase
                .as_object_mut()
                .expect("an object")
                .extend(more.as_object().expect("an object").clone());
            phase
        };

        let report: PathReport = serde_json::from_value(json!({
            "schema": "linerate.path/1", "state": "complete", "profile": "default", "elapsed_ns": 27_000_000_000_u64,
            "bytes_sent": 1, "bytes_received": 2, "resumed": 0,
            "target": {"host": "lab.example", "port": 5201, "address": "192.0.2.7", "family": "ipv4", "dialect": "native",
                "identity": "known"},
            "size": {"up": {"mtu": 1400, "how": "reported"}, "down": {"mtu": 1500, "how": "unlimited"}},
            "idle": {"rtt": {"n": 200, "lost": 0, "p50_ns": 12_400_000}},
            "phases": [
                load("down", Some(113_600_000), 517.0, json!({"down_bps": 95.5e6})),
                load("up", None, 522.0, json!({"up_bps": 19.1e6, "up_retransmits": 12})),
                load("both", Some(219_000_000), 283.0, json!({"down_bps": 94.1e6, "up_bps": 18.7e6, "confidence": "medium"})),
            ],
            "grade": {"letter": "C", "added_ns": 97_600_000, "probe": "udp"},
            "voice": {"loaded_mos": 4.3},
            "absent": {"datagrams": "UDP is blocked"},
        }))
        .expect("a report");
        let mut trial = trial(0, &[]);
        trial.measures = of_path(&report);
        trial.detail = Some(Detail::Path(Box::new(report)));

        trial
    }

    #[test]
    fn names_have_the_meaning_of_the_run_they_are_held_against() {
        let trials = [path_trial()];
        let held = "down>=95M,rx>=95M,up>19M,rx.forward<20M,both.down>94M,both.up<19M,idle.p50<=12.4ms,p50=112ms,p95>100ms,\
                    down.p99<114ms,both.p99=219ms,added<100ms,grade<=C,grade>=D,grade>F,rpm>=500,rpm.down=517,rpm.up>=522RPM,\
                    retr<=12,mos>=4.2,mtu>=1400,mtu.down=1500,confidence>=high,confidence.both=medium,all:rpm>500";
        assert_eq!(missed(held, &trials), Vec::<String>::new());

        let broken = "down>96M,rx>=900M,up>20M,grade>=B,grade=A+,rpm>=520,mtu>1400,confidence.both>medium,p50<5ms";
        let mut found = missed(broken, &trials);
        found.dedup();
        assert_eq!(found.join(","), broken);

        let http = [trial(0, &[(MeasureName::LatencyP99Ns, Way::Sum, 4e6)])];
        assert_eq!(missed("p99<5ms", &http), Vec::<String>::new());
        assert_eq!(missed("grade>=F", &http), ["grade>=F"]);
    }

    #[test]
    fn a_limit_of_a_path_is_missed_in_the_words_of_a_path() {
        let trials = [path_trial()];
        for (limit, line) in [
            (
                "rx>=191M",
                "rx>=191M: 95.5 Mbit/s, 95.5 Mbit/s (50.0 %) below 191 Mbit/s",
            ),
            ("grade>=B", "grade>=B: C, below B"),
            (
                "confidence.both=high",
                "confidence.both=high: medium, below high",
            ),
            (
                "added<30ms",
                "added<30ms: up: 99.6 ms, 69.6 ms (232.0 %) above 30.0 ms",
            ),
            ("loss<1%", "loss<1%: lost_share is absent: UDP is blocked"),
            (
                "all:reorder<1%",
                "all:reorder<1%: reordered_share is absent: UDP is blocked",
            ),
            (
                "up.p99<30ms",
                "up.p99<30ms: loaded_rtt_p99_ns is absent: 9 of 1409 probes were lost, or they are \
                 too few for this percentile",
            ),
            (
                "idle.p99<5ms",
                "idle.p99<5ms: idle_rtt_p99_ns is absent: 200 probes are too few for this \
                 percentile",
            ),
            (
                "one_way_p50_ns<1s",
                "one_way_p50_ns<1s: one_way_p50_ns was not measured",
            ),
        ] {
            let limits: Expectations = limit.parse().expect("well-formed");
            let missed = limits.missed(&[&trials[0]]);
            assert_eq!(
                missed.first().map(ToString::to_string).as_deref(),
                Some(line)
            );
        }
    }

    #[test]
    fn errors_point_at_the_character_and_name_what_is_near() {
        let rows = [
            ("foo>1", 0, "there is no measure \"foo\""),
            ("rx>=900M,retx<10", 9, "near it: retr"),
            ("rx>900X", 3, "unit \"X\""),
            ("p99<5", 4, "units of latency_p99_ns: ns, us"),
            ("rx", 2, "expected <"),
            ("rx>", 3, "expected a number"),
            ("rx>=-1", 4, "expected a number"),
            ("", 0, "expected <"),
            ("rx>1,", 5, "expected <"),
            ("rpm>=100,dwn>1M", 9, "near it: down"),
            ("down.p98<5ms", 0, "there is no measure \"down.p98\""),
            (
                "grade>=G",
                7,
                "expected one of F, D, C, B, A, A+, found \"G\"",
            ),
            ("confidence>=2", 12, "expected one of low, medium, high"),
            ("idle.p50<5", 9, "units of idle_rtt_p50_ns: ns, us"),
        ];
        for (text, at, reason) in rows {
            let error = text.parse::<Expectations>().expect_err(text);
            assert!(
                error.at == at && error.reason.contains(reason),
                "{text}: {error:?}"
            );
        }

        let error = "rx>900X"
            .parse::<Expectations>()
            .expect_err("wrong unit")
            .to_string();
        assert!(error.ends_with("\n  rx>900X\n     ^"), "{error}");

        let notes: Vec<String> = "rx>900,retr<10,rx>9M"
            .parse::<Expectations>()
            .expect("fine")
            .notes()
            .collect();
        assert_eq!(notes, ["rx>900: 900 bit/s"]);
    }
}
