//! The JSON report of iperf3, 3.1 to 3.22, as events.
//!
//! The totals of the streams are read; the sums are read where only they have a figure, and
//! compared otherwise.

mod opening;
mod totals;

use linerate_model::event::{Endpoint, ServerOutput};
use linerate_model::interval::TcpInterval;
use linerate_model::{Event, Failure, FailureKind, IntervalReport, StreamInterval, UdpInterval};
use opening::Test;
use serde_json::Value;

pub use opening::is_started;

/// A report of one end.
#[derive(Debug)]
pub struct Report {
    /// The end.
    pub endpoint: Endpoint,
    /// Version of its program.
    pub version: Option<String>,
    /// Name of its host.
    pub host_name: Option<String>,
    /// Name of the test, the same in the report of the other end.
    pub cookie: Option<String>,
    /// Start of the test in ms since 1970.
    pub started_unix_ms: Option<u64>,
    /// The test.
    pub events: Vec<Event>,
    /// Remarks on what is not read.
    pub notes: Vec<String>,
}

/// True if a document is a report of iperf3.
pub fn is_report(document: &Value) -> bool {
    let version = document["start"]["version"].as_str();
    version.is_some_and(|version| version.starts_with("iperf 3"))
}

/// True if it is the report of a server that ended without a client.
pub fn is_idle_server(document: &Value) -> bool {
    let has_ended = document["error"]
        .as_str()
        .is_some_and(|error| error.contains("the server has terminated"));
    has_ended && document["start"]["cookie"].is_null()
}

/// Reads a report. The end of one that is cut off is not read: its totals can be missing in part.
pub fn report(document: &Value, is_cut: bool) -> Report {
    let start = &document["start"];
    let test = Test::of(document);
    let is_partial =
        is_cut || (document["error"].is_null() && !document["end"]["streams"].is_array());
    let end = if is_partial {
        &Value::Null
    } else {
        &document["end"]
    };

    let intervals = intervals(&test);
    let (summary, notes) = totals::read(&test, &intervals, end);
    let mut events = Vec::new();
    events.extend(
        test.header
            .clone()
            .map(|header| Event::TestAccepted(Box::new(header))),
    );
    events.extend(test.streams.iter().cloned().map(Event::StreamOpened));

    if is_started(document) {
        events.push(Event::TestStarted {
            at_monotonic_ns: None,
        });
        events.extend(intervals);
        events.extend(summary.map(|summary| Event::Summary(Box::new(summary))));
    }

    events.extend(server_output(document).map(Event::PeerOutput));
    if !is_partial {
        events.push(
            document["error"]
                .as_str()
                .map_or(Event::Finished, |error| failed(error, test.endpoint)),
        );
    }

    let version = start["version"]
        .as_str()
        .and_then(|text| text.strip_prefix("iperf "));
    Report {
        endpoint: test.endpoint,
        version: version.map(str::to_owned),
        // `system_info` has the fields of uname(2): the second one is the name of the host.
        host_name: start["system_info"]
            .as_str()
            .and_then(|text| text.split(' ').nth(1))
            .map(str::to_owned),
        cookie: start["cookie"]
            .as_str()
            .filter(|cookie| !cookie.is_empty())
            .map(str::to_owned),
        started_unix_ms: test
            .header
            .as_ref()
            .map(|header| header.started_at_unix_ms)
            .filter(|ms| *ms > 0),
        events,
        notes,
    }
}

/// Intervals in order, and the end of the warm-up between them.
fn intervals(test: &Test<'_>) -> Vec<Event> {
    let grid = test.header.as_ref().and_then(|header| header.interval);
    let mut events = Vec::new();
    let mut was_omitted = false;

    for (position, value) in test.intervals.iter().enumerate() {
        let omitted = value["streams"][0]["omitted"] == true;
        if was_omitted && !omitted {
            events.push(Event::OmitEnded);
        }

        was_omitted = omitted;
        let rows = value["streams"].as_array().into_iter().flatten();
        let streams: Vec<StreamInterval> = rows.filter_map(|row| interval(test, row)).collect();
        // Only the end of a test cuts an interval short.
        let is_short = |row: &StreamInterval| {
            grid.is_some_and(|grid| row.seconds() < 0.9 * grid.as_secs_f64())
        };
        let last = position + 1 == test.intervals.len() && streams.iter().any(is_short);
        events.push(Event::Interval(IntervalReport {
            omitted,
            last,
            streams,
        }));
    }

    events
}

fn interval(test: &Test<'_>, row: &Value) -> Option<StreamInterval> {
    let stream = test.stream(row)?;
    let start_ns = ns_of(&row["start"])?;
    let end_ns = ns_of(&row["end"])?;
    let mut interval = StreamInterval::new(stream, start_ns, end_ns, u64_of(&row["bytes"])?);
    interval.tcp = tcp(test, row);
    interval.udp = u64_of(&row["packets"])
        .filter(|_| test.is_udp)
        .map(|packets| {
            UdpInterval::new(
                packets,
                row["lost_packets"].as_i64().unwrap_or(0),
                0,
                row["jitter_ms"].as_f64().unwrap_or(0.0) / 1e3,
            )
        });

    Some(interval)
}

fn tcp(test: &Test<'_>, row: &Value) -> Option<TcpInterval> {
    let tcp = TcpInterval {
        retransmits: u64_of(&row["retransmits"])?,
        snd_cwnd_bytes: u64_of(&row["snd_cwnd"])?,
        snd_wnd_bytes: above_zero(&row["snd_wnd"]),
        rtt_us: u32_of(&row["rtt"])?,
        rttvar_us: u32_of(&row["rttvar"]).unwrap_or(0),
        pmtu_bytes: u32_of(&row["pmtu"]).unwrap_or(0),
        reorder_events: u64_of(&row["reorder"]),
        mss_bytes: test.mss_bytes,
        ..TcpInterval::default()
    };

    Some(tcp)
}

fn server_output(document: &Value) -> Option<ServerOutput> {
    let json = document
        .get("server_output_json")
        .map(|json| ServerOutput::Json(json.to_string()));
    json.or_else(|| {
        Some(ServerOutput::Text(
            document["server_output_text"].as_str()?.to_owned(),
        ))
    })
}

/// The failure with the text of `error`. The end that a signal ended is named in it.
pub fn failed(error: &str, endpoint: Endpoint) -> Event {
    let ends = |who: &str| error.contains(&format!("the {who} has terminated"));
    let kind = match endpoint {
        Endpoint::Client if ends("client") => FailureKind::Interrupted,
        Endpoint::Server if ends("server") => FailureKind::Interrupted,
        _ if ends("client") || ends("server") => FailureKind::PeerTerminated,
        _ if error.contains("control socket has closed unexpectedly") => FailureKind::PeerClosed,
        _ => FailureKind::Error,
    };

    let message = error
        .strip_prefix("interrupt - ")
        .unwrap_or(error)
        .to_owned();
    Event::Failed(Failure::new(kind, message))
}

/// A count. Some writers of JSON write large ones as floating-point numbers; sums of what is
/// accepted cannot overflow.
pub fn u64_of(value: &Value) -> Option<u64> {
    // Larger whole numbers are not exact in JSON everywhere (RFC 8259, section 6).
    const MAX: u64 = 1 << 53;

    let float = || {
        value
            .as_f64()
            .filter(|number| (0.0..=MAX as f64).contains(number))
            .map(|number| number as u64)
    };
    value.as_u64().or_else(float).filter(|count| *count <= MAX)
}

/// As [`u64_of`], of 32 bits.
pub fn u32_of(value: &Value) -> Option<u32> {
    u64_of(value).and_then(|number| u32::try_from(number).ok())
}

/// As [`u64_of`], where 0 means not known or not set.
fn above_zero<T: TryFrom<u64>>(value: &Value) -> Option<T> {
    let number = u64_of(value).filter(|number| *number > 0)?;
    T::try_from(number).ok()
}

/// Seconds as nanoseconds.
pub fn ns_of(seconds: &Value) -> Option<u64> {
    let seconds = seconds.as_f64()?;
    (0.0..1e9)
        .contains(&seconds)
        .then(|| (seconds * 1e9).round() as u64)
}
