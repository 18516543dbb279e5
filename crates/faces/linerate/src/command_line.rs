//! The command lines of the dialects, with the checks of values that the dialects leave to other
//! parts of the program.

pub mod iperf2;
pub mod iperf3;
mod suggest;

pub use linerate_model::command_line::table::{OptionGroup, OptionHelp, Value};
pub use linerate_model::command_line::values;
pub use suggest::misplaced_options;

use crate::Error;
use crate::diagnose::check_doctor;
use crate::expect::Expectations;
use crate::record::{self, Labels};

/// Checks of this build.
const CHECKS: values::ValueChecks = values::ValueChecks {
    expectations: |typed| read_limits(typed).map(drop),
    labels: |typed| record::labels(typed).map(drop),
    diagnosis: check_doctor,
};

/// Limits as a dialect's options hold them; `None` where none were typed.
#[must_use]
pub fn limits(typed: Option<&str>) -> Option<Expectations> {
    // What cannot be read was refused with its option.
    read_limits(typed?).ok()
}

/// Labels as a dialect's options hold them; `None` where no record was requested.
#[must_use]
pub fn labels(typed: Option<&str>) -> Option<Labels> {
    record::labels(typed?).ok()
}

fn read_limits(typed: &str) -> Result<Expectations, Error> {
    typed.parse().map_err(Error::usage)
}
