//! A JSON report and questions about it.

use serde_json::Value;

/// A report of `-J`.
#[derive(Debug, Clone)]
pub struct Report {
    /// The whole document.
    pub root: Value,
}

impl Report {
    /// Reads a report.
    #[track_caller]
    pub fn parse(text: &str) -> Self {
        match serde_json::from_str(text) {
            Ok(root) => Self { root },
            Err(error) => panic!("not one JSON document ({error}):\n{text}"),
        }
    }

    /// The value at a JSON pointer (RFC 6901), if there.
    pub fn get(&self, pointer: &str) -> Option<&Value> {
        self.root.pointer(pointer)
    }

    /// The number at a pointer.
    #[track_caller]
    pub fn number(&self, pointer: &str) -> f64 {
        let number = self.get(pointer).and_then(Value::as_f64);
        number.unwrap_or_else(|| panic!("no number at {pointer} in {:#}", self.root))
    }

    /// The text at a pointer.
    #[track_caller]
    pub fn text(&self, pointer: &str) -> &str {
        let text = self.get(pointer).and_then(Value::as_str);
        text.unwrap_or_else(|| panic!("no text at {pointer} in {:#}", self.root))
    }

    /// The elements of the array at a pointer.
    #[track_caller]
    pub fn array(&self, pointer: &str) -> &[Value] {
        let array = self.get(pointer).and_then(Value::as_array);
        array.unwrap_or_else(|| panic!("no array at {pointer} in {:#}", self.root))
    }
}
