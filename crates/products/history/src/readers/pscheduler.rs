//! A result of pScheduler's throughput test as events, for tools whose own report is not in it.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use linerate_model::event::TestHeader;
use linerate_model::interval::TcpInterval;
use linerate_model::summary::{TcpSummary, UdpTotals};
use linerate_model::{
    EndCondition, EndpointTotals, Event, Failure, FailureKind, Flow, IntervalReport, Stream,
    StreamId, StreamInterval, StreamRole, StreamSummary, Summary, TestSpec, Transport,
};
use serde_json::Value;

use linerate_iperf3::report::reader::{ns_of, u32_of, u64_of};

/// Lines of the diagnostics at which a report of the tool is looked for.
const LINES_MAX: usize = 64;
/// Streams that are read.
const STREAMS_MAX: usize = 1024;

/// The result in a document: of a run, or alone.
pub(super) fn result(document: &Value) -> Option<&Value> {
    let results = [&document["result-merged"], &document["result"], document];
    results
        .into_iter()
        .find(|result| result["succeeded"].is_boolean() && result["diags"].is_string())
}

/// The rest of a text from each line on that begins with a brace.
pub(super) fn line_starts(text: &str) -> impl Iterator<Item = &str> {
    let starts = text.match_indices('{').map(|(at, _)| at);
    starts
        .filter(|at| *at == 0 || text.as_bytes()[at - 1] == b'\n')
        .take(LINES_MAX)
        .map(|at| &text[at..])
}

/// Only its plug-in of iperf3 is known to give round-trip times in µs and jitter in ms.
pub(super) fn events(result: &Value) -> Vec<Event> {
    let units_known = result["diags"]
        .as_str()
        .is_some_and(|text| text.contains("iperf3"));
    let total = &result["summary"]["summary"];
    let is_udp = !total["lost"].is_null() || !total["sent"].is_null();
    let rows = result["summary"]["streams"]
        .as_array()
        .filter(|rows| !rows.is_empty());
    let totals = rows.map_or(std::slice::from_ref(total), Vec::as_slice);
    let totals = &totals[..totals.len().min(STREAMS_MAX)];
    let spec = TestSpec {
        transport: if is_udp {
            Transport::Udp
        } else {
            Transport::Tcp
        },
        streams: totals.len() as u32,
        end: ns_of(&total["end"]).map_or(EndCondition::Unlimited, |ns| {
            EndCondition::Duration(Duration::from_secs((ns + 500_000_000) / 1_000_000_000))
        }),
        ..TestSpec::default()
    };

    let mss = u32_of(&result["mss"]).filter(|mss| *mss > 0);
    let header = TestHeader {
        spec,
        control_mss_bytes: mss,
        ..TestHeader::default()
    };

    let mut events = vec![Event::TestAccepted(Box::new(header))];
    let ids = (0..totals.len() as u32).map(StreamId);
    events.extend(ids.clone().map(stream));
    events.push(Event::TestStarted {
        at_monotonic_ns: None,
    });

    let mut was_omitted = false;
    for interval in result["intervals"].as_array().into_iter().flatten() {
        let rows = interval["streams"]
            .as_array()
            .filter(|rows| !rows.is_empty());
        let rows = rows
            .map_or(std::slice::from_ref(&interval["summary"]), Vec::as_slice)
            .iter();
        let omitted = interval["summary"]["omitted"] == true;
        if std::mem::replace(&mut was_omitted, omitted) && !omitted {
            events.push(Event::OmitEnded);
        }

        let streams = rows
            .zip(ids.clone())
            .filter_map(|(row, id)| interval_of(row, id, mss, units_known))
            .collect();
        let mut report = IntervalReport::new(streams);
        report.omitted = omitted;
        events.push(Event::Interval(report));
    }

    if result["succeeded"] == false {
        let message = result["error"]
            .as_str()
            .unwrap_or("pScheduler: the run did not succeed")
            .to_owned();
        events.push(Event::Failed(Failure::new(FailureKind::Error, message)));
        return events;
    }

    let streams = totals
        .iter()
        .zip(ids)
        .filter_map(|(row, id)| stream_summary(row, id, is_udp, units_known));
    events.push(Event::Summary(Box::new(Summary {
        streams: streams.collect(),
        ..Summary::default()
    })));
    events.push(Event::Finished);

    events
}

/// The addresses are not in the result.
fn stream(id: StreamId) -> Event {
    let unknown = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
    Event::StreamOpened(Stream::new(
        id,
        StreamRole::Sender,
        Flow::Forward,
        unknown,
        unknown,
    ))
}

/// Rate times length: some plug-ins put an amount into `throughput-bytes`, others a rate.
fn bytes(row: &Value, rate: &str) -> Option<u64> {
    let seconds = row["end"].as_f64()? - row["start"].as_f64()?;
    let bytes = row[rate].as_f64()? * seconds / 8.0;
    (0.0..9e15).contains(&bytes).then(|| bytes.round() as u64)
}

fn interval_of(
    row: &Value,
    id: StreamId,
    mss: Option<u32>,
    units_known: bool,
) -> Option<StreamInterval> {
    let tcp = || {
        let segments = TcpInterval {
            retransmits: u64_of(&row["retransmits"])?,
            snd_cwnd_bytes: u64_of(&row["tcp-window-size"])?,
            rtt_us: u32_of(&row["rtt"]).filter(|_| units_known)?,
            mss_bytes: mss.unwrap_or(0),
            ..TcpInterval::default()
        };
        Some(segments)
    };
    let interval = StreamInterval {
        id,
        start_ns: ns_of(&row["start"])?,
        end_ns: ns_of(&row["end"])?,
        bytes: bytes(row, "throughput-bits")?,
        tcp: tcp(),
        ..StreamInterval::default()
    };

    Some(interval)
}

fn stream_summary(
    row: &Value,
    id: StreamId,
    is_udp: bool,
    units_known: bool,
) -> Option<StreamSummary> {
    let duration_ns = ns_of(&row["end"])?.checked_sub(ns_of(&row["start"])?)?;
    let half = |rate| Some(EndpointTotals::new(bytes(row, rate)?, duration_ns, None));
    let receiver = half("receiver-throughput-bits").or_else(|| {
        let mut totals = half("throughput-bits")?;
        let (sent, lost) = (u64_of(&row["sent"])?, u64_of(&row["lost"])?);
        let arrived = u128::from(totals.bytes) * u128::from(sent.saturating_sub(lost));
        totals.bytes = arrived.checked_div(u128::from(sent))? as u64;
        Some(totals)
    });

    let jitter_s = row["jitter"]
        .as_f64()
        .filter(|_| units_known)
        .map(|ms| ms / 1e3);
    let udp = || {
        let datagrams = UdpTotals {
            packets: u64_of(&row["sent"])?,
            lost: u64_of(&row["lost"])?,
            jitter_s: jitter_s?,
            omitted_packets: Some(0),
            omitted_lost: Some(0),
            ..UdpTotals::default()
        };
        Some(datagrams)
    };

    let retransmits = u64_of(&row["retransmits"]);
    let mean_rtt_us = u32_of(&row["rtt"]).filter(|rtt| units_known && *rtt > 0);
    let stream = StreamSummary {
        id,
        sender: half("throughput-bits"),
        receiver: receiver.map(|mut end| {
            end.udp = udp();
            end
        }),
        tcp: (!is_udp).then(|| {
            TcpSummary {
                retransmits,
                mean_rtt_us,
                ..TcpSummary::default()
            }
        }),
        ..StreamSummary::default()
    };

    Some(stream)
}
