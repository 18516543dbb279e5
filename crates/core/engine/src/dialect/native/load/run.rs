//! The streams of one load at one end, read ten times a second.

use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use linerate_model::event::Endpoint;
use linerate_model::path::{
    EndpointPhase, LoadSample, PathDirection, PhaseKind, PhaseSpec, PhaseTransport, StreamTotals,
    SubflowRow,
};
use linerate_model::spec::{IoStrategy, LocalOptions};
use linerate_model::{
    Direction, EndCondition, Event, Flow, StreamId, StreamRole, TestSpec, Transport,
};
use linerate_sys::tcp_info::tcp_info;
use linerate_sys::{OsError, clock, socket, sockopt};

use super::pump::LoadPump;
use super::{EchoSchedule, subflows};
use crate::data::quota::Quota;
use crate::data::run::{PumpBuilder, RunEvent, TestRun};
use crate::data::socket::{self as data_socket, limit_idle_time};
use crate::dialect::native::run_settings;
use crate::error::{EngineError, Operation};
use crate::layer::Layer;
use crate::measure::cpu_usage::CpuMeter;
use crate::measure::sampler::tcp_since_connect;
use crate::measure::stream_stats::StreamStats;
use crate::reporter::{Reporter, test_header};

/// A load that runs, or is about to.
pub(crate) struct LoadRun {
    run: TestRun,
    reporter: Reporter<'static>,
    is_server: bool,
    spec: PhaseSpec,
    streams: Vec<OpenStream>,
    pub start_ns: Option<u64>,
    next_sample_ns: u64,
    samples: Vec<LoadSample>,
    notes: Vec<String>,
    /// When the senders stopped: an end that has sent its result closes its sockets, and with them
    /// the subflows of both ends.
    subflows: Vec<SubflowRow>,
    cpu: CpuMeter,
}

/// A stream for a load.
pub(crate) struct LoadStream {
    pub fd: OwnedFd,
    /// Its number in the phase, the same at both ends.
    pub number: u16,
    pub direction: PathDirection,
    pub layer: Layer,
    /// Requests of this end; absent at a server.
    pub echo: Option<EchoSchedule>,
}

struct OpenStream {
    id: StreamId,
    number: u16,
    direction: PathDirection,
    is_sender: bool,
    is_over: bool,
    fd: Arc<OwnedFd>,
    /// Bytes in the socket that were not sent yet, of a sender, at each sample.
    notsent_bytes: Vec<u32>,
}

/// Between two samples.
const SAMPLE_NS: u64 = 100_000_000;
/// Samples that are kept: ten minutes.
const SAMPLES_MAX: usize = 6_000;
/// Unacknowledged data or a peer that does not read ends a stream after this time.
const LIVENESS: std::time::Duration = std::time::Duration::from_secs(10);

impl LoadRun {
    /// Without a stream. A server's `quota` bounds its bytes and rate.
    ///
    /// Its events are those of a test; `peer` is the other end.
    pub(crate) fn new(
        spec: &PhaseSpec,
        quota: Quota,
        endpoint: Endpoint,
        peer: SocketAddr,
        mut reporter: Reporter<'static>,
    ) -> Result<Self, EngineError> {
        let test = TestSpec {
            mptcp: spec.transport == PhaseTransport::Mptcp,
            direction: direction(spec.kind),
            streams: spec.streams_max,
            end: EndCondition::Unlimited,
            ..TestSpec::default()
        };

        // Pauses between reads would delay echoes.
        let io_strategy = Some(IoStrategy::PLAIN).filter(|_| !spec.raw);
        let local = LocalOptions {
            io_strategy,
            ..LocalOptions::default()
        };

        let header = test_header(endpoint, peer.ip().to_string(), peer.port(), &test, &local);
        reporter.emit(&Event::TestAccepted(Box::new(header)));
        let settings = run_settings(test, local);
        let mut run = TestRun::new(settings).map_err(Operation::Init.failed())?;
        run.limit(quota);

        Ok(Self {
            run,
            reporter,
            is_server: endpoint == Endpoint::Server,
            spec: spec.clone(),
            streams: Vec::new(),
            start_ns: None,
            next_sample_ns: u64::MAX,
            samples: Vec::new(),
            notes: Vec::new(),
            subflows: Vec::new(),
            cpu: CpuMeter::start(clock::monotonic_ns()),
        })
    }

    /// Adds a stream; that of a load that runs begins at once.
    pub(crate) fn add(&mut self, stream: LoadStream) -> Result<(), EngineError> {
        let LoadStream {
            fd,
            number,
            direction,
            layer,
            echo,
        } = stream;
        let is_sender = (direction == PathDirection::Down) == self.is_server;
        self.prepare(&fd, is_sender);

        let id = StreamId(u32::try_from(self.streams.len()).unwrap_or(u32::MAX));
        let role = if is_sender {
            StreamRole::Sender
        } else {
            StreamRole::Receiver
        };

        let flow = if direction == PathDirection::Up {
            Flow::Forward
        } else {
            Flow::Reverse
        };
        let test = TestSpec {
            transport: Transport::Tcp,
            ..TestSpec::default()
        };

        let described = data_socket::describe(&fd, id, &test, role, flow)
            .map_err(Operation::InitStream.failed())?;
        self.reporter.emit(&Event::StreamOpened(described.clone()));

        let fd = if self.spec.raw {
            let failed =
                |error| Operation::InitStream.failed()(OsError::new("dup", "stream", error));
            let kept = fd.try_clone().map_err(failed)?;
            self.run.add(described, fd, false);
            Arc::new(kept)
        } else {
            let fd = Arc::new(fd);
            let build: PumpBuilder = Box::new(move |inputs| {
                Ok(Box::new(LoadPump::new(
                    inputs, number, is_sender, layer, echo,
                )?))
            });

            self.run.join(
                described,
                Arc::clone(&fd),
                Arc::new(StreamStats::default()),
                build,
                0,
            );
            fd
        };
        let notsent_bytes = Vec::new();
        self.streams.push(OpenStream {
            id,
            number,
            direction,
            is_sender,
            is_over: false,
            fd,
            notsent_bytes,
        });
        self.share_rate();

        if self.start_ns.is_some() {
            self.run.start_stream(id)
        } else {
            Ok(())
        }
    }

    /// Options of a stream. What the kernel refuses is a note of the result.
    fn prepare(&mut self, fd: impl AsFd, is_sender: bool) {
        // A frame leaves when it is written.
        let _ = sockopt::TCP_NODELAY.set(&fd, true);
        let _ = limit_idle_time(&fd, LIVENESS);

        if self.spec.dscp != 0 {
            let set = sockopt::set_tos(&fd, self.spec.dscp << 2);
            self.note(
                set.err()
                    .map(|error| format!("DSCP {} is not set: {error}", self.spec.dscp)),
            );
        }

        if let Some(name) = self.spec.congestion.clone().filter(|_| is_sender) {
            let set = sockopt::set_congestion(&fd, &name);
            self.note(
                set.err()
                    .map(|error| format!("congestion control {name} is not used: {error}")),
            );
        }
    }

    /// The senders share the rate of the phase, however many they are.
    fn share_rate(&self) {
        let Some(rate_bps) = self.spec.rate_bps else {
            return;
        };
        let senders = || self.streams.iter().filter(|stream| stream.is_sender);
        let bytes_per_s = rate_bps / 8 / senders().count().max(1) as u64;

        for stream in senders() {
            // The kernel of a stream that has ended has nothing to pace.
            let _ = sockopt::set_max_pacing_rate(&stream.fd, bytes_per_s.max(1));
        }
    }

    fn note(&mut self, note: Option<String>) {
        self.notes
            .extend(note.filter(|note| !self.notes.contains(note)));
    }

    /// The data begins to flow.
    pub(crate) fn start(&mut self) -> Result<(), EngineError> {
        let now_ns = clock::monotonic_ns();
        self.start_ns = Some(now_ns);
        self.next_sample_ns = now_ns + SAMPLE_NS;
        self.cpu = CpuMeter::start(clock::monotonic_ns());
        self.run.start_clock(now_ns);
        self.reporter.emit(&Event::TestStarted {
            at_monotonic_ns: Some(now_ns),
        });

        self.run.start_data()
    }

    /// Readable when [`Self::advance`] has something to do before its deadline.
    pub(crate) fn notice_fd(&self) -> BorrowedFd<'_> {
        self.run.notice_fd()
    }

    /// When [`Self::advance`] is due, monotonic ns.
    pub(crate) fn deadline_ns(&self) -> u64 {
        self.run
            .next_deadline_ns()
            .map_or(self.next_sample_ns, |run| run.min(self.next_sample_ns))
    }

    /// Handles notices; returns a sample when one is due.
    pub(crate) fn advance(&mut self) -> Option<LoadSample> {
        let now_ns = clock::monotonic_ns();
        for event in self.run.poll(now_ns, &mut self.reporter) {
            let RunEvent::StreamEnded { id, error } = event else {
                continue;
            };
            let Some(stream) = self.streams.iter_mut().find(|stream| stream.id == id) else {
                continue;
            };
            stream.is_over = true;

            let number = stream.number;
            self.note(error.map(|error| format!("stream {number} failed: {error}")));
        }

        if now_ns < self.next_sample_ns {
            return None;
        }

        // Samples that a busy thread missed are not repeated.
        let missed = (now_ns - self.next_sample_ns) / SAMPLE_NS;
        self.next_sample_ns += (missed + 1) * SAMPLE_NS;
        let sample = self.sample(now_ns);

        if self.samples.len() < SAMPLES_MAX {
            self.samples.push(sample);
            self.sample_notsent();
        }

        Some(sample)
    }

    /// Bytes moved so far. A sender counts those that its peer's kernel has acknowledged.
    fn sample(&self, now_ns: u64) -> LoadSample {
        let at_ns = now_ns.saturating_sub(self.start_ns.unwrap_or(now_ns));
        let mut sample = LoadSample {
            at_ns,
            ..LoadSample::default()
        };

        for stream in &self.streams {
            let bytes = self.moved_bytes(stream);
            match stream.direction {
                PathDirection::Down => sample.down_bytes += bytes,
                PathDirection::Up => sample.up_bytes += bytes,
            }

            sample.streams += 1;
        }

        sample
    }

    /// The kernel reports the first subflow of Multipath TCP alone, which is not what waits in the
    /// socket.
    fn sample_notsent(&mut self) {
        if self.spec.transport == PhaseTransport::Mptcp {
            return;
        }

        for stream in self.streams.iter_mut().filter(|stream| stream.is_sender) {
            stream.notsent_bytes.extend(
                tcp_info(&stream.fd)
                    .ok()
                    .and_then(|info| info.notsent_bytes),
            );
        }
    }

    fn moved_bytes(&self, stream: &OpenStream) -> u64 {
        let bytes = self.run.counts(stream.id).bytes;
        // `SIOCOUTQ` (tcp(7)): bytes that the kernel holds have not crossed the path.
        let unacknowledged = if stream.is_sender {
            sockopt::outq_bytes(&stream.fd).unwrap_or(0)
        } else {
            0
        };
        bytes.saturating_sub(u64::from(unacknowledged))
    }

    /// One of its streams has not ended.
    pub(crate) fn has_streams(&self) -> bool {
        self.streams.iter().any(|stream| !stream.is_over)
    }

    /// Bytes that were received and sent so far.
    pub(crate) fn totals(&self) -> (u64, u64) {
        let sum = |sends: bool| {
            let of = self
                .streams
                .iter()
                .filter(|stream| stream.is_sender == sends);
            of.map(|stream| self.run.counts(stream.id).bytes).sum()
        };
        (sum(false), sum(true))
    }

    /// Stops the senders; the receivers continue.
    pub(crate) fn stop_senders(&mut self) {
        // Before the stop: subflows of a closed connection are gone.
        self.subflows = self.current_subflows();
        self.run.stop_now(&mut self.reporter);
    }

    /// Ends the load, whose senders have been stopped; returns what this end counted, and facts of
    /// this host if a collector of them is set.
    pub(crate) fn finish(mut self) -> (EndpointPhase, Option<String>) {
        let now_ns = clock::monotonic_ns();
        self.samples.push(self.sample(now_ns));
        self.samples.truncate(SAMPLES_MAX);

        let streams = self
            .streams
            .iter()
            .map(|stream| self.stream_totals(stream))
            .collect();
        let elapsed_ns = now_ns.saturating_sub(self.start_ns.unwrap_or(now_ns));
        let cpu_ns = self.cpu.cpu_ns();

        self.run.stop_now(&mut self.reporter);
        self.discard_unsent();
        let summary = self.run.finish(now_ns, &mut self.reporter);

        self.run.quit();
        self.reporter.emit(&Event::Summary(Box::new(summary)));
        let facts = self.reporter.facts_for_peer();

        let Self {
            samples: load,
            notes,
            subflows,
            ..
        } = self;
        (
            EndpointPhase {
                elapsed_ns,
                load,
                streams,
                subflows,
                cpu_ns,
                notes,
                ..EndpointPhase::default()
            },
            facts,
        )
    }

    /// Unacknowledged data of senders leaves with them: its retransmission would delay the result
    /// on a slow path.
    fn discard_unsent(&self) {
        for stream in self.streams.iter().filter(|stream| stream.is_sender) {
            // Without it the kernel sends what is left.
            let _ = sockopt::set_reset_on_close(&stream.fd);
        }
    }

    /// Subflows of all streams. A connection without them is a note of the result.
    fn current_subflows(&mut self) -> Vec<SubflowRow> {
        let mut rows = Vec::new();
        if self.spec.transport != PhaseTransport::Mptcp {
            return rows;
        }

        let found: Vec<_> = self
            .streams
            .iter()
            .map(|s| subflows::rows(s.number, s.is_sender, s.fd.as_fd()))
            .collect();
        for found in found {
            match found {
                Ok(of_stream) => rows.extend(of_stream),
                Err(reason) => self.note(Some(reason)),
            }
        }

        rows
    }

    fn stream_totals(&self, stream: &OpenStream) -> StreamTotals {
        StreamTotals {
            stream: stream.number.into(),
            direction: Some(stream.direction),
            bytes: self.run.counts(stream.id).bytes,
            local: socket::local_addr(&stream.fd).ok().map(socket::unmap),
            remote: socket::peer_addr(&stream.fd).ok().map(socket::unmap),
            tcp: tcp_since_connect(&stream.fd)
                .filter(|_| self.spec.transport != PhaseTransport::Mptcp),
            notsent_bytes: median(&stream.notsent_bytes),
            // That of an end which sends nothing has no effect.
            congestion: stream
                .is_sender
                .then(|| sockopt::congestion(&stream.fd).ok())
                .flatten(),
        }
    }
}

/// The middle value; the lower one of two. `None` without a value.
fn median(values: &[u32]) -> Option<u64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    sorted
        .get(sorted.len().checked_sub(1)? / 2)
        .copied()
        .map(u64::from)
}

/// Who sends, seen from the client.
fn direction(kind: PhaseKind) -> Direction {
    match kind {
        PhaseKind::Down => Direction::Reverse,
        PhaseKind::Up => Direction::Forward,
        _ => Direction::Bidirectional,
    }
}

#[cfg(test)]
mod tests {
    use super::median;

    #[test]
    fn median_is_a_value_that_was_measured() {
        for (values, expected) in [
            (vec![], None),
            (vec![7], Some(7)),
            (vec![9, 1], Some(1)),
            (vec![5, 900, 3], Some(5)),
        ] {
            assert_eq!(median(&values), expected, "{values:?}");
        }
    }
}
