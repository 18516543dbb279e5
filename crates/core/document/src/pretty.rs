//! JSON text in cJSON's layout.
//!
//! Tabs for indentation, a tab after the colon, arrays of objects as `[{ … }, { … }]`. Existing
//! scripts cut values out of this layout with line tools, so it is reproduced exactly.

use std::io::{self, Write};

use linerate_model::printable::printable_json;
use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};

use crate::number;

/// Formats `value` over several lines, without a final newline.
pub fn pretty(value: &impl Serialize) -> String {
    written(value, Layout { depth: Some(0) })
}

/// Formats `value` on one line.
pub fn compact(value: &impl Serialize) -> String {
    written(value, Layout { depth: None })
}

fn written(value: &impl Serialize, layout: Layout) -> String {
    let mut text = Vec::new();
    let result = value.serialize(&mut Serializer::with_formatter(&mut text, layout));
    // Values of the model have no maps with other keys, and no serializer of theirs fails.
    result.expect("keys are strings, and memory can be written");
    String::from_utf8(text).expect("JSON is UTF-8")
}

/// Number of containers around a value; `None` for the compact form.
struct Layout {
    depth: Option<usize>,
}

impl Layout {
    fn enter(&mut self) {
        self.depth = self.depth.map(|depth| depth + 1);
    }

    fn leave(&mut self) {
        self.depth = self.depth.map(|depth| depth - 1);
    }

    fn new_line(&self, text: &mut (impl Write + ?Sized)) -> io::Result<()> {
        let Some(depth) = self.depth else {
            return Ok(());
        };
        write!(text, "\n{}", "\t".repeat(depth))
    }
}

impl Formatter for Layout {
    fn begin_array<W: Write + ?Sized>(&mut self, text: &mut W) -> io::Result<()> {
        self.enter();
        text.write_all(b"[")
    }

    fn begin_array_value<W: Write + ?Sized>(
        &mut self,
        text: &mut W,
        first: bool,
    ) -> io::Result<()> {
        match (first, self.depth) {
            (true, _) => Ok(()),
            (false, Some(_)) => text.write_all(b", "),
            (false, None) => text.write_all(b","),
        }
    }

    fn end_array<W: Write + ?Sized>(&mut self, text: &mut W) -> io::Result<()> {
        self.leave();
        text.write_all(b"]")
    }

    fn begin_object<W: Write + ?Sized>(&mut self, text: &mut W) -> io::Result<()> {
        self.enter();
        text.write_all(b"{")
    }

    fn begin_object_key<W: Write + ?Sized>(&mut self, text: &mut W, first: bool) -> io::Result<()> {
        text.write_all(if first { b"" } else { b"," })?;
        self.new_line(text)
    }

    fn begin_object_value<W: Write + ?Sized>(&mut self, text: &mut W) -> io::Result<()> {
        text.write_all(if self.depth.is_some() { b":\t" } else { b":" })
    }

    fn end_object<W: Write + ?Sized>(&mut self, text: &mut W) -> io::Result<()> {
        self.leave();
        self.new_line(text)?;
        text.write_all(b"}")
    }

    fn write_f64<W: Write + ?Sized>(&mut self, text: &mut W, value: f64) -> io::Result<()> {
        text.write_all(number::json(value).as_bytes())
    }

    /// Characters that act on a terminal and that JSON allows are escaped.
    fn write_string_fragment<W: Write + ?Sized>(
        &mut self,
        text: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        text.write_all(printable_json(fragment).as_bytes())
    }
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
        assert_eq!(
            serde_json::from_str::<String>(&text).expect("valid JSON"),
            "a\"\\\n\u{1b}[31m\u{9b}é"
        );
    }

    #[test]
    fn integers_beyond_the_precision_of_a_double_stay_exact() {
        assert_eq!(
            compact(&json!([u64::MAX, i64::MIN, 2.0])),
            "[18446744073709551615,-9223372036854775808,2]"
        );
    }
}
