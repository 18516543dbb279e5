//! What the process tells its caller.

/// Exit codes, converted to numbers in `main` only. The iperf3 dialect uses the first two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExitCode {
    /// Everything was done.
    Done,
    /// The test could not be completed; in a dialect also a wrong command line.
    NotCompleted,
    /// Wrong command line of the native commands.
    Usage,
    /// The doctor found something as severe as `--fail-on` asked for.
    Found,
    /// The user interrupted it.
    Interrupted,
}

impl From<ExitCode> for std::process::ExitCode {
    fn from(code: ExitCode) -> Self {
        Self::from(match code {
            ExitCode::Done => 0,
            ExitCode::NotCompleted => 1,
            ExitCode::Usage => 2,
            ExitCode::Found => 3,
            ExitCode::Interrupted => 130,
        })
    }
}
