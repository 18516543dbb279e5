//! Datagrams of one direction on a schedule: what the sender handed over and when, what arrived and
//! how.

mod rate_controlled;
mod received;
mod samples;
mod scheduled;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use linerate_model::path::{EndpointPhase, PathDirection, PhaseKind, PhaseSpec};
use linerate_model::spec::{LocalOptions, Segmentation};
use linerate_model::{EndCondition, Flow, StreamId, StreamRole, TestSpec, Transport};
use linerate_native::wire::datagram::{Feedback, FlowId, HEAD_LEN};
use linerate_sys::{clock, socket, sockopt};

use crate::data::pacing::Schedule;
use crate::data::quota::Quota;
use crate::data::run::{PumpBuilder, PumpInputs, RunEvent, TestRun};
use crate::data::socket as data_socket;
use crate::data::worker::{DatagramReceiver, DatagramSender, Datagrams};
use crate::dialect::native::run_settings;
use crate::error::{EngineError, Operation};
use crate::lock::lock;
use crate::measure::cpu_usage::CpuMeter;
use crate::measure::overflow;
use crate::measure::stream_stats::StreamStats;
use crate::reporter::Reporter;
use rate_controlled::{RateControl, RateControlledSender};
use received::{FEEDBACK_NS, FeedbackSender, HeadReader, Received};
use samples::distribution;
use scheduled::{HeadWriter, Sent};

/// One flow of datagrams at one end.
pub(super) struct DatagramRun {
    run: TestRun,
    fd: BorrowedSocket,
    is_sender: bool,
    pub start_ns: u64,
    stopped_ns: Option<u64>,
    cpu: CpuMeter,
    shared: Shared,
    /// Requests of a receiver that decides on the rate.
    requests: FeedbackSender,
    next_request_ns: u64,
    /// By how many bytes an IP packet is longer than its UDP payload.
    pub header_bytes: u64,
    notes: Vec<String>,
}

/// State that the worker of the flow and the control thread share.
#[derive(Debug, Default)]
struct Shared {
    sent: Arc<Mutex<Sent>>,
    received: Arc<Mutex<Received>>,
    rate_control: Arc<RateControl>,
}

/// The socket of the flow, which the run shares with its worker.
type BorrowedSocket = Arc<OwnedFd>;

/// Largest UDP payload over IPv4.
const DATAGRAM_BYTES_MAX: u32 = 65_507;
/// Headers of IP and UDP.
const HEADERS_V4: u64 = 28;
const HEADERS_V6: u64 = 48;

impl DatagramRun {
    /// A run over an open flow; `is_sender` where this end sends.
    pub(super) fn new(
        spec: &PhaseSpec,
        id: FlowId,
        fd: OwnedFd,
        is_sender: bool,
        quota: Quota,
    ) -> Result<Self, EngineError> {
        let header_bytes = header_bytes(&fd);
        let test = test_spec(spec, header_bytes);
        let local = LocalOptions {
            interval: None,
            ..LocalOptions::default()
        };

        let settings = run_settings(test.clone(), local);
        let mut run = TestRun::new(settings).map_err(Operation::Init.failed())?;
        run.limit(quota);

        let _ = sockopt::SO_TIMESTAMPNS.set(&fd, true);
        if spec.dscp != 0 {
            let _ = sockopt::set_tos(&fd, spec.dscp << 2);
        }

        let role = if is_sender {
            StreamRole::Sender
        } else {
            StreamRole::Receiver
        };
        let stream = data_socket::describe(&fd, StreamId(0), &test, role, Flow::Forward)
            .map_err(Operation::InitStream.failed())?;
        let fd = Arc::new(fd);
        let shared = Shared::default();
        let is_server = is_sender == (spec.direction == Some(PathDirection::Down));
        let build = match (is_sender, spec.kind) {
            (true, PhaseKind::Capacity) => {
                steered_sender(&test, id, is_server, header_bytes, &shared)
            }
            (true, kind) => sender(test, id, kind == PhaseKind::Pace, &shared),
            (false, kind) => {
                let reports = is_server && kind == PhaseKind::Capacity;
                receiver(
                    &test,
                    id,
                    reports.then(|| FeedbackSender::new(Arc::clone(&fd), id)),
                    &shared,
                )
            }
        };

        run.join(
            stream,
            Arc::clone(&fd),
            Arc::new(StreamStats::default()),
            build,
            0,
        );
        Ok(Self {
            run,
            requests: FeedbackSender::new(Arc::clone(&fd), id),
            fd,
            is_sender,
            start_ns: 0,
            stopped_ns: None,
            cpu: CpuMeter::start(clock::monotonic_ns()),
            shared,
            next_request_ns: 0,
            header_bytes,
            notes: Vec::new(),
        })
    }

    /// The data begins to flow.
    pub(super) fn start(&mut self) -> Result<(), EngineError> {
        self.start_ns = clock::monotonic_ns();
        self.cpu = CpuMeter::start(self.start_ns);
        self.run.start_clock(self.start_ns);
        self.run.start_data()
    }

    pub(super) fn notice_fd(&self) -> BorrowedFd<'_> {
        self.run.notice_fd()
    }

    /// Handles notices.
    pub(super) fn advance(&mut self) {
        for event in self.run.poll(clock::monotonic_ns(), &mut Reporter::new(())) {
            if let RunEvent::StreamEnded {
                error: Some(error), ..
            } = event
            {
                self.notes.push(format!("datagrams ended early: {error}"));
            }
        }
    }

    /// Bytes that were received and sent so far.
    pub(super) fn totals(&self) -> (u64, u64) {
        let bytes = self.run.counts(StreamId(0)).bytes;
        if self.is_sender {
            (0, bytes)
        } else {
            (bytes, 0)
        }
    }

    /// The sender stops; the receiver continues.
    pub(super) fn stop_sender(&mut self) {
        if self.is_sender {
            self.run.stop_now(&mut Reporter::new(()));
            self.stopped_ns.get_or_insert_with(clock::monotonic_ns);
        }
    }

    /// Has datagrams sent at this rate of IP packets: by this end, or by the other one on request.
    pub(super) fn steer(&mut self, rate_bps: u64) {
        self.shared
            .rate_control
            .rate_bps
            .store(rate_bps, Ordering::Relaxed);
    }

    /// Reports of the receiver since the last call, with the time up to which each counts on the
    /// clock of its end. A receiver makes them itself, and sends the rate with each.
    pub(super) fn reports(&mut self) -> Vec<(u64, Feedback)> {
        if self.is_sender {
            return self.shared.rate_control.take_reports();
        }

        let now_ns = clock::monotonic_ns();
        if now_ns < self.next_request_ns {
            return Vec::new();
        }

        self.next_request_ns = now_ns + FEEDBACK_NS;
        let (arrived_ns, report) = lock(&self.shared.received).report();

        let rate_bps = self.shared.rate_control.rate_bps.load(Ordering::Relaxed);
        // The kernel's stamp of the newest datagram: bytes and time of a report then belong
        // together.
        let stamp_ns = arrived_ns.unwrap_or(now_ns);
        self.requests
            .send(stamp_ns, &Feedback { rate_bps, ..report });

        vec![(stamp_ns, report)]
    }

    /// Ends the flow and returns what this end counted.
    pub(super) fn finish(mut self) -> EndpointPhase {
        let ended_ns = self.stopped_ns.unwrap_or_else(clock::monotonic_ns);
        let elapsed_ns = ended_ns.saturating_sub(self.start_ns);
        let cpu_ns = self.cpu.cpu_ns();
        let datagrams = self.run.counts(StreamId(0)).packets;

        let socket_drops = if self.is_sender {
            None
        } else {
            overflow::count([self.fd.as_fd()].into_iter())
        };
        self.run.quit();

        let mut phase = EndpointPhase {
            elapsed_ns,
            cpu_ns,
            socket_drops,
            notes: self.notes,
            ..EndpointPhase::default()
        };
        if self.is_sender {
            phase.datagrams_sent = datagrams;
            let sent = std::mem::take(&mut *lock(&self.shared.sent));
            phase.lateness = distribution(&sent.lateness_ns);
        } else {
            let received = std::mem::take(&mut *lock(&self.shared.received));
            received.fill(&mut phase);
        }

        phase
    }
}

fn header_bytes(fd: &OwnedFd) -> u64 {
    let is_v6 = socket::peer_addr(fd).is_ok_and(|peer| socket::unmap(peer).is_ipv6());
    if is_v6 { HEADERS_V6 } else { HEADERS_V4 }
}

/// One datagram per call where their times are what is measured.
fn test_spec(spec: &PhaseSpec, header_bytes: u64) -> TestSpec {
    let block_len_bytes = spec
        .datagram_bytes
        .clamp(HEAD_LEN as u32, DATAGRAM_BYTES_MAX);
    let payload = |rate_bps: u64| {
        let bits = u128::from(rate_bps) * u128::from(block_len_bytes)
            / (u128::from(block_len_bytes) + u128::from(header_bytes));
        u64::try_from(bits).unwrap_or(u64::MAX).max(1)
    };

    let mut test = TestSpec {
        transport: Transport::Udp,
        end: EndCondition::Unlimited,
        block_len_bytes,
        ..TestSpec::default()
    };
    test.pacing.rate_bps = spec.rate_bps.map(payload);

    if matches!(spec.kind, PhaseKind::Pace | PhaseKind::Pps) {
        let bytes = test.block_len_bytes;
        test.udp.gso = Some(Segmentation {
            datagram_bytes: bytes,
            buffer_bytes: bytes,
        });
    }

    test
}

/// Distance of two datagrams in ns; `None` without a rate.
fn gap_ns(test: &TestSpec) -> Option<u64> {
    let schedule = test
        .pacing
        .rate_bps
        .map(|rate_bps| Schedule::new(0, rate_bps));
    schedule.map(|schedule| schedule.due_ns(u64::from(test.block_len_bytes)))
}

fn sender(test: TestSpec, id: FlowId, is_precise: bool, shared: &Shared) -> PumpBuilder {
    let sent = Arc::clone(&shared.sent);
    Box::new(move |inputs| {
        let block = vec![0; test.block_len_bytes as usize];
        let schedule = test
            .pacing
            .rate_bps
            .map(|rate_bps| Schedule::new(inputs.start_ns, rate_bps));
        let writer = HeadWriter { id, schedule, sent };
        let datagrams = Datagrams {
            block: &block,
            peer_coalesces: false,
            sequence: Box::new(writer),
        };
        let mut sender = DatagramSender::new(
            inputs.fd,
            inputs.counters,
            datagrams,
            &test,
            inputs.start_ns,
            None,
        )?;
        sender.ignores_unreachable = true;
        sender.spins |= is_precise;

        Ok(Box::new(sender))
    })
}

fn steered_sender(
    test: &TestSpec,
    id: FlowId,
    is_server: bool,
    header_bytes: u64,
    shared: &Shared,
) -> PumpBuilder {
    let rate_control = Arc::clone(&shared.rate_control);
    let len = test.block_len_bytes as usize;
    Box::new(move |inputs| {
        let PumpInputs {
            fd,
            counters,
            start_ns,
        } = inputs;
        Ok(Box::new(RateControlledSender::new(
            fd,
            counters,
            id,
            rate_control,
            is_server,
            (len, header_bytes),
            start_ns,
        )))
    })
}

fn receiver(
    test: &TestSpec,
    id: FlowId,
    reporter: Option<FeedbackSender>,
    shared: &Shared,
) -> PumpBuilder {
    let gap_ns = gap_ns(test);
    let received = Arc::clone(&shared.received);
    Box::new(move |inputs| {
        let reader = HeadReader {
            id,
            gap_ns,
            received,
            reporter,
        };
        Ok(Box::new(DatagramReceiver::new(
            inputs.fd,
            inputs.counters,
            Box::new(reader),
            None,
        )))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_of_ip_packets_is_that_of_datagrams_per_second() {
        // 1,000 datagrams of 32 bytes per second are 480 kbit/s of IPv4 packets, and 640 kbit/s of
        // IPv6 packets.
        for (header_bytes, rate_bps) in [(HEADERS_V4, 480_000), (HEADERS_V6, 640_000)] {
            let spec = PhaseSpec {
                kind: PhaseKind::Pace,
                direction: Some(PathDirection::Up),
                transport: linerate_model::path::PhaseTransport::Udp,
                streams_max: 0,
                probe_flows: 0,
                duration_max: std::time::Duration::from_secs(1),
                rate_bps: Some(rate_bps),
                connections_per_s: None,
                datagram_bytes: 32,
                bytes_max: None,
                congestion: None,
                dscp: 0,
                raw: false,
                hops: false,
                transaction: None,
            };
            assert_eq!(gap_ns(&test_spec(&spec, header_bytes)), Some(1_000_000));
        }
    }
}
