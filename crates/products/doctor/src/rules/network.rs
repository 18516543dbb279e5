//! What happens between the hosts: policers, queues, hashing, loss.

use linerate_model::finding::{Confidence, Inapplicable, Severity};

use super::application::line_rate;
use super::latency::longest_queue_us;
use super::qdisc::sets_rate_of;
use super::window::socket_explains;
use crate::arithmetic::{
    COMMON_SPEEDS_MBPS, Network, Transport, goodput_ceiling, mathis_bps, tcp_ceiling,
};
use crate::limit;
use crate::rule::Rule;
use crate::ruling::{Match, NoMatch, Ruling, clear, inapplicable, matched, require, unknown};
use crate::scope::{Host, Nic, QUEUE_INFLATION_MIN, QUEUE_RTT_MIN_US, Reading, Run, Scope};

pub(super) const RULES: &[Rule] = &[
    Rule::run(
        "PATH-01",
        Severity::High,
        "A policer drops above its rate",
        path_01,
    )
    .at_most(Confidence::Medium)
    .explanation(
        "Fast at first, then steady at a lower rate with losses and without a growing queue: the \
         pattern of a token bucket that drops. Pacing at its rate avoids the losses.",
    )
    .reference("Flach and others, An Internet-Wide Analysis of Traffic Policing, 2016"),
    Rule::scope(
        "PATH-09",
        Severity::Info,
        "The narrowest hop of the path sets the rate",
        path_09,
    )
    .explanation(
        "The rate is steady, and the round trip or the loss rises with the load, while both hosts \
         have time left and none of their shapers has this rate. Nothing in these two hosts can be \
         tuned for more.",
    )
    .reference("RFC 6349, section 3; RFC 9097"),
    Rule::run(
        "PATH-10",
        Severity::High,
        "The path between the hosts is the limit",
        path_10,
    )
    .explanation(
        "The sender had data outstanding all the time, and neither host was at a limit of its own. \
         The network between them remains.",
    )
    .reference("kernel networking/tcp_info, tcpi_busy_time; RFC 9438"),
    Rule::run(
        "PATH-11",
        Severity::High,
        "Datagrams are lost between the hosts",
        path_11,
    )
    .explanation(
        "Neither the sender's queue nor the firewall, the NIC, the backlog or the socket of the \
         receiver dropped most of the lost datagrams. What is left is the network between the \
         hosts.",
    )
    .reference("kernel networking/snmp_counter, UdpRcvbufErrors; RFC 7680"),
    Rule::host(
        "FW-01",
        Severity::High,
        "The firewall of this host drops packets",
        fw_01,
    )
    .explanation(
        "Rules of this host's own firewall dropped packets while the test ran. This loss is no \
         loss of the network.",
    )
    .reference("nft(8), counter"),
    Rule::run(
        "PATH-02",
        Severity::Medium,
        "A deep queue fills on the path",
        path_02,
    )
    .explanation(
        "The round trip grows several times under load. Throughput does not suffer, but every flow \
         through the queue is delayed.",
    )
    .reference("RFC 8290, RFC 8033"),
    Rule::host(
        "PATH-03",
        Severity::Medium,
        "One flow cannot fill the aggregate",
        path_03,
    )
    .explanation(
        "Bonds and equal-cost paths send one flow over one member. Several flows spread, one does \
         not.",
    )
    .reference("kernel networking/bonding, xmit_hash_policy"),
    Rule::run(
        "PATH-12",
        Severity::High,
        "All streams share one member of a bond",
        path_12,
    )
    .explanation(
        "This hash policy chooses the member by addresses alone, which all streams to one host \
         have in common. More streams do not use more members.",
    )
    .reference("kernel networking/bonding, xmit_hash_policy"),
    Rule::host(
        "PATH-13",
        Severity::High,
        "Probes are lost on the path",
        path_13,
    )
    .at_most(Confidence::Medium)
    .explanation(
        "Echo requests to the peer are lost, from one hop on where the hops are known. Loss at one \
         hop alone is a router that limits its answers and no loss of the path.",
    )
    .reference("mtr(8); ping(8); RFC 7680"),
    Rule::run("PATH-06", Severity::High, "Random loss limits TCP", path_06)
        .explanation(
            "The measured rate is what this loss and this round trip allow. The packets are lost \
             on the path, not in the hosts.",
        )
        .reference("Mathis and others, 1997; RFC 9438"),
    Rule::run(
        "PATH-07",
        Severity::Medium,
        "Packets are reordered",
        path_07,
    )
    .explanation(
        "Packets arrive out of order and TCP retransmits segments that were not lost. A hop or a \
         bond balances load per packet.",
    )
    .reference("RFC 8985, RFC 2883"),
    Rule::run(
        "PATH-14",
        Severity::High,
        "The rate is that of a slower link",
        path_14,
    )
    .at_most(Confidence::Medium)
    .explanation(
        "The rate is steady at what a link of a lower speed carries, and the link of this host is \
         faster. Either a hop on the path has that speed, or the test leaves through another \
         interface.",
    )
    .reference("IEEE 802.3 clause 4.4.2; ip-route(8), `ip route get`"),
    Rule::scope(
        "PATH-15",
        Severity::High,
        "This direction is much slower than the other",
        path_15,
    )
    .explanation(
        "The same hosts move more than twice as much in the other direction, and segments of this \
         one are lost. What both directions have alike is not the limit.",
    )
    .reference("iperf3(1), --reverse; RFC 6349, section 3"),
    Rule::host("PATH-08", Severity::Info, "The directions differ", path_08)
        .explanation(
            "One direction is more than a tenth slower. Check the sender of the slower direction \
             first.",
        )
        .reference("iperf3(1), --reverse"),
];

fn path_01(run: &Run<'_>) -> Ruling {
    run.over_tcp()?;
    let first = run.number("first_second_bps")?;
    let later = run.number("later_median_bps")?;
    require(later.value <= 0.7 * first.value, || {
        "the rate does not step down".to_owned()
    })?;

    let spread = run.number("later_spread")?;
    require(spread.value < 0.03, || {
        "the later rate is not steady".to_owned()
    })?;
    let loss = run.number("retransmit_share")?;
    require(loss.value >= 0.005, || "hardly any loss".to_owned())?;

    let no_queue = without_queue(run, later.value)?;
    Ok(matched()
        .read(&first, "the first second")
        .read(&later, "steady and at most 0.7 of the first second")
        .read(&loss, "below 0.005")
        .because_all(no_queue.evidence)
        .advice(format!(
            "pace at {:.0} Mbit/s ({}), and request shaping instead of policing",
            0.95 * later.value / 1e6,
            if run.is_examined() {
                "-b"
            } else {
                "-b, or --fq-rate"
            }
        )))
}

/// Continues where no queue grows before the loss. Without round trips, where segments are lost in
/// every second although so little is in flight that it takes no time at this rate: a queue would
/// hold more.
fn without_queue(run: &Run<'_>, rate_bps: f64) -> Ruling {
    const INFLATION_MAX: f64 = 1.3;
    const LOSSY_MIN: f64 = 0.9;

    let inflation = run.number("rtt_inflation");
    if run.part().is_some() || inflation.is_ok() {
        let inflation = inflation?;
        require(inflation.value < INFLATION_MAX, || {
            "a queue grows before the loss".to_owned()
        })?;
        return Ok(matched().read(&inflation, "a growing queue would show 1.3 or more"));
    }

    let lossy = run.number("lossy_seconds_share")?;
    require(lossy.value >= LOSSY_MIN, || {
        "seconds without loss".to_owned()
    })?;
    let window = run.number("cwnd_min_bytes")?;
    let in_flight_us = window.value * 8.0 / rate_bps * 1e6;
    require(in_flight_us < QUEUE_RTT_MIN_US, || {
        format!("{:.0} ms in flight: a queue", in_flight_us / 1e3)
    })?;

    Ok(matched()
        .read(&lossy, "below 0.9: seconds with loss, of all")
        .read(&window, "a queue would hold more than 5 ms"))
}

fn path_02(run: &Run<'_>) -> Ruling {
    let grown = run.inflation()?;
    require(grown.times >= QUEUE_INFLATION_MIN, || {
        format!("the round trip grows {:.1} times", grown.times)
    })?;
    let rtt = grown.loaded?;

    // On a path of microseconds the scheduler alone triples the round trip.
    require(rtt.value >= QUEUE_RTT_MIN_US, || {
        format!("a round trip of {:.0} us under load", rtt.value)
    })?;
    if run.number("rtt_idle_us").is_ok() {
        let longest = longest_queue_us(run)?;
        require(longest >= QUEUE_RTT_MIN_US, || {
            "most of the queue is in the sending host (LAT-01)".to_owned()
        })?;
    }

    Ok(matched()
        .read(&grown.read, growth_text(&grown.read, grown.times))
        .read(&rtt, "microseconds under load")
        .advice("use active queue management at the narrowest hop (cake, fq_codel), or BBR"))
}

/// What the growth of a round trip is compared with.
fn growth_text(read: &Reading<f64>, times: f64) -> String {
    if read.key.ends_with("_us") {
        format!("it grows {times:.1} times, below 3 without a queue")
    } else {
        "below 3".to_owned()
    }
}

fn path_09(scope: &Scope<'_>) -> Vec<(String, Ruling)> {
    scope
        .runs()
        .map(|run| (run.subject(), narrowest_hop(scope, &run)))
        .collect()
}

/// Largest difference of the rate in one second from its median of a rate that is steady.
const STEADY_MAX: f64 = 0.1;

/// Whether the rate is that of a hop between the hosts.
pub(crate) fn narrowest_hop(scope: &Scope<'_>, run: &Run<'_>) -> Ruling {
    run.over_tcp()?;
    run.is_limited_by(&[limit::PATH_RATE, limit::PATH])?;
    require(!run.reaches_its_target(), || {
        "the target rate is reached".to_owned()
    })?;

    let rate = run.goodput_bps()?;
    let spread = run.number("end_spread")?;
    require(spread.value <= STEADY_MAX, || {
        format!("the rate varies by {:.0} %", spread.value * 100.0)
    })?;

    let rise = rise_with_load(run)?;
    require_time_left(scope, run)?;

    for host in &scope.hosts {
        let there = run.at(*host);
        let Some(nic) = there.nic() else {
            return unknown(
                "route.peer.dev",
                "which interface the test used is not known",
            );
        };
        require(!sets_rate_of(&nic, &there)?, || {
            "a shaper of these hosts sets the rate (QD-01)".to_owned()
        })?;
    }

    require(line_rate(run).is_err(), || {
        "the link is full (TOP-01)".to_owned()
    })?;
    let matched = matched()
        .because(
            rate.key,
            format!("{:.1} Mbit/s", rate.value / 1e6),
            "received",
        )
        .read(&spread, "at most 0.1: a steady rate")
        .because_all(rise.evidence);

    let watched = scope.hosts.len() > 1;
    Ok(if watched {
        matched
    } else {
        matched.cap(Confidence::Medium)
    }
    .advice(
        "nothing in these two hosts can be tuned for more rate: a faster link, or a higher rate of \
         the hop in between",
    ))
}

/// What rises with the load, as evidence: the round trip of probes, or the loss of probes or
/// segments.
fn rise_with_load(run: &Run<'_>) -> Ruling {
    const RTT_MIN_US: f64 = 2_000.0;
    const RTT_MIN: f64 = 0.1;
    const LOSS_MIN: f64 = 1e-3;

    let pair =
        |idle: &str, loaded: &str| Ok::<_, NoMatch>((run.number(idle)?, run.number(loaded)?));
    let rtt = pair("rtt_idle_us", "rtt_loaded_us");
    let lost = pair("probe_loss_idle_share", "probe_loss_share");
    let mut rise = matched();

    if let Ok((idle, loaded)) = &rtt
        && loaded.value - idle.value >= RTT_MIN_US.max(RTT_MIN * idle.value)
    {
        rise = rise
            .read(idle, "without load")
            .read(loaded, "within 2 ms and a tenth of that without load");
    }

    if let Ok((idle, loaded)) = &lost
        && loaded.value >= idle.value + LOSS_MIN
    {
        rise = rise.read(loaded, format!("{} without load", idle.value));
    }

    if let Some(loss) = run.loss() {
        rise = rise.read(&loss, "below 0.001");
    }

    if !rise.evidence.is_empty() {
        return Ok(rise);
    }

    rtt?;
    lost?;
    run.number("retransmit_share")?;
    clear("neither round trip nor loss rises with the load")
}

/// Continues where no program of the test and no receive work of the hosts is at its limit.
fn require_time_left(scope: &Scope<'_>, run: &Run<'_>) -> Result<(), NoMatch> {
    const FULL: f64 = 0.9;
    const SOFTIRQ_FULL: f64 = 0.85;

    for end in ["sender", "receiver"] {
        let thread = run.number(&format!("{end}_thread_cpu"));
        let cpu = thread.or_else(|_| run.number(&format!("{end}_process_cpu")))?;
        require(cpu.value < FULL, || {
            format!("the {end} uses {:.0} % of a CPU", cpu.value * 100.0)
        })?;
    }

    for host in &scope.hosts {
        let softirq = host
            .cpu_loads()?
            .iter()
            .map(|load| load.softirq)
            .fold(0.0, f64::max);
        require(softirq < SOFTIRQ_FULL, || {
            format!("a CPU of {} is full of interrupt work", host.name())
        })?;
    }

    Ok(())
}

fn path_10(run: &Run<'_>) -> Ruling {
    require(!run.is_udp(), || "not TCP".to_owned())?;
    run.concluded(limit::PATH)?;
    let busy = run.number("busy_share")?;
    let rate = run.goodput_bps()?;
    let mut matched = matched().because(
        rate.key,
        format!("{:.1} Mbit/s", rate.value / 1e6),
        "received",
    );

    for (fact, meaning) in [
        ("min_rtt_us", "lowest round trip, microseconds"),
        ("rtt_us", "round trip under load, microseconds"),
        (
            "retransmit_share",
            "share of the segments that was retransmitted",
        ),
    ] {
        if let Ok(reading) = run.number(fact) {
            matched = matched.read(&reading, meaning);
        }
    }

    matched = matched.read(&busy, "data was outstanding for this part of the time");
    let loss = run.loss();
    let is_steady = run
        .number("later_spread")
        .is_ok_and(|spread| spread.value <= 0.1);

    Ok(match (run.queue(), loss, is_steady) {
        (Some(grown), ..) => matched
            .read(
                &grown.read,
                "the round trip grows under load: a queue in front of a slower hop",
            )
            .advice("look for a port speed or a shaper on the switch, router or bridge in between"),
        (None, Some(_), _) if run.has_growing_queue() => matched.advice(
            "a short queue overflows: look for a port speed or a shaper on the switch, router or \
             bridge in between",
        ),
        (None, Some(_), true) => matched.advice(format!(
            "a steady rate with losses and without a queue is a policer of about {:.0} Mbit/s: \
             look for one on the path, or pace below it (-b)",
            rate.value / 1e6
        )),
        (None, Some(_), false) => {
            matched.advice("packets are lost on the path: look for errors hop by hop")
        }
        (None, None, _) => matched.advice(unexplained(run)),
    })
}

/// What is known of queue and loss of a path that shows neither enough of a queue nor enough loss
/// to explain its rate.
fn unexplained(run: &Run<'_>) -> String {
    let queue = run.inflation().ok().map(|grown| match grown.loaded {
        Ok(rtt) if grown.times >= QUEUE_INFLATION_MIN => {
            format!(
                "a round trip of {:.1} ms under load is too short for a deep queue",
                rtt.value / 1e3
            )
        }
        _ => "no queue".to_owned(),
    });
    let loss = run
        .number("retransmit_share")
        .ok()
        .map(|share| match share.value {
            0.0 => "no segment was retransmitted".to_owned(),
            _ if run.spurious().is_some() => {
                "the retransmitted segments were late, not lost".to_owned()
            }
            share => format!(
                "{:.2} % of the segments were retransmitted, which does not explain the rate",
                share * 100.0
            ),
        });
    let known: Vec<String> = [queue, loss].into_iter().flatten().collect();
    let measure = "measure other hosts over the same path to narrow it down";

    if known.is_empty() {
        measure.to_owned()
    } else {
        format!("{}: {measure}", known.join(", "))
    }
}

fn path_11(run: &Run<'_>) -> Ruling {
    run.over_udp()?;
    let share = run.number("loss_share")?;
    require(run.datagram_loss().is_some(), || {
        format!("{:.2} % of the datagrams were lost", share.value * 100.0)
    })?;

    let mut matched = matched().read(&share, "below 0.1 %");
    if let Ok(rate) = run.goodput_bps() {
        matched = matched.read(&rate, "received");
    }

    let network = match (run.number("lost_in_network"), run.number("lost_packets")) {
        (Ok(network), _) => network,
        // What a report says of its test has no places.
        (Err(_), Ok(lost)) if run.part().is_none() => {
            require(!socket_explains(&run.host, lost.value), || {
                "lost in the receiver's socket buffer (UDP-01)".to_owned()
            })?;
            return Ok(unplaced_loss(run, matched.read(&lost, "0")));
        }
        (Err(stop), _) => return Err(stop),
    };

    matched = matched.read(&network, "0 between the hosts");
    let places = ["sender", "firewall", "nic", "backlog", "socket"];
    for lost in places
        .iter()
        .filter_map(|place| run.number(&format!("lost_in_{place}")).ok())
    {
        require(lost.value < network.value, || {
            format!("most were lost elsewhere: {} = {}", lost.key, lost.value)
        })?;
        matched = matched.read(&lost, "a counter of a host: fewer than between the hosts");
    }

    if run.number("lost_in_socket").is_err() {
        let counters = "run the test against `linerate serve --facts all`, or compare `nstat -az \
                        UdpRcvbufErrors` on the receiver";
        return Ok(matched.cap(Confidence::Low).advice(counters));
    }

    Ok(matched.advice(format!(
        "measure with -b {}: without loss, a hop, shaper or policer on the way is slower than the \
         rate that was sent; with the same loss, look for errors hop by hop",
        half_rate(run)
    )))
}

/// Loss of a report, which may be on the path or in the receiver.
fn unplaced_loss(run: &Run<'_>, matched: Match) -> Match {
    let matched = match run.number("sent_bps") {
        Ok(sent) => matched.read(&sent, "sent"),
        Err(_) => matched,
    };
    matched.cap(Confidence::Low).advice(format!(
        "compare `nstat -az UdpRcvbufErrors` on the receiver before and after a test; without \
         growth there, measure with -b {}",
        half_rate(run)
    ))
}

fn half_rate(run: &Run<'_>) -> String {
    run.goodput_bps().map_or_else(
        |_| "half the rate".to_owned(),
        |rate| format!("{:.0}M", rate.value / 2e6),
    )
}

fn fw_01(host: &Host<'_>) -> Ruling {
    let dropped = host.growth("firewall.drops")?;
    dropped.or_clear("packets dropped by the firewall")?;
    dropped.in_period("totals", |packets| {
        format!("{packets} packets since the rules were loaded")
    })?;

    let matched = matched().grew(&dropped);
    Ok(match host.text("firewall.rule.drops") {
        Ok(rule)
            if ["iptables ", "ip6tables "]
                .iter()
                .any(|program| rule.value.starts_with(program)) =>
        {
            matched
                .read_text(&rule, "the rule that dropped most")
                .advice("iptables -L -v -n --line-numbers; change this rule")
        }
        Ok(rule) => matched
            .read_text(&rule, "the rule that dropped most")
            .advice("nft list ruleset; change this rule"),
        Err(_) => matched.advice("nft list ruleset"),
    })
}

fn path_03(host: &Host<'_>) -> Ruling {
    let member = host.number("path.member_mbps")?;
    let rate = |wanted: fn(f64) -> bool| {
        let run = host.runs().find(|run| {
            run.number("streams")
                .is_ok_and(|streams| wanted(streams.value))
        });
        match run {
            Some(run) => run.goodput_bps(),
            None => unknown(
                "run.*.streams",
                "needs a run with one stream and one with four or more",
            ),
        }
    };
    let one = rate(|streams| streams <= 1.0)?;
    let many = rate(|streams| streams >= 4.0)?;
    require(many.value > 1.3 * one.value, || {
        "several flows are no faster".to_owned()
    })?;
    require(
        (one.value / 1e6 - member.value).abs() < 0.1 * member.value,
        || "one flow is not at a member's speed".to_owned(),
    )?;

    Ok(matched()
        .read(&one, format!("about one member ({} Mbit/s)", member.value))
        .read(&many, "more than 1.3 times as fast")
        .advice("use several streams, or hash over ports: xmit_hash_policy layer3+4"))
}

/// Policies that see what differs between the streams of a test.
const POLICIES_BY_PORT: [&str; 2] = ["layer3+4", "encap3+4"];

fn path_12(run: &Run<'_>) -> Ruling {
    if !run.host.nics().any(|nic| nic.text("bond.mode").is_ok()) {
        return unknown("nic.*.bond.mode", run.host.reason("nic"));
    }

    let Some(nic) = run.nic() else {
        return unknown(
            "route.peer.dev",
            "which interface the test used is not known",
        );
    };
    require(nic.text("bond.mode").is_ok(), || {
        "the test did not use the bond".to_owned()
    })?;
    let policy = nic.text("bond.hash_policy")?;
    require(!POLICIES_BY_PORT.contains(&policy.value), || {
        format!("{} spreads streams", policy.value)
    })?;

    let streams = run.number("streams")?;
    require(streams.value > 1.0, || "one stream".to_owned())?;

    let is_member = |other: &Nic<'_>| {
        other
            .text("net.master")
            .is_ok_and(|master| master.value == nic.name)
    };
    let speeds = nic
        .host
        .nics()
        .filter(is_member)
        .filter_map(|member| member.number("link.speed_mbps").ok());
    let Some(member) = speeds.max_by(|a, b| a.value.total_cmp(&b.value)) else {
        return unknown("nic.*.link.speed_mbps", "the speed of no member is known");
    };
    let rate = run.goodput_bps()?;
    let ceiling = tcp_ceiling(member.value * 1e6, nic.mtu());
    require(
        (0.9 * ceiling..=1.02 * ceiling).contains(&rate.value),
        || {
            format!(
                "{:.0} Mbit/s, a member carries {:.0}",
                rate.value / 1e6,
                ceiling / 1e6
            )
        },
    )?;

    Ok(matched()
        .because(
            rate.key,
            format!("{:.1} Mbit/s", rate.value / 1e6),
            format!("a member carries {:.1} Mbit/s", ceiling / 1e6),
        )
        .read(&member, "speed of a member, Mbit/s")
        .read_text(&policy, "layer3+4 for several streams to one host")
        .read(&streams, "all between the same addresses")
        .advice(format!(
            "`ip link set dev {} type bond xmit_hash_policy layer3+4`, and the same on the switch \
             for the other direction; one stream never exceeds a member",
            nic.word()
        )))
}

/// Fewer probes say little about loss.
const PROBES_MIN: f64 = 10.0;
const PROBE_LOSS_MIN: f64 = 0.01;

fn path_13(host: &Host<'_>) -> Ruling {
    let loss = |hop: u32| host.number(&format!("path.hop.{hop}.loss_share"));
    let hops = host.number("path.hops").map_or(0, |hops| hops.value as u32);
    let last = loss(hops).ok().filter(|_| hops > 0);
    let lost = match &last {
        Some(last) => last.clone(),
        None => host.number("path.ping_loss_share")?,
    };
    require(lost.value >= PROBE_LOSS_MIN, || {
        format!("{:.1} % of the probes lost", lost.value * 100.0)
    })?;

    if lost.value >= 1.0 {
        return clear("no probe was answered: a filter, or no path at all");
    }

    let sent = host
        .number(&format!("path.hop.{hops}.sent"))
        .or_else(|_| host.number("path.ping_sent"))?;
    require(sent.value >= PROBES_MIN, || {
        format!("{} probes are too few", sent.value)
    })?;
    let found = matched().read(&lost, "no loss").read(&sent, "probes");

    // From the first hop on that loses half as many as the last, all behind it do as well.
    let loses = |hop: &u32| loss(*hop).is_ok_and(|share| share.value >= lost.value / 2.0);
    let first = (1..=hops)
        .rev()
        .take_while(|hop| loses(hop) || loss(*hop).is_err())
        .last()
        .filter(|_| last.is_some());
    let address = first.and_then(|hop| host.text(&format!("path.hop.{hop}.address")).ok());

    Ok(match (first, address) {
        (Some(hop), Some(address)) => found
            .read_text(
                &address,
                format!("hop {hop}, from which on probes are lost"),
            )
            .advice(format!(
                "look at hop {hop} and at the link before it; measure the other direction from the \
                 peer as well"
            )),
        _ => found.advice("find the hop: mtr -rwc 100 PEER"),
    })
}

fn path_06(run: &Run<'_>) -> Ruling {
    run.over_tcp()?;
    run.is_limited_by(&[limit::PATH])?;
    require(run.spurious().is_none(), || {
        "the retransmitted segments were late, not lost".to_owned()
    })?;

    // A queue that overflows loses segments while the round trip is at its longest: that is the
    // rate of a hop, not an error.
    let grown = run.inflation();
    if let Ok(grown) = &grown {
        require(!run.has_growing_queue(), || {
            format!(
                "the round trip grows {:.1} times: a queue overflows",
                grown.times
            )
        })?;
    }

    require(
        !run.number("end_spread")
            .is_ok_and(|spread| spread.value <= STEADY_MAX),
        || "a steady rate: losses at random vary it".to_owned(),
    )?;
    let loss = run.number("retransmit_share")?;
    require(loss.value > 1e-5, || match loss.value {
        0.0 => "no segment was retransmitted".to_owned(),
        share => format!("{share:.1e} of the segments were retransmitted"),
    })?;

    let (rtt, mss) = (run.number("rtt_us")?, run.number("mss_bytes")?);
    let goodput = run.goodput_bps()?;
    let streams = run.number("streams")?;
    let limit = streams.value * mathis_bps(mss.value, rtt.value, loss.value);
    require(
        goodput.value > limit / 2.0 && goodput.value < limit * 2.0,
        || {
            format!(
                "{:.0} Mbit/s are far from the {:.0} this loss allows",
                goodput.value / 1e6,
                limit / 1e6
            )
        },
    )?;

    for nic in run.host.nics().filter(|nic| nic.wired().is_ok()) {
        if let Ok(drops) = nic.growth(crate::classes::Class::RxRingFull) {
            require(drops.value == 0 || drops.total, || {
                format!("{} itself drops", nic.name)
            })?;
        }
    }

    let mut found = matched()
        .read(&loss, "at most 1e-5")
        .read(&rtt, "round trip, microseconds")
        .read(&goodput, format!("Mathis allows {:.0} Mbit/s", limit / 1e6));
    found = match grown {
        Ok(grown) => found.read(&grown.read, "a queue that overflows would make it grow"),
        // Of a queue nothing is known, and its losses have the same rate.
        Err(_) => found.cap(Confidence::Low),
    };
    Ok(found.advice("look for errors hop by hop; BBR suffers less"))
}

fn path_07(run: &Run<'_>) -> Ruling {
    run.over_tcp()?;
    // The scheduler moves a sender between CPUs, and a virtual interface receives on the sender's
    // CPU.
    require(!run.is("same_host"), || {
        "both ends run on this host".to_owned()
    })?;
    let seen = run.number("reordered_segments")?;
    require(seen.value > 0.0, || "none seen".to_owned())?;

    let distance = run.number("reordering")?;
    require(distance.value > 3.0, || {
        format!("over {} packets at most", distance.value)
    })?;
    run.number("dsack_segments")?;
    run.number("retransmits")?;

    let Some((undone, repeated)) = run.spurious() else {
        return clear("few segments were retransmitted, or most of them were lost");
    };
    Ok(matched()
        .read(&seen, "0")
        .read(&distance, "at most 3")
        .read(
            &undone,
            format!(
                "less than half of {} retransmitted segments",
                repeated.value
            ),
        )
        .advice("remove balancing per packet (bond mode 0), and check changes of RPS masks"))
}

/// Rates within this of what a link carries are those of that link.
const OF_LINK: std::ops::RangeInclusive<f64> = 0.985..=1.005;
/// Largest difference of the rate in a second from the median of a link that is full.
const FULL_SPREAD_MAX: f64 = 0.02;

fn path_14(run: &Run<'_>) -> Ruling {
    run.over_tcp()?;
    if run.part().is_some() || run.text("phase").is_ok() {
        return inapplicable(
            Inapplicable::Test,
            "tests of this program are judged by what both of their ends saw",
        );
    }

    require(!run.is("same_host"), || {
        "both ends run on this host".to_owned()
    })?;
    require(!run.reaches_its_target(), || {
        "the target rate is reached".to_owned()
    })?;
    let rate = run.goodput_bps()?;

    let Some(nic) = run.nic() else {
        return unknown(
            "route.peer.dev",
            "which interface the test used is not known",
        );
    };
    let link = nic.speed_mbps()?;

    // The rate of a full link lies between the ceilings with and without time stamps.
    let is_of = |speed: &f64| {
        let with = tcp_ceiling(speed * 1e6, nic.mtu());
        let without =
            goodput_ceiling(speed * 1e6, nic.mtu(), Network::V4, Transport::Tcp).unwrap_or(with);
        (OF_LINK.start() * with..=OF_LINK.end() * without).contains(&rate.value)
    };
    let slower = COMMON_SPEEDS_MBPS
        .into_iter()
        .filter(|speed| *speed < link.value)
        .find(is_of);
    let Some(speed) = slower else {
        return clear(format!(
            "{:.0} Mbit/s are not what a slower link carries",
            rate.value / 1e6
        ));
    };

    let spread = run.number("later_spread")?;
    require(spread.value <= FULL_SPREAD_MAX, || {
        format!("the rate varies by {:.0} %", spread.value * 100.0)
    })?;
    require(!sets_rate_of(&nic, run).unwrap_or(false), || {
        "a shaper of this host sets the rate (QD-01)".to_owned()
    })?;

    Ok(matched()
        .because(
            rate.key,
            format!("{:.1} Mbit/s", rate.value / 1e6),
            "received",
        )
        .because("full link of", speed_text(speed), "carries this rate")
        .read(&link, "the link of this host, Mbit/s")
        .read(&spread, "at most 0.02: a steady rate")
        .advice(format!(
            "`ip route get PEER` on both hosts: does the test use this interface? If so, look for \
             a port, cable or switch of {} on the path",
            speed_text(speed)
        )))
}

fn speed_text(mbps: f64) -> String {
    if mbps < 1000.0 {
        format!("{mbps} Mbit/s")
    } else {
        format!("{} Gbit/s", mbps / 1000.0)
    }
}

/// Rates of two tests alike in opposite directions, of which this is the slower one.
struct SlowerWay<'a> {
    slow: Run<'a>,
    rate: Reading<f64>,
    other: Reading<f64>,
}

fn path_15(scope: &Scope<'_>) -> Vec<(String, Ruling)> {
    let of_host = |host: &Host<'_>| {
        let ways: Vec<SlowerWay<'_>> = host.runs().filter_map(|run| slower_way(&run)).collect();
        if ways.is_empty() {
            let missing = unknown(
                "run.*.reverse",
                "needs a test in each direction, of another program",
            );
            return vec![(host.name().to_owned(), missing)];
        }

        ways.iter()
            .map(|way| (way.slow.subject(), one_direction(way)))
            .collect()
    };
    scope.hosts.iter().flat_map(of_host).collect()
}

/// The test in the other direction, where it is faster. Tests of this program are judged by what
/// both of their ends saw.
fn slower_way<'a>(run: &Run<'a>) -> Option<SlowerWay<'a>> {
    let is_report =
        |run: &Run<'_>| run.part().is_none() && run.text("phase").is_err() && !run.is_udp();
    let alike = |other: &Run<'_>| {
        let facts = ["path", "streams", "transport"];
        facts
            .iter()
            .all(|fact| run.host.value(&run.key(fact)) == run.host.value(&other.key(fact)))
    };

    let reverse = run.flag("reverse").ok().filter(|_| is_report(run))?;
    let is_other_way = |other: &Run<'_>| {
        other
            .flag("reverse")
            .is_ok_and(|other| other.value != reverse.value)
    };
    let others = run
        .host
        .runs()
        .filter(|other| is_report(other) && is_other_way(other) && alike(other));

    let rate = run.goodput_bps().ok()?;
    let other = others
        .filter_map(|other| other.goodput_bps().ok())
        .find(|other| other.value > rate.value)?;
    Some(SlowerWay {
        slow: *run,
        rate,
        other,
    })
}

fn one_direction(SlowerWay { slow, rate, other }: &SlowerWay<'_>) -> Ruling {
    const SLOWER: f64 = 0.5;
    const LOSS_MIN: f64 = 1e-3;

    require(rate.value < SLOWER * other.value, || {
        format!(
            "{:.0} Mbit/s, {:.0} in the other direction",
            rate.value / 1e6,
            other.value / 1e6
        )
    })?;
    let loss = slow.number("retransmit_share")?;
    require(loss.value >= LOSS_MIN, || {
        "no segments were lost: the sender or a window may be the limit".to_owned()
    })?;

    let found = matched()
        .because(
            &rate.key,
            format!("{:.1} Mbit/s", rate.value / 1e6),
            "received in this direction",
        )
        .because(
            "other direction",
            format!("{:.1} Mbit/s", other.value / 1e6),
            "received there",
        );
    let found = match slow.number("retransmits") {
        Ok(count) => found.read(&count, "segments sent again in this direction"),
        Err(_) => found.read(&loss, "below 0.001"),
    };
    Ok(found.advice(
        "look at the sender of this direction first: speed, duplex and errors of its link \
         (ethtool, ethtool -S), then the hops behind it",
    ))
}

fn path_08(host: &Host<'_>) -> Ruling {
    let of = |reverse: bool| {
        let run = host.runs().filter(|run| !run.is("same_host")).find(|run| {
            run.flag("reverse").is_ok_and(|flag| flag.value == reverse) && run.goodput_bps().is_ok()
        });
        match run {
            Some(run) => Ok((run.goodput_bps()?, run)),
            None => unknown("run.*.reverse", "needs a run in each direction"),
        }
    };
    let ((forward, first), (reverse, second)) = (of(false)?, of(true)?);
    let comparable = ["path", "streams", "transport"]
        .iter()
        .all(|fact| host.value(&first.key(fact)) == host.value(&second.key(fact)));
    require(comparable, || "the runs are not alike otherwise".to_owned())?;

    let (low, high) = (
        forward.value.min(reverse.value),
        forward.value.max(reverse.value),
    );
    if low >= 0.9 * high {
        return clear(format!(
            "{:.0} and {:.0} Mbit/s",
            forward.value / 1e6,
            reverse.value / 1e6
        ));
    }

    Ok(matched()
        .read(&forward, "within 10 % of the other direction")
        .read(&reverse, "within 10 % of the other direction"))
}
