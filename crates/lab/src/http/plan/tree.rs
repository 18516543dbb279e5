//! What both languages of a plan file come down to: values with the line they stand on, and tables that know which of
//! their keys were asked for.

use std::fmt;

use crate::http::units::shown;

/// Why a plan file is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanError {
    /// Line, from 1; absent when it is the file as a whole.
    pub line: Option<usize>,
    /// What is wrong there and what is allowed.
    pub text: String,
}

impl PlanError {
    pub(super) fn at(line: usize, text: impl Into<String>) -> Self {
        Self {
            line: Some(line),
            text: text.into(),
        }
    }

    pub(super) fn whole(text: impl Into<String>) -> Self {
        Self {
            line: None,
            text: text.into(),
        }
    }
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.text),
            None => f.write_str(&self.text),
        }
    }
}

impl std::error::Error for PlanError {}

/// A value and its line.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    pub(super) line: usize,
    pub(super) value: Value,
}

/// A value of TOML or YAML.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Text(String),
    Integer(i64),
    Float(f64),
    Bool(bool),
    List(Vec<Node>),
    Table(Vec<(String, Node)>),
    /// Something no key of a plan has, in words.
    Other(&'static str),
}

impl Value {
    /// What it is, in words.
    fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "text",
            Self::Integer(_) => "a whole number",
            Self::Float(_) => "a number with a point",
            Self::Bool(_) => "true or false",
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
            Self::Other(kind) => kind,
        }
    }
}

/// The value of a key, with its full name for messages.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) path: String,
    pub(super) node: Node,
}

impl Field {
    /// An error about this value.
    pub(super) fn wrong(&self, text: impl fmt::Display) -> PlanError {
        PlanError::at(self.node.line, format!("{}: {text}", self.path))
    }

    /// An error about this value's type.
    pub(super) fn expected(&self, what: impl fmt::Display) -> PlanError {
        self.wrong(format_args!("expected {what}, found {}", self.node.value.kind()))
    }
}

/// A table whose keys are taken out one by one; what is left over at the end is no key of a plan.
#[derive(Debug)]
pub(super) struct Keys {
    path: String,
    entries: Vec<(String, Node)>,
    allowed: Vec<&'static str>,
}

impl Keys {
    /// The keys of a table; a line at the top that is empty in YAML is an empty table.
    pub(super) fn of(field: Field) -> Result<Self, PlanError> {
        match field.node.value {
            Value::Table(entries) => Ok(Self {
                path: field.path,
                entries,
                allowed: Vec::new(),
            }),
            _ => Err(field.expected("a table of keys")),
        }
    }

    /// Takes a key and reads it into its place; a key that is not there leaves the place as it is.
    pub(super) fn set<T>(
        &mut self,
        name: &'static str,
        place: &mut T,
        read: impl FnOnce(Field) -> Result<T, PlanError>,
    ) -> Result<(), PlanError> {
        if let Some(field) = self.take(name) {
            *place = read(field)?;
        }
        Ok(())
    }

    /// Takes a table, has its keys read, and refuses those nobody asked for.
    pub(super) fn table(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&mut Self) -> Result<(), PlanError>,
    ) -> Result<(), PlanError> {
        let Some(field) = self.take(name) else {
            return Ok(());
        };
        let mut keys = Self::of(field)?;
        read(&mut keys)?;
        keys.finish()
    }

    /// Refuses a key nobody asked for.
    pub(super) fn finish(self) -> Result<(), PlanError> {
        let Some((name, node)) = self.entries.first() else {
            return Ok(());
        };
        let allowed = self.allowed.join(", ");
        let name = shown(&self.full_name(name));
        Err(PlanError::at(
            node.line,
            format!("there is no key {name}; allowed here: {allowed}"),
        ))
    }

    fn take(&mut self, name: &'static str) -> Option<Field> {
        self.allowed.push(name);
        let index = self.entries.iter().position(|(key, _)| key == name)?;
        let (_, node) = self.entries.remove(index);
        Some(Field {
            path: self.full_name(name),
            node,
        })
    }

    fn full_name(&self, name: &str) -> String {
        if self.path.is_empty() {
            name.to_owned()
        } else {
            format!("{}.{name}", self.path)
        }
    }
}
