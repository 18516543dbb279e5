//! A record as JSON.

use linerate_model::record::{RUN_SCHEMA, RunRecord, Series, Times};
use serde_json::Value;
use thiserror::Error;

pub use super::bounds::FILE_MAX_BYTES;
use super::bounds::{self, TEXT_MAX_BYTES};

/// Text that is no record, or none of this version.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TextError {
    /// The text ends in the middle.
    #[error("the record is truncated: it ends inside {0}")]
    Truncated(String),
    /// No JSON.
    #[error("no JSON: {0}")]
    NotJson(String),
    /// A bound is exceeded.
    #[error("{member}: {bound}")]
    Bound {
        /// The member.
        member: String,
        /// The bound.
        bound: String,
    },
    /// Another schema.
    #[error("schema {0}: this version reads {RUN_SCHEMA}")]
    Schema(String),
    /// A member has another type, or is missing.
    #[error("{member}: {reason}")]
    Member {
        /// The member.
        member: String,
        /// The error in it.
        reason: String,
    },
}

/// Reads a record.
///
/// # Errors
/// The member and the bound that it exceeds, the schema that was found, or the member that is
/// wrong.
pub fn read(text: &str) -> Result<RunRecord, TextError> {
    if text.len() > FILE_MAX_BYTES {
        return Err(TextError::Bound {
            member: "record".into(),
            bound: format!("longer than {FILE_MAX_BYTES} bytes"),
        });
    }

    let (scan, outcome) = bounds::scan(text);
    let member = || {
        if scan.member.is_empty() {
            "the record".to_owned()
        } else {
            scan.member.clone()
        }
    };
    if let Some(bound) = scan.exceeded {
        return Err(TextError::Bound {
            member: member(),
            bound,
        });
    }

    outcome.map_err(|error| {
        if error.is_eof() {
            TextError::Truncated(member())
        } else {
            TextError::NotJson(error.to_string())
        }
    })?;
    match scan.schema {
        Some(schema) if schema == RUN_SCHEMA => {}
        Some(schema) => return Err(TextError::Schema(schema.chars().take(64).collect())),
        None => return Err(TextError::Schema("is missing".into())),
    }

    let record: RunRecord =
        serde_json::from_str(text).map_err(|error| wrong_member(text, &error))?;
    check_times(&record)?;
    Ok(record)
}

/// A record on one line, members in the order of the types. Texts beyond the bound of a reader are
/// cut.
pub fn write(record: &RunRecord) -> String {
    // A record has text keys and no maps of other types, so it always has a text.
    let text = serde_json::to_string(record).unwrap_or_default();
    if bounds::scan(&text).1.is_ok() {
        return text;
    }

    let mut value: Value = serde_json::from_str(&text).unwrap_or_default();
    cut(&mut value);
    value.to_string()
}

/// The member in which the types differ: the one before the place where the reader stopped, or the
/// one around it if it lacks one.
fn wrong_member(text: &str, error: &serde_json::Error) -> TextError {
    let line: usize = text
        .split_inclusive('\n')
        .take(error.line().saturating_sub(1))
        .map(str::len)
        .sum();
    let reason = error.to_string();
    let reason = reason
        .split(" at line ")
        .next()
        .unwrap_or(&reason)
        .to_owned();
    let is_missing = reason.starts_with("missing field");
    let mut end = (line + error.column())
        .saturating_sub(usize::from(is_missing))
        .min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }

    let scan = bounds::scan(&text[..end]).0;
    let member = if is_missing {
        scan.member
    } else {
        scan.entered
    };
    TextError::Member {
        member: if member.is_empty() {
            "the record".into()
        } else {
            member
        },
        reason,
    }
}

fn check_times(record: &RunRecord) -> Result<(), TextError> {
    for (no, trial) in record.trials.iter().enumerate() {
        for (at, series) in trial.series.iter().enumerate() {
            let reason = match times_fault(series) {
                Some(reason) => reason.to_owned(),
                None => continue,
            };
            return Err(TextError::Member {
                member: format!("trials[{no}].series[{at}].ends_ns"),
                reason,
            });
        }
    }

    Ok(())
}

fn times_fault(series: &Series) -> Option<&'static str> {
    let Times::Ends { t0_ns, ends_ns } = &series.times else {
        return None;
    };
    if ends_ns.len() != series.values.len() {
        return Some("not as many as values");
    }

    let is_sorted = ends_ns.is_sorted() && ends_ns.first().is_none_or(|end| end >= t0_ns);
    (!is_sorted).then_some("not in ascending order")
}

fn cut(value: &mut Value) {
    match value {
        Value::String(text) if text.len() > TEXT_MAX_BYTES => {
            let mut end = TEXT_MAX_BYTES;
            while !text.is_char_boundary(end) {
                end -= 1;
            }
            text.truncate(end);
        }
        Value::Array(items) => items.iter_mut().for_each(cut),
        Value::Object(members) => members.values_mut().for_each(cut),
        _ => {}
    }
}
