//! A tree from TOML.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::tree::{Node, PlanError, Value};

/// Reads a document. The parser itself refuses keys that stand twice and nesting beyond 80 levels.
pub(super) fn tree(text: &str) -> Result<Node, PlanError> {
    let lines = Lines::of(text);
    match DeTable::parse(text) {
        Ok(document) => Ok(Node {
            line: 1,
            value: table(document.into_inner(), &lines),
        }),
        Err(error) => Err(PlanError {
            line: error.span().map(|span| lines.at(span.start)),
            text: format!("this is no TOML: {}", error.message().replace('\n', ", ")),
        }),
    }
}

fn table(table: DeTable<'_>, lines: &Lines) -> Value {
    Value::Table(
        table
            .into_iter()
            .map(|(key, value)| {
                let mut node = node(value, lines);
                // A table's own place is where its first key stands; the line of its name says more.
                node.line = lines.at(key.span().start);
                (key.into_inner().into_owned(), node)
            })
            .collect(),
    )
}

fn node(value: Spanned<DeValue<'_>>, lines: &Lines) -> Node {
    let line = lines.at(value.span().start);
    let value = match value.into_inner() {
        DeValue::String(text) => Value::Text(text.into_owned()),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .map_or(Value::Other("a number beyond 64 bits"), Value::Integer),
        DeValue::Float(number) => number
            .as_str()
            .parse()
            .map_or(Value::Other("a number beyond 64 bits"), Value::Float),
        DeValue::Boolean(is_set) => Value::Bool(is_set),
        DeValue::Datetime(_) => Value::Other("a date"),
        DeValue::Array(values) => Value::List(values.into_iter().map(|value| node(value, lines)).collect()),
        DeValue::Table(inner) => table(inner, lines),
    };
    Node { line, value }
}

/// Where the lines of a text begin.
struct Lines(Vec<usize>);

impl Lines {
    fn of(text: &str) -> Self {
        Self(
            text.bytes()
                .enumerate()
                .filter(|(_, byte)| *byte == b'\n')
                .map(|(at, _)| at)
                .collect(),
        )
    }

    /// Line of a byte, from 1.
    fn at(&self, byte: usize) -> usize {
        self.0.partition_point(|end| *end < byte) + 1
    }
}
