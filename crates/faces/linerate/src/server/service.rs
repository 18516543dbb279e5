//! `linerate serve`: a server that runs as a service.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

use linerate_document::{DroppedNotice, Output, service};
use linerate_engine::dialect;
use linerate_engine::{Interrupts, Settings};
use linerate_iperf3::report;
use linerate_iperf3::wire::ErrorCode;
use linerate_model::event::Endpoint;
use linerate_model::policy::{AccessSource, Iperf2Listener};
use linerate_model::sink::{Forward, StatusPage};
use linerate_model::spec::ServerSpec;
use linerate_model::{Failure, FailureKind, ServerEvent, ServerReporter};
use linerate_sys::errno::EACCES;
use linerate_sys::error::{io_text, strerror};
use linerate_sys::privileges::{self, User};
use linerate_sys::signal::{Signal, Signals};
use linerate_sys::{process, sd_notify};

use super::managed::{flush, managed, peer_requests};
use super::records::{TestRecords, observed};
use super::web::{self, WebSpec};
use super::{in_use, metrics};
use crate::Error;
use crate::live::Live;
#[cfg(feature = "full")]
use crate::record::{RecordOptions, SessionRecords};
#[cfg(feature = "full")]
use crate::view::View;
use linerate_model::link_local::scope_advice;
use linerate_model::outcome::failure;

pub use linerate_document::service::LogOptions;

/// The service to run, and its views.
#[derive(Debug)]
#[non_exhaustive]
pub struct Service {
    /// The server.
    pub spec: ServerSpec,
    /// Its log.
    pub log: LogOptions,
    /// Address of its metrics.
    pub metrics: Option<SocketAddr>,
    /// Warnings for the operator at the start.
    pub warnings: Vec<String>,
    /// Who serves, once the ports are bound; `None` for the user who started it.
    pub user: Option<User>,
    /// Where every test is recorded.
    #[cfg(feature = "full")]
    pub record: Option<RecordOptions>,
    /// The terminal shows the running tests instead of the log.
    #[cfg(feature = "full")]
    pub tui: bool,
    /// The live page.
    pub web: Option<WebSpec>,
}

impl Service {
    /// A server with a log, by the user who starts it: no metrics, no record, no live page.
    pub fn new(spec: ServerSpec, log: LogOptions) -> Self {
        Self {
            spec,
            log,
            metrics: None,
            warnings: Vec::new(),
            user: None,
            #[cfg(feature = "full")]
            record: None,
            #[cfg(feature = "full")]
            tui: false,
            web: None,
        }
    }
}

/// Names the port of a listener that could not be opened, and what to do.
fn explained(failure: &Failure, spec: &ServerSpec) -> String {
    let port = spec.local.port;
    if failure.code == Some(ErrorCode::Listen.number()) {
        let remedy = match spec.policy.iperf2 {
            Iperf2Listener::SamePort => "choose another one with --one-port",
            _ => "choose another one with --port",
        };
        let host = spec.local.bind.host.as_ref();
        let advice = host
            .and_then(|host| scope_advice(host))
            .map(|advice| format!("; {advice}"))
            .unwrap_or_default();
        let host = host.map(|host| format!("{host} ")).unwrap_or_default();
        return in_use::explained(
            &format!("{host}port {port}: {failure}{advice}"),
            port,
            remedy,
        );
    }

    let iperf2 = match spec.policy.iperf2 {
        Iperf2Listener::Port(port) => Some((port, "choose another one with --iperf2-port")),
        _ => None,
    };
    let stamp = spec
        .policy
        .stamp
        .map(|port| (port, "choose another one with --stamp PORT"));
    // A failure without the number of the first listener is one of another listener.
    let of_listener =
        |(port, _): &(u16, &str)| failure.message.starts_with(&format!("port {port} "));
    match iperf2.into_iter().chain(stamp).find(of_listener) {
        Some((_, remedy)) if failure.message.ends_with(&strerror(EACCES)) => {
            let first = privileges::first_port_for_all();
            let need = "need root or CAP_NET_BIND_SERVICE";
            format!("{failure}\nhint: ports below {first} {need}; {remedy}")
        }
        Some((port, remedy)) => in_use::explained(&failure.message, port, remedy),
        None => failure.to_string(),
    }
}

/// Reads the settings of a server again.
pub type ReadSettings = dyn Fn() -> Settings;

/// Serves until a signal comes. At SIGHUP the server takes over what `settings` returns; without it
/// the files of its own settings are read again.
///
/// # Errors
/// What ends the server, with a hint where a port is in use.
pub fn serve(service: &Service, settings: Option<&ReadSettings>) -> Result<(), Error> {
    match run(service, settings) {
        Err(failure) if failure.kind != FailureKind::Interrupted => {
            tracing::error!(%failure, "server failed");
            Err(Error::failed(explained(&failure, &service.spec)))
        }
        _ => Ok(()),
    }
}

fn run(what: &Service, settings: Option<&ReadSettings>) -> Result<(), Failure> {
    // Thousands of streams need as many descriptors; without the right to raise the limit fewer
    // fit.
    let _ = process::raise_fd_limit();
    if let Some(user) = &what.user {
        // Before the first thread: each has its own.
        privileges::forbid_new().map_err(|e| failure(&format!("--user {}: {e}", user.name)))?;
    }

    // Before the first thread, which inherits the blocked signals (signalfd(2)).
    let signals = Signals::new(&[Signal::Interrupt, Signal::Terminate, Signal::Hangup]);
    let signals = ServiceSignals::new(signals.map_err(|e| failure(&e))?, settings);

    #[cfg(feature = "full")]
    {
        let live = (what.tui || what.web.is_some()).then(Live::default);
        let view = live.as_ref().filter(|_| what.tui).and_then(View::open);
        let outcome = serve_clients(what, &signals, live, |notice| match &view {
            Some(view) => view.server_output(notice),
            None => Output::for_server(None, notice),
        });
        if let Some(view) = view {
            view.close();
        }
        outcome
    }
    #[cfg(not(feature = "full"))]
    {
        let live = what.web.is_some().then(Live::default);
        serve_clients(what, &signals, live, |notice| {
            Output::for_server(None, notice)
        })
    }
}

/// Serves with a log, and with what else was requested, until a signal comes.
fn serve_clients(
    what: &Service,
    signals: &ServiceSignals<'_>,
    live: Option<Live>,
    open: impl FnOnce(DroppedNotice) -> io::Result<Output>,
) -> Result<(), Failure> {
    let status = what.web.as_ref().zip(live.clone());
    let status = status.map(|(spec, live)| web::page(spec, live));
    let status = status.transpose().map_err(|e| failure(&e))?.map(Rc::new);
    let output = open(service::dropped_notice(what.log)).map_err(|e| failure(&e))?;

    #[cfg(feature = "full")]
    let kept = what.record.clone().map(SessionRecords::new);
    #[cfg(feature = "full")]
    let records = kept.as_ref().map(|kept| kept as &dyn TestRecords);
    #[cfg(not(feature = "full"))]
    let records: Option<&dyn TestRecords> = None;
    let mut reporter = service::log_reporter(what.log, output.clone());
    if let Some(address) = what.metrics {
        let counts = records.and_then(TestRecords::metrics);
        reporter = metrics::offer(reporter, address, counts).map_err(|e| failure(&e))?;
    }

    for warning in &what.warnings {
        reporter.warning(warning);
    }
    let mut reporter = observed(records, Box::new(managed(reporter)));
    if let Some(live) = live {
        reporter = live.observe(reporter, what.spec.policy.admission, records);
    }

    // A token of the user is known to the user, and is not repeated on a terminal.
    let is_random = what.web.as_ref().is_some_and(|web| web.token.is_none());
    let mut reporter = linked(reporter, status.clone().filter(|_| is_random));

    let mut requests = peer_requests(report::Options::new(Endpoint::Server));
    requests.status = status;
    let outcome = dialect::serve(&what.spec, &requests, &mut *reporter, signals, || {
        assume_user(what)
    });

    drop(reporter);
    #[cfg(feature = "full")]
    if let Some(message) = kept.and_then(SessionRecords::close) {
        service::log_reporter(what.log, output.clone()).warning(&message);
    }

    flush(&output, &outcome);
    outcome
}

/// Prints where the page is, with its token.
fn linked<'a>(
    reporter: Box<dyn ServerReporter + 'a>,
    status: Option<Rc<StatusPage>>,
) -> Box<dyn ServerReporter + 'a> {
    let Some(status) = status else {
        return reporter;
    };
    Box::new(Forward::new(reporter, move |event: &ServerEvent| {
        if let ServerEvent::Browsers { url, .. } = event {
            // The secret of the link is for who started the server, so it is in no log. There is
            // nowhere left to go without stderr.
            let token = &status.token;
            let _ = writeln!(
                io::stderr(),
                "linerate: live page at {url}status?token={token}"
            );
        }
    }))
}

/// Gives up the privileges, and finds out before the first client what the user cannot read.
fn assume_user(what: &Service) -> Result<(), Failure> {
    let Some(user) = &what.user else {
        return Ok(());
    };
    user.assume()
        .map_err(|e| failure(&format!("--user {}: {e}", user.name)))?;

    // Otherwise the first SIGHUP or login would reveal that the user cannot read them.
    for path in files_read_later(&what.spec) {
        File::open(path).map_err(|e| {
            let reason = format!(
                "--user {} cannot read {}: {}",
                user.name,
                path.display(),
                io_text(&e)
            );
            failure(&reason)
        })?;
    }

    Ok(())
}

/// The user file is read at every login, the lists of addresses at SIGHUP.
fn files_read_later(spec: &ServerSpec) -> impl Iterator<Item = &Path> {
    let rules = &spec.policy.access;
    let lists = rules
        .allow
        .iter()
        .chain(&rules.deny)
        .filter_map(|source| match source {
            AccessSource::File(path) => Some(path.as_path()),
            AccessSource::Network(_) => None,
        });
    lists.chain(spec.auth.iter().map(|auth| auth.users_file.as_path()))
}

/// Signals of a service: the end of a terminal is none, it asks for the lists to be read again.
struct ServiceSignals<'a> {
    signals: Signals,
    settings: Option<&'a ReadSettings>,
    reload: Cell<bool>,
    /// Watchdog interval of the service manager.
    heartbeat_interval: Option<Duration>,
    next_heartbeat: Cell<Option<Instant>>,
}

impl<'a> ServiceSignals<'a> {
    fn new(signals: Signals, settings: Option<&'a ReadSettings>) -> Self {
        Self {
            signals,
            settings,
            reload: Cell::new(false),
            heartbeat_interval: sd_notify::watchdog_interval(),
            next_heartbeat: Cell::new(None),
        }
    }
}

impl Interrupts for ServiceSignals<'_> {
    fn fd(&self) -> BorrowedFd<'_> {
        self.signals.as_fd()
    }

    fn take(&self) -> Option<String> {
        while let Some(signal) = self.signals.take().ok().flatten() {
            if signal != Signal::Hangup {
                return Some(format!("{}({})", signal.description(), signal.number()));
            }
            self.reload.set(true);
        }
        None
    }

    fn take_reload(&self) -> bool {
        self.reload.take()
    }

    fn settings(&self) -> Option<Settings> {
        self.settings.map(|read| read())
    }

    fn alive(&self) -> Option<Instant> {
        let interval = self.heartbeat_interval?;
        let now = Instant::now();
        if self.next_heartbeat.get().is_none_or(|t| t <= now) {
            // A manager that cannot be reached ends the service, which is what it is for.
            let _ = sd_notify::notify("WATCHDOG=1");
            self.next_heartbeat.set(now.checked_add(interval));
        }
        self.next_heartbeat.get()
    }
}
