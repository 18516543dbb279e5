//! The phase that a session runs, at the server's end.

use std::net::SocketAddr;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use linerate_model::event::Endpoint;
use linerate_model::path::{
    EndpointPhase, HostDropsReader, PathDirection, PhaseKind, PhaseSpec, PhaseTransport,
};
use linerate_native::wire::datagram::FlowId;
use linerate_native::wire::stream_head::{FLAG_DOWN, StreamAnswer, StreamHead, StreamKind};
use linerate_sys::{clock, socket, stream_io};
use linerate_trust::{ServerConfig, ServerSession};

use super::responder::ProbeCounts;
use crate::data::quota::Quota;
use crate::dialect::native::datagrams::DatagramRun;
use crate::dialect::native::drops::DropMeter;
use crate::dialect::native::load::{LoadRun, LoadStream};
use crate::error::EngineError;
use crate::layer::Layer;
use crate::measure::cpu_usage::CpuMeter;
use crate::reporter::Reporter;
use crate::server::ByteTotals;
use crate::tls_stream::TlsStream;
use crate::wait::time_until;

/// A phase from its opening to its result.
pub(super) struct ActivePhase {
    pub spec: PhaseSpec,
    quota: Quota,
    load: Option<LoadRun>,
    datagrams: Option<DatagramRun>,
    /// When its data began to flow, and the CPU time since then.
    started: Option<(Instant, CpuMeter)>,
    probes_before: ProbeCounts,
    read_drops: Option<HostDropsReader>,
    peer: SocketAddr,
    drops: Option<DropMeter>,
}

/// A phase ends so much later than agreed, if the client does not end it.
const GRACE: Duration = Duration::from_secs(2);

impl ActivePhase {
    pub(super) fn open(
        spec: PhaseSpec,
        quota: Quota,
        probes_before: ProbeCounts,
        peer: SocketAddr,
        reporter: Reporter<'static>,
        read_drops: Option<HostDropsReader>,
    ) -> Result<Self, EngineError> {
        let has_load = !spec.kind.load_directions().is_empty();
        let load = if has_load {
            Some(LoadRun::new(
                &spec,
                quota.clone(),
                Endpoint::Server,
                peer,
                reporter,
            )?)
        } else {
            None
        };

        let counts_drops = spec.direction.is_some() || spec.kind == PhaseKind::Cps;
        let read_drops = read_drops.filter(|_| counts_drops);
        Ok(Self {
            spec,
            quota,
            load,
            datagrams: None,
            started: None,
            probes_before,
            read_drops,
            peer,
            drops: None,
        })
    }

    /// Descriptor that becomes readable when [`Self::advance`] has something to do.
    pub(super) fn notice_fd(&self) -> Option<BorrowedFd<'_>> {
        let load = self.load.as_ref().map(LoadRun::notice_fd);
        load.or_else(|| self.datagrams.as_ref().map(DatagramRun::notice_fd))
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        let load = self
            .load
            .as_ref()
            .filter(|load| load.start_ns.is_some())
            .map(|load| Instant::now() + time_until(load.deadline_ns()));
        let end = self
            .started
            .map(|(started, _)| started + self.spec.duration_max + GRACE);
        load.into_iter().chain(end).min()
    }

    /// Takes a stream of the load. False for one that does not belong to it.
    pub(super) fn add_stream(
        &mut self,
        fd: OwnedFd,
        head: &StreamHead,
        tls: &ServerConfig,
    ) -> bool {
        let direction = if head.flags & FLAG_DOWN != 0 {
            PathDirection::Down
        } else {
            PathDirection::Up
        };
        let fits = self.spec.kind.load_directions().contains(&direction);
        let Some(load) = self
            .load
            .as_mut()
            .filter(|_| fits && head.kind == StreamKind::Load)
        else {
            return false;
        };

        let answer = StreamAnswer {
            status: 0,
            stream: head.stream,
            server_ns: clock::monotonic_ns(),
        }
        .encode();
        // A new connection has room for a few bytes.
        if stream_io::send(&fd, &answer).is_err() {
            return false;
        }

        let layer = match self.spec.transport {
            PhaseTransport::Tls => Layer::Tls(Box::new(TlsStream::server(ServerSession::new(tls)))),
            _ => Layer::plain(),
        };
        load.add(LoadStream {
            fd,
            number: head.stream,
            direction,
            layer,
            echo: None,
        })
        .is_ok()
    }

    /// Takes the flow of its datagrams.
    pub(super) fn add_flow(&mut self, fd: OwnedFd, id: FlowId) -> Result<(), EngineError> {
        let is_sender = self.spec.direction == Some(PathDirection::Down);
        // The control connection may take another path.
        self.peer = socket::peer_addr(&fd).unwrap_or(self.peer);
        let mut run = DatagramRun::new(&self.spec, id, fd, is_sender, self.quota.clone())?;

        if self.started.is_some() {
            run.start()?;
        }

        self.datagrams = Some(run);
        Ok(())
    }

    /// The data begins to flow. Returns the time, monotonic ns.
    pub(super) fn start(&mut self) -> Result<u64, EngineError> {
        self.drops = self
            .read_drops
            .as_ref()
            .map(|read| DropMeter::start(read, self.peer.ip()));
        self.started = Some((Instant::now(), CpuMeter::start(clock::monotonic_ns())));

        if let Some(load) = &mut self.load {
            load.start()?;
        }

        if let Some(datagrams) = &mut self.datagrams {
            datagrams.start()?;
        }

        Ok(clock::monotonic_ns())
    }

    /// Handles notices, and takes a sample when one is due. Clients receive samples with the
    /// result: on the way of the load they would take from it, and hold up the result behind it.
    pub(super) fn advance(&mut self) {
        if let Some(datagrams) = &mut self.datagrams {
            datagrams.advance();
        }

        if let Some(load) = &mut self.load {
            load.advance();
        }
    }

    /// Streams carry a load.
    pub(super) fn has_streams(&self) -> bool {
        self.load.as_ref().is_some_and(LoadRun::has_streams)
    }

    /// The client has not ended it in time.
    pub(super) fn is_overdue(&self, now: Instant) -> bool {
        self.started
            .is_some_and(|(started, _)| now >= started + self.spec.duration_max + GRACE)
    }

    pub(super) fn totals(&self) -> ByteTotals {
        let load = self.load.as_ref().map(LoadRun::totals);
        let (received_bytes, sent_bytes) = load
            .or_else(|| self.datagrams.as_ref().map(DatagramRun::totals))
            .unwrap_or_default();
        ByteTotals {
            received_bytes,
            sent_bytes,
        }
    }

    /// Senders stop at once; the rest ends with the result.
    pub(super) fn stop_senders(&mut self) {
        if let Some(load) = &mut self.load {
            load.stop_senders();
        }

        if let Some(datagrams) = &mut self.datagrams {
            datagrams.stop_sender();
        }
    }

    /// Ends the phase; returns what this end counted, and facts of this host if they are collected.
    pub(super) fn finish(self, probes: ProbeCounts) -> (EndpointPhase, Option<String>) {
        let (mut result, facts) = match (self.load, self.datagrams) {
            (Some(load), _) => load.finish(),
            (None, Some(datagrams)) => (datagrams.finish(), None),
            (None, None) => {
                let used = |(started, cpu): (Instant, CpuMeter)| {
                    (clock::as_ns(started.elapsed()), cpu.cpu_ns())
                };
                let (elapsed_ns, cpu_ns) = self.started.map(used).unwrap_or_default();
                (
                    EndpointPhase {
                        elapsed_ns,
                        cpu_ns,
                        ..EndpointPhase::default()
                    },
                    None,
                )
            }
        };
        if let Some(drops) = self.drops {
            drops.fill(&mut result);
        }

        if self.spec.datagram_bytes == 0 {
            result.datagrams_received = probes.probes.saturating_sub(self.probes_before.probes);
        }

        (result, facts)
    }
}
