//! Options of the dialects typed without their subcommand: which command line was probably meant.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use super::getopt::{Getopt, GetoptError, Grammar};
use super::{iperf2, iperf3};

/// A command line that linerate stands in for.
struct Dialect {
    /// The subcommand.
    command: &'static str,
    /// The name in sentences.
    name: &'static str,
    grammar: fn() -> Grammar<usize>,
}

/// The dialects in the order in which they are suggested.
const DIALECTS: [Dialect; 2] = [
    Dialect {
        command: "iperf3",
        name: "iperf3",
        grammar: iperf3::grammar,
    },
    Dialect {
        command: "iperf2",
        name: "iperf 2",
        grammar: iperf2::grammar,
    },
];

/// The error text for a command line that begins with an option of a dialect; `None` for any other.
pub fn misplaced_options(words: &[OsString]) -> Option<String> {
    let first = words.first().filter(|word| is_option(word))?;
    let understands = |words: &[OsString]| {
        DIALECTS
            .iter()
            .find(|dialect| is_understood(&(dialect.grammar)(), words))
    };
    let Dialect { command, name, .. } = understands(words).or_else(|| understands(&words[..1]))?;
    let typed: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    let first = quoted(first);

    let serve = if serves(words) {
        "\n  tip: `linerate serve` serves the same clients as a service, with a log and limits\n"
    } else {
        ""
    };
    Some(format!(
        "error: {first} is an option of {name}; did you mean `linerate {command} {}`?\n{serve}\n\
         For more information, try 'linerate --help'.\n",
        typed.join(" ")
    ))
}

fn is_option(word: &OsStr) -> bool {
    matches!(word.as_bytes(), [b'-', second, ..] if word != "--" && *second != b' ')
}

/// Whether the dialect knows every option. A missing value or an ambiguous abbreviation still names
/// an option of it.
fn is_understood(grammar: &Grammar<usize>, words: &[OsString]) -> bool {
    !Getopt::new(grammar, words).any(|found| {
        matches!(
            found,
            Err(GetoptError::Unrecognized(_) | GetoptError::InvalidLetter(_))
        )
    })
}

fn serves(words: &[OsString]) -> bool {
    words.iter().any(|word| word == "-s" || word == "--server")
}

/// A word as a shell would need it.
fn quoted(word: &OsStr) -> String {
    let text = word.to_string_lossy();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_@%+=:,./-".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        text.into_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suggested(words: &[&str]) -> Option<String> {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        let text = misplaced_options(&words)?;
        let (_, rest) = text.split_once('`')?;
        Some(rest.split_once('`')?.0.to_owned())
    }

    #[test]
    fn options_of_a_dialect_suggest_its_subcommand() {
        let rows: [(&[&str], &str); 9] = [
            (&["-c", "192.0.2.7"], "linerate iperf3 -c 192.0.2.7"),
            (
                &["--client", "::1", "-R"],
                "linerate iperf3 --client ::1 -R",
            ),
            (&["-s"], "linerate iperf3 -s"),
            (&["-c"], "linerate iperf3 -c"),
            (
                &["-c", "h", "--trip-times"],
                "linerate iperf2 -c h --trip-times",
            ),
            (&["-e", "-c", "h"], "linerate iperf2 -e -c h"),
            (&["-c", "h", "--nosuch"], "linerate iperf3 -c h --nosuch"),
            (&["-v"], "linerate iperf3 -v"),
            (
                &["-c", "h", "-T", "a b's"],
                r"linerate iperf3 -c h -T 'a b'\''s'",
            ),
        ];
        for (words, expected) in rows {
            assert_eq!(suggested(words).as_deref(), Some(expected), "{words:?}");
        }
    }

    #[test]
    fn other_command_lines_suggest_nothing() {
        for words in [
            &[][..],
            &["nosuch"],
            &["--nosuch"],
            &["-"],
            &["--"],
            &["192.0.2.7", "-c"],
        ] {
            assert_eq!(suggested(words), None, "{words:?}");
        }
    }
}
