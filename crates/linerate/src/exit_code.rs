//! What the process tells its caller.

/// Exit codes, converted to numbers in `main` only. The iperf3 dialect uses the first two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitCode {
    /// Everything was done.
    Done,
    /// The test could not be completed; in a dialect also a wrong command line.
    NotCompleted,
    /// Wrong command line of the native commands.
    Usage,
    /// The doctor found something as severe as `--fail-on` asked for.
    Found,
    /// The HTTP lab: a check before the experiment failed.
    CheckFailed,
    /// The HTTP lab: the server does not answer.
    Unreachable,
    /// The HTTP lab: what `--assert` demands was missed.
    Missed,
    /// The HTTP lab: more than a fifth of the cells say nothing.
    Invalid,
    /// The user interrupted it.
    Interrupted,
}

impl From<ExitCode> for std::process::ExitCode {
    fn from(code: ExitCode) -> Self {
        Self::from(match code {
            ExitCode::Done => 0,
            ExitCode::NotCompleted => 1,
            ExitCode::Usage => 2,
            ExitCode::Found | ExitCode::CheckFailed => 3,
            ExitCode::Unreachable => 4,
            ExitCode::Missed => 5,
            ExitCode::Invalid => 6,
            ExitCode::Interrupted => 130,
        })
    }
}
