//! Drops and stalls of the NIC.

use linerate_model::snapshot::Source;

use super::remedies::pace_command;
use crate::classes::Class;
use crate::rules::prelude::*;

rules! {
    Nic nic_01,
    Nic nic_02,
    Nic nic_03,
    Nic nic_04,
    Nic nic_05,
    Nic nic_06,
}

fn nic_01(nic: &Nic<'_>) -> Ruling {
    let cur = nic.number_if_any("ring.rx.cur", "the driver has no ring setting")?;
    let max = nic.number("ring.rx.max")?;
    require(cur < max, format!("the ring cannot grow ({cur} of {max})"))?;

    let drops = nic.class_growth(Class::RxRingFull)?;
    drops.or_clear("overflows of the receive ring")?;
    Ok(matched()
        .grew(&drops)
        .read(&cur, format!("up to {max}"))
        .read(&max, "the maximum of the device")
        .fix_of_tokens(ring(nic, "rx", &max, &cur))
        .need("link reset on many drivers")
        .persist(
            "add the command to the interface's configuration (post-up), or a udev or systemd \
             .link rule",
        ))
}

/// A ring of this size in the place of the present one.
fn ring(nic: &Nic<'_>, way: &str, new: &Reading<f64>, old: &Reading<f64>) -> Option<Change> {
    let size =
        |size: &Reading<f64>| command("ethtool -G {} {} {}", &[&nic.name, &way, &size.value]);
    size(new).zip(size(old))
}

fn nic_02(nic: &Nic<'_>) -> Ruling {
    let cur = nic.number_if_any("ring.rx.cur", "the driver has no ring setting")?;
    let max = nic.number("ring.rx.max")?;
    require(cur >= max, format!("the ring can grow ({cur} of {max})"))?;

    let drops = nic.class_growth(Class::RxRingFull)?;
    drops.or_clear("overflows of the receive ring")?;
    let speed = nic
        .number("link.speed_mbps")
        .or_else(|_| nic.number("link.max_speed_mbps"));
    let mut matched = matched()
        .grew(&drops)
        .read(&cur, "the maximum, so it cannot grow")
        .read(&max, "the maximum of the device");

    if let Ok(speed) = speed {
        // From microseconds to milliseconds.
        let bridged = ring_time_us(cur.value, nic.mtu(), speed.value * 1e6) / 1000.0;
        matched = matched
            .because(
                "ring time",
                format!("{bridged:.1} ms"),
                format!("what {cur} full-size frames last at {speed} Mbit/s"),
            )
            .advice(pace_command("SENDER_DEVICE", speed.value));
    }

    Ok(matched
        .advice(
            "shape or pace the sender (run the command there), enable pause frames on the path \
             (PAU-01), or spread the receive work (IRQ-02)",
        )
        .persist("repeat the command from the network configuration of the sender"))
}

fn nic_03(nic: &Nic<'_>) -> Ruling {
    let failed = nic.class_growth(Class::RxAllocFail)?;
    failed.or_clear("failed allocations")?;
    let matched = matched().grew(&failed);
    Ok(match nic.host.number("sysctl.vm.min_free_kbytes") {
        Ok(reserve) => {
            let doubled = format!("{:.0}", reserve.value * 2.0);
            matched.read(&reserve, "twice as much").sysctl(
                &nic.host,
                "vm.min_free_kbytes",
                &doubled,
            )
        }
        Err(_) => matched.advice("raise vm.min_free_kbytes, or use a smaller MTU or ring"),
    })
}

fn nic_04(nic: &Nic<'_>) -> Ruling {
    if let Ok(resets) = nic.class_growth(Class::TxTimeout)
        && resets.value > 0
    {
        return Ok(matched()
            .grew(&resets)
            .severity(Severity::Blocker)
            .advice("update driver and firmware; check the cable"));
    }

    let stalls = nic
        .class_growth(Class::TxStall)
        .or_else(|_| nic.class_growth(Class::TxTimeout))?;
    stalls.or_clear("stalls of a transmit queue")?;
    let rate = stalls.rate("transmit stalls")?;
    require(rate > 100.0, format!("{rate:.0} stalls per second"))?;

    let busiest = nic.host.busiest_cpu()?;
    require(busiest < 0.9, "the queue fills because the CPU is busy")?;
    let matched =
        matched()
            .grew(&stalls)
            .because("rate of stalls", format!("{rate:.0}/s"), "at most 100/s");

    Ok(
        match (nic.number("ring.tx.cur"), nic.number("ring.tx.max")) {
            (Ok(cur), Ok(max)) if cur < max => matched
                .read(&cur, format!("up to {max}"))
                .fix_of_tokens(ring(nic, "tx", &max, &cur)),
            _ => matched.advice("update driver and firmware"),
        },
    )
}

fn nic_05(nic: &Nic<'_>) -> Ruling {
    let errors = nic.growth("drv.rx_errors")?;
    errors.or_clear("receive errors")?;
    let overflow = nic.class_growth(Class::RxRingFull)?;
    let damage = nic
        .class_growth(Class::RxPhyError)
        .map_or(0, |damage| damage.value);
    // `rx_errors` joins several causes, and a counter of overflows with 16 bits may have wrapped.
    let explained = overflow.value.saturating_add(damage);
    let rest = errors.value.saturating_sub(explained);
    require(
        rest > explained.saturating_mul(10).max(1),
        "overflow and damage explain the errors",
    )?;

    Ok(matched()
        .grew(&errors)
        .because(
            "overruns and damaged frames",
            explained,
            format!("at least a tenth of {}", to_f64(errors.value)),
        )
        .advice(
            "repeat with UDP paced to half the link: errors that vanish were an overrun, errors \
             that scale with the bytes are a bad cable",
        ))
}

fn nic_06(nic: &Nic<'_>) -> Ruling {
    // A live driver lists all of its counters: without one of allowances it has none.
    let shaped = match nic.class_growth(Class::Shaped) {
        Err(NoMatch::Unknown(_))
            if nic.host.snapshot.source == Source::Live
                && nic
                    .host
                    .snapshot
                    .counters_under(&nic.key("drv."))
                    .next()
                    .is_some() =>
        {
            return inapplicable(Inapplicable::Device, "the driver knows no allowance");
        }
        other => other?,
    };
    shaped.or_clear("exceeded allowances")?;
    Ok(matched()
        .grew(&shaped)
        .advice("use a larger type of instance, or fewer and larger packets"))
}
