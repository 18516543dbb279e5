//! Placeholders of commands and options that this build leaves out. They are in no help; used all
//! the same, they name the program that has them.
#![allow(dead_code, reason = "a build with some of the features uses a part")]

use std::ffi::OsString;
use std::time::Duration;

use clap::Args;
use linerate::expect::{Expectations, LimitedTest};
use linerate::{Error, Outcome};

use super::complain;

/// The words behind a command, whatever they are.
#[derive(Debug, Args)]
#[command(hide = true, disable_help_flag = true)]
pub(crate) struct CommandArgs {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<OsString>,
}

fn refuse(command: &str) -> Outcome {
    let error = Error::absent(command);
    complain("linerate", &error.to_string(), error.outcome)
}

/// Modules of commands, each with the name of its arguments and the words that call it.
macro_rules! commands {
    ($($module:ident, $args:ident, $words:literal;)*) => {
        $(pub(crate) mod $module {
            use super::*;

            pub(crate) use super::CommandArgs as $args;

            pub(crate) fn main<T>(_: T) -> Outcome {
                refuse($words)
            }

            pub(crate) fn run_length(_: &$args) -> Option<Duration> {
                None
            }
        })*
    };
}

commands! {
    compare, CompareArgs, "compare";
    doctor, DoctorArgs, "doctor";
    fleet, FleetArgs, "fleet";
    history, HistoryArgs, "history";
    http, HttpArgs, "http";
    report, ReportArgs, "report";
    sweep, SweepArgs, "sweep";
    test, TestArgs, "test";
    systemd, SystemdArgs, "generate systemd";
    watch, WatchArgs, "watch";
}

pub(crate) mod expect {
    use super::*;

    /// No test has limits.
    pub(crate) fn missed_by_test(
        _: &str,
        _: Option<&Expectations>,
        _: Option<LimitedTest>,
        outcome: Outcome,
    ) -> Outcome {
        outcome
    }
}

pub(crate) mod record {
    use linerate::record::RecordOptions;

    use super::*;

    /// Record of a native command.
    #[derive(Debug, Default, Args)]
    pub(crate) struct RecordArgs {
        #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "")]
        record: Option<String>,
    }

    impl RecordArgs {
        /// No record; refuses to make one.
        pub(crate) fn of_server(&self) -> Result<Option<RecordOptions>, String> {
            match self.record.as_deref() {
                None | Some("off") => Ok(None),
                Some(_) => Err(Error::absent("--record").to_string()),
            }
        }
    }

    pub(crate) fn of_drop_in(_: Option<&str>) -> Option<RecordOptions> {
        None
    }

    pub(crate) fn report(_: Option<String>) {}
}
