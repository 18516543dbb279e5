//! A step in speed between the two ends of a wire.

use super::remedies::{pace_command, pace_parameters};
use crate::classes::Class;
use crate::rules::prelude::*;

pub(super) fn lnk_03(nic: &Nic<'_>) -> Ruling {
    let (losses, ours) = losses_behind_step(nic)?;
    let sender = nic.peer();
    let (host, device) = sender
        .as_ref()
        .map_or(("the sender", "SENDER_DEVICE"), |peer| {
            (peer.host.name(), peer.word())
        });

    let parameters = pace_parameters(ours);
    Ok(losses
        .on(host)
        .change_or(
            sender.and_then(|peer| peer.replace_root("tbf", &parameters)),
            pace_command(device, ours),
        )
        .advice(format!(
            "run the command on {host}; keep the rate below what the slower wire carries"
        ))
        .persist(format!(
            "repeat the command from the network configuration of {host}"
        )))
}

/// Loss of the slower end of a wire or path because its peer sends faster, as evidence, and the
/// speed of that end in Mbit/s.
pub(super) fn losses_behind_step(nic: &Nic<'_>) -> Result<(Match, f64), NoMatch> {
    nic.wired()?;
    let drops = nic.class_growth(Class::RxRingFull);
    let lossy = drops.as_ref().is_ok_and(|drops| drops.value > 0);

    // Seen from the receiver: its own ring overflows while the sender's link is faster.
    let (ours, peers) = step_to_peer(nic).suspect(if lossy {
        "the receive ring overflows although the link carries no more than its own speed: a \
             faster sender would explain it"
            .to_owned()
    } else {
        "only one end of the wire is known".to_owned()
    })?;
    require(
        peers > ours,
        format!("no step: {ours} Mbit/s here, {peers} Mbit/s there"),
    )?;
    let step = matched()
        .read(&ours, "the slower end")
        .read(&peers, "the faster end");
    let losses = match (slow_towards(nic, ours.value), drops) {
        (Ok(tests), _) => step.because_all(tests.evidence),
        (Err(_), Ok(drops)) => {
            drops.or_clear("drops behind the step")?;
            step.grew(&drops)
        }
        (Err(reason), Err(_)) => return Err(reason),
    };

    Ok((losses, ours.value))
}

/// Tests of both directions: towards this end slow and with retransmissions, away from it near line
/// rate.
fn slow_towards(nic: &Nic<'_>, mbps: f64) -> Ruling {
    let other = nic.host.other_host();
    let tests = |receives: bool| {
        let here = nic
            .host
            .runs()
            .filter(move |run| run.receives() == Some(receives));
        let there = other.into_iter().flat_map(|host| host.runs());
        here.chain(there.filter(move |run| run.receives() == Some(!receives)))
            .filter(|run| !run.is_udp())
    };

    let ceiling = 0.9 * tcp_ceiling(mbps * 1e6, nic.mtu());
    let (inbound, retransmits) = tests(true)
        .find_map(|run| Some((run.goodput_bps().ok()?, run.number("retransmits").ok()?)))
        .or_unknown(
            "run.*.retransmits",
            "needs a TCP test towards the slower end",
        )?;

    let outbound = tests(false)
        .find_map(|run| run.goodput_bps().ok())
        .or_unknown("run.*.reverse", "needs a TCP test in each direction")?;
    require(
        inbound < ceiling && retransmits > 0.0,
        format!(
            "{:.0} Mbit/s towards the slower end, {retransmits} retransmissions",
            inbound.value / 1e6
        ),
    )?;
    // Behind a step in speed the other direction loses nothing, unlike on a damaged link.
    require(
        outbound >= ceiling,
        format!("{:.0} Mbit/s in the other direction", outbound.value / 1e6),
    )?;

    Ok(matched()
        .read(
            &inbound,
            format!(
                "towards the slower end: at least {:.0} Mbit/s",
                ceiling / 1e6
            ),
        )
        .read(&retransmits, "none on a path without losses")
        .read(&outbound, "the other direction is near line rate"))
}

/// Speeds of this end and of the other.
fn step_to_peer(nic: &Nic<'_>) -> Result<(Reading<f64>, Reading<f64>), NoMatch> {
    let peers = nic.peer_number("link.speed_mbps")?;
    Ok((
        nic.speed_mbps()
            .or_else(|_| nic.number("link.max_speed_mbps"))?,
        peers,
    ))
}
