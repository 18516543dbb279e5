//! Runs tests for an experiment: one run is one test of the engine in this process.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use linerate_doctor::observation::EndpointObservation;
use linerate_engine::dialect::iperf3::client;
use linerate_iperf3::ErrorCode;
use linerate_lab::{Observation, Progress, RunError, Runner, Setting};
use linerate_model::{Event, EventSink, Failure, FailureKind, SinkError, Summary};
use linerate_report::sweep::{Objective, Run, RunFigures, clock};
use linerate_sys::cpu::{self, Affinity};
use linerate_sys::poll::{self, Interest};
use linerate_sys::signal::Signals;

use super::space::Space;
use crate::cli::sweep::SweepSpec;
use crate::run::teller::Teller;

/// What a run takes beside its data: connecting, parameters, results, farewells.
const OVERHEAD: Duration = Duration::from_millis(500);
/// Longest wait for a server that is busy with somebody else.
const BUSY_PATIENCE: Duration = Duration::from_secs(60);
/// Time between two questions whether it still is.
const BUSY_RHYTHM: Duration = Duration::from_millis(500);
/// Longest wait for a server between two tests: the original closes its listener after each and opens another one.
const REOPENING_PATIENCE: Duration = Duration::from_secs(3);
/// Time between two attempts to reach it.
const REOPENING_RHYTHM: Duration = Duration::from_millis(50);
const GIB: f64 = 1_073_741_824.0;

/// How long a run takes, all told.
pub(super) fn run_time(spec: &SweepSpec) -> Duration {
    Duration::from_secs(u64::from(spec.time_s) + u64::from(spec.omit_s)) + OVERHEAD
}

/// The path under test.
pub(super) struct Network<'a> {
    spec: &'a SweepSpec,
    space: &'a Space<'a>,
    signals: &'a Signals,
    teller: Teller,
    started: Instant,
    /// Where this process may run when no run pins it.
    affinity: Option<Affinity>,
    log: Log,
}

/// What the runs left behind beside their values.
#[derive(Debug, Default)]
pub(super) struct Log {
    pub(super) runs: Vec<Run>,
    pub(super) has_result: bool,
    pub(super) is_interrupted: bool,
    /// Some run knew the CPU time of the client alone.
    pub(super) is_client_cpu_only: bool,
    pub(super) client_cores: Option<u32>,
    pub(super) server_cores: Option<u32>,
    pub(super) is_same_host: bool,
    pub(super) elapsed: Duration,
}

impl<'a> Network<'a> {
    pub(super) fn new(spec: &'a SweepSpec, space: &'a Space<'a>, signals: &'a Signals, teller: Teller) -> Self {
        let affinity = cpu::affinity().ok();
        let cores = affinity
            .as_ref()
            .and_then(|affinity| u32::try_from(affinity.count()).ok());
        Self {
            spec,
            space,
            signals,
            teller,
            started: Instant::now(),
            affinity,
            log: Log {
                client_cores: cores,
                ..Log::default()
            },
        }
    }

    pub(super) fn finish(mut self) -> Log {
        self.teller.finish();
        self.log.elapsed = self.started.elapsed();
        self.log
    }

    /// One test, after waiting for a server that is busy, or between two tests.
    fn test(&mut self, setting: &Setting) -> Result<(f64, RunFigures), RunError> {
        let busy_patience = BUSY_PATIENCE.min(self.spec.budget.saturating_sub(self.started.elapsed()));
        let asked = Instant::now();
        loop {
            let (outcome, seen) = self.once(setting);
            let Err(failure) = outcome else {
                return self.observed(seen);
            };
            if is_busy(&failure) && asked.elapsed() < busy_patience {
                self.teller.pass(&format!(
                    "the server is busy with another test; asked for {}",
                    clock(asked.elapsed().as_secs_f64())
                ));
                self.pause(BUSY_RHYTHM)?;
            } else if self.log.has_result && is_between(&failure, &seen) && asked.elapsed() < REOPENING_PATIENCE {
                self.pause(REOPENING_RHYTHM)?;
            } else {
                return Err(self.judged(&failure));
            }
        }
    }

    fn once(&mut self, setting: &Setting) -> (Result<(), Failure>, Seen) {
        let mut client = self.space.choice(setting).client_spec(self.spec);
        // Once is enough, and datagrams travel differently when the server counts for us.
        client.test.want_peer_facts = self.log.runs.is_empty() && !self.spec.is_udp;
        let mut seen = Seen::default();
        let outcome = client::run(&client, &mut seen, self.signals);
        if let Some(affinity) = self.affinity.as_ref().filter(|_| client.local.cpu.is_some()) {
            // What could be narrowed can be widened again.
            let _ = affinity.restore_process();
        }
        (outcome, seen)
    }

    /// Waits a moment; ends it when the user wants no more.
    fn pause(&mut self, time: Duration) -> Result<(), RunError> {
        let is_signalled = poll::wait_fd(self.signals, Interest::READ, Some(time)).unwrap_or(false);
        if is_signalled && matches!(self.signals.take(), Ok(Some(_))) {
            return Err(self.interrupted());
        }
        Ok(())
    }

    fn judged(&mut self, failure: &Failure) -> RunError {
        let reason = failure.to_string();
        let is_hopeless = [ErrorCode::Connect, ErrorCode::AuthTest, ErrorCode::AccessDenied]
            .iter()
            .any(|code| failure.code == Some(code.number()));
        match failure.kind {
            FailureKind::Interrupted => self.interrupted(),
            _ if is_hopeless && !self.log.has_result => RunError::Over(reason),
            _ => RunError::Failed(reason),
        }
    }

    fn interrupted(&mut self) -> RunError {
        self.log.is_interrupted = true;
        RunError::Over("interrupted".to_owned())
    }

    fn observed(&mut self, seen: Seen) -> Result<(f64, RunFigures), RunError> {
        if let Some((local, remote)) = seen.addresses {
            self.log.is_same_host = local.ip() == remote.ip();
        }
        if let Some(cores) = seen.facts.as_deref().and_then(cores) {
            self.log.server_cores = Some(cores);
        }
        let failed = |text: &str| RunError::Failed(text.to_owned());
        let summary = seen.summary.ok_or_else(|| failed("the test had no result"))?;
        let figures = figures(&summary).ok_or_else(|| failed("the server did not say what it received"))?;
        let value = match self.spec.objective {
            Objective::Throughput => figures.received_bps,
            Objective::Latency => figures
                .rtt_us
                .ok_or_else(|| failed("the kernel does not tell the round-trip time"))?,
            Objective::CpuPerByte => {
                let client = figures
                    .cpu_client_percent
                    .ok_or_else(|| failed("the system does not tell CPU times"))?;
                self.log.is_client_cpu_only |= figures.cpu_server_percent.is_none();
                cpu_s_per_gib(client + figures.cpu_server_percent.unwrap_or(0.0), figures.received_bps)
                    .ok_or_else(|| failed("nothing was received"))?
            }
        };
        self.log.has_result = true;
        Ok((value, figures))
    }
}

impl Runner for Network<'_> {
    type Figures = RunFigures;

    fn run(&mut self, setting: &Setting) -> Result<Observation<RunFigures>, RunError> {
        let started_s = self.started.elapsed().as_secs_f64();
        let outcome = self.test(setting);
        let is_warm_up = self.log.runs.is_empty();
        self.log.runs.push(Run {
            levels: self.space.labels(setting),
            started_s,
            is_warm_up,
            outcome: match &outcome {
                Ok(result) => Ok(*result),
                Err(RunError::Failed(text) | RunError::Over(text)) => Err(text.clone()),
            },
        });
        outcome.map(|(value, figures)| Observation { value, figures })
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
    }

    fn progress(&mut self, progress: &Progress) {
        self.teller.pass(&format!(
            "[{}/{}] {}; {} left",
            progress.runs_done + 1,
            progress.runs_planned,
            self.space.words(&progress.setting),
            clock(progress.left.as_secs_f64())
        ));
    }
}

fn is_busy(failure: &Failure) -> bool {
    failure.code == Some(ErrorCode::AccessDenied.number())
}

/// Whether the server was not there, or went away before the test began.
fn is_between(failure: &Failure, seen: &Seen) -> bool {
    let gone = [
        ErrorCode::Connect,
        ErrorCode::SendCookie,
        ErrorCode::SendMessage,
        ErrorCode::RecvMessage,
        ErrorCode::SendParams,
        ErrorCode::CtrlClose,
        ErrorCode::CtrlRead,
        ErrorCode::CtrlWrite,
    ];
    !seen.has_started && gone.iter().any(|code| failure.code == Some(code.number()))
}

/// Keeps what a run's events say.
#[derive(Debug, Default)]
struct Seen {
    summary: Option<Box<Summary>>,
    addresses: Option<(SocketAddr, SocketAddr)>,
    facts: Option<String>,
    has_started: bool,
}

impl EventSink for Seen {
    fn event(&mut self, event: &Event) -> Result<(), SinkError> {
        match event {
            Event::ControlConnected(control) => self.addresses = Some((control.local, control.remote)),
            Event::Summary(summary) => self.summary = Some(summary.clone()),
            Event::TestStarted => self.has_started = true,
            Event::PeerFacts(text) => self.facts = Some(text.clone()),
            _ => {}
        }
        Ok(())
    }
}

/// How many cores the server has, in its own account.
fn cores(facts: &str) -> Option<u32> {
    let observation = EndpointObservation::from_peer(facts).ok()?;
    let count = observation.snapshot.number("cpu.count")?;
    (1.0..=65_536.0).contains(&count).then_some(count as u32)
}

/// The figures of a run; `None` when nobody said what arrived.
fn figures(summary: &Summary) -> Option<RunFigures> {
    let received: Option<f64> = summary
        .streams
        .iter()
        .map(|stream| Some(stream.receiver?.bits_per_second()))
        .sum();
    let retransmits: Option<u64> = summary.streams.iter().map(|stream| stream.tcp?.retransmits).sum();
    let rtts: Vec<f64> = summary
        .streams
        .iter()
        .filter_map(|stream| stream.tcp?.mean_rtt_us.filter(|rtt| *rtt > 0).map(f64::from))
        .collect();
    Some(RunFigures {
        received_bps: received.filter(|_| !summary.streams.is_empty())?,
        cpu_client_percent: summary.cpu_local.map(|cpu| cpu.total_percent),
        cpu_server_percent: summary.cpu_remote.map(|cpu| cpu.total_percent),
        retransmits: retransmits.map(|count| count as f64),
        rtt_us: (!rtts.is_empty()).then(|| rtts.iter().sum::<f64>() / rtts.len() as f64),
        lost_percent: lost_percent(summary),
    })
}

/// Datagrams lost in the measured part; `None` for TCP.
fn lost_percent(summary: &Summary) -> Option<f64> {
    let counted: Option<Vec<(u64, u64)>> = summary
        .streams
        .iter()
        .map(|stream| {
            let udp = stream.receiver?.udp?;
            let lost = udp.lost.saturating_sub(udp.omitted_lost.unwrap_or(0));
            Some((lost, udp.packets.saturating_sub(udp.omitted_packets.unwrap_or(0))))
        })
        .collect();
    let counted = counted?;
    let lost: u64 = counted.iter().map(|(lost, _)| lost).sum();
    let packets: u64 = counted.iter().map(|(_, packets)| packets).sum();
    (packets > 0).then(|| lost as f64 / packets as f64 * 100.0)
}

fn cpu_s_per_gib(cpu_percent: f64, received_bps: f64) -> Option<f64> {
    (received_bps > 0.0).then(|| cpu_percent / 100.0 / (received_bps / 8.0 / GIB))
}

#[cfg(test)]
mod tests {
    use linerate_model::summary::{TcpSummary, UdpTotals};
    use linerate_model::{CpuUsage, EndpointTotals, Flow, StreamId, StreamRole, StreamSummary};

    use super::*;

    fn stream(receiver: Option<EndpointTotals>, tcp: Option<TcpSummary>) -> StreamSummary {
        StreamSummary {
            id: StreamId(0),
            role: StreamRole::Sender,
            flow: Flow::Forward,
            sender: None,
            receiver,
            tcp,
            file: None,
            local_metrics: None,
            peer_metrics: None,
        }
    }

    fn second(bytes: u64, udp: Option<UdpTotals>) -> Option<EndpointTotals> {
        Some(EndpointTotals {
            bytes,
            duration_ns: 1_000_000_000,
            udp,
        })
    }

    #[test]
    fn figures_are_of_what_arrived_and_absent_ones_stay_absent() {
        let tcp = |rtt_us| {
            Some(TcpSummary {
                retransmits: Some(3),
                mean_rtt_us: Some(rtt_us),
                ..TcpSummary::default()
            })
        };
        let mut summary = Summary {
            streams: vec![
                stream(second(1000, None), tcp(100)),
                stream(second(500, None), tcp(300)),
            ],
            cpu_local: Some(CpuUsage {
                total_percent: 50.0,
                ..CpuUsage::default()
            }),
            ..Summary::default()
        };
        let seen = figures(&summary).expect("both arrived");
        assert_eq!(seen.received_bps.to_bits(), 12_000_f64.to_bits());
        assert_eq!((seen.retransmits, seen.rtt_us), (Some(6.0), Some(200.0)));
        assert_eq!((seen.cpu_client_percent, seen.cpu_server_percent), (Some(50.0), None));
        assert_eq!(seen.lost_percent, None);
        summary.streams[1].tcp = None;
        assert_eq!(figures(&summary).expect("both arrived").retransmits, None);
        summary.streams[1].receiver = None;
        assert_eq!(figures(&summary), None);
        assert_eq!(figures(&Summary::default()), None);
    }

    #[test]
    fn loss_is_that_of_the_measured_part() {
        let udp = |packets, lost| {
            Some(UdpTotals {
                packets,
                lost,
                omitted_packets: Some(100),
                omitted_lost: Some(10),
                ..UdpTotals::default()
            })
        };
        let summary = Summary {
            streams: vec![
                stream(second(1, udp(300, 20)), None),
                stream(second(1, udp(300, 10)), None),
            ],
            ..Summary::default()
        };
        assert_eq!(lost_percent(&summary), Some(2.5));
    }

    #[test]
    fn cpu_time_is_per_gib() {
        // 1 GiB/s with one and a half cores.
        assert_eq!(cpu_s_per_gib(150.0, GIB * 8.0), Some(1.5));
        assert_eq!(cpu_s_per_gib(150.0, 0.0), None);
    }
}
