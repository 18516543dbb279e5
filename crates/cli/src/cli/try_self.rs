//! `linerate try`.

use std::io::{self, Write};

use linerate::trial::{self, Unsound};
use linerate_model::FailureKind;
use linerate_report::trial as report;
use linerate_sys::signal::{Signal, Signals};

use crate::exit_code::ExitCode;

/// Tests this machine against itself and writes the answer.
pub(crate) fn main() -> ExitCode {
    let signals = match Signals::new(&[Signal::Interrupt, Signal::Terminate, Signal::Hangup]) {
        Ok(signals) => signals,
        Err(error) => {
            return answer(&report::not_sound("start of the server", &error.to_string()), ExitCode::NotCompleted);
        }
    };
    match trial::run(&signals, &mut |title| writeln!(io::stdout(), "\n== {title} ==")) {
        Ok([a, b, c, d]) => answer(&report::sound([a, b], [c, d]), ExitCode::Done),
        Err(Unsound { failure, .. }) if failure.kind == FailureKind::Interrupted => ExitCode::Interrupted,
        Err(Unsound { title, failure }) => answer(&report::not_sound(title, &failure.message), ExitCode::NotCompleted),
    }
}

fn answer(line: &str, code: ExitCode) -> ExitCode {
    // There is nowhere left to complain if stdout is gone.
    let _ = write!(io::stdout(), "\n{line}");
    code
}
