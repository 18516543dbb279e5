//! The command line of `linerate fleet resume`.

use std::path::PathBuf;

use clap::Args;
use linerate::fleet::run::resume;
use linerate::{Error, Outcome};

use super::bus::BusArgs;
use super::output::OutputArgs;
use crate::record::RecordArgs;

/// Which run is continued.
#[derive(Debug, Args)]
pub(super) struct ResumeArgs {
    /// The run: its id or the end of it, last, last~2, or the file of its record
    #[arg(value_name = "RUN")]
    run: String,
    /// Configuration of ssh instead of the user's (ssh -F)
    #[arg(long, value_name = "FILE")]
    ssh_config: Option<PathBuf>,
    #[command(flatten)]
    bus: BusArgs,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    record: RecordArgs,
}

impl ResumeArgs {
    pub(super) fn run(self) -> Result<Outcome, Error> {
        let record = self.record.resolve(true).map_err(Error::usage)?;
        let bus = self.bus.resolve();

        let Self {
            run,
            ssh_config,
            output,
            ..
        } = self;
        output.run(|signals, progress| resume(&run, ssh_config, bus, record, signals, progress))
    }
}
