//! Records of sessions for the log.

use std::net::SocketAddr;
use std::time::Instant;

use linerate_iperf3::wire::ErrorCode;
use linerate_model::service::HandshakeCause;
use linerate_model::{Event, Failure, FailureKind};

use super::Iperf3Server;
use super::registry::Stage;
use crate::error::failure;
use crate::server::{ServerContext, Session as _};

impl Iperf3Server {
    /// A test began.
    pub(super) fn log_start(&self, id: u64, server: &mut ServerContext<'_>) {
        let session = self.sessions.get(&id);
        if let Some((session, test)) =
            session.and_then(|session| Some((session, session.test.as_ref()?)))
        {
            server.start_test(
                id,
                session.peer,
                test.user.clone(),
                &test.spec,
                test.spec.total_streams(),
            );
        }
    }

    /// The last action of a session: reports its end and lets it go.
    pub(super) fn close_session(
        &mut self,
        id: u64,
        outcome: Result<(), Failure>,
        server: &mut ServerContext<'_>,
    ) {
        if let Some(mut session) = self.sessions.remove(id) {
            let outcome = session.close(outcome);
            self.count_end(self.registry.fell_silent(id));
            let cookie = session.cookie.to_string();
            let totals = session.totals();
            if !server.end_test(id, cookie, totals, session.summary.as_ref(), &outcome) {
                self.log_failed_start(id, session.peer, &outcome, server);
            }

            // A session that does not read is in no event loop.
            let _ = self.sessions.epoll().remove(session.control_fd());
            let (control, streams) = session.into_sockets();
            server.close(control, streams);
        }

        server.pending_limit.leave(id);
        self.registry
            .remove(Instant::now(), id, &mut server.admission);
    }

    fn log_failed_start(
        &self,
        id: u64,
        peer: SocketAddr,
        outcome: &Result<(), Failure>,
        server: &mut ServerContext<'_>,
    ) {
        if let Some(refusal) = self.registry.login_failure(id) {
            return server.log_failed_login(peer, refusal.label(), refusal.to_string());
        }
        if let Some(reason) = self.registry.refusal(id) {
            return server.log_refusal(peer, reason);
        }

        let explanation = match outcome {
            Ok(()) => "the client gave up",
            Err(failure) => &failure.message,
        };
        let cause = cause(self.registry.stage(id), outcome);
        server.log_failed_handshake(peer, cause, explanation);
    }

    /// A connection without a complete header is reported as a failed test.
    pub(super) fn report_header_timeout(
        &mut self,
        server: &mut ServerContext<'_>,
    ) -> Result<(), Failure> {
        let mut sink = server.out.open_test().map_err(failure)?;
        sink.event(&Event::Failed(ErrorCode::RecvCookie.failure(None)))
            .map_err(failure)?;
        self.count_end(true);
        Ok(())
    }

    /// A session has ended. A client that is silent before its test begins is not the one that a
    /// server for one test awaits: the original waits for it without an end, and does not end
    /// either.
    fn count_end(&mut self, fell_silent: bool) {
        if !(self.context.spec.one_off && fell_silent) {
            self.ended += 1;
        }
    }
}

fn cause(stage: Option<Stage>, outcome: &Result<(), Failure>) -> HandshakeCause {
    let left = match outcome {
        Ok(()) => true,
        Err(failure) => matches!(
            failure.kind,
            FailureKind::PeerClosed | FailureKind::PeerTerminated
        ),
    };
    match stage {
        _ if left => HandshakeCause::ClientLeft,
        Some(Stage::Accepted | Stage::Opening) => HandshakeCause::Streams,
        _ => HandshakeCause::Parameters,
    }
}
