//! On which CPUs the work of a test ran: the worker threads, the interrupts of the NIC and the
//! receive soft interrupts.

use std::collections::BTreeMap;

use linerate_model::placement::{CpuShare, CpuShares, Placement, SharedCpus, cpu_list};
use linerate_model::snapshot::Value;

use crate::arithmetic::to_f64;
use crate::ruling::{Needed, NoMatch};
use crate::scope::{Facts, Host, Nic, Scope};

/// Groups of CPUs that are compared.
const GROUPS_MAX: usize = 512;
/// CPUs of each kind of work whose neighbours are reported.
const CPUS_SHOWN: usize = 8;

/// Parts of the work by CPU, the largest first.
pub(crate) type Shares = Vec<(u32, f64)>;

/// The placement of every end of the tests, where counters were read over them.
pub(crate) fn placements(scope: &Scope<'_>) -> Vec<Placement> {
    scope
        .hosts
        .iter()
        .filter(|host| host.period.is_some())
        .filter_map(placement)
        .collect()
}

fn placement(host: &Host<'_>) -> Option<Placement> {
    let run = host.runs().next()?;
    let nic = run.nic();
    let mut placement = Placement {
        host: host.name().to_owned(),
        end: run.part().map(str::to_owned),
        device: nic.map(|nic| nic.name.to_owned()),
        worker: in_percent(worker_shares(host)),
        interrupts: nic
            .filter(|nic| nic.wired().is_ok())
            .map(|nic| in_percent(irq_shares(&nic))),
        softirq: in_percent(softirq_shares(host)),
        ..Placement::default()
    };

    let own = [&placement.worker, &placement.softirq]
        .into_iter()
        .chain(&placement.interrupts);
    let own = own
        .flat_map(|shares| shares.cpus.iter().take(CPUS_SHOWN))
        .map(|share| share.cpu);
    let other_end = other_end(host)
        .and_then(|other| worker_shares(&other).ok())
        .unwrap_or_default();
    let mut cpus: Vec<u32> = own
        .chain(other_end.iter().take(CPUS_SHOWN).map(|(cpu, _)| *cpu))
        .collect();
    cpus.sort_unstable();
    cpus.dedup();
    placement.shared = shared(host, &cpus);

    Some(placement)
}

fn in_percent(shares: Result<Shares, NoMatch>) -> CpuShares {
    let mut found = CpuShares::default();
    match shares {
        Ok(shares) => {
            // A share is at most 1.
            let percent = |(cpu, share): (u32, f64)| CpuShare {
                cpu,
                percent: (share * 100.0).round() as u32,
            };
            found.cpus = shares
                .into_iter()
                .map(percent)
                .filter(|share| share.percent > 0)
                .collect();
        }
        Err(NoMatch::Clear(reason) | NoMatch::NotApplicable(_, reason)) => {
            found.absent = Some(reason);
        }
        Err(NoMatch::Unknown(unknown)) => {
            found.absent = unknown.missing.into_iter().next().map(|(_, reason)| reason);
        }
    }

    found
}

/// The other end of a test whose ends run on one host.
pub(crate) fn other_end<'a>(host: &Host<'a>) -> Option<Host<'a>> {
    host.other_host()
        .filter(|_| host.runs().any(|run| run.is("same_host")))
}

/// CPU time of the worker threads.
pub(crate) fn worker_shares(host: &Host<'_>) -> Result<Shares, NoMatch> {
    let facts = host
        .snapshot
        .facts_under("self.on_cpu.")
        .filter_map(|(key, _)| {
            let cpu = key.strip_suffix(".percent")?.parse().ok()?;
            Some((cpu, host.snapshot.number(&format!("self.on_cpu.{key}"))?))
        });
    let percent: BTreeMap<u32, f64> = facts.collect();
    shares(percent).or_unknown("self.on_cpu.*.percent", host.reason("self.on_cpu"))
}

/// Receive soft interrupts.
pub(crate) fn softirq_shares(host: &Host<'_>) -> Result<Shares, NoMatch> {
    let deltas = host.period()?.deltas().filter_map(|(key, delta)| {
        Some((
            key.strip_prefix("softirq.net_rx.cpu")?.parse().ok()?,
            to_f64(delta.value),
        ))
    });
    shares(deltas.collect()).or_unknown("softirq.net_rx.cpu*", host.reason("softirq.net_rx"))
}

/// Share of the interrupts of this interface each CPU took, the largest first.
pub(crate) fn irq_shares(nic: &Nic<'_>) -> Result<Shares, NoMatch> {
    let prefix = nic.key("irq.");
    let mut per_cpu = BTreeMap::<u32, f64>::new();

    for (key, counter) in nic.host.snapshot.counters_under(&prefix) {
        let Some(cpu) = key
            .rsplit_once(".cpu")
            .and_then(|(_, cpu)| cpu.parse().ok())
        else {
            continue;
        };
        // Totals since boot still show how interrupts are spread.
        let grown = match nic.host.period {
            Some(period) => period
                .delta(&format!("{prefix}{key}"))
                .map_or(0, |delta| delta.value),
            None => counter.v,
        };
        *per_cpu.entry(cpu).or_default() += to_f64(grown);
    }

    shares(per_cpu).or_unknown(nic.key("irq.total"), nic.reason("irq"))
}

/// Parts of the sum, the largest first; `None` where it is zero.
pub(crate) fn shares(amounts: BTreeMap<u32, f64>) -> Option<Shares> {
    // A total of 0 makes the shares NaN, which `total_cmp` can sort; they are not returned.
    let total: f64 = amounts.values().sum();
    let mut shares: Shares = amounts
        .into_iter()
        .map(|(cpu, amount)| (cpu, amount / total))
        .collect();
    shares.sort_by(|a, b| b.1.total_cmp(&a.1));
    (total > 0.0).then_some(shares)
}

/// Which of these CPUs share a core, a cache or a node. CPUs that share something smaller are not
/// listed again.
fn shared(host: &Host<'_>, cpus: &[u32]) -> Vec<SharedCpus> {
    let mut found: Vec<SharedCpus> = Vec::new();
    for resource in ["core", "l2", "l3", "node"] {
        for group in groups(host, resource) {
            let members: Vec<u32> = cpus
                .iter()
                .copied()
                .filter(|cpu| group.contains(cpu))
                .collect();
            let is_new = !found
                .iter()
                .any(|known| members.iter().all(|cpu| known.cpus.contains(cpu)));
            if members.len() > 1 && is_new {
                found.push(SharedCpus {
                    resource: resource.to_owned(),
                    cpus: members,
                });
            }
        }
    }

    found
}

/// True if two CPUs have this resource in common: `core`, `l2`, `l3` or `node`.
pub(crate) fn share(host: &Host<'_>, resource: &str, cpus: [u32; 2]) -> bool {
    groups(host, resource).any(|group| cpus.iter().all(|cpu| group.contains(cpu)))
}

fn groups<'a>(host: &Host<'a>, resource: &str) -> impl Iterator<Item = Vec<u32>> + use<'a> {
    let lists = match host.value(&format!("cpu.shared.{resource}")) {
        Some(Value::List(lists)) => lists.as_slice(),
        _ => &[],
    };
    lists
        .iter()
        .take(GROUPS_MAX)
        .map(|list| cpu_list(&list.to_string()))
}
