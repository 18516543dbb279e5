//! One element of `intervals`.

use linerate_document::members;
use linerate_model::interval::{IntervalSum, StreamInterval, TcpInterval, UdpInterval};
use linerate_model::units::{ns_to_s, rate_bps};
use linerate_model::{Direction, Flow, IntervalReport, StreamRole, TestSpec};
use serde_json::{Map, Value, json};

use crate::report::text::display_id;
use crate::report::totals::interval_lost_percent;

pub(super) fn interval(report: &IntervalReport, spec: &TestSpec) -> Value {
    let rows = report.streams.iter().map(|row| stream(row, report.omitted));
    let rows: Vec<Value> = rows.collect();
    let mut members = members(json!({"streams": rows}));

    let is_bidirectional = spec.direction == Direction::Bidirectional;
    for flow in [Flow::Forward, Flow::Reverse] {
        let key = match flow {
            Flow::Reverse if is_bidirectional => "sum_bidir_reverse",
            _ => "sum",
        };
        if let Some(total) = report.sum(flow) {
            members.insert(key.into(), sum(&total, report.omitted));
        }
    }

    Value::Object(members)
}

fn stream(row: &StreamInterval, omitted: bool) -> Value {
    let mut members = members(json!({"socket": display_id(row.id)}));
    members.extend(amount(row.start_ns, row.end_ns, row.bytes));

    if let Some(tcp) = &row.tcp {
        members.extend(tcp_facts(tcp));
    }

    if let Some(udp) = &row.udp {
        members.extend(udp_facts(udp, row.role));
    }

    finish(members, omitted, row.role)
}

fn sum(total: &IntervalSum, omitted: bool) -> Value {
    let mut members = amount(total.start_ns, total.end_ns, total.bytes);
    if let Some(retransmits) = total.retransmits {
        members.insert("retransmits".into(), retransmits.into());
    }

    if let Some(udp) = &total.udp {
        members.extend(udp_facts(udp, total.role));
    }

    finish(members, omitted, total.role)
}

fn amount(start_ns: u64, end_ns: u64, bytes: u64) -> Map<String, Value> {
    let seconds = ns_to_s(end_ns.saturating_sub(start_ns));
    members(json!({
        "start": ns_to_s(start_ns),
        "end": ns_to_s(end_ns),
        "seconds": seconds,
        "bytes": bytes,
        "bits_per_second": rate_bps(bytes, seconds),
    }))
}

fn tcp_facts(tcp: &TcpInterval) -> Map<String, Value> {
    members(json!({
        "retransmits": tcp.retransmits,
        "snd_cwnd": tcp.snd_cwnd_bytes,
        "snd_wnd": tcp.snd_wnd_bytes.unwrap_or(0),
        "rtt": tcp.rtt_us,
        "rttvar": tcp.rttvar_us,
        "pmtu": tcp.pmtu_bytes,
        "reorder": tcp.reorder_events.unwrap_or(0),
    }))
}

fn udp_facts(udp: &UdpInterval, role: StreamRole) -> Map<String, Value> {
    members(match role {
        StreamRole::Sender => json!({"packets": udp.packets}),
        StreamRole::Receiver => json!({
            "jitter_ms": udp.jitter_s * 1000.0,
            "lost_packets": udp.lost,
            "packets": udp.packets,
            "lost_percent": interval_lost_percent(udp),
        }),
    })
}

fn finish(mut members: Map<String, Value>, omitted: bool, role: StreamRole) -> Value {
    members.insert("omitted".into(), omitted.into());
    members.insert("sender".into(), (role == StreamRole::Sender).into());
    Value::Object(members)
}
