//! The command lines of the dialects, option for option and message for message: from words to a
//! specification.

mod getopt;
pub mod iperf2;
pub mod iperf3;
mod numbers;
mod options;
mod suggest;
pub mod values;

pub use options::{OptionGroup, OptionHelp, Value};
pub use suggest::misplaced_options;
