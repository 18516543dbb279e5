//! `serve --config FILE`: options of the command line in a file of TOML.
//!
//! A key is the long name of an option. Its value becomes an argument before those of the command
//! line, so that both are checked by one parser.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use clap::parser::ValueSource;
use clap::{ArgMatches, Command, FromArgMatches as _};
use linerate_model::policy::ServerPolicy;
use linerate_sys::error::io_text;
use linerate_sys::file_system;
use toml::{Table, Value};

use super::ServeArgs;

/// Options that take effect at SIGHUP, and those that do while a file is named before and after it.
const RELOADED: [&str; 3] = ["allow", "deny", "limit"];
const FILES: [&str; 3] = ["tokens", "tls-cert", "tls-key"];

/// The settings of a server that runs, to be read again.
pub(crate) struct Settings {
    program: Command,
    /// Command line without the options of the file.
    given: Vec<OsString>,
    begun: ArgMatches,
}

impl Settings {
    /// Those of a program that was called with the arguments `given`.
    pub(crate) fn of(program: Command, given: &[OsString], parsed: &ArgMatches) -> Self {
        let begun = parsed.subcommand_matches("serve").cloned();
        Self {
            program,
            given: given.to_vec(),
            begun: begun.unwrap_or_default(),
        }
    }

    /// Reads the file again. Returns with the settings what needs a restart.
    pub(crate) fn read(&self) -> Result<(ServerPolicy, Vec<String>), String> {
        let args = expanded(&self.given, &self.program)?.unwrap_or_default();
        let argv = std::iter::once(OsString::from("linerate")).chain(args);
        let parsed = self.program.clone().try_get_matches_from(argv);
        let parsed = parsed.map_err(|error| first_line(&error))?;
        let now = parsed.subcommand_matches("serve").ok_or("no server")?;
        let args = ServeArgs::from_arg_matches(now).map_err(|error| first_line(&error))?;

        let (policy, mut warnings) = args.policy()?;
        warnings.extend(self.unchanged(now));
        Ok((policy, warnings))
    }

    /// Names the options that changed and stay as they were.
    fn unchanged(&self, now: &ArgMatches) -> Option<String> {
        let serve = self.program.find_subcommand("serve")?;
        let values = |matches: &ArgMatches, id: &str| -> Vec<OsString> {
            let raw = matches.try_get_raw(id).ok().flatten();
            raw.into_iter().flatten().map(OsStr::to_owned).collect()
        };
        let names: Vec<String> = serve
            .get_arguments()
            .filter_map(|option| Some((option.get_long()?, option.get_id().as_str())))
            .filter(|(name, id)| {
                let before = values(&self.begun, id);
                let after = values(now, id);
                let has_file = FILES.contains(name) && before.len() == after.len();
                before != after && !has_file && !RELOADED.contains(name)
            })
            .map(|(name, _)| format!("--{name}"))
            .collect();
        (!names.is_empty()).then(|| format!("needs a restart: {}", names.join(", ")))
    }
}

/// The reason of a command line that is refused.
fn first_line(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let line = text.lines().next().unwrap_or_default();
    line.trim_start_matches("error: ").to_owned()
}

/// Longest file that is read.
const FILE_BYTES_MAX: u64 = 64 << 10;

/// The arguments of the program with those of the file that they name; `None` where they name none.
///
/// # Errors
/// A file that cannot be read or has an unknown key, in words.
pub(crate) fn expanded(
    args: &[OsString],
    program: &Command,
) -> Result<Option<Vec<OsString>>, String> {
    let Some((name, given)) = args.split_first().filter(|(name, _)| *name == "serve") else {
        return Ok(None);
    };
    let Some(command) = program.find_subcommand("serve") else {
        return Ok(None);
    };
    // What is wrong or lacking may depend on the file. A request for help is an error here.
    let lenient = command.clone().ignore_errors(true);
    let parsed = lenient.try_get_matches_from(args).ok();
    let Some((parsed, path)) = parsed.as_ref().and_then(|parsed| {
        let path = parsed.get_one::<PathBuf>("config")?;
        Some((parsed, path))
    }) else {
        return Ok(None);
    };

    let named = |reason: &str| format!("{}: {reason}", path.display());
    let text =
        file_system::read_text(path, FILE_BYTES_MAX).map_err(|error| named(&io_text(&error)))?;
    let of_file = arguments(&text, command, parsed).map_err(|reason| named(&reason))?;
    Ok(Some([std::slice::from_ref(name), &of_file, given].concat()))
}

/// Arguments for the keys of a file, without those that the command line has as well.
fn arguments(text: &str, command: &Command, parsed: &ArgMatches) -> Result<Vec<OsString>, String> {
    let table: Table = toml::from_str(text).map_err(|error| error.to_string())?;
    let mut arguments = Vec::new();

    for (key, value) in &table {
        let mut options = command.get_arguments();
        let option = options.find(|option| option.get_long() == Some(key) && key != "config");
        let option = option.ok_or_else(|| {
            format!("unknown key {key}; keys are the options of `linerate serve`")
        })?;
        if parsed.value_source(option.get_id().as_str()) == Some(ValueSource::CommandLine) {
            continue;
        }

        match value {
            Value::Array(values) => {
                for value in values {
                    arguments.extend(argument(key, value)?);
                }
            }
            value => arguments.extend(argument(key, value)?),
        }
    }

    Ok(arguments)
}

fn argument(key: &str, value: &Value) -> Result<Option<OsString>, String> {
    let text = match value {
        Value::Boolean(is_set) => return Ok(is_set.then(|| format!("--{key}").into())),
        Value::String(text) => text.clone(),
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        _ => {
            return Err(format!(
                "{key} is neither text, number, boolean nor a list of these"
            ));
        }
    };
    Ok(Some(format!("--{key}={text}").into()))
}

#[cfg(test)]
mod tests {
    use clap::{Args, Command};

    use super::*;

    fn found(text: &str, given: &[&str]) -> Result<Vec<String>, String> {
        let command = ServeArgs::augment_args(Command::new("serve"));
        let words = [&["serve"], given].concat();
        let lenient = command.clone().ignore_errors(true);
        let parsed = lenient.get_matches_from(words);
        let arguments = arguments(text, &command, &parsed)?;
        Ok(arguments
            .iter()
            .map(|argument| argument.to_string_lossy().into_owned())
            .collect())
    }

    #[test]
    fn values_become_arguments_and_the_command_line_takes_precedence() {
        let text = "port = 5300\nallow = [\"192.0.2.0/24\", \"@list\"]\nno-browser = true\ninterval = 2.5\n";
        let all = [
            "--allow=192.0.2.0/24",
            "--allow=@list",
            "--interval=2.5",
            "--no-browser",
            "--port=5300",
        ];
        let sorted = |given: &[&str]| {
            let mut arguments = found(text, given).expect("options");
            arguments.sort();
            arguments
        };
        assert_eq!(sorted(&[]), all);
        assert_eq!(sorted(&["-p", "1", "--allow=::1"]), all[2..4]);
        assert_eq!(found("no-browser = false", &[]), Ok(vec![]));
    }

    #[test]
    fn unknown_keys_and_kinds_are_errors_that_name_the_key() {
        for text in [
            "ports = 1",
            "config = \"x\"",
            "help = true",
            "[port]\nx = 1",
            "port = 1979-05-27",
            "port =",
        ] {
            let error = found(text, &[]).expect_err(text);
            assert!(
                ["port", "config", "help"]
                    .iter()
                    .any(|key| error.contains(key)),
                "{error}"
            );
        }
    }

    #[test]
    fn file_is_named_in_both_forms_beside_what_depends_on_it() {
        let program =
            Command::new("linerate").subcommand(ServeArgs::augment_args(Command::new("serve")));
        for (words, expected) in [
            (&["--config", "/none"][..], Err(())),
            (
                &["--iperf2-udp-reverse", "-p", "1", "--config=/none"],
                Err(()),
            ),
            (&["--config", "/none", "--help"], Ok(None)),
            (&["--config"], Ok(None)),
            (&[], Ok(None)),
        ] {
            let words: Vec<OsString> = ["serve"].iter().chain(words).map(OsString::from).collect();
            assert_eq!(
                expanded(&words, &program).map_err(drop),
                expected,
                "{words:?}"
            );
        }
    }
}
