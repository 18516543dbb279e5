//! The command line of `linerate generate systemd`.

use std::fs;
use std::path::PathBuf;

use clap::Args;
use linerate::watch::systemd::units;
use linerate::{Error, Outcome};
use linerate_sys::error::io_text;

use crate::output::print_all;
use crate::watch::RepeatArgs;

/// What is repeated, and where its units are written.
#[derive(Debug, Args)]
#[command(after_help = SYSTEMD_EXAMPLES)]
pub(crate) struct SystemdArgs {
    #[command(flatten)]
    repeat: RepeatArgs,
    /// Write both files to this directory instead of the standard output
    #[arg(long, value_name = "DIRECTORY")]
    dir: Option<PathBuf>,
}

const SYSTEMD_EXAMPLES: &str = "\
Examples:
  linerate generate systemd --every 5m --name uplink --dir /etc/systemd/system -- iperf3 -c 192.0.2.7 -t 5
  systemctl daemon-reload && systemctl enable --now linerate-watch-uplink.timer";

/// Writes the units.
pub(super) fn run(args: &SystemdArgs) -> Result<Outcome, Error> {
    let command = args.repeat.args().map_err(Error::usage)?;
    // A unit has not the PATH of the user, so the program is named by its absolute path.
    let program = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("/usr/bin/linerate"));
    let units =
        units(&program, &args.repeat.name(), args.repeat.every, &command).map_err(Error::usage)?;
    let files = [("service", &units.service), ("timer", &units.timer)];
    let named = files.map(|(ending, text)| (format!("{}.{ending}", units.name), text));

    let Some(directory) = &args.dir else {
        let texts = named.map(|(name, text)| format!("# {name}\n{text}"));
        return print_all(&texts.join("\n"));
    };
    for (name, text) in named {
        let path = directory.join(name);
        fs::write(&path, text).map_err(|error| {
            Error::failed(format!(
                "cannot write {}: {}",
                path.display(),
                io_text(&error)
            ))
        })?;
    }
    Ok(Outcome::Done)
}
