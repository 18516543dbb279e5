//! Functions that run a test to its end.

use std::cell::RefCell;
use std::ffi::{c_char, c_int};
use std::io::{self, Write};
use std::path::Path;
use std::ptr;
use std::rc::Rc;

use linerate::command_line::iperf3::OutputOptions;
use linerate::{Client, StopHandle, server};
use linerate_boundary::{CFile, Stderr, Stdout, guard, run_apart, stdout_file};
use linerate_document::{MemoryOutput, Output};
use linerate_iperf3::report;
use linerate_iperf3::wire::ErrorCode;
use linerate_model::event::Endpoint;
use linerate_model::sink::{Forward, Tee};
use linerate_model::{Event, EventSink, Failure, SinkError};

use crate::error::{fail, fail_with, panicked};
use crate::settings::Settings;
use crate::test::Test;

/// A failure that a JSON report shows sets `i_errno`, and is no failure of this function.
#[unsafe(no_mangle)]
extern "C" fn iperf_run_client(test: Option<&Test>) -> c_int {
    let result = run(test, run_client);
    let is_reported = guard(false, || {
        test.is_some_and(|test| test.report().get().is_some())
    });
    if is_reported { 0 } else { result }
}

/// Serves one test. The failure of a test sets `i_errno`, and is no failure of the server.
#[unsafe(no_mangle)]
extern "C" fn iperf_run_server(test: Option<&Test>) -> c_int {
    run(test, run_server)
}

/// The report of the last run with JSON output; valid until the test runs again or is freed.
#[unsafe(no_mangle)]
extern "C" fn iperf_get_test_json_output_string(test: Option<&Test>) -> *const c_char {
    guard(ptr::null(), || {
        test.map_or(ptr::null(), |test| test.report().as_ptr())
    })
}

#[unsafe(no_mangle)]
extern "C" fn iperf_get_test_outfile(_: Option<&Test>) -> CFile {
    stdout_file()
}

type Work = fn(&Settings, Output, &StopHandle) -> Result<(), Failure>;

fn run(test: Option<&Test>, work: Work) -> c_int {
    guard(-1, || {
        let Some(test) = test else {
            return fail_with(ErrorCode::NewTest);
        };
        let outcome = test.run(|settings, stop| {
            let report = MemoryOutput::default();
            let output = output(&settings.output(), &report)?;
            let ended = run_apart(|| work(settings, output, stop));
            // The report is kept after a failure as well, because it contains the reason.
            test.report().set(report.text().as_deref());
            ended.unwrap_or_else(|panic| Err(panicked(&panic)))
        });
        outcome.map_or_else(fail, |()| 0)
    })
}

fn run_client(settings: &Settings, output: Output, stop: &StopHandle) -> Result<(), Failure> {
    let spec = settings.client().map_err(|code| code.failure(None))?;
    let options = settings.output();
    let mut report = report::client_sink(options.report_options(Endpoint::Client), output);
    Client::new(spec)
        .report(&mut *report, options.verbose, stop)
        .outcome
}

fn run_server(settings: &Settings, output: Output, stop: &StopHandle) -> Result<(), Failure> {
    let spec = settings.server().map_err(|code| code.failure(None))?;
    let options = settings.output().report_options(Endpoint::Server);
    // The sink of the reporter and this function share the failure; both are of one thread.
    let failed: Rc<RefCell<Option<Failure>>> = Rc::default();
    let ended = Rc::clone(&failed);
    let reporter = report::server_reporter(options.clone(), output);
    let observed = move |sink: Box<dyn EventSink>| -> Box<dyn EventSink> {
        Box::new(Tee(sink, LastFailure(Rc::clone(&ended))))
    };
    let mut reporter = Forward::new(reporter, |_| {}).wrapping(observed);
    server::serve_iperf3(&spec, options, &mut reporter, stop)?;

    if let Some(failure) = failed.take() {
        fail(failure);
    }

    Ok(())
}

/// Keeps the failure of a test, which ends no server.
struct LastFailure(Rc<RefCell<Option<Failure>>>);

impl EventSink for LastFailure {
    fn event(&mut self, event: &Event) -> Result<(), SinkError> {
        if let Event::Failed(failure) = event {
            *self.0.borrow_mut() = Some(failure.clone());
        }
        Ok(())
    }
}

/// Reports go to the standard output of the program, or to a file, and those in JSON to `copy` as
/// well.
fn output(options: &OutputOptions, copy: &MemoryOutput) -> Result<Output, Failure> {
    let copy = options.json.then(|| copy.clone());
    Ok(match options.logfile.as_deref() {
        Some(path) => {
            let file = open_log(path)?;
            let errors = file.try_clone().map_err(|error| log_failure(&error))?;
            Output::new(Box::new(Copying { to: file, copy }), Box::new(errors))
        }
        None => Output::new(Box::new(Copying { to: Stdout, copy }), Box::new(Stderr)),
    })
}

/// Opens a file that output is appended to.
pub(super) fn open_log(path: &Path) -> Result<std::fs::File, Failure> {
    let opened = std::fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(path);
    opened.map_err(|error| log_failure(&error))
}

fn log_failure(error: &io::Error) -> Failure {
    ErrorCode::LogFile.failure(Some(&linerate_sys::error::io_text(error)))
}

/// Writes to a stream and to a copy.
struct Copying<W> {
    to: W,
    copy: Option<MemoryOutput>,
}

impl<W: Write> Write for Copying<W> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.to.write_all(data)?;
        if let Some(copy) = &mut self.copy {
            copy.write_all(data)?;
        }
        Ok(data.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}
