//! What is written where.

use clap::Args;

/// To standard output and standard error.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct OutputArgs {
    /// Write one JSON object instead of text
    #[arg(long, conflicts_with = "json_stream")]
    pub(crate) json: bool,
    /// Write one JSON object per second and one at the end
    #[arg(long)]
    pub(crate) json_stream: bool,
    /// Say nothing while it runs
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

impl OutputArgs {
    pub(crate) fn resolve(self) -> linerate::http::Output {
        linerate::http::Output { json: self.json, json_stream: self.json_stream, quiet: self.quiet }
    }
}
