//! Limits of applications, connections and the link itself.

use crate::rules::prelude::*;

rules! {
    Scope top_01,
    Host sys_01,
    Host sys_02,
    Host sys_03,
    Host sys_04,
    Host sys_05,
    Host sys_06,
    Scope http_01,
    Host http_02,
    Run app_01,
}

/// Share of the ceiling from which on a link counts as full.
const FULL: f64 = 0.985;

fn top_01(scope: &Scope<'_>) -> Vec<(String, Ruling)> {
    // A shaper is known from its settings, a line rate may be concluded from the goodput alone.
    let is_shaped = scope.nics().any(|nic| super::qdisc::is_shaped(&nic));
    let judged = |run: &Run<'_>| {
        require(!is_shaped, "a shaper of these hosts sets the rate (QD-01)")
            .and_then(|()| line_rate(run))
    };
    let runs = scope.runs().map(|run| (run.subject(), judged(&run)));

    runs.chain(payload_rows(scope, payload_row)).collect()
}

/// Matches if the link of this host is full.
pub(super) fn line_rate(run: &Run<'_>) -> Ruling {
    if run.is("same_host") {
        return inapplicable(
            Inapplicable::Test,
            "both ends are on one host, which has no line rate",
        );
    }

    let goodput = run.goodput_bps()?;
    let known = known_speed_mbps(run);
    // The rate of a hop between the hosts looks like that of a link; an examined path has rules of
    // its own for it. A text about a NIC that lacks its speed, or has a wrong one, is no ground for
    // a guess.
    let has_pasted_nic = run.host.is_pasted() && run.host.nics().next().is_some();
    let is_guessed = !run.is_examined() && !has_pasted_nic;
    let inferred = || {
        is_guessed
            .then(|| inferred_speed_mbps(goodput.value / 1e6))
            .flatten()
    };
    let Some(speed) = known.or_else(inferred) else {
        let speed = run.nic().map(|nic| nic.speed_mbps());
        return Err(speed
            .and_then(Result::err)
            .unwrap_or_else(|| NoMatch::missing("nic.*.link.speed_mbps", run.host.reason("nic"))));
    };

    let mtu = run.nic().map_or(1500.0, |nic| nic.mtu());
    let transport = if run.is_udp() {
        Transport::Udp
    } else {
        Transport::TcpTimestamps
    };
    let ceiling = goodput_ceiling(speed * 1e6, mtu, Network::V4, transport).unwrap_or(0.0);
    require(
        goodput >= FULL * ceiling,
        format!("{:.1} of {:.1} Mbit/s", goodput.value / 1e6, ceiling / 1e6),
    )?;

    if let Some(slower) = slower_direction(run, goodput.value) {
        return clear(format!(
            "only in this direction: {:.1} Mbit/s in the other",
            slower / 1e6
        ));
    }

    let bare = goodput_ceiling(speed * 1e6, mtu, Network::V4, Transport::Tcp).unwrap_or(0.0);
    let is_above = goodput > 1.001 * ceiling && !run.is_udp();
    let matched = matched()
        .read_rate(
            &goodput,
            format!(
                "ceiling of {speed} Mbit/s at MTU {mtu}: {:.1} with timestamps, {:.1} without",
                ceiling / 1e6,
                bare / 1e6
            ),
        )
        .cap_if(known.is_none(), Confidence::Medium);

    Ok(if is_above {
        matched
            .advice("more than timestamps allow: they are probably off, or the interval is rounded")
    } else {
        matched
    })
}

/// Goodput of a test alike in the other direction of the same path, where it is lower by more than
/// a tenth.
fn slower_direction(run: &Run<'_>, goodput_bps: f64) -> Option<f64> {
    let path = run.text("path").ok()?;
    let reverse = run.flag("reverse").ok()?;
    let opposite = |other: &Run<'_>| {
        let same = |fact: &str| other.host.value(&other.key(fact)) == run.value(fact);
        other.text_is("path", path.value)
            && other.flag("reverse").is_ok_and(|other| other != reverse)
            && same("streams")
            && same("transport")
    };
    let mut rates = run
        .host
        .runs()
        .filter(opposite)
        .filter_map(|other| other.goodput_bps().ok());

    rates
        .find(|rate| *rate < 0.9 * goodput_bps)
        .map(|rate| rate.value)
}

fn known_speed_mbps(run: &Run<'_>) -> Option<f64> {
    let declared = run.host.number("path.line_rate_mbps").ok();
    let of_nic = || run.nic().and_then(|nic| nic.speed_mbps().ok());
    declared.or_else(of_nic).map(|speed| speed.value)
}

/// The link speed whose ceiling a rate hits within half a per cent. Speeds that are rare are not
/// guessed.
fn inferred_speed_mbps(goodput_mbps: f64) -> Option<f64> {
    COMMON_SPEEDS_MBPS.into_iter().find(|speed| {
        let with = tcp_ceiling(*speed, 1500.0);
        let without = goodput_ceiling(*speed, 1500.0, Network::V4, Transport::Tcp);
        goodput_mbps >= FULL * with
            && without.is_some_and(|without| goodput_mbps <= 1.005 * without)
    })
}

/// Applies a rule to every row of a table of HTTP payloads.
fn payload_rows(scope: &Scope<'_>, rule: fn(&Host<'_>, &str) -> Ruling) -> Vec<(String, Ruling)> {
    let mut rulings = Vec::new();
    for host in &scope.hosts {
        let rows = host.snapshot.facts_under("http.row.");
        for row in rows.filter_map(|(key, _)| key.strip_suffix(".best_bytes_per_second")) {
            rulings.push((format!("{} {row}", host.name()), rule(host, row)));
        }
    }

    rulings
}

/// One row of a table of HTTP payloads against the link.
fn payload_row(host: &Host<'_>, row: &str) -> Ruling {
    let best = host.number(&format!("http.row.{row}.best_bytes_per_second"))?;
    let speed = host.number("path.line_rate_mbps")?;
    // From bits to bytes per second.
    let ceiling = tcp_ceiling(speed.value * 1e6, 1500.0) / 8.0;
    require(
        best >= FULL * ceiling,
        format!("{:.1} of {:.1} MB/s", best.value / 1e6, ceiling / 1e6),
    )?;

    Ok(matched().because(
        best.key,
        format!("{:.1} MB/s", best.value / 1e6),
        format!("ceiling of {speed} Mbit/s: {:.1} MB/s", ceiling / 1e6),
    ))
}

fn sys_01(host: &Host<'_>) -> Ruling {
    let limit = host.number("limits.nofile.soft")?;
    let needed = host
        .number("load.connections")
        .suspect(format!("{limit} descriptors"))?;
    // 64 descriptors are no connections, as in the checks before a plan.
    require(
        needed.value + 64.0 > limit.value,
        format!("{limit} for {needed} connections"),
    )?;

    Ok(matched()
        .read(&limit, format!("at least {}", needed.value + 64.0))
        .read(&needed, "connections")
        .advice(
            "ulimit -n 200000 in the shell that starts the test; a new shell has the old limit \
             again",
        )
        .persist("/etc/security/limits.d/nofile.conf, or LimitNOFILE= of the service"))
}

/// Ports of the default range, 32768 to 60999.
fn port_range(host: &Host<'_>) -> Result<Reading<f64>, NoMatch> {
    if let Ok(count) = host.number("limits.local_ports") {
        return Ok(count);
    }

    let range = host.text("sysctl.net.ipv4.ip_local_port_range")?;
    let mut ends = range
        .value
        .split_whitespace()
        .filter_map(|end| end.parse::<f64>().ok());
    match (ends.next(), ends.next()) {
        // Both ends of the range are usable.
        (Some(low), Some(high)) if high >= low => Ok(Reading::new(range.key, high - low + 1.0)),
        _ => unknown(range.key, "not a range"),
    }
}

fn sys_02(host: &Host<'_>) -> Ruling {
    let ports = port_range(host)?;
    let used = host
        .number("load.ports_used")
        .suspect(format!("{ports} local ports"))?;
    require(used > 0.9 * ports.value, format!("{used} of {ports} ports"))?;

    Ok(matched()
        .read(&ports, "local ports per address and destination")
        .read(&used, format!("at most {:.0}", 0.9 * ports.value))
        .sysctl(host, "net.ipv4.ip_local_port_range", "1024 65535")
        .advice("or use several source addresses or destination ports"))
}

fn sys_03(host: &Host<'_>) -> Ruling {
    let ports = port_range(host)?;
    let waiting = host.number("sock.tcp.tw")?;
    require(
        waiting > 0.5 * ports.value,
        format!("{waiting} connections in TIME-WAIT"),
    )?;

    Ok(matched()
        .read(&waiting, format!("at most half of {ports} ports"))
        // Not tcp_tw_recycle, which Linux 4.12 removed.
        .sysctl(host, "net.ipv4.tcp_tw_reuse", "1")
        .advice("wait 60 s between tests, or keep connections open"))
}

fn sys_04(host: &Host<'_>) -> Ruling {
    // The kernel counts what overflows among the dropped connections as well.
    let keys = [
        "net.netstat.TcpExt.ListenOverflows",
        "net.netstat.TcpExt.TCPReqQFullDrop",
        "net.netstat.TcpExt.ListenDrops",
    ];
    let counted = keys
        .iter()
        .filter_map(|key| host.growth(key).ok())
        .find(|growth| growth.value > 0);
    let overflows = counted.map_or_else(|| host.growth_of(&keys), Ok)?;
    overflows.or_clear("overflows of an accept queue")?;

    let somaxconn = host.number("sysctl.net.core.somaxconn");
    let is_small = somaxconn.as_ref().is_ok_and(|most| *most < SOMAXCONN);
    if !(host.is_pasted() && is_small && overflows.value >= OVERFLOWS_MANY) {
        overflows.in_period("totals", format!("{overflows} since boot"))?;
    }

    let mut found = matched().grew(&overflows);
    if let Ok(most) = somaxconn
        && is_small
    {
        found = found.read(&most, format!("{SOMAXCONN}, as since Linux 5.4"));
    }
    Ok(found
        .raise(host, "net.core.somaxconn", 4096.0)
        .advice("and raise the backlog of the application's listen(2), or accept faster"))
}

/// The kernel's default length of accept queues.
const SOMAXCONN: f64 = 4096.0;
/// Totals since boot from which on a short queue is worth a finding.
const OVERFLOWS_MANY: u64 = 100;

fn sys_05(host: &Host<'_>) -> Ruling {
    let max = host.number_if_any("limits.conntrack.max", "connections are not tracked")?;
    let count = host.number("limits.conntrack.count")?;
    require(
        count > 0.9 * max.value,
        format!("{count} of at most {max} connections are tracked"),
    )?;

    let tracked = |most: f64| assignment("net.netfilter.nf_conntrack_max", &format!("{most:.0}"));
    let mut found = matched().read(&count, format!("at most 0.9 of {max}"));

    if let Ok(logged) = host.growth("conntrack.log_full") {
        found = found.because("conntrack.log_full", logged.value, "0 in the kernel's log");
    }

    Ok(found
        .fix_of_tokens(tracked(2.0 * max.value).zip(tracked(max.value)))
        .advice("or exempt the test port from tracking (notrack)"))
}

fn sys_06(host: &Host<'_>) -> Ruling {
    let drops = host.growth("conntrack.drop")?;
    drops.or_clear("packets dropped by connection tracking")?;
    drops.in_period("totals", format!("{drops} packets since boot"))?;
    Ok(matched().grew(&drops).advice(
        "raise net.netfilter.nf_conntrack_max, or exempt the test port from tracking (notrack)",
    ))
}

/// Rows of a table over concurrency: a rate does not rise although the concurrency doubles.
fn http_01(scope: &Scope<'_>) -> Vec<(String, Ruling)> {
    let rows = payload_rows(scope, queueing);
    let without = scope
        .hosts
        .iter()
        .filter(|host| host.snapshot.facts_under("http.row.").next().is_none());
    let missing = |host: &Host<'_>| {
        let key = "http.row.*.best_bytes_per_second";
        (host.name().to_owned(), unknown(key, host.reason(key)))
    };

    rows.into_iter().chain(without.map(missing)).collect()
}

fn queueing(host: &Host<'_>, row: &str) -> Ruling {
    let key = |fact: &str| format!("http.row.{row}.{fact}");
    let best = host.number(&key("best_concurrency"))?;
    let most = host.number(&key("flat_concurrency"))?;
    require(
        most >= 2.0 * best.value,
        format!("the rate rises up to {most} requests at once"),
    )?;

    let rate = host.number(&key("best_bytes_per_second"))?;
    Ok(matched()
        .because(
            rate.key,
            format!("{:.1} MB/s", rate.value / 1e6),
            "the highest rate of the row",
        )
        .read(&best, "the lowest concurrency within 2 % of it")
        .read(
            &most,
            "the highest with the same rate: each request waits that many times longer",
        )
        .advice(format!("use a concurrency of {best}")))
}

fn http_02(host: &Host<'_>) -> Ruling {
    let wanted = host.number("load.connections")?;
    let hit = host.text("load.client_limit")?;
    require(hit != "none", "the client opened its connections")?;

    Ok(matched()
        .read(&wanted, "connections that the load needs")
        .read_text(&hit, "none: the limit of the client that was reached first")
        .advice("raise the limits of the client (SYS-01 to SYS-03), or add a second client"))
}

fn app_01(run: &Run<'_>) -> Ruling {
    run.over_tcp()?;
    let found = matched().advice("check disk, generator or target rate");
    if run.is_limited_by(&[limit::APPLICATION])? {
        return Ok(found.read(&run.number("busy_share")?, "all of the time"));
    }

    require(
        !run.host.has_full_cpu(),
        "a CPU is fully used: the sender may have waited for it",
    )?;
    require(
        !run.reaches_its_target(),
        "the target rate is reached: a paced sender has nothing to send most of the time",
    )?;
    if let Ok(share) = run.number("app_limited_share")
        && share > 0.5
    {
        return Ok(found.read(&share, "at most half of the samples"));
    }

    let busy = run.number("busy_share")?;
    require(
        busy < 0.8,
        format!(
            "TCP had data to send {:.0} % of the time",
            busy.value * 100.0
        ),
    )?;
    Ok(found.read(&busy, "at least 0.8 of the time"))
}
