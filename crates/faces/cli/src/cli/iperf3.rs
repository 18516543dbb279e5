//! `iperf3` and `linerate iperf3`.

pub(crate) mod completion;
pub(crate) mod man;
mod pidfile;

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};

use linerate::client::{Client, Reported};
use linerate::command_line;
use linerate::command_line::iperf3::{Command, OutputOptions, ProcessOptions, Request, parse};
use linerate::expect::LimitedTest;
use linerate::live::Live;
use linerate::record::{SessionRecords, TestRecording};
use linerate::server;
use linerate::view::View;
use linerate_document::{DroppedNotice, Output};
use linerate_iperf3::report;
use linerate_iperf3::wire::ErrorCode;
use linerate_model::event::Endpoint;
use linerate_model::sink::Tee;
use linerate_model::spec::{ClientSpec, ServerSpec};
use linerate_model::{Failure, FailureKind};
use linerate_sys::process;
use linerate_sys::signal::{Signal, Signals};

use super::{complain, expect, record};
use linerate::Outcome;
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
    let Started {
        output: stream,
        signals,
        pidfile: _pidfile,
    } = match started {
        Ok(started) => started,
        Err(failure) => return refuse(&failure),
    };

    let live = process.tui.then(Live::default);
    let view = live.as_ref().and_then(View::open);
    let stream = view
        .as_ref()
        .filter(|_| output.logfile.is_none())
        .map_or(stream, View::output);
    let mut recording =
        record::of_drop_in(process.record.as_deref()).map(|to| TestRecording::begin(to, spec));
    let mut report = report::client_sink(output.report_options(Endpoint::Client), stream);
    let limits = command_line::limits(process.expect.as_deref());
    let mut limited = limits.clone().map(LimitedTest::new);
    let mut shown = view.as_ref().and(live.as_ref()).map(Live::sink);
    let mut report = Tee(
        Tee(Tee(recording.as_mut(), limited.as_mut()), shown.as_mut()),
        &mut *report,
    );

    let Reported {
        outcome: result,
        diagnosis,
        ..
    } = Client::new(spec.clone()).report(&mut report, output.verbose, &signals);
    if let Some(view) = view {
        view.close();
    }

    record::report(
        recording
            .and_then(|recording| recording.finish(is_interrupted(&result), diagnosis).message),
    );
    expect::missed_by_test("iperf3", limits.as_ref(), limited, outcome_of(&result))
}

/// Serves clients.
fn run_server(spec: &ServerSpec, process: &ProcessOptions, output: &OutputOptions) -> Outcome {
    // Before any thread starts: fork(2) copies the calling thread alone.
    if process.daemon
        && let Err(error) = process::daemonize(true)
    {
        return refuse(&ErrorCode::Daemon.failure(Some(&error.text())));
    }

    let notice = DroppedNotice::error(|lines| {
        format!("iperf3: {lines} lines of the report could not be written\n")
    });
    let Started {
        output: stream,
        signals,
        pidfile: _pidfile,
    } = match start(process, || {
        Output::for_server(output.logfile.as_deref(), notice)
    }) {
        Ok(started) => started,
        Err(failure) => return refuse(&failure),
    };

    let options = output.report_options(Endpoint::Server);
    let records = record::of_drop_in(process.record.as_deref()).map(SessionRecords::new);

    let outcome = server::run_iperf3(
        spec,
        options.clone(),
        stream.clone(),
        process.metrics,
        records.as_ref(),
        &signals,
    );
    if let Err(failure) = &outcome {
        // Nothing is left to be done when the report of the end cannot be written.
        let _ = report::report_failure(options, stream.clone(), failure);
        if failure.kind == FailureKind::Error {
            stream.error("iperf3: exiting\n");
        }
    }

    server::flush(&stream, &outcome);
    record::report(records.and_then(SessionRecords::close));
    outcome_of(&outcome)
}

/// State that both ends need before the engine starts.
struct Started {
    output: Output,
    signals: Signals,
    /// Removes the file when it goes.
    pidfile: Option<Pidfile>,
}

fn start(
    process: &ProcessOptions,
    open: impl FnOnce() -> io::Result<Output>,
) -> Result<Started, Failure> {
    // Before any thread starts: threads inherit the block.
    let signals = Signals::new(&[Signal::Interrupt, Signal::Terminate, Signal::Hangup])
        .map_err(|e| ErrorCode::InitTest.failure(Some(&e.text())))?;
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
        pidfile,
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

fn is_interrupted(result: &Result<(), Failure>) -> bool {
    result
        .as_ref()
        .is_err_and(|failure| failure.kind == FailureKind::Interrupted)
}
