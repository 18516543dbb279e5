//! A server that runs: its sessions and totals.

use std::collections::VecDeque;
use std::net::SocketAddr;

use super::{LiveLine, LiveState, PageResults};
use crate::service::{ClientProgress, Progress, ServerEvent, TestFacts};
use crate::spec::EndCondition;
use crate::units::rate_bps;

/// Announced ends of tests that are kept until their test starts.
const ANNOUNCED_MAX: usize = 64;

/// A server and its running tests.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LiveServer {
    /// Where it listens.
    pub addresses: Vec<SocketAddr>,
    /// Most tests at a time; `None` when unknown.
    pub tests_max: Option<u32>,
    /// The running tests in the order of their numbers.
    pub sessions: Vec<LiveSession>,
    /// Tests that began.
    pub started: u64,
    /// Clients that were refused.
    pub refused: u64,
    /// Logins that failed.
    pub logins_failed: u64,
    /// Payload that arrived here, in bit/s per interval.
    pub received: LiveLine,
    /// Payload that left here, in bit/s per interval.
    pub sent: LiveLine,
    /// Results of test pages.
    pub results: PageResults,
    /// Records that were written, and those lost; `None` when none are kept.
    pub records: Option<(u64, u64)>,
    /// By what it was requested to end.
    pub stopping: Option<String>,
    /// Parameters of tests before the server reported that they began.
    announced: VecDeque<(String, u16, EndCondition)>,
}

/// A running test of a server.
#[derive(Debug, Clone, PartialEq)]
pub struct LiveSession {
    /// Agreed parameters.
    pub facts: TestFacts,
    /// When it began, in ns since the view began.
    pub started_ns: u64,
    /// End condition; `None` when unknown.
    pub end: Option<EndCondition>,
    /// Payload of both directions in bit/s per interval.
    pub rate: LiveLine,
    /// Payload bytes that arrived here.
    pub received_bytes: u64,
    /// Payload bytes that left here.
    pub sent_bytes: u64,
    /// Time in ns in which these bytes were moved.
    pub measured_ns: u64,
}

impl LiveSession {
    /// Payload of both directions in bit/s since the test began; `None` before the first interval.
    pub fn mean_bps(&self) -> Option<f64> {
        let bytes = self.received_bytes.saturating_add(self.sent_bytes);
        (self.measured_ns > 0).then(|| rate_bps(bytes, crate::units::ns_to_s(self.measured_ns)))
    }

    fn progress(&mut self, client: &ClientProgress, elapsed_ns: u64) {
        let bytes = client.received_bytes.saturating_add(client.sent_bytes);
        self.rate
            .push(rate_bps(bytes, crate::units::ns_to_s(elapsed_ns)));
        self.received_bytes = self.received_bytes.saturating_add(client.received_bytes);
        self.sent_bytes = self.sent_bytes.saturating_add(client.sent_bytes);
        self.measured_ns = self.measured_ns.saturating_add(elapsed_ns);
    }
}

impl LiveState {
    /// Takes an event of a server.
    pub fn server_event(&mut self, event: &ServerEvent, at_ns: u64) {
        self.version += 1;
        let server = self.server_mut();

        match event {
            ServerEvent::Listening { address } => server.addresses.push(*address),
            ServerEvent::TestStarted(facts) => server.start(facts, at_ns),
            ServerEvent::Progress(progress) => server.progress(progress, at_ns),
            ServerEvent::TestEnded(record) => {
                server
                    .sessions
                    .retain(|session| session.facts.number != record.facts.number);
                if server.sessions.is_empty() {
                    // The lines of an idle server end at zero.
                    server.received.push(0.0);
                    server.sent.push(0.0);
                }
            }
            ServerEvent::PageResult(result) => server.results.push(result),
            ServerEvent::Refused { .. } => server.refused += 1,
            ServerEvent::LoginFailed { .. } => server.logins_failed += 1,
            ServerEvent::Stopping { signal_text } => server.stopping = Some(signal_text.clone()),
            ServerEvent::HandshakeFailed { .. }
            | ServerEvent::Reloaded
            | ServerEvent::Browsers { .. }
            | ServerEvent::Iperf2 { .. }
            | ServerEvent::Stamp { .. }
            | ServerEvent::ResultStored { .. }
            | ServerEvent::HostKey { .. } => {}
        }
    }

    /// A test of the client at this address and port will end so.
    pub fn announce(&mut self, host: &str, port: u16, end: EndCondition) {
        let server = self.server_mut();
        let session = server
            .sessions
            .iter_mut()
            .find(|session| is_of(session, host, port) && session.end.is_none());
        // The announcement may follow the start of its test.
        if let Some(session) = session {
            session.end = Some(end);
            self.version += 1;
            return;
        }

        // A test that was announced and never started makes room for a newer one.
        if server.announced.len() == ANNOUNCED_MAX {
            server.announced.pop_front();
        }

        server.announced.push_back((host.to_owned(), port, end));
    }
}

fn is_of(session: &LiveSession, host: &str, port: u16) -> bool {
    let peer = session.facts.peer;
    // A socket of both families shows IPv4 clients as mapped addresses (ipv6(7)).
    peer.port() == port && peer.ip().to_canonical().to_string() == host
}

impl LiveServer {
    fn start(&mut self, facts: &TestFacts, at_ns: u64) {
        self.started += 1;
        let mut session = LiveSession {
            facts: facts.clone(),
            started_ns: at_ns,
            end: None,
            rate: LiveLine::default(),
            received_bytes: 0,
            sent_bytes: 0,
            measured_ns: 0,
        };
        let announced = self
            .announced
            .iter()
            .position(|(host, port, _)| is_of(&session, host, *port));
        session.end = announced
            .and_then(|at| self.announced.remove(at))
            .map(|(_, _, end)| end);
        self.sessions.push(session);
    }

    fn progress(&mut self, progress: &Progress, at_ns: u64) {
        let elapsed_ns = u64::try_from(progress.elapsed.as_nanos()).unwrap_or(u64::MAX);
        // A period without a length has no rate.
        if elapsed_ns == 0 {
            return;
        }

        let mut received = 0_u64;
        let mut sent = 0_u64;
        for client in &progress.clients {
            received = received.saturating_add(client.received_bytes);
            sent = sent.saturating_add(client.sent_bytes);

            if let Some(session) = self
                .sessions
                .iter_mut()
                .find(|session| session.facts.number == client.number)
            {
                // A test that began within the interval moved its bytes in less time.
                let ran_ns = at_ns.saturating_sub(session.started_ns).max(1);
                session.progress(client, elapsed_ns.min(ran_ns));
            }
        }

        let seconds = crate::units::ns_to_s(elapsed_ns);
        self.received.push(rate_bps(received, seconds));
        self.sent.push(rate_bps(sent, seconds));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::service::{Outcome, RefusalReason, TestRecord};
    use crate::spec::{Direction, Transport};

    fn facts(number: u64) -> TestFacts {
        TestFacts {
            number,
            peer: "192.0.2.14:51822".parse().expect("an address"),
            user: None,
            transport: Transport::Tcp,
            direction: Direction::Forward,
            streams: 8,
            running_beside: 0,
        }
    }

    fn progress(number: u64, received_bytes: u64) -> ServerEvent {
        let peer = "192.0.2.14:51822".parse().expect("an address");
        let clients = vec![ClientProgress {
            number,
            peer,
            received_bytes,
            sent_bytes: 0,
        }];

        ServerEvent::Progress(Progress {
            tests: 1,
            streams: 8,
            elapsed: Duration::from_secs(1),
            clients,
            ..Progress::default()
        })
    }

    #[test]
    fn a_session_has_its_rate_while_it_runs_and_no_row_afterwards() {
        let mut state = LiveState::default();
        state.announce(
            "192.0.2.14",
            51822,
            EndCondition::Duration(Duration::from_secs(10)),
        );
        state.server_event(&ServerEvent::TestStarted(facts(1)), 5_000_000_000);
        state.server_event(&progress(1, 125_000_000), 6_000_000_000);

        let server = state.server.clone().expect("a server");
        let session = &server.sessions[0];
        assert_eq!(session.rate.last(), Some(1e9));
        assert_eq!(session.mean_bps(), Some(1e9));
        assert_eq!(
            session.end,
            Some(EndCondition::Duration(Duration::from_secs(10)))
        );
        assert_eq!(
            (server.received.last(), server.sent.last()),
            (Some(1e9), Some(0.0))
        );

        let record = TestRecord {
            facts: facts(1),
            cookie: String::new(),
            received_bytes: 0,
            sent_bytes: 0,
            duration_ns: 0,
            outcome: Outcome::Complete,
            ran_beside_max: 0,
        };
        state.server_event(&ServerEvent::TestEnded(record), 7_000_000_000);
        let server = state.server.expect("a server");
        assert!(server.sessions.is_empty());
        assert_eq!((server.started, server.received.last()), (1, Some(0.0)));
    }

    #[test]
    fn refusals_are_counted() {
        let mut state = LiveState::default();
        let peer = facts(1).peer;
        state.server_event(
            &ServerEvent::Refused {
                peer,
                reason: RefusalReason::Busy,
            },
            0,
        );
        assert_eq!(
            (state.version, state.server.map(|server| server.refused)),
            (1, Some(1))
        );
    }

    #[test]
    fn announcements_without_a_test_are_bounded() {
        let mut state = LiveState::default();
        (0..1000).for_each(|port| state.announce("192.0.2.1", port, EndCondition::Bytes(1)));
        assert_eq!(
            state.server.map(|server| server.announced.len()),
            Some(ANNOUNCED_MAX)
        );
    }
}
