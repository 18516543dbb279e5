//! The command line of `linerate http`.

pub(crate) mod agent;
pub(crate) mod control;
pub(crate) mod lab;
pub(crate) mod load;
mod protocol;
pub(crate) mod serve;
pub(crate) mod target_access;
pub(crate) mod values;

use std::ffi::OsString;
use std::io::{self, Write};

use clap::{Args, Subcommand};

use linerate::{Outcome, http};

use crate::output::complain;
use linerate_sys::poll::{Interest, wait_fd};
use linerate_sys::signal::Signals;

/// The HTTP lab.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct HttpArgs {
    #[command(subcommand)]
    command: HttpCommand,
}

const EXAMPLES: &str = "\
Examples:
  server$ linerate http serve --token-file t                                    the server
  client$ linerate http lab http://192.0.2.7:8080 --check --token-file t        are both ready?
  client$ linerate http load http://192.0.2.7:8080/b/1k -c 64 --token-file t    one load
  client$ linerate http lab http://192.0.2.7:8080 --quick --token-file t        everything";

#[derive(Debug, Subcommand)]
enum HttpCommand {
    /// Serve fixed payloads over HTTP/1.1 at the lowest cost the kernel allows
    ///
    /// `GET /b/SIZE` (`0` to `64m`; also `/0 /1k /10k /100k /1m`) and `POST /sink`, as a target for
    /// `linerate http`, wrk, ab, h2load, oha or curl.
    Serve(Box<serve::ServeArgs>),
    /// Send requests to a server and measure latency
    ///
    /// Closed loop: every connection sends its next request after the response. With --rate an open
    /// loop: requests are due on a schedule, and latency counts from the due time, whether or not a
    /// connection was free.
    Load(Box<load::LoadArgs>),
    /// The whole experiment, or parts of it: TCP alone, payloads, connections, ten thousand of them,
    /// with a verdict for each
    Lab(Box<lab::LabArgs>),
    /// Provide measurements of this host to a client, beside any server
    ///
    /// Measures CPUs, memory, descriptors, sockets and the NIC, and listens on its own port.
    /// Nothing is changed.
    Agent(Box<agent::AgentArgs>),
    /// Worker process of a load
    #[command(hide = true)]
    Worker,
    /// Replaced by `linerate http lab --phases 2`
    #[command(hide = true, disable_help_flag = true)]
    Matrix(ReplacedArgs),
    /// Replaced by `linerate http lab --phases 3`
    #[command(name = "c10k", hide = true, disable_help_flag = true)]
    C10k(ReplacedArgs),
    /// Replaced by `linerate http lab --check`
    #[command(hide = true, disable_help_flag = true)]
    Check(ReplacedArgs),
    /// Replaced by `linerate compare`
    #[command(hide = true, disable_help_flag = true)]
    Compare(ReplacedArgs),
}

/// The command line of a command that another one replaced.
#[derive(Debug, Args)]
struct ReplacedArgs {
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    _args: Vec<OsString>,
}

/// What is written to standard output and standard error.
#[derive(Debug, Clone, Copy, Default, Args)]
struct OutputArgs {
    /// Write one JSON object instead of text
    #[arg(long, conflicts_with = "json_stream")]
    json: bool,
    /// Write one JSON object per second and one at the end
    #[arg(long)]
    json_stream: bool,
    /// Show what runs on the terminal of the standard error
    #[arg(long, conflicts_with = "json_stream")]
    tui: bool,
    /// No progress messages
    #[arg(short, long)]
    quiet: bool,
}

impl OutputArgs {
    fn resolve(self) -> http::Output {
        http::Output {
            json: self.json,
            json_stream: self.json_stream,
            quiet: self.quiet,
            tui: self.tui,
        }
    }
}

/// Time of a load; `None` of every other command.
pub(crate) fn run_length(args: &HttpArgs) -> Option<std::time::Duration> {
    match &args.command {
        HttpCommand::Load(args) => Some(args.run_length()),
        _ => None,
    }
}

/// Carries out a command line of the lab.
pub(crate) fn main(args: &HttpArgs) -> Outcome {
    let outcome = match &args.command {
        HttpCommand::Serve(args) => args.resolve().map(|plan| serve::run(&plan)),
        HttpCommand::Load(args) => args.resolve().map(|plan| args.run(&plan)),
        HttpCommand::Lab(args) => args.resolve().map(|spec| http::lab::run(&spec)),
        HttpCommand::Agent(args) => args.resolve().map(|spec| agent::run(&spec)),
        HttpCommand::Worker => Ok(http::load::work().map(|()| Outcome::Done)),
        HttpCommand::Matrix(_) => Err(replaced_by("matrix", "http lab --phases 2")),
        HttpCommand::C10k(_) => Err(replaced_by("c10k", "http lab --phases 3")),
        HttpCommand::Check(_) => Err(replaced_by("check", "http lab --check")),
        HttpCommand::Compare(_) => Err(replaced_by("compare", "compare")),
    };
    match outcome {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(error)) => complain("linerate http", &error.to_string(), error.outcome),
        Err(text) => complain("linerate http", &text, Outcome::Usage),
    }
}

/// The command to use instead of `linerate http NAME`, whatever its arguments are.
fn replaced_by(name: &str, command: &str) -> String {
    format!("{name} was replaced; use: linerate {command}")
}

/// Writes at once; a closed pipe does not stop a server.
fn say(text: &str) {
    let mut stdout = io::stdout().lock();
    let _ = stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush());
}

/// Returns when one of the signals arrives.
fn wait_for_signal(signals: &Signals) {
    while signals.take().ok().flatten().is_none() {
        // A wait that fails would return at once forever.
        if wait_fd(signals, Interest::READ, None).is_err() {
            break;
        }
    }
}
