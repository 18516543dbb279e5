//! `end`: the whole test, from both sides.

use linerate_document::{members, present};
use linerate_model::summary::{FileSummary, TcpSummary};
use linerate_model::{
    Direction, Flow, StreamId, StreamRole, StreamSummary, Summary, TestSpec, Transport,
};
use serde_json::{Map, Value, json};

use crate::report::text::{congestion, display_id, file_percent};
use crate::report::totals::{Totals, UdpView, View, percent};

pub(super) fn end(summary: &Summary, spec: &TestSpec) -> Map<String, Value> {
    let is_udp = spec.transport == Transport::Udp;
    let is_bidirectional = spec.direction == Direction::Bidirectional;

    let streams = summary.streams.iter().map(|stream| {
        let totals = Totals::of_stream(stream, spec);
        if is_udp {
            json!({"udp": udp_stream(stream.id, &totals)})
        } else {
            tcp_stream(stream, &totals)
        }
    });
    let streams: Vec<Value> = streams.collect();
    let mut end = members(json!({"streams": streams}));

    for flow in [Flow::Forward, Flow::Reverse] {
        // Only a test of two directions has both sums, so only there the keys differ.
        let suffix = match flow {
            Flow::Reverse if is_bidirectional => "_bidir_reverse",
            _ => "",
        };
        let Some(totals) = Totals::of_flow(summary, flow, spec) else {
            continue;
        };
        let sums = if is_udp {
            udp_sums(&totals)
        } else {
            tcp_sums(&totals)
        };
        end.extend(
            sums.into_iter()
                .map(|(key, sum)| (format!("{key}{suffix}"), sum)),
        );
    }

    end.insert("cpu_utilization_percent".into(), cpu(summary));
    // The names come with the results of both ends, and only TCP has them.
    if spec.transport == Transport::Tcp {
        end.extend(congestion_members(summary, is_bidirectional));
    }

    end
}

fn tcp_stream(stream: &StreamSummary, totals: &Totals) -> Value {
    let file = stream.file.as_ref();
    let halves = present(json!({
        "sender": tcp_sender(stream, totals),
        "diskfile": file.map(|file| disk_file(file, totals)),
        "receiver": tcp_receiver(stream, totals),
    }));
    Value::Object(halves)
}

fn tcp_sender(stream: &StreamSummary, totals: &Totals) -> Value {
    let mut half = members(json!({"socket": display_id(stream.id)}));
    half.extend(amount(&totals.sender));

    // Absent where the sending end did not count: a sender without TCP_INFO.
    if let (Some(retransmits), Some(tcp)) = (totals.retransmits, &stream.tcp) {
        half.insert("retransmits".into(), retransmits.into());
        half.extend(tcp_facts(tcp));
    }

    with_role(half, totals.role)
}

/// iperf3 gives the time of this end in `seconds` here on either end; `end` is the receiver's.
fn tcp_receiver(stream: &StreamSummary, totals: &Totals) -> Value {
    let mut half = members(json!({"socket": display_id(stream.id)}));
    half.extend(amount(&totals.receiver));
    half.insert("seconds".into(), totals.local().seconds().into());
    with_role(half, totals.role)
}

/// A receiver does not know the windows and round-trip times of the other end, and the format
/// cannot express that.
fn tcp_facts(tcp: &TcpSummary) -> Map<String, Value> {
    members(json!({
        "reorder": tcp.reorder_events.unwrap_or(0),
        "max_snd_cwnd": tcp.max_snd_cwnd_bytes.unwrap_or(0),
        "max_snd_wnd": tcp.max_snd_wnd_bytes.unwrap_or(0),
        "max_rtt": tcp.max_rtt_us.unwrap_or(0),
        "min_rtt": tcp.min_rtt_us.unwrap_or(0),
        "mean_rtt": tcp.mean_rtt_us.unwrap_or(0),
    }))
}

fn disk_file(file: &FileSummary, totals: &Totals) -> Value {
    json!({
        "sent": totals.sender.bytes,
        "received": totals.receiver.bytes,
        "size": file.size_bytes,
        "percent_sent": file_percent(totals.sender.bytes, file.size_bytes),
        "percent_received": file_percent(totals.receiver.bytes, file.size_bytes),
        "filename": file.name,
    })
}

fn tcp_sums(totals: &Totals) -> Vec<(&'static str, Value)> {
    let mut sent = amount(&totals.sender);
    if let Some(retransmits) = totals.retransmits {
        sent.insert("retransmits".into(), retransmits.into());
    }

    let received = amount(&totals.receiver);
    vec![
        ("sum_sent", with_role(sent, totals.role)),
        ("sum_received", with_role(received, totals.role)),
    ]
}

fn udp_stream(id: StreamId, totals: &Totals) -> Value {
    let mut stream = members(json!({"socket": display_id(id)}));
    // One object for both ends: amounts of the sender, losses of the receiver.
    stream.extend(amount(&totals.sender));
    stream.extend(losses(&combined(totals)));
    stream.insert(
        "out_of_order".into(),
        totals.receiver.udp.out_of_order.into(),
    );

    with_role(stream, totals.role)
}

fn udp_sums(totals: &Totals) -> Vec<(&'static str, Value)> {
    // The historic sum mixes both ends: the receiver's time with what was sent and how fast.
    let mut sum = amount(&totals.sender);
    sum.insert("end".into(), totals.receiver.seconds().into());
    sum.insert("seconds".into(), totals.receiver.seconds().into());
    sum.extend(losses(&combined(totals)));

    let mut sent = amount(&totals.sender);
    // A sender knows of no losses, but the keys are always there.
    sent.extend(losses(&UdpView {
        packets: totals.sender.udp.packets,
        ..UdpView::default()
    }));
    let mut received = amount(&totals.receiver);
    received.extend(losses(&totals.receiver.udp));

    vec![
        ("sum", with_role(sum, totals.role)),
        ("sum_sent", with_role(sent, StreamRole::Sender)),
        ("sum_received", with_role(received, StreamRole::Receiver)),
    ]
}

/// The receiver's losses out of the sender's datagrams.
fn combined(totals: &Totals) -> UdpView {
    UdpView {
        packets: totals.packets(),
        ..totals.receiver.udp
    }
}

fn losses(udp: &UdpView) -> Map<String, Value> {
    members(json!({
        "jitter_ms": udp.jitter_s * 1000.0,
        "lost_packets": udp.lost,
        "packets": udp.packets,
        "lost_percent": udp.lost.map(|lost| percent(lost, udp.packets)),
    }))
}

fn amount(view: &View) -> Map<String, Value> {
    members(json!({
        "start": 0,
        "end": view.seconds(),
        "seconds": view.seconds(),
        "bytes": view.bytes,
        "bits_per_second": view.bits_per_second(),
    }))
}

/// `sender` is the role of this end, in the totals of both ends.
fn with_role(mut members: Map<String, Value>, role: StreamRole) -> Value {
    members.insert("sender".into(), (role == StreamRole::Sender).into());
    Value::Object(members)
}

fn cpu(summary: &Summary) -> Value {
    let host = summary.cpu_local.unwrap_or_default();
    let remote = summary.cpu_remote.unwrap_or_default();
    json!({
        "host_total": host.total_percent,
        "host_user": host.user_percent,
        "host_system": host.system_percent,
        "remote_total": remote.total_percent,
        "remote_user": remote.user_percent,
        "remote_system": remote.system_percent,
    })
}

/// Of a test in two directions iperf3 reports the reverse one.
fn congestion_members(summary: &Summary, is_bidirectional: bool) -> Map<String, Value> {
    let (sender, receiver) = congestion(summary, Flow::Reverse, is_bidirectional);
    present(json!({"sender_tcp_congestion": sender, "receiver_tcp_congestion": receiver}))
}
