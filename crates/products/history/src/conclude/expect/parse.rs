//! Limits as they are typed.

use std::str::FromStr;

use linerate_model::measure::{MeasureName, Unit, path_names, path_target};
use linerate_model::printable::printable;
use linerate_model::record::Way;
use thiserror::Error;

use super::{Clause, Expectations, Names, Operator};

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
    pub(super) at: usize,
    pub(super) reason: String,
}

impl FromStr for Expectations {
    type Err = ExpectError;

    fn from_str(text: &str) -> Result<Self, ExpectError> {
        let mut clauses = Vec::new();
        let mut at = 0;
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
    let left = &text[..at];
    let bound_text = &text[at + sign.len()..];
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
pub fn unknown_measure(name: &str) -> String {
    let catalogue = MeasureName::all().flat_map(|info| info.short.into_iter().chain([info.name]));
    let mut names: Vec<&str> = catalogue.chain(path_names()).collect();
    names.sort_by_key(|known| (strsim::levenshtein(known, name), *known));
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

impl Names {
    fn of(name: &str) -> Option<Self> {
        let (plain, way) = match name.rsplit_once('.') {
            Some((name, "up" | "forward")) => (name, Some(Way::Forward)),
            Some((name, "down" | "reverse")) => (name, Some(Way::Reverse)),
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
}
