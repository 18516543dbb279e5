//! The hop with the lowest rate.

use crate::rules::application::line_rate;
use crate::rules::prelude::*;
use crate::rules::qdisc::sets_rate_of;

pub(super) fn path_09(scope: &Scope<'_>) -> Vec<(String, Ruling)> {
    scope
        .runs()
        .map(|run| (run.subject(), narrowest_hop(scope, &run)))
        .collect()
}

/// Largest difference of the rate in one second from its median of a rate that is steady.
pub(super) const STEADY_MAX: f64 = 0.1;

/// Matches if the rate is that of a hop between the hosts.
pub(crate) fn narrowest_hop(scope: &Scope<'_>, run: &Run<'_>) -> Ruling {
    run.over_tcp()?;
    run.is_limited_by(&[limit::PATH_RATE, limit::PATH])?;
    require(!run.reaches_its_target(), "the target rate is reached")?;

    let rate = run.goodput_bps()?;
    let spread = run.number("end_spread")?;
    require(
        spread <= STEADY_MAX,
        format!("the rate varies by {:.0} %", spread.value * 100.0),
    )?;

    let rise = rise_with_load(run)?;
    // A queue at a router shows by itself that what is behind it takes no more.
    let router = run.number("hop_queue_us");
    if router.is_err() {
        require_time_left(scope, run)?;
    }

    for host in &scope.hosts {
        let there = run.at(*host);
        let nic = there.used_nic()?;
        require(
            !sets_rate_of(&nic, &there)?,
            "a shaper of these hosts sets the rate (QD-01)",
        )?;
    }

    require(line_rate(run).is_err(), "the link is full (TOP-01)")?;
    let mut matched = matched()
        .read_rate(&rate, "received")
        .read(&spread, "a steady rate")
        .because_all(rise.evidence);
    if let Ok(queue) = &router {
        matched = matched.read(queue, "at the exit of a router between the hosts");
    }

    // The facts of one end do not show the limits of the other.
    let watched = scope.hosts.len() > 1;
    Ok(matched
        .cap_if(!watched, Confidence::Medium)
        .advice("a faster link or hop: nothing to tune in these two hosts"))
}

/// Measurement that rises with the load, as evidence: the round trip of probes, or the loss of
/// probes or segments.
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
        && *loaded >= idle.value + LOSS_MIN
    {
        rise = rise.read(loaded, format!("{idle} without load"));
    }

    if let Some(loss) = run.loss() {
        rise = rise.read(&loss, "below 0.001");
    }

    if !rise.evidence.is_empty() {
        return Ok(rise);
    }

    // A measurement that is missing could have shown a rise.
    rtt?;
    lost?;
    run.number("retransmit_share")?;
    clear("neither round trip nor loss rises with the load")
}

/// Continues where no program of the test and no receive work of the hosts is at its limit.
fn require_time_left(scope: &Scope<'_>, run: &Run<'_>) -> Result<(), NoMatch> {
    // The bounds of CPU-01 and CPU-02.
    const FULL: f64 = 0.9;
    const SOFTIRQ_FULL: f64 = 0.85;

    for end in ["sender", "receiver"] {
        let thread = run.number(&format!("{end}_thread_cpu"));
        let cpu = thread.or_else(|_| run.number(&format!("{end}_process_cpu")))?;
        require(
            cpu < FULL,
            format!("the {end} uses {:.0} % of a CPU", cpu.value * 100.0),
        )?;
    }

    for host in &scope.hosts {
        require(
            host.most_interrupted_cpu()?.softirq < SOFTIRQ_FULL,
            format!("a CPU of {} is full of interrupt work", host.name()),
        )?;
    }

    Ok(())
}
