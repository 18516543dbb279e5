//! The names of series, and numbers of nested values under dotted names.

use serde_json::{Map, Number, Value};

/// Series of the starts of intervals, where one does not begin at the end of the one before.
pub(crate) const START: &str = "start_ns";
/// Prefixes of the extremes of merged neighbours.
pub(crate) const MIN: &str = "min.";
pub(crate) const MAX: &str = "max.";
/// Prefix of what is in the metrics of an interval.
pub(crate) const METRICS: &str = "metrics.";
/// Members of a UDP interval; all other names without a prefix are members of a TCP interval.
pub(crate) const UDP: [&str; 4] = ["packets", "lost", "out_of_order", "jitter_s"];

/// Series that count from interval to interval: merged neighbours are added. Of the others the
/// later value stays.
const COUNTERS: [&str; 9] = [
    "bytes",
    "retransmits",
    "dsack_segments",
    "limits.busy_us",
    "limits.rwnd_limited_us",
    "limits.sndbuf_limited_us",
    "packets",
    "lost",
    "out_of_order",
];

pub(crate) fn is_counter(name: &str) -> bool {
    COUNTERS.contains(&name)
        || name.strip_prefix(METRICS).is_some_and(|name| {
            let counts = ["writes.", "reads.", "frames."];
            counts.iter().any(|group| name.starts_with(group)) || name == "datagrams_received"
        })
}

/// Passes every number in `value` with its dotted name. Histograms have no fixed number of bins and
/// are left out.
pub(crate) fn flatten(prefix: &str, value: &Value, found: &mut impl FnMut(&str, f64)) {
    let mut inner = |name: &str, value: &Value| match value {
        Value::Number(number) => {
            number
                .as_f64()
                .into_iter()
                .for_each(|number| found(&format!("{prefix}{name}"), number));
        }
        Value::Object(_) | Value::Array(_) if name != "histograms" => {
            flatten(&format!("{prefix}{name}."), value, found);
        }
        _ => {}
    };
    match value {
        Value::Object(members) => members.iter().for_each(|(name, value)| inner(name, value)),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .for_each(|(at, value)| inner(&at.to_string(), value)),
        _ => {}
    }
}

/// Sets a number under its dotted name.
pub(crate) fn set(object: &mut Map<String, Value>, name: &str, number: f64) {
    match name.split_once('.') {
        None => {
            object.insert(name.into(), value_of(number));
        }
        Some((group, rest)) => {
            let group = object
                .entry(group)
                .or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(group) = group {
                set(group, rest, number);
            }
        }
    }
}

/// Makes arrays of the objects whose members are numbered.
pub(crate) fn with_arrays(object: Map<String, Value>) -> Value {
    let is_array = !object.is_empty()
        && object
            .keys()
            .enumerate()
            .all(|(at, name)| *name == at.to_string());
    let members = object.into_iter().map(|(name, value)| match value {
        Value::Object(inner) => (name, with_arrays(inner)),
        value => (name, value),
    });

    if is_array {
        Value::Array(members.map(|(_, value)| value).collect())
    } else {
        Value::Object(members.collect())
    }
}

/// Integers without a fraction, so that they are read into integer members.
fn value_of(number: f64) -> Value {
    if number.fract() == 0.0 && number.abs() < 9.0e15 {
        return Value::from(number as i64);
    }
    Number::from_f64(number).map_or(Value::Null, Value::Number)
}
