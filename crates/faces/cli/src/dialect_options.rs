//! The option table of a dialect as arguments of a command, for manual pages and completions.

use clap::{Arg, ArgAction, Command};
use linerate::command_line::{OptionGroup, OptionHelp, Value};

/// A command with the options of a dialect.
pub(crate) fn with_options(command: Command, groups: &[OptionGroup]) -> Command {
    let argument = |option: &OptionHelp, title| {
        let long = option.longs.first().copied().unwrap_or_default();
        let argument = Arg::new(long)
            .long(long)
            .short(option.short)
            .help(option.help)
            .help_heading(title);
        match option.value {
            Value::None => argument.action(ArgAction::SetTrue),
            Value::Required(name) => argument.value_name(name),
            Value::Optional(name) => argument
                .value_name(name)
                .num_args(0..=1)
                // An optional value follows `=`, as in getopt_long(3), and never as a separate
                // argument.
                .require_equals(true),
        }
    };
    let arguments = groups.iter().flat_map(|group| {
        let options = group.options.iter();
        options.map(|option| argument(option, group.title))
    });
    command
        // The dialects have `-h` and `-v` of their own.
        .disable_help_flag(true)
        .disable_version_flag(true)
        .args(arguments)
}
