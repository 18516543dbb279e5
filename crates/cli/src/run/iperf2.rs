//! Where an iperf 2 command line meets the engine and the writers.

use std::io::{self, Write};
use std::path::Path;

use linerate_engine::dialect::iperf2::{client, server};
use linerate_model::FailureKind;
use linerate_model::event::Endpoint;
use linerate_model::spec::{ClientSpec, LocalOptions, ServerSpec, TestSpec};
use linerate_report::iperf2::{self, Excluded, Options, Style, Units};
use linerate_report::{DroppedNotice, Output};
use linerate_sys::process;
use linerate_sys::signal::{Signal, Signals};

use linerate::command_line::iperf2::args::{Layout, OutputOptions};
use linerate::exit_code::ExitCode;

/// Runs one test as its client. As with the original, a test that fails shows in words and not in the exit code, unless the
/// server's name is unknown.
pub(crate) fn run_client(spec: &ClientSpec, output: &OutputOptions) -> ExitCode {
    if let Some(text) = unsupported(&spec.test, &spec.local) {
        return refuse(text);
    }
    let started = start(output, || match &output.file {
        Some(path) => Output::log_file(path),
        None => Ok(Output::standard()),
    });
    let (stream, signals) = match started {
        Ok(started) => started,
        Err(text) => return refuse(&text),
    };
    let mut sink = iperf2::client_sink(options(Endpoint::Client, output, &spec.local), stream);
    // It has been reported.
    match client::run(spec, &mut *sink, &signals) {
        Err(failure) if failure.code.is_some() => ExitCode::NotCompleted,
        _ => ExitCode::Done,
    }
}

/// Serves clients.
pub(crate) fn run_server(spec: &ServerSpec, daemon: bool, output: &OutputOptions) -> ExitCode {
    let test = spec.local.end.defaults.as_ref().map(|defaults| defaults.test.clone());
    let test = test.unwrap_or_default();
    if let Some(text) = unsupported(&test, &spec.local) {
        return refuse(text);
    }
    if output.sum_by_destination {
        return refuse("sums by destination (--sum-dstip) are not supported");
    }
    if test.pacing.rate_bps.is_some() {
        return refuse("a limit on what a server reads (-b) is not supported");
    }
    if daemon && let Err(error) = process::daemonize(true) {
        return refuse(&error.text());
    }
    let notice = DroppedNotice::error(|lines| format!("WARN: {lines} lines of the report could not be written\n"));
    let (stream, signals) = match start(output, || Output::for_server(output.file.as_deref(), notice)) {
        Ok(started) => started,
        Err(text) => return refuse(&text),
    };
    let mut reporter = iperf2::server_reporter(options(Endpoint::Server, output, &spec.local), stream.clone());
    let outcome = server::run(spec, &mut *reporter, &signals);
    if let Err(failure) = &outcome
        && failure.kind != FailureKind::Interrupted
    {
        stream.error(&format!("{failure}\n"));
    }
    linerate::server::service::flush(&stream, &outcome);
    ExitCode::Done
}

/// Options that are understood and that nothing stands behind.
fn unsupported(test: &TestSpec, local: &LocalOptions) -> Option<&'static str> {
    let rows = [
        (
            test.workload.rate_deviation_bps.is_some(),
            "a rate that varies around its target (-b mean,deviation) is not supported",
        ),
        (local.end.realtime, "the real-time scheduler (-z) is not supported"),
        (local.end.send_delay.is_some(), "--tcp-tx-delay is not supported"),
    ];
    rows.into_iter().find(|(is_wanted, _)| *is_wanted).map(|(_, text)| text)
}

fn refuse(text: &str) -> ExitCode {
    // There is nowhere left to complain if stderr is gone.
    let _ = writeln!(io::stderr(), "ERROR: {text}");
    ExitCode::NotCompleted
}

fn start(output: &OutputOptions, open: impl FnOnce() -> io::Result<Output>) -> Result<(Output, Signals), String> {
    // Before any thread starts: threads inherit the block.
    let signals = Signals::new(&[Signal::Interrupt, Signal::Terminate, Signal::Hangup]).map_err(|e| e.text())?;
    let name = output.file.as_deref().unwrap_or(Path::new("standard output"));
    let stream = open().map_err(|e| format!("{}: {e}", name.display()))?;
    // Thousands of streams need as many descriptors; without the right to raise the limit fewer fit.
    let _ = process::raise_fd_limit();
    Ok((stream, signals))
}

fn options(endpoint: Endpoint, output: &OutputOptions, local: &LocalOptions) -> Options {
    let excluded = output.excluded;
    Options {
        layout: match output.layout {
            Layout::V2_1 => iperf2::Layout::V2_1,
            Layout::V2_2 => iperf2::Layout::V2_2,
        },
        style: if output.csv { Style::Csv } else { Style::Text },
        units: output.format.and_then(Units::from_letter).unwrap_or_default(),
        enhanced: output.enhanced,
        sum_only: output.sum_only,
        hide_addresses: output.hide_addresses,
        print_mss: output.print_mss,
        utc: output.utc,
        excluded: Excluded {
            connection: excluded.connection,
            data: excluded.data,
            multicast: excluded.multicast,
            settings: excluded.settings,
            server: excluded.server,
        },
        process_id: std::process::id(),
        defaults: local.end.defaults.clone(),
        ..Options::new(endpoint)
    }
}
