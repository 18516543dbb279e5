//! Examination against a server of ndt7: one connection in each direction, with a probe beside it.
//! What its protocol does not have is named, never estimated.

mod transfer;

use std::net::SocketAddr;

use linerate_engine::dialect::native::client::{Connection, NativeError, Target, connect, secure};
use linerate_engine::{ClientLayer, Interrupts, tcp_whole};
use linerate_model::interval::{TcpInterval, TcpLimits};
use linerate_model::outcome::Error;
use linerate_model::path::absent::{self, NDT7_ONLY};
use linerate_model::path::{
    Dialect, EndpointPhase, LoadSample, PathDirection, PathTarget, PhaseKind, PhaseResult,
    StreamTotals,
};
use linerate_model::{Event, EventSink, Flow, Stream, StreamId, StreamRole};
use linerate_sys::tcp_info::tcp_info;
use linerate_sys::{clock, socket, sockopt};
use linerate_trust::ClientConfig;
use linerate_web::wire::measurement::Measurement;

use super::examination::{Examination, Examined, Start};
use super::failure::failed;
use super::side_measures::{self, Ended, SidePeer};
use super::side_probe::SideProber;
use super::steering::{SharedObserver, ShownLoad};
use crate::plan::{LoadPlan, PlannedPhase, plan};
use crate::report::PhaseProgress;
use crate::spec::PathTest;
use transfer::{Transfer, Transferred};

/// A server of ndt7.
type Ndt7Peer = SidePeer<Secured>;

/// A connection, and TLS if there is one.
type Secured = (Connection, ClientLayer);

/// Examines a path to a server of ndt7.
pub(super) fn examine(start: Start<'_>) -> Result<Examined, Error> {
    let test = start.test;
    let interrupts = start.interrupts;
    let Target { host, port, .. } = &test.target;
    let (first, layer) =
        secured(test, &test.target, interrupts).map_err(|error| failed(&error, &test.target))?;
    let remote = first.remote;
    let mut target = PathTarget::new(host, *port, remote.ip(), Dialect::Ndt7);
    target.connect_ns = Some(clock::as_ns(first.connect_time));

    let planned = plan(&test.spec, Dialect::Ndt7);
    let connect_time = first.connect_time;
    let first = ((first, layer), connect_time);
    let mut examination = side_measures::begin(start, "ndt7", remote, target, &planned, first);

    let is_interrupted =
        examination.run(
            &planned.phases,
            |examination, planned, progress| match planned.load {
                Some(load) => examination.load(planned, load, progress),
                None => examination.idle(planned),
            },
        );
    examination.check_any(is_interrupted, NDT7_ONLY)?;
    let kernel = (!examination.peer.has_facts).then_some(absent::SERVER_RTT);
    let more = [absent::SERVER_FACTS, absent::DATAGRAMS];
    examination.lack_all(more.into_iter().chain(kernel), NDT7_ONLY);
    Ok(examination.end(is_interrupted))
}

impl Examination<'_, Ndt7Peer> {
    fn load(
        &mut self,
        planned: &PlannedPhase,
        load: LoadPlan,
        progress: PhaseProgress,
    ) -> Result<(), Ended> {
        // A test of ndt7 has one stream.
        let load = load.with_streams(1);
        let mut spec = planned.spec.clone();
        spec.streams_max = 1;
        let direction = match spec.kind {
            PhaseKind::Up => PathDirection::Up,
            _ => PathDirection::Down,
        };
        let (connection, mut layer) = match self.peer.first.take() {
            Some(first) => first,
            None => self.connect()?,
        };
        if let Some(name) = &spec.congestion {
            sockopt::set_congestion(&connection.fd, name)
                .map_err(|error| Ended::Failed(error.text()))?;
        }
        if spec.hops {
            self.start_hops(&spec);
        }

        let observer = SharedObserver::default();
        let mut begun = observer.clone();
        let local = socket::local_addr(&connection.fd).ok();
        let test = self.test;
        let remote = self.remote;
        let method = self.peer.side.method;
        let mut shown = ShownLoad::new(load, progress, self.observers.reborrow(), None);
        let authority = test.target.to_string();
        let transfer = Transfer::new((&connection, &mut layer), direction, self.interrupts);
        let (moved, ended) = transfer.run(&authority, &mut shown, &mut |shown| {
            // Without a thread or a socket the delay under load is absent.
            shown.prober = SideProber::start(method, test, remote, None).ok();
            observe(&mut begun, direction, local, remote);
        });

        let mut result = PhaseResult::of(spec);
        result.started_ns = moved.started_ns;
        result.load = Some(shown.outcome());
        result.udp = shown.probes();
        result.local = own(&connection, direction, &moved);
        result.local.hops = self.peer.side.hops.end();
        result.remote = server(direction, &moved);
        self.peer.has_facts |= kernel(&moved.reports).is_some();
        let remote = result.remote.clone();
        self.keep_load(result, ended, &observer, None, remote)
    }

    /// A connection to the address of the first one, so that all tests take one path.
    fn connect(&mut self) -> Result<Secured, Ended> {
        let target = Target {
            host: self.remote.ip().to_string(),
            port: self.remote.port(),
            ..self.test.target.clone()
        };
        let secured = secured(self.test, &target, self.interrupts)
            .map_err(|error| Ended::Failed(error.to_string()))?;
        self.peer.side.connected(secured.0.connect_time);
        Ok(secured)
    }
}

/// Connects to `target`, whose certificate is that of the server of the test.
fn secured(
    test: &PathTest,
    target: &Target,
    interrupts: &dyn Interrupts,
) -> Result<Secured, NativeError> {
    let connection = connect(target, interrupts)?;
    let layer = match &test.ndt7_trust {
        None => ClientLayer::plain(),
        Some(trust) => {
            let config = ClientConfig::with_certificates(&test.target.host, trust);
            secure(
                &connection,
                &config.map_err(NativeError::Identity)?,
                interrupts,
            )?
        }
    };
    Ok((connection, layer))
}

/// Begins to observe this host.
fn observe(
    observer: &mut SharedObserver,
    direction: PathDirection,
    local: Option<SocketAddr>,
    remote: SocketAddr,
) {
    let (role, flow) = match direction {
        PathDirection::Up => (StreamRole::Sender, Flow::Forward),
        PathDirection::Down => (StreamRole::Receiver, Flow::Reverse),
    };
    let stream = local.map(|local| Stream::new(StreamId(0), role, flow, local, remote));
    let started = Event::TestStarted {
        at_monotonic_ns: Some(clock::monotonic_ns()),
    };
    let opened = stream.map(Event::StreamOpened);
    for event in opened.into_iter().chain([started]) {
        // An observer keeps events in memory.
        let _ = observer.event(&event);
    }
}

/// Counts of this end.
fn own(connection: &Connection, direction: PathDirection, moved: &Transferred) -> EndpointPhase {
    let last = moved.samples.last().copied().unwrap_or_default();
    let is_up = direction == PathDirection::Up;
    let tcp = tcp_info(&connection.fd).ok().filter(|_| is_up);
    let stream = StreamTotals {
        direction: Some(direction),
        // A test has one direction.
        bytes: last.up_bytes.max(last.down_bytes),
        local: socket::local_addr(&connection.fd).ok(),
        remote: Some(connection.remote),
        tcp: tcp.as_ref().map(tcp_whole),
        ..StreamTotals::default()
    };
    EndpointPhase {
        elapsed_ns: last.at_ns,
        load: moved.samples.clone(),
        streams: vec![stream],
        ..EndpointPhase::default()
    }
}

/// Counts of the server: of what it sends the state of its kernel, of what it receives the bytes
/// over time. `None` where it reported nothing.
fn server(direction: PathDirection, moved: &Transferred) -> Option<EndpointPhase> {
    let last = moved.samples.last()?;
    let mut end = EndpointPhase {
        elapsed_ns: last.at_ns,
        ..EndpointPhase::default()
    };
    match direction {
        PathDirection::Up => {
            let sample = |report: &Measurement| {
                let (at_us, up_bytes) = report.received()?;
                Some(LoadSample {
                    at_ns: at_us.checked_mul(1_000)?,
                    up_bytes,
                    down_bytes: 0,
                    streams: 1,
                })
            };
            end.load = moved.reports.iter().filter_map(sample).collect();
            // Counts that decrease are no measurement.
            end.load.dedup_by(|next, before| {
                next.at_ns <= before.at_ns || next.up_bytes < before.up_bytes
            });
        }
        PathDirection::Down => end.streams.push(StreamTotals {
            direction: Some(direction),
            bytes: last.down_bytes,
            tcp: Some(kernel(&moved.reports)?),
            ..StreamTotals::default()
        }),
    }
    (!end.load.is_empty() || !end.streams.is_empty()).then_some(end)
}

/// The last state of the server's kernel.
fn kernel(reports: &[Measurement]) -> Option<TcpInterval> {
    let info = reports.iter().rev().find_map(|report| report.tcp_info)?;
    let limits = || {
        Some(TcpLimits {
            busy_us: info.busy_time?,
            rwnd_limited_us: info.rwnd_limited?,
            sndbuf_limited_us: info.snd_buf_limited?,
        })
    };
    Some(TcpInterval {
        retransmits: info.total_retrans?.into(),
        rtt_us: info.rtt.unwrap_or(0),
        rttvar_us: info.rtt_var.unwrap_or(0),
        min_rtt_us: info.min_rtt,
        mss_bytes: info.snd_mss.unwrap_or(0),
        limits: limits(),
        ..TcpInterval::default()
    })
}
