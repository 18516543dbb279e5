//! From cumulative counters to intervals and totals.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use linerate_model::interval::{
    IntervalReport, StreamInterval, TcpInterval, TcpLimits, UdpInterval,
};
use linerate_model::metrics::{StreamMetrics, WriteCounts};
use linerate_model::summary::{EndpointTotals, TcpSummary, UdpTotals};
use linerate_model::{Stream, StreamId, StreamRole, Transport};
use linerate_sys::clock;
use linerate_sys::tcp_info::{TcpInfo, tcp_info};

use crate::measure::counters::{Counts, StreamCounters};
use crate::measure::stream_stats::StreamStats;

/// Follows the streams of one test.
pub(crate) struct Sampler {
    streams: Vec<SampledStream>,
    transport: Transport,
    /// Start of the warm-up, later of the measured part: origin of all interval times.
    origin_ns: u64,
}

/// One stream as the sampler sees it.
struct SampledStream {
    stream: Stream,
    fd: Arc<OwnedFd>,
    counters: Arc<StreamCounters>,
    stats: Option<Arc<StreamStats>>,
    state: StreamState,
    /// When the measured part began.
    base: Sample,
    /// When the current interval began.
    last: Sample,
    /// When the measured time ended, of a stream that moves data beyond it.
    timed_end: Option<Sample>,
    rtt: RttRange,
    tcp: Option<TcpInfo>,
    /// Times limited by the receiver or the buffer, up to the end of the previous interval.
    limits: TcpLimits,
    /// The same when the measured part began.
    limits_before: TcpLimits,
    max_cwnd_bytes: u64,
    max_wnd_bytes: Option<u64>,
}

/// State of a stream.
enum StreamState {
    Running,
    /// Finished; its last reading, not yet reported.
    Ending(Sample),
    Ended,
}

/// One reading of one stream.
#[derive(Clone, Copy, Default)]
struct Sample {
    at_ns: u64,
    counts: Counts,
    repeated: Repeated,
    /// Bytes that have reached the receiving end since the stream began; `None` where this end
    /// cannot know.
    delivered_bytes: Option<u64>,
}

/// Smallest, largest and mean of the smoothed round-trip times read at interval ends.
#[derive(Clone, Copy, Default)]
struct RttRange {
    min_us: u32,
    max_us: u32,
    sum_us: u64,
    samples: u32,
}

impl Sampler {
    pub(crate) fn new(transport: Transport) -> Self {
        Self {
            streams: Vec::new(),
            transport,
            origin_ns: 0,
        }
    }

    pub(crate) fn add(
        &mut self,
        stream: Stream,
        fd: Arc<OwnedFd>,
        counters: Arc<StreamCounters>,
        stats: Option<Arc<StreamStats>>,
    ) {
        // A stream that joins a running test is counted from the start of the test, as all others
        // are.
        let start = Sample {
            at_ns: self.origin_ns,
            ..Sample::default()
        };
        self.streams.push(SampledStream {
            stream,
            fd,
            counters,
            stats,
            state: StreamState::Running,
            base: start,
            last: start,
            timed_end: None,
            rtt: RttRange::default(),
            tcp: None,
            limits: TcpLimits::default(),
            limits_before: TcpLimits::default(),
            max_cwnd_bytes: 0,
            max_wnd_bytes: None,
        });
    }

    /// Begins the warm-up or the measured part; what was counted so far is left out from here on.
    pub(crate) fn begin(&mut self, now_ns: u64) {
        self.origin_ns = now_ns;
        for stream in &mut self.streams {
            let mut sample = stream.read(self.transport);
            sample.at_ns = now_ns;
            stream.base = sample;
            stream.last = sample;
            stream.rtt = RttRange::default();
            stream.limits = stream.tcp.as_ref().and_then(limits).unwrap_or_default();
            stream.limits_before = stream.limits;
            stream.timed_end = None;
            stream.max_cwnd_bytes = 0;
            stream.max_wnd_bytes = None;
            stream.counters.request_jitter_reset();
        }
    }

    /// Ends the current interval of all streams at one moment and begins the next.
    pub(crate) fn close_interval(&mut self, omitted: bool, last: bool) -> IntervalReport {
        let transport = self.transport;
        let origin_ns = self.origin_ns;
        let mut streams = Vec::with_capacity(self.streams.len());
        // Before the first system call: with hundreds of streams those take milliseconds.
        let at_ns = clock::monotonic_ns();

        let counts: Vec<Counts> = self
            .streams
            .iter()
            .map(|stream| stream.counters.read())
            .collect();
        let open = self
            .streams
            .iter_mut()
            .zip(counts)
            .filter(|(stream, _)| !matches!(stream.state, StreamState::Ended));
        for (stream, counts) in open {
            let blocks = stream.last.counts.blocks;
            let taken = stream
                .stats
                .as_ref()
                .map(|stats| stats.take_interval(at_ns));
            let counts = taken
                .as_ref()
                .and_then(|(_, counts)| *counts)
                .unwrap_or(counts);
            let mut row = stream.close_interval(transport, origin_ns, at_ns, counts);
            row.metrics = taken.map(|(mut metrics, _)| {
                stream.complete(
                    &mut metrics,
                    stream.last.counts.blocks.saturating_sub(blocks),
                );
                Box::new(metrics)
            });
            streams.push(row);
        }

        IntervalReport {
            omitted,
            last,
            streams,
        }
    }

    /// A stream ends while others continue: its totals stay as they are now, and the open interval
    /// is the last one that shows it.
    pub(crate) fn end_stream(&mut self, id: StreamId) {
        let transport = self.transport;
        let running =
            |t: &&mut SampledStream| t.stream.id == id && matches!(t.state, StreamState::Running);
        if let Some(stream) = self.streams.iter_mut().find(running) {
            stream.state = StreamState::Ending(stream.read(transport));
        }
    }

    /// The measured time has ended: data that receivers count from here on arrived late.
    pub(crate) fn end_time(&mut self) {
        let transport = self.transport;
        for stream in self
            .streams
            .iter_mut()
            .filter(|stream| matches!(stream.state, StreamState::Running))
        {
            stream.timed_end = Some(stream.read(transport));
        }
    }

    /// Payload bytes of all streams since they were opened, both directions.
    pub(crate) fn total_bytes(&self) -> u64 {
        self.streams.iter().map(|t| t.counters.read().bytes).sum()
    }

    /// The same, receiving streams only.
    pub(crate) fn received_bytes(&self) -> u64 {
        let receivers = self
            .streams
            .iter()
            .filter(|t| t.stream.role == StreamRole::Receiver);
        receivers.map(|t| t.counters.read().bytes).sum()
    }

    /// Segments of all streams that TCP sent again or received out of order since the connections
    /// began; 0 for datagrams.
    pub(crate) fn disturbed_segments(&self) -> u64 {
        if self.transport != Transport::Tcp {
            return 0;
        }

        let disturbed = |info: TcpInfo| {
            u64::from(info.retransmits_total) + info.out_of_order_total.map_or(0, u64::from)
        };
        let infos = self.streams.iter().filter_map(|t| tcp_info(&t.fd).ok());
        infos.map(disturbed).sum()
    }

    /// Totals of this end of every stream up to the last closed interval.
    pub(crate) fn totals(&self) -> impl Iterator<Item = StreamTotals<'_>> {
        self.streams.iter().map(|sampled| StreamTotals {
            stream: &sampled.stream,
            counted: sampled.totals(self.transport),
            delivered: sampled.delivered(),
            tcp: sampled.tcp_summary(),
            metrics: sampled.metrics(),
        })
    }
}

/// Totals of this end of a stream.
pub(crate) struct StreamTotals<'a> {
    pub stream: &'a Stream,
    pub counted: EndpointTotals,
    /// Data that reached the receiving end in the measured time; `None` where this end cannot know.
    pub delivered: Option<EndpointTotals>,
    pub tcp: Option<TcpSummary>,
    pub metrics: Option<StreamMetrics>,
}

impl SampledStream {
    fn read(&mut self, transport: Transport) -> Sample {
        let at_ns = clock::monotonic_ns();
        let counts = self.counters.read();
        self.sample(transport, at_ns, counts)
    }

    /// Completes counts of this moment with `TCP_INFO`.
    fn sample(&mut self, transport: Transport, at_ns: u64, counts: Counts) -> Sample {
        if transport == Transport::Tcp && self.stream.role == StreamRole::Sender {
            // Absent on a socket the peer has reset: then the last reading stands.
            if let Ok(info) = tcp_info(&self.fd) {
                self.tcp = Some(info);
            }
        }

        let delivered_bytes = match self.stream.role {
            StreamRole::Sender => self.tcp.as_ref().and_then(TcpInfo::delivered_bytes),
            StreamRole::Receiver => Some(counts.bytes),
        };
        let repeated = self.tcp.as_ref().map(Repeated::of).unwrap_or_default();
        Sample {
            at_ns,
            counts,
            repeated,
            delivered_bytes,
        }
    }

    fn close_interval(
        &mut self,
        transport: Transport,
        origin_ns: u64,
        at_ns: u64,
        counts: Counts,
    ) -> StreamInterval {
        let now = match self.state {
            StreamState::Ending(last) => {
                self.state = StreamState::Ended;
                last
            }
            StreamState::Running | StreamState::Ended => self.sample(transport, at_ns, counts),
        };
        let before = std::mem::replace(&mut self.last, now);
        let held_before = self.limits;
        let tcp = self.tcp.map(|info| {
            self.note(&info);
            self.limits = limits(&info).unwrap_or(held_before);
            tcp_interval(&info, now.repeated.since(before.repeated), held_before)
        });

        let udp = (transport == Transport::Udp).then(|| {
            UdpInterval::new(
                now.counts.packets.saturating_sub(before.counts.packets),
                now.counts.lost as i64 - before.counts.lost as i64,
                now.counts
                    .out_of_order
                    .saturating_sub(before.counts.out_of_order),
                now.counts.jitter_s,
            )
        });
        let start_ns = before.at_ns.saturating_sub(origin_ns);
        let end_ns = now.at_ns.saturating_sub(origin_ns);
        let bytes = now.counts.bytes.saturating_sub(before.counts.bytes);
        let mut interval = StreamInterval::new(&self.stream, start_ns, end_ns, bytes);
        interval.tcp = tcp;
        interval.udp = udp;

        interval
    }

    /// Metrics of the worker since the stream began; `None` if it measures nothing beyond bytes.
    fn metrics(&self) -> Option<StreamMetrics> {
        let mut metrics = self.stats.as_ref()?.total();
        self.complete(
            &mut metrics,
            self.last
                .counts
                .blocks
                .saturating_sub(self.base.counts.blocks),
        );
        Some(metrics)
    }

    /// Adds `TCP_INFO` and the counters to what the worker measured.
    fn complete(&self, measured: &mut StreamMetrics, blocks: u64) {
        if self.stream.role == StreamRole::Sender {
            measured.writes.get_or_insert_with(|| WriteCounts {
                calls: blocks,
                ..WriteCounts::default()
            });
        }

        let Some(info) = &self.tcp else { return };
        measured.cwnd_segments = Some(info.snd_cwnd_segments);
        measured.in_flight_segments = Some(info.in_flight_segments);
        measured.in_flight_bytes = Some(info.in_flight_bytes());
        measured.tcp = Some(tcp_interval(info, self.last.repeated, TcpLimits::default()));
    }

    fn note(&mut self, info: &TcpInfo) {
        self.max_cwnd_bytes = self.max_cwnd_bytes.max(info.cwnd_bytes());
        self.max_wnd_bytes = self.max_wnd_bytes.max(info.snd_wnd_bytes.map(u64::from));
        self.rtt.add(info.rtt_us);
    }

    fn totals(&self, transport: Transport) -> EndpointTotals {
        let now = &self.last;
        let base = &self.base;
        let udp = (transport == Transport::Udp).then_some(UdpTotals {
            packets: now.counts.packets,
            lost: now.counts.lost,
            out_of_order: now.counts.out_of_order,
            jitter_s: now.counts.jitter_s,
            omitted_packets: Some(base.counts.packets),
            omitted_lost: Some(base.counts.lost),
        });

        let bytes = now.counts.bytes.saturating_sub(base.counts.bytes);
        EndpointTotals::new(bytes, now.at_ns.saturating_sub(base.at_ns), udp)
    }

    /// Present of a receiver only where the measured time ended here: otherwise its counters hold
    /// what arrived late, too.
    fn delivered(&self) -> Option<EndpointTotals> {
        let end = match self.stream.role {
            StreamRole::Sender => self.timed_end.unwrap_or(self.last),
            StreamRole::Receiver => self.timed_end?,
        };
        let base = self.base;
        let bytes = end.delivered_bytes?.saturating_sub(base.delivered_bytes?);

        Some(EndpointTotals::new(
            bytes,
            end.at_ns.saturating_sub(base.at_ns),
            None,
        ))
    }

    fn tcp_summary(&self) -> Option<TcpSummary> {
        let info = self.tcp.as_ref()?;
        let repeated = self.last.repeated.since(self.base.repeated);
        let tcp = TcpSummary {
            retransmits: Some(repeated.retransmits),
            dsack_segments: repeated.dsack_segments,
            reordering_segments: Some(info.reordering_segments),
            reorder_events: info.reorder_seen.map(u64::from),
            max_snd_cwnd_bytes: Some(self.max_cwnd_bytes),
            max_snd_wnd_bytes: self.max_wnd_bytes,
            max_rtt_us: self.rtt.known(self.rtt.max_us),
            min_rtt_us: self.rtt.known(self.rtt.min_us),
            mean_rtt_us: self.rtt.mean_us(),
            limits: limits(info).map(|now| now.saturating_sub(self.limits_before)),
        };

        Some(tcp)
    }
}

/// `TCP_INFO` of a connection, counted since it was made. Absent on a socket that the peer has
/// reset.
#[cfg(feature = "native")]
pub(crate) fn tcp_since_connect(fd: impl std::os::fd::AsFd) -> Option<TcpInterval> {
    Some(tcp_whole(&tcp_info(fd).ok()?))
}

/// The same of a state that was read.
#[cfg(feature = "native")]
pub fn tcp_whole(info: &TcpInfo) -> TcpInterval {
    tcp_interval(info, Repeated::of(info), TcpLimits::default())
}

fn tcp_interval(info: &TcpInfo, repeated: Repeated, held_before: TcpLimits) -> TcpInterval {
    TcpInterval {
        retransmits: repeated.retransmits,
        snd_cwnd_bytes: info.cwnd_bytes(),
        snd_wnd_bytes: info.snd_wnd_bytes.map(u64::from),
        rtt_us: info.rtt_us,
        rttvar_us: info.rttvar_us,
        pmtu_bytes: info.pmtu_bytes,
        dsack_segments: repeated.dsack_segments,
        reorder_events: info.reorder_seen.map(u64::from),
        mss_bytes: info.snd_mss_bytes,
        min_rtt_us: info.min_rtt_us,
        limits: limits(info).map(|now| now.saturating_sub(held_before)),
    }
}

/// Segments sent again, and how many of them the peer reported as received twice.
#[derive(Clone, Copy, Default)]
struct Repeated {
    retransmits: u64,
    dsack_segments: Option<u64>,
}

impl Repeated {
    fn of(info: &TcpInfo) -> Self {
        Self {
            retransmits: info.retransmits_total.into(),
            dsack_segments: info.dsack_segments.map(u64::from),
        }
    }

    fn since(self, before: Self) -> Self {
        let dsack_before = before.dsack_segments.unwrap_or(0);
        Self {
            retransmits: self.retransmits.saturating_sub(before.retransmits),
            dsack_segments: self
                .dsack_segments
                .map(|now| now.saturating_sub(dsack_before)),
        }
    }
}

/// Times that a connection was limited by the receiver or the buffer since it began.
fn limits(info: &TcpInfo) -> Option<TcpLimits> {
    Some(TcpLimits {
        busy_us: info.busy_us?,
        rwnd_limited_us: info.rwnd_limited_us?,
        sndbuf_limited_us: info.sndbuf_limited_us?,
    })
}

impl RttRange {
    fn add(&mut self, rtt_us: u32) {
        self.min_us = if self.samples == 0 {
            rtt_us
        } else {
            self.min_us.min(rtt_us)
        };
        self.max_us = self.max_us.max(rtt_us);
        self.sum_us += u64::from(rtt_us);
        self.samples += 1;
    }

    fn known(self, value_us: u32) -> Option<u32> {
        (self.samples > 0).then_some(value_us)
    }

    fn mean_us(self) -> Option<u32> {
        self.sum_us
            .checked_div(u64::from(self.samples))
            .and_then(|mean| u32::try_from(mean).ok())
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::net::{Ipv4Addr, SocketAddr};

    use linerate_model::Flow;

    use super::*;

    fn stream(id: u32) -> Stream {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
        Stream::new(
            StreamId(id),
            StreamRole::Receiver,
            Flow::Forward,
            address,
            address,
        )
    }

    #[test]
    fn all_streams_share_the_end_of_an_interval() {
        let fd = Arc::new(OwnedFd::from(
            File::open("/dev/null").expect("every system has it"),
        ));
        let mut sampler = Sampler::new(Transport::Tcp);

        for id in 0..100 {
            sampler.add(stream(id), Arc::clone(&fd), Arc::default(), None);
        }

        sampler.begin(clock::monotonic_ns());
        for _ in 0..3 {
            let report = sampler.close_interval(false, false);
            let first = &report.streams[0];
            let is_same =
                |row: &StreamInterval| (row.start_ns, row.end_ns) == (first.start_ns, first.end_ns);
            assert!(report.streams.iter().all(is_same), "{report:?}");
        }
    }
}
