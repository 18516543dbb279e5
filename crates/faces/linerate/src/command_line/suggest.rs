//! Options of the dialects typed without their subcommand: the command line that was probably
//! meant.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use linerate_iperf2::options as iperf2;
use linerate_iperf3::options as iperf3;

/// A dialect whose options may have been typed.
struct Dialect {
    /// The subcommand.
    command: &'static str,
    /// The name in sentences.
    name: &'static str,
    /// All options of a command line are its own.
    knows: fn(&[OsString]) -> bool,
}

/// The dialects in the order in which they are suggested.
const DIALECTS: [Dialect; 2] = [
    Dialect {
        command: "iperf3",
        name: "iperf3",
        knows: iperf3::are_known,
    },
    Dialect {
        command: "iperf2",
        name: "iperf 2",
        knows: iperf2::are_known,
    },
];

/// The error text for a command line that begins with an option of a dialect; `None` for any other.
pub fn misplaced_options(args: &[OsString]) -> Option<String> {
    // A first argument without a hyphen is meant as a command of this program.
    let first = args.first().filter(|arg| is_option(arg))?;
    let knowing = |args: &[OsString]| DIALECTS.iter().find(|dialect| (dialect.knows)(args));
    // All arguments decide first; the first one decides where others are unknown.
    let Dialect { command, name, .. } = knowing(args).or_else(|| knowing(&args[..1]))?;
    let typed: Vec<String> = args.iter().map(|arg| quoted(arg)).collect();
    let first = quoted(first);

    let serve = if serves(args) {
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

fn is_option(arg: &OsStr) -> bool {
    matches!(arg.as_bytes(), [b'-', second, ..] if arg != "--" && *second != b' ')
}

fn serves(args: &[OsString]) -> bool {
    args.iter().any(|arg| arg == "-s" || arg == "--server")
}

/// An argument quoted for a shell.
fn quoted(arg: &OsStr) -> String {
    let text = arg.to_string_lossy();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_@%+=:,./-".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        text.into_owned()
    } else {
        // In single quotes a shell gives meaning to no character but the quote itself (sh(1)).
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suggested(args: &[&str]) -> Option<String> {
        let args: Vec<OsString> = args.iter().map(OsString::from).collect();
        let text = misplaced_options(&args)?;
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
        for (args, expected) in rows {
            assert_eq!(suggested(args).as_deref(), Some(expected), "{args:?}");
        }
    }

    #[test]
    fn other_command_lines_suggest_nothing() {
        for args in [
            &[][..],
            &["nosuch"],
            &["--nosuch"],
            &["-"],
            &["--"],
            &["192.0.2.7", "-c"],
        ] {
            assert_eq!(suggested(args), None, "{args:?}");
        }
    }
}
