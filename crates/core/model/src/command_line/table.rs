//! The option table of a dialect: one row for the parser, the help, the manual page and the
//! completions.

use std::ffi::OsStr;

use super::getopt::{Argument, Grammar, LongOption, ShortOption};

/// One option as help texts, manual pages and completions show it.
#[derive(Debug, Clone)]
pub struct OptionHelp {
    /// One-letter form.
    pub short: Option<char>,
    /// LongOption forms without dashes; the first is the one of the help.
    pub longs: Vec<&'static str>,
    /// Use of a value.
    pub value: Value,
    /// One or two sentences.
    pub help: &'static str,
}

/// Options under one heading.
#[derive(Debug, Clone)]
pub struct OptionGroup {
    /// The heading.
    pub title: &'static str,
    /// The options in the order of the help.
    pub options: Vec<OptionHelp>,
}

/// The value of an option; the text is its placeholder in the help. A one-letter form never takes an
/// optional value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value {
    /// No value.
    None,
    /// One value.
    Required(&'static str),
    /// A value only after `=`.
    Optional(&'static str),
}

impl Value {
    /// The value as the help writes it behind the long form.
    pub fn placeholder(&self) -> String {
        match self {
            Self::None => String::new(),
            Self::Required(name) => format!(" {name}"),
            Self::Optional(name) => format!("[={name}]"),
        }
    }
}

/// The effect of an option on the settings `A`, and with it whether it takes a value. Checked ones may refuse the value or end the program with `E`.
#[derive(Debug)]
pub enum Effect<A, E> {
    /// No value.
    Switch(fn(&mut A)),
    /// No value, checked.
    CheckedSwitch(fn(&mut A) -> Result<(), E>),
    /// One value.
    Value(fn(&mut A, &OsStr)),
    /// One value, checked.
    CheckedValue(fn(&mut A, &OsStr) -> Result<(), E>),
    /// A value only after `=`.
    MaybeValue(fn(&mut A, Option<&OsStr>)),
    /// A value only after `=`, checked.
    CheckedMaybe(fn(&mut A, Option<&OsStr>) -> Result<(), E>),
}

// Derived, these would demand the same of `A`.
impl<A, E> Clone for Effect<A, E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A, E> Copy for Effect<A, E> {}

impl<A, E> Effect<A, E> {
    /// Applies the effect to the settings.
    ///
    /// # Errors
    /// Those of checked effects.
    pub fn apply(&self, args: &mut A, value: Option<&OsStr>) -> Result<(), E> {
        match self {
            Self::Switch(apply) => apply(args),
            Self::CheckedSwitch(apply) => apply(args)?,
            Self::Value(apply) => apply(args, value.unwrap_or_default()),
            Self::CheckedValue(apply) => apply(args, value.unwrap_or_default())?,
            Self::MaybeValue(apply) => apply(args, value),
            Self::CheckedMaybe(apply) => apply(args, value)?,
        }

        Ok(())
    }

    /// Use of a value, for the parser.
    pub fn argument(&self) -> Argument {
        match self {
            Self::Switch(_) | Self::CheckedSwitch(_) => Argument::None,
            Self::Value(..) | Self::CheckedValue(..) => Argument::Required,
            Self::MaybeValue(..) | Self::CheckedMaybe(..) => Argument::Optional,
        }
    }
}

/// One option of a dialect with settings `A`, errors `E` and sections `S` of the help; `X` is what
/// the dialect notes besides.
#[derive(Debug)]
pub struct OptionRow<A, E, S, X> {
    /// Names and value: `-p, --port=N`. Long forms behind the first one are not in the help; a
    /// value without a placeholder is not either.
    pub usage: &'static str,
    /// Its section.
    pub section: S,
    /// Its effect.
    pub effect: Effect<A, E>,
    /// One or two sentences.
    pub help: &'static str,
    /// What the dialect notes besides.
    pub extra: X,
}

impl<A, E, S, X> OptionRow<A, E, S, X> {
    /// One-letter form.
    pub fn short(&self) -> Option<char> {
        let name = self.usage.strip_prefix('-')?;
        name.chars().next().filter(|letter| *letter != '-')
    }

    /// Long form of the help.
    pub fn long(&self) -> &'static str {
        self.longs().next().unwrap_or_default()
    }

    /// All long forms.
    pub fn longs(&self) -> impl Iterator<Item = &'static str> {
        let names = self.usage.split('=').next().unwrap_or_default();
        names.split(", ").filter_map(|name| name.strip_prefix("--"))
    }

    /// The value, for the help.
    pub fn value(&self) -> Value {
        match (self.usage.split_once('='), self.effect.argument()) {
            (None, _) => Value::None,
            (Some((_, name)), Argument::Optional) => Value::Optional(name),
            (Some((_, name)), _) => Value::Required(name),
        }
    }

    /// Its names, value and text, for the help.
    fn documented(&self) -> OptionHelp {
        OptionHelp {
            short: self.short(),
            longs: self.longs().collect(),
            value: self.value(),
            help: self.help,
        }
    }
}

/// A table in the form the parser reads; ids are positions in it.
pub fn grammar<A, E, S, X>(rows: &[OptionRow<A, E, S, X>]) -> Grammar<usize> {
    let mut grammar = Grammar {
        shorts: Vec::new(),
        longs: Vec::new(),
    };
    for (id, row) in rows.iter().enumerate() {
        let argument = row.effect.argument();

        if let Some(letter) = row.short().and_then(|letter| u8::try_from(letter).ok()) {
            // The option strings of the originals have no optional values behind letters.
            let argument = match argument {
                Argument::Optional => Argument::None,
                other => other,
            };
            grammar.shorts.push(ShortOption {
                letter,
                argument,
                id,
            });
        }

        let long = |name| LongOption { name, argument, id };
        grammar.longs.extend(row.longs().map(long));
    }

    grammar
}

/// The options of a table in the order of the sections of the help.
pub fn groups<A, E, S: PartialEq, X>(
    rows: &[OptionRow<A, E, S, X>],
    sections: &[(S, &'static str)],
) -> Vec<OptionGroup> {
    let group = |(section, title): &(S, &'static str)| OptionGroup {
        title,
        options: section_options(rows, section),
    };
    sections.iter().map(group).collect()
}

/// The options of one section.
pub fn section_options<A, E, S: PartialEq, X>(
    rows: &[OptionRow<A, E, S, X>],
    section: &S,
) -> Vec<OptionHelp> {
    rows.iter()
        .filter(|row| row.section == *section)
        .map(OptionRow::documented)
        .collect()
}

/// Column at which descriptions begin.
const TEXT_COLUMN: usize = 30;
/// Width of a line.
const LINE_WIDTH: usize = 100;

/// Groups of options as the long help lists them.
pub fn listing(groups: &[OptionGroup]) -> String {
    let mut text = String::new();
    for group in groups {
        text.push_str(&format!("\n{}:\n", group.title));
        text.extend(group.options.iter().map(entry));
    }
    text
}

fn entry(option: &OptionHelp) -> String {
    let long = option.longs.first().copied().unwrap_or_default();
    let placeholder = option.value.placeholder();
    let names = match option.short {
        Some(letter) => format!("  -{letter}, --{long}{placeholder}"),
        None => format!("      --{long}{placeholder}"),
    };
    let mut lines = wrap(option.help, LINE_WIDTH - TEXT_COLUMN).into_iter();
    let mut text = String::new();

    // At least one blank separates the names from the text.
    if names.len() < TEXT_COLUMN {
        let first = lines.next().unwrap_or_default();
        text.push_str(&format!("{names:TEXT_COLUMN$}{first}\n"));
    } else {
        text.push_str(&format!("{names}\n"));
    }

    for line in lines {
        text.push_str(&format!("{:TEXT_COLUMN$}{line}\n", ""));
    }

    text
}

/// Breaks at blanks into lines of at most `width` characters, longer words excepted.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.len() + 1 + word.len() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }

    lines
}
