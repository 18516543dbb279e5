//! Placement of the worker threads on CPUs.

use linerate_model::placement::cpu_list;

use crate::placement::{other_end, share, softirq_shares, worker_shares};
use crate::rules::prelude::*;

rules! {
    Host cpu_10,
}

/// Part of some work on one CPU from which on that is where it ran.
const MOSTLY: f64 = 0.8;
const BUSY: f64 = 0.9;
const IDLE: f64 = 0.7;
/// Part of a CPU in soft interrupts from which on they delay the workers on it.
const SOFTIRQ_MIN: f64 = 0.1;

fn cpu_10(host: &Host<'_>) -> Ruling {
    require(
        !host.runs().any(|run| run.reaches_its_target()),
        "the configured rate is reached",
    )?;
    let (cpu, part) = mostly(&worker_shares(host)?, "the workers")?;
    let load = host.cpu_load(cpu)?;
    require(
        load.busy >= BUSY,
        format!(
            "CPU {cpu} of the workers is {:.0} % busy",
            load.busy * 100.0
        ),
    )?;

    let rival = rival(host)?;
    let is_same = rival.cpu == cpu;
    require(
        is_same || share(host, "core", [cpu, rival.cpu]),
        format!(
            "the workers ran on CPU {cpu}, {} on CPU {}",
            rival.name, rival.cpu
        ),
    )?;

    let idle = idle_cpu(host, [cpu, rival.cpu])?;
    let is_bound = |run: Run<'_>| {
        run.text("client_cpus")
            .or_else(|_| run.text("server_cpus"))
            .is_ok()
    };
    // The scheduler chooses other CPUs in the next test for threads that are not bound.
    let is_lasting = other_end(host).is_none() || host.runs().any(is_bound);
    let idle_percent = (1.0 - idle.busy) * 100.0;

    Ok(matched()
        .severity(if is_same && is_lasting {
            Severity::Medium
        } else {
            Severity::Low
        })
        .because(
            format!("workers on CPU {cpu}"),
            percent(part),
            "on a CPU of their own",
        )
        .because(
            format!("{} on CPU {}", rival.name, rival.cpu),
            percent(rival.part),
            if is_same {
                "on another CPU"
            } else {
                "on another core"
            },
        )
        .because(format!("CPU {cpu} busy"), percent(load.busy), "below 90 %")
        .because(
            format!("CPU {} idle", idle.cpu),
            format!("{idle_percent:.0} %"),
            "below 70 %",
        )
        .advice(advice(host, cpu, idle.cpu)))
}

/// The CPU that did most of the work, and its part.
fn mostly(shares: &[(u32, f64)], work: &str) -> Result<(u32, f64), NoMatch> {
    let most = shares.first().filter(|(_, part)| *part >= MOSTLY);
    most.copied()
        .or_clear(format!("{work} ran on several CPUs"))
}

/// Work that may delay the workers.
struct Rival {
    name: &'static str,
    cpu: u32,
    part: f64,
}

/// The other end on the same host; otherwise the soft interrupts of the NIC.
fn rival(host: &Host<'_>) -> Result<Rival, NoMatch> {
    if let Some(other) = other_end(host) {
        require(
            host.runs().any(|run| run.is_client()),
            "the client on the same host can be moved",
        )?;
        let (cpu, part) = mostly(&worker_shares(&other)?, "the server's workers")?;
        return Ok(Rival {
            name: "the server's workers",
            cpu,
            part,
        });
    }

    let nic = host.runs().find_map(|run| run.nic()).or_unknown(
        "route.peer.dev",
        "which interface the test used is not known",
    )?;
    require(
        nic.wired().is_ok(),
        "soft interrupts of a virtual interface run where the sender does",
    )?;
    let follows = host
        .number("sysctl.net.core.rps_sock_flow_entries")
        .is_ok_and(|entries| entries > 0.0);
    require(
        !follows,
        "receive flow steering (RFS) moves soft interrupts to the CPU of the workers",
    )?;

    let (cpu, part) = mostly(&softirq_shares(host)?, "soft interrupts")?;
    let load = host.cpu_load(cpu)?;
    require(
        load.softirq >= SOFTIRQ_MIN,
        format!(
            "CPU {cpu} spends {} in soft interrupts",
            percent(load.softirq)
        ),
    )?;

    Ok(Rival {
        name: "soft interrupts",
        cpu,
        part,
    })
}

/// The best of the CPUs that the workers may use and that are idle: on another core and on the same
/// node, if there is one.
fn idle_cpu(host: &Host<'_>, used: [u32; 2]) -> Result<CpuLoad, NoMatch> {
    let allowed = cpu_list(host.text("self.cpus")?.value)
        .into_iter()
        .filter(|cpu| !used.contains(cpu));
    let loads: Vec<CpuLoad> = allowed
        .map(|cpu| host.cpu_load(cpu))
        .collect::<Result<_, _>>()?;
    let is_sibling = |load: &CpuLoad| used.iter().any(|cpu| share(host, "core", [*cpu, load.cpu]));
    let rank = |load: &CpuLoad| (is_sibling(load), !share(host, "node", [used[0], load.cpu]));
    // Beside a rival on a sibling CPU, other siblings of that core are no better.
    let is_better =
        |load: &CpuLoad| load.busy <= 1.0 - IDLE && (used[0] == used[1] || !is_sibling(load));
    let idle = loads.into_iter().filter(is_better);
    let best = idle.min_by(|a, b| rank(a).cmp(&rank(b)).then(a.busy.total_cmp(&b.busy)));

    best.or_clear("no other CPU that the workers may use is 70 % idle")
}

/// The option that moves the workers of this end, and the sweep that compares both placements.
fn advice(host: &Host<'_>, cpu: u32, idle: u32) -> String {
    if host.runs().any(|run| run.is_examined()) {
        let end = if host.runs().any(|run| run.is_client()) {
            "client"
        } else {
            "server"
        };
        return format!("start the {end} with `taskset -c {idle}`");
    }

    let other_cpu = host
        .other_host()
        .and_then(|other| Some(mostly(&worker_shares(&other).ok()?, "").ok()?.0));
    let (option, levels) = match (host.runs().any(|run| run.is_client()), other_cpu) {
        (true, Some(server)) if other_end(host).is_some() => (
            format!("-A {idle},{server} (client on CPU {idle}, server on CPU {server})"),
            [cpu, idle].map(|client| format!("{client}/{server}")),
        ),
        (true, _) => (
            format!("-A {idle} (client on CPU {idle})"),
            [cpu, idle].map(|client| client.to_string()),
        ),
        (false, Some(client)) => (
            format!("-A {client},{idle} (client on CPU {client}, server on CPU {idle})"),
            [cpu, idle].map(|server| format!("{client}/{server}")),
        ),
        (false, None) => (
            format!("-A {idle} at the server (CPU {idle})"),
            [cpu, idle].map(|server| format!("any/{server}")),
        ),
    };

    format!(
        "try {option}; linerate sweep HOST --over affinity={} measures both placements",
        levels.join(",")
    )
}

#[cfg(test)]
mod tests {
    use linerate_model::finding::Diagnosis;
    use linerate_model::snapshot::{Snapshot, Source, Value};

    use super::*;
    use crate::observation::{EndpointObservation, diagnose_test};
    use crate::period::{Delta, Period};

    /// One end on a host with CPUs 0 to 3, two to a core, while they are busy for these percentages
    /// of the time.
    fn end(worker_cpu: u32, busy_percent: [u64; 4], run: &[(&str, Value)]) -> EndpointObservation {
        let mut snapshot = Snapshot::new("h", Source::Live);
        snapshot.boot_id = Some("one boot".to_owned());
        snapshot.set(format!("self.on_cpu.{worker_cpu}.percent"), 98_i64, "test");
        snapshot.set("self.cpus", "0,1,2,3", "test");
        snapshot.set(
            "cpu.shared.core",
            Value::List(vec!["0-1".into(), "2-3".into()]),
            "test",
        );

        let mut period = Period::default();
        (period.seconds, period.intervals) = (10.0, 10);

        for (cpu, busy) in busy_percent.into_iter().enumerate() {
            for state in ["nice", "system", "iowait", "irq", "softirq", "steal"] {
                period.set(
                    format!("cpu.{cpu}.{state}"),
                    Delta {
                        value: 0,
                        ..Delta::default()
                    },
                );
            }
            period.set(
                format!("cpu.{cpu}.user"),
                Delta {
                    value: busy * 10,
                    ..Delta::default()
                },
            );
            period.set(
                format!("cpu.{cpu}.idle"),
                Delta {
                    value: 1000 - busy * 10,
                    ..Delta::default()
                },
            );
        }

        let run = [("tool", "linerate".into()), ("transport", "tcp".into())]
            .iter()
            .chain(run)
            .cloned()
            .collect::<Vec<_>>();
        EndpointObservation {
            snapshot,
            period: Some(period),
            forward: Some(
                run.into_iter()
                    .map(|(fact, value)| (fact.to_owned(), value))
                    .collect(),
            ),
            reverse: None,
            forward_intervals: Vec::new(),
            reverse_intervals: Vec::new(),
        }
    }

    /// Both ends on one host.
    fn judged(
        client_cpu: u32,
        server_cpu: u32,
        busy_percent: [u64; 4],
        run: &[(&str, Value)],
    ) -> Diagnosis {
        diagnose_test(
            end(client_cpu, busy_percent, run),
            Some(end(server_cpu, busy_percent, run)),
        )
    }

    fn advised(diagnosis: &Diagnosis) -> Option<(Severity, String)> {
        let mut found = diagnosis
            .findings
            .iter()
            .filter(|finding| finding.id == "CPU-10");
        let advised = found
            .next()
            .map(|finding| (finding.severity, finding.advice.clone().unwrap_or_default()));
        assert!(found.next().is_none(), "{diagnosis:#?}");

        advised
    }

    #[test]
    fn ends_on_one_cpu_are_moved_apart() {
        let bound = [("client_cpus", "0".into()), ("server_cpus", "0".into())];
        let advice = "try -A 2,0 (client on CPU 2, server on CPU 0); linerate sweep HOST --over \
                      affinity=0/0,2/0 measures both placements";
        let diagnosis = judged(0, 0, [100, 5, 10, 90], &bound);
        assert_eq!(
            advised(&diagnosis),
            Some((Severity::Medium, advice.to_owned()))
        );

        let ends: Vec<_> = diagnosis
            .placement
            .iter()
            .map(|end| (end.host.as_str(), end.worker.cpus[0].cpu))
            .collect();
        assert_eq!(ends, [("client", 0), ("server", 0)]);

        // In every test the scheduler chooses the CPUs of threads that are not bound.
        assert_eq!(
            advised(&judged(0, 0, [100, 5, 10, 90], &[])),
            Some((Severity::Low, advice.to_owned()))
        );
        // The other thread of the core is better than the same CPU.
        let advice = advised(&judged(0, 0, [100, 5, 60, 90], &bound));
        assert!(advice.is_some_and(|(_, advice)| advice.starts_with("try -A 1,0 ")));
    }

    #[test]
    fn ends_on_one_core_are_moved_to_another_core() {
        let diagnosis = judged(0, 1, [100, 95, 10, 20], &[]);
        assert!(advised(&diagnosis).is_some_and(|(severity, advice)| {
            severity == Severity::Low
                && advice.starts_with("try -A 2,1 ")
                && advice.contains("affinity=0/1,2/1 ")
        }));
        let neighbours = &diagnosis.placement[0].shared;
        assert_eq!(
            (
                neighbours[0].resource.as_str(),
                neighbours[0].cpus.as_slice()
            ),
            ("core", &[0, 1][..])
        );
    }

    #[test]
    fn workers_stay_without_contention_or_without_an_idle_cpu() {
        let reached = [("target_bps", 1e8.into()), ("received_bps", 1e8.into())];
        for (client, server, busy_percent, run) in [
            (0, 2, [100, 5, 90, 5], &[][..]),
            (0, 0, [80, 5, 10, 5], &[]),
            (0, 0, [100, 40, 50, 90], &[]),
            (0, 1, [100, 95, 60, 90], &[]),
            (0, 0, [100, 5, 10, 5], &reached),
        ] {
            let diagnosis = judged(client, server, busy_percent, run);
            assert_eq!(
                advised(&diagnosis),
                None,
                "{client} {server} {busy_percent:?}"
            );

            let out = diagnosis
                .ruled_out
                .iter()
                .filter(|rule| rule.id == "CPU-10")
                .count();
            assert_eq!(out, 2, "{diagnosis:#?}");
        }
    }

    #[test]
    fn placement_of_the_other_end_is_needed() {
        let mut server = end(0, [100, 5, 5, 5], &[]);
        server.snapshot.facts.remove("self.on_cpu.0.percent");
        let diagnosis = diagnose_test(end(0, [100, 5, 5, 5], &[]), Some(server));
        assert_eq!(advised(&diagnosis), None);
        assert_eq!(
            diagnosis
                .not_evaluated
                .iter()
                .filter(|rule| rule.id == "CPU-10")
                .count(),
            2
        );
    }
}
