//! What happens between the hosts: policers, queues, hashing, loss.

use linerate_model::finding::{Confidence, Severity};

use super::application::line_rate;
use super::latency::longest_queue_us;
use super::qdisc::sets_rate_of;
use crate::arithmetic::mathis_bps;
use crate::limit;
use crate::rule::{NoMatch, Rule, Ruling, clear, matched, require, unknown};
use crate::scope::{Host, QUEUE_INFLATION_MIN, QUEUE_RTT_MIN_US, Reading, Run, Scope};

pub(super) const RULES: &[Rule] = &[
    Rule::run("PATH-01", Severity::High, "A policer drops above its rate", path_01)
        .at_most(Confidence::Medium)
        .explanation(
            "Fast at first, then steady at a lower rate with losses and without a growing queue: the pattern of a \
             token bucket that drops. Pacing at its rate avoids the losses.",
        )
        .reference("Flach and others, An Internet-Wide Analysis of Traffic Policing, 2016"),
    Rule::scope("PATH-09", Severity::Info, "The narrowest hop of the path sets the rate", path_09)
        .explanation(
            "The rate is steady, and the round trip or the loss rises with the load, while both hosts have time left and none of \
             their shapers has this rate. Nothing in these two hosts can be tuned for more.",
        )
        .reference("RFC 6349, section 3; RFC 9097"),
    Rule::run("PATH-10", Severity::High, "The path between the hosts is the limit", path_10)
        .explanation(
            "The sender had data outstanding all the time, and neither host was at a limit of its own. The network \
             between them remains.",
        )
        .reference("kernel networking/tcp_info, tcpi_busy_time; RFC 9438"),
    Rule::run("PATH-11", Severity::High, "Datagrams are lost between the hosts", path_11)
        .explanation(
            "Neither the sender's queue nor the firewall, the NIC, the backlog or the socket of the receiver dropped most of \
             the lost datagrams. What is left is the network between the hosts.",
        )
        .reference("kernel networking/snmp_counter, UdpRcvbufErrors; RFC 7680"),
    Rule::host("FW-01", Severity::High, "The firewall of this host drops packets", fw_01)
        .explanation("Rules of this host's own firewall dropped packets while the test ran. This loss is no loss of the network.")
        .reference("nft(8), counter"),
    Rule::run("PATH-02", Severity::Medium, "A deep queue fills on the path", path_02)
        .explanation(
            "The round trip grows several times under load. Throughput does not suffer, but every flow through the \
             queue is delayed."
        )
        .reference("RFC 8290, RFC 8033"),
    Rule::host("PATH-03", Severity::Medium, "One flow cannot fill the aggregate", path_03)
        .explanation("Bonds and equal-cost paths send one flow over one member. Several flows spread, one does not.")
        .reference("kernel networking/bonding, xmit_hash_policy"),
    Rule::run("PATH-06", Severity::High, "Random loss limits TCP", path_06)
        .explanation(
            "The measured rate is what this loss and this round trip allow. The packets are lost on the path, not in \
             the hosts.",
        )
        .reference("Mathis and others, 1997; RFC 9438"),
    Rule::run("PATH-07", Severity::Medium, "Packets are reordered", path_07)
        .explanation(
            "Packets arrive out of order and TCP retransmits segments that were not lost. A hop or a bond balances \
             load per packet."
        )
        .reference("RFC 8985, RFC 2883"),
    Rule::host("PATH-08", Severity::Info, "The directions differ", path_08)
        .explanation("One direction is more than a tenth slower. Check the sender of the slower direction first.")
        .reference("iperf3(1), --reverse"),
];

fn path_01(run: &Run<'_>) -> Ruling {
    run.over_tcp()?;
    let first = run.number("first_second_bps")?;
    let later = run.number("later_median_bps")?;
    require(later.value <= 0.7 * first.value, || "the rate does not step down".to_owned())?;
    let spread = run.number("later_spread")?;
    require(spread.value < 0.03, || "the later rate is not steady".to_owned())?;
    let loss = run.number("retransmit_share")?;
    require(loss.value >= 0.005, || "hardly any loss".to_owned())?;
    let inflation = run.number("rtt_inflation")?;
    require(inflation.value < 1.3, || "a queue grows before the loss".to_owned())?;
    Ok(matched()
        .read(&first, "the first second")
        .read(&later, "steady and at most 0.7 of the first second")
        .read(&loss, "below 0.005")
        .read(&inflation, "a growing queue would show 1.3 or more")
        .advice(format!(
            "pace at {:.0} Mbit/s (-b, or --fq-rate), and request shaping instead of policing",
            0.95 * later.value / 1e6
        )))
}

fn path_02(run: &Run<'_>) -> Ruling {
    let grown = run.inflation()?;
    require(grown.times >= QUEUE_INFLATION_MIN, || format!("the round trip grows {:.1} times", grown.times))?;
    let rtt = grown.loaded?;
    // On a path of microseconds the scheduler alone triples the round trip.
    require(rtt.value >= QUEUE_RTT_MIN_US, || format!("a round trip of {:.0} us under load", rtt.value))?;
    if run.number("rtt_idle_us").is_ok() {
        let longest = longest_queue_us(run)?;
        require(longest >= QUEUE_RTT_MIN_US, || "most of the queue is in the sending host (LAT-01)".to_owned())?;
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
    scope.runs().map(|run| (run.subject(), narrowest_hop(scope, &run))).collect()
}

/// Largest difference of the rate in one second from its median of a rate that is steady.
const STEADY_MAX: f64 = 0.1;

/// Whether the rate is that of a hop between the hosts.
pub(crate) fn narrowest_hop(scope: &Scope<'_>, run: &Run<'_>) -> Ruling {
    run.over_tcp()?;
    run.is_limited_by(&[limit::PATH_RATE, limit::PATH])?;
    require(!run.reaches_its_target(), || "the target rate is reached".to_owned())?;
    let rate = run.goodput_bps()?;
    let spread = run.number("end_spread")?;
    require(spread.value <= STEADY_MAX, || format!("the rate varies by {:.0} %", spread.value * 100.0))?;
    let rise = rise_with_load(run)?;
    require_time_left(scope, run)?;
    for host in &scope.hosts {
        let there = run.at(*host);
        let Some(nic) = there.nic() else {
            return unknown("route.peer.dev", "which interface the test used is not known");
        };
        require(!sets_rate_of(&nic, &there)?, || "a shaper of these hosts sets the rate (QD-01)".to_owned())?;
    }
    require(line_rate(run).is_err(), || "the link is full (TOP-01)".to_owned())?;
    let matched = matched()
        .because(rate.key, format!("{:.1} Mbit/s", rate.value / 1e6), "received")
        .read(&spread, "at most 0.1: a steady rate")
        .because_all(rise.evidence);
    let watched = scope.hosts.len() > 1;
    Ok(if watched { matched } else { matched.cap(Confidence::Medium) }.advice(
        "nothing in these two hosts can be tuned for more rate: a faster link, or a higher rate of the hop in between",
    ))
}

/// What rises with the load, as evidence: the round trip of probes, or the loss of probes or segments.
fn rise_with_load(run: &Run<'_>) -> Ruling {
    const RTT_MIN_US: f64 = 2_000.0;
    const RTT_MIN: f64 = 0.1;
    const LOSS_MIN: f64 = 1e-3;
    let pair = |idle: &str, loaded: &str| Ok::<_, NoMatch>((run.number(idle)?, run.number(loaded)?));
    let rtt = pair("rtt_idle_us", "rtt_loaded_us");
    let lost = pair("probe_loss_idle_share", "probe_loss_share");
    let mut rise = matched();
    if let Ok((idle, loaded)) = &rtt
        && loaded.value - idle.value >= RTT_MIN_US.max(RTT_MIN * idle.value)
    {
        rise = rise.read(idle, "without load").read(loaded, "within 2 ms and a tenth of that without load");
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
        require(cpu.value < FULL, || format!("the {end} uses {:.0} % of a CPU", cpu.value * 100.0))?;
    }
    for host in &scope.hosts {
        let softirq = host.cpu_loads()?.iter().map(|load| load.softirq).fold(0.0, f64::max);
        require(softirq < SOFTIRQ_FULL, || format!("a CPU of {} is full of interrupt work", host.name()))?;
    }
    Ok(())
}

fn path_10(run: &Run<'_>) -> Ruling {
    require(!run.is_udp(), || "not TCP".to_owned())?;
    run.concluded(limit::PATH)?;
    let busy = run.number("busy_share")?;
    let rate = run.goodput_bps()?;
    let mut matched = matched().because(rate.key, format!("{:.1} Mbit/s", rate.value / 1e6), "received");
    for (fact, meaning) in [
        ("min_rtt_us", "lowest round trip, microseconds"),
        ("rtt_us", "round trip under load, microseconds"),
        ("retransmit_share", "share of the segments that was retransmitted"),
    ] {
        if let Ok(reading) = run.number(fact) {
            matched = matched.read(&reading, meaning);
        }
    }
    matched = matched.read(&busy, "data was outstanding for this part of the time");
    let loss = run.loss();
    let is_steady = run.number("later_spread").is_ok_and(|spread| spread.value <= 0.1);
    Ok(match (run.queue(), loss, is_steady) {
        (Some(grown), ..) => matched
            .read(&grown.read, "the round trip grows under load: a queue in front of a slower hop")
            .advice("look for a port speed or a shaper on the switch, router or bridge in between"),
        (None, Some(_), true) => matched.advice(format!(
            "a steady rate with losses and without a queue is a policer of about {:.0} Mbit/s: look for one on the \
             path, or pace below it (-b)",
            rate.value / 1e6
        )),
        (None, Some(_), false) => matched.advice("packets are lost on the path: look for errors hop by hop"),
        (None, None, _) => {
            matched.advice("no queue and no loss: measure other hosts over the same path to narrow it down")
        }
    })
}

fn path_11(run: &Run<'_>) -> Ruling {
    run.over_udp()?;
    let share = run.number("loss_share")?;
    require(run.datagram_loss().is_some(), || format!("{:.2} % of the datagrams were lost", share.value * 100.0))?;
    let network = run.number("lost_in_network")?;
    let mut matched = matched().read(&share, "below 0.1 %").read(&network, "0 between the hosts");
    if let Ok(rate) = run.goodput_bps() {
        matched = matched.because(rate.key, format!("{:.1} Mbit/s", rate.value / 1e6), "received");
    }
    let places = ["sender", "firewall", "nic", "backlog", "socket"];
    for lost in places.iter().filter_map(|place| run.number(&format!("lost_in_{place}")).ok()) {
        require(lost.value < network.value, || format!("most were lost elsewhere: {} = {}", lost.key, lost.value))?;
        matched = matched.read(&lost, "a counter of a host: fewer than between the hosts");
    }
    if run.number("lost_in_socket").is_err() {
        let counters =
            "run the test against `linerate serve --facts all`, or compare `nstat -az UdpRcvbufErrors` on the receiver";
        return Ok(matched.cap(Confidence::Low).advice(counters));
    }
    let half =
        run.goodput_bps().map_or_else(|_| "half the rate".to_owned(), |rate| format!("{:.0}M", rate.value / 2e6));
    Ok(matched.advice(format!(
        "measure with -b {half}: without loss, a hop, shaper or policer on the way is slower than the rate that was sent; with the \
         same loss, look for errors hop by hop"
    )))
}

fn fw_01(host: &Host<'_>) -> Ruling {
    let dropped = host.growth("firewall.drops")?;
    dropped.or_clear("packets dropped by the firewall")?;
    dropped.in_period("totals", |packets| format!("{packets} packets since the rules were loaded"))?;
    let matched = matched().grew(&dropped);
    Ok(match host.text("firewall.rule.drops") {
        Ok(rule) if ["iptables ", "ip6tables "].iter().any(|program| rule.value.starts_with(program)) => matched
            .read_text(&rule, "the rule that dropped most")
            .advice("iptables -L -v -n --line-numbers; change this rule"),
        Ok(rule) => matched.read_text(&rule, "the rule that dropped most").advice("nft list ruleset; change this rule"),
        Err(_) => matched.advice("nft list ruleset"),
    })
}

fn path_03(host: &Host<'_>) -> Ruling {
    let member = host.number("path.member_mbps")?;
    let rate = |wanted: fn(f64) -> bool| {
        let run = host.runs().find(|run| run.number("streams").is_ok_and(|streams| wanted(streams.value)));
        match run {
            Some(run) => run.goodput_bps(),
            None => unknown("run.*.streams", "needs a run with one stream and one with four or more"),
        }
    };
    let one = rate(|streams| streams <= 1.0)?;
    let many = rate(|streams| streams >= 4.0)?;
    require(many.value > 1.3 * one.value, || "several flows are no faster".to_owned())?;
    require((one.value / 1e6 - member.value).abs() < 0.1 * member.value, || {
        "one flow is not at a member's speed".to_owned()
    })?;
    Ok(matched()
        .read(&one, format!("about one member ({} Mbit/s)", member.value))
        .read(&many, "more than 1.3 times as fast")
        .advice("use several streams, or hash over ports: xmit_hash_policy layer3+4"))
}

fn path_06(run: &Run<'_>) -> Ruling {
    run.over_tcp()?;
    run.is_limited_by(&[limit::PATH])?;
    require(run.spurious().is_none(), || "the retransmitted segments were late, not lost".to_owned())?;
    let loss = run.number("retransmit_share")?;
    require(loss.value > 1e-5, || match loss.value {
        0.0 => "no segment was retransmitted".to_owned(),
        share => format!("{share:.1e} of the segments were retransmitted"),
    })?;
    let (rtt, mss) = (run.number("rtt_us")?, run.number("mss_bytes")?);
    let goodput = run.goodput_bps()?;
    let streams = run.number("streams")?;
    let limit = streams.value * mathis_bps(mss.value, rtt.value, loss.value);
    require(goodput.value > limit / 2.0 && goodput.value < limit * 2.0, || {
        format!("{:.0} Mbit/s are far from the {:.0} this loss allows", goodput.value / 1e6, limit / 1e6)
    })?;
    for nic in run.host.nics().filter(|nic| nic.wired().is_ok()) {
        if let Ok(drops) = nic.growth(crate::classes::Class::RxRingFull) {
            require(drops.value == 0 || drops.total, || format!("{} itself drops", nic.name))?;
        }
    }
    Ok(matched()
        .read(&loss, "at most 1e-5")
        .read(&rtt, "round trip, microseconds")
        .read(&goodput, format!("Mathis allows {:.0} Mbit/s", limit / 1e6))
        .advice("look for errors hop by hop; BBR suffers less"))
}

fn path_07(run: &Run<'_>) -> Ruling {
    run.over_tcp()?;
    // The scheduler moves a sender between CPUs, and a virtual interface receives on the sender's CPU.
    require(!run.is("same_host"), || "both ends run on this host".to_owned())?;
    let seen = run.number("reordered_segments")?;
    require(seen.value > 0.0, || "none seen".to_owned())?;
    let distance = run.number("reordering")?;
    require(distance.value > 3.0, || format!("over {} packets at most", distance.value))?;
    run.number("dsack_segments")?;
    run.number("retransmits")?;
    let Some((undone, repeated)) = run.spurious() else {
        return clear("few segments were retransmitted, or most of them were lost");
    };
    Ok(matched()
        .read(&seen, "0")
        .read(&distance, "at most 3")
        .read(&undone, format!("less than half of {} retransmitted segments", repeated.value))
        .advice("remove balancing per packet (bond mode 0), and check changes of RPS masks"))
}

fn path_08(host: &Host<'_>) -> Ruling {
    let of = |reverse: bool| {
        let run = host
            .runs()
            .filter(|run| !run.is("same_host"))
            .find(|run| run.flag("reverse").is_ok_and(|flag| flag.value == reverse) && run.goodput_bps().is_ok());
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
    let (low, high) = (forward.value.min(reverse.value), forward.value.max(reverse.value));
    if low >= 0.9 * high {
        return clear(format!("{:.0} and {:.0} Mbit/s", forward.value / 1e6, reverse.value / 1e6));
    }
    Ok(matched()
        .read(&forward, "within 10 % of the other direction")
        .read(&reverse, "within 10 % of the other direction"))
}
