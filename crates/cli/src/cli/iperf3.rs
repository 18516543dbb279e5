//! The iperf3 dialect: the command line of iperf3, option for option and message for message.

pub(crate) mod completion;
pub(crate) mod man;

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use linerate::command_line::iperf3::args::{Args, Parsed};
use linerate::command_line::iperf3::error::UsageError;
use linerate::command_line::iperf3::resolve::{self, Command, Surroundings, resolve};
use linerate::command_line::iperf3::{help, password, version};
use linerate::exit_code::ExitCode;

use crate::run;

/// Keys and lists of users are never larger.
const FILE_LEN_MAX: u64 = 1 << 20;

/// Carries out an iperf3 command line. `program` is how the user called it, `words` is what followed.
pub(crate) fn main(program: &OsStr, words: &[OsString]) -> ExitCode {
    match command(words) {
        Ok(Some(Command::Client { spec, process, output })) => run::run_client(&spec, &process, output),
        Ok(Some(Command::Server { spec, process, output })) => run::run_server(&spec, &process, output),
        Ok(None) => ExitCode::Done,
        Err(error) => {
            let mut text = error.message(program);
            text.extend_from_slice(b"\n\n");
            text.extend_from_slice(help::SHORT_USAGE.as_bytes());
            // There is nowhere left to complain if stderr is gone.
            let _ = io::stderr().write_all(&text);
            ExitCode::NotCompleted
        }
    }
}

/// What is to be done, `None` when showing a text was all.
fn command(words: &[OsString]) -> Result<Option<Command>, UsageError> {
    let args = match Args::parse(words)? {
        Parsed::Version => {
            show(&version::version_text(&version::system_line(), &run::features()));
            return Ok(None);
        }
        Parsed::Help => {
            show(&help::long_help());
            return Ok(None);
        }
        Parsed::Run(args) => args,
    };
    let warnings = resolve::warnings(&args);
    let surroundings = Surroundings {
        read_file: &read_file,
        password: &password::password,
    };
    let command = resolve(*args, &surroundings)?;
    for warning in warnings {
        let _ = writeln!(io::stderr(), "{warning}");
    }
    Ok(Some(command))
}

/// A reader that has gone away is no error of ours.
fn show(text: &str) {
    let _ = io::stdout().write_all(text.as_bytes());
}

fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let mut contents = Vec::new();
    File::open(path)?.take(FILE_LEN_MAX).read_to_end(&mut contents)?;
    Ok(contents)
}
