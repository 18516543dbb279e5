//! The program `linerate`, which measures how fast a path is and what limits it.
//!
//! One binary with several command lines: its own, and those of programs that it can replace.

#![forbid(unsafe_code)]

mod argv0;
#[cfg(feature = "full")]
mod compare;
mod dialect_options;
#[cfg(feature = "full")]
mod doctor;
#[cfg(feature = "full")]
mod expect;
#[cfg(feature = "full")]
mod fleet;
mod generate;
mod help;
#[cfg(feature = "full")]
mod history;
mod how_to;
#[cfg(feature = "full")]
mod http;
mod iperf2;
mod iperf3;
mod links;
mod log;
mod man;
mod manual_page;
mod native;
mod observers;
mod output;
#[cfg(feature = "full")]
mod products;
#[cfg(feature = "full")]
mod record;
#[cfg(feature = "full")]
mod report;
mod serve;
#[cfg(feature = "full")]
mod servers;
#[cfg(feature = "full")]
mod sweep;
#[cfg(feature = "full")]
mod systemd;
#[cfg(feature = "full")]
mod test;
mod try_self;
#[cfg(feature = "full")]
mod watch;

use std::ffi::{OsStr, OsString};

use argv0::Dialect;
use linerate::Outcome;

/// The allocator of musl may map and unmap a page for each block that lives for a moment:
/// connections took half as long again.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

fn main() -> std::process::ExitCode {
    linerate_sys::process::return_large_blocks();
    log::start();
    let argv: Vec<OsString> = std::env::args_os().collect();
    output::exit_code(dispatch(&argv)).into()
}

fn dispatch(argv: &[OsString]) -> Outcome {
    let (program, args) = match argv {
        [program, args @ ..] => (program.as_os_str(), args),
        // Before Linux 5.18 execve(2) passes an empty argument vector on.
        [] => (OsStr::new("linerate"), argv),
    };
    match (argv0::dialect(program), args) {
        (Dialect::Iperf3, args) => iperf3::main(program, args),
        (Dialect::Iperf2, args) => iperf2::main(program, args),
        // Every argument behind the name belongs to the dialect, so the native parser must not
        // read it.
        (Dialect::Native, [first, args @ ..]) if first == "iperf3" => iperf3::main(first, args),
        (Dialect::Native, [first, args @ ..]) if first == "iperf2" => iperf2::main(first, args),
        (Dialect::Native, args) => native::main(args),
    }
}
