//! The banner of a listening or connecting socket and its settings.

use std::net::IpAddr;

use linerate_model::spec::{TestSpec, Transport, working_load};
use linerate_model::stream::{ListenerFacts, SocketFacts};
use linerate_model::workload::{BounceBack, Isochronous, Shape};

use super::amount::{bits, buffer_size, bytes};
use super::options::Options;

/// The line above and below a banner.
const RULE: &str = "------------------------------------------------------------\n";

/// The banner of a listening socket.
pub(super) fn listener(options: &Options, facts: &ListenerFacts, test: &TestSpec) -> String {
    let mut lines = Vec::new();
    let transport = transport(test.transport);

    let family = if options.is_new() && facts.is_v6 {
        " (v6)"
    } else {
        ""
    };
    let process_id = options.process_id;
    lines.push(match facts.last_port {
        Some(last) => format!(
            "Server listening on {transport} ports {}-{last} with pid {process_id}",
            facts.port
        ),
        None if options.enhanced => {
            format!(
                "Server listening on {transport}{family} port {} with pid {process_id}",
                facts.port
            )
        }
        None => format!(
            "Server listening on {transport}{family} port {}",
            facts.port
        ),
    });

    if let Some(group) = facts.group.filter(|_| !options.excluded.multicast) {
        lines.extend(joined(group));
    }

    lines.extend(serving(options));
    if options.enhanced {
        lines.extend(read_buffer(options, test));
    }

    lines.extend(mss(options, &facts.socket, test));
    lines.extend(congestion(options, &facts.socket, test, true));
    lines.extend(tos_of_server(options, test));

    if test.workload.reports_frames {
        lines.push("Frame or burst interval reporting (feature is experimental)".to_owned());
    }

    if let Some(histogram) = test.workload.histogram {
        lines.push(format!(
            "Enabled receive histograms bin-width={:.3} ms, bins={} (clients should use \
             --trip-times)",
            f64::from(histogram.bin_width_us) / 1000.0,
            histogram.bins
        ));
    }

    lines.extend(window(
        options,
        test,
        facts.socket.effective.receive_buffer_bytes,
    ));
    lines.extend(permit_key(options, test));
    framed(&lines)
}

/// The banner of a client, or of a server that connects back.
pub(super) fn client(
    options: &Options,
    host: &str,
    port: u16,
    test: &TestSpec,
    socket: &SocketFacts,
) -> String {
    let mut lines = Vec::new();
    let host = if options.hide_addresses {
        "(**hidden**)"
    } else {
        host
    };

    let flows = match (options.enhanced, options.is_new()) {
        (false, _) => String::new(),
        (true, false) => format!(" with pid {} ({} flows)", options.process_id, test.streams),
        (true, true) => {
            // The streams that load the path beside a bounce-back test.
            let load = working_load(test).map_or(0, |load| load.streams);
            format!(
                " with pid {} ({}/{load} flows/load)",
                options.process_id, test.streams
            )
        }
    };
    lines.push(format!(
        "Client connecting to {host}, {} port {port}{flows}",
        transport(test.transport)
    ));

    let shape = &test.workload.shape;
    if let Shape::ConnectOnly { .. } = shape {
        // Such a test sends nothing, so the lines about data are absent.
        lines.extend(write_buffer(options, test));
        lines.extend(congestion(options, socket, test, false));
        lines.extend(tos_of_client(options, test));
        lines.push("TCP three-way-handshake (3WHS) only".to_owned());
        return framed(&lines);
    }

    if let Shape::BounceBack(bounce) = shape {
        lines.extend(bounce_back(options, bounce));
    } else {
        lines.extend(write_buffer(options, test));
    }

    lines.extend(shaping(options, test));
    lines.extend(mss(options, socket, test));
    lines.extend(congestion(options, socket, test, false));
    lines.extend(tos_of_client(options, test));
    lines.extend(datagrams(test));
    lines.extend(window(options, test, socket.effective.send_buffer_bytes));
    lines.extend(client_histogram(options, test));

    framed(&lines)
}

fn framed(lines: &[String]) -> String {
    format!("{RULE}{}\n{RULE}", lines.join("\n"))
}

fn transport(transport: Transport) -> &'static str {
    if transport == Transport::Udp {
        "UDP"
    } else {
        "TCP"
    }
}

fn joined(group: IpAddr) -> [String; 2] {
    [
        format!("Joining multicast group  {group}"),
        "Server set to single client traffic mode (per multicast receive)".to_owned(),
    ]
}

fn serving(options: &Options) -> Option<String> {
    let defaults = options.defaults.as_ref()?;
    let is_shown = defaults.one_at_a_time && defaults.test.transport == Transport::Tcp;
    is_shown
        .then(|| "Server set to single client traffic mode (serialize traffic tests)".to_owned())
}

fn read_buffer(options: &Options, test: &TestSpec) -> Option<String> {
    let len = f64::from(test.block_len_bytes);
    Some(match (test.transport, options.is_new()) {
        (Transport::Udp, true) => format!("Read buffer size: {len:.0} Byte "),
        _ => format!(
            "Read buffer size: {} (Dist bin width={})",
            buffer_size(options.units, u64::from(test.block_len_bytes)),
            // Reads are counted in eight bins of equal width.
            bytes((len / 8.0).floor())
        ),
    })
}

fn mss(options: &Options, socket: &SocketFacts, test: &TestSpec) -> Option<String> {
    if let Some(wanted) = test.socket.mss_bytes {
        return Some(format!("MSS req size {wanted} bytes (per TCP_MAXSEG)"));
    }

    let is_tcp = test.transport == Transport::Tcp;
    let mss = socket.mss_bytes.filter(|_| options.print_mss && is_tcp)?;
    Some(format!("MSS size {mss} bytes"))
}

/// The requested algorithm, unless the system has refused it.
fn congestion_in_use<'a>(socket: &SocketFacts, test: &'a TestSpec) -> Option<&'a String> {
    let used = socket.effective.congestion.as_ref();
    // The system falls back to its own when it refuses the algorithm.
    let wanted = test.socket.congestion.as_ref();
    wanted.filter(|wanted| used.is_none_or(|used| used == *wanted))
}

fn congestion(
    options: &Options,
    socket: &SocketFacts,
    test: &TestSpec,
    is_listener: bool,
) -> Option<String> {
    if test.transport == Transport::Udp {
        return None;
    }

    let used = socket
        .effective
        .congestion
        .as_ref()
        .filter(|_| options.is_new() && options.enhanced);
    let algorithm = match (congestion_in_use(socket, test), used) {
        (Some(wanted), Some(used)) if !is_listener => format!("set to {wanted} using {used}"),
        (Some(wanted), _) => format!("set to {wanted}"),
        (None, used) => format!(
            "{} {}",
            if is_listener { "default" } else { "using" },
            used?
        ),
    };
    Some(format!("TCP congestion control {algorithm}"))
}

fn tos_of_server(options: &Options, test: &TestSpec) -> Vec<String> {
    let mut lines = Vec::new();
    if test.socket.tos != 0 {
        lines.push(format!("TOS will be set to 0x{:x}", test.socket.tos));
    }

    if let Some(tos) = options
        .defaults
        .as_ref()
        .and_then(|defaults| defaults.reply_tos)
    {
        lines.push(format!("Reflected TOS will be set to 0x{tos:x}"));
    }

    lines
}

fn tos_of_client(options: &Options, test: &TestSpec) -> Option<String> {
    let tos = test.socket.tos;
    let nagle = if test.socket.no_delay {
        " and nodelay (Nagle off)"
    } else {
        " (Nagle on)"
    };

    let is_shown = options.enhanced;
    is_shown.then(|| {
        if options.is_new() {
            format!(
                "TOS defaults to 0x{tos:x} (dscp={},ecn={}){nagle}",
                tos >> 2,
                tos & 3
            )
        } else {
            format!("TOS set to 0x{tos:x}{nagle}")
        }
    })
}

fn write_buffer(options: &Options, test: &TestSpec) -> Option<String> {
    let is_shown = options.enhanced || matches!(test.workload.shape, Shape::NearCongestion { .. });
    if test.transport == Transport::Udp || !is_shown {
        return None;
    }

    let len = test.block_len_bytes;
    let timed = match (test.workload.write_times, options.is_new()) {
        (false, _) => "",
        (true, false) => " (writetimer-enabled)",
        (true, true) => " (write timer enabled)",
    };

    let burst = match &test.workload.shape {
        Shape::Bursts { size_bytes, .. } if options.is_new() => {
            format!("  Burst size: {size_bytes} Byte")
        }
        _ => String::new(),
    };
    Some(format!("Write buffer size: {len} Byte{timed}{burst}"))
}

fn bounce_back(options: &Options, bounce: &BounceBack) -> Vec<String> {
    let request = bytes(f64::from(bounce.request_bytes));
    let reply = bytes(f64::from(
        bounce.reply_bytes.unwrap_or(bounce.request_bytes),
    ));

    let quick_ack = if bounce.quick_ack {
        " & tcp_quickack"
    } else {
        ""
    };
    let hold = format!(
        "(server hold req={} usecs{quick_ack})",
        bounce.hold.as_micros()
    );
    let period_s = bounce.period.as_secs_f64();
    let has_bursts = !bounce.period.is_zero();
    let mut lines = Vec::new();

    if options.is_new() {
        lines.push(format!(
            "Bounceback test (req/reply size ={request}/{reply}) {hold}"
        ));
        if has_bursts {
            lines.push(format!(
                "Bursting request {} times every {period_s:.2} second(s)",
                bounce.burst
            ));
        }
    } else {
        lines.push(format!("Write buffer size: {request}"));
        if has_bursts {
            lines.push(format!(
                "Bursting: {request} writes {} times every {period_s:.2} second(s)",
                bounce.burst
            ));
        }

        lines.push(format!("Bounce-back test (size={request}) {hold}"));
    }

    lines
}

/// Lines about when and how much is written.
fn shaping(options: &Options, test: &TestSpec) -> Vec<String> {
    let mut lines = Vec::new();
    match &test.workload.shape {
        Shape::Isochronous(frames) => lines.push(isochronous(frames)),
        Shape::Bursts { size_bytes, period } => {
            let decimals = if options.is_new() { 3 } else { 2 };
            let size = bytes(f64::from(*size_bytes));
            lines.push(format!(
                "Bursting: {size} every {:.decimals$} second(s)",
                period.as_secs_f64()
            ));
        }
        Shape::NearCongestion { weight } => lines.push(format!(
            "TCP near-congestion delay weight set to {weight:.4} (use --near-congestion=<value> to \
             change)"
        )),
        _ => {}
    }

    if let Some(rate) = test.pacing.fq_rate_bps {
        lines.push(format!(
            "fair-queue socket pacing set to {}/s",
            bits(rate as f64)
        ));
    }

    lines
}

fn isochronous(frames: &Isochronous) -> String {
    format!(
        "Isochronous: {:.2} frames/sec mean={}/s, stddev={}/s, Period/IPG={:.2}/{:.3} ms",
        frames.frames_per_s,
        bits(frames.mean_bps).trim_start(),
        bits(frames.deviation_bps).trim_start(),
        1000.0 / frames.frames_per_s,
        frames.gap.as_secs_f64() * 1000.0
    )
}

fn datagrams(test: &TestSpec) -> Option<String> {
    if test.transport != Transport::Udp || matches!(test.workload.shape, Shape::Isochronous(_)) {
        return None;
    }

    let len = test.block_len_bytes;
    let gap_us = match (test.workload.datagrams_per_s, test.pacing.rate_bps) {
        (Some(rate), _) => 1e6 / rate as f64,
        // Bits of a datagram over the rate, in microseconds.
        (None, Some(rate)) => f64::from(len) * 8e6 / rate as f64,
        (None, None) => 0.0,
    };
    Some(format!(
        "Sending {len} byte datagrams, IPG target: {gap_us:.2} us (kalman adjust)"
    ))
}

fn window(options: &Options, test: &TestSpec, granted_bytes: Option<u32>) -> Option<String> {
    let granted_bytes = u64::from(granted_bytes?);
    let name = if test.transport == Transport::Udp {
        "UDP buffer size"
    } else {
        "TCP window size"
    };

    let granted = buffer_size(options.units, granted_bytes);
    let remark = match test.socket.window_bytes.map(u64::from) {
        None => " (default)".to_owned(),
        // Linux doubles the requested size, so this is rare.
        Some(wanted) if wanted == granted_bytes => String::new(),
        Some(wanted) => format!(
            " (WARNING: requested {})",
            buffer_size(options.units, wanted)
        ),
    };
    Some(format!("{name}: {granted}{remark}"))
}

fn client_histogram(options: &Options, test: &TestSpec) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(limit) = test.workload.unsent_limit_bytes {
        lines.push(format!(
            "Event based writes (pending queue watermark at {limit} bytes)"
        ));
    } else if options.is_new()
        && options.enhanced
        && test.workload.trip_times
        && test.transport == Transport::Tcp
    {
        lines.push(
            "Warn: Send side bloat possible per --tcp-write-prefetch not being set".to_owned(),
        );
    }

    if let Some(histogram) = test.workload.histogram {
        lines.push(format!(
            "Enabled write histograms bin-width={:.3} ms, bins={}",
            f64::from(histogram.bin_width_us) / 1000.0,
            histogram.bins
        ));
    }

    lines
}

fn permit_key(options: &Options, test: &TestSpec) -> Option<String> {
    let key = test.workload.permit_key.as_ref()?;
    let lifetime = options
        .defaults
        .as_ref()
        .and_then(|defaults| defaults.permit_key_lifetime)
        .unwrap_or_default();
    Some(format!(
        "Permit key is '{}' (timeout in {:.1} seconds)",
        key,
        lifetime.as_secs_f64()
    ))
}
