//! The events of a printed test.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use linerate_model::event::{Endpoint, TestHeader};
use linerate_model::interval::TcpInterval;
use linerate_model::stream::StreamFacts;
use linerate_model::summary::{TcpSummary, UdpTotals};
use linerate_model::{
    Direction, EndpointTotals, Event, Flow, IntervalReport, Stream, StreamId, StreamInterval,
    StreamRole, StreamSummary, Summary, UdpInterval,
};

use super::TextTest;
use crate::readers::text::banner::Tool;
use crate::readers::text::row::{Counted, Row, Subject, UdpColumns};
use crate::readers::text::stream::TextStream;

impl TextTest {
    /// The events of the test.
    pub(in crate::readers) fn events(&self, utc_offset_s: &dyn Fn(i64) -> i64) -> Vec<Event> {
        let used = self.used();
        let streams: Vec<(Stream, &TextStream)> = (0..)
            .zip(&used)
            .map(|(id, (place, stream))| (self.stream(StreamId(id), *place, stream), *stream))
            .collect();
        let header = self.header(&streams, utc_offset_s);
        let mut events = vec![Event::TestAccepted(Box::new(header))];
        events.extend(
            streams
                .iter()
                .map(|(stream, _)| Event::StreamOpened(stream.clone())),
        );

        if !streams.is_empty() {
            events.push(Event::TestStarted {
                at_monotonic_ns: None,
            });
        }

        events.extend(self.intervals(&streams));

        let summary = self.summary(&streams);
        let is_whole = !streams.is_empty()
            && streams
                .iter()
                .all(|(opened, stream)| self.totals(opened, stream).is_some());
        events.extend(summary.map(|summary| Event::Summary(Box::new(summary))));

        match &self.failure {
            Some(failure) => events.push(Event::Failed(failure.clone())),
            None if is_whole => events.push(Event::Finished),
            None => {}
        }

        events
    }

    fn header(
        &self,
        streams: &[(Stream, &TextStream)],
        utc_offset_s: &dyn Fn(i64) -> i64,
    ) -> TestHeader {
        let opening = &self.opening;
        let count = |flow: Flow| {
            streams
                .iter()
                .filter(|(stream, _)| stream.flow == flow)
                .count()
        };
        let forward = count(Flow::Forward);
        let reverse = count(Flow::Reverse);
        let first = streams
            .iter()
            .find_map(|(_, stream)| stream.intervals.first());

        let mut header = TestHeader {
            endpoint: self.endpoint(),
            peer_host: opening.peer_host.clone(),
            peer_port: opening.server_port.unwrap_or(0),
            cookie: opening.cookie.clone().unwrap_or_default(),
            started_at_unix_ms: self.started_unix_ms(utc_offset_s).unwrap_or(0),
            control_mss_bytes: self.mss_bytes(),
            interval: first
                .and_then(|row| Duration::try_from_secs_f64(row.end_s - row.start_s).ok()),
            spec: opening.spec.clone(),
            ..TestHeader::default()
        };
        header.spec.transport = opening.transport();

        // A sum is that of more streams than there are rows.
        let opened = u32::try_from(forward.max(reverse)).unwrap_or(u32::MAX);
        header.spec.streams = header.spec.streams.max(opened).max(1);
        header.spec.direction = match (forward, reverse) {
            (1.., 1..) => Direction::Bidirectional,
            (0, 1..) => Direction::Reverse,
            _ => Direction::Forward,
        };

        let length = opening.datagram_bytes.or(opening.block_len_bytes);
        header.spec.block_len_bytes = length.unwrap_or(0);

        header
    }

    fn mss_bytes(&self) -> Option<u32> {
        self.opening
            .mss_bytes
            .or_else(|| self.streams.iter().find_map(|stream| stream.mss_bytes))
    }

    fn stream(&self, id: StreamId, place: usize, stream: &TextStream) -> Stream {
        let flow = self.flow(place, stream);
        let is_sender = (flow == Flow::Forward) == (self.endpoint() == Endpoint::Client);
        let unknown = || SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
        let end = |end: Option<(IpAddr, u16)>| {
            end.map_or_else(unknown, |(host, port)| SocketAddr::new(host, port))
        };

        let peer = self
            .opening
            .peer_host
            .parse()
            .ok()
            .map(|host| (host, self.opening.server_port.unwrap_or(0)));

        let role = if is_sender {
            StreamRole::Sender
        } else {
            StreamRole::Receiver
        };
        let mut opened = Stream::new(
            id,
            role,
            flow,
            end(stream.local),
            end(stream.remote.or(peer)),
        );

        let mut facts = StreamFacts::default();
        if let Some(Subject::Stream { number, .. }) = self.subjects.get(place) {
            facts.number = *number;
        }

        facts.mss_bytes = stream.mss_bytes;
        facts.initial_rtt_us = stream.initial_rtt_us;
        opened.facts = Some(Box::new(facts));
        opened
    }

    fn intervals(&self, streams: &[(Stream, &TextStream)]) -> Vec<Event> {
        // The only row of iperf 2 is a total.
        let is_interval = |stream: &TextStream| {
            self.opening.tool != Some(Tool::Iperf2) || stream.intervals.len() > 1
        };
        let with_intervals = || streams.iter().filter(|(_, stream)| is_interval(stream));
        let lengths = with_intervals().map(|(_, stream)| stream.intervals.len());
        let longest = lengths.max().unwrap_or(0);

        let grid_s = streams
            .iter()
            .find_map(|(_, stream)| stream.intervals.first())
            .map(|row| row.end_s - row.start_s);

        let mut events = Vec::new();
        let mut was_omitted = false;

        for position in 0..longest {
            let (rows, printed): (Vec<StreamInterval>, Vec<&Row>) = with_intervals()
                .filter_map(|(opened, stream)| {
                    let row = stream.intervals.get(position)?;
                    Some((self.interval(opened, stream, row), row))
                })
                .unzip();
            let is_omitted = printed.iter().any(|row| row.is_omitted);
            if was_omitted && !is_omitted {
                events.push(Event::OmitEnded);
            }

            was_omitted = is_omitted;

            // Only the end of a test cuts an interval short.
            let is_short =
                |row: &&Row| grid_s.is_some_and(|grid_s| row.end_s - row.start_s < 0.9 * grid_s);
            events.push(Event::Interval(IntervalReport {
                omitted: is_omitted,
                last: position + 1 == longest && printed.iter().any(is_short),
                ..IntervalReport::new(rows)
            }));
        }

        events
    }

    fn interval(&self, opened: &Stream, stream: &TextStream, row: &Row) -> StreamInterval {
        // The rate has as many digits as the amount, and its time is exact.
        let bytes = row.rate_bps * (row.end_s - row.start_s) / 8.0;
        let mut interval =
            StreamInterval::new(opened, ns(row.start_s), ns(row.end_s), bytes.round() as u64);

        if self.opening.is_udp {
            let packets = row
                .udp
                .map(|udp| udp.packets)
                .or(row.count)
                .or_else(|| self.packets_of(row.bytes));
            let udp = row.udp.map_or((0, 0.0), |udp| {
                (i64::try_from(udp.lost).unwrap_or(0), udp.jitter_s)
            });
            interval.udp = Some(UdpInterval::new(packets.unwrap_or(0), udp.0, 0, udp.1));
            return interval;
        }

        interval.tcp = row.count.map(|retransmits| TcpInterval {
            retransmits,
            snd_cwnd_bytes: row.cwnd_bytes.unwrap_or(0),
            rtt_us: row.rtt_us.unwrap_or(0),
            mss_bytes: self.mss_bytes().unwrap_or(0),
            min_rtt_us: stream.initial_rtt_us,
            ..TcpInterval::default()
        });
        interval
    }

    /// Datagrams of an amount, where their length is known.
    fn packets_of(&self, bytes: f64) -> Option<u64> {
        let length = self.opening.datagram_bytes.or(self.opening.block_len_bytes);
        let length = length.filter(|bytes| *bytes > 0)?;
        Some((bytes / f64::from(length)).round() as u64)
    }

    /// The totals of all streams; of a report that ends before them, those of its intervals.
    fn summary(&self, streams: &[(Stream, &TextStream)]) -> Option<Summary> {
        let of_stream = |(opened, stream): &(Stream, &TextStream)| {
            self.totals(opened, stream)
                .or_else(|| self.of_intervals(opened, stream))
        };
        let totals: Option<Vec<StreamSummary>> = streams.iter().map(of_stream).collect();
        let mut summary = Summary {
            streams: totals.filter(|totals| !totals.is_empty())?,
            ..Summary::default()
        };
        self.use_sums(&mut summary);

        (summary.cpu_local, summary.cpu_remote) = self.opening.cpu.unzip();
        let [sender, receiver] = self.opening.congestion.clone();
        summary.sender_congestion = sender;
        summary.receiver_congestion = receiver;
        Some(summary)
    }

    fn totals(&self, opened: &Stream, stream: &TextStream) -> Option<StreamSummary> {
        let is_sender = opened.role == StreamRole::Sender;
        let is_iperf3 = self.opening.tool == Some(Tool::Iperf3);
        let own = stream.unmarked_total().filter(|_| !is_iperf3);

        // A server of iperf3 prints 0 for what only its client knows.
        let is_known = |row: &&Row| self.endpoint() == Endpoint::Client || row.bytes > 0.0;
        let sender = stream
            .sender
            .as_ref()
            .filter(is_known)
            .or(own.filter(|_| is_sender));

        // A client that was ended before the results were exchanged prints 0, too.
        let is_exchanged = |row: &&Row| {
            self.endpoint() == Endpoint::Server || row.bytes > 0.0 || self.opening.is_done
        };
        let receiver = stream
            .receiver
            .as_ref()
            .filter(|row| is_iperf3 || row.udp.is_some())
            .filter(is_exchanged);
        let receiver = receiver.or(own.filter(|_| !is_sender));
        if sender.is_none() && receiver.is_none() {
            return None;
        }

        let counted = |row: &Row| row.udp.map(|udp| (udp.packets, udp.lost, udp.jitter_s));
        Some(StreamSummary {
            sender: sender.map(|row| self.end(row, self.sent(stream, row))),
            receiver: receiver.map(|row| self.end(row, counted(row))),
            tcp: self.tcp(stream, sender),
            ..of(opened)
        })
    }

    /// Counts of this end from the intervals of a stream.
    fn of_intervals(&self, opened: &Stream, stream: &TextStream) -> Option<StreamSummary> {
        let measured: Vec<&Row> = stream
            .intervals
            .iter()
            .filter(|row| !row.is_omitted)
            .collect();
        let (first, last) = measured.first().zip(measured.last())?;
        let bytes: f64 = measured
            .iter()
            .map(|row| row.rate_bps * (row.end_s - row.start_s) / 8.0)
            .sum();
        let udp: Vec<_> = measured.iter().filter_map(|row| row.udp).collect();
        let counted = udp.last().map(|last| {
            let sum = |of: fn(&UdpColumns) -> u64| udp.iter().map(of).fold(0, u64::saturating_add);
            (sum(|row| row.packets), sum(|row| row.lost), last.jitter_s)
        });

        let total = Row {
            start_s: first.start_s,
            end_s: last.end_s,
            bytes,
            rate_bps: 0.0,
            ..(*last).clone()
        };

        let mut summary = of(opened);
        if opened.role == StreamRole::Sender {
            let count = measured.iter().map(|row| row.count).sum::<Option<u64>>();
            summary.sender = Some(self.end(&total, self.sent(stream, &total)));
            summary.tcp = self.tcp(stream, Some(&Row { count, ..total }));
        } else {
            summary.receiver = Some(self.end(&total, counted));
        }

        Some(summary)
    }

    /// Datagrams that the sending end counted. iperf 2 counts the last one, which ends the test, as
    /// well.
    fn sent(&self, stream: &TextStream, row: &Row) -> Option<(u64, u64, f64)> {
        let counted = stream.sent_datagrams.map(|count| count.saturating_sub(1));
        // iperf3 prints the datagrams of a sender as `0/9497 (0%)`.
        let printed = row.udp.map(|udp| udp.packets);

        let of_rows = || {
            stream
                .intervals
                .iter()
                .map(|row| row.count)
                .sum::<Option<u64>>()
        };
        // A count comes before one that rounded amounts give.
        let packets = counted
            .or(printed)
            .or_else(of_rows)
            .or_else(|| self.packets_of(row.bytes))?;
        Some((packets, 0, 0.0))
    }

    fn end(&self, row: &Row, udp: Option<(u64, u64, f64)>) -> EndpointTotals {
        let udp = udp
            .filter(|_| self.opening.is_udp)
            .map(|(packets, lost, jitter_s)| {
                let mut totals = UdpTotals::new(packets, lost, 0, jitter_s);
                totals.omitted_packets = Some(0);
                totals.omitted_lost = Some(0);
                totals
            });
        EndpointTotals::new(row.bytes.round() as u64, duration_ns(row), udp)
    }

    fn tcp(&self, stream: &TextStream, sender: Option<&Row>) -> Option<TcpSummary> {
        if self.opening.is_udp {
            return None;
        }

        let rtts: Vec<u32> = stream
            .intervals
            .iter()
            .filter_map(|row| row.rtt_us)
            .collect();
        let sum: u64 = rtts.iter().map(|us| u64::from(*us)).sum();
        let mean = sum
            .checked_div(rtts.len() as u64)
            .and_then(|us| u32::try_from(us).ok());
        let windows = stream.intervals.iter().filter_map(|row| row.cwnd_bytes);
        Some(TcpSummary {
            retransmits: sender.and_then(|row| row.count),
            max_snd_cwnd_bytes: windows.max(),
            min_rtt_us: rtts.iter().copied().chain(stream.initial_rtt_us).min(),
            mean_rtt_us: mean.filter(|us| *us > 0),
            max_rtt_us: rtts.iter().copied().max(),
            ..TcpSummary::default()
        })
    }

    /// Gives the streams the totals that the program printed of all together: sums of rounded
    /// values are not exact.
    fn use_sums(&self, summary: &mut Summary) {
        let is_two_way = summary
            .streams
            .windows(2)
            .any(|pair| matches!(pair, [a, b] if a.flow != b.flow));
        let sums = self
            .streams
            .iter()
            .zip(&self.subjects)
            .filter(|(_, subject)| **subject == Subject::Sum);
        for (sum, _) in sums {
            let flow = sum.flow.or(summary
                .streams
                .first()
                .map(|stream| stream.flow)
                .filter(|_| !is_two_way));
            let Some(flow) = flow else { continue };
            let unmarked = sum
                .unmarked_total()
                .filter(|_| self.opening.tool != Some(Tool::Iperf3));
            let rows = [
                (sum.sender.as_ref().or(unmarked), Counted::Sender),
                (sum.receiver.as_ref().or(unmarked), Counted::Receiver),
            ];
            for (row, counted) in rows
                .into_iter()
                .filter_map(|(row, counted)| Some((row?, counted)))
            {
                let of_flow = summary
                    .streams
                    .iter_mut()
                    .filter(|stream| stream.flow == flow);
                let ends = of_flow.map(|stream| match counted {
                    Counted::Sender => stream.sender.as_mut(),
                    Counted::Receiver => stream.receiver.as_mut(),
                });
                share_out(row, &mut ends.flatten().collect::<Vec<_>>());
            }
        }
    }
}

/// The summary of a stream, to be filled.
fn of(stream: &Stream) -> StreamSummary {
    StreamSummary {
        id: stream.id,
        role: stream.role,
        flow: stream.flow,
        ..StreamSummary::default()
    }
}

/// Divides a sum among the ends that it is of, in proportion to what each printed.
fn share_out(sum: &Row, ends: &mut [&mut EndpointTotals]) {
    let all: f64 = ends.iter().map(|end| end.bytes as f64).sum();
    // Ends that printed 0 have no shares.
    if all <= 0.0 {
        return;
    }

    for end in ends {
        end.bytes = (sum.bytes * end.bytes as f64 / all).round() as u64;
        end.duration_ns = duration_ns(sum);
    }
}

fn ns(seconds: f64) -> u64 {
    // A float cast saturates.
    (seconds * 1e9).round() as u64
}

/// The time in which the printed amount has the printed rate, where that is the printed time as far
/// as its digits go.
fn duration_ns(row: &Row) -> u64 {
    const ROUNDED: f64 = 0.02;

    let range_s = row.end_s - row.start_s;
    let exact_s = row.bytes * 8.0 / row.rate_bps;
    let is_of_range = (exact_s - range_s).abs() <= ROUNDED * range_s.max(1.0);

    ns(if is_of_range { exact_s } else { range_s })
}
