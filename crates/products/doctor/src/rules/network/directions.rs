//! Rates of both directions, and of the link.

use crate::rules::prelude::*;
use crate::rules::qdisc::sets_rate_of;

pub(super) fn path_07(run: &Run<'_>) -> Ruling {
    run.over_tcp()?;
    // The scheduler moves a sender between CPUs, and a virtual interface receives on the sender's
    // CPU.
    require(!run.is("same_host"), "both ends run on this host")?;
    let seen = run.number("reordered_segments")?;
    require(seen > 0.0, "none seen")?;

    let distance = run.number("reordering")?;
    // TCP tolerates a distance of three by default (ip-sysctl, tcp_reordering).
    require(distance > 3.0, format!("over {distance} packets at most"))?;
    run.number("dsack_segments")?;
    run.number("retransmits")?;

    let (undone, repeated) = run
        .spurious()
        .or_clear("few segments were retransmitted, or most of them were lost")?;
    Ok(matched()
        .read(&seen, "0")
        .read(&distance, "at most 3")
        .read(
            &undone,
            format!("less than half of {repeated} retransmitted segments"),
        )
        .advice("remove balancing per packet (bond mode 0), and check changes of RPS masks"))
}

/// Rates within this of what a link carries are those of that link.
const OF_LINK: std::ops::RangeInclusive<f64> = 0.985..=1.005;

/// Largest difference of the rate in a second from the median of a link that is full.
const FULL_SPREAD_MAX: f64 = 0.02;

pub(super) fn path_14(run: &Run<'_>) -> Ruling {
    run.over_tcp()?;
    if run.part().is_some() || run.is_examined() {
        return inapplicable(
            Inapplicable::Test,
            "tests of this program are judged by what both of their ends saw",
        );
    }

    require(!run.is("same_host"), "both ends run on this host")?;
    require(!run.reaches_its_target(), "the target rate is reached")?;
    let rate = run.goodput_bps()?;

    let nic = run.used_nic()?;
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
    let speed = slower.or_clear(format!(
        "{:.0} Mbit/s are not what a slower link carries",
        rate.value / 1e6
    ))?;

    let spread = run.number("later_spread")?;
    require(
        spread <= FULL_SPREAD_MAX,
        format!("the rate varies by {:.0} %", spread.value * 100.0),
    )?;
    require(
        !sets_rate_of(&nic, run).unwrap_or(false),
        "a shaper of this host sets the rate (QD-01)",
    )?;

    Ok(matched()
        .read_rate(&rate, "received")
        .because("full link of", speed_text(speed), "carries this rate")
        .read(&link, "the link of this host, Mbit/s")
        .read(&spread, "a steady rate")
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

pub(super) fn path_15(scope: &Scope<'_>) -> Vec<(String, Ruling)> {
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
    let is_report = |run: &Run<'_>| run.part().is_none() && !run.is_examined() && !run.is_udp();
    let alike = |other: &Run<'_>| {
        let facts = ["path", "streams", "transport"];
        facts
            .iter()
            .all(|fact| run.value(fact) == run.host.value(&other.key(fact)))
    };

    let reverse = run.flag("reverse").ok().filter(|_| is_report(run))?;
    let is_other_way = |other: &Run<'_>| other.flag("reverse").is_ok_and(|other| other != reverse);
    let others = run
        .host
        .runs()
        .filter(|other| is_report(other) && is_other_way(other) && alike(other));

    let rate = run.goodput_bps().ok()?;
    let other = others
        .filter_map(|other| other.goodput_bps().ok())
        .find(|other| *other > rate)?;
    Some(SlowerWay {
        slow: *run,
        rate,
        other,
    })
}

fn one_direction(SlowerWay { slow, rate, other }: &SlowerWay<'_>) -> Ruling {
    const SLOWER: f64 = 0.5;
    const LOSS_MIN: f64 = 1e-3;

    require(
        *rate < SLOWER * other.value,
        format!(
            "{:.0} Mbit/s, {:.0} in the other direction",
            rate.value / 1e6,
            other.value / 1e6
        ),
    )?;
    let loss = slow.number("retransmit_share")?;
    require(
        loss >= LOSS_MIN,
        "no segments were lost: the sender or a window may be the limit",
    )?;

    let found = matched()
        .read_rate(rate, "received in this direction")
        .because("other direction", mbits(other.value), "received there");
    let found = match slow.number("retransmits") {
        Ok(count) => found.read(&count, "segments sent again in this direction"),
        Err(_) => found.read(&loss, "below 0.001"),
    };
    Ok(found.advice(
        "check the sender of this direction first: speed, duplex and errors of its link \
         (ethtool, ethtool -S), then the hops behind it",
    ))
}

pub(super) fn path_08(host: &Host<'_>) -> Ruling {
    let mut runs = host.runs().peekable();
    if runs.peek().is_some() {
        let is_path = runs.any(|run| !run.is("same_host"));
        require(is_path, "both ends run on this host")?;
    }

    let of = |reverse: bool| {
        let run = host.runs().filter(|run| !run.is("same_host")).find(|run| {
            run.flag("reverse").is_ok_and(|flag| flag == reverse) && run.goodput_bps().is_ok()
        });
        let run = run.or_unknown("run.*.reverse", "needs a run in each direction")?;
        Ok((run.goodput_bps()?, run))
    };
    let ((forward, first), (reverse, second)) = (of(false)?, of(true)?);
    let comparable = ["path", "streams", "transport"]
        .iter()
        .all(|fact| host.value(&first.key(fact)) == host.value(&second.key(fact)));
    require(comparable, "the runs are not alike otherwise")?;

    let low = forward.value.min(reverse.value);
    let high = forward.value.max(reverse.value);
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
