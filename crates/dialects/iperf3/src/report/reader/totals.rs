//! The totals of both ends.

use linerate_model::event::Endpoint;
use linerate_model::measure;
use linerate_model::summary::{TcpSummary, UdpTotals};
use linerate_model::{
    CpuUsage, EndpointTotals, Event, Flow, Stream, StreamRole, StreamSummary, Summary,
};
use serde_json::Value;

use super::opening::Test;
use super::{above_zero, ns_of, u64_of};

/// Reads the end of a report. Without one, this end's totals are those of the intervals. Returns
/// remarks, too.
pub(super) fn read(
    test: &Test<'_>,
    intervals: &[Event],
    end: &Value,
) -> (Option<Summary>, Vec<String>) {
    let Some(rows) = end["streams"].as_array().filter(|rows| !rows.is_empty()) else {
        return (of_intervals(test, intervals), Vec::new());
    };
    let cpu = |end_name: &str| cpu(&end["cpu_utilization_percent"], end_name);
    let mut summary = Summary {
        cpu_local: cpu("host"),
        cpu_remote: cpu("remote"),
        ..Summary::default()
    };

    let congestion = |name: &str| end[name].as_str().map(str::to_owned);
    summary.sender_congestion = congestion("sender_tcp_congestion");
    summary.receiver_congestion = congestion("receiver_tcp_congestion");

    // A server reports before it has the results of its client; what it has of its peer is that of
    // an earlier test.
    summary.cpu_remote = summary
        .cpu_remote
        .filter(|_| test.endpoint == Endpoint::Client);
    let peer_reported = summary.cpu_remote.is_some();
    let streams = rows
        .iter()
        .filter_map(|row| tcp(test, row, peer_reported).or_else(|| udp(test, row, peer_reported)));
    summary.streams = streams.collect();

    if test.is_udp {
        for flow in [Flow::Forward, Flow::Reverse] {
            udp_receiver(test, &mut summary, end, flow, peer_reported);
        }
    }

    let notes = differences(&summary, end);
    (Some(summary), notes)
}

fn tcp(test: &Test<'_>, row: &Value, peer_reported: bool) -> Option<StreamSummary> {
    let sender = &row["sender"];
    let receiver = row.get("receiver")?;
    let stream = test.stream(sender)?;
    // What the peer did not report is 0.
    let is_known = |role: StreamRole, totals: &EndpointTotals| {
        stream.role == role || peer_reported || totals.bytes > 0
    };
    let totals = |half: &Value, role| totals(half).filter(|totals| is_known(role, totals));
    let summary = StreamSummary {
        sender: totals(sender, StreamRole::Sender),
        receiver: totals(receiver, StreamRole::Receiver),
        tcp: tcp_summary(sender),
        ..summary_of(stream)
    };

    Some(summary)
}

fn totals(half: &Value) -> Option<EndpointTotals> {
    Some(EndpointTotals::new(
        u64_of(&half["bytes"])?,
        ns_of(&half["end"])?,
        None,
    ))
}

/// The windows and round-trip times of the other end are 0.
fn tcp_summary(sender: &Value) -> Option<TcpSummary> {
    let retransmits = u64_of(&sender["retransmits"])?;
    let max_rtt_us = above_zero(&sender["max_rtt"]);
    let tcp = TcpSummary {
        retransmits: Some(retransmits),
        reorder_events: u64_of(&sender["reorder"]).filter(|_| max_rtt_us.is_some()),
        max_snd_cwnd_bytes: above_zero(&sender["max_snd_cwnd"]),
        max_snd_wnd_bytes: above_zero(&sender["max_snd_wnd"]),
        max_rtt_us,
        min_rtt_us: above_zero(&sender["min_rtt"]),
        mean_rtt_us: above_zero(&sender["mean_rtt"]),
        ..TcpSummary::default()
    };

    Some(tcp)
}

/// The sending end of a stream. The receiving one shares its totals with the other streams of its
/// direction.
fn udp(test: &Test<'_>, row: &Value, peer_reported: bool) -> Option<StreamSummary> {
    let row = row.get("udp")?;
    let stream = test.stream(row)?;
    let is_local = stream.role == StreamRole::Sender;
    let mut counted = udp_totals(u64_of(&row["packets"])?, row);
    let receiver = u64_of(&row["lost_packets"]).map(|_| EndpointTotals::new(0, 0, Some(counted)));
    // The one object of a stream has the receiver's values, of which a sender has none.
    counted.lost = 0;
    counted.out_of_order = 0;
    counted.jitter_s = 0.0;
    let sender = totals(row).filter(|totals| is_local || peer_reported || totals.bytes > 0);

    let summary = StreamSummary {
        sender: sender.map(|totals| EndpointTotals {
            udp: Some(counted),
            ..totals
        }),
        receiver,
        ..summary_of(stream)
    };

    Some(summary)
}

/// The stream, without totals.
fn summary_of(stream: &Stream) -> StreamSummary {
    StreamSummary {
        id: stream.id,
        role: stream.role,
        flow: stream.flow,
        ..StreamSummary::default()
    }
}

/// The report has the measured part alone.
fn udp_totals(packets: u64, row: &Value) -> UdpTotals {
    UdpTotals {
        packets,
        lost: u64_of(&row["lost_packets"]).unwrap_or(0),
        out_of_order: u64_of(&row["out_of_order"]).unwrap_or(0),
        jitter_s: row["jitter_ms"].as_f64().unwrap_or(0.0) / 1e3,
        omitted_packets: Some(0),
        omitted_lost: Some(0),
    }
}

/// Divides what the receiving end counted among the streams. Releases before 3.7 report datagrams
/// alone, all of one length.
fn udp_receiver(
    test: &Test<'_>,
    summary: &mut Summary,
    end: &Value,
    flow: Flow,
    peer_reported: bool,
) {
    let is_suffixed = flow == Flow::Reverse && end["sum_bidir_reverse"].is_object();
    let suffix = if is_suffixed { "_bidir_reverse" } else { "" };
    let received = end.get(format!("sum_received{suffix}"));
    let sum = received.unwrap_or(&end["sum"]);

    let mut streams: Vec<&mut StreamSummary> = summary
        .streams
        .iter_mut()
        .filter(|stream| stream.flow == flow)
        .collect();
    let counted = streams
        .iter()
        .map(|stream| stream.receiver.and_then(|end| end.udp).unwrap_or_default());
    let counted: Vec<UdpTotals> = counted.collect();
    let arrived = |udp: &UdpTotals| udp.packets.saturating_sub(udp.lost);
    let weights: Vec<u64> = counted.iter().map(arrived).collect();
    let blocks = weights
        .iter()
        .fold(0_u64, |sum, count| sum.saturating_add(*count));
    let bytes = match received {
        Some(received) => u64_of(&received["bytes"]).unwrap_or(0),
        // Reports without `sum_received` count received datagrams alone.
        None => blocks.saturating_mul(test.block_len_bytes),
    };
    let is_known = test.role_of(flow) == StreamRole::Receiver || peer_reported || bytes > 0;
    let duration_ns = ns_of(&sum["end"]).filter(|_| is_known);

    let packets: Vec<u64> = counted.iter().map(|udp| udp.packets).collect();
    let packets = match received.and_then(|received| u64_of(&received["packets"])) {
        Some(all) => shares(all, &packets),
        None => packets,
    };
    for ((stream, bytes), packets) in streams.iter_mut().zip(shares(bytes, &weights)).zip(packets) {
        stream.receiver = stream.receiver.zip(duration_ns).map(|(end, duration_ns)| {
            let udp = end.udp.map(|mut udp| {
                udp.packets = packets;
                udp
            });
            EndpointTotals::new(bytes, duration_ns, udp)
        });
    }
}

/// Divides a sum in proportion to weights; the first takes what is left over.
fn shares(sum: u64, weights: &[u64]) -> Vec<u64> {
    let all: u128 = weights.iter().map(|weight| u128::from(*weight)).sum();
    let share = |weight: &u64| {
        // A share is at most the sum, so that the cast is exact.
        (u128::from(sum) * u128::from(*weight))
            .checked_div(all)
            .unwrap_or(0) as u64
    };
    let mut shares: Vec<u64> = weights.iter().map(share).collect();
    let left = shares
        .iter()
        .fold(sum, |left, share| left.saturating_sub(*share));

    // Divisions round down; the rest keeps the sum exact.
    if let Some(first) = shares.first_mut() {
        *first += left;
    }

    shares
}

fn cpu(usage: &Value, end: &str) -> Option<CpuUsage> {
    let percent = |kind: &str| usage[format!("{end}_{kind}")].as_f64();
    let user = percent("user").unwrap_or(0.0);
    let system = percent("system").unwrap_or(0.0);
    let usage = CpuUsage {
        total_percent: percent("total")?,
        user_percent: user,
        system_percent: system,
    };
    (usage != CpuUsage::default()).then_some(usage)
}

/// This end's totals of a report without an end.
fn of_intervals(test: &Test<'_>, intervals: &[Event]) -> Option<Summary> {
    let mut ends: Vec<Option<(EndpointTotals, Option<u64>)>> = vec![None; test.streams.len()];
    for event in intervals {
        let Event::Interval(interval) = event else {
            continue;
        };
        for row in interval.streams.iter().filter(|_| !interval.omitted) {
            let Some(end) = ends.get_mut(row.id.0 as usize) else {
                continue;
            };
            let (mut totals, retransmits) = end.unwrap_or((EndpointTotals::default(), Some(0)));
            totals.bytes = totals.bytes.saturating_add(row.bytes);
            // Times begin again after the warm-up: the last end is the duration.
            totals.duration_ns = row.end_ns;

            let retransmits = retransmits
                .zip(row.tcp)
                .map(|(sum, tcp)| sum.saturating_add(tcp.retransmits));
            *end = Some((totals, retransmits));
        }
    }

    let streams = test.streams.iter().zip(ends).filter_map(|(stream, end)| {
        let (totals, retransmits) = end?;
        let is_sender = stream.role == StreamRole::Sender;
        let summary = StreamSummary {
            sender: is_sender.then_some(totals),
            receiver: (!is_sender).then_some(totals),
            tcp: retransmits.map(|count| TcpSummary {
                retransmits: Some(count),
                ..TcpSummary::default()
            }),
            ..summary_of(stream)
        };

        Some(summary)
    });
    let streams: Vec<StreamSummary> = streams.collect();
    (!streams.is_empty()).then(|| Summary {
        streams,
        ..Summary::default()
    })
}

/// Sums of the report that are not those of its streams. The sums of a test in two directions are
/// those of one.
fn differences(summary: &Summary, end: &Value) -> Vec<String> {
    let flow = summary.streams.first().map(|stream| stream.flow);
    let flow = flow.unwrap_or_default();
    let sums = [
        ("sum_sent", measure::sent(summary, flow)),
        ("sum_received", measure::received(summary, flow)),
    ];
    let notes = sums.into_iter().filter_map(|(name, total)| {
        let sum = u64_of(&end[name]["bytes"])?;
        let bytes = total?.bytes;
        (sum != bytes).then(|| format!("the streams have {bytes} bytes together, {name} has {sum}"))
    });

    notes.collect()
}
