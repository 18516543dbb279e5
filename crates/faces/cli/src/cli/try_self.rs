//! `linerate try`.

use std::io::{self, Write};

use linerate::trial::{self, Unsound};
use linerate_document::trial as report;
use linerate_model::FailureKind;
use linerate_sys::signal::{Signal, Signals};

use linerate::Outcome;

/// Tests this machine against itself and writes the answer.
pub(crate) fn main() -> Outcome {
    let signals = match Signals::new(&[Signal::Interrupt, Signal::Terminate, Signal::Hangup]) {
        Ok(signals) => signals,
        Err(error) => {
            return answer(
                &report::not_sound("start of the server", &error.to_string()),
                Outcome::NotCompleted,
            );
        }
    };
    match trial::run(&signals, &mut |title| {
        writeln!(io::stdout(), "\n== {title} ==")
    }) {
        Ok([a, b, c, d]) => answer(&report::sound([a, b], [c, d]), Outcome::Done),
        Err(Unsound { failure, .. }) if failure.kind == FailureKind::Interrupted => {
            Outcome::Interrupted
        }
        Err(Unsound { title, failure, .. }) => answer(
            &report::not_sound(title, &failure.message),
            Outcome::NotCompleted,
        ),
    }
}

fn answer(line: &str, code: Outcome) -> Outcome {
    // There is nowhere left to complain if stdout is gone.
    let _ = write!(io::stdout(), "\n{line}");
    code
}
