//! GNU `getopt_long(3)` as an iterator over a table and an argument list.
//!
//! The dialects promise to read a command line exactly as programs built on the C library do:
//! options act in the order typed, may be clustered or abbreviated, and operands may be anywhere
//! among them. The C function itself keeps global state, and every C library has other messages, so
//! its rules are here.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

/// Use of a value by an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Argument {
    /// Never.
    None,
    /// Always: attached, after `=`, or the next argument.
    Required,
    /// Only attached (short) or after `=` (long).
    Optional,
}

/// A one-letter option.
#[derive(Debug, Clone, Copy)]
pub struct ShortOption<Id> {
    /// The letter, ASCII.
    pub letter: u8,
    /// Use of a value; may differ from the long form.
    pub argument: Argument,
    /// The id that the parser reports.
    pub id: Id,
}

/// A long option, without its dashes.
#[derive(Debug, Clone, Copy)]
pub struct LongOption<Id> {
    /// The full name.
    pub name: &'static str,
    /// Use of a value.
    pub argument: Argument,
    /// The id that the parser reports.
    pub id: Id,
}

/// All options of a program. The order of the long options decides the order of candidates in
/// messages.
#[derive(Debug, Clone)]
pub struct Grammar<Id> {
    /// One-letter options.
    pub shorts: Vec<ShortOption<Id>>,
    /// LongOption options.
    pub longs: Vec<LongOption<Id>>,
}

/// One option as it was found on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found<'a, Id> {
    /// Its id in the grammar.
    pub id: Id,
    /// Its value, if it has one.
    pub value: Option<&'a OsStr>,
}

/// Iterates over the arguments after the program name. Operands are set aside. After an
/// error the walk continues behind the offending option.
pub struct Getopt<'a, Id> {
    grammar: &'a Grammar<Id>,
    args: std::slice::Iter<'a, OsString>,
    /// Letters of a cluster such as `-Rt1` that are still to be read.
    cluster: &'a [u8],
    operands: Vec<&'a OsStr>,
}

impl<'a, Id: Copy + PartialEq> Getopt<'a, Id> {
    /// Starts at the first of `args`, which exclude the program name.
    pub fn new(grammar: &'a Grammar<Id>, args: &'a [OsString]) -> Self {
        Self {
            grammar,
            args: args.iter(),
            cluster: &[],
            operands: Vec::new(),
        }
    }

    /// The operands so far, for programs that do not ignore them.
    pub fn operands(&self) -> &[&'a OsStr] {
        &self.operands
    }

    fn next_short(&mut self, letter: u8, rest: &'a [u8]) -> Result<Found<'a, Id>, GetoptError> {
        self.cluster = rest;
        let Some(rule) = self
            .grammar
            .shorts
            .iter()
            .find(|rule| rule.letter == letter)
        else {
            return Err(GetoptError::InvalidLetter(letter));
        };
        let value = match rule.argument {
            Argument::None => None,
            // An optional value is attached: the next word may be an operand.
            Argument::Optional => self.take_cluster(),
            Argument::Required => Some(
                self.take_cluster()
                    .or_else(|| self.args.next().map(OsString::as_os_str))
                    .ok_or(GetoptError::LetterNeedsValue(letter))?,
            ),
        };

        Ok(Found { id: rule.id, value })
    }

    /// The rest of the cluster as a value, unless it is empty.
    fn take_cluster(&mut self) -> Option<&'a OsStr> {
        let rest = std::mem::take(&mut self.cluster);
        (!rest.is_empty()).then(|| OsStr::from_bytes(rest))
    }

    fn next_long(&mut self, typed: &'a [u8]) -> Result<Found<'a, Id>, GetoptError> {
        let mut parts = typed.splitn(2, |byte| *byte == b'=');
        let name = parts.next().unwrap_or_default();
        let attached = parts.next().map(OsStr::from_bytes);
        let rule = self.find_long(name, typed)?;
        let value = match (rule.argument, attached) {
            (Argument::None, Some(_)) => return Err(GetoptError::UnexpectedValue(rule.name)),
            (Argument::Required, None) => {
                let next = self.args.next().map(OsString::as_os_str);
                Some(next.ok_or(GetoptError::NameNeedsValue(rule.name))?)
            }
            (_, attached) => attached,
        };

        Ok(Found { id: rule.id, value })
    }

    /// An exact match beats every prefix; prefixes of names that mean the same are no conflict.
    fn find_long(&self, name: &[u8], typed: &[u8]) -> Result<LongOption<Id>, GetoptError> {
        let longs = &self.grammar.longs;
        if let Some(exact) = longs.iter().find(|rule| rule.name.as_bytes() == name) {
            return Ok(*exact);
        }

        let mut matches = longs
            .iter()
            .filter(|rule| rule.name.as_bytes().starts_with(name));
        let Some(first) = matches.next() else {
            return Err(GetoptError::Unrecognized(typed.to_vec()));
        };
        let mut candidates: Vec<&'static str> = matches
            // glibc: names with one effect are no ambiguity.
            .filter(|other| (other.id, other.argument) != (first.id, first.argument))
            .map(|other| other.name)
            .collect();
        if candidates.is_empty() {
            return Ok(*first);
        }

        candidates.insert(0, first.name);
        Err(GetoptError::Ambiguous {
            typed: typed.to_vec(),
            candidates,
        })
    }
}

impl<'a, Id: Copy + PartialEq> Iterator for Getopt<'a, Id> {
    type Item = Result<Found<'a, Id>, GetoptError>;

    fn next(&mut self) -> Option<Self::Item> {
        // The letters of a cluster come before the next word.
        if let [letter, rest @ ..] = self.cluster {
            return Some(self.next_short(*letter, rest));
        }

        loop {
            let arg = self.args.next()?;
            match arg.as_bytes() {
                // POSIX utility syntax guideline 10: what follows are operands.
                b"--" => {
                    let rest = std::mem::take(&mut self.args);
                    self.operands.extend(rest.map(OsString::as_os_str));
                    return None;
                }
                [b'-', b'-', typed @ ..] => return Some(self.next_long(typed)),
                [b'-', letter, rest @ ..] => return Some(self.next_short(*letter, rest)),
                // A single dash is an operand (guideline 13).
                _operand => self.operands.push(arg),
            }
        }
    }
}

/// All options of `args` are in the grammar. A missing value or an ambiguous abbreviation still
/// names an option of it.
pub fn knows_options(grammar: &Grammar<usize>, args: &[OsString]) -> bool {
    !Getopt::new(grammar, args).any(|found| {
        matches!(
            found,
            Err(GetoptError::Unrecognized(_) | GetoptError::InvalidLetter(_))
        )
    })
}

/// An argument that is no valid option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GetoptError {
    /// `--bogus`; everything after the dashes.
    Unrecognized(Vec<u8>),
    /// A prefix of several names.
    Ambiguous {
        /// Everything after the dashes.
        typed: Vec<u8>,
        /// The names it may represent.
        candidates: Vec<&'static str>,
    },
    /// `--server=1`.
    UnexpectedValue(&'static str),
    /// `--time` as the last argument.
    NameNeedsValue(&'static str),
    /// `-q`.
    InvalidLetter(u8),
    /// `-t` as the last argument.
    LetterNeedsValue(u8),
}

/// Quoting in the messages of a C library.
#[derive(Debug, Clone, Copy)]
pub struct Quoting {
    /// Before a long option.
    pub open: &'static str,
    /// After a long option.
    pub close: &'static str,
    /// Around a letter.
    pub letter: &'static str,
    /// An ambiguous abbreviation is followed by what it may represent.
    pub names_candidates: bool,
}

/// The wording of glibc since 2.17.
pub const GLIBC: Quoting = Quoting {
    open: "'",
    close: "'",
    letter: "'",
    names_candidates: true,
};

/// The wording of older GNU programs, which some still carry with them.
pub const OLD_GNU: Quoting = Quoting {
    open: "`",
    close: "'",
    letter: "",
    names_candidates: false,
};

impl GetoptError {
    /// The message of the C library without a line end, as bytes because it quotes what was typed.
    pub fn message(&self, program: &OsStr, quoting: Quoting) -> Vec<u8> {
        let Quoting {
            open,
            close,
            letter,
            ..
        } = quoting;
        let quoted = |name: &[u8]| [open.as_bytes(), b"--", name, close.as_bytes()].concat();
        let quoted_letter = |byte: u8| [letter.as_bytes(), &[byte], letter.as_bytes()].concat();

        let text = match self {
            Self::Unrecognized(typed) => [b"unrecognized option ", &*quoted(typed)].concat(),
            Self::Ambiguous { typed, .. } if !quoting.names_candidates => {
                [b"option ", &*quoted(typed), b" is ambiguous"].concat()
            }
            Self::Ambiguous { typed, candidates } => {
                let mut text = [
                    b"option ",
                    &*quoted(typed),
                    b" is ambiguous; possibilities:",
                ]
                .concat();
                for name in candidates {
                    text.push(b' ');
                    text.extend(quoted(name.as_bytes()));
                }

                text
            }
            Self::UnexpectedValue(name) => [
                b"option ",
                &*quoted(name.as_bytes()),
                b" doesn't allow an argument",
            ]
            .concat(),
            Self::NameNeedsValue(name) => [
                b"option ",
                &*quoted(name.as_bytes()),
                b" requires an argument",
            ]
            .concat(),
            Self::InvalidLetter(byte) => [b"invalid option -- ", &*quoted_letter(*byte)].concat(),
            Self::LetterNeedsValue(byte) => {
                [b"option requires an argument -- ", &*quoted_letter(*byte)].concat()
            }
        };
        [program.as_bytes(), b": ", &*text].concat()
    }
}

#[cfg(test)]
mod tests;
