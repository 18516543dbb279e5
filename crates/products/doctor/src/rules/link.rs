//! Speed, duplex and damage of the wire.

use crate::classes::Class;
use crate::rules::prelude::*;

rules! {
    Scope lnk_01,
    Nic lnk_02,
    Nic super::speed_step::lnk_03,
    Nic lnk_04,
    Nic lnk_05,
    Nic lnk_06,
    Nic lnk_07,
    Nic lnk_09,
    Nic lnk_08,
}

fn lnk_01(scope: &Scope<'_>) -> Vec<(String, Ruling)> {
    let clients = scope.of_hosts_with("clients.count", "clients", slow_client);
    scope.of_nics(slow_link).chain(clients).collect()
}

fn slow_link(nic: &Nic<'_>) -> Ruling {
    let speed = nic.speed_mbps()?;
    if let Some(matched) = set_by_hand(nic, &speed) {
        return Ok(matched);
    }

    let best = match nic.number("link.modes.common_max_mbps") {
        Ok(common) => common,
        Err(_) if nic.number("link.modes.peer_max_mbps").is_ok() => {
            return unknown(
                nic.key("link.modes.common_max_mbps"),
                "no mode is common to both advertisements",
            );
        }
        Err(_) => {
            let ours = nic.number("link.modes.ours_max_mbps")?;
            // Without the partner's modes a lower speed is a fault only of a port that negotiates.
            if speed < ours {
                let negotiated = nic.flag("link.autoneg")?;
                require(
                    negotiated.value,
                    "the speed is set by hand or by the driver",
                )?;
            }

            ours
        }
    };
    require(speed < best, format!("{speed} of {best} Mbit/s"))?;
    Ok(matched()
        .read(&speed, format!("at least {best} Mbit/s"))
        .read(&best, "the fastest mode that is advertised")
        .run_or_advise(command("ethtool -r {}", &[&nic.name]))
        .need("link flap of about 2 s")
        .advice("reseat or replace the cable first; then check what the partner's port allows"))
}

/// A port with autonegotiation switched off that runs below its speed.
fn set_by_hand(nic: &Nic<'_>, speed: &Reading<f64>) -> Option<Match> {
    let could = nic
        .flag("link.autoneg_supported")
        .ok()
        .filter(|could| could.value)?;
    let does = nic.flag("link.autoneg").ok().filter(|does| !does.value)?;
    let best = nic.number("link.modes.supported_max_mbps").ok()?;

    (*speed < best).then(|| {
        matched()
            .read(
                speed,
                format!("at least {best} Mbit/s, which the port supports"),
            )
            .because(does.key, "off", format!("on, as {} shows", could.key))
            .change_or(negotiation(nic), negotiate(nic))
            .need("link flap of about 2 s")
            .cap(Confidence::Medium)
    })
}

/// One of several stations has a slower link than the others.
fn slow_client(host: &Host<'_>) -> Ruling {
    let slowest = host.number("clients.link_mbps_min")?;
    let fastest = host.number("clients.link_mbps_max")?;
    require(slowest < fastest, "all stations have the same speed")?;

    Ok(matched()
        .read(&slowest, format!("{fastest} Mbit/s, as the other stations"))
        .cap(Confidence::Medium)
        .advice("reseat or replace the cable of the slow station"))
}

fn lnk_02(nic: &Nic<'_>) -> Ruling {
    nic.carrier()?;
    let duplex = nic.text("link.duplex")?;
    if duplex == "half" {
        return Ok(full_duplex(nic, matched().read_text(&duplex, "full")));
    }
    if duplex != "full" {
        return unknown(duplex.key, "not reported by the driver");
    }

    let autoneg = nic.flag("link.autoneg").suspect("full duplex here")?;
    if autoneg.value {
        // A negotiating port falls back to half duplex when its partner does not negotiate, so full
        // means both do.
        return clear("negotiated full duplex");
    }

    match nic.peer().map(|peer| peer.flag("link.autoneg")) {
        Some(Ok(peer)) if peer.value => {
            let matched = matched().because(autoneg.key, "off", "on, as at the other end");
            Ok(full_duplex(
                nic,
                matched.because(
                    peer.key,
                    "on",
                    "the other end negotiates and falls back to half duplex",
                ),
            ))
        }
        Some(Ok(_)) => clear("both ends are set by hand"),
        _ => clear("full duplex, not negotiated"),
    }
}

fn full_duplex(nic: &Nic<'_>, matched: Match) -> Match {
    matched
        .change(negotiation(nic))
        .need("link flap of about 2 s")
        .advice("let both ends negotiate")
}

fn negotiate(nic: &Nic<'_>) -> String {
    format!("ethtool -s {} autoneg on", nic.word())
}

/// Autonegotiation on, where speed and duplex were set by hand.
fn negotiation(nic: &Nic<'_>) -> Option<Change> {
    // Only a port that was set by hand has values with which the undo is exact.
    let by_hand = nic
        .flag("link.autoneg")
        .ok()
        .filter(|negotiates| !negotiates.value);
    let (speed, duplex) = by_hand.and_then(|_| {
        Some((
            nic.number("link.speed_mbps").ok()?,
            nic.text("link.duplex").ok()?,
        ))
    })?;

    const BY_HAND: &str = "ethtool -s {} speed {} duplex {} autoneg off";

    let undo = command(BY_HAND, &[&nic.name, &speed.value, &duplex.value])?;
    Some((command("ethtool -s {} autoneg on", &[&nic.name])?, undo))
}

fn lnk_04(nic: &Nic<'_>) -> Ruling {
    nic.wired()?;
    let errors = nic.class_growth(Class::RxPhyError)?;
    errors.or_clear("damaged frames")?;

    // Both count the same frames, so that their sum would halve the share.
    let kernel = nic.key("stats64.rx_packets");
    let driver = nic.key("drv.rx_packets");
    let frames = match nic
        .host
        .growth(&kernel)
        .or_else(|_| nic.host.growth_of(&[&kernel, &driver]))
    {
        Ok(frames) => frames,
        // A sound link of 10 Gbit/s needs days of load for as many.
        Err(_) if errors.value >= DAMAGED_MANY => return Ok(damaged(nic, &errors)),
        Err(stop) => return Err(stop),
    };
    let share = to_f64(errors.value) / to_f64(frames.value.max(1));
    require(
        share >= 1e-6,
        format!("{share:.1e} of the frames: what the standard allows"),
    )?;

    Ok(damaged(nic, &errors).because(
        nic.key("stats64.rx_packets"),
        frames.value,
        "fewer than one damaged frame per million",
    ))
}

/// Damaged frames that are too many for a sound link, whatever it carried.
const DAMAGED_MANY: u64 = 1000;

fn damaged(nic: &Nic<'_>, errors: &Growth) -> Match {
    let advice = "clean or replace cable and optic; errors that persist at a tenth of the load are \
                  no overrun";
    // A test that loses segments makes totals since boot more than a remainder of former days.
    let is_lossy = |run: Run<'_>| run.number("retransmits").is_ok_and(|lost| lost > 0.0);
    let is_seen = errors.value >= DAMAGED_MANY && nic.host.runs().any(is_lossy);
    matched()
        .because_all(errors.evidence.clone())
        .advice(advice)
        .cap_if(errors.total, Confidence::Medium)
        .cap_if(errors.total && !is_seen, Confidence::Low)
}

/// A link that came up ten times within its first day is not stable.
const FLAPS_MAX: f64 = 20.0;
const DAY_SECONDS: f64 = 86_400.0;

/// Losses of the carrier in the kernel's log that are no restart of a host or a switch.
const LOGGED_DOWNS_MIN: u64 = 2;

/// Losses of the carrier that the kernel logged.
fn logged_flaps(nic: &Nic<'_>) -> Ruling {
    let downs = nic.growth("link.log_downs")?;
    let seconds = nic.number("link.log_seconds")?;
    require(
        downs.value >= LOGGED_DOWNS_MIN && seconds < DAY_SECONDS,
        format!("{downs} losses of the carrier in the log"),
    )?;

    let mut found = matched()
        .because(
            nic.key("link.log_downs"),
            downs.value,
            "0 in the kernel's log",
        )
        .read(&seconds, "from the first to the last change");
    if let Some(speeds) = nic.value("link.log_speeds") {
        found = found.because(nic.key("link.log_speeds"), speeds, "one speed");
    }

    if nic.is("link.eee.active") {
        found = found.advice(
            "switch Energy Efficient Ethernet off: some pairs of ports lose the link with it",
        );
    }

    Ok(found
        .advice("check cable, plug and firmware")
        .change(energy_saving_off(nic)))
}

fn lnk_05(nic: &Nic<'_>) -> Ruling {
    nic.wired()?;
    if let Ok(found) = logged_flaps(nic) {
        return Ok(found);
    }

    let changes = nic.growth("link.carrier_changes")?;
    if changes.total {
        let uptime = nic.host.number("uptime_seconds")?;
        require(
            to_f64(changes.value) > FLAPS_MAX && uptime < DAY_SECONDS,
            format!(
                "{changes} changes of the carrier in {:.0} h",
                uptime.value / 3600.0
            ),
        )?;
    } else {
        changes.or_clear("changes of the carrier")?;
    }

    Ok(matched()
        .grew(&changes)
        .advice("check cable, plug and firmware first")
        .change(energy_saving_off(nic)))
}

fn lnk_06(nic: &Nic<'_>) -> Ruling {
    nic.wired()?;
    nic.supports("link.fec", "the link has no forward error correction")?;
    let lost = nic.growth("link.fec.uncorrectable")?;
    lost.or_clear("uncorrectable blocks")?;

    Ok(matched().grew(&lost).advice(format!(
        "check the module and the cable; then another code: ethtool --set-fec {} encoding rs",
        nic.word()
    )))
}

fn lnk_07(nic: &Nic<'_>) -> Ruling {
    nic.wired()?;
    nic.supports("link.eee", "the driver has no energy saving")?;
    let active = nic.flag("link.eee.active")?;
    require(active.value, "not active")?;

    let latency = nic
        .host
        .flag("complaint.latency")
        .suspect("energy saving is active; it matters when latency is the complaint")?;
    require(latency.value, "latency is not the complaint")?;
    Ok(matched()
        .because(active.key, "on", "off where latency matters")
        .change_or(
            energy_saving_off(nic),
            format!("ethtool --set-eee {} eee off", nic.word()),
        )
        .need("link flap of about 2 s"))
}

fn energy_saving_off(nic: &Nic<'_>) -> Option<Change> {
    nic.set(
        "ethtool --set-eee {}",
        &[("eee", "link.eee.enabled", "off")],
    )
}

fn lnk_08(nic: &Nic<'_>) -> Ruling {
    nic.wired()?;
    let up = nic.flag("link.up")?;
    require(!up.value, "the link is up")?;

    let is_route = nic.host.text_is("route.peer.dev", nic.name);
    // A spare port without a cable is no fault.
    if !is_route && is_spare(nic) {
        return unknown(nic.key("link"), "no carrier");
    }

    Ok(matched().because(up.key, "off", "on").advice(format!(
        "check cable, transceiver and the partner's port; `ip link set dev {} up` if it is \
         switched off",
        nic.word()
    )))
}

/// True if another port carries what this one does not: of this host, or of the other host in a
/// pasted text.
fn is_spare(nic: &Nic<'_>) -> bool {
    let is_up =
        |other: &Nic<'_>| other.wired().is_ok() && !other.flag("link.up").is_ok_and(|up| !up.value);
    let other_host = nic.host.other_host().filter(|_| nic.host.is_pasted());

    nic.host.nics().any(|other| is_up(&other))
        || other_host.is_some_and(|host| host.nics().any(|nic| is_up(&nic)))
}

/// Received signal below which the bit rate falls.
const WEAK_SIGNAL_DBM: f64 = -70.0;
/// Part of the frames that is sent again only with interference.
const REPEATED_MANY: f64 = 0.3;
/// Part of the bit rate that a test gets at best, as the acknowledgements need the same channel.
const AIR_FULL: f64 = 0.45;

fn lnk_09(nic: &Nic<'_>) -> Ruling {
    let signal = nic.number("wifi.signal_dbm")?;
    let mut found = matched().read(&signal, format!("above {WEAK_SIGNAL_DBM} dBm"));
    let mut is_slow = signal <= WEAK_SIGNAL_DBM;

    let frames = |counter: &str| nic.growth(&format!("wifi.{counter}"));
    if let Ok(sent) = frames("tx_packets")
        && let Ok(repeated) = frames("tx_retries")
    {
        let share = to_f64(repeated.value) / to_f64(sent.value.max(1));
        is_slow |= share >= REPEATED_MANY;
        found = found.because("frames sent again", percent(share), "below 30 %");
    }

    if let Some((rate, goodput)) = air_rate(nic) {
        is_slow |= goodput >= AIR_FULL * rate.value * 1e6;
        found = found
            .read(&rate, "TCP gets about half of it")
            .read(&goodput, "in the test");
    }

    require(is_slow, format!("a signal of {signal} dBm"))?;
    Ok(found.advice("move closer to the access point, use another channel or band, or a cable"))
}

/// The bit rate of a test's direction over this interface, and what the test reached.
fn air_rate(nic: &Nic<'_>) -> Option<(Reading<f64>, Reading<f64>)> {
    let run = nic
        .host
        .runs()
        .find(|run| run.nic().is_some_and(|used| used.name == nic.name))?;
    let rate = if run.receives()? {
        nic.number("wifi.rx_mbps")
    } else {
        nic.number("wifi.tx_mbps")
    };
    Some((rate.ok()?, run.goodput_bps().ok()?))
}
