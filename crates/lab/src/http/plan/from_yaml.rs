//! A tree from YAML.
//!
//! Anchors, aliases and tags are refused: a plan needs none of them, and with them a short file could stand for an
//! endless one. What is left grows no faster than its text.

use std::borrow::Cow;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span, StrInput};

use super::tree::{Node, PlanError, Value};
use crate::http::units::shown;

/// Tables and lists in each other; a plan has four.
const DEPTH_MAX: usize = 8;

/// Reads the only document of a text; an empty text is an empty table.
pub(super) fn tree(text: &str) -> Result<Node, PlanError> {
    let mut events = Events(Parser::new_from_str(text));
    let mut root = None;
    loop {
        match events.next()? {
            (Event::StreamStart | Event::DocumentStart(_) | Event::DocumentEnd | Event::Nothing, _) => {}
            (Event::StreamEnd, _) => break,
            (_, line) if root.is_some() => return Err(PlanError::at(line, "a plan is one document, this is a second")),
            (event, line) => root = Some(events.node(event, line, 0)?),
        }
    }
    Ok(root.filter(|node| !is_nothing(&node.value)).unwrap_or(Node {
        line: 1,
        value: Value::Table(Vec::new()),
    }))
}

struct Events<'a>(Parser<'a, StrInput<'a>>);

impl<'a> Events<'a> {
    fn next(&mut self) -> Result<(Event<'a>, usize), PlanError> {
        match self.0.next_event() {
            Some(Ok((event, span))) => Ok((event, line(span))),
            Some(Err(error)) => Err(refused(&error)),
            None => Ok((Event::StreamEnd, 1)),
        }
    }

    fn node(&mut self, event: Event<'a>, line: usize, depth: usize) -> Result<Node, PlanError> {
        if depth > DEPTH_MAX {
            return Err(PlanError::at(
                line,
                format!("tables and lists stand in each other at most {DEPTH_MAX} deep"),
            ));
        }
        let value = match event {
            Event::Scalar(text, style, 0, None) => scalar(text, style),
            Event::SequenceStart(0, None) => self.list(depth)?,
            Event::MappingStart(0, None) => self.table(depth)?,
            _ => {
                return Err(PlanError::at(
                    line,
                    "anchors, aliases and tags of YAML are not used in a plan",
                ));
            }
        };
        Ok(Node { line, value })
    }

    fn list(&mut self, depth: usize) -> Result<Value, PlanError> {
        let mut values = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd | Event::StreamEnd, _) => return Ok(Value::List(values)),
                (event, line) => values.push(self.node(event, line, depth + 1)?),
            }
        }
    }

    fn table(&mut self, depth: usize) -> Result<Value, PlanError> {
        let mut entries: Vec<(String, Node)> = Vec::new();
        let mut known = std::collections::BTreeSet::new();
        loop {
            let (name, line) = match self.next()? {
                (Event::MappingEnd | Event::StreamEnd, _) => return Ok(Value::Table(entries)),
                (Event::Scalar(name, _, 0, None), line) => (name.into_owned(), line),
                (_, line) => return Err(PlanError::at(line, "a key is a plain word")),
            };
            if !known.insert(name.clone()) {
                return Err(PlanError::at(line, format!("the key {} stands twice", shown(&name))));
            }
            let (event, value_line) = self.next()?;
            let mut node = self.node(event, value_line, depth + 1)?;
            node.line = line;
            entries.push((name, node));
        }
    }
}

/// A plain scalar by the core schema (YAML 1.2.2, section 10.3), in decimal; a quoted one is text.
fn scalar(text: Cow<'_, str>, style: ScalarStyle) -> Value {
    if style != ScalarStyle::Plain {
        return Value::Text(text.into_owned());
    }
    match &*text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Other(NOTHING),
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        word if looks_like_a_number(word) => {
            let integer = word.parse().map(Value::Integer).ok();
            integer
                .or_else(|| word.parse().map(Value::Float).ok())
                .unwrap_or_else(|| Value::Text(text.into_owned()))
        }
        _ => Value::Text(text.into_owned()),
    }
}

/// Rust reads `inf`, `nan` and `infinity` as numbers as well; YAML does not.
fn looks_like_a_number(word: &str) -> bool {
    word.bytes().any(|byte| byte.is_ascii_digit())
        && word
            .bytes()
            .all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte))
}

const NOTHING: &str = "nothing";

fn is_nothing(value: &Value) -> bool {
    *value == Value::Other(NOTHING)
}

fn line(span: Span) -> usize {
    span.start.line()
}

fn refused(error: &ScanError) -> PlanError {
    PlanError::at(error.marker().line(), format!("this is no YAML: {}", error.info()))
}
