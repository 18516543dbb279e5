//! A UDP flow seen from the client.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use linerate_model::Failure;

use crate::wire::datagram::{self, DatagramHead};
use crate::wire::header::{Header, Mode};
use crate::wire::machine::{Action, Input, machine};
use crate::wire::report::FinalReport;
use crate::wire::stamp::Timestamp;

/// Wait for the report after each last datagram.
pub const REPORT_WAIT: Duration = Duration::from_millis(10);
/// Last datagrams that are sent at most.
pub const LAST_DATAGRAMS_MAX: u32 = 200;
/// Time between two first datagrams of a test in which the server sends.
pub const FIRST_DATAGRAM_WAIT: Duration = Duration::from_millis(10);
/// First datagrams that are sent at most.
pub const FIRST_DATAGRAMS_MAX: u32 = 100;
/// Time a receiver is given beyond the test's.
const RECEIVE_GRACE: Duration = Duration::from_secs(2);

/// Setup of a client's flow.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowClientSetup {
    /// The header in every datagram; `None` without one (`-C`).
    pub header: Option<Header>,
    /// Bytes of a datagram.
    pub datagram_bytes: usize,
    /// Time limit of the test.
    pub time_limit: Option<Duration>,
    /// A report is requested. Never of a multicast group.
    pub wants_report: bool,
}

#[derive(Debug, Clone, Copy)]
enum Phase {
    /// First datagrams ask the server to send.
    Asking {
        sent: u32,
    },
    /// Data flow.
    Running,
    /// Last datagrams ask for the report.
    Ending {
        sent: u32,
        next_number: i64,
    },
    Closed,
}

/// One UDP flow. Performs no I/O and reads no clock.
#[derive(Debug)]
pub struct FlowClient {
    setup: FlowClientSetup,
    phase: Phase,
    is_sending: bool,
    is_receiving: bool,
    deadline: Option<Instant>,
    actions: VecDeque<Action>,
}

impl FlowClient {
    /// A flow that begins now; `clock` is this end's wall clock.
    pub fn new(now: Instant, clock: Timestamp, setup: FlowClientSetup) -> Self {
        let mode = setup
            .header
            .as_ref()
            .map_or(Mode::Forward, |header| header.mode);
        let mut client = Self {
            setup,
            phase: Phase::Running,
            is_sending: mode.client_sends(),
            is_receiving: mode.server_sends(),
            deadline: None,
            actions: VecDeque::new(),
        };

        if mode.client_sends() {
            client.push(Action::StartSending);
        }

        if mode.server_sends() {
            client.push(Action::StartReceiving { header_bytes: 0 });
            // A server that vanishes must not keep a receiver for ever: UDP has no end of its own.
            client.set_receive_limit(now);
        }

        if mode == Mode::Reverse {
            // The first datagram may be lost, so it is repeated until data arrive.
            client.phase = Phase::Asking { sent: 0 };
            client.ask(now, clock);
        }

        client
    }

    /// A datagram of this flow complete but for number and time.
    pub fn template(&self) -> Vec<u8> {
        datagram::template(self.setup.header.as_ref(), self.setup.datagram_bytes)
    }

    /// Takes a datagram that arrived after the last one was sent. Data of both ways are the
    /// caller's.
    pub fn handle_datagram(&mut self, _now: Instant, datagram: &[u8]) {
        if let Phase::Ending { .. } = self.phase {
            // Any answer ends the wait, as with the originals: the server has received it.
            match FinalReport::parse(datagram) {
                Some(report) => self.push(Action::Report(Box::new(report))),
                None => self.push(Action::NoReport),
            }

            self.close(Ok(()));
        }
    }

    /// Takes what happened on this end.
    pub fn handle_local(&mut self, now: Instant, clock: Timestamp, input: Input) {
        match (input, self.phase) {
            (_, Phase::Closed) => {}
            (Input::Failed(failure), _) => self.close(Err(failure)),
            (Input::SendingDone { next_number }, Phase::Running) if self.is_sending => {
                self.is_sending = false;
                // The number is negated below, and 0 would have no sign.
                let next_number = next_number.max(1);
                self.phase = Phase::Ending {
                    sent: 0,
                    next_number,
                };
                self.end(now, clock);
            }
            (Input::DataArrived, Phase::Asking { .. }) => {
                self.phase = Phase::Running;
                self.set_receive_limit(now);
            }
            (Input::LastArrived(_), Phase::Running | Phase::Asking { .. }) => {
                self.is_receiving = false;
                if !self.is_sending {
                    self.close(Ok(()));
                }
            }
            (Input::Interrupted, Phase::Asking { .. }) => self.close(Ok(())),
            (Input::Interrupted, Phase::Running) if !self.is_sending => {
                self.close(Ok(()));
            }
            // The caller stops a sender, which ends with `SendingDone`.
            _ => {}
        }
    }

    /// Takes the time, at or after [`Self::poll_timeout`].
    pub fn handle_timeout(&mut self, now: Instant, clock: Timestamp) {
        if self.deadline.is_none_or(|deadline| now < deadline) {
            return;
        }

        match self.phase {
            Phase::Asking { .. } => self.ask(now, clock),
            Phase::Ending { .. } => self.end(now, clock),
            Phase::Running => self.close(Ok(())),
            Phase::Closed => {}
        }
    }

    /// Checks whether input is for [`Self::handle_datagram`].
    pub fn awaits_report(&self) -> bool {
        matches!(self.phase, Phase::Ending { .. })
    }

    /// The server has not begun to send.
    pub fn awaits_data(&self) -> bool {
        matches!(self.phase, Phase::Asking { .. })
    }

    fn ask(&mut self, now: Instant, clock: Timestamp) {
        let Phase::Asking { sent } = self.phase else {
            return;
        };
        if sent == FIRST_DATAGRAMS_MAX {
            let text = "the server did not begin to send".to_owned();
            return self.close(Err(super::stream::failure(text)));
        }

        self.phase = Phase::Asking { sent: sent + 1 };
        self.send(1, clock);
        self.deadline = now.checked_add(FIRST_DATAGRAM_WAIT);
    }

    /// Each repetition has the next number, so that a late copy looks like news and not like a
    /// duplicate.
    fn end(&mut self, now: Instant, clock: Timestamp) {
        let Phase::Ending { sent, next_number } = self.phase else {
            return;
        };
        if sent == LAST_DATAGRAMS_MAX {
            self.push(Action::NoReport);
            return self.close(Ok(()));
        }

        // A negative number marks the last datagram.
        self.send(-next_number, clock);
        if self.is_receiving {
            // The server's own last datagram, or the limit of the test, ends this.
            self.phase = Phase::Running;
            self.deadline = now.checked_add(RECEIVE_GRACE);
            return;
        }

        // Without a report one datagram announces the end, and none confirms it.
        if !self.setup.wants_report {
            return self.close(Ok(()));
        }

        self.phase = Phase::Ending {
            sent: sent + 1,
            next_number: next_number.saturating_add(1),
        };
        self.deadline = now.checked_add(REPORT_WAIT);
    }

    fn send(&mut self, number: i64, clock: Timestamp) {
        let mut datagram = self.template();
        if number == 1 {
            let header_bytes = self
                .setup
                .header
                .as_ref()
                .map_or(0, Header::datagram_len_min);
            // The header must fit even if later datagrams are shorter.
            datagram.resize(datagram.len().max(header_bytes), 0);
        }

        DatagramHead {
            number,
            sent: clock,
        }
        .write(&mut datagram);
        self.push(Action::Send(datagram));
    }

    fn set_receive_limit(&mut self, now: Instant) {
        self.deadline = self
            .setup
            .time_limit
            .and_then(|limit| now.checked_add(limit + RECEIVE_GRACE));
    }
}

machine!(FlowClient, phase = Phase::Closed);
