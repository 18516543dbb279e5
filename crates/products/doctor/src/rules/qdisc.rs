//! Queueing disciplines, policers and filters.

use super::measurement::version_number;
use crate::rules::prelude::*;

rules! {
    Nic qd_01,
    Nic qd_02,
    Nic qd_03,
    Nic qd_04,
    Nic qd_05,
    Nic qd_07,
    Nic qd_06,
}

const SHAPERS: [&str; 5] = ["tbf", "htb", "hfsc", "cake", "police"];

fn qd_01(nic: &Nic<'_>) -> Ruling {
    let qdiscs = nic.qdiscs()?;
    let shaper = narrowest(&qdiscs)?.or_clear("no shaper")?;
    let rate = shaper.number("rate_bps")?;

    if let Ok(speed) = nic.speed_mbps() {
        require(
            rate < 0.98 * speed.value * 1e6,
            "the shaper is faster than the link",
        )?;
    }

    let payload = payload_bps(nic, rate.value);
    let goodput = goodput(nic, shaper, payload).suspect(format!(
        "{} lets {:.1} Mbit/s of payload through",
        shaper.kind,
        payload / 1e6
    ))?;

    // Where it held for most seconds, others may have been slower.
    let is_shaped = |run: &Run<'_>| {
        passes(nic, shaper, run)
            && run.limit() == Some(limit::CONFIGURED_RATE)
            && !run.reaches_its_target()
    };
    let is_concluded = nic.host.runs().any(|run| is_shaped(&run));
    require(
        is_concluded || is_at(goodput, payload),
        format!(
            "{:.1} Mbit/s are not the {:.1} of the shaper",
            goodput / 1e6,
            payload / 1e6
        ),
    )?;

    let matched = match (shaper.kind, nic.root_command().filter(|_| shaper.is_root())) {
        ("police", _) => matched().advice(format!(
            "find the filter with the policer: tc filter show dev {} ingress",
            nic.word()
        )),
        (_, Some(undo)) => matched()
            .fix_of_tokens(command("tc qdisc del dev {} root", &[&nic.name]).zip(Some(undo))),
        (_, None) => matched().advice(removal(nic)),
    };
    Ok(matched
        .read(
            &rate,
            format!(
                "{} lets {:.1} Mbit/s of payload through",
                shaper.kind,
                payload / 1e6
            ),
        )
        .because(
            "goodput",
            mbits(goodput),
            "what the shaper lets through, most of the time",
        ))
}

/// Payload that a shaper lets through: of the datagrams of a UDP test, otherwise of full segments.
fn payload_bps(nic: &Nic<'_>, rate_bps: f64) -> f64 {
    /// Ethernet, IPv4 and UDP.
    const HEADERS_BYTES: f64 = 42.0;

    let datagram = nic
        .host
        .runs()
        .find(Run::is_udp)
        .and_then(|run| run.number("block_len_bytes").ok());
    // A larger datagram is sent in fragments with headers of their own.
    match datagram
        .map(|bytes| bytes.value)
        .filter(|bytes| *bytes > 0.0 && bytes + HEADERS_BYTES <= nic.mtu() + 14.0)
    {
        Some(bytes) => rate_bps * bytes / (bytes + HEADERS_BYTES),
        None => shaper_payload(rate_bps, nic.mtu()),
    }
}

/// Advice for removing a discipline that no single command makes again.
fn removal(nic: &Nic<'_>) -> String {
    let name = nic.word();
    format!(
        "tc qdisc del dev {name} root removes it; first keep the output of `tc -d qdisc show dev \
         {name}` and `tc class show dev {name}` to be able to put it back"
    )
}

/// Within 5 %.
fn is_at(goodput_bps: f64, payload_bps: f64) -> bool {
    (goodput_bps - payload_bps).abs() <= 0.05 * payload_bps
}

/// True if a shaper on this interface has the rate of this run of its host.
pub(super) fn sets_rate_of(nic: &Nic<'_>, run: &Run<'_>) -> Result<bool, NoMatch> {
    let qdiscs = nic.qdiscs()?;
    let Some(shaper) = narrowest(&qdiscs)? else {
        return Ok(false);
    };
    let payload = payload_bps(nic, shaper.number("rate_bps")?.value);
    Ok(run.part() != Some(part_it_misses(shaper)) && is_at(run.goodput_bps()?.value, payload))
}

/// The end of a test whose data does not pass the shaper.
fn part_it_misses(shaper: &Qdisc<'_>) -> &'static str {
    // A policer at ingress meets what this host receives.
    if shaper.kind == "police" {
        "sender"
    } else {
        "receiver"
    }
}

/// The data of this run pass the shaper.
fn passes(nic: &Nic<'_>, shaper: &Qdisc<'_>, run: &Run<'_>) -> bool {
    run.part() != Some(part_it_misses(shaper)) && run.nic().is_none_or(|used| used.name == nic.name)
}

/// True if a shaper on this interface is the limit.
pub(super) fn is_shaped(nic: &Nic<'_>) -> bool {
    qd_01(nic).is_ok()
}

/// The shaper with the lowest rate. One whose rate is not known may be the narrowest, so that
/// nothing is ruled out; cake without a rate shapes nothing.
fn narrowest<'a, 'b>(qdiscs: &'b [Qdisc<'a>]) -> Result<Option<&'b Qdisc<'a>>, NoMatch> {
    let mut found: Option<(f64, &Qdisc<'_>)> = None;
    for shaper in qdiscs.iter().filter(|qdisc| SHAPERS.contains(&qdisc.kind)) {
        let rate = match shaper.number("rate_bps") {
            Ok(rate) => rate.value,
            Err(_) if shaper.is_unlimited() => continue,
            Err(stop) => return Err(stop),
        };
        if found.is_none_or(|(least, _)| rate < least) {
            found = Some((rate, shaper));
        }
    }

    Ok(found.map(|(_, shaper)| shaper))
}

/// Payload that a shaper on this interface lets through, bit/s; `None` without a shaper.
pub(super) fn shaped_payload_bps(nic: &Nic<'_>) -> Option<f64> {
    let qdiscs = nic.qdiscs().ok()?;
    let shaper = narrowest(&qdiscs).ok()??;
    Some(shaper_payload(
        shaper.number("rate_bps").ok()?.value,
        nic.mtu(),
    ))
}

/// Goodput of a run over this interface, of several the one nearest to what the shaper lets
/// through; without one, what passed the interface over the period: what leaves, or, with an
/// ingress policer, what arrives.
fn goodput(nic: &Nic<'_>, shaper: &Qdisc<'_>, payload_bps: f64) -> Result<f64, NoMatch> {
    let (bytes, packets) = match shaper.kind {
        "police" => ("stats64.rx_bytes", "stats64.rx_packets"),
        _ => ("stats64.tx_bytes", "stats64.tx_packets"),
    };
    let rates: Vec<_> = nic
        .host
        .runs()
        .filter(|run| passes(nic, shaper, run))
        .map(|run| run.goodput_bps())
        .collect();
    let known = rates.iter().flatten().map(|rate| rate.value);
    let distance = |rate: &f64| (rate - payload_bps).abs();
    if let Some(nearest) = known.min_by(|a, b| distance(a).total_cmp(&distance(b))) {
        return Ok(nearest);
    }
    if let Some(Err(stop)) = rates.into_iter().next() {
        return Err(stop);
    }

    let period = nic.host.period()?;
    let bytes = nic.delta(bytes)?;
    let packets = nic.delta(packets)?;

    // What the interface counts carries 14 bytes of header per packet, which are no payload; 52
    // more are IP and TCP.
    let payload = (bytes - 66.0 * (packets.min(bytes / (nic.mtu() + 14.0)))).max(0.0);
    require(
        payload * 8.0 / period.seconds > 1e5,
        "no traffic in the window",
    )?;
    Ok(payload * 8.0 / period.seconds)
}

/// Part of the packets from which on drops matter.
const DROPS_MIN: f64 = 1e-5;

fn qd_02(nic: &Nic<'_>) -> Ruling {
    let qdiscs = nic.qdiscs()?;
    require(
        !qdiscs.iter().any(|qdisc| qdisc.kind == "netem"),
        "netem drops on purpose (QD-03)",
    )?;

    let drops = growth(nic, &qdiscs, "drops")?;
    drops.or_clear("drops of the qdiscs")?;

    // One drop in 12 million packets is no finding.
    if let Ok(sent) = nic.growth("stats64.tx_packets") {
        let share = to_f64(drops.value) / to_f64(sent.value.max(1));
        require(share >= DROPS_MIN, format!("{drops} of {sent} packets"))?;
    }

    Ok(matched().grew(&drops).change_or(
        longer_queue(nic),
        "use a longer queue: the limit of the discipline, or txqueuelen of the interface where it \
         has no limit of its own",
    ))
}

/// Growth of a counter of the disciplines, of those below the root where they have it: the root
/// counts their packets again.
fn growth(nic: &Nic<'_>, qdiscs: &[Qdisc<'_>], counter: &str) -> Result<Growth, NoMatch> {
    let is_known = |qdisc: &&Qdisc<'_>| {
        let key = qdisc.key(counter);
        nic.host.snapshot.counters.contains_key(&key)
    };
    let has_below = qdiscs
        .iter()
        .any(|qdisc| !qdisc.is_root() && is_known(&qdisc));
    let counted = qdiscs.iter().filter(|qdisc| !has_below || !qdisc.is_root());

    let keys: Vec<String> = counted.map(|qdisc| qdisc.key(counter)).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    nic.host.growth_of(&keys)
}

fn qd_07(nic: &Nic<'_>) -> Ruling {
    let qdiscs = nic.qdiscs()?;
    let fair: Vec<Qdisc<'_>> = qdiscs
        .into_iter()
        .filter(|qdisc| qdisc.kind == "fq")
        .collect();
    require(!fair.is_empty(), "no fq")?;

    let drops = growth(nic, &fair, "flows_plimit")?;
    drops.or_clear("packets beyond flow_limit")?;
    let mut found = matched().grew(&drops);
    let mut limits = fair.iter().map(|qdisc| format!("{}.flow_limit", qdisc.key));
    let known = limits.find(|key| nic.host.value(key).is_some());
    if let Some(limit) = known.as_ref().and_then(|key| nic.host.value(key)) {
        found = found.because(known.unwrap_or_default(), limit, "ten times as many");
    }

    Ok(found.advice(format!(
        "raise the limit per flow on each fq of {} (flow_limit 1000), or look for a flow that does \
         not respond to loss, as UDP; `limit` is not the cause",
        nic.word()
    )))
}

/// A longer queue at the root, in packets; otherwise a discipline that keeps queues short.
fn longer_queue(nic: &Nic<'_>) -> Option<Change> {
    const PACKETS: f64 = 1000.0;

    let root = nic.text("qdisc.root.kind").ok()?;
    let is_short = |fact: &str| nic.number(fact).is_ok_and(|limit| limit < PACKETS);

    match root.value {
        "pfifo" if is_short("qdisc.root.limit") => {
            let undo = nic.root_command()?;
            let (_, limit) = undo.line().rsplit_once(" limit ")?;
            Some((undo.with_parameter("limit", limit, PACKETS)?, undo))
        }
        "pfifo_fast" if is_short("net.txqlen") => nic.set(
            "ip link set dev {}",
            &[("txqueuelen", "net.txqlen", "1000")],
        ),
        // mq and multiq have no queue of their own, and fq_codel keeps its queue short on purpose.
        "mq" | "multiq" | "fq_codel" => None,
        _ => nic.replace_root("fq_codel", ""),
    }
}

fn qd_03(nic: &Nic<'_>) -> Ruling {
    let qdiscs = nic.qdiscs()?;
    let netem = qdiscs
        .iter()
        .find(|qdisc| qdisc.kind == "netem")
        .or_clear("no netem")?;
    Ok(matched()
        .because(
            format!("{}.kind", netem.key),
            "netem",
            "no netem outside a lab",
        )
        .advice(removal(nic)))
}

fn qd_04(nic: &Nic<'_>) -> Ruling {
    let qdiscs = nic.qdiscs()?;
    require(
        qdiscs.iter().any(|qdisc| qdisc.kind == "multiq"),
        "no multiq",
    )?;
    let filters = nic.number("qdisc.filter.skbedit_count")?;
    require(filters > 0.0, "no filter maps onto queues")?;

    let priorities = nic.number("qdisc.filter.priorities")?;
    let clients = nic
        .host
        .number("clients.count")
        .suspect("multiq with fixed mapping")?;
    require(priorities < clients, "every filter has its own priority")?;

    let slowest = nic.host.number("clients.link_mbps_min")?;
    let fastest = nic.host.number("clients.link_mbps_max")?;
    require(slowest < fastest, "all links have one speed")?;

    let observed = nic.host.number("clients.observed_mbps")?;
    require(
        observed <= 1.05 * slowest.value,
        "the others are faster than the slow one",
    )?;
    Ok(matched()
        .because(nic.key("qdisc"), "multiq", "mq, or one priority per filter")
        .read(&priorities, format!("one per destination ({clients})"))
        .read(&slowest, format!("{fastest} Mbit/s as the others"))
        .read(&observed, "more than the slowest link")
        .advice(
            "give every filter its own priority (prio N), or use mq without filters; and repair \
             the slow link",
        ))
}

fn qd_05(nic: &Nic<'_>) -> Ruling {
    if nic.text_is("net.kind", "loopback") {
        return inapplicable(Inapplicable::Device, "it is the loopback");
    }

    let sent = || nic.host.runs().filter(|run| run.part() != Some("receiver"));
    let asked = sent().find_map(|run| {
        run.number("fq_rate_bps")
            .ok()
            .map(|rate| (rate.key, rate.value.to_string()))
    });

    let by_algorithm =
        || sent().find_map(|run| run.text("congestion").ok().filter(|cc| *cc == "bbr"));
    let Some((key, value)) =
        asked.or_else(|| by_algorithm().map(|cc| (cc.key, cc.value.to_owned())))
    else {
        let run = sent()
            .next()
            .or_unknown("run.0.fq_rate_bps", "needs a test")?;
        return clear(format!("{} does not pace", run.text("congestion")?));
    };

    let qdiscs = nic.qdiscs()?;
    require(
        !qdiscs.iter().any(|qdisc| qdisc.kind == "fq"),
        "fq is in use",
    )?;
    if let Some(shaper) = narrowest(&qdiscs)? {
        return clear(format!("{} spaces the packets", shaper.kind));
    }

    let kernel = nic.host.snapshot.kernel.as_deref();
    let is_old = kernel
        .and_then(version_number)
        .is_some_and(|version| version < (4, 20));
    Ok(matched()
        .because(
            key,
            value,
            "paced packets, which fq on the interface would spread",
        )
        .change_or(
            nic.replace_root("fq", ""),
            "give the interface fq where the kernel has it, in the place of what `tc qdisc show` \
             prints",
        )
        .persist("write net.core.default_qdisc=fq to /etc/sysctl.d/90-network.conf")
        .severity_if(is_old, Severity::High))
}

/// Rules of a firewall that cost nothing worth talking about.
const FILTER_RULES_MAX: f64 = 1000.0;

fn qd_06(nic: &Nic<'_>) -> Ruling {
    let xdp = nic.text("net.xdp")?;
    if xdp == "generic" {
        return Ok(matched()
            .read_text(&xdp, "native")
            .advice("load the program in native mode, or unload it"));
    }

    let rules = nic.host.number("svc.firewall_rules")?;
    if rules > FILTER_RULES_MAX {
        return Ok(matched()
            .read(&rules, "at most 1000")
            .advice("exempt the test port from tracking (notrack) and accept it first"));
    }

    let tracking = nic.host.flag("svc.conntrack")?;
    require(
        tracking.value,
        format!("{rules} firewall rules, no tracking, XDP {xdp}"),
    )?;

    // Most hosts with containers track connections, and few of them notice.
    Ok(matched()
        .because(
            tracking.key,
            true,
            "no tracking of the test port, if packets per second matter",
        )
        .severity(Severity::Info)
        .advice("exempt the test port from tracking (notrack)"))
}
