//! 802.3x pause frames.

use linerate_model::snapshot::Value;

use super::speed_step::losses_behind_step;
use crate::classes::Class;
use crate::rules::prelude::*;

rules! {
    Nic pau_01,
    Nic pau_02,
    Nic pau_03,
    Scope pau_04,
    Nic pau_05,
    Nic pau_06,
}

/// Pause frames per second below which they have no effect.
const PAUSES_PER_SECOND: f64 = 10.0;

fn pau_01(nic: &Nic<'_>) -> Ruling {
    nic.wired()?;
    // Both ends must consent (IEEE 802.3, annex 28B): the facts of either can decide.
    let without = match (without_pause(nic), nic.peer()) {
        (Err(_), Some(peer)) => without_pause(&peer)?,
        (found, _) => found?,
    };
    let (losses, _) = losses_behind_step(nic)?;
    let losses = losses
        .because_all(without.evidence)
        .change_or(pause_change(nic), pause_on(nic));

    Ok(losses.advice(
        "enable 802.3x at both ends and on every switch port of the path, or pace the sender \
         instead (LNK-03)",
    ))
}

/// Pause frames are switched off or were not negotiated.
fn without_pause(nic: &Nic<'_>) -> Ruling {
    if let Ok(rx) = nic.flag("pause.rx")
        && let Ok(tx) = nic.flag("pause.tx")
        && !rx.value
        && !tx.value
    {
        return Ok(matched()
            .because(rx.key, "off", "on")
            .because(tx.key, "off", "on"));
    }

    let resolved = nic.text("pause.resolved")?;
    require(resolved == "none", format!("{resolved} negotiated"))?;
    Ok(matched().read_text(&resolved, "pause in at least one direction"))
}

fn pause_on(nic: &Nic<'_>) -> String {
    format!("ethtool -A {} autoneg on rx on tx on", nic.word())
}

/// Flow control on.
fn pause_change(nic: &Nic<'_>) -> Option<Change> {
    let settings = [
        ("autoneg", "pause.autoneg", "on"),
        ("rx", "pause.rx", "on"),
        ("tx", "pause.tx", "on"),
    ];
    nic.set("ethtool -A {}", &settings)
}

fn pau_02(nic: &Nic<'_>) -> Ruling {
    nic.carrier()?;
    if let Ok(resolved) = nic.text("pause.resolved")
        && resolved != "none"
    {
        return clear(format!("{resolved} negotiated"));
    }

    nic.supports("pause", "the driver has no pause operation")?;
    let rx = nic.flag("pause.rx")?;
    let tx = nic.flag("pause.tx")?;
    require(rx.value || tx.value, "pause is not configured")?;

    // Drivers of Intel's 10G ports show their own advertisement alone.
    if nic.text("pause.resolved").is_err() && nic.text("pause.advertised").is_ok() {
        return unknown(nic.key("pause.partner"), nic.reason("pause.partner")).suspect(
            "the driver does not show what the partner advertised: check the switch port",
        );
    }

    let resolved = nic.text("pause.resolved")?;
    Ok(matched()
        .because(rx.key, Value::Bool(rx.value), "configured")
        .because(tx.key, Value::Bool(tx.value), "configured")
        .read_text(&resolved, "must match the configuration")
        .change_or(
            pause_change(nic),
            format!("negotiate again: ethtool -r {}", nic.word()),
        )
        .need("link flap of about 2 s")
        .advice("enable 802.3x on the switch port as well"))
}

fn pau_06(nic: &Nic<'_>) -> Ruling {
    nic.wired()?;
    let without = without_pause(nic)?;
    let drops = nic.class_growth(Class::RxRingFull)?;
    drops.or_clear("frames that the NIC dropped")?;

    let mut found = matched().grew(&drops).because_all(without.evidence);
    if let Ok(partner) = nic.text("pause.partner") {
        found = found.read_text(&partner, "what the partner advertises");
    }

    Ok(found
        .change_or(
            pause_change(nic),
            "enable 802.3x flow control on the switch port, then `ethtool -r` here",
        )
        .advice(format!(
            "or pace the sender below what {} can store",
            nic.word()
        )))
}

fn pau_03(nic: &Nic<'_>) -> Ruling {
    nic.wired()?;
    let mut paused = nic.class_growth(Class::PauseRx);
    if nic.host.value("fanout.step_mbps").is_some() {
        paused = paused.suspect(
            "the sum of the flows moves in steps of one flow: pause frames would couple them",
        );
    }
    let paused = paused?;
    paused.in_period(
        "pause frames",
        format!("{paused} pause frames received since boot"),
    )?;

    let rate = paused.rate("pause frames")?;
    require(
        rate > PAUSES_PER_SECOND,
        format!("{rate:.1} pause frames per second"),
    )?;

    let matched = matched().grew(&paused).because(
        "rate of pause frames",
        format!("{rate:.0}/s"),
        "at most 10/s",
    );
    // Pauses of a test that is near line rate cost it nothing.
    if let Some(run) = nic.host.runs().next()
        && let Ok(speed) = nic.speed_mbps()
        && let Ok(goodput) = run.goodput_bps()
    {
        let ceiling = tcp_ceiling(speed.value * 1e6, nic.mtu());
        require(goodput < 0.9 * ceiling, "paused, and still near line rate")?;
    }

    Ok(matched
        .advice("find the slow port downstream; separate traffic classes, or pace per destination"))
}

fn pau_04(scope: &Scope<'_>) -> Vec<(String, Ruling)> {
    let clients = scope.of_hosts_with("clients.count", "clients", slow_receiver);
    clients.collect()
}

fn slow_receiver(host: &Host<'_>) -> Ruling {
    let slowest = host.number("clients.link_mbps_min")?;
    let observed = host.number("clients.observed_mbps")?;
    require(
        observed <= 1.05 * slowest.value,
        format!("stations reach {observed} Mbit/s, more than the slowest link"),
    )?;

    let paused = host.nics().find_map(|nic| pau_03(&nic).ok());
    let Some(paused) = paused else {
        return unknown("nic.*.drv.* (pause_rx)", host.reason("nic")).suspect(format!(
            "all stations converge to {slowest} Mbit/s, the speed of the slowest link"
        ));
    };
    Ok(matched()
        .because_all(paused.evidence)
        .read(&slowest, "the slowest link")
        .read(&observed, "must not converge to the slowest link")
        .advice(
            "repair the slow link; toward switches of mixed speeds use pacing per destination \
             instead of pause",
        ))
}

fn pau_05(nic: &Nic<'_>) -> Ruling {
    nic.wired()?;
    let storms = nic.class_growth(Class::PauseStorm);
    // A storm since boot may have ended long before the test.
    if let Ok(storms) = &storms
        && storms.value > 0
        && !storms.total
    {
        return Ok(matched()
            .grew(storms)
            .severity(Severity::Blocker)
            .advice("the NIC detected a pause storm: look for a receiver that hangs"));
    }

    let pausing = nic.class_growth(Class::PauseTx)?;
    pausing.in_period(
        "pause frames",
        format!("{pausing} pause frames sent since boot"),
    )?;
    let rate = pausing.rate("pause frames sent")?;
    require(
        rate > PAUSES_PER_SECOND,
        format!("{rate:.1} pause frames per second"),
    )?;

    Ok(matched()
        .grew(&pausing)
        .because(
            "rate of pause frames sent",
            format!("{rate:.0}/s"),
            "at most 10/s",
        )
        .advice("see CHN-01, IRQ-01 and NIC-01 for what keeps this host from draining its ring"))
}
