//! Windows and buffers of TCP and UDP.

use crate::rules::prelude::*;

rules! {
    Run win_01,
    Run win_02,
    Run win_03,
    Host win_04,
    Host win_05,
    Host win_06,
    Host udp_01,
    Run udp_03,
    Run udp_02,
}

/// The kernel's own maximum of a receive buffer on hosts with memory.
const BUFFER_MAX_DEFAULT_BYTES: f64 = 6_291_456.0;

/// Counters of datagrams that a full receive buffer dropped.
const SOCKET_OVERFLOWS: [&str; 2] = ["net.snmp.Udp.RcvbufErrors", "net.snmp6.Udp6RcvbufErrors"];

/// True if overflows of the socket buffer since boot are those of a pasted test: their share of its
/// lost datagrams.
fn is_explained(share: f64) -> bool {
    (0.9..=1.1).contains(&share)
}

/// True if the receive buffers of a host overflowed as often as a test lost datagrams.
pub(super) fn socket_explains(host: &Host<'_>, lost: f64) -> bool {
    lost > 0.0
        && host
            .growth_of(&SOCKET_OVERFLOWS)
            .is_ok_and(|grown| is_explained(to_f64(grown.value) / lost))
}

/// Share of the busy time from which on a limit counts.
const LIMITED: f64 = 0.2;

/// Best rate the path of this run could have, bit/s; `None` where it is unknown.
fn attainable_bps(run: &Run<'_>) -> Option<f64> {
    if let Ok(declared) = run.host.number("path.line_rate_mbps") {
        return Some(tcp_ceiling(declared.value * 1e6, 1500.0));
    }

    let nic = run.nic()?;
    let wire = || Some(tcp_ceiling(nic.speed_mbps().ok()?.value * 1e6, nic.mtu()));
    super::qdisc::shaped_payload_bps(&nic).or_else(wire)
}

/// A window that is the limit.
struct TooSmall {
    /// Threshold that it was compared with, as text.
    threshold: String,
    /// The rate it should allow, where that is known.
    ceiling_bps: Option<f64>,
}

/// Continues when a window limits: it holds less than `products` times rate and round trip of the
/// path; where the rate of the path is unknown, when the measured rate is what this window permits.
fn too_small(
    run: &Run<'_>,
    window: &Reading<f64>,
    rtt_us: f64,
    products: f64,
) -> Result<TooSmall, NoMatch> {
    let goodput = run.goodput_bps()?.value;
    // A share of the time is no proof: with buffers of 16 KB a sender was limited for 51 % of it,
    // and 948 Mbit/s passed a shaper of 1 Gbit/s.
    if let Some(ceiling) = attainable_bps(run) {
        require(goodput < 0.985 * ceiling, "line rate reached")?;
        let needed = products * bdp_bytes(ceiling, rtt_us);
        require(*window < needed, "it holds the bandwidth-delay product")?;
        return Ok(TooSmall {
            threshold: format!("at least {needed:.0} bytes for this path"),
            ceiling_bps: Some(ceiling),
        });
    }

    let permitted = window_ceiling_bps(window.value, rtt_us);
    // The mean of all seconds has slow start in it.
    let steady = run
        .number("later_median_bps")
        .map_or(goodput, |rate| rate.value);
    if (steady - permitted).abs() > 0.2 * permitted {
        return unknown(
            "path.line_rate_mbps",
            format!(
                "{:.0} Mbit/s are not what the window permits; use --line-rate",
                steady / 1e6
            ),
        );
    }

    Ok(TooSmall {
        threshold: format!(
            "permits {:.0} Mbit/s, and {:.0} are reached",
            permitted / 1e6,
            steady / 1e6
        ),
        ceiling_bps: None,
    })
}

fn win_01(run: &Run<'_>) -> Ruling {
    let share = run.number("rwnd_limited_share");
    let window = run.number("snd_wnd_bytes");
    limited(run, share, window, 1.2, ("receiver", "window"), "tcp_rmem")
}

fn win_02(run: &Run<'_>) -> Ruling {
    let share = run.number("sndbuf_limited_share");
    let buffer = run.number("sndbuf_bytes");
    // Two bandwidth-delay products let the sender continue while a loss is repaired.
    limited(run, share, buffer, 2.0, ("sender", "buffer"), "tcp_wmem")
}

/// Matches when the sender waited for a window or a buffer that holds too little; `products` as in
/// [`too_small`].
fn limited(
    run: &Run<'_>,
    share: Result<Reading<f64>, NoMatch>,
    window: Result<Reading<f64>, NoMatch>,
    products: f64,
    (end, name): (&str, &str),
    sysctl: &str,
) -> Ruling {
    run.over_tcp()?;
    let is_concluded = run.is_limited_by(&[if end == "receiver" {
        limit::RECEIVER_WINDOW
    } else {
        limit::SENDER_WINDOW
    }])?;

    let share = share?;
    // The kernel takes a sender whose buffer is empty for one without data.
    let is_below_block = is_concluded && run.is_buffer_below_block();
    require(
        share >= LIMITED || is_below_block,
        format!("{:.0} % of the time", share.value * 100.0),
    )?;

    let window = window?;
    let rtt = run.number("rtt_us")?;
    let small = match too_small(run, &window, rtt.value, products) {
        Err(_) if is_concluded => TooSmall {
            threshold: "the sender waited for it".to_owned(),
            ceiling_bps: None,
        },
        small => small?,
    };

    let matched = match run.number("idle_share") {
        Ok(idle) if is_below_block => {
            matched().read(&idle, "the buffer was empty for this part of the time")
        }
        _ => matched().read(&share, "below 0.2 of the busy time"),
    };
    let matched = matched
        .read(&window, small.threshold)
        .read(&rtt, "round trip, microseconds");
    if run.number("window_bytes").is_ok() {
        return Ok(matched.advice(format!("omit -w, so that the {end}'s {name} can grow")));
    }

    let needed = small
        .ceiling_bps
        .map_or(BUFFER_MAX_DEFAULT_BYTES, |ceiling| {
            buffer_bytes(ceiling, rtt.value)
        });
    let matched = if run.part() == Some(end) {
        matched
    } else {
        matched.on(format!("the {end}"))
    };
    let Some(host) = run.end(end) else {
        return Ok(matched.advice(format!(
            "let net.ipv4.{sysctl} of the {end} allow {needed:.0} bytes"
        )));
    };

    Ok(match buffer_triple(&host, sysctl, needed) {
        Some(triple) => {
            let matched = matched.sysctl(&host, &format!("net.ipv4.{sysctl}"), &triple);
            if matched.remedy.is_empty() {
                matched.advice(format!("on the {end}"))
            } else {
                matched
            }
        }
        None => matched.advice(format!(
            "net.ipv4.{sysctl} of the {end} allows more: look for a size that the application \
             sets, or for short memory"
        )),
    })
}

/// The kernel's triple with a larger maximum; `None` where the maximum is as large.
fn buffer_triple(host: &Host<'_>, name: &str, maximum: f64) -> Option<String> {
    let old = host
        .text(&format!("sysctl.net.ipv4.{name}"))
        // The kernel's minimum and default (ip-sysctl, tcp_rmem); no maximum is known.
        .map_or("4096 131072 0", |old| old.value);
    let mut parts = old.split_whitespace();
    let low = parts.next().unwrap_or("4096");
    let default = parts.next().unwrap_or("131072");
    let present: f64 = parts.next().map_or(0.0, |most| most.parse().unwrap_or(0.0));

    // The maximum must not be below the default.
    (present < maximum).then(|| {
        format!(
            "{low} {default} {:.0}",
            maximum.max(default.parse().unwrap_or(0.0))
        )
    })
}

fn win_03(run: &Run<'_>) -> Ruling {
    let tool = run.text("tool")?;
    let window = match run.number("window_bytes") {
        Ok(window) => window,
        Err(_) if run.is("options_known") => return clear("no -w: the window can grow"),
        Err(stop) => return Err(stop),
    };
    let matched = matched()
        .read(&window, "no -w, so that the window can grow")
        .read_text(&tool, "was called with -w");
    // The kernel cuts a larger request at this limit without an error (socket(7)).
    if let Ok(limit) = run.host.number("sysctl.net.core.rmem_max")
        && window > limit
    {
        return Ok(matched
            .read(
                &limit,
                "smaller than the requested size, so the kernel reduced it",
            )
            .raise(&run.host, "net.core.rmem_max", window.value)
            .raise(&run.host, "net.core.wmem_max", window.value));
    }

    // Of a ping that was pasted with the test.
    let rtt = run
        .number("rtt_us")
        .or_else(|stop| run.host.number("path.rtt_us").map_err(|_| stop));
    let rtt = rtt.suspect(format!("-w {window:.0} switches autotuning off"))?;
    let small = too_small(run, &window, rtt.value, 2.0)?;

    Ok(matched.read(&rtt, small.threshold).advice("leave -w out"))
}

fn win_04(host: &Host<'_>) -> Ruling {
    let scaling = host.flag("sysctl.net.ipv4.tcp_window_scaling");
    let sack = host.flag("sysctl.net.ipv4.tcp_sack");

    let off = |reading: &Result<Reading<bool>, NoMatch>| {
        reading.as_ref().is_ok_and(|reading| !reading.value)
    };
    if !off(&scaling) && !off(&sack) {
        scaling?;
        sack?;
        return clear("window scaling and selective acknowledgements are on");
    }

    let mut matched = matched();
    for (is_off, key) in [
        (off(&scaling), "net.ipv4.tcp_window_scaling"),
        (off(&sack), "net.ipv4.tcp_sack"),
    ] {
        if is_off {
            matched = matched
                .because(format!("sysctl.{key}"), 0, "1")
                .sysctl(host, key, "1");
        }
    }

    Ok(matched)
}

const PRESSURE: [&str; 5] = [
    "net.netstat.TcpExt.TCPMemoryPressures",
    "net.netstat.TcpExt.PruneCalled",
    "net.netstat.TcpExt.RcvPruned",
    "net.netstat.TcpExt.TCPRcvCollapsed",
    "net.netstat.TcpExt.TCPBacklogDrop",
];

/// Those of [`PRESSURE`] that drop data, or keep buffers small.
const PRESSURE_WITH_LOSS: [&str; 3] = [
    "net.netstat.TcpExt.TCPMemoryPressures",
    "net.netstat.TcpExt.RcvPruned",
    "net.netstat.TcpExt.TCPBacklogDrop",
];

fn win_05(host: &Host<'_>) -> Ruling {
    let pressure = host.growth_of(&PRESSURE)?;
    pressure.or_clear("memory pressure")?;
    // Every host that has run for weeks has pruned a queue once.
    pressure.in_period("totals", format!("{pressure} events since boot"))?;

    // A queue of small packets is collapsed without loss.
    let is_lossless = host
        .growth_of(&PRESSURE_WITH_LOSS)
        .is_ok_and(|lost| lost.value == 0);
    Ok(matched()
        .grew(&pressure)
        .advice("raise net.ipv4.tcp_mem, or let the application read faster")
        .severity_if(is_lossless, Severity::Medium))
}

fn win_06(host: &Host<'_>) -> Ruling {
    let restart = host.flag("sysctl.net.ipv4.tcp_slow_start_after_idle")?;
    require(restart.value, "no slow start after idle")?;
    require(
        !host.has_full_cpu(),
        "a CPU is fully used: the sender may have waited for it",
    )?;

    // A target rate leaves pauses on purpose, and so does the bound of unsent data of a load of
    // `linerate test`.
    let is_paused = |run: &Run<'_>| run.number("target_bps").is_ok() || run.is_examined();
    let mut sent = host
        .runs()
        .filter(|run| run.part() != Some("receiver") && !is_paused(run));
    let idle = sent
        .find_map(|run| run.number("idle_share").ok())
        .or_unknown("run.0.idle_share", host.reason("run.0.idle_share"))?;
    require(idle > 0.2, "the sender does not pause")?;

    Ok(matched()
        .because(restart.key, 1, "0 for senders that pause")
        .read(&idle, "below 0.2")
        .sysctl(host, "net.ipv4.tcp_slow_start_after_idle", "0")
        .advice("and flush the cached metrics: ip tcp_metrics flush PEER"))
}

fn udp_01(host: &Host<'_>) -> Ruling {
    let keys = SOCKET_OVERFLOWS;
    let overflows = host.growth_of(&keys)?;
    overflows.or_clear("overflows of UDP socket buffers")?;

    let lost = host
        .runs()
        .find_map(|run| run.number("lost_packets").ok())
        .filter(|lost| *lost > 0.0);
    let share = lost
        .as_ref()
        .map(|lost| to_f64(overflows.value) / lost.value);

    // A total that is the loss of the pasted test has grown in it.
    if !share.is_some_and(is_explained) {
        overflows.in_period("totals", format!("{overflows} datagrams since boot"))?;
    }

    // /proc/net/snmp counts the drops of all UDP sockets of the host.
    require(
        host.own_socket_drops() != Some(0),
        "sockets of other programs dropped, those of the test did not",
    )?;
    // Totals alone are a guess, those that are the loss of a test are not.
    let mut matched = matched()
        .because_all(overflows.evidence)
        .cap_if(overflows.total, Confidence::Medium);

    if let Some(lost) = lost
        && let Some(share) = share
    {
        let percent = percent(share.min(1.0));
        matched = matched
            .read(
                &lost,
                format!("{percent} of the reported loss happened in this buffer"),
            )
            .because(
                "socket buffer:",
                format!("{percent} of the loss"),
                "less of it",
            );
    }

    let is_rare = host
        .runs()
        .any(|run| run.number("loss_share").is_ok() && run.datagram_loss().is_none());
    Ok(matched
        .severity_if(is_rare, Severity::Low)
        .raise(host, "net.core.rmem_max", 8_388_608.0)
        .advice(
            "and request the buffer: -w 4M; if that does not help, the receiver's CPU is the limit \
         (CPU-02)",
        ))
}

/// True if the receive buffers of the run's host overflowed during it as often as it lost
/// datagrams.
pub(crate) fn socket_took_the_loss(run: &Run<'_>) -> bool {
    let lost = run.number("lost_packets").map_or(0.0, |lost| lost.value);
    run.host.period.is_some() && socket_explains(&run.host, lost)
}

fn udp_02(run: &Run<'_>) -> Ruling {
    let (length, mtu, most) = fragmented(run)?;
    Ok(matched()
        .read(&length, format!("at most {most} bytes"))
        .read(&mtu, "MTU of the interface")
        .advice(format!("use -l {most}")))
}

/// Continues when datagrams do not fit the MTU: their length, the MTU, and the longest payload that
/// fits.
fn fragmented(run: &Run<'_>) -> Result<(Reading<f64>, Reading<f64>, f64), NoMatch> {
    run.over_udp()?;
    let length = run.number("block_len_bytes")?;

    // IPv6 has 40 bytes, IPv4 without options 20, UDP 8.
    let headers = if run.text_is("family", "ipv6") {
        48.0
    } else {
        28.0
    };
    let nic = run.used_nic()?;
    let mtu = nic.number("net.mtu")?;
    require(
        length.value + headers > mtu.value,
        format!("{length} bytes fit an MTU of {mtu}"),
    )?;

    let most = mtu.value - headers;
    Ok((length, mtu, most))
}

fn udp_03(run: &Run<'_>) -> Ruling {
    const NEARLY_ALL: f64 = 0.99;

    let (length, mtu, most) = fragmented(run)?;
    let lost = run.number("loss_share")?;
    require(
        lost >= NEARLY_ALL,
        format!("{:.1} % of the datagrams were lost", lost.value * 100.0),
    )?;

    Ok(matched()
        .read(&lost, "below 99 %")
        .read(&length, format!("at most {most} bytes"))
        .read(&mtu, "MTU of the interface")
        .advice(format!(
            "use -l {most}; if those arrive, a firewall or NAT on the path drops fragments; if \
             they do not, UDP is blocked on this port"
        )))
}
