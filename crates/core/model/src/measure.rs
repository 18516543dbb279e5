//! The definition of each figure of a test. The dialects' reports keep the formulas of the
//! originals.
//!
//! A figure of a direction is that of all its streams: it is absent when one of them is unknown.

mod catalogue;
mod of_path;

pub use catalogue::{Better, Comparison, MeasureInfo, MeasureName, Unit};
pub use of_path::{of_path, path_names, path_target, why_absent};

use crate::stream::{Flow, StreamRole};
use crate::summary::{CpuUsage, EndpointTotals, StreamSummary, Summary, UdpTotals};

/// Counts of the sending end in a direction. Its rate is that of all bytes over the longest
/// duration.
pub fn sent(summary: &Summary, flow: Flow) -> Option<EndpointTotals> {
    all(summary, flow, |stream| stream.sender).and_then(sum)
}

/// Counts of the receiving end in a direction. Its rate is that of all bytes over the longest
/// duration.
pub fn received(summary: &Summary, flow: Flow) -> Option<EndpointTotals> {
    all(summary, flow, |stream| stream.receiver).and_then(sum)
}

/// Counts of this end in one role.
pub fn counted_here(summary: &Summary, role: StreamRole) -> Option<EndpointTotals> {
    let streams = summary.streams.iter().filter(|stream| stream.role == role);
    sum(streams
        .filter_map(|stream| stream.local().copied())
        .collect())
}

/// Segments retransmitted in the measured part of a direction.
pub fn retransmits(summary: &Summary, flow: Flow) -> Option<u64> {
    Some(
        all(summary, flow, |stream| stream.tcp?.retransmits)?
            .iter()
            .sum(),
    )
}

/// Retransmitted segments in relation to the segments that the payload fills.
pub fn retransmit_share(retransmits: u64, bytes: u64, mss_bytes: u32) -> Option<f64> {
    // Without a count of sent segments, those that the payload fills are the reference.
    let segments = bytes as f64 / f64::from(mss_bytes.max(1));
    (bytes > 0).then(|| retransmits as f64 / segments)
}

/// Datagrams of a direction, and those of them that did not arrive.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Datagrams {
    /// Those that were sent; where the sending end did not report, those up to the highest sequence
    /// number that arrived.
    pub sent: u64,
    /// Sent minus received.
    pub lost: u64,
}

impl Datagrams {
    /// Share of the datagrams, 0..=1, that did not arrive; `None` without any.
    pub fn lost_share(&self) -> Option<f64> {
        (self.sent > 0).then(|| self.lost as f64 / self.sent as f64)
    }
}

/// Datagrams of the measured part of a direction. A receiver does not miss what follows the last
/// datagram that arrives, so what is lost is what the sending end sent and the receiving end did
/// not receive.
pub fn datagrams(summary: &Summary, flow: Flow) -> Option<Datagrams> {
    let receiver = received(summary, flow)?;
    let sender = sent(summary, flow);

    let warm_up = |udp: &UdpTotals| {
        (
            udp.omitted_packets.unwrap_or(0),
            udp.omitted_lost.unwrap_or(0),
        )
    };
    let udp = receiver.udp?;
    let (omitted, omitted_lost) = warm_up(&udp);
    let counted = Datagrams {
        sent: udp.packets.saturating_sub(omitted),
        lost: udp.lost.saturating_sub(omitted_lost),
    };

    let Some((sender, udp_sent)) = sender.and_then(|sender| Some((sender, sender.udp?))) else {
        return Some(counted);
    };
    // Counts with and without the warm-up cannot be compared.
    let is_comparable = match (udp_sent.omitted_packets, udp.omitted_packets) {
        (None, Some(omitted)) | (Some(omitted), None) => omitted == 0,
        _ => true,
    };
    if !is_comparable {
        return Some(counted);
    }

    let sent = udp_sent.packets.saturating_sub(warm_up(&udp_sent).0);
    // A receiver counts up to the highest number that arrived: what was sent after it is lost.
    let behind_last = sent
        .saturating_sub(counted.sent)
        .saturating_sub(sent_too_late(flow, sent, &sender, &receiver));
    Some(Datagrams {
        sent: sent.max(counted.sent),
        lost: counted.lost.saturating_add(behind_last),
    })
}

/// The same with the warm-up, as counters of the hosts see it.
pub fn datagrams_with_warm_up(summary: &Summary, flow: Flow) -> Option<Datagrams> {
    let mut whole = summary.clone();
    for end in whole
        .streams
        .iter_mut()
        .flat_map(|stream| [&mut stream.sender, &mut stream.receiver])
    {
        if let Some(udp) = end.as_mut().and_then(|end| end.udp.as_mut()) {
            // Nothing counts as omitted: the counts of the whole test remain.
            udp.omitted_packets = Some(0);
            udp.omitted_lost = Some(0);
        }
    }

    datagrams(&whole, flow)
}

/// Datagrams that a server sent after its client, which ends the test, had stopped to count: one
/// round trip of them.
fn sent_too_late(flow: Flow, sent: u64, sender: &EndpointTotals, receiver: &EndpointTotals) -> u64 {
    const LONGEST_S: f64 = 0.5;

    if flow == Flow::Forward || sender.duration_ns == 0 {
        return 0;
    }

    let longer_s = (sender.seconds() - receiver.seconds()).clamp(0.0, LONGEST_S);
    // A float cast saturates.
    (sent as f64 * longer_s / sender.seconds()).ceil() as u64
}

/// Mean of the streams' mean round-trip times in µs.
pub fn rtt_mean_us(summary: &Summary, flow: Flow) -> Option<f64> {
    let means = all(summary, flow, |stream| stream.tcp?.mean_rtt_us)?;
    Some(means.iter().map(|us| f64::from(*us)).sum::<f64>() / means.len() as f64)
}

/// Lowest round-trip time of all streams in µs.
pub fn rtt_min_us(summary: &Summary, flow: Flow) -> Option<f64> {
    all(summary, flow, |stream| stream.tcp?.min_rtt_us)?
        .into_iter()
        .min()
        .map(f64::from)
}

/// Jain's fairness index of the received rates of several streams (RFC 5166 section 2.3).
pub fn fairness_jain(summary: &Summary, flow: Flow) -> Option<f64> {
    let rates: Vec<f64> = all(summary, flow, |stream| stream.receiver)?
        .iter()
        .map(EndpointTotals::bits_per_second)
        .collect();
    let (sum, squares) = rates.iter().fold((0.0, 0.0), |(sum, squares), rate| {
        (sum + rate, squares + rate * rate)
    });
    // The index of one stream is always 1, and that of no data is not defined.
    (rates.len() > 1 && squares > 0.0).then(|| sum * sum / (rates.len() as f64 * squares))
}

/// CPUs that were busy on average.
pub fn cpus(usage: CpuUsage) -> f64 {
    usage.total_percent / 100.0
}

fn all<T>(
    summary: &Summary,
    flow: Flow,
    value: impl Fn(&StreamSummary) -> Option<T>,
) -> Option<Vec<T>> {
    let streams = summary.streams.iter().filter(|stream| stream.flow == flow);
    let values: Option<Vec<T>> = streams.map(value).collect();
    values.filter(|values| !values.is_empty())
}

fn sum(ends: Vec<EndpointTotals>) -> Option<EndpointTotals> {
    let streams = ends.len() as f64;
    let mut sum = ends.into_iter().reduce(|sum, next| EndpointTotals {
        bytes: sum.bytes.saturating_add(next.bytes),
        // Streams run at the same time, so that their durations do not add up.
        duration_ns: sum.duration_ns.max(next.duration_ns),
        udp: sum.udp.zip(next.udp).map(|(sum, next)| UdpTotals {
            packets: sum.packets + next.packets,
            lost: sum.lost + next.lost,
            out_of_order: sum.out_of_order + next.out_of_order,
            jitter_s: sum.jitter_s + next.jitter_s,
            omitted_packets: sum
                .omitted_packets
                .zip(next.omitted_packets)
                .map(|(a, b)| a + b),
            omitted_lost: sum.omitted_lost.zip(next.omitted_lost).map(|(a, b)| a + b),
        }),
    })?;
    if let Some(udp) = &mut sum.udp {
        // iperf3 prints the mean jitter of the streams in a sum.
        udp.jitter_s /= streams;
    }

    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::TcpSummary;

    fn stream(flow: Flow, receiver: Option<EndpointTotals>) -> StreamSummary {
        StreamSummary {
            flow,
            receiver,
            tcp: Some(TcpSummary {
                retransmits: Some(3),
                ..TcpSummary::default()
            }),
            ..StreamSummary::default()
        }
    }

    fn end(bytes: u64, seconds: u64, udp: Option<UdpTotals>) -> Option<EndpointTotals> {
        Some(EndpointTotals {
            bytes,
            duration_ns: seconds * 1_000_000_000,
            udp,
        })
    }

    fn summary(streams: Vec<StreamSummary>) -> Summary {
        Summary {
            streams,
            ..Summary::default()
        }
    }

    #[test]
    fn totals_of_a_direction_are_those_of_all_its_streams() {
        let forward = |receiver| stream(Flow::Forward, receiver);
        let both = summary(vec![
            forward(end(1000, 1, None)),
            forward(end(500, 2, None)),
            stream(Flow::Reverse, end(9, 9, None)),
        ]);
        let rate = received(&both, Flow::Forward).map(|end| end.bits_per_second());
        assert_eq!(rate, Some(6000.0));
        assert_eq!(retransmits(&both, Flow::Forward), Some(6));
        assert_eq!(sent(&both, Flow::Forward), None);

        let partial = summary(vec![forward(end(1000, 1, None)), forward(None)]);
        assert_eq!(received(&partial, Flow::Forward), None);
        assert_eq!(received(&partial, Flow::Reverse), None);
    }

    #[test]
    fn jitter_of_several_streams_is_their_mean_as_in_the_sums_of_iperf3() {
        // `iperf3 -u -P 4` of 3.22 printed these, and 0.337 ms as their sum.
        let jitters_ms = [0.038, 1.057, 0.051, 0.201];
        let streams = jitters_ms.map(|ms| {
            let udp = UdpTotals::new(153, 0, 0, ms / 1e3);
            stream(Flow::Forward, end(1, 1, Some(udp)))
        });
        let total = received(&summary(streams.into()), Flow::Forward).expect("all reported");
        let jitter_s = total.udp.expect("datagrams").jitter_s;
        assert!((jitter_s - 0.000_336_75).abs() < 1e-9, "{jitter_s}");
    }

    #[test]
    fn loss_is_that_of_the_measured_part() {
        let udp = |packets, lost| UdpTotals {
            packets,
            lost,
            omitted_packets: Some(100),
            omitted_lost: Some(10),
            ..UdpTotals::default()
        };
        let streams =
            [udp(300, 20), udp(300, 10)].map(|udp| stream(Flow::Forward, end(1, 1, Some(udp))));
        let datagrams = datagrams(&summary(streams.into()), Flow::Forward).expect("all reported");
        assert_eq!(datagrams.lost_share(), Some(0.025));
    }

    #[test]
    fn loss_is_sent_minus_received_where_both_are_known() {
        let rows = [
            // Direction, sent, seen and lost at the receiver, seconds of the sender and of the
            // receiver; lost of sent.
            (Flow::Forward, 1000, 1000, 10, [3, 3], (10, 1000)),
            (Flow::Forward, 1297, 476, 0, [3, 3], (821, 1297)),
            (Flow::Forward, 1297, 0, 0, [3, 3], (1297, 1297)),
            // The receiver of iperf 2 counts up to the last arrival.
            (Flow::Forward, 1000, 400, 0, [10, 4], (600, 1000)),
            // What was on its way when the receiving client stopped is no loss, a second of it is.
            (Flow::Reverse, 1100, 1050, 0, [11, 10], (0, 1100)),
            (Flow::Reverse, 1100, 500, 5, [11, 10], (555, 1100)),
            // Duplicates are no gain.
            (Flow::Forward, 1000, 1010, 0, [3, 3], (0, 1010)),
        ];
        for (flow, sent, seen, lost, [sender_s, receiver_s], expected) in rows {
            let udp = |packets, lost| {
                Some(UdpTotals {
                    packets,
                    lost,
                    omitted_packets: Some(0),
                    ..UdpTotals::default()
                })
            };
            let mut one = stream(flow, end(1, receiver_s, udp(seen, lost)));
            one.sender = end(1, sender_s, udp(sent, 0));

            let found = datagrams(&summary(vec![one]), flow).map(|found| (found.lost, found.sent));
            assert_eq!(found, Some(expected), "{flow:?}: {sent} sent, {seen} seen");
        }
    }

    #[test]
    fn counts_with_and_without_a_warm_up_are_not_compared() {
        let udp = |packets, omitted| {
            Some(UdpTotals {
                packets,
                omitted_packets: omitted,
                ..UdpTotals::default()
            })
        };
        let mut one = stream(Flow::Forward, end(1, 1, udp(300, Some(100))));
        one.sender = end(1, 1, udp(300, None));
        assert_eq!(
            datagrams(&summary(vec![one]), Flow::Forward),
            Some(Datagrams { sent: 200, lost: 0 })
        );
    }
}
