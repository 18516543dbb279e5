//! Counts of a test of iperf3, as the result of a phase.

use linerate_engine::dialect::iperf3::client::ClientResult;
use linerate_model::interval::{StreamInterval, TcpInterval};
use linerate_model::path::{EndpointPhase, LoadSample, PathDirection, PhaseResult, StreamTotals};
use linerate_model::summary::{CpuUsage, EndpointTotals, StreamSummary, Summary};
use linerate_model::{Event, EventSink, Flow, SinkError, Stream, StreamRole};
use linerate_sys::clock;

/// Events of a test that its result needs.
#[derive(Default)]
pub(super) struct Collected {
    pub is_accepted: bool,
    /// Start of the data, monotonic ns; 0 before.
    pub started_ns: u64,
    streams: Vec<(Stream, Option<TcpInterval>)>,
}

impl EventSink for Collected {
    fn event(&mut self, event: &Event) -> Result<(), SinkError> {
        match event {
            Event::TestAccepted(_) => self.is_accepted = true,
            Event::StreamOpened(stream) => self.streams.push((stream.clone(), None)),
            Event::TestStarted { at_monotonic_ns } => {
                self.started_ns = at_monotonic_ns.unwrap_or_else(clock::monotonic_ns);
            }
            Event::Interval(report) => report.streams.iter().for_each(|row| self.add(row)),
            _ => {}
        }

        Ok(())
    }
}

impl Collected {
    fn add(&mut self, row: &StreamInterval) {
        let Some((_, whole)) = self
            .streams
            .iter_mut()
            .find(|(stream, _)| stream.id == row.id)
        else {
            return;
        };
        let Some(newest) = row.tcp else { return };
        *whole = Some(whole.map_or(newest, |before| joined(before, newest)));
    }
}

/// Counts of both intervals, and the state at the end of the second.
fn joined(before: TcpInterval, newest: TcpInterval) -> TcpInterval {
    let sum = |one: Option<u64>, other: Option<u64>| Some(one?.saturating_add(other?));
    let mut tcp = newest;
    tcp.retransmits = before.retransmits.saturating_add(newest.retransmits);
    tcp.dsack_segments = sum(before.dsack_segments, newest.dsack_segments);
    tcp.limits = before
        .limits
        .zip(newest.limits)
        .map(|(one, other)| one.saturating_add(other));

    tcp
}

/// Fills the result of a load.
pub(super) fn streams(
    result: &mut PhaseResult,
    ran: &ClientResult,
    collected: &Collected,
    load: Vec<LoadSample>,
) {
    let elapsed_ns = load.last().map_or(0, |sample| sample.at_ns);
    let Some(summary) = &ran.summary else {
        result.local = EndpointPhase {
            elapsed_ns,
            load,
            ..EndpointPhase::default()
        };
        return;
    };

    let totals = |stream: &StreamSummary| own_totals(stream, collected);
    result.local = EndpointPhase {
        elapsed_ns,
        load,
        streams: summary.streams.iter().map(totals).collect(),
        cpu_ns: cpu_ns(summary.cpu_local, elapsed_ns),
        ..EndpointPhase::default()
    };
    result.remote = ran.outcome.is_ok().then(|| EndpointPhase {
        elapsed_ns,
        streams: summary.streams.iter().filter_map(far_totals).collect(),
        // With the facts of its host: a server without them counts as one that did not report its
        // CPU time.
        cpu_ns: ran
            .peer_facts
            .as_ref()
            .map_or(0, |_| cpu_ns(summary.cpu_remote, elapsed_ns)),
        ..EndpointPhase::default()
    });
}

fn own_totals(stream: &StreamSummary, collected: &Collected) -> StreamTotals {
    let opened = collected
        .streams
        .iter()
        .find(|(opened, _)| opened.id == stream.id);

    StreamTotals {
        stream: stream.id.0,
        direction: Some(direction(stream.flow)),
        bytes: stream.local().map_or(0, |totals| totals.bytes),
        local: opened.map(|(opened, _)| opened.local),
        remote: opened.map(|(opened, _)| opened.remote),
        tcp: opened.and_then(|(_, tcp)| *tcp),
        congestion: opened.and_then(|(opened, _)| opened.effective.congestion.clone()),
        ..StreamTotals::default()
    }
}

/// A sender at the server: iperf3 reports what it sent again, and no other state of its TCP.
fn far_totals(stream: &StreamSummary) -> Option<StreamTotals> {
    let sender = stream
        .sender
        .filter(|_| stream.role == StreamRole::Receiver)?;
    let retransmits = stream.tcp.and_then(|tcp| tcp.retransmits);
    let totals = StreamTotals {
        stream: stream.id.0,
        direction: Some(direction(stream.flow)),
        bytes: sender.bytes,
        tcp: retransmits.map(|retransmits| TcpInterval {
            retransmits,
            ..TcpInterval::default()
        }),
        ..StreamTotals::default()
    };

    Some(totals)
}

fn direction(flow: Flow) -> PathDirection {
    match flow {
        Flow::Forward => PathDirection::Up,
        Flow::Reverse => PathDirection::Down,
    }
}

fn cpu_ns(usage: Option<CpuUsage>, elapsed_ns: u64) -> u64 {
    usage.map_or(0, |usage| {
        (usage.total_percent / 100.0 * elapsed_ns as f64) as u64
    })
}

/// Fills the result of datagrams. The count of the other end is absent where it sent no results.
pub(super) fn datagrams(result: &mut PhaseResult, ran: &ClientResult) {
    let Some(stream) = ran
        .summary
        .as_ref()
        .and_then(|summary: &Summary| summary.streams.first())
    else {
        return;
    };
    let sender = stream.sender.map(sent);
    let receiver = stream.receiver.map(received);
    let (local, remote) = match stream.role {
        StreamRole::Sender => (sender, receiver),
        StreamRole::Receiver => (receiver, sender),
    };
    result.local = local.unwrap_or_default();
    result.remote = remote;
}

fn sent(totals: EndpointTotals) -> EndpointPhase {
    let datagrams_sent = totals.udp.map_or(0, |udp| udp.packets);
    EndpointPhase {
        elapsed_ns: totals.duration_ns,
        datagrams_sent,
        ..EndpointPhase::default()
    }
}

fn received(totals: EndpointTotals) -> EndpointPhase {
    let udp = totals.udp.unwrap_or_default();
    EndpointPhase {
        elapsed_ns: totals.duration_ns,
        // Receivers of iperf3 report the highest number that arrived and what is missing below it.
        datagrams_received: udp.packets.saturating_sub(udp.lost),
        reordered: udp.out_of_order,
        jitter_ns: totals.udp.map(|udp| (udp.jitter_s.max(0.0) * 1e9) as u64),
        ..EndpointPhase::default()
    }
}

#[cfg(test)]
mod tests {
    use linerate_model::interval::TcpLimits;
    use linerate_model::summary::UdpTotals;

    use super::*;

    #[test]
    fn receivers_count_what_is_not_missing_below_the_highest_number() {
        let udp = UdpTotals::new(1000, 30, 4, 0.000_25);
        let end = received(EndpointTotals::new(0, 7, Some(udp)));
        assert_eq!(
            (
                end.datagrams_received,
                end.reordered,
                end.jitter_ns,
                end.elapsed_ns
            ),
            (970, 4, Some(250_000), 7)
        );
        assert_eq!(received(EndpointTotals::default()).jitter_ns, None);
    }

    #[test]
    fn counts_of_intervals_add_up_and_states_are_the_last() {
        let interval = |retransmits, rtt_us, busy_us, dsack_segments| TcpInterval {
            retransmits,
            rtt_us,
            dsack_segments,
            limits: Some(TcpLimits {
                busy_us,
                rwnd_limited_us: 0,
                sndbuf_limited_us: 0,
            }),
            ..TcpInterval::default()
        };
        let whole = joined(interval(3, 100, 10, Some(1)), interval(4, 90, 20, None));
        assert_eq!(
            (whole.retransmits, whole.rtt_us, whole.dsack_segments),
            (7, 90, None)
        );
        assert_eq!(whole.limits.map(|limits| limits.busy_us), Some(30));
    }
}
