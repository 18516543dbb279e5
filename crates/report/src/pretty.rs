//! JSON text in cJSON's layout.
//!
//! Tabs for indentation, a tab after the colon, arrays of objects as `[{ … }, { … }]`. Existing scripts cut values out
//! of this layout with line tools, so it is reproduced exactly.

use std::borrow::Borrow;
use std::fmt::Write as _;

use serde_json::Value;

use crate::number;

/// Formats `value` over several lines, without a final newline.
pub(crate) fn pretty(value: &Value) -> String {
    let mut text = String::new();
    write(&mut text, value, Some(0), None);
    text
}

/// An array of an object whose items are made while it is written, so that they never exist together.
pub(crate) struct Made<'a> {
    /// Its member.
    pub(crate) key: &'a str,
    /// Item by index; `None` behind the last one.
    pub(crate) items: Box<dyn Fn(usize) -> Option<Value> + 'a>,
}

/// [`pretty`] with a member of the outermost object replaced.
pub(crate) fn pretty_with(value: &Value, made: &Made<'_>) -> String {
    let mut text = String::new();
    write(&mut text, value, Some(0), Some(made));
    text
}

/// [`compact`] with a member of the outermost object replaced.
pub(crate) fn compact_with(value: &Value, made: &Made<'_>) -> String {
    let mut text = String::new();
    write(&mut text, value, None, Some(made));
    text
}

/// Formats `value` on one line.
pub(crate) fn compact(value: &Value) -> String {
    let mut text = String::new();
    write(&mut text, value, None, None);
    text
}

/// Writes `value`; `depth` is the number of containers around it, `None` for the compact form.
fn write(text: &mut String, value: &Value, depth: Option<usize>, made: Option<&Made<'_>>) {
    match value {
        Value::Null => text.push_str("null"),
        Value::Bool(flag) => text.push_str(if *flag { "true" } else { "false" }),
        Value::Number(number) => text.push_str(&number_text(number)),
        Value::String(string) => write_string(text, string),
        Value::Array(items) => {
            write_array(text, items.iter(), depth);
        }
        Value::Object(members) => write_object(text, members, depth, made),
    }
}

fn write_array<I: Borrow<Value>>(text: &mut String, items: impl Iterator<Item = I>, depth: Option<usize>) {
    text.push('[');
    for (index, item) in items.enumerate() {
        if index > 0 {
            text.push_str(if depth.is_some() { ", " } else { "," });
        }
        write(text, item.borrow(), depth.map(|d| d + 1), None);
    }
    text.push(']');
}

fn write_object(
    text: &mut String,
    members: &serde_json::Map<String, Value>,
    depth: Option<usize>,
    made: Option<&Made<'_>>,
) {
    text.push('{');
    for (index, (key, value)) in members.iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        new_line(text, depth.map(|d| d + 1));
        write_string(text, key);
        text.push_str(if depth.is_some() { ":\t" } else { ":" });
        let inner = depth.map(|d| d + 1);
        match made.filter(|made| made.key == key) {
            Some(made) => write_array(text, (0..).map_while(&made.items), inner),
            None => write(text, value, inner, None),
        }
    }
    new_line(text, depth);
    text.push('}');
}

fn new_line(text: &mut String, depth: Option<usize>) {
    if let Some(depth) = depth {
        text.push('\n');
        text.extend(std::iter::repeat_n('\t', depth));
    }
}

/// Integers stay integers whatever their size; floating-point numbers follow cJSON.
fn number_text(number: &serde_json::Number) -> String {
    match number.as_f64() {
        Some(value) if number.is_f64() => number::json(value),
        _ => number.to_string(),
    }
}

fn write_string(text: &mut String, string: &str) {
    text.push('"');
    for c in string.chars() {
        match c {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\u{8}' => text.push_str("\\b"),
            '\u{c}' => text.push_str("\\f"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            // The same string to every reader of JSON, and harmless to a terminal.
            c if c.is_control() => {
                let _ = write!(text, "\\u{:04x}", u32::from(c));
            }
            c => text.push(c),
        }
    }
    text.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn containers_are_laid_out_like_cjson() {
        let value = json!({"a": {"list": [{"x": 1, "y": 0.5}, {"x": 2}], "none": [], "flat": [1, 2]}, "end": {}});
        let expected = "{\n\t\"a\":\t{\n\t\t\"list\":\t[{\n\t\t\t\t\"x\":\t1,\n\t\t\t\t\"y\":\t0.5\n\t\t\t}, {\n\t\t\t\t\"x\":\t2\n\t\t\t}],\n\t\t\"none\":\t[],\n\t\t\"flat\":\t[1, 2]\n\t},\n\t\"end\":\t{\n\t}\n}";
        assert_eq!(pretty(&value), expected);
        let line = r#"{"a":{"list":[{"x":1,"y":0.5},{"x":2}],"none":[],"flat":[1,2]},"end":{}}"#;
        assert_eq!(compact(&value), line);
    }

    #[test]
    fn strings_cannot_carry_control_characters_to_a_terminal() {
        let text = compact(&json!("a\"\\\n\u{1b}[31m\u{9b}é"));
        assert_eq!(text, r#""a\"\\\n\u001b[31m\u009bé""#);
        assert_eq!(serde_json::from_str::<String>(&text).expect("valid JSON"), "a\"\\\n\u{1b}[31m\u{9b}é");
    }

    #[test]
    fn integers_beyond_the_precision_of_a_double_stay_exact() {
        assert_eq!(compact(&json!([u64::MAX, i64::MIN, 2.0])), "[18446744073709551615,-9223372036854775808,2]");
    }
}
