//! CPUs: saturated, slowed down, stolen, or far away.

use linerate_model::placement::cpu_list;

use crate::placement::worker_shares;
use crate::rules::prelude::*;

rules! {
    Run cpu_01,
    Host cpu_02,
    Host cpu_03,
    Host cpu_04,
    Host cpu_09,
    Run cpu_07,
    Run cpu_08,
    Run cpu_05,
    Run cpu_06,
    Host tun_02,
}

fn cpu_01(run: &Run<'_>) -> Ruling {
    run.is_limited_by(&[limit::SENDER_CPU])?;
    let thread = run.number("sender_thread_cpu")?;
    require(
        thread >= 0.9,
        format!("the sender uses {:.0} % of a CPU", thread.value * 100.0),
    )?;

    if run.is_udp() {
        return Ok(matched()
            .read(&thread, "below 0.9 of a CPU")
            .advice("larger datagrams (-l), more streams (-P)"));
    }

    let window = run.number("rwnd_limited_share")?;
    require(window < 0.2, "the receive window is the limit")?;
    let buffer = run.number("sndbuf_limited_share")?;
    require(buffer < 0.2, "the send buffer is the limit")?;

    Ok(matched()
        .read(&thread, "below 0.9 of a CPU")
        .read(&window, "the receive window is not the limit")
        .advice(if run.is_examined() {
            "more streams (-P), or loads without frames (--raw)"
        } else {
            "larger writes (-l 1M), zero copy (-Z), more streams (-P)"
        }))
}

fn cpu_02(host: &Host<'_>) -> Ruling {
    let received = || host.runs().filter(|run| run.part() != Some("sender"));
    if let Some(thread) = received()
        .find_map(|run| run.number("receiver_thread_cpu").ok())
        .filter(|thread| *thread >= 0.9)
    {
        return Ok(matched().read(&thread, "below 0.9 of a CPU").advice(
            "more receiving threads, larger reads, application and interrupts on different \
                 CPUs of one node",
        ));
    }

    let loads = host.cpu_loads()?;
    match loads
        .into_iter()
        .max_by(|a, b| a.softirq.total_cmp(&b.softirq))
    {
        Some(load) if load.softirq >= 0.85 => Ok(matched()
            .because(
                format!("cpu.{}.softirq", load.cpu),
                percent(load.softirq),
                "below 85 %",
            )
            .advice(
                "receive offload (OFF-02), more queues (CHN-01), or spread interrupts (IRQ-01, \
                 IRQ-02)",
            )),
        Some(load) => match received().next() {
            Some(run) => {
                // A thread that was not measured could be saturated: the rule is unknown.
                run.number("receiver_thread_cpu")?;
                clear(format!(
                    "busiest CPU {:.0} % in interrupts, the receiving thread is not saturated",
                    load.softirq * 100.0
                ))
            }
            None => clear(format!(
                "busiest CPU spends {:.0} % in interrupts",
                load.softirq * 100.0
            )),
        },
        None => unknown("cpu.0.user", "no CPU was sampled"),
    }
}

fn cpu_03(host: &Host<'_>) -> Ruling {
    let governor =
        host.text("cpu.freq.governor")
            .suspect(match host.text("svc.tuned_profile") {
                Ok(profile) => format!("tuned runs the profile {profile}; the clock was not read"),
                Err(_) => "the governor is not known".to_owned(),
            })?;
    let driver = host.text("cpu.freq.driver")?;
    let saving = match governor.value {
        // The governor of this name of intel_pstate raises the clock with the load.
        "powersave" => driver == "acpi-cpufreq",
        "ondemand" | "schedutil" | "conservative" => true,
        _ => false,
    };
    require(saving, format!("{governor} with {driver}"))?;

    let cur = host.number("cpu.freq.cur_khz")?;
    let max = host.number("cpu.freq.max_khz")?;

    // This governor keeps the lowest clock whatever the load is; the others raise it with the load.
    if governor != "powersave" || !host.is_pasted() {
        let busiest = host.busiest_cpu()?;
        require(
            busiest >= 0.85,
            format!("busiest CPU at {}", percent(busiest)),
        )?;
    }

    require(cur < 0.8 * max.value, "the clock is not reduced")?;
    Ok(matched()
        .read_text(&governor, "performance, while the CPU is near its limit")
        .read(&cur, format!("at least 0.8 of {max} kHz"))
        .fix_of_tokens(governed("performance").zip(governed(governor.value)))
        .persist("tuned-adm profile throughput-performance"))
}

/// The command that sets the governor of all CPUs.
pub(super) fn governed(governor: &str) -> Option<Command> {
    command("cpupower frequency-set -g {}", &[&governor])
}

fn cpu_04(host: &Host<'_>) -> Ruling {
    let throttled = host.growth("cgroup.nr_throttled")?;
    throttled.or_clear("throttled periods")?;
    let mut found = matched().because_all(throttled.evidence.clone());

    // Totals cover the life of the group: a small share of them shows nothing about the test.
    if throttled.total {
        let periods = host.number_of_periods()?;
        let share = to_f64(throttled.value) / to_f64(periods.max(1));
        if share < THROTTLED_MANY {
            throttled.in_period(
                "throttled periods",
                format!("{throttled} of {periods} periods were throttled"),
            )?;
        }

        // A group that used up its quota nearly always is limited by it now.
        found = found
            .because(
                "throttled periods",
                percent(share),
                format!("of {periods} periods"),
            )
            .cap(Confidence::Medium);
    }

    if let Ok(quota) = host.text("cgroup.cpu.max") {
        found = found.read_text(&quota, "quota and period, microseconds");
    }

    Ok(found.advice("raise the CPU quota of this container (cpu.max)"))
}

/// Part of the periods of a quota from which on totals show that it limits.
const THROTTLED_MANY: f64 = 0.1;

/// Part of the CPU time that the hypervisor gives to others from which on a test has to show it.
const STOLEN_MIN: f64 = 0.05;
const STOLEN_MANY: f64 = 0.1;

/// Stolen time in samples of other programs, otherwise since boot.
fn stolen_in_text(host: &Host<'_>) -> Ruling {
    let sampled = host
        .snapshot
        .facts_under("cpu.load.")
        .filter(|(key, _)| key.ends_with(".steal_share"));
    let shares = sampled.filter_map(|(key, _)| host.number(&format!("cpu.load.{key}")).ok());
    if let Some(most) = shares.max_by(|a, b| a.value.total_cmp(&b.value)) {
        require(
            most > STOLEN_MIN,
            format!("{:.1} % stolen", most.value * 100.0),
        )?;
        return Ok(stolen()
            .severity_if(most >= STOLEN_MANY, Severity::High)
            .read(&most, "at most 5 %"));
    }

    let sum = |state: &str| {
        let of_cpus = host
            .snapshot
            .counters
            .iter()
            .filter(|(key, _)| is_time_of_cpu(key, state));
        of_cpus.fold(0_u64, |sum, (_, counter)| sum.saturating_add(counter.v))
    };
    // proc(5): `user` contains guest time and `nice` guest_nice, which are not added again.
    let all = [
        "user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal",
    ]
    .map(sum);
    let grown = host.growth("cpu.0.steal")?;
    let share = to_f64(sum("steal")) / to_f64(all.into_iter().fold(0, u64::saturating_add).max(1));
    require(
        share > STOLEN_MIN,
        format!("{:.1} % stolen since boot", share * 100.0),
    )?;

    Ok(stolen()
        .grew(&grown)
        .severity_if(share >= STOLEN_MANY, Severity::Medium)
        .because("stolen since boot", percent(share), "at most 5 %"))
}

fn stolen() -> Match {
    matched()
        .severity(Severity::Low)
        .advice("request a less loaded host or reserved CPUs")
}

/// `cpu.0.steal` for the state `steal`.
fn is_time_of_cpu(key: &str, state: &str) -> bool {
    let cpu = key
        .strip_prefix("cpu.")
        .and_then(|rest| rest.strip_suffix(state)?.strip_suffix('.'));
    cpu.is_some_and(|cpu| cpu.parse::<u32>().is_ok())
}

fn cpu_09(host: &Host<'_>) -> Ruling {
    if host.is_pasted() {
        return stolen_in_text(host);
    }

    // Time that is stolen from an idle CPU delays no test.
    let worst = host.busiest_load()?;
    require(
        worst.steal > STOLEN_MIN,
        format!("{:.1} % stolen on the busiest CPU", worst.steal * 100.0),
    )?;

    let is_limit = host.runs().any(|run| run.limit() == Some(limit::STEAL));
    Ok(stolen().severity_if(is_limit, Severity::High).because(
        format!("cpu.{}.steal", worst.cpu),
        percent(worst.steal),
        "at most 5 % on the busiest CPU",
    ))
}

/// CPU time of a program that is worth naming, in CPUs.
const NAMED_MIN_CPUS: f64 = 0.05;

fn cpu_07(run: &Run<'_>) -> Ruling {
    let limit = run.concluded(limit::OTHER_PROGRAMS)?;
    let mut matched =
        matched().read_text(&limit, "CPUs without idle time, most of it not this test's");

    // Both ends of a test on one host see the same programs.
    let hosts = [
        Some(run.host.snapshot),
        run.host.other.filter(|_| !run.is("same_host")),
    ];
    for (host, rank) in hosts
        .into_iter()
        .flatten()
        .flat_map(|host| (1..=3).map(move |rank| (host, rank)))
    {
        let program = format!("cpu.program.{rank}");
        // The other end of a test on one host is no other program.
        let is_end =
            |name: &&str| run.is("same_host") && ["linerate", "iperf3", "iperf"].contains(name);
        let name = host
            .text(&format!("{program}.name"))
            .filter(|name| !is_end(name));

        let cpus = host
            .number(&format!("{program}.cpus"))
            .filter(|cpus| *cpus >= NAMED_MIN_CPUS);
        if let Some(name) = name
            && let Some(cpus) = cpus
        {
            matched = matched.because(
                format!("{}: {name}", host.host),
                format!("{cpus:.2} CPUs"),
                "another program",
            );
        }
    }

    let own_cpus = if run.is_examined() {
        "`taskset -c`"
    } else {
        "-A"
    };
    Ok(matched.advice(format!(
        "end these programs, or give the test CPUs of its own ({own_cpus}), and measure again"
    )))
}

fn cpu_08(run: &Run<'_>) -> Ruling {
    run.concluded(limit::HOST_CPU)?;
    let mut matched = matched()
        .read_known(run, "received_bps", "rate that was reached")
        .read_known(run, "sender_thread_cpu", "of one CPU")
        .read_known(run, "receiver_thread_cpu", "of one CPU");

    for load in run.host.cpu_loads().unwrap_or_default() {
        let key = format!("cpu.{} busy", load.cpu);
        matched = matched.because(
            key,
            percent(load.busy),
            "both ends together, and interrupts",
        );
    }

    let own_cpus = if run.is_examined() {
        "`taskset -c 0` for the server, `taskset -c 1` for the client"
    } else {
        "-A 0,1"
    };
    Ok(matched.advice(format!(
        "run the ends on two hosts, or on CPUs of their own ({own_cpus})"
    )))
}

fn cpu_05(run: &Run<'_>) -> Ruling {
    let nodes = run.host.number("numa.nodes")?;
    require(nodes > 1.0, "one NUMA node")?;
    let workers = worker_shares(&run.host)?;

    let nic = run.used_nic()?;
    let near = cpu_list(nic.text("numa.local_cpulist")?.value);
    let far: f64 = workers
        .iter()
        .filter(|(cpu, _)| !near.contains(cpu))
        .map(|(_, share)| share)
        .sum();
    require(
        far > 0.5,
        "most of the worker threads' time is on the NIC's node",
    )?;

    Ok(matched()
        .because(
            "worker threads on other nodes",
            percent(far),
            format!("CPUs of the NIC's node: {near:?}"),
        )
        .advice("bind the application to the NIC's node: numactl --cpunodebind=N --membind=N"))
}

fn cpu_06(run: &Run<'_>) -> Ruling {
    let hybrid = run.host.flag("cpu.hybrid")?;
    require(hybrid.value, "all CPUs have the same speed")?;
    let saturated = ["sender_thread_cpu", "receiver_thread_cpu"];
    let saturated = saturated
        .iter()
        .map(|fact| run.number(fact))
        .find(|r| r.as_ref().is_ok_and(|share| *share >= 0.9));
    let Some(Ok(thread)) = saturated else {
        // A thread that was not measured could be the saturated one.
        run.number("sender_thread_cpu")?;
        run.number("receiver_thread_cpu")?;
        return clear("no thread is saturated");
    };

    let capacity = run.number("thread_capacity")?;
    require(capacity < 0.8, "it ran on a fast CPU")?;
    Ok(matched()
        .read(&thread, "saturated")
        .read(&capacity, "at least 0.8 of the fastest CPU")
        .advice("pin the test to the fast CPUs with `taskset -c`"))
}

/// Idle time from which on a CPU could take a part of the encryption.
const IDLE_ENOUGH: f64 = 0.5;

/// Packets of a tunnel are encrypted or decrypted on a single CPU.
fn tun_02(host: &Host<'_>) -> Ruling {
    let loads = host.cpu_loads()?;
    let busiest = host.busiest_load()?;
    require(
        busiest.busy >= 0.9,
        format!("busiest CPU at {}", percent(busiest.busy)),
    )?;

    let encryption = host.encryption_share(busiest.cpu)?;
    require(
        encryption >= ENCRYPTION_MIN,
        format!("CPU {} encrypts for {}", busiest.cpu, percent(encryption)),
    )?;
    let idle = loads.iter().filter(|load| 1.0 - load.busy >= IDLE_ENOUGH);
    let idle: Vec<u32> = idle.map(|load| load.cpu).collect();
    require(!idle.is_empty(), "no CPU is idle for half of the time")?;

    Ok(matched()
        .because(
            format!("cpu.{} busy", busiest.cpu),
            percent(busiest.busy),
            "below 90 %",
        )
        .because(
            format!("encryption on CPU {}", busiest.cpu),
            percent(encryption),
            "spread over all CPUs",
        )
        .because("CPUs idle", format!("{idle:?}"), "none, at this load")
        .advice(
            "IPsec: a security association per CPU (RFC 9611), or UDP encapsulation, so that the \
             NIC spreads the flows; WireGuard: more than one receive queue below the tunnel",
        ))
}

/// Load of a test thread; without one, of the busiest CPU.
pub(super) fn thread_or_cpu_load(host: &Host<'_>, fact: &str) -> Result<f64, NoMatch> {
    if let Some(thread) = host.runs().find_map(|run| run.number(fact).ok()) {
        return Ok(thread.value);
    }
    host.busiest_cpu()
}
