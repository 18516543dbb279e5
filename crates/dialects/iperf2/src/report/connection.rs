//! The line about a connection or flow that was opened.

use std::net::{IpAddr, SocketAddr};

use linerate_model::event::DelayedStart;
use linerate_model::spec::{TestSpec, Transport};
use linerate_model::stream::StreamFacts;
use linerate_model::workload::{Pairing, Shape, Start};
use linerate_model::{Direction, Stream};

use super::clock;
use super::options::Options;
use super::row::label;

/// `[  1] local A port P connected with B port Q` and everything there is to note.
pub(super) fn line(
    options: &Options,
    test: &TestSpec,
    stream: &Stream,
    facts: &StreamFacts,
) -> String {
    // The label marks data that run against the first connection.
    let is_reversed = facts.is_connected_back && !options.is_client();
    let key = test.workload.permit_key.as_deref();
    let shows_more = shows_more(options, test);
    let device = facts
        .device
        .as_ref()
        .filter(|_| shows_more)
        .map(|device| format!("%{device}"));

    let mut line = format!(
        "{}local {}{} port {} connected with {} port {}",
        label(facts.number, is_reversed, key),
        address(options, stream.local),
        device.unwrap_or_default(),
        stream.local.port(),
        address(options, stream.remote),
        stream.remote.port()
    );
    for note in notes(options, test, stream, facts) {
        line.push_str(&format!(" ({note})"));
    }

    line.push_str(&date(options, test, facts));
    line.push('\n');
    line
}

/// When a client begins to send, if that is not at once.
pub(super) fn start(options: &Options, start: &DelayedStart) -> Option<String> {
    let DelayedStart {
        number,
        in_s,
        at_unix_us,
        now_unix_us,
        ..
    } = *start;
    let zoned = |unix_us| clock::zoned(unix_us, options.utc);
    let at = zoned(at_unix_us)?;
    let now = zoned(now_unix_us)?;
    let label = label(number, false, None);
    let zone = clock::zone(&now);
    let at = clock::date(&at, false);
    let now_ms = clock::date(&now, options.is_new());

    // A start in the past is at once, with a warning.
    Some(if at_unix_us < now_unix_us {
        let typed_s = at_unix_us as f64 / 1e6;
        let now = clock::date(&now, false);
        format!("{label}WARNING: --txstart-time ({typed_s:?}) {at} is before now {now} ({zone})")
    } else {
        format!(
            "{label}Client traffic to start in {in_s} seconds at {at} current time is {now_ms} \
             ({zone})"
        )
    })
}

/// A server shows more as well when its client sends its clock or its bursts.
fn shows_more(options: &Options, test: &TestSpec) -> bool {
    options.enhanced || (!options.is_client() && implies_more(test))
}

/// Tests whose receiver has columns of its own.
pub(super) fn implies_more(test: &TestSpec) -> bool {
    let is_bouncing = matches!(test.workload.shape, Shape::BounceBack(_));
    (test.workload.trip_times && !is_bouncing)
        || matches!(test.workload.shape, Shape::Bursts { .. })
}

fn notes(options: &Options, test: &TestSpec, stream: &Stream, facts: &StreamFacts) -> Vec<String> {
    let workload = &test.workload;
    let more = shows_more(options, test);
    let is_client = options.is_client();
    let is_tcp = test.transport == Transport::Tcp;
    let mut notes = Vec::new();
    notes.extend(
        workload
            .window_clamp_bytes
            .map(|clamp| format!("clamp={clamp}")),
    );
    notes.extend(
        workload
            .unsent_limit_bytes
            .filter(|_| is_client)
            .map(|limit| format!("prefetch={limit}")),
    );

    match &workload.shape {
        Shape::Isochronous(_) => notes.push("isoch".to_owned()),
        Shape::Bursts { period, .. } if !is_client => {
            let decimals = if options.is_new() { 2 } else { 4 };
            notes.push(format!("burst-period={:.decimals$}s", period.as_secs_f64()));
        }
        _ => {}
    }

    notes.extend(direction(test, facts.is_connected_back && !is_client).map(str::to_owned));
    if matches!(workload.start, Start::At(_)) {
        notes.push("epoch-start".to_owned());
    }

    if let Shape::BounceBack(bounce) = &workload.shape {
        let quick_ack = if bounce.quick_ack {
            "bb w/quickack"
        } else {
            "bb"
        };
        let request = bounce.request_bytes;
        let hold_us = bounce.hold.as_micros();
        let reply = bounce.reply_bytes.unwrap_or(request);
        notes.push(if options.is_new() {
            format!("{quick_ack} req/reply/hold={request}/{reply}/{hold_us}")
        } else {
            format!("{quick_ack} len/hold={request}/{hold_us}")
        });
    }

    // A server, and an end while both send, gets no report.
    let is_sending_server = !is_client && test.direction == Direction::Reverse;
    let has_no_report =
        workload.without_final_report || workload.pairing == Pairing::Shared || is_sending_server;
    if !is_tcp && has_no_report {
        notes.push("no-udp-fin".to_owned());
    }

    if workload.trip_times {
        notes.push("trip-times".to_owned());
    }

    if options.is_new() && more {
        let used = stream.effective.congestion.as_ref();
        let wanted = test.socket.congestion.clone();
        notes.extend(wanted.filter(|wanted| used.is_none_or(|used| used == wanted)));
    }

    notes.extend(tos(options, test));
    if more && !options.is_new() {
        notes.extend(facts.descriptor.map(|fd| format!("sock={fd}")));
    }

    notes.extend(
        facts
            .peer_version
            .as_ref()
            .filter(|_| more || workload.detect_peer)
            .map(|v| format!("peer {v}")),
    );
    if workload.quick_ack && !matches!(workload.shape, Shape::BounceBack(_)) {
        notes.push("qack".to_owned());
    }

    if !options.is_new() || more {
        notes.extend(tcp(facts));
    }

    let shows_connect = options.enhanced || matches!(workload.shape, Shape::ConnectOnly { .. });
    if shows_connect && is_client {
        notes.extend(
            facts
                .connect_us
                .map(|us| format!("ct={:.2} ms", f64::from(us) / 1000.0)),
        );
    }

    notes
}

fn direction(test: &TestSpec, is_back: bool) -> Option<&'static str> {
    match (test.direction, test.workload.pairing) {
        (Direction::Bidirectional, Pairing::Shared | Pairing::Separate) => Some("full-duplex"),
        (Direction::Reverse, _) => Some("reverse"),
        _ if is_back => Some("reverse"),
        _ => None,
    }
}

fn tos(options: &Options, test: &TestSpec) -> Option<String> {
    let tos = Some(test.socket.tos).filter(|tos| *tos != 0)?;
    Some(if options.is_new() {
        format!("tos tx=0x{tos:x},dscp={},ecn={}", tos >> 2, tos & 3)
    } else {
        format!("tos rx=0x{tos:x}")
    })
}

/// Initial window in KByte, segment size in bytes, round-trip time in µs.
fn tcp(facts: &StreamFacts) -> Option<String> {
    let cwnd = facts.initial_cwnd_bytes?;
    let mss = facts.mss_bytes?;
    let rtt = facts.initial_rtt_us?;
    Some(format!("icwnd/mss/irtt={}/{mss}/{rtt}", cwnd / 1024))
}

/// 2.1.8 leaves the date out on servers that send.
fn date(options: &Options, test: &TestSpec, facts: &StreamFacts) -> String {
    let is_sending_server = !options.is_client() && test.direction != Direction::Forward;
    let is_shown =
        shows_more(options, test) || matches!(test.workload.shape, Shape::ConnectOnly { .. });
    if !is_shown || (is_sending_server && !options.is_new()) {
        return String::new();
    }

    // A connection without a time, as in old records, has no date.
    let Some(time) = facts
        .opened_at_unix_us
        .and_then(|us| clock::zoned(us, options.utc))
    else {
        return String::new();
    };
    let with_ms = options.is_new() && shows_more(options, test);
    format!(
        " on {} ({})",
        clock::date(&time, with_ms),
        clock::zone(&time)
    )
}

/// The address, or its last part if addresses are hidden.
fn address(options: &Options, address: SocketAddr) -> String {
    match address.ip() {
        ip if !options.hide_addresses => ip.to_string(),
        IpAddr::V4(ip) => format!("*.*.*.{}", ip.octets()[3]),
        IpAddr::V6(ip) => format!("*:*:*:*:*:*:*:{:x}", ip.segments()[7]),
    }
}
