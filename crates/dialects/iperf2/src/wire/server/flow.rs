//! A UDP flow seen from the server. Flows are identified by their source address, so that none gets
//! another's datagrams.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use linerate_model::workload::Shape;
use linerate_model::{EndCondition, Failure, TestSpec, Transport};
use thiserror::Error;

use super::{AcceptedTest, Policy, UdpReverse, clocks_agree, closed, terminated};
use crate::wire::datagram::{FlowOpening, NumberWidth};
use crate::wire::header::Mode;
use crate::wire::machine::{Action, Input, machine};
use crate::wire::opening::Opening;
use crate::wire::report::FinalReport;
use crate::wire::settings::{UDP_BLOCK_LEN_BYTES, UDP_RATE_BPS, server_spec};
use crate::wire::stamp::Timestamp;

/// The report is considered delivered after this silence.
pub const REPORT_SILENCE: Duration = Duration::from_millis(250);
/// Reports that are sent at most.
pub const REPORTS_MAX: u32 = 9;

/// Why a datagram begins no flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum FlowRefusal {
    /// It is not the first of a flow.
    #[error("the datagram begins no flow")]
    NoFlow,
    /// It requests data, and this server sends none over UDP.
    #[error("the client asks for data over UDP")]
    UdpReverse,
    /// It requests data for longer than a server sends them.
    #[error("the client asks for data over UDP for too long")]
    Amount,
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
    reports_delays: bool,
    is_sending: bool,
    is_receiving: bool,
    /// Bytes that arrived and were not answered.
    unanswered_bytes: u64,
    phase: Phase,
    deadline: Option<Instant>,
    actions: VecDeque<Action>,
}

impl FlowServer {
    /// A flow whose first datagram arrived now. With `is_group` it was sent to a multicast group,
    /// which no peer answers.
    ///
    /// # Errors
    /// Reason why the datagram begins no flow.
    pub fn new(
        now: Instant,
        clock: Timestamp,
        policy: Policy,
        datagram: &[u8],
        is_group: bool,
    ) -> Result<Self, FlowRefusal> {
        let opening = FlowOpening::parse(datagram).ok_or(FlowRefusal::NoFlow)?;
        let report_offset = opening.report_offset;
        let mut test = accepted(opening, clock);
        // A flow to a group has many receivers, none of which may answer.
        let mode = if is_group { Mode::Forward } else { test.mode() };
        if mode.server_sends() || mode.connects_back() {
            let bounds = policy.udp_reverse.ok_or(FlowRefusal::UdpReverse)?;
            bound(&mut test.spec, &bounds)?;
        }

        let header = test.header.as_ref();
        let wants_report = !is_group
            && header.is_none_or(|header| !header.without_final_report)
            && !mode.server_sends();

        let mut flow = Self {
            mode,
            back_port: header.map_or(0, |header| header.port),
            report_offset,
            wants_report,
            reports_delays: policy.reports_delays || test.spec.workload.trip_times,
            is_sending: mode.server_sends(),
            is_receiving: mode.client_sends(),
            unanswered_bytes: 0,
            phase: Phase::Running,
            deadline: None,
            actions: VecDeque::from([Action::Accepted(Box::new(test))]),
            policy,
        };
        flow.begin();
        flow.stay_awake(now);

        Ok(flow)
    }

    /// Takes what happened on this end.
    pub fn handle_local(&mut self, now: Instant, input: Input) {
        match (input, &mut self.phase) {
            (_, Phase::Closed) => {}
            (Input::Failed(failure), _) => self.close(Err(failure)),
            (Input::Interrupted, _) => self.close(Err(terminated())),
            (Input::SendingDone { .. }, _) if self.is_sending => {
                self.is_sending = false;
                if !self.is_receiving {
                    self.close(Ok(()));
                }
            }
            (Input::SendingDone { .. }, _) => {}
            (Input::DatagramArrived(bytes), Phase::Reporting { .. }) => {
                self.unanswered_bytes = self.unanswered_bytes.saturating_add(bytes as u64);
                self.report_again(now);
            }
            (Input::DataArrived | Input::DatagramArrived(_), Phase::Proving { missing }) => {
                *missing -= 1;
                if *missing == 0 {
                    self.phase = Phase::Running;
                    self.start_sending();
                }

                self.stay_awake(now);
            }
            // A client that still sends has not received the report.
            (Input::DataArrived, Phase::Reporting { .. }) => self.report_again(now),
            (Input::DataArrived | Input::DatagramArrived(_), _) => {
                self.stay_awake(now);
            }
            (Input::LastArrived(_), Phase::Reporting { .. }) => self.report_again(now),
            (Input::LastArrived(report), _) => self.end(now, &report),
        }
    }

    /// Takes the time, at or after [`Self::poll_timeout`].
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.deadline.is_none_or(|deadline| now < deadline) {
            return;
        }

        match self.phase {
            // A client that receives sends nothing more; its test has an end of its own.
            Phase::Running if self.mode == Mode::Reverse => self.deadline = None,
            Phase::Running | Phase::Proving { .. } => {
                self.push(Action::StopReceiving);
                self.close(Err(closed("the client fell silent")));
            }
            Phase::Reporting { .. } => self.close(Ok(())),
            Phase::Closed => {}
        }
    }

    /// No data are received: what arrives now only shows that the client still speaks.
    pub fn only_listens(&self) -> bool {
        !self.is_receiving
    }

    /// More datagrams must come before this end sends.
    pub fn awaits_proof(&self) -> bool {
        matches!(self.phase, Phase::Proving { .. })
    }

    fn begin(&mut self) {
        self.push(Action::StartReceiving { header_bytes: 0 });
        let sends =
            self.mode.server_sends() || (self.mode.connects_back() && self.policy.may_connect_back);

        match self.policy.datagrams_before_sending.saturating_sub(1) {
            _ if !sends => {}
            0 => self.start_sending(),
            missing => self.phase = Phase::Proving { missing },
        }
    }

    fn start_sending(&mut self) {
        match self.mode {
            Mode::Reverse | Mode::FullDuplex => self.push(Action::StartSending),
            Mode::Dual => self.push(Action::ConnectBack {
                port: self.back_port,
                spec: None,
            }),
            Mode::TradeOff | Mode::Forward => {}
        }
    }

    fn end(&mut self, now: Instant, report: &FinalReport) {
        self.push(Action::StopReceiving);
        let is_proven = !matches!(self.phase, Phase::Proving { .. });
        if self.mode == Mode::TradeOff && self.policy.may_connect_back && is_proven {
            self.push(Action::ConnectBack {
                port: self.back_port,
                spec: None,
            });
        }

        self.is_receiving = false;
        // On a shared socket the client still receives data, so it would not read a report.
        if self.is_sending {
            self.deadline = self.silence_max().and_then(|time| now.checked_add(time));
            return;
        }

        if !self.wants_report {
            return self.close(Ok(()));
        }

        let mut report = *report;
        if !self.reports_delays {
            // Without synchronised clocks a one-way delay would be an offset.
            report.transit_s = None;
        }

        self.unanswered_bytes = report.bytes;
        self.phase = Phase::Reporting {
            datagram: report.emit(self.report_offset),
            sent: 0,
        };
        self.deadline = now.checked_add(REPORT_SILENCE);
        self.report_again(now);
    }

    /// Sends the report: the flow has ended, or the client still sends and so has not got the
    /// report.
    fn report_again(&mut self, now: Instant) {
        let Phase::Reporting { datagram, sent } = &mut self.phase else {
            return;
        };
        let len = datagram.len() as u64;
        // Never more bytes than arrived, so that a forged source address gains nothing.
        if self.policy.answers_are_bounded && len > self.unanswered_bytes {
            return;
        }

        self.unanswered_bytes = self.unanswered_bytes.saturating_sub(len);
        if *sent == REPORTS_MAX {
            self.push(Action::ReportUnconfirmed);
            return self.close(Ok(()));
        }

        *sent += 1;
        let again = datagram.clone();
        self.push(Action::Send(again));
        self.deadline = now.checked_add(REPORT_SILENCE);
    }

    fn stay_awake(&mut self, now: Instant) {
        let silence_max = self.silence_max().unwrap_or(self.policy.idle_timeout);
        self.deadline = now.checked_add(silence_max);
    }

    /// Longest silence of a client to which data may be sent.
    fn silence_max(&self) -> Option<Duration> {
        let answers = self.mode.server_sends() || self.mode.connects_back();
        self.policy.udp_reverse.filter(|_| answers)?.silence_max
    }
}

machine!(FlowServer, phase = Phase::Closed);

/// Keeps what this end is to send within the bounds.
fn bound(spec: &mut TestSpec, bounds: &UdpReverse) -> Result<(), FlowRefusal> {
    match spec.end {
        EndCondition::Duration(time) if time > bounds.time_max => return Err(FlowRefusal::Amount),
        EndCondition::Unlimited => spec.end = EndCondition::Duration(bounds.time_max),
        _ => {}
    }

    let rate_bps_max = bounds.rate_bps_max;
    // A rate in datagrams is bounded by the same bits per second.
    let bits = u64::from(spec.block_len_bytes).saturating_mul(8).max(1);
    spec.workload.datagrams_per_s = spec
        .workload
        .datagrams_per_s
        .map(|n| n.min(rate_bps_max / bits));
    spec.pacing.rate_bps = match spec.pacing.rate_bps {
        // 0 is no limit of the client, but the server has one.
        Some(0) => Some(rate_bps_max),
        Some(rate_bps) => Some(rate_bps.min(rate_bps_max)),
        None if spec.workload.datagrams_per_s.is_some()
            || spec.workload.shape != Shape::Continuous =>
        {
            None
        }
        None => Some(UDP_RATE_BPS),
    };

    if let Shape::Isochronous(frames) = &mut spec.workload.shape {
        frames.mean_bps = frames.mean_bps.min(rate_bps_max as f64);
        frames.deviation_bps = frames.deviation_bps.min(rate_bps_max as f64);
        // A frame is at least one datagram.
        frames.frames_per_s = frames.frames_per_s.min(rate_bps_max as f64 / bits as f64);
    }

    Ok(())
}

/// The test of a flow without a header, as far as a server can tell.
fn headerless_spec() -> TestSpec {
    TestSpec {
        transport: Transport::Udp,
        end: EndCondition::Unlimited,
        block_len_bytes: UDP_BLOCK_LEN_BYTES,
        ..TestSpec::default()
    }
}

fn accepted(opening: FlowOpening, clock: Timestamp) -> AcceptedTest {
    let trip_times = opening.short_trip_times
        || opening
            .header
            .as_ref()
            .is_some_and(|header| header.trip_times);
    let start = match &opening.header {
        Some(header) => header.start,
        None => Some(opening.head.sent),
    };
    let clocks_disagree = trip_times && !clocks_agree(start, clock);
    let mut spec = match &opening.header {
        Some(header) => server_spec(header, Transport::Udp),
        None => headerless_spec(),
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
