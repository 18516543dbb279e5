//! A test with its options and the result of its last run.

use std::ffi::{OsString, c_char, c_int};
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use linerate::command_line::iperf3::{Command, Request, read_args};
use linerate::{Client, Interrupts, StopHandle, server};
use linerate_boundary::{Callback, Kept, run_apart};
use linerate_document::{MemoryOutput, Output};
use linerate_iperf3::report::{self, Options, Style};
use linerate_iperf3::wire::ErrorCode;
use linerate_model::event::Endpoint;
use linerate_model::sink::{Forward, Tee};
use linerate_model::{EventSink, Failure, FailureKind, ServerEvent};

use crate::events::Events;
use crate::{LINERATE_DONE, LINERATE_FAILED, LINERATE_STOPPED};

/// A test: options, and the result of its last run. Several threads may use it.
#[derive(Default)]
pub struct Test {
    args: Mutex<Vec<OsString>>,
    callback: Mutex<Option<Callback>>,
    running: Mutex<Running>,
    last: Mutex<Last>,
}

/// The active run and the handle that ends it.
#[derive(Default)]
struct Running {
    handle: Option<StopHandle>,
    /// A stop that came before a run.
    is_stopped: bool,
}

/// Result of the last run.
#[derive(Default)]
struct Last {
    result: Kept,
    error: Kept,
    number: c_int,
}

impl Test {
    pub(crate) fn set(&self, option: Option<String>, value: Option<String>) -> c_int {
        let Some(name) = option.filter(|name| !name.is_empty()) else {
            return LINERATE_FAILED;
        };
        let arg = value.map_or_else(|| format!("--{name}"), |value| format!("--{name}={value}"));
        lock(&self.args).push(arg.into());
        LINERATE_DONE
    }

    pub(crate) fn observe(&self, callback: Option<Callback>) {
        *lock(&self.callback) = callback;
    }

    pub(crate) fn stop(&self) {
        let mut running = lock(&self.running);
        match &running.handle {
            Some(handle) => handle.stop(),
            None => running.is_stopped = true,
        }
    }

    pub(crate) fn run(&self) -> c_int {
        let (report, outcome) = match self.begin() {
            Ok(stop) => {
                let report = MemoryOutput::default();
                let outcome = self.run_until(&report, &stop);
                lock(&self.running).handle = None;
                (report, outcome)
            }
            Err(failure) => (MemoryOutput::default(), Err(failure)),
        };
        let mut last = lock(&self.last);
        last.result.set(report.text().as_deref());
        last.number = outcome
            .as_ref()
            .err()
            .and_then(|failure| failure.code)
            .unwrap_or(0);
        last.error.set(
            outcome
                .as_ref()
                .err()
                .map(|failure| failure.message.as_str()),
        );

        match outcome {
            Ok(()) => LINERATE_DONE,
            Err(failure) if failure.kind == FailureKind::Interrupted => LINERATE_STOPPED,
            Err(_) => LINERATE_FAILED,
        }
    }

    fn begin(&self) -> Result<StopHandle, Failure> {
        let failed = |reason: &str| ErrorCode::InitTest.failure(Some(reason));
        let mut running = lock(&self.running);
        if running.handle.is_some() {
            return Err(failed("another thread runs this test"));
        }

        let stop = StopHandle::new().map_err(|error| failed(&error.to_string()))?;
        if std::mem::take(&mut running.is_stopped) {
            stop.stop();
        }

        running.handle = Some(stop.clone());
        Ok(stop)
    }

    fn run_until(&self, report: &MemoryOutput, stop: &StopHandle) -> Result<(), Failure> {
        let args = lock(&self.args).clone();
        let events = Events::new(*lock(&self.callback));
        let ended = run_apart(move || match read_args(&args)? {
            Request::Run(command, warnings) => {
                for warning in warnings {
                    events.warning(warning);
                }
                run(*command, &events, report, stop)
            }
            Request::Print(_) => Err(ErrorCode::NoRole.failure(None)),
        });

        ended.unwrap_or_else(|panic| Err(ErrorCode::InitTest.failure(Some(&panic.0))))
    }

    pub(crate) fn result(&self) -> *const c_char {
        lock(&self.last).result.as_ptr()
    }

    pub(crate) fn error(&self) -> *const c_char {
        lock(&self.last).error.as_ptr()
    }

    pub(crate) fn error_number(&self) -> c_int {
        lock(&self.last).number
    }
}

fn run(
    command: Command,
    events: &Events,
    report: &MemoryOutput,
    stop: &dyn Interrupts,
) -> Result<(), Failure> {
    let styled = |options: Options| {
        let stream = Options {
            style: Style::JsonStream { full_output: false },
            ..options.clone()
        };
        (
            stream,
            Options {
                style: Style::Json,
                ..options
            },
        )
    };
    match command {
        Command::Client { spec, output, .. } => {
            let (stream, document) = styled(output.report_options(Endpoint::Client));
            let stream = report::client_sink(stream, events.output());
            let mut sink = Tee(stream, report::client_sink(document, in_memory(report)));
            Client::new(*spec).observe(&mut sink, stop).outcome
        }
        Command::Server { spec, output, .. } => {
            let (stream, document) = styled(output.report_options(Endpoint::Server));
            let reporter = report::server_reporter(stream.clone(), events.output());

            let listening = |event: &ServerEvent| {
                if let ServerEvent::Listening { address } = event {
                    events.listening(*address);
                }
            };
            let report = report.clone();
            let documented = move |sink: Box<dyn EventSink>| -> Box<dyn EventSink> {
                Box::new(Tee(
                    sink,
                    report::client_sink(document.clone(), in_memory(&report)),
                ))
            };
            let mut reporter = Forward::new(reporter, listening).wrapping(documented);

            server::serve_iperf3(&spec, stream, &mut reporter, stop)
        }
    }
}

/// Keeps documents; what is no JSON is among the events.
fn in_memory(report: &MemoryOutput) -> Output {
    Output::new(Box::new(report.clone()), Box::new(io::sink()))
}

/// No panic happens while a lock is held, but one elsewhere in the thread may poison it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
