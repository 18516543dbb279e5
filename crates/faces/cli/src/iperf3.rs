//! `iperf3` and `linerate iperf3`.

pub(crate) mod man;
mod pidfile;

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};

use linerate::command_line::iperf3::{Command, OutputOptions, ProcessOptions, Request, parse};
use linerate::{Client, Outcome, server};
use linerate_document::{DroppedNotice, Output};
use linerate_iperf3::report;
use linerate_iperf3::wire::ErrorCode;
use linerate_model::event::Endpoint;
use linerate_model::sink::Tee;
use linerate_model::spec::{ClientSpec, ServerSpec};
use linerate_model::{Failure, FailureKind};
use linerate_sys::process;
use linerate_sys::signal::Signals;

use crate::observers::{self, Ended, Requests};
use crate::output::{complain, is_interrupted, signals};
use pidfile::Pidfile;

/// Carries out an iperf3 command line. `program` is how the user called it, `args` is what
/// followed.
pub(crate) fn main(program: &OsStr, args: &[OsString]) -> Outcome {
    // There is nowhere left to complain if a stream is gone.
    match parse(program, args) {
        Ok(Request::Run(command, warnings)) => {
            for warning in warnings {
                let _ = writeln!(io::stderr(), "{warning}");
            }

            match *command {
                Command::Client {
                    spec,
                    process,
                    output,
                    ..
                } => run_client(&spec, &process, &output),
                Command::Server {
                    spec,
                    process,
                    output,
                    ..
                } => run_server(&spec, &process, &output),
            }
        }
        Ok(Request::Print(text)) => {
            let _ = io::stdout().write_all(text.as_bytes());
            Outcome::Done
        }
        Err(text) => {
            let _ = io::stderr().write_all(&text);
            // iperf3 exits with 1 for a wrong command line.
            Outcome::NotCompleted
        }
    }
}

/// Runs one test as its client.
fn run_client(spec: &ClientSpec, process: &ProcessOptions, output: &OutputOptions) -> Outcome {
    let started = start(process, || match &output.logfile {
        Some(path) => Output::log_file(path),
        None => Ok(Output::standard()),
    });
    let started = match started {
        Ok(started) => started,
        Err(failure) => return refuse(&failure),
    };

    let requests = Requests {
        program: "iperf3",
        record: process.record.as_deref(),
        expect: process.expect.as_deref(),
        tui: process.tui,
        is_to_file: output.logfile.is_some(),
    };
    observers::client(&requests, spec, started.output, |observers, stream| {
        let mut report = report::client_sink(output.report_options(Endpoint::Client), stream);
        let mut report = Tee(observers, &mut *report);
        let reported =
            Client::new(spec.clone()).report(&mut report, output.verbose, &started.signals);
        Ended {
            outcome: outcome_of(&reported.outcome),
            is_interrupted: is_interrupted(&reported.outcome),
            diagnosis: reported.diagnosis,
        }
    })
}

/// Serves clients.
fn run_server(spec: &ServerSpec, process: &ProcessOptions, output: &OutputOptions) -> Outcome {
    // Before any thread starts: fork(2) copies the calling thread alone.
    if process.daemon
        && let Err(error) = process::daemonize()
    {
        return refuse(&ErrorCode::Daemon.failure(Some(&error.text())));
    }

    let notice = DroppedNotice::error(|lines| {
        format!("iperf3: {lines} lines of the report could not be written\n")
    });
    let started = match start(process, || {
        Output::for_server(output.logfile.as_deref(), notice)
    }) {
        Ok(started) => started,
        Err(failure) => return refuse(&failure),
    };

    let stream = &started.output;
    let outcome = observers::server(process.record.as_deref(), |records| {
        let options = output.report_options(Endpoint::Server);
        let outcome = server::run_iperf3(
            spec,
            options.clone(),
            stream.clone(),
            process.metrics,
            records,
            &started.signals,
        );
        if let Err(failure) = &outcome {
            // Nothing is left to be done when the report of the end cannot be written.
            let _ = report::report_failure(options, stream.clone(), failure);
            if failure.kind == FailureKind::Error {
                stream.error("iperf3: exiting\n");
            }
        }
        server::flush(stream, &outcome);
        outcome
    });
    outcome_of(&outcome)
}

/// State that both ends need before the engine starts.
struct Started {
    output: Output,
    signals: Signals,
    /// Removes the file when it goes.
    _pidfile: Option<Pidfile>,
}

fn start(
    process: &ProcessOptions,
    open: impl FnOnce() -> io::Result<Output>,
) -> Result<Started, Failure> {
    let signals = signals().map_err(|e| ErrorCode::InitTest.failure(Some(&e.to_string())))?;
    let output =
        open().map_err(|e| ErrorCode::LogFile.failure(Some(&linerate_sys::error::io_text(&e))))?;

    let pidfile = process
        .pidfile
        .as_deref()
        .map(Pidfile::create)
        .transpose()?;
    // Thousands of streams need as many descriptors; without the right to raise the limit fewer
    // fit.
    let _ = process::raise_fd_limit();
    Ok(Started {
        output,
        signals,
        _pidfile: pidfile,
    })
}

/// A failure before there is a writer.
fn refuse(failure: &Failure) -> Outcome {
    complain(
        "iperf3",
        &format!("error - {failure}"),
        Outcome::NotCompleted,
    )
}

/// A test that the user ended has done what he wanted, as since iperf3 3.19.
fn outcome_of(result: &Result<(), Failure>) -> Outcome {
    match result {
        Ok(()) => Outcome::Done,
        Err(_) if is_interrupted(result) => Outcome::Done,
        Err(_) => Outcome::NotCompleted,
    }
}
