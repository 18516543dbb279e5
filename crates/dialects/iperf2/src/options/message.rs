//! Messages before a test, and what ends the program without one.

/// One remark for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// On the standard error; bytes, because it quotes what was typed.
    Error(Vec<u8>),
    /// On the standard output.
    Output(String),
}

/// The program ends without a test.
#[derive(Debug)]
pub(crate) enum Stop {
    /// `-h`
    Help,
    /// `-v`
    Version,
    /// No option selects client or server. The original exits with success.
    Usage,
    /// These lines on the standard error, and failure.
    Refused(Vec<String>),
    /// This line on the standard error, and success: some refusals of the original are.
    Quiet(String),
}

impl Stop {
    /// One line and failure.
    pub(crate) fn error(text: impl Into<String>) -> Self {
        Self::Refused(vec![text.into()])
    }
}
