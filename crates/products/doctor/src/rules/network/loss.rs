//! Datagrams and segments lost between the hosts.

use super::narrowest_hop::STEADY_MAX;
use crate::rules::prelude::*;
use crate::rules::window::socket_explains;

pub(super) fn path_10(run: &Run<'_>) -> Ruling {
    require(!run.is_udp(), "not TCP")?;
    run.concluded(limit::PATH)?;
    let busy = run.number("busy_share")?;
    let rate = run.goodput_bps()?;
    let matched = matched()
        .read_rate(&rate, "received")
        .read_known(run, "min_rtt_us", "lowest round trip, microseconds")
        .read_known(run, "rtt_us", "round trip under load, microseconds")
        .read_known(
            run,
            "retransmit_share",
            "share of the segments that was retransmitted",
        )
        .read(&busy, "data was outstanding for this part of the time");
    let loss = run.loss();
    let is_steady = run.number("later_spread").is_ok_and(|spread| spread <= 0.1);

    Ok(match (run.queue(), loss, is_steady) {
        (Some(grown), ..) => matched
            .read(
                &grown.read,
                "the round trip grows under load: a queue before a slower hop",
            )
            .advice("look for a slower port or a shaper on a switch or router in between"),
        (None, Some(_), _) if run.has_growing_queue() => matched.advice(
            "a short queue overflows: look for a slower port or a shaper on a switch or router in \
             between",
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

/// Known facts about queue and loss of a path that shows neither enough of a queue nor enough loss
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

pub(super) fn path_11(run: &Run<'_>) -> Ruling {
    run.over_udp()?;
    let share = run.number("loss_share")?;
    require(
        run.datagram_loss().is_some(),
        format!("{:.2} % of the datagrams were lost", share.value * 100.0),
    )?;

    let mut matched = matched().read(&share, "below 0.1 %");
    if let Ok(rate) = run.goodput_bps() {
        matched = matched.read(&rate, "received");
    }

    let network = match (run.number("lost_in_network"), run.number("lost_packets")) {
        (Ok(network), _) => network,
        // What a report says of its test has no places.
        (Err(_), Ok(lost)) if run.part().is_none() => {
            require(
                !socket_explains(&run.host, lost.value),
                "lost in the receiver's socket buffer (UDP-01)",
            )?;
            return Ok(unplaced_loss(run, matched.read(&lost, "0")));
        }
        (Err(stop), _) => return Err(stop),
    };

    matched = matched.read(&network, "0 between the hosts");
    let places = ["sender", "firewall", "nic", "backlog", "kernel", "socket"];
    for lost in places
        .iter()
        .filter_map(|place| run.number(&format!("lost_in_{place}")).ok())
    {
        require(
            lost < network,
            format!("most were lost elsewhere: {} = {lost}", lost.key),
        )?;
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
    matched
        .read_known(run, "sent_bps", "sent")
        .cap(Confidence::Low)
        .advice(format!(
            "compare `nstat -az UdpRcvbufErrors` on the receiver before and after a test; without \
         growth there, measure with -b {}",
            half_rate(run)
        ))
}

fn half_rate(run: &Run<'_>) -> String {
    run.goodput_bps().map_or_else(
        |_| "half the rate".to_owned(),
        // Half of the rate, from bit/s to Mbit/s.
        |rate| format!("{:.0}M", rate.value / 2e6),
    )
}

pub(super) fn fw_01(host: &Host<'_>) -> Ruling {
    let dropped = host.growth("firewall.drops")?;
    dropped.or_clear("packets dropped by the firewall")?;
    dropped.in_period(
        "totals",
        format!("{dropped} packets since the rules were loaded"),
    )?;

    let matched = matched().grew(&dropped);
    let Ok(rule) = host.text("firewall.rule.drops") else {
        return Ok(matched.advice("nft list ruleset"));
    };
    let mut of_iptables = ["iptables ", "ip6tables "].iter();
    let list = if of_iptables.any(|program| rule.value.starts_with(program)) {
        "iptables -L -v -n --line-numbers"
    } else {
        "nft list ruleset"
    };
    Ok(matched
        .read_text(&rule, "the rule that dropped most")
        .advice(format!("{list}; change this rule")))
}

/// Fewer probes say little about loss.
const PROBES_MIN: f64 = 10.0;

const PROBE_LOSS_MIN: f64 = 0.01;

pub(super) fn path_13(host: &Host<'_>) -> Ruling {
    let loss = |hop: u32| host.number(&format!("path.hop.{hop}.loss_share"));
    let hops = host.number("path.hops").map_or(0, |hops| hops.value as u32);
    // RFC 1812, section 4.3.2.8: routers limit their ICMP errors, so only the last hop shows loss.
    let last = loss(hops).ok().filter(|_| hops > 0);
    let lost = match &last {
        Some(last) => last.clone(),
        None => host.number("path.ping_loss_share")?,
    };
    require(
        lost >= PROBE_LOSS_MIN,
        format!("{:.1} % of the probes lost", lost.value * 100.0),
    )?;

    if lost >= 1.0 {
        return clear("no probe was answered: a filter, or no path at all");
    }

    let sent = host
        .number(&format!("path.hop.{hops}.sent"))
        .or_else(|_| host.number("path.ping_sent"))?;
    require(sent >= PROBES_MIN, format!("{sent} probes are too few"))?;
    let found = matched().read(&lost, "no loss").read(&sent, "probes");

    // From the first hop on that loses half as many as the last, all behind it do as well.
    let loses = |hop: &u32| loss(*hop).is_ok_and(|share| share >= lost.value / 2.0);
    // A hop that answered no probe does not end the row of lossy ones.
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
                "check hop {hop} and the link before it; measure the other direction from the \
                 peer as well"
            )),
        _ => found.advice("find the hop: mtr -rwc 100 PEER"),
    })
}

pub(super) fn path_06(run: &Run<'_>) -> Ruling {
    run.over_tcp()?;
    run.is_limited_by(&[limit::PATH])?;
    require(
        run.spurious().is_none(),
        "the retransmitted segments were late, not lost",
    )?;

    // A queue that overflows loses segments while the round trip is at its longest: that is the
    // rate of a hop, not an error.
    let grown = run.inflation();
    if let Ok(grown) = &grown {
        require(
            !run.has_growing_queue(),
            format!(
                "RTT under load {:.1} times that without: a queue overflows",
                grown.times
            ),
        )?;
    }

    require(
        !run.number("end_spread")
            .is_ok_and(|spread| spread <= STEADY_MAX),
        "a steady rate: losses at random vary it",
    )?;
    let loss = run.number("retransmit_share")?;
    require(
        loss > 1e-5,
        match loss.value {
            0.0 => "no segment was retransmitted".to_owned(),
            share => format!("{share:.1e} of the segments were retransmitted"),
        },
    )?;

    let rtt = run.number("rtt_us")?;
    let mss = run.number("mss_bytes")?;
    let goodput = run.goodput_bps()?;
    let streams = run.number("streams")?;
    // Loss bounds each stream by itself, so the bounds of all streams add up.
    let limit = streams.value * mathis_bps(mss.value, rtt.value, loss.value);
    require(
        goodput > limit / 2.0 && goodput < limit * 2.0,
        format!(
            "{:.0} Mbit/s are far from the {:.0} this loss allows",
            goodput.value / 1e6,
            limit / 1e6
        ),
    )?;

    for nic in run.host.nics().filter(|nic| nic.wired().is_ok()) {
        // Totals since boot need not be of this test.
        if let Ok(drops) = nic.class_growth(crate::classes::Class::RxRingFull) {
            require(
                drops.value == 0 || drops.total,
                format!("{} itself drops", nic.name),
            )?;
        }
    }

    let mut found = matched()
        .read(&loss, "at most 1e-5")
        .read(&rtt, "round trip, microseconds")
        .read(&goodput, format!("Mathis allows {:.0} Mbit/s", limit / 1e6))
        // Of a queue nothing is known, and its losses have the same rate.
        .cap_if(grown.is_err(), Confidence::Low);
    if let Ok(grown) = grown {
        found = found.read(&grown.read, "a queue that overflows would make it grow");
    }
    Ok(found.advice("look for errors hop by hop; BBR suffers less"))
}
