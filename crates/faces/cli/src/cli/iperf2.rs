//! `iperf`, `iperf2` and `linerate iperf2`.

pub(crate) mod man;

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::path::Path;

use linerate::command_line;
use linerate::command_line::iperf2::{Command, Message, OutputOptions, Request, parse};
use linerate::expect::LimitedTest;
use linerate::live::Live;
use linerate::record::{SessionRecords, TestRecording};
use linerate::view::View;
use linerate::{client, server};
use linerate_document::{DroppedNotice, Output};
use linerate_iperf2::report;
use linerate_model::FailureKind;
use linerate_model::event::Endpoint;
use linerate_model::sink::Tee;
use linerate_model::spec::{ClientSpec, ServerSpec};
use linerate_sys::process;
use linerate_sys::signal::{Signal, Signals};

use super::{complain, expect, record};
use linerate::Outcome;

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
    let live = output.tui.then(Live::default);
    let view = live.as_ref().and_then(View::open);
    let stream = view
        .as_ref()
        .filter(|_| output.file.is_none())
        .map_or(stream, View::output);
    let mut sink =
        report::client_sink(output.report_options(Endpoint::Client, &spec.local), stream);
    let mut recording =
        record::of_drop_in(output.record.as_deref()).map(|to| TestRecording::begin(to, spec));
    let limits = command_line::limits(output.expect.as_deref());
    let mut limited = limits.clone().map(LimitedTest::new);
    let mut shown = view.as_ref().and(live.as_ref()).map(Live::sink);
    let mut observers = Tee(Tee(recording.as_mut(), limited.as_mut()), shown.as_mut());
    let result = client::run_iperf2(spec, &mut Tee(&mut observers, &mut *sink), &signals);

    if let Some(view) = view {
        view.close();
    }

    let is_interrupted = result
        .as_ref()
        .is_err_and(|failure| failure.kind == FailureKind::Interrupted);
    record::report(recording.and_then(|recording| recording.finish(is_interrupted, None).message));

    // It has been reported.
    let outcome = match result {
        Err(failure) if failure.code.is_some() => Outcome::NotCompleted,
        _ => Outcome::Done,
    };
    expect::missed_by_test("iperf", limits.as_ref(), limited, outcome)
}

/// Serves clients.
fn run_server(spec: &ServerSpec, daemon: bool, output: &OutputOptions) -> Outcome {
    // Before any thread starts: fork(2) copies the calling thread alone.
    if daemon && let Err(error) = process::daemonize(true) {
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
    let reporter = report::server_reporter(
        output.report_options(Endpoint::Server, &spec.local),
        stream.clone(),
    );
    let records = record::of_drop_in(output.record.as_deref()).map(SessionRecords::new);
    let mut reporter = SessionRecords::observe(records.as_ref(), reporter);
    let outcome = server::run_iperf2(spec, &mut *reporter, &signals);
    if let Err(failure) = &outcome
        && failure.kind != FailureKind::Interrupted
    {
        stream.error(&format!("{failure}\n"));
    }

    server::flush(&stream, &outcome);
    drop(reporter);
    record::report(records.and_then(SessionRecords::close));
    Outcome::Done
}

fn refuse(text: &str) -> Outcome {
    complain("ERROR", text, Outcome::NotCompleted)
}

fn start(
    output: &OutputOptions,
    open: impl FnOnce() -> io::Result<Output>,
) -> Result<(Output, Signals), String> {
    // Before any thread starts: threads inherit the block.
    let signals = Signals::new(&[Signal::Interrupt, Signal::Terminate, Signal::Hangup])
        .map_err(|e| e.text())?;
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
