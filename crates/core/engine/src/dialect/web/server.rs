//! Connections and sessions of browsers.

mod as_dialect;
mod stored;

use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd};
use std::rc::Rc;
use std::time::{Duration, Instant};

use linerate_model::network::Network;
use linerate_model::policy::{BrowserPolicy, ServerLimits};
use linerate_model::service::{HandshakeCause, RefusalReason};
use linerate_model::sink::StatusPage;
use linerate_model::spec::ServerSpec;
use linerate_model::{Direction, Failure, TestSpec};
use linerate_sys::poll::Interest;
use linerate_sys::{OsError, clock};
use linerate_web::wire::frame::FrameReader;
use linerate_web::wire::page::{self, PROTOCOL};
use linerate_web::wire::request::{Request, Upgrade};
use linerate_web::wire::responsiveness::{self, Load};
use linerate_web::wire::{NDT7, response};

use super::certificate::Certificate;
use super::http::{HttpConnection, Login, Progress};
use super::pump::{Framing, Opening};
use super::results::Results;
use super::session::{Bounds, Session};
use super::status::Status;
use crate::error::failure;
use crate::server::{
    Decision, Logins, QuotaRequest, Requirements, ServerContext, Sessions, Verdict, token,
};

/// The dialect in a server.
pub(crate) struct WebServer {
    spec: ServerSpec,
    policy: BrowserPolicy,
    /// Connections without a session; their numbers are due like those of sessions.
    connections: BTreeMap<u64, HttpConnection>,
    sessions: Sessions<Session>,
    results: Results,
    certificate: Certificate,
    logins: Option<Logins>,
    status: Option<Status>,
}

/// What a WebSocket is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Control,
    Download,
    Upload,
}

// Kinds of descriptors.
const CONNECTION: u64 = 0;
const LOAD: u64 = 1;
/// Belongs to no session.
const POOL: u64 = 3;

/// Length of an ndt7 test (ndt7-protocol.md).
const DURATION: Duration = Duration::from_secs(10);
/// Connections of a page in one direction.
const STREAMS_MAX: u32 = 6;
/// Length of a test of responsiveness, whose clients end it, and its connections.
const RESPONSIVENESS_DURATION: Duration = Duration::from_secs(45);
const RESPONSIVENESS_STREAMS_MAX: u32 = 32;
/// Refusal of a test that a page of others makes.
const FOREIGN: (&str, &str) = (
    "403 Forbidden",
    "a page of another origin; --any-origin admits them",
);
/// Longest label.
const LABEL_CHARS_MAX: usize = 64;

impl WebServer {
    pub(super) fn new(
        spec: &ServerSpec,
        policy: BrowserPolicy,
        status: Option<Rc<StatusPage>>,
    ) -> Result<Self, Failure> {
        let results = Results::new(policy.keep);
        let certificate = Certificate::load(policy.certificate.as_ref()).map_err(failure)?;
        let os = |error: OsError| failure(error.text());
        let sessions = Sessions::new().map_err(os)?;
        let auth = spec.auth.as_ref();
        let logins = auth.map(|auth| Logins::new(auth.users_file.clone()));
        let logins = logins.transpose().map_err(os)?;
        if let Some(logins) = &logins {
            sessions.watch(logins.fd(), 0, POOL).map_err(os)?;
        }
        Ok(Self {
            spec: spec.clone(),
            policy,
            connections: BTreeMap::new(),
            sessions,
            results,
            certificate,
            logins,
            status: status.map(|page| Status::new(page, spec.local.port)),
        })
    }

    fn advance_connection(&mut self, id: u64, server: &mut ServerContext<'_>) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        if connection.until <= Instant::now() {
            return self.on_late(id, server);
        }

        if connection.queued.is_some() {
            // Nothing is read before its turn.
            return self.sessions.set_due(id, Some(connection.until));
        }
        if let Some(login) = &connection.login {
            // Nothing is read before the verdict.
            let due = login.refused_at.unwrap_or(connection.until);
            if due > Instant::now() {
                return self.sessions.set_due(id, Some(due));
            }
            connection.login = None;
            return self.respond(id, &response::challenge(), server);
        }

        match connection.advance() {
            Progress::Incomplete => self.sessions.set_due(id, Some(connection.until)),
            Progress::Request(request) => self.dispatch(id, *request, server),
            Progress::Refused(error) => {
                let response = response::line("400 Bad Request", &error.to_string());
                self.respond(id, &response, server);
            }
            Progress::Answered => {
                if let Some(connection) = self.remove(id, server) {
                    server.close(connection.fd, Vec::new());
                }
            }
            Progress::Closed => drop(self.remove(id, server)),
        }
    }

    /// A connection whose time is up is closed; one that waits for its turn is refused.
    fn on_late(&mut self, id: u64, server: &mut ServerContext<'_>) {
        let was_queued = self
            .connections
            .get_mut(&id)
            .and_then(|connection| connection.queued.take());
        if was_queued.is_some() {
            let response = self.refusal(id, RefusalReason::QueueTooLong, server);
            self.respond(id, &response, server);
        } else {
            self.remove(id, server);
        }
    }

    fn remove(&mut self, id: u64, server: &mut ServerContext<'_>) -> Option<HttpConnection> {
        self.sessions.set_due(id, None);
        server.pending_limit.leave(id);
        let connection = self.connections.remove(&id)?;
        if let Some(logins) = self.logins.as_mut().filter(|_| connection.login.is_some()) {
            logins.leave(id, connection.peer.ip());
        }
        // A connection that waits for its turn is not watched.
        let _ = self.sessions.epoll().remove(&connection.fd);
        Some(connection)
    }

    fn respond(&mut self, id: u64, response: &[u8], server: &mut ServerContext<'_>) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        connection.respond(response);
        let epoll = self.sessions.epoll();
        let token = token(id, CONNECTION);
        // One that waited for its turn is not watched.
        if epoll
            .modify(&connection.fd, token, Interest::WRITE)
            .is_err()
        {
            let _ = epoll.add(&connection.fd, token, Interest::WRITE);
        }
        self.advance_connection(id, server);
    }

    fn dispatch(&mut self, id: u64, request: Request, server: &mut ServerContext<'_>) {
        if let Some(response) = self.answer(id, request, server) {
            self.respond(id, &response, server);
        }
    }

    /// The response to a request; `None` where that comes later, or the connection is a WebSocket.
    fn answer(
        &mut self,
        id: u64,
        request: Request,
        server: &mut ServerContext<'_>,
    ) -> Option<Vec<u8>> {
        let is_status = Status::is_at(&request.path);
        let connection = self.connections.get(&id)?;
        if let Some(status) = self.status.as_ref().filter(|_| is_status)
            && status.admits(&request)
        {
            return Some(status.answer(&request));
        }

        if !self.policy.may_test {
            return Some(if is_status {
                Status::refusal()
            } else {
                response::line("403 Forbidden", "This server tests no browsers.")
            });
        }

        // The name of a session is the secret of who has logged in.
        let joins = request.upgrade.is_some() && request.parameter("session").is_some();
        if self.logins.is_some() && connection.user.is_none() && !joins {
            return self.begin_login(id, request);
        }
        self.route(id, request, server)
    }

    /// The response to a request that cannot log in; `None` while its password is checked.
    fn begin_login(&mut self, id: u64, request: Request) -> Option<Vec<u8>> {
        let connection = self.connections.get_mut(&id)?;
        if !connection.layer.is_tls() {
            return Some(response::line("403 Forbidden", "A login needs https."));
        }
        let Some((user, password)) = request.credentials.clone() else {
            return Some(response::challenge());
        };

        let logins = self.logins.as_mut()?;
        logins.begin(id, connection.peer.ip(), user, password);
        connection.login = Some(Login {
            request,
            refused_at: None,
        });

        // What a client sends meanwhile would be an event without end.
        let _ = self.sessions.epoll().remove(&connection.fd);
        self.sessions.set_due(id, Some(connection.until));
        None
    }

    /// As [`Self::answer`], of a client that may test.
    fn route(
        &mut self,
        id: u64,
        request: Request,
        server: &mut ServerContext<'_>,
    ) -> Option<Vec<u8>> {
        let connection = self.connections.get(&id)?;
        let peer = connection.peer;
        match (request.method.as_str(), &request.upgrade) {
            ("GET", Some(upgrade)) => match self.checked(&request, upgrade) {
                Ok(_) => self.admit(id, request, server),
                Err((status, text)) => {
                    server.log_failed_handshake(peer, HandshakeCause::Parameters, text);
                    Some(response::line(status, text))
                }
            },
            ("GET", None) if Status::is_at(&request.path) => Some(self.status_of(id, &request)),
            (_, None) if connection.http2.is_some() && responsiveness::load(&request).is_some() => {
                if self.policy.any_origin || request.is_same_origin() {
                    self.admit(id, request, server)
                } else {
                    Some(response::line(FOREIGN.0, FOREIGN.1))
                }
            }
            ("GET", None) => {
                let document = connection.layer.is_tls().then_some(&request);
                let document = document.and_then(responsiveness::document);
                Some(document.unwrap_or_else(|| self.page(&request.path)))
            }
            _ => Some(response::line(
                "405 Method Not Allowed",
                "Only GET is understood.",
            )),
        }
    }

    /// Logins are checked.
    fn on_checked(&mut self, server: &mut ServerContext<'_>) {
        let verdicts = self.logins.as_mut().map(Logins::take_checked);
        for (id, verdict) in verdicts.into_iter().flatten() {
            let Some(connection) = self.connections.get_mut(&id) else {
                continue;
            };
            match verdict {
                Verdict::Accepted(user) => {
                    connection.user = Some(user);
                    let _ = self.sessions.watch(&connection.fd, id, CONNECTION);
                    if let Some(login) = connection.login.take() {
                        self.dispatch(id, login.request, server);
                    }
                }
                Verdict::Refused(refusal, at) => {
                    let cause = refusal.label();
                    let text = refusal.to_string();
                    server.log_failed_login(connection.peer, cause, text);
                    self.sessions.set_due(id, Some(at));
                    if let Some(login) = &mut connection.login {
                        login.refused_at = Some(at);
                    }
                }
            }
        }
    }

    /// The purpose of a WebSocket, or why there is none.
    fn checked(
        &self,
        request: &Request,
        upgrade: &Upgrade,
    ) -> Result<Purpose, (&'static str, &'static str)> {
        if !self.policy.any_origin && !request.is_same_origin() {
            return Err(FOREIGN);
        }
        let (purpose, protocol) =
            purpose(&request.path).ok_or(("404 Not Found", "no WebSocket here"))?;
        if !upgrade.offers(protocol) {
            return Err(("400 Bad Request", "the subprotocol is not offered"));
        }
        Ok(purpose)
    }

    /// The page of the operator for a client without its token.
    fn status_of(&self, id: u64, request: &Request) -> Vec<u8> {
        let connection = self.connections.get(&id);
        let has_user = connection.is_some_and(|connection| connection.user.is_some());
        match &self.status {
            Some(status) if has_user => status.answer(request),
            Some(_) => Status::refusal(),
            None => response::line("404 Not Found", "There is nothing here."),
        }
    }

    fn page(&mut self, path: &str) -> Vec<u8> {
        let name = path.strip_prefix("/r/");
        let document = name.and_then(|name| name.strip_suffix(".json"));
        match (
            document,
            document.and_then(|name| self.results.get(name, clock::unix_ms())),
        ) {
            (_, Some(text)) => response::with_body("200 OK", "application/json", text.as_bytes()),
            (None, _) if path == "/" || name.is_some() => {
                response::with_body("200 OK", "text/html", page::page().as_bytes())
            }
            _ => response::line("404 Not Found", "There is nothing here."),
        }
    }

    /// A WebSocket, or a load of HTTP/2, joins a session, or begins one: at once, after a wait, or
    /// not at all.
    fn admit(
        &mut self,
        id: u64,
        request: Request,
        server: &mut ServerContext<'_>,
    ) -> Option<Vec<u8>> {
        let connection = self.connections.get_mut(&id)?;
        let is_http2 = connection.http2.is_some();
        let name = request.parameter("session").filter(|_| !is_http2);
        let owner = self.sessions.iter().find(|(_, session)| match name {
            Some(name) => session.name == name,
            None => is_http2 && session.is_of(connection.peer, connection.user.as_ref()),
        });
        if let Some(owner) = owner.map(|(owner, _)| *owner) {
            self.upgrade(id, owner, &request, server);
            return None;
        }
        if name.is_some() {
            let text = "There is no such session.";
            return Some(response::line("404 Not Found", text));
        }

        let address = Network::of_client(connection.peer.ip());
        match server.admission.decide(id, address, Instant::now()) {
            Decision::Admitted => self.begin(id, &request, server),
            Decision::Queued(wait_max) => {
                connection.until = Instant::now() + wait_max;
                connection.queued = Some(request);
                // What a client sends before its turn would be an event without end.
                let _ = self.sessions.epoll().remove(&connection.fd);
                server.pending_limit.leave(id);
                self.sessions.set_due(id, Some(connection.until));
                None
            }
            Decision::Refused(reason) => Some(self.refusal(id, reason, server)),
        }
    }

    fn refusal(&self, id: u64, reason: RefusalReason, server: &mut ServerContext<'_>) -> Vec<u8> {
        server.admission.release(id, Instant::now());
        if let Some(connection) = self.connections.get(&id) {
            server.log_refusal(connection.peer, reason);
        }
        response::line("503 Service Unavailable", &reason.to_string())
    }

    /// Begins the session of a client that has a place; the response to one that needs more than
    /// it may have.
    fn begin(
        &mut self,
        id: u64,
        request: &Request,
        server: &mut ServerContext<'_>,
    ) -> Option<Vec<u8>> {
        let connection = self.connections.get(&id)?;
        let is_page = matches!(purpose(&request.path), Some((Purpose::Control, _)));
        let bounds = bounds(server.admission.limits(), connection.http2.is_some());
        let streams = if is_page || bounds.is_responsiveness {
            bounds.streams
        } else {
            1
        };
        let spec = TestSpec {
            direction: Direction::Reverse,
            streams,
            ..TestSpec::default()
        };
        let mut requirements = Requirements::of(&spec, streams);
        // Connections of a load that has ended may not be closed when the next one begins.
        requirements.descriptors += u64::from(streams) + 1;

        let quota = QuotaRequest {
            address: Network::of_client(connection.peer.ip()),
            user: connection.user.clone(),
            streams,
            duration: Some(bounds.duration),
            bytes: 0,
            last_blocks_bytes: 0,
            rate_bps: 0,
            requirements,
        };
        if let Err(reason) = server.admission.take(id, quota) {
            return Some(self.refusal(id, reason, server));
        }

        let quota = server.admission.quotas().quota(id);
        let liveness = self.spec.policy.liveness;
        let session = Session::new(
            id,
            connection.peer,
            connection.user.clone(),
            bounds,
            quota,
            liveness,
        );
        self.sessions.insert(id, session);
        self.upgrade(id, id, request, server);
        None
    }

    /// Makes a connection of the session `owner` of one with a request.
    fn upgrade(&mut self, id: u64, owner: u64, request: &Request, server: &mut ServerContext<'_>) {
        let Some(connection) = self.remove(id, server) else {
            return;
        };
        let HttpConnection {
            fd,
            mut layer,
            read: early,
            peer,
            http2,
            ..
        } = connection;
        let (purpose, framing) = match (http2, &request.upgrade, purpose(&request.path)) {
            (Some((mut http2, stream)), ..) => {
                http2.return_request(stream, request.clone());
                let purpose = match responsiveness::load(request) {
                    Some(Load::Upload) => Purpose::Upload,
                    _ => Purpose::Download,
                };
                (purpose, Framing::Http2(http2))
            }
            (None, Some(upgrade), Some((purpose, protocol))) => {
                // A new connection has room for a few bytes; a failure shows at the next read.
                let _ = layer.send(&fd, &response::switching(upgrade, Some(protocol)));
                (purpose, Framing::WebSocket(FrameReader::counting()))
            }
            _ => return,
        };

        let Some(mut session) = self.sessions.remove(owner) else {
            return;
        };
        let outcome = if purpose == Purpose::Control {
            let watched = self.watch(fd.as_fd(), id, CONNECTION);
            session = session.with_control((fd, layer), early, label(request));
            watched
        } else {
            let opening = Opening {
                is_download: purpose == Purpose::Download,
                framing,
                early,
            };
            let added = session.add((fd, layer), opening, &self.spec.local, server);
            added.and_then(|begins| match session.load.as_ref().filter(|_| begins) {
                Some(load) => self.watch(load.notice_fd(), owner, LOAD),
                None => Ok(()),
            })
        };
        if let Err(failure) = outcome {
            server.log_failed_handshake(peer, HandshakeCause::Parameters, failure.message);
        }
        self.sessions.insert(owner, session);
    }

    fn watch(&self, fd: BorrowedFd<'_>, id: u64, kind: u64) -> Result<(), Failure> {
        let watched = self.sessions.watch(fd, id, kind);
        watched.map_err(|error| failure(error.text()))
    }

    fn advance_session(&mut self, id: u64, server: &mut ServerContext<'_>) {
        let is_place_wanted = server.admission.is_place_wanted(Instant::now());
        let Some((session, epoll)) = self.sessions.with_epoll(id) else {
            return;
        };
        for text in session.advance(is_place_wanted, server) {
            stored::store(session, &text, &mut self.results, server);
        }

        if session.is_over {
            self.end_session(id, server);
            return;
        }
        if let Some(control) = &session.control {
            let interest = if control.has_unsent() {
                Interest::WRITE
            } else {
                Interest::READ
            };
            let token = token(id, CONNECTION);
            let _ = epoll.modify(&control.fd, token, interest);
        }

        let due = session.deadline();
        self.sessions.set_due(id, Some(due));
    }

    fn end_session(&mut self, id: u64, server: &mut ServerContext<'_>) {
        server.admission.release(id, Instant::now());
        let session = self.sessions.remove(id);
        if let Some(control) = session.and_then(|session| session.control) {
            let _ = self.sessions.epoll().remove(&control.fd);
            server.close(control.fd, Vec::new());
        }
    }

    fn advance_all(&mut self, server: &mut ServerContext<'_>) {
        for id in self.sessions.take_ready() {
            self.advance_connection(id, server);
            self.advance_session(id, server);
        }

        if let Some(error) = self.results.failure() {
            server
                .out
                .warning(&format!("a result ends with this server: {error}"));
        }

        let is_queued = |connection: &HttpConnection| connection.queued.is_some();
        while let Some(id) = server
            .admission
            .next_turn(|id| self.connections.get(&id).is_some_and(is_queued))
        {
            let connection = self.connections.get_mut(&id);
            let request = connection.and_then(|connection| connection.queued.take());
            if let Some(request) = request
                && let Some(response) = self.begin(id, &request, server)
            {
                self.respond(id, &response, server);
            }
        }
    }
}

/// Bounds of a session: a client that announces nothing is kept within the limits instead of refused.
fn bounds(limits: &ServerLimits, is_responsiveness: bool) -> Bounds {
    let (duration, streams_max) = if is_responsiveness {
        (RESPONSIVENESS_DURATION, RESPONSIVENESS_STREAMS_MAX)
    } else {
        (DURATION, STREAMS_MAX)
    };
    let limits = [&limits.server, &limits.address];
    let durations = limits.iter().filter_map(|limits| limits.duration);
    let streams = limits.iter().filter_map(|limits| limits.streams);
    Bounds {
        duration: durations.fold(duration, Duration::min),
        streams: streams.fold(streams_max, u32::min).max(1),
        is_responsiveness,
    }
}

/// Purpose and subprotocol of a WebSocket at this path.
fn purpose(path: &str) -> Option<(Purpose, &'static str)> {
    match path {
        "/ndt/v7/download" => Some((Purpose::Download, NDT7)),
        "/ndt/v7/upload" => Some((Purpose::Upload, NDT7)),
        "/control" => Some((Purpose::Control, PROTOCOL)),
        _ => None,
    }
}

/// Label of the query of a page: letters, digits and `._-`.
fn label(request: &Request) -> Option<String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let label = request
        .parameter("label")
        .filter(|label| (1..=LABEL_CHARS_MAX).contains(&label.len()))?;
    label.chars().all(is_plain).then(|| label.to_owned())
}
