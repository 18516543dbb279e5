//! The program `linerate`, which measures how fast a path is and what limits it.
//!
//! One binary with several command lines: its own, and those of programs that it can replace.

#![forbid(unsafe_code)]

mod argv0;
mod cli;
mod log;

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
    cli::exit_code(dispatch(&argv)).into()
}

fn dispatch(argv: &[OsString]) -> Outcome {
    let (program, words) = match argv {
        [program, words @ ..] => (program.as_os_str(), words),
        [] => (OsStr::new("linerate"), argv),
    };
    match (argv0::dialect(program), words) {
        (Dialect::Iperf3, words) => cli::iperf3::main(program, words),
        (Dialect::Iperf2, words) => cli::iperf2::main(program, words),
        // Everything behind the word belongs to the dialect, so the native parser must not read it.
        (Dialect::Native, [first, words @ ..]) if first == "iperf3" => {
            cli::iperf3::main(first, words)
        }
        (Dialect::Native, [first, words @ ..]) if first == "iperf2" => {
            cli::iperf2::main(first, words)
        }
        (Dialect::Native, words) => cli::native::main(words),
    }
}
