//! `linerate try`.

use std::io::{self, Write};

use linerate::Outcome;
use linerate::trial::{self, FailedTest};
use linerate_document::trial as report;
use linerate_model::FailureKind;

use crate::output::signals;

/// Tests this machine against itself and writes the answer.
pub(crate) fn main() -> Outcome {
    let (line, outcome) = match signals().map(|signals| trial::run(&signals, &mut begin)) {
        Ok(Ok([a, b, c, d])) => (report::passed([a, b], [c, d]), Outcome::Done),
        Ok(Err(FailedTest { failure, .. })) if failure.kind == FailureKind::Interrupted => {
            return Outcome::Interrupted;
        }
        Ok(Err(FailedTest { title, failure, .. })) => (
            report::failed(title, &failure.message),
            Outcome::NotCompleted,
        ),
        Err(error) => {
            let line = report::failed("start of the server", &error.to_string());
            (line, error.outcome)
        }
    };

    // There is nowhere left to complain if stdout is gone.
    let _ = write!(io::stdout(), "\n{line}");
    outcome
}

fn begin(title: &str) -> io::Result<()> {
    writeln!(io::stdout(), "\n== {title} ==")
}
