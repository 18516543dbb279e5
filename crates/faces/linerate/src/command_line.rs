//! The command lines of the dialects, with the checks of values that the dialects leave to other
//! parts of the program.

pub mod iperf2;
pub mod iperf3;
mod suggest;

pub use linerate_model::command_line::table::{OptionGroup, OptionHelp, Value};
pub use linerate_model::command_line::values;
pub use suggest::misplaced_options;

use crate::Error;
#[cfg(feature = "full")]
use crate::expect::Expectations;
#[cfg(feature = "full")]
use crate::record::{self, Labels};

/// Checks of values by the products.
#[cfg(feature = "full")]
const CHECKS: values::ValueChecks = values::ValueChecks {
    expectations: |typed| read_limits(typed).map(drop),
    labels: |typed| record::labels(typed).map(drop),
    diagnosis: || Ok(()),
};

/// Without the products their options are refused.
#[cfg(not(feature = "full"))]
const CHECKS: values::ValueChecks = values::ValueChecks {
    expectations: |_| Err(Error::absent("the check of limits")),
    labels: |_| Err(Error::absent("the history")),
    diagnosis: || Err(Error::absent("the doctor")),
};

/// Limits as a dialect's options hold them; `None` where none were typed.
#[cfg(feature = "full")]
pub fn limits(typed: Option<&str>) -> Option<Expectations> {
    // What cannot be read was refused with its option.
    read_limits(typed?).ok()
}

/// Labels as a dialect's options hold them; `None` where no record was requested.
#[cfg(feature = "full")]
pub fn labels(typed: Option<&str>) -> Option<Labels> {
    record::labels(typed?).ok()
}

#[cfg(feature = "full")]
fn read_limits(typed: &str) -> Result<Expectations, Error> {
    typed.parse().map_err(Error::usage)
}
