//! Queues of the NIC and the CPUs that serve them.

use linerate_model::placement::cpu_list;
use linerate_model::snapshot::Absence;

use crate::classes::Class;
use crate::placement::irq_shares;
use crate::rules::prelude::*;

rules! {
    Nic chn_01,
    Scope chn_02,
    Nic chn_03,
    Nic irq_01,
    Nic irq_02,
    Nic irq_03,
    Nic irq_04,
    Nic irq_05,
    Host soft_01,
    Host soft_02,
}

/// Share of a CPU in interrupts from which on it is the limit.
const SATURATED: f64 = 0.85;

fn chn_01(nic: &Nic<'_>) -> Ruling {
    let cur = nic.number_if_any("chan.combined.cur", "the driver offers no channel setting")?;
    let max = nic.number_if_any("chan.combined.max", "the driver offers no channel setting")?;
    let cores = local_cores(nic);
    // More queues than CPUs cost interrupts without gain.
    let useful = cores
        .as_ref()
        .map_or(max.value, |cores| max.value.min(cores.value));
    require(cur < useful, format!("{cur} of {useful} useful queues"))?;

    let channels = |count: f64| command("ethtool -L {} combined {}", &[&nic.name, &count]);
    let mut matched = crowded(nic, &cur)?
        .read(&cur, format!("up to {useful}"))
        .read(&max, "the maximum of the device")
        .cap_if(cores.is_none(), Confidence::Medium);
    if let Some(cores) = cores {
        matched = matched.read(&cores, "CPUs that can serve queues");
    }

    Ok(matched
        .fix_of_tokens(channels(useful).zip(channels(cur.value)))
        .need("link flap of about 2 s")
        .advice("not more queues than CPUs on the NIC's node")
        .persist(
            "add the command to the interface's configuration (post-up), or a udev or systemd \
             .link rule",
        ))
}

fn local_cores(nic: &Nic<'_>) -> Option<Reading<f64>> {
    nic.number("numa.local_cpus")
        .or_else(|_| nic.host.number("cpu.count"))
        .ok()
}

/// Evidence that the few queues are a problem: a saturated CPU, or more flows than queues. Imported
/// text without load counts as well: users paste it because of a problem.
fn crowded(nic: &Nic<'_>, queues: &Reading<f64>) -> Result<Match, NoMatch> {
    if let Ok(flows) = nic.host.number("fanout.destinations")
        && flows > *queues
    {
        return Ok(matched().read(
            &flows,
            format!("at most as many flows as the {queues} queues"),
        ));
    }

    let load = match nic.host.most_interrupted_cpu() {
        Err(_) if nic.host.is_pasted() => return Ok(matched().cap(Confidence::Low)),
        load => load.suspect(format!("{queues} queues in use; matters under load"))?,
    };
    require(load.softirq >= SATURATED, "no CPU is busy with interrupts")?;
    Ok(matched().because(
        format!("cpu.{}.softirq", load.cpu),
        percent(load.softirq),
        "below 85 % of the CPU in interrupts",
    ))
}

/// A sum near a whole multiple of one flow's rate means that whole flows share.
fn chn_02(scope: &Scope<'_>) -> Vec<(String, Ruling)> {
    let noted = scope
        .hosts
        .iter()
        .filter(|host| host.value("fanout.destinations").is_some());
    let mut rulings = Vec::new();

    for host in noted {
        rulings.push((format!("{} to its clients", host.name()), collision(host)));
        if let Ok(back) = host.number("fanout.reverse_sum_mbps") {
            rulings.push((
                format!("clients to {}", host.name()),
                receive_direction(&back),
            ));
        }
    }

    if rulings.is_empty() {
        const NEEDS: &str = "needs rates per flow and bytes per transmit queue";
        rulings.extend(scope.of_nics(|_| unknown("fanout.destinations", NEEDS)));
    }

    rulings
}

/// The sum of the flows towards the fast host is the ceiling of its link.
fn receive_direction(sum: &Reading<f64>) -> Ruling {
    let bare =
        |speed: f64| goodput_ceiling(speed, 1500.0, Network::V4, Transport::Tcp).unwrap_or(0.0);
    // The rate of a full link lies between the ceilings with and without time stamps.
    let is_ceiling = |speed: &f64| {
        (0.985 * tcp_ceiling(*speed, 1500.0)..=1.005 * bare(*speed)).contains(&sum.value)
    };
    match COMMON_SPEEDS_MBPS.into_iter().find(is_ceiling) {
        Some(speed) => clear(format!(
            "receive direction: {sum} of {:.0} to {:.0} Mbit/s, which a link of {speed} Mbit/s carries",
            tcp_ceiling(speed, 1500.0),
            bare(speed)
        )),
        None => unknown(
            "path.line_rate_mbps",
            format!("{sum} Mbit/s are the ceiling of no usual link"),
        ),
    }
}

fn collision(host: &Host<'_>) -> Ruling {
    let flows = host.number("fanout.destinations")?;
    require(flows >= 4.0, "fewer than four destinations")?;
    let step = host.number("fanout.step_mbps")?;
    let low = host.number("fanout.sum_mbps_min")?;
    let queues = host.number("fanout.queues")?;
    let full = flows.value * step.value;
    require(
        low < 0.9 * full,
        "the sum is what all flows together can reach",
    )?;

    let used = expected_queues(flows.value, queues.value);
    Ok(matched()
        .read(
            &low,
            format!("near {full} Mbit/s; it moves in steps of {step} Mbit/s"),
        )
        .read(
            &flows,
            format!("a hash uses {used:.1} of {queues} queues for this number of flows"),
        )
        .advice(
            "more queues, `fq` leaf qdiscs, or a fixed mapping of destinations to queues; check \
             PAU-03 first",
        ))
}

fn chn_03(nic: &Nic<'_>) -> Ruling {
    nic.wired()?;
    let queues = match nic.number("queue.rx_count") {
        Ok(queues) => queues,
        Err(missing) => match nic.number("chan.combined.cur") {
            Ok(combined) => combined,
            // A driver without channel operations has one queue.
            Err(_) if nic.absence("chan.combined.cur") == Absence::UnsupportedByDriver => {
                Reading::new(nic.key("chan"), 1.0)
            }
            Err(_) => return Err(missing),
        },
    };
    require(queues <= 1.0, format!("{queues} receive queues"))?;

    let matched = matched().read(&queues, "several receive queues");
    // One queue alone is no fault below 2 Gbit/s; it is one where its CPU is full.
    let saturated = irq_cpu(nic)
        .and_then(|(cpu, _)| nic.host.cpu_load(cpu))
        .is_ok_and(|load| load.softirq >= SATURATED);
    let matched = if saturated {
        matched.severity(Severity::High)
    } else {
        matched
    };

    Ok(matched.advice("spread the work in software if its CPU saturates (IRQ-02)"))
}

/// The CPU that took most interrupts of this interface, and its share of them: over the period, or
/// since boot.
fn irq_cpu(nic: &Nic<'_>) -> Result<(u32, f64), NoMatch> {
    irq_shares(nic)?
        .first()
        .copied()
        .or_unknown(nic.key("irq.total"), "no interrupt was counted")
}

fn irq_01(nic: &Nic<'_>) -> Ruling {
    nic.wired()?;
    let vectors = nic.number("irq.vectors")?;
    require(vectors >= 2.0, "a single vector")?;

    let (cpu, share) = irq_cpu(nic)?;
    let taken = format!("CPU {cpu} takes {}", percent(share));
    require(share >= 0.8, format!("{taken} of them"))?;

    let load = nic
        .host
        .cpu_load(cpu)
        .suspect(format!("{taken} of the interrupts of {vectors} vectors"))?;
    require(
        load.softirq >= SATURATED,
        format!("CPU {cpu} is not saturated"),
    )?;
    Ok(matched()
        .read(&vectors, "spread over several CPUs")
        .because(
            nic.key("irq.busiest_cpu"),
            cpu,
            format!("takes {:.0} %, at most 80 %", share * 100.0),
        )
        .because(
            format!("cpu.{cpu}.softirq"),
            percent(load.softirq),
            "below 85 %",
        )
        .advice(
            "start irqbalance, or write one CPU of the NIC's node into each \
             /proc/irq/N/smp_affinity_list",
        ))
}

fn irq_02(nic: &Nic<'_>) -> Ruling {
    chn_03(nic)?;
    let (cpu, _) = irq_cpu(nic)?;
    let load = nic.host.cpu_load(cpu).suspect({
        let total = nic.number("irq.total").map_or(0.0, |total| total.value);
        format!(
            "one CPU takes all {total:.0} interrupts of the only queue; its load was not sampled"
        )
    })?;
    require(
        load.softirq >= SATURATED,
        format!(
            "CPU {cpu} spends {:.0} % in interrupts",
            load.softirq * 100.0
        ),
    )?;

    let masks = nic
        .host
        .number("cpu.count")
        .ok()
        .zip(nic.text("queue.rx-0.rps_cpus").ok());
    let write = |mask: &str| {
        command(
            "echo {} > /sys/class/net/{}/queues/rx-0/rps_cpus",
            &[&mask, &nic.name],
        )
    };
    let change =
        masks.and_then(|(count, old)| write(&rps_mask(count.value, cpu)).zip(write(old.value)));

    Ok(matched()
        .because(
            format!("cpu.{cpu}.softirq"),
            percent(load.softirq),
            "below 85 %",
        )
        .change_or(
            change,
            format!(
                "write the mask of the other CPUs to /sys/class/net/{}/queues/rx-0/rps_cpus",
                nic.word()
            ),
        )
        .persist("repeat the command at boot, for example from a udev rule"))
}

/// Every CPU but one, as a mask in hexadecimal; at most the first 32 CPUs, which is enough for one
/// queue.
fn rps_mask(cpus: f64, except: u32) -> String {
    let count = if cpus >= 32.0 {
        32
    } else {
        cpus.max(1.0) as u32
    };
    let all = (1_u64 << count) - 1;
    // The bound keeps the shift valid; a CPU beyond the mask is not in it.
    format!("{:x}", all & !(1_u64 << except.min(63)))
}

fn irq_03(nic: &Nic<'_>) -> Ruling {
    nic.wired()?;
    let node = nic.number("numa.node")?;
    // The kernel reports node -1 on a host without NUMA.
    require(node >= 0.0, "one NUMA node")?;

    let nodes = nic.host.number("numa.nodes")?;
    require(nodes > 1.0, "one NUMA node")?;
    let local = nic.text("numa.local_cpulist")?;
    let near = cpu_list(local.value);
    let remote: f64 = irq_shares(nic)?
        .iter()
        .filter(|(cpu, _)| !near.contains(cpu))
        .map(|(_, share)| share)
        .sum();
    require(
        remote > 0.5,
        format!(
            "{:.0} % of the interrupts are local",
            (1.0 - remote) * 100.0
        ),
    )?;

    Ok(matched()
        .read(&node, "the NIC's node")
        .because(
            nic.key("irq.remote_share"),
            percent(remote),
            "at most 50 % on other nodes",
        )
        .advice(format!(
            "write {local} into the smp_affinity_list of its interrupts"
        )))
}

fn irq_04(nic: &Nic<'_>) -> Ruling {
    nic.wired()?;
    let mask = nic.text("queue.rx-0.rps_cpus")?;
    let steers = mask
        .value
        .chars()
        .any(|c| c.is_ascii_hexdigit() && c != '0');
    require(steers, "no software steering")?;

    let queues = nic.number("queue.rx_count")?;
    let cpus = nic.host.number("cpu.count")?;
    require(queues >= cpus, format!("{queues} queues for {cpus} CPUs"))?;

    const LOOP: &str = "for f in /sys/class/net/{}/queues/rx-*/rps_cpus; do echo {} > $f; done";

    let write = |mask: &str| command(LOOP, &[&nic.name, &mask]);
    // The undo writes one mask to all queues.
    let alike = (0..queues.value as u32)
        .all(|queue| nic.text_is(&format!("queue.rx-{queue}.rps_cpus"), mask.value));
    Ok(matched()
        .read_text(&mask, "0, because the hardware spreads already")
        .read(&queues, format!("as many as CPUs ({cpus})"))
        .change_or(
            alike.then(|| write("0").zip(write(mask.value))).flatten(),
            format!(
                "write 0 to /sys/class/net/{}/queues/rx-*/rps_cpus",
                nic.word()
            ),
        ))
}

fn irq_05(nic: &Nic<'_>) -> Ruling {
    nic.wired()?;
    let usecs = nic.number_if_any("coal.rx_usecs", "the driver has no interrupt moderation")?;
    if nic.is("coal.adaptive_rx") {
        return clear("adaptive moderation is on");
    }
    if nic.text_is("drv.name", "virtio_net") {
        return clear("with virtio the host decides on interrupt moderation");
    }

    let fix = |matched: Match| {
        let on = command("ethtool -C {} adaptive-rx on", &[&nic.name]);
        let off = command(
            "ethtool -C {} adaptive-rx off rx-usecs {}",
            &[&nic.name, &usecs.value],
        );
        let adaptive = nic.flag("coal.adaptive_rx").is_ok().then(|| on.zip(off));
        matched.change_or(adaptive.flatten(), "set rx-usecs of ethtool -C")
    };
    if usecs >= 100.0 {
        let latency = nic
            .host
            .flag("complaint.latency")
            .suspect(format!("every packet may wait {usecs} us"))?;
        require(latency.value, "latency is not the complaint")?;
        return Ok(fix(
            matched().read(&usecs, "below 100 where latency matters")
        ));
    }

    require(usecs == 0.0, format!("{usecs} us"))?;
    let queues = nic.number("irq.vectors")?;
    let period = nic.host.period()?;
    let prefix = nic.key("irq.");
    let grown: f64 = period
        .deltas()
        .filter(|(key, _)| key.starts_with(&prefix))
        .map(|(_, delta)| to_f64(delta.value))
        .sum();
    let rate = grown / period.seconds / queues.value.max(1.0);
    require(
        rate > 100_000.0,
        format!("{rate:.0} interrupts per second and queue"),
    )?;

    Ok(fix(matched().read(&usecs, "moderation on").because(
        "interrupts per second and queue",
        format!("{rate:.0}"),
        "at most 100000",
    )))
}

fn soft_01(host: &Host<'_>) -> Ruling {
    let dropped = host.growth("softnet.dropped")?;
    dropped.or_clear("drops of the backlog")?;
    Ok(matched()
        .grew(&dropped)
        .raise(host, "net.core.netdev_max_backlog", 10_000.0))
}

fn soft_02(host: &Host<'_>) -> Ruling {
    let squeezed = host.growth("softnet.time_squeeze")?;
    squeezed.or_clear("exhausted budgets")?;
    let received = host.growth("softnet.processed")?;
    let share = to_f64(squeezed.value) / to_f64(received.value.max(1));
    require(
        share > 0.01,
        format!("{:.2} per 100 packets", share * 100.0),
    )?;

    // A budget that runs out without drops is normal under load.
    let dropped = drops_behind(host)?;
    Ok(matched()
        .grew(&squeezed)
        .grew(&dropped)
        .severity(Severity::Medium)
        .raise(host, "net.core.netdev_budget", 600.0)
        .raise(host, "net.core.netdev_budget_usecs", 8000.0))
}

/// Drops that an exhausted budget leads to: of the backlog, or of a receive ring.
fn drops_behind(host: &Host<'_>) -> Result<Growth, NoMatch> {
    let backlog = host.growth("softnet.dropped")?;
    if backlog.value > 0 {
        return Ok(backlog);
    }

    for nic in host.nics().filter(|nic| nic.wired().is_ok()) {
        let ring = nic.class_growth(Class::RxRingFull)?;
        if ring.value > 0 {
            return Ok(ring);
        }
    }

    clear("nothing was dropped meanwhile")
}
