//! JSON documents in a text: where they begin, what is whole of one that is cut off, and their
//! canonical form.

use std::fmt::Write;

use linerate_store::keys;
use serde_json::{Deserializer, Value};

/// A document in a text.
pub(super) struct Document {
    pub value: Value,
    /// Bytes of the text it takes.
    pub bytes: usize,
    /// Bytes at its end that were not read; of a document that is cut off.
    pub cut_bytes: Option<usize>,
}

/// The document with which `text` begins; `None` when it is no JSON or nothing of it is whole.
pub(super) fn first(text: &str) -> Option<Document> {
    let mut values = Deserializer::from_str(text).into_iter::<Value>();
    if let Some(Ok(value)) = values.next() {
        return Some(Document {
            value,
            bytes: values.byte_offset(),
            cut_bytes: None,
        });
    }

    let text = &text[..next_start(text, text.len()).unwrap_or(text.len())];
    let (whole, closing) = whole_part(text)?;
    let value = serde_json::from_str(&format!("{whole}{closing}")).ok()?;
    Some(Document {
        value,
        bytes: text.len(),
        cut_bytes: Some(text.trim_end().len() - whole.len()),
    })
}

/// Where the next document begins, before `end`: a program that was killed leaves its document
/// open, and the next one follows at once.
pub(super) fn next_start(text: &str, end: usize) -> Option<usize> {
    let starts = text[..end]
        .match_indices('{')
        .map(|(at, _)| at)
        .filter(|at| *at > 0);
    starts.into_iter().find(|at| {
        let mut rest = &text[at + 1..];
        let mut is_start = true;

        for token in ["\"start\"", ":", "{"] {
            let after = rest.trim_start().strip_prefix(token);
            is_start &= after.is_some();
            rest = after.unwrap_or_default();
        }

        // `--logfile` appends, so the next report can follow a cut one within a line.
        is_start || text.as_bytes()[at - 1] == b'\n'
    })
}

/// Members and elements of members up to this depth are taken whole or not at all.
const DEPTH_MAX: usize = 2;

/// The longest part of an object of which all members, and all elements of its members, are whole;
/// and what closes it.
fn whole_part(text: &str) -> Option<(&str, String)> {
    let mut open: Vec<u8> = Vec::new();
    let mut whole = None;
    let mut is_string = false;
    let mut is_escaped = false;

    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_string => is_escaped = true,
            b'"' => is_string = !is_string,
            // A string has no control characters (RFC 8259 section 7): the text was cut in it.
            0..0x20 if is_string => break,
            _ if is_string => {}
            b'{' => open.push(b'}'),
            b'[' => open.push(b']'),
            b'}' | b']' => {
                if open.pop() != Some(byte) {
                    break;
                }

                if (1..=DEPTH_MAX).contains(&open.len()) {
                    whole = Some((at + 1, open.clone()));
                }
            }
            b',' if (1..=DEPTH_MAX).contains(&open.len()) => whole = Some((at, open.clone())),
            _ => {}
        }
    }

    let (end, open) = whole?;
    Some((
        &text[..end],
        open.iter().rev().map(|byte| char::from(*byte)).collect(),
    ))
}

/// SHA-256 of the canonical form: equal for a document that was only formatted again.
pub(super) fn sha256(value: &Value) -> String {
    let mut text = String::new();
    canonical(value, &mut text);
    keys::sha256(text.as_bytes())
}

/// Without white space, members sorted, numbers with 12 digits.
fn canonical(value: &Value, text: &mut String) {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            // The order of members has no meaning (RFC 8259, section 1).
            members.sort_by_key(|(name, _)| *name);
            text.push('{');

            for (name, value) in members {
                let _ = write!(text, "{name:?}:");
                canonical(value, text);
                text.push(',');
            }

            text.push('}');
        }
        Value::Array(elements) => {
            text.push('[');
            for element in elements {
                canonical(element, text);
                text.push(',');
            }

            text.push(']');
        }
        Value::Number(number) => {
            let _ = match (number.as_i128(), number.as_f64()) {
                (Some(whole), _) => write!(text, "{whole}"),
                // 1.0 and 1 are one number; up to 10^15 every whole number is exact.
                (_, Some(figure)) if figure.fract() == 0.0 && figure.abs() < 1e15 => {
                    write!(text, "{figure:.0}")
                }
                (_, figure) => write!(text, "{:.11e}", figure.unwrap_or(0.0)),
            };
        }
        other => {
            let _ = write!(text, "{other}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_formatted_anew_has_the_same_hash() {
        let as_written = r#"{"a": 0.99977797269821167, "b": [5242434, 1e9], "c": "x\u00e9"}"#;
        let rewritten =
            "{\"c\":\"x\u{e9}\",\"b\":[5242434.0,1000000000],\n\"a\":0.9997779726982117}";
        let hash = |text| sha256(&serde_json::from_str(text).expect("JSON"));
        assert_eq!(hash(as_written), hash(rewritten));
        assert_ne!(
            hash(as_written),
            hash(r#"{"a": 0.9997, "b": [5242434, 1e9], "c": "x\u00e9"}"#)
        );
    }

    #[test]
    fn elements_of_a_cut_document_are_whole_or_missing() {
        let text =
            r#"{"start":{"a":1},"intervals":[{"streams":[{"x":1},{"x":2}]},{"streams":[{"x":3},"#;
        let cut = first(text).expect("the first interval is whole");
        assert_eq!(
            cut.value.to_string(),
            r#"{"start":{"a":1},"intervals":[{"streams":[{"x":1},{"x":2}]}]}"#
        );
        assert_eq!(
            (cut.bytes, cut.cut_bytes),
            (text.len(), Some(r#",{"streams":[{"x":3},"#.len()))
        );

        let followed = format!("{text}\n{text}");
        assert_eq!(first(&followed).map(|cut| cut.bytes), Some(text.len() + 1));
        assert!(first("{\"a\"").is_none());
    }
}
