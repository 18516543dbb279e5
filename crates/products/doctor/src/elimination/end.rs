//! One end of a direction in a slice: its threads, its CPUs, its quota and its firewall.

use linerate_model::placement::cpu_list;

use crate::arithmetic::to_f64;
use crate::period::TICKS_PER_SECOND;
use crate::scope::{CpuLoad, ENCRYPTION_MIN, Facts, Host, Run, Scope};

/// A thread that runs for this share of the time has no time left.
const THREAD_FULL: f64 = 0.9;
/// CPUs that are idle for less than this are full.
const IDLE_MIN: f64 = 0.05;
/// Share of a slice in which a quota stopped the process.
const THROTTLED_MIN: f64 = 0.1;

/// One end of a direction in a slice. What was not measured is absent.
#[derive(Debug, Clone, Copy)]
pub(super) struct End<'a> {
    pub host: Host<'a>,
    /// Time of its busiest thread, of one CPU.
    thread: Option<f64>,
    /// The CPU time of its busiest thread, or of the program, is known.
    is_cpu_known: bool,
    /// Share of the time that one of its threads waited for a CPU.
    pub wait: f64,
}

impl<'a> End<'a> {
    pub(super) fn new(scope: &Scope<'a>, run: &Run<'a>, part: &str) -> Option<Self> {
        let plays = |host: &&Host<'a>| {
            host.runs()
                .any(|own| own.index == run.index && own.part() == Some(part))
        };
        let host = *scope.hosts.iter().find(plays)?;
        let share = |figure: &str| {
            host.number(&run.key(&format!("{part}_thread_{figure}")))
                .ok()
                .map(|share| share.value)
        };
        let thread = share("cpu");
        let is_cpu_known = thread.is_some() || run.number(&format!("{part}_process_cpu")).is_ok();

        Some(Self {
            host,
            thread,
            is_cpu_known,
            wait: share("wait").unwrap_or(0.0),
        })
    }

    pub(super) fn is_thread_full(&self) -> bool {
        self.thread.is_some_and(|share| share >= THREAD_FULL)
    }

    /// Loads of the CPUs that its threads may use.
    fn loads(&self) -> Vec<CpuLoad> {
        let mut loads = self.host.cpu_loads().unwrap_or_default();
        loads.retain(|load| self.may_use(load.cpu));
        loads
    }

    /// True if no CPU that its threads may use has idle time.
    pub(super) fn are_cpus_full(&self) -> bool {
        let loads = self.loads();
        let idle: f64 = loads.iter().map(|load| 1.0 - load.busy).sum();
        !loads.is_empty() && idle < IDLE_MIN * to_f64(loads.len() as u64)
    }

    /// True if a CPU without idle time encrypts, as WireGuard and IPsec do outside of the threads of
    /// the test.
    pub(super) fn is_encrypting(&self) -> bool {
        let loads = self.host.cpu_loads().unwrap_or_default();
        loads.iter().any(|load| {
            let share = self.host.encryption_share(load.cpu);
            1.0 - load.busy < IDLE_MIN && share.is_ok_and(|share| share >= ENCRYPTION_MIN)
        })
    }

    fn may_use(&self, cpu: u32) -> bool {
        let pinned = self.host.runs().find_map(|run| {
            let fact = if run.is_client() {
                "client_cpus"
            } else {
                "server_cpus"
            };
            run.text(fact).ok().map(|list| list.value)
        });
        pinned.is_none_or(|list| cpu_list(list).contains(&cpu))
    }

    /// CPU time of this process over the slice, in CPUs.
    pub(super) fn own_cpus(&self) -> Option<f64> {
        let seconds = self.host.period?.seconds;
        Some(self.host.delta("self.ticks").ok()? / TICKS_PER_SECOND / seconds)
    }

    /// CPU time of all programs over the slice on the CPUs this end may use, in CPUs.
    pub(super) fn programs_cpus(&self) -> f64 {
        // proc(5): softirq and steal are times of their own and not those of programs.
        let of_programs = |load: &CpuLoad| load.busy - load.softirq - load.steal;
        self.loads().iter().map(of_programs).sum()
    }

    /// True if both may use a CPU of this host.
    pub(super) fn shares_cpus(&self, other: &Self) -> bool {
        self.loads().iter().any(|load| other.may_use(load.cpu))
    }

    /// CPUs that the hypervisor gave to others.
    pub(super) fn stolen_cpus(&self) -> f64 {
        self.loads().iter().map(|load| load.steal).sum()
    }

    pub(super) fn softirq(&self) -> f64 {
        self.host
            .cpu_loads()
            .unwrap_or_default()
            .iter()
            .map(|load| load.softirq)
            .fold(0.0, f64::max)
    }

    /// True if everything was measured that could limit a test in this host.
    pub(super) fn is_measured(&self) -> bool {
        // Without a quota `cpu.max` begins with `max` (cgroup-v2), and nothing can throttle.
        let is_unlimited = || {
            self.host
                .text("cgroup.cpu.max")
                .is_ok_and(|quota| quota.value.starts_with("max"))
        };
        let is_quota_known = self.host.delta("cgroup.throttled_ns").is_ok() || is_unlimited();
        let is_firewall_known = self.host.delta("firewall.drops").is_ok();

        self.is_cpu_known && self.host.cpu_loads().is_ok() && is_quota_known && is_firewall_known
    }

    pub(super) fn is_throttled(&self) -> bool {
        let seconds = self.host.period.map_or(1.0, |period| period.seconds);
        self.host
            .delta("cgroup.throttled_ns")
            .is_ok_and(|ns| ns / 1e9 >= THROTTLED_MIN * seconds)
    }

    /// Packets that this host's own firewall dropped.
    pub(super) fn filtered(&self) -> f64 {
        self.host.delta("firewall.drops").unwrap_or(0.0)
    }
}
