//! Carries out what a command line asks for: joins the engine, a writer, signals and files.

pub(crate) mod iperf2;
mod pidfile;

use std::io::{self, Write};
use std::time::Duration;

use linerate_engine::Interrupts;
use linerate_engine::dialect::iperf3::{client, server};
use linerate_model::event::Endpoint;
use linerate_model::sink::PeerRequests;
use linerate_model::spec::{ClientSpec, ServerSpec};
use linerate_model::{Failure, FailureKind};
use linerate_report::iperf3::{self, Options, Style};
use linerate_report::{DroppedNotice, Output};
use linerate_sys::caps::Capabilities;
use linerate_sys::process;
use linerate_sys::signal::{Signal, Signals};

use linerate::command_line::iperf3::args::{OutputOptions, ProcessOptions};
use linerate::command_line::iperf3::version;
use linerate::diagnose::observed_test as examination;
use linerate::exit_code::ExitCode;
use linerate::server::metrics;
use linerate::server::service::{flush, managed};
use pidfile::Pidfile;

/// What this build and this kernel can do, as `iperf3 --version` words it.
pub(crate) fn features() -> Vec<&'static str> {
    let capabilities = Capabilities::probe();
    let always = [
        "CPU affinity setting",
        "IPv6 flow label",
        "TCP congestion algorithm setting",
        "sendfile / zerocopy",
        "socket pacing",
        "authentication",
        "bind to device",
        "support IPv4 don't fragment",
        "POSIX threads",
    ];
    let probed = [
        (capabilities.sctp, "SCTP"),
        (capabilities.mptcp, "MPTCP"),
        (capabilities.udp_gso && capabilities.udp_gro, "GSO/GRO support"),
    ];
    always
        .into_iter()
        .chain(probed.iter().filter(|(present, _)| *present).map(|(_, name)| *name))
        .collect()
}

/// Runs one test as its client.
pub(crate) fn run_client(spec: &ClientSpec, process: &ProcessOptions, output: OutputOptions) -> ExitCode {
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
        Err(failure) => return complain(&failure),
    };
    let verbose = output.verbose;
    let mut sink = iperf3::client_sink(options(Endpoint::Client, output), stream);
    let outcome = if spec.test.want_peer_facts {
        examination::run_client(spec, &mut *sink, &signals, verbose)
    } else {
        client::run(spec, &mut sink, &signals).outcome
    };
    exit_code(&outcome)
}

/// Serves clients.
pub(crate) fn run_server(spec: &ServerSpec, process: &ProcessOptions, output: OutputOptions) -> ExitCode {
    if process.daemon
        && let Err(error) = process::daemonize(true)
    {
        return complain(&linerate_iperf3::ErrorCode::Daemon.failure(Some(&error.text())));
    }
    let notice = DroppedNotice::error(|lines| format!("iperf3: {lines} lines of the report could not be written\n"));
    let Started {
        output: stream,
        signals,
        pidfile: _pidfile,
    } = match start(process, || Output::for_server(output.logfile.as_deref(), notice)) {
        Ok(started) => started,
        Err(failure) => return complain(&failure),
    };
    let options = options(Endpoint::Server, output);
    let outcome = serve(spec, process, options.clone(), stream.clone(), &signals);
    if let Err(failure) = &outcome {
        // Nothing is left to be done when the report of the end cannot be written.
        let _ = iperf3::report_failure(options, stream.clone(), failure);
        if failure.kind == FailureKind::Error {
            stream.error("iperf3: exiting\n");
        }
    }
    flush(&stream, &outcome);
    exit_code(&outcome)
}

fn serve(
    spec: &ServerSpec,
    process: &ProcessOptions,
    options: Options,
    output: Output,
    interrupts: &dyn Interrupts,
) -> Result<(), Failure> {
    let requests = PeerRequests {
        report: Some(iperf3::peer_report(options.clone())),
        facts: Some(examination::facts_for_clients()),
    };
    let mut reporter = iperf3::server_reporter(options, output);
    if let Some(address) = process.metrics {
        reporter = metrics::offer(reporter, address)
            .map_err(|text| Failure::error(linerate_iperf3::ErrorCode::InitTest.number(), text))?;
    }
    server::run(spec, requests, &mut managed(reporter), interrupts)
}

/// What both ends need before the engine starts.
struct Started {
    output: Output,
    signals: Signals,
    /// Removes the file when it goes.
    pidfile: Option<Pidfile>,
}

fn start(process: &ProcessOptions, open: impl FnOnce() -> io::Result<Output>) -> Result<Started, Failure> {
    use linerate_iperf3::ErrorCode;
    // Before any thread starts: threads inherit the block.
    let signals = Signals::new(&[Signal::Interrupt, Signal::Terminate, Signal::Hangup])
        .map_err(|e| ErrorCode::InitTest.failure(Some(&e.text())))?;
    let output = open().map_err(|e| ErrorCode::LogFile.failure(Some(&linerate_sys::error::io_text(&e))))?;
    let pidfile = process.pidfile.as_deref().map(Pidfile::create).transpose()?;
    // Thousands of streams need as many descriptors; without the right to raise the limit fewer fit.
    let _ = process::raise_fd_limit();
    Ok(Started {
        output,
        signals,
        pidfile,
    })
}

fn options(endpoint: Endpoint, output: OutputOptions) -> Options {
    let style = match (output.json_stream, output.json) {
        (true, _) => Style::JsonStream {
            full_output: output.json_stream_full,
        },
        (false, true) => Style::Json,
        (false, false) => Style::Text,
    };
    Options {
        style,
        format: output.format,
        verbose: output.verbose,
        debug: output.debug,
        timestamps: output.timestamps,
        title: output.title,
        additions: output.additions,
        ..Options::new(endpoint, version::program_version(), version::system_line())
    }
}

/// A failure before there is a writer.
fn complain(failure: &Failure) -> ExitCode {
    // There is nowhere left to complain if stderr is gone.
    let _ = writeln!(io::stderr(), "iperf3: error - {failure}");
    ExitCode::NotCompleted
}

/// A test that the user ended has done what he wanted, as since iperf3 3.19.
fn exit_code(outcome: &Result<(), Failure>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::Done,
        Err(failure) if failure.kind == FailureKind::Interrupted => ExitCode::Done,
        Err(_) => ExitCode::NotCompleted,
    }
}
