//! The iperf 2 dialect: the command line of iperf 2.1.8 and 2.2.1, option for option and message for message.

pub(crate) mod man;

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::time::{SystemTime, UNIX_EPOCH};

use linerate::command_line::iperf2::args::{self, Args, Layout};
use linerate::command_line::iperf2::help;
use linerate::command_line::iperf2::message::{Message, Stop};
use linerate::command_line::iperf2::resolve::{Command, Surroundings, resolve};
use linerate::exit_code::ExitCode;

use crate::run;

/// Carries out an iperf 2 command line. `program` is how the user called it, `words` is what followed.
pub(crate) fn main(program: &OsStr, words: &[OsString]) -> ExitCode {
    let mut args = match Args::parse(program, words, &|name| std::env::var_os(name)) {
        Ok(args) => args,
        Err((said, stop)) => {
            show(&said);
            return end(program, &stop, args::layout(words));
        }
    };
    let layout = args.output.layout;
    let surroundings = Surroundings {
        now: SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default(),
        secret: &secret,
    };
    let outcome = resolve(&mut args, &surroundings);
    show(&args.take_messages());
    match outcome {
        Ok(Command::Client { spec, output }) => run::iperf2::run_client(&spec, &output),
        Ok(Command::Server { spec, daemon, output }) => run::iperf2::run_server(&spec, daemon, &output),
        Err(stop) => end(program, &stop, layout),
    }
}

/// Says why there is no test. 2.1.8 writes its help and version to the standard error, 2.2.1 to the standard output.
fn end(program: &OsStr, stop: &Stop, layout: Layout) -> ExitCode {
    let text = match stop {
        Stop::Help => help::long_help().into_bytes(),
        Stop::Version => help::version(layout).into_bytes(),
        Stop::Usage => help::short_usage(program),
        Stop::Refused(lines) => lines.iter().flat_map(|line| format!("{line}\n").into_bytes()).collect(),
        Stop::Quiet(line) => format!("{line}\n").into_bytes(),
    };
    let is_new_release = layout == Layout::V2_2;
    // There is nowhere left to complain if both are gone.
    if is_new_release && matches!(stop, Stop::Help | Stop::Version) {
        let _ = io::stdout().write_all(&text);
    } else {
        let _ = io::stderr().write_all(&text);
    }
    stop.exit_code(is_new_release)
}

fn show(messages: &[Message]) {
    for message in messages {
        match message {
            Message::Error(text) => {
                let _ = io::stderr().write_all(&[text.as_slice(), b"\n"].concat());
            }
            Message::Output(text) => {
                let _ = writeln!(io::stdout(), "{text}");
            }
        }
    }
}

/// Sixteen letters and digits from the kernel's random source.
fn secret() -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut bytes = [0; 16];
    let filled = File::open("/dev/urandom").and_then(|mut source| source.read_exact(&mut bytes));
    filled.expect("every Linux system has /dev/urandom");
    bytes
        .iter()
        .map(|byte| char::from(LETTERS[usize::from(byte & 63)]))
        .collect()
}
