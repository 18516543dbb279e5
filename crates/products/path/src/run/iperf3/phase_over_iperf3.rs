//! One test of iperf3 as a phase.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use linerate_doctor::run::diagnosed_client::UDP_ANSWER_TIMEOUT;
use linerate_engine::Interrupts;
use linerate_engine::dialect::iperf3::client::{self, ClientResult, Handshake, RunOptions};
use linerate_engine::dialect::native::client::Established;
use linerate_iperf3::wire::Cookie;
use linerate_model::path::{
    LoadControl, LoadDecision, LoadSample, PathDirection, PhaseKind, PhaseResult, PhaseSpec,
    PhaseTransport, ProbeSample,
};
use linerate_model::sink::Tee;
use linerate_model::spec::{ClientSpec, LocalOptions};
use linerate_model::{Direction, EndCondition, FailureKind, TestSpec, Transport};
use linerate_sys::clock;

use super::result::{self, Collected};
use crate::plan::{LoadPlan, headers_bytes};
use crate::report::PhaseProgress;
use crate::run::examination::Examination;
use crate::run::side_measures::{Ended, SidePeer, sample, wait};
use crate::run::side_probe::{Method, SideProber};
use crate::run::steering::{SharedObserver, ShownLoad};
use crate::spec::PathTest;

/// A server of iperf3.
pub(super) type Iperf3Peer = SidePeer<Established>;

/// Result of a test.
pub(super) struct Finished {
    pub result: PhaseResult,
    pub handshakes: Vec<ProbeSample>,
    pub facts: Option<String>,
    pub ended: Result<(), Ended>,
}

/// Period of interval reports.
const INTERVAL: Duration = Duration::from_millis(100);
/// Longest time to set up a control connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// A stock server opens its port again after a test. For this time a test that was not accepted is
/// tried again.
const REOPEN: Duration = Duration::from_secs(3);
const REOPEN_PAUSE: Duration = Duration::from_millis(200);
/// The steering ends a load; the test would end so much later by itself.
const RESERVE: Duration = Duration::from_secs(1);
/// Samples of a load that are kept: ten minutes.
const SAMPLES_MAX: usize = 6_000;

impl Examination<'_, Iperf3Peer> {
    /// A load with the probe beside it.
    pub(super) fn run_load(
        &mut self,
        spec: &PhaseSpec,
        plan: LoadPlan,
        progress: PhaseProgress,
        mut observer: SharedObserver,
    ) -> Finished {
        let client = self.client(self.load_test(spec, plan));
        if spec.hops {
            self.start_hops(spec);
        }
        let mut load = Load {
            shown: ShownLoad::new(plan, progress, self.observers.reborrow(), None),
            test: self.test,
            remote: self.remote,
            method: self.peer.side.method,
            until: plan.duration_max,
            has_started: false,
            samples: Vec::new(),
        };

        let mut collected = Collected::default();
        let ran = repeated(
            self.peer.first.take(),
            self.test.wait_max,
            self.interrupts,
            &mut collected,
            &mut |established, collected| {
                let options = RunOptions {
                    established,
                    steering: Some(&mut load),
                };
                let mut sink = Tee(&mut observer, collected);
                client::run_with(options, &client, &mut sink, self.interrupts)
            },
        );

        let mut result = PhaseResult {
            started_ns: collected.started_ns,
            load: Some(load.shown.outcome()),
            udp: load.shown.probes(),
            ..PhaseResult::of(spec.clone())
        };
        result::streams(
            &mut result,
            &ran,
            &collected,
            std::mem::take(&mut load.samples),
        );

        result.local.hops = self.peer.side.hops.end();

        finished(result, ran)
    }

    /// Datagrams of one direction.
    pub(super) fn run_datagrams(&mut self, spec: &PhaseSpec) -> Finished {
        let client = self.client(self.datagram_test(spec));
        let mut collected = Collected::default();
        let ran = repeated(
            self.peer.first.take(),
            self.test.wait_max,
            self.interrupts,
            &mut collected,
            &mut |established, collected| {
                let options = RunOptions {
                    established,
                    steering: None,
                };
                client::run_with(options, &client, collected, self.interrupts)
            },
        );

        let mut result = PhaseResult::of(spec.clone());
        result.started_ns = collected.started_ns;
        result::datagrams(&mut result, &ran);
        finished(result, ran)
    }

    fn client(&self, test: TestSpec) -> ClientSpec {
        let target = &self.test.target;
        let local = LocalOptions {
            port: target.port,
            bind: target.bind.clone(),
            interval: Some(INTERVAL),
            // Where UDP is blocked no answer comes, and the other phases still have to run.
            udp_answer_timeout: Some(UDP_ANSWER_TIMEOUT),
            ..LocalOptions::default()
        };

        // The address that was reached, so that all tests take one path.
        let mut spec = ClientSpec::new(self.remote.ip().to_string(), local, test);
        spec.connect_timeout = Some(CONNECT_TIMEOUT);
        spec
    }

    fn load_test(&self, spec: &PhaseSpec, plan: LoadPlan) -> TestSpec {
        let mut test = TestSpec {
            mptcp: spec.transport == PhaseTransport::Mptcp,
            direction: match spec.kind {
                PhaseKind::Down => Direction::Reverse,
                PhaseKind::Up => Direction::Forward,
                _ => Direction::Bidirectional,
            },
            streams: plan.streams_max,
            end: EndCondition::Duration(whole_seconds(plan.duration_max + RESERVE)),
            ..TestSpec::default()
        };
        // iperf3(1): a rate limits each stream by itself.
        test.pacing.rate_bps = spec
            .rate_bps
            // A rate of 0 is no limit (iperf3(1), -b).
            .map(|bps| (bps / u64::from(plan.streams_max.max(1))).max(1));
        test.socket.congestion = spec.congestion.clone();
        test.socket.tos = spec.dscp << 2;
        test.want_peer_facts = self.test.wants_facts;

        test
    }

    fn datagram_test(&self, spec: &PhaseSpec) -> TestSpec {
        let packet_bytes =
            u64::from(spec.datagram_bytes + headers_bytes(self.remote.is_ipv6())).max(1);
        // The rate of a plan is that of IP packets; -b counts the payload of UDP.
        let payload_bps =
            |bps: u64| u128::from(bps) * u128::from(spec.datagram_bytes) / u128::from(packet_bytes);
        let mut test = TestSpec {
            transport: Transport::Udp,
            direction: if spec.direction == Some(PathDirection::Down) {
                Direction::Reverse
            } else {
                Direction::Forward
            },
            streams: 1,
            end: EndCondition::Duration(whole_seconds(spec.duration_max)),
            block_len_bytes: spec.datagram_bytes,
            block_len_explicit: true,
            ..TestSpec::default()
        };
        test.pacing.rate_bps = spec
            .rate_bps
            .map(|bps| u64::try_from(payload_bps(bps)).unwrap_or(u64::MAX).max(1));
        test.socket.tos = spec.dscp << 2;

        test
    }
}

/// Runs a test, the first time on the connection that is `established`. One that the server did not
/// accept, because it still ends the one before or runs another, is repeated.
fn repeated(
    established: Option<Established>,
    wait_max: Duration,
    interrupts: &dyn Interrupts,
    collected: &mut Collected,
    run: &mut dyn FnMut(Option<client::Established>, &mut Collected) -> ClientResult,
) -> ClientResult {
    let end = Instant::now() + REOPEN.max(wait_max);
    let mut first = established.map(|first| client::Established {
        fd: first.fd,
        cookie: Cookie::parse(&first.cookie),
        received: first.received,
    });

    loop {
        // The first attempt uses the connection; those after it make their own.
        let ran = run(first.take(), collected);
        let kind = ran.outcome.as_ref().err().map(|failure| &failure.kind);
        let is_final = kind.is_none_or(|kind| *kind == FailureKind::Interrupted);

        tracing::debug!(outcome = ?ran.outcome, "test ended");
        // The failure of a test that was accepted is a result: a second test would hide it.
        if is_final || collected.is_accepted || Instant::now() >= end {
            return ran;
        }
        if wait(REOPEN_PAUSE, interrupts).is_err() {
            return ran;
        }
    }
}

/// The parameters of iperf3 have whole seconds.
fn whole_seconds(duration: Duration) -> Duration {
    Duration::from_secs(duration.as_secs() + u64::from(duration.subsec_nanos() > 0))
        .max(Duration::from_secs(1))
}

fn finished(result: PhaseResult, ran: ClientResult) -> Finished {
    let ended = ran.outcome.map_err(|failure| match failure.kind {
        FailureKind::Interrupted => Ended::Interrupted,
        _ => Ended::Failed(failure.message),
    });
    let handshake = |one: &Handshake| sample(one.sent_ns, one.established_ns);
    Finished {
        result,
        handshakes: ran.handshakes.iter().map(handshake).collect(),
        facts: ran.peer_facts,
        ended,
    }
}

/// Steers a load, keeps its samples and runs the probe beside it.
struct Load<'a> {
    shown: ShownLoad<'a>,
    test: &'a PathTest,
    remote: SocketAddr,
    method: Method,
    until: Duration,
    has_started: bool,
    samples: Vec<LoadSample>,
}

impl LoadControl for Load<'_> {
    fn first_streams(&self) -> u32 {
        self.shown.first_streams()
    }

    fn sample(&mut self, sample: &LoadSample, _: Option<i64>) -> LoadDecision {
        if !self.has_started {
            // Not before: a connection to a server without a running test would be taken for a
            // client.
            self.has_started = true;
            let end_ns =
                clock::monotonic_ns() + clock::as_ns(self.until).saturating_sub(sample.at_ns);

            // Without a thread or a socket the delay under load is absent.
            self.shown.prober =
                SideProber::start(self.method, self.test, self.remote, Some(end_ns)).ok();
        }

        if self.samples.len() < SAMPLES_MAX {
            self.samples.push(*sample);
        }

        self.shown.sample(sample, None)
    }
}
