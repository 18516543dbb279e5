//! The command line of `linerate generate systemd`.

use std::fs;
use std::path::PathBuf;

use clap::Args;
use linerate::Outcome;
use linerate::watch::systemd::units;
use linerate_sys::error::io_text;

use super::complain;
use super::generate::write_out;
use super::watch::RepeatArgs;

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
pub(super) fn main(args: &SystemdArgs) -> Outcome {
    let usage = |text: String| complain("linerate", &text, Outcome::Usage);
    let words = match args.repeat.words() {
        Ok(words) => words,
        Err(text) => return usage(text),
    };
    let program = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("/usr/bin/linerate"));
    let units = match units(&program, &args.repeat.name(), args.repeat.every, &words) {
        Ok(units) => units,
        Err(text) => return usage(text),
    };
    let files = [("service", &units.service), ("timer", &units.timer)];
    let named = files.map(|(ending, text)| (format!("{}.{ending}", units.name), text));
    let Some(directory) = &args.dir else {
        return write_out(
            named
                .map(|(name, text)| format!("# {name}\n{text}"))
                .join("\n")
                .as_bytes(),
        );
    };

    for (name, text) in named {
        let path = directory.join(name);
        if let Err(error) = fs::write(&path, text) {
            let text = format!("cannot write {}: {}", path.display(), io_text(&error));
            return complain("linerate", &text, Outcome::NotCompleted);
        }
    }

    Outcome::Done
}
