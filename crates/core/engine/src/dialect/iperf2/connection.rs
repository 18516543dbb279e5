//! One TCP connection or UDP flow: its socket, its protocol machine, and the pumps it needs.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use linerate_iperf2::wire::datagram::NumberWidth;
use linerate_iperf2::wire::server::AcceptedTest;
use linerate_iperf2::wire::{DatagramHead, FinalReport, Header, Version};
use linerate_model::metrics::HistogramKind;
use linerate_model::workload::{HistogramSpec, Pairing, Release, Shape};
use linerate_model::{Direction, Failure, Flow, Stream, StreamId, StreamRole, TestSpec, Transport};
use linerate_sys::error::io_text;
use linerate_sys::poll::{Epoll, Interest};
use linerate_sys::{socket, stream_io, udp};

use super::datagrams::SharedFlowTotals;
use super::machine::{Machine, ReadMode, wall};
use super::pumps::{self, Origin};
use super::received_bursts::BurstQueue;
use super::sockets;
use crate::data::run::PumpBuilder;
use crate::measure::stream_stats::StreamStats;
use crate::send_buffer::SendBuffer;

/// A connection or flow.
pub(super) struct Connection {
    pub fd: Arc<OwnedFd>,
    pub machine: Machine,
    /// Number in reports.
    pub number: u32,
    /// The server opened it.
    pub is_back: bool,
    /// Most bytes of one read: the block length of this end, whatever the client writes.
    read_len_bytes: u32,
    pub spec: TestSpec,
    /// The client's header; its datagrams carry it.
    pub header: Option<Header>,
    pub origin: Origin,
    pub local: SocketAddr,
    pub remote: SocketAddr,
    pub connect_us: Option<u32>,
    pub peer_version: Option<String>,
    /// When a server accepted the connection, on the monotonic clock.
    pub accepted_ns: Option<u64>,
    /// Datagrams that arrived before there was a worker, and when.
    pub early: Vec<(Vec<u8>, u64)>,
    pub sender: Option<DirectionState>,
    pub receiver: Option<DirectionState>,
    /// Its streams were announced.
    pub is_open: bool,
    pub flow_totals: Option<SharedFlowTotals>,
    /// Counts of the server.
    pub report: Option<FinalReport>,
    pub closed: Option<Result<(), Failure>>,
    /// Data that had arrived at the last check.
    pub seen_datagrams: u64,
    /// The first request of a bounce-back test began with these bytes.
    bounce: Option<Vec<u8>>,
    template: Vec<u8>,
    width: NumberWidth,
    unsent: SendBuffer,
    /// Payload that has been sent or received outside of the workers.
    sent_bytes: u64,
    received_bytes: u64,
    watched: Option<Interest>,
    /// Bursts that are rows of the report, on a stream that receives them.
    bursts: Option<Arc<BurstQueue>>,
}

/// One direction of a connection.
pub(super) struct DirectionState {
    pub stream: Stream,
    pub stats: Arc<StreamStats>,
    /// Its data are to flow.
    is_wanted: bool,
    pub started_ns: Option<u64>,
    pub is_over: bool,
}

/// Room for one read of what precedes the data.
const READ_BYTES: usize = 16 * 1024;
/// Reads in a row, so that one peer does not starve the others.
const READS_PER_TURN: u32 = 16;
/// Default distribution of round trips.
const ROUND_TRIPS: HistogramSpec = HistogramSpec::new(100, 10_000);
/// Copies of the last datagram of a server, which is not acknowledged.
const LAST_COPIES: u64 = 3;

impl Connection {
    /// Both ends know the addresses of a connected socket.
    pub(super) fn new(
        fd: OwnedFd,
        machine: Machine,
        number: u32,
        spec: TestSpec,
    ) -> Result<Self, linerate_sys::OsError> {
        let local = socket::local_addr(&fd)?;
        let remote = socket::peer_addr(&fd)?;
        Ok(Self {
            fd: Arc::new(fd),
            machine,
            number,
            is_back: false,
            read_len_bytes: spec.block_len_bytes,
            spec,
            header: None,
            origin: Origin::Pattern,
            local: socket::unmap(local),
            remote: socket::unmap(remote),
            connect_us: None,
            peer_version: None,
            accepted_ns: None,
            early: Vec::new(),
            sender: None,
            receiver: None,
            is_open: false,
            flow_totals: None,
            report: None,
            closed: None,
            seen_datagrams: 0,
            bounce: None,
            template: Vec::new(),
            width: NumberWidth::Wide,
            unsent: SendBuffer::default(),
            sent_bytes: 0,
            received_bytes: 0,
            watched: None,
            bursts: None,
        })
    }

    /// Applies the client's test to this connection.
    pub(super) fn accept(&mut self, test: AcceptedTest) {
        self.received_bytes = test.payload_bytes as u64;
        self.width = if test.spec.udp.counters_64bit {
            NumberWidth::Wide
        } else {
            NumberWidth::Narrow
        };
        self.peer_version = test
            .header
            .as_ref()
            .map(|header| header.version.to_string());

        let own = std::mem::take(&mut self.spec);
        self.spec = with_own(test.spec, &own);
        self.header = test.header;
    }

    /// Takes the datagrams that opened this flow. The first one proves nothing; its machine counts
    /// those that follow.
    pub(super) fn take_early(&mut self, early: Vec<(Vec<u8>, u64)>) {
        (1..early.len()).for_each(|_| self.machine.data_arrived());
        self.seen_datagrams = early.len() as u64;
        self.early = early;
    }

    pub(super) fn directions(&self) -> impl Iterator<Item = &DirectionState> {
        self.sender.iter().chain(&self.receiver)
    }

    pub(super) fn directions_mut(&mut self) -> impl Iterator<Item = &mut DirectionState> {
        self.sender.iter_mut().chain(&mut self.receiver)
    }

    fn direction_of(&mut self, role: StreamRole) -> Option<&mut DirectionState> {
        match role {
            StreamRole::Sender => self.sender.as_mut(),
            StreamRole::Receiver => self.receiver.as_mut(),
        }
    }

    /// The directions of this connection, with ids from `first_id` on.
    pub(super) fn create_directions(&mut self, is_client: bool, first_id: u32) {
        for (next_id, &flow) in (first_id..).zip(flows(&self.spec, self.is_back)) {
            let sends = is_client == (flow == Flow::Forward);
            let role = if sends {
                StreamRole::Sender
            } else {
                StreamRole::Receiver
            };
            let direction = self.direction(StreamId(next_id), role, flow);

            match role {
                StreamRole::Sender => self.sender = Some(direction),
                StreamRole::Receiver => self.receiver = Some(direction),
            }
        }
    }

    fn direction(&self, id: StreamId, role: StreamRole, flow: Flow) -> DirectionState {
        let mut stream = Stream::new(id, role, flow, self.local, self.remote);
        stream.effective = sockets::effective(&self.fd, self.spec.transport);
        DirectionState {
            stream,
            stats: Arc::new(StreamStats::with_histograms(
                self.histogram_kinds(role),
                self.distribution(role),
            )),
            is_wanted: false,
            started_ns: None,
            is_over: false,
        }
    }

    /// The distributions of a stream in the order of the report.
    fn histogram_kinds(&self, role: StreamRole) -> &'static [HistogramKind] {
        let workload = &self.spec.workload;
        // 2.1.8 has no distributions of one-way delays here.
        let has_delays = workload.trip_times && workload.release == Release::V2_2;

        match (&workload.shape, self.spec.transport, role) {
            (Shape::BounceBack(_), ..) if has_delays => &[
                HistogramKind::Out,
                HistogramKind::Back,
                HistogramKind::RoundTrips,
            ],
            (Shape::BounceBack(_), ..) => &[HistogramKind::RoundTrips],
            (Shape::Isochronous(_), Transport::Udp, StreamRole::Receiver) => {
                &[HistogramKind::Datagrams, HistogramKind::Bursts]
            }
            (_, Transport::Udp, _) => &[HistogramKind::Datagrams],
            (_, _, StreamRole::Sender) => &[HistogramKind::Writes],
            (_, _, StreamRole::Receiver) => &[HistogramKind::Bursts],
        }
    }

    /// A bounce-back client always keeps a distribution.
    fn distribution(&self, role: StreamRole) -> Option<HistogramSpec> {
        let workload = &self.spec.workload;
        let is_requester =
            matches!(workload.shape, Shape::BounceBack(_)) && role == StreamRole::Sender;
        let wanted = workload.histogram;
        wanted.or(is_requester.then_some(ROUND_TRIPS))
    }

    /// The machine starts the data.
    pub(super) fn want_sending(&mut self) {
        if let Some(direction) = &mut self.sender {
            direction.is_wanted = true;
        }
    }

    pub(super) fn want_receiving(&mut self, header_bytes: usize) {
        self.received_bytes = self.received_bytes.saturating_add(header_bytes as u64);
        if let Some(direction) = &mut self.receiver {
            direction.is_wanted = true;
        }
    }

    pub(super) fn want_bouncing(&mut self, received: Vec<u8>) {
        self.bounce = Some(received);
        self.want_receiving(0);
    }

    /// Requests and replies take turns on it.
    pub(super) fn is_bouncing(&self) -> bool {
        matches!(self.spec.workload.shape, Shape::BounceBack(_))
    }

    /// Nothing holds its data back.
    pub(super) fn is_ready(&self) -> bool {
        self.unsent.is_empty()
            && self
                .directions()
                .any(|direction| direction.is_wanted && direction.started_ns.is_none())
    }

    /// The directions whose data start now: the stream, its statistics, its pump, and the bytes
    /// moved already.
    pub(super) fn start(
        &mut self,
        now_ns: u64,
    ) -> Vec<(Stream, Arc<StreamStats>, PumpBuilder, u64)> {
        let mut started = Vec::new();
        // A flow began with its first datagram.
        let only_receives = self.spec.direction == Direction::Forward;
        let first = self.early.first().filter(|_| only_receives);
        let began_ns = first.map_or(now_ns, |(_, arrived_ns)| *arrived_ns);

        for role in [StreamRole::Sender, StreamRole::Receiver] {
            if !self
                .direction_of(role)
                .is_some_and(|direction| direction.is_wanted && direction.started_ns.is_none())
            {
                continue;
            }

            // Once the header is read: it may ask for options of this direction.
            sockets::tune(&self.fd, &self.spec, role);
            let (build_pump, moved) = match role {
                StreamRole::Sender => self.make_sender(),
                StreamRole::Receiver => self.make_receiver(),
            };
            if let (Some(direction), Some(build_pump)) = (self.direction_of(role), build_pump) {
                direction.started_ns = Some(began_ns);
                started.push((
                    direction.stream.clone(),
                    Arc::clone(&direction.stats),
                    build_pump,
                    moved,
                ));
            }
        }

        started
    }

    fn make_sender(&mut self) -> (Option<PumpBuilder>, u64) {
        let Some(direction) = &self.sender else {
            return (None, 0);
        };
        let stats = Arc::clone(&direction.stats);

        if self.spec.transport != Transport::Udp {
            let origin = std::mem::take(&mut self.origin);
            return (
                Some(pumps::stream_sender(
                    &self.spec,
                    origin,
                    &stats,
                    self.sent_bytes,
                )),
                self.sent_bytes,
            );
        }

        self.template = self.datagram();
        let version = self
            .header
            .as_ref()
            .map_or(Version::V2_1_8, |header| header.version);
        let sent = u64::from(self.send_long_first());

        // A client knows its server's address; a server learned the address of a flow from a
        // datagram.
        let ignores_unreachable = matches!(self.machine, Machine::FlowClient(_)) && !self.is_back;
        let build_pump = pumps::datagram_sender(
            &self.spec,
            &stats,
            self.template.clone(),
            version,
            sent,
            ignores_unreachable,
        );
        (Some(build_pump), self.sent_bytes)
    }

    fn make_receiver(&mut self) -> (Option<PumpBuilder>, u64) {
        let Some(direction) = &self.receiver else {
            return (None, 0);
        };
        let stats = Arc::clone(&direction.stats);

        if let Some(received) = self.bounce.take() {
            let quick_ack = self.spec.workload.quick_ack;
            return (Some(pumps::bounce_server(&stats, quick_ack, received)), 0);
        }

        self.bursts = self.spec.reports_bursts().then(Arc::default);
        let queue = self.bursts.clone();

        if self.spec.transport == Transport::Udp {
            let header = self.header.as_ref();
            let frames_of = header
                .filter(|header| header.isochronous)
                .map(|header| header.version);
            let early = std::mem::take(&mut self.early);
            let (build_pump, flow_totals) =
                pumps::datagram_receiver(&stats, self.width, frames_of, early, queue, &self.spec);
            self.flow_totals = Some(flow_totals);
            return (Some(build_pump), 0);
        }

        let is_framed = self.header.as_ref().is_some_and(Header::frames_tcp_data);
        let build_pump =
            pumps::stream_receiver(&self.spec, self.read_len_bytes, &stats, is_framed, queue);
        (Some(build_pump), self.received_bytes)
    }

    /// Bursts that are rows of the report.
    pub(super) fn bursts(&self) -> Option<&BurstQueue> {
        self.bursts.as_deref()
    }

    fn datagram(&self) -> Vec<u8> {
        let len =
            (self.spec.block_len_bytes as usize).max(linerate_iperf2::wire::datagram::HEAD_LEN);
        linerate_iperf2::wire::datagram::template(
            self.header.as_ref().filter(|_| !self.is_back),
            len,
        )
    }

    /// A first datagram that has to be longer than the others leaves from here.
    fn send_long_first(&mut self) -> bool {
        let header = self.header.as_ref().filter(|_| !self.is_back);
        let min = header.map_or(0, Header::datagram_len_min);
        if self.template.len() >= min {
            return false;
        }

        let mut first = linerate_iperf2::wire::datagram::template(header, min);
        DatagramHead {
            number: 1,
            sent: wall(),
        }
        .write(&mut first);

        if udp::send(&self.fd, &first).is_ok() {
            self.sent_bytes += first.len() as u64;
        }

        true
    }

    /// A server has sent `datagrams`; sends the last one.
    pub(super) fn send_last(&self, datagrams: u64) {
        let mut last = self.template.clone();
        for copy in 1..=LAST_COPIES {
            let number = i64::try_from(datagrams.saturating_add(copy)).unwrap_or(i64::MAX);
            DatagramHead {
                // A negative number marks the end of a flow (`packetID` in iperf 2's Client.cpp and
                // Server.cpp).
                number: -number,
                sent: wall(),
            }
            .write(&mut last);

            // It is not acknowledged; a client that misses it has a timeout.
            let _ = udp::send(&self.fd, &last);
        }
    }

    /// Sends what precedes or follows the data.
    pub(super) fn send(&mut self, bytes: &[u8], is_payload: bool) {
        if self.spec.transport == Transport::Udp {
            // What is lost is repeated by the machine.
            let _ = udp::send(&self.fd, bytes);
            return;
        }

        if is_payload {
            self.sent_bytes += bytes.len() as u64;
        }

        self.unsent.push(bytes);
        self.flush();
    }

    fn flush(&mut self) {
        let flushed = self.unsent.flush(|bytes| stream_io::send(&self.fd, bytes));
        if let Err(error) = flushed {
            self.unsent.clear();
            self.machine
                .failed(&format!("write failed: {}", io_text(&error)));
        }
    }

    /// Who reads now. Where requests and replies take turns on one socket, their worker reads.
    fn read_mode(&self) -> ReadMode {
        match self.spec.workload.shape {
            Shape::BounceBack(_) if self.is_sending() => ReadMode::None,
            _ => self.machine.read_mode(),
        }
    }

    fn is_sending(&self) -> bool {
        self.sender
            .as_ref()
            .is_some_and(|direction| !direction.is_over)
    }

    /// The socket is readable or writable.
    pub(super) fn on_ready(&mut self) {
        self.flush();
        let mut buffer = [0; READ_BYTES];

        for _ in 0..READS_PER_TURN {
            let outcome = match self.read_mode() {
                ReadMode::None => return,
                ReadMode::Bytes(wanted) => {
                    stream_io::recv(&self.fd, &mut buffer[..wanted.clamp(1, READ_BYTES)])
                }
                ReadMode::Datagrams => udp::recv(&self.fd, &mut buffer),
            };
            match outcome {
                Ok(0) if self.spec.transport != Transport::Udp => return self.machine.eof(),
                Ok(n) => self.machine.bytes(&buffer[..n.min(READ_BYTES)]),
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock) => return,
                Err(e) if e.kind() == ErrorKind::ConnectionRefused && self.sends_data_on_flow() => {
                    return self.machine.failed("the client's port is unreachable");
                }
                // The peer's port is closed; the machine has a timeout for that.
                Err(_) if self.spec.transport == Transport::Udp => return,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => {
                    // iperf 2 reads nothing while it sends, so that a reset ends a write.
                    let call = if self.is_sending() { "write" } else { "recv" };
                    return self
                        .machine
                        .failed(&format!("{call} failed: {}", io_text(&e)));
                }
            }
        }
    }

    /// A server sends data on a flow.
    fn sends_data_on_flow(&self) -> bool {
        matches!(self.machine, Machine::FlowServer(_)) && self.sender.is_some()
    }

    /// Waits for what this thread is to read or write, and for nothing else.
    pub(super) fn watch(&mut self, epoll: &Epoll, token: u64) {
        let wanted = Interest {
            read: self.closed.is_none() && self.read_mode() != ReadMode::None,
            write: self.closed.is_none() && !self.unsent.is_empty(),
            edge: false,
        };
        let wanted = (wanted.read || wanted.write).then_some(wanted);
        if wanted == self.watched {
            return;
        }

        let fd = self.fd.as_fd();
        let outcome = match (self.watched, wanted) {
            (None, Some(interest)) => epoll.add(fd, token, interest),
            (Some(_), Some(interest)) => epoll.modify(fd, token, interest),
            (_, None) => epoll.remove(fd),
        };
        match outcome {
            Ok(()) => self.watched = wanted,
            Err(error) => self.machine.failed(&error.text()),
        }
    }

    pub(super) fn close(&mut self, outcome: Result<(), Failure>) {
        if self.spec.transport != Transport::Udp {
            // Others may hold the descriptor; shutdown reaches the peer at once.
            let _ = socket::shutdown_both(&self.fd);
        }
        self.closed = Some(outcome);
    }

    pub(super) fn socket(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// The client's test with the options this end applies to every test.
pub(super) fn with_own(mut asked: TestSpec, own: &TestSpec) -> TestSpec {
    asked.socket.window_bytes = own.socket.window_bytes;
    asked.socket.mss_bytes = own.socket.mss_bytes;
    asked.socket.no_delay |= own.socket.no_delay;

    if asked.socket.congestion.is_none() {
        asked.socket.congestion.clone_from(&own.socket.congestion);
    }

    if own.block_len_explicit && !asked.block_len_explicit {
        asked.block_len_bytes = own.block_len_bytes;
    }

    asked.skip_rx_copy = own.skip_rx_copy;
    asked
        .workload
        .permit_key
        .clone_from(&own.workload.permit_key);
    asked.workload.exact_reads = own.workload.exact_reads;
    asked.workload.histogram = own.workload.histogram;
    asked.workload.reports_frames = own.workload.reports_frames;
    asked.workload.window_clamp_bytes = own.workload.window_clamp_bytes;
    asked.workload.quick_ack |= own.workload.quick_ack;

    asked
}

/// The directions of a connection: of a test in both directions on one connection there are two.
fn flows(spec: &TestSpec, is_back: bool) -> &'static [Flow] {
    match (spec.direction, spec.workload.pairing) {
        _ if is_back => &[Flow::Reverse],
        (Direction::Reverse, _) => &[Flow::Reverse],
        (Direction::Bidirectional, Pairing::Shared | Pairing::Separate) => {
            &[Flow::Forward, Flow::Reverse]
        }
        (Direction::Forward | Direction::Bidirectional, _) => &[Flow::Forward],
    }
}
