//! `iperf`, `iperf2` and `linerate iperf2`.

pub(crate) mod man;

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::path::Path;

use linerate::command_line::iperf2::{Command, Message, OutputOptions, Request, parse};
use linerate::server::observed;
use linerate::{Outcome, client, server};
use linerate_document::{DroppedNotice, Output};
use linerate_iperf2::report;
use linerate_model::event::Endpoint;
use linerate_model::sink::Tee;
use linerate_model::spec::{ClientSpec, ServerSpec};
use linerate_sys::process;
use linerate_sys::signal::Signals;

use crate::observers::{self, Ended, Requests};
use crate::output::{complain, is_interrupted, signals};

/// Carries out an iperf 2 command line. `program` is how the user called it, `args` is what
/// followed.
pub(crate) fn main(program: &OsStr, args: &[OsString]) -> Outcome {
    let parsed = parse(program, args);
    show(&parsed.messages);

    match parsed.request {
        Request::Run(Command::Client { spec, output, .. }) => run_client(&spec, &output),
        Request::Run(Command::Server {
            spec,
            daemon,
            output,
            ..
        }) => run_server(&spec, daemon, &output),
        Request::Print {
            text,
            is_output,
            is_success,
        } => {
            // There is nowhere left to complain if both are gone.
            let _ = if is_output {
                io::stdout().write_all(&text)
            } else {
                io::stderr().write_all(&text)
            };
            if is_success {
                Outcome::Done
            } else {
                Outcome::NotCompleted
            }
        }
    }
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

/// Runs one test as its client. As with the original, a test that fails shows in words and not in
/// the exit code, unless the server's name is unknown.
fn run_client(spec: &ClientSpec, output: &OutputOptions) -> Outcome {
    let started = start(output, || match &output.file {
        Some(path) => Output::log_file(path),
        None => Ok(Output::standard()),
    });
    let (stream, signals) = match started {
        Ok(started) => started,
        Err(text) => return refuse(&text),
    };

    let requests = Requests {
        program: "iperf",
        record: output.record.as_deref(),
        expect: output.expect.as_deref(),
        tui: output.tui,
        is_to_file: output.file.is_some(),
    };
    observers::client(&requests, spec, stream, |observers, stream| {
        let options = output.report_options(Endpoint::Client, &spec.local);
        let mut sink = report::client_sink(options, stream);
        let result = client::run_iperf2(spec, &mut Tee(observers, &mut *sink), &signals);
        // It has been reported.
        let outcome = match &result {
            Err(failure) if failure.code.is_some() => Outcome::NotCompleted,
            _ => Outcome::Done,
        };
        Ended {
            outcome,
            is_interrupted: is_interrupted(&result),
            diagnosis: None,
        }
    })
}

/// Serves clients.
fn run_server(spec: &ServerSpec, daemon: bool, output: &OutputOptions) -> Outcome {
    // Before any thread starts: fork(2) copies the calling thread alone.
    if daemon && let Err(error) = process::daemonize() {
        return refuse(&error.text());
    }

    let notice = DroppedNotice::error(|lines| {
        format!("WARN: {lines} lines of the report could not be written\n")
    });
    let (stream, signals) = match start(output, || {
        Output::for_server(output.file.as_deref(), notice)
    }) {
        Ok(started) => started,
        Err(text) => return refuse(&text),
    };

    observers::server(output.record.as_deref(), |records| {
        let options = output.report_options(Endpoint::Server, &spec.local);
        let reporter = report::server_reporter(options, stream.clone());
        let outcome = server::run_iperf2(spec, &mut *observed(records, reporter), &signals);
        // A signal is the usual end of a server and no failure.
        if let Err(failure) = &outcome
            && !is_interrupted(&outcome)
        {
            stream.error(&format!("{failure}\n"));
        }
        server::flush(&stream, &outcome);
    });
    Outcome::Done
}

fn refuse(text: &str) -> Outcome {
    complain("ERROR", text, Outcome::NotCompleted)
}

fn start(
    output: &OutputOptions,
    open: impl FnOnce() -> io::Result<Output>,
) -> Result<(Output, Signals), String> {
    let signals = signals().map_err(|error| error.to_string())?;
    let name = output
        .file
        .as_deref()
        .unwrap_or(Path::new("standard output"));
    let stream = open().map_err(|e| format!("{}: {e}", name.display()))?;

    // Thousands of streams need as many descriptors; without the right to raise the limit fewer
    // fit.
    let _ = process::raise_fd_limit();
    Ok((stream, signals))
}
