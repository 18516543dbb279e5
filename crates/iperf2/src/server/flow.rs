//! A UDP flow seen from the server. Flows are told apart by their source address, so that none gets another's
//! datagrams.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use linerate_model::{EndCondition, Failure, FailureKind, TestSpec, Transport};

use super::{AcceptedTest, Policy};
use crate::datagram::{FlowOpening, NumberWidth};
use crate::header::Mode;
use crate::opening::Opening;
use crate::report::FinalReport;
use crate::settings::{UDP_BLOCK_LEN_BYTES, server_spec};
use crate::stamp::Timestamp;

/// Silence after a report means that it has arrived.
pub const REPORT_SILENCE: Duration = Duration::from_millis(250);
/// Reports that are sent at most.
pub const REPORTS_MAX: u32 = 9;

/// What happens on this end.
#[derive(Debug, Clone, PartialEq)]
pub enum FlowServerInput {
    /// A datagram with a positive number has arrived; the caller has counted it.
    DataArrived,
    /// The client's last datagram has arrived; this is what was counted. Its repetitions come the same way.
    LastArrived(Box<FinalReport>),
    /// All that was to be sent is sent, last datagram included.
    SendingDone,
    /// The server is to end.
    Terminated,
    /// Something failed.
    Failed(Failure),
}

/// What the caller is to do.
#[derive(Debug, Clone, PartialEq)]
pub enum FlowServerAction {
    /// A test begins.
    Accepted(Box<AcceptedTest>),
    /// Count what arrives, the first datagram included.
    StartReceiving,
    /// Send data.
    StartSending,
    /// Open a flow to the client's address, and only to it.
    ConnectBack {
        /// Port on the client's address.
        port: u16,
    },
    /// The client has finished: close the report.
    StopReceiving,
    /// Send this datagram.
    Send(Vec<u8>),
    /// The client never fell silent, so its report may not have arrived.
    ReportUnconfirmed,
    /// The flow is through; always the last action.
    Close(Result<(), Failure>),
}

#[derive(Debug)]
enum Phase {
    /// More datagrams must prove the client's address before it is sent to.
    Proving {
        missing: u32,
    },
    /// Data flow.
    Running,
    /// The report is out.
    Reporting {
        datagram: Vec<u8>,
        sent: u32,
    },
    Closed,
}

/// One UDP flow. Performs no I/O and reads no clock.
#[derive(Debug)]
pub struct FlowServer {
    policy: Policy,
    mode: Mode,
    back_port: u16,
    report_offset: usize,
    wants_report: bool,
    tells_transit: bool,
    is_sending: bool,
    is_receiving: bool,
    phase: Phase,
    deadline: Option<Instant>,
    actions: VecDeque<FlowServerAction>,
}

impl FlowServer {
    /// A flow whose first datagram arrived now; `None` when that datagram begins no flow. `is_group` tells that it was
    /// sent to a multicast group, which nobody answers.
    #[must_use]
    pub fn new(now: Instant, clock: Timestamp, policy: Policy, datagram: &[u8], is_group: bool) -> Option<Self> {
        let opening = FlowOpening::parse(datagram)?;
        let report_offset = opening.report_offset;
        let test = accepted(opening, &policy, clock);
        let header = test.header.as_ref();
        let mode = if is_group { Mode::Forward } else { test.mode() };
        let wants_report =
            !is_group && header.is_none_or(|header| !header.without_final_report) && !mode.server_sends();
        let mut flow = Self {
            mode,
            back_port: header.map_or(0, |header| header.port),
            report_offset,
            wants_report,
            tells_transit: test.spec.workload.trip_times,
            is_sending: mode.server_sends(),
            is_receiving: mode.client_sends(),
            phase: Phase::Running,
            deadline: now.checked_add(policy.idle_timeout),
            actions: VecDeque::from([FlowServerAction::Accepted(Box::new(test))]),
            policy,
        };
        flow.begin();
        Some(flow)
    }

    /// Takes what happened on this end.
    pub fn handle_local(&mut self, now: Instant, input: FlowServerInput) {
        match (input, &mut self.phase) {
            (_, Phase::Closed) => {}
            (FlowServerInput::Failed(failure), _) => self.close(Err(failure)),
            (FlowServerInput::Terminated, _) => self.close(Err(Failure {
                kind: FailureKind::Interrupted,
                message: "the server was told to end".to_owned(),
                code: None,
            })),
            (FlowServerInput::SendingDone, _) if self.is_sending => {
                self.is_sending = false;
                if !self.is_receiving {
                    self.close(Ok(()));
                }
            }
            (FlowServerInput::SendingDone, _) => {}
            (FlowServerInput::DataArrived, Phase::Proving { missing }) => {
                *missing -= 1;
                if *missing == 0 {
                    self.phase = Phase::Running;
                    self.start_sending();
                }
                self.stay_awake(now);
            }
            (FlowServerInput::DataArrived, Phase::Reporting { .. }) => self.report_again(now),
            (FlowServerInput::DataArrived, _) => self.stay_awake(now),
            (FlowServerInput::LastArrived(_), Phase::Reporting { .. }) => self.report_again(now),
            (FlowServerInput::LastArrived(report), _) => self.end(now, &report),
        }
    }

    /// Takes the time, at or after [`Self::poll_timeout`].
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.deadline.is_none_or(|deadline| now < deadline) {
            return;
        }
        match self.phase {
            // A client that receives has no reason to say more; its test has an end of its own.
            Phase::Running if self.mode == Mode::Reverse => self.deadline = None,
            Phase::Running | Phase::Proving { .. } => {
                self.push(FlowServerAction::StopReceiving);
                self.close(Err(Failure {
                    kind: FailureKind::PeerClosed,
                    message: "the client fell silent".to_owned(),
                    code: None,
                }));
            }
            Phase::Reporting { .. } => self.close(Ok(())),
            Phase::Closed => {}
        }
    }

    /// No data are received: what arrives now only shows that the client still speaks.
    #[must_use]
    pub fn only_listens(&self) -> bool {
        !self.is_receiving
    }

    /// More datagrams must come before this end sends.
    #[must_use]
    pub fn awaits_proof(&self) -> bool {
        matches!(self.phase, Phase::Proving { .. })
    }

    /// When [`Self::handle_timeout`] wants to be called.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.deadline
    }

    /// The next thing to do.
    pub fn poll_action(&mut self) -> Option<FlowServerAction> {
        self.actions.pop_front()
    }

    fn begin(&mut self) {
        self.push(FlowServerAction::StartReceiving);
        let sends = self.mode.server_sends() || (self.mode.connects_back() && self.policy.may_connect_back);
        match self.policy.datagrams_before_sending.saturating_sub(1) {
            _ if !sends => {}
            0 => self.start_sending(),
            missing => self.phase = Phase::Proving { missing },
        }
    }

    fn start_sending(&mut self) {
        match self.mode {
            Mode::Reverse | Mode::FullDuplex => self.push(FlowServerAction::StartSending),
            Mode::Dual => self.push(FlowServerAction::ConnectBack { port: self.back_port }),
            Mode::TradeOff | Mode::Forward => {}
        }
    }

    fn end(&mut self, now: Instant, report: &FinalReport) {
        self.push(FlowServerAction::StopReceiving);
        let is_proven = !matches!(self.phase, Phase::Proving { .. });
        if self.mode == Mode::TradeOff && self.policy.may_connect_back && is_proven {
            self.push(FlowServerAction::ConnectBack { port: self.back_port });
        }
        self.is_receiving = false;
        if self.is_sending {
            self.deadline = None;
            return;
        }
        if !self.wants_report {
            return self.close(Ok(()));
        }
        let mut report = *report;
        if !self.tells_transit {
            report.transit_s = None;
        }
        let datagram = report.emit(self.report_offset);
        self.push(FlowServerAction::Send(datagram.clone()));
        self.phase = Phase::Reporting { datagram, sent: 1 };
        self.deadline = now.checked_add(REPORT_SILENCE);
    }

    /// The client still speaks, so it has not seen the report.
    fn report_again(&mut self, now: Instant) {
        let Phase::Reporting { datagram, sent } = &mut self.phase else {
            return;
        };
        if *sent == REPORTS_MAX {
            self.push(FlowServerAction::ReportUnconfirmed);
            return self.close(Ok(()));
        }
        *sent += 1;
        let again = datagram.clone();
        self.push(FlowServerAction::Send(again));
        self.deadline = now.checked_add(REPORT_SILENCE);
    }

    fn stay_awake(&mut self, now: Instant) {
        self.deadline = now.checked_add(self.policy.idle_timeout);
    }

    fn close(&mut self, outcome: Result<(), Failure>) {
        self.push(FlowServerAction::Close(outcome));
        self.phase = Phase::Closed;
        self.deadline = None;
    }

    fn push(&mut self, action: FlowServerAction) {
        self.actions.push_back(action);
    }
}

fn accepted(opening: FlowOpening, policy: &Policy, clock: Timestamp) -> AcceptedTest {
    let trip_times = opening.short_trip_times || opening.header.as_ref().is_some_and(|header| header.trip_times);
    let start = match &opening.header {
        Some(header) => header.start,
        None => Some(opening.head.sent),
    };
    let clocks_disagree = trip_times && !policy.clocks_agree(start, clock);
    let mut spec = match &opening.header {
        Some(header) => server_spec(header, Transport::Udp),
        None => TestSpec {
            transport: Transport::Udp,
            end: EndCondition::Unlimited,
            block_len_bytes: UDP_BLOCK_LEN_BYTES,
            ..TestSpec::default()
        },
    };
    spec.udp.counters_64bit = opening.width == NumberWidth::Wide;
    spec.workload.trip_times = trip_times && !clocks_disagree;
    spec.workload.without_header = opening.header.is_none();
    AcceptedTest {
        opening: if opening.header.is_some() {
            Opening::Header
        } else {
            Opening::Data
        },
        header: opening.header,
        payload_bytes: 0,
        spec,
        clocks_disagree,
    }
}
