//! Records of sessions for the log.

use std::net::SocketAddr;
use std::time::Instant;

use linerate_iperf3::ErrorCode;
use linerate_model::service::{HandshakeCause, TestFacts};
use linerate_model::{Event, Failure, FailureKind, ServerEvent};

use super::registry::Stage;
use super::{CLOSING, PROGRESS_DEFAULT, Server, sink_failure};
use crate::server::server_stats::record;

impl Server<'_> {
    /// A test began.
    pub(super) fn note_start(&mut self, id: u64) {
        let Some(session) = self.sessions.get(&id) else { return };
        let Some(test) = session.test() else { return };
        let facts = TestFacts {
            number: 0,
            peer: session.peer(),
            user: test.user.clone(),
            transport: test.spec.transport,
            direction: test.spec.direction,
            streams: test.spec.total_streams(),
            running_beside: 0,
        };
        let facts = self.stats.start(id, Instant::now(), facts);
        self.out.server_event(&ServerEvent::TestStarted(facts));
    }

    /// The last action of a session: reports its end and lets it go.
    pub(super) fn close_session(&mut self, id: u64, outcome: Result<(), Failure>) {
        let now = Instant::now();
        let (stage, ran_beside_max) = (self.registry.stage(id), self.stats.concurrent_max(id));
        if let Some(mut session) = self.sessions.remove(&id) {
            let outcome = session.close(outcome);
            self.ended += 1;
            self.stats.update(id, session.moved());
            match self.stats.end(id) {
                Some(facts) => {
                    let record = record(
                        facts,
                        session.cookie().to_string(),
                        session.summary(),
                        &outcome,
                        ran_beside_max,
                    );
                    if self.stats.is_idle() {
                        self.report_progress();
                    }
                    self.out.server_event(&ServerEvent::TestEnded(record));
                }
                None => self.note_failed_start(id, session.peer(), stage, &outcome),
            }
            let (control, streams) = session.into_sockets();
            self.closing.add(control, streams, &self.epoll, CLOSING);
        }
        self.acceptor.forget(id);
        self.registry.remove(now, id, &mut self.admission);
    }

    fn note_failed_start(&mut self, id: u64, peer: SocketAddr, stage: Option<Stage>, outcome: &Result<(), Failure>) {
        let event = if let Some(refusal) = self.registry.login_failure(id) {
            ServerEvent::LoginFailed {
                peer,
                cause: refusal.label(),
                explanation: refusal.to_string(),
            }
        } else if let Some(reason) = self.registry.refusal(id) {
            ServerEvent::Refused { peer, reason }
        } else {
            let explanation = match outcome {
                Ok(()) => "the client gave up".to_owned(),
                Err(failure) => failure.message.clone(),
            };
            ServerEvent::HandshakeFailed {
                peer,
                cause: cause(stage, outcome),
                explanation,
            }
        };
        self.out.server_event(&event);
    }

    pub(super) fn note_header_timeout(&mut self, peer: SocketAddr) {
        self.out.server_event(&ServerEvent::HandshakeFailed {
            peer,
            cause: HandshakeCause::Cookie,
            explanation: ErrorCode::RecvCookie.message(Some("Connection timed out")),
        });
    }

    /// A connection without a complete header counts as a failed test, as in the original.
    pub(super) fn report_header_timeout(&mut self) -> Result<(), Failure> {
        let mut sink = self.out.open_test().map_err(|e| sink_failure(&e))?;
        sink.event(&Event::Failed(ErrorCode::RecvCookie.failure(None)))
            .map_err(|e| sink_failure(&e))?;
        self.ended += 1;
        Ok(())
    }

    pub(super) fn report_progress_when_due(&mut self, now: Instant) {
        if self.stats.is_idle() {
            self.next_progress = None;
            return;
        }
        let interval = self.context.spec.local.interval.unwrap_or(PROGRESS_DEFAULT);
        match self.next_progress {
            Some(due) if now >= due => {
                self.report_progress();
                // A missed poll is not repeated.
                self.next_progress = Some((due + interval).max(now));
            }
            Some(_) => {}
            None => self.next_progress = Some(now + interval),
        }
    }

    fn report_progress(&mut self) {
        let ids: Vec<u64> = self.stats.ids().collect();
        for id in ids {
            if let Some(session) = self.sessions.get_mut(&id) {
                self.stats.update(id, session.moved());
            }
        }
        self.note_iperf2();
        let progress = self.stats.progress(Instant::now());
        self.out.server_event(&ServerEvent::Progress(progress));
    }
}

fn cause(stage: Option<Stage>, outcome: &Result<(), Failure>) -> HandshakeCause {
    let left = match outcome {
        Ok(()) => true,
        Err(failure) => matches!(failure.kind, FailureKind::PeerClosed | FailureKind::PeerTerminated),
    };
    match stage {
        _ if left => HandshakeCause::ClientLeft,
        Some(Stage::Accepted | Stage::Opening) => HandshakeCause::Streams,
        _ => HandshakeCause::Parameters,
    }
}
