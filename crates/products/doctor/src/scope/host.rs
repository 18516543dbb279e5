//! One host: reading an absent fact ends a rule as unknown, with the key and the reason.

use linerate_model::finding::Inapplicable;
use linerate_model::snapshot::{Absence, Fact, Quality, Snapshot, Source, Value};
use linerate_model::stored_name;

use super::reading::{Growth, Reading};
use crate::arithmetic::to_f64;
use crate::period::Period;
use crate::ruling::{Match, Needed, NoMatch, inapplicable, unknown};

/// One host.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Host<'a> {
    pub snapshot: &'a Snapshot,
    pub period: Option<&'a Period>,
    /// The other host, when there are exactly two.
    pub other: Option<&'a Snapshot>,
}

/// An object that facts are about: a host, an interface, a queueing discipline or a run.
pub(crate) trait Facts<'a> {
    /// Host with the facts.
    fn host(&self) -> &Host<'a>;

    /// Key of a fact of this object.
    fn key(&self, fact: &str) -> String;

    fn number(&self, fact: &str) -> Result<Reading<f64>, NoMatch> {
        let key = self.key(fact);
        let value = self.host().known(&key)?.number();
        self.host().typed(key, value)
    }

    fn value(&self, fact: &str) -> Option<&'a Value> {
        self.host().snapshot.value(&self.key(fact))
    }

    /// Why a fact is absent: the reason recorded for its key, or for its group.
    fn absence(&self, fact: &str) -> Absence {
        let key = self.key(fact);
        let snapshot = self.host().snapshot;
        let mut at = key.as_str();
        // From the key to its groups: the first recorded reason is the most specific.
        loop {
            if let Some(Fact::Absent { absent, .. }) = snapshot.facts.get(at) {
                return *absent;
            }

            match at.rsplit_once('.') {
                Some((group, _)) => at = group,
                None => break,
            }
        }

        match snapshot.source {
            Source::Import => Absence::NotInImport,
            Source::Live => Absence::NotReported,
        }
    }

    fn reason(&self, fact: &str) -> String {
        stored_name(self.absence(fact))
    }

    /// Growth of one counter: over the period, or since boot where there is none.
    fn growth(&self, fact: &str) -> Result<Growth, NoMatch> {
        self.host().growth_of(&[&self.key(fact)])
    }

    /// Growth of a counter over the period; a total will not do.
    fn delta(&self, fact: &str) -> Result<f64, NoMatch> {
        let key = self.key(fact);
        let delta = self.host().period()?.delta(&key);
        match delta.filter(|delta| !delta.reset) {
            Some(delta) => Ok(to_f64(delta.value)),
            None => unknown(key, "not read at both ends of the window"),
        }
    }

    /// A number; not applicable where the driver or the kind of device has no such thing.
    fn number_if_any(&self, fact: &str, otherwise: &str) -> Result<Reading<f64>, NoMatch> {
        self.number(fact).or_else(|stop| {
            self.supports(fact, otherwise)?;
            Err(stop)
        })
    }

    /// Continues unless the driver or the kind of device has no such fact or group of facts at all.
    fn supports(&self, group: &str, otherwise: &str) -> Result<(), NoMatch> {
        match self.absence(group) {
            Absence::UnsupportedByDriver | Absence::NotApplicableToKind => {
                inapplicable(Inapplicable::Device, otherwise)
            }
            _ => Ok(()),
        }
    }

    fn flag(&self, fact: &str) -> Result<Reading<bool>, NoMatch> {
        let key = self.key(fact);
        let value = match self.host().known(&key)? {
            Value::Bool(on) => Some(*on),
            // Kernel variables that are switches have the values 0 and 1.
            Value::Integer(number) => Some(*number != 0),
            _ => None,
        };
        self.host().typed(key, value)
    }

    fn text(&self, fact: &str) -> Result<Reading<&'a str>, NoMatch> {
        let key = self.key(fact);
        let value = match self.host().known(&key)? {
            Value::Text(text) => Some(text.as_str()),
            _ => None,
        };
        self.host().typed(key, value)
    }

    /// A switch that is off where it is not known.
    fn is(&self, fact: &str) -> bool {
        self.flag(fact).is_ok_and(|reading| reading.value)
    }

    /// True if a text is known and is this one.
    fn text_is(&self, fact: &str, text: &str) -> bool {
        self.text(fact).is_ok_and(|reading| reading == text)
    }
}

impl Match {
    /// Quotes a number, where it is known.
    pub(crate) fn read_known<'a>(self, from: &impl Facts<'a>, fact: &str, threshold: &str) -> Self {
        match from.number(fact) {
            Ok(reading) => self.read(&reading, threshold),
            Err(_) => self,
        }
    }
}

impl<'a> Facts<'a> for Host<'a> {
    fn host(&self) -> &Self {
        self
    }

    fn key(&self, fact: &str) -> String {
        fact.to_owned()
    }
}

impl<'a> Host<'a> {
    /// The other host, of which no period is known here.
    pub(crate) fn other_host(&self) -> Option<Self> {
        Some(Self {
            snapshot: self.other?,
            period: None,
            other: Some(self.snapshot),
        })
    }

    pub(crate) fn name(&self) -> &'a str {
        &self.snapshot.host
    }

    pub(super) fn known(&self, key: &str) -> Result<&'a Value, NoMatch> {
        match self.snapshot.value(key) {
            Some(value) => Ok(value),
            None => unknown(key, self.reason(key)),
        }
    }

    pub(super) fn typed<T>(&self, key: String, value: Option<T>) -> Result<Reading<T>, NoMatch> {
        match value {
            Some(value) => Ok(Reading {
                inferred: self.snapshot.quality(&key) == Some(Quality::Inferred),
                key,
                value,
            }),
            None => unknown(key, stored_name(Absence::ParseError)),
        }
    }

    /// Growth of the sum of several counters of which at least one is known.
    pub(crate) fn growth_of(&self, keys: &[&str]) -> Result<Growth, NoMatch> {
        let mut sum = Growth::default();
        let mut any = false;

        for key in keys {
            any |= self.add_growth(&mut sum, key);
        }

        match keys.first() {
            Some(key) if !any => unknown(*key, self.reason(key)),
            _ => Ok(sum),
        }
    }

    fn add_growth(&self, sum: &mut Growth, key: &str) -> bool {
        if let Some(period) = self.period {
            // The growth of a counter that was reset is not known.
            let delta = period.delta(key).filter(|delta| !delta.reset);
            if let Some(delta) = delta {
                sum.add(key, delta, period);
            }
            // A total since boot does not replace a growth over the period.
            return delta.is_some();
        }

        let counter = self.snapshot.counters.get(key);
        if let Some(counter) = counter {
            sum.add_total(key, counter.v);
        }

        counter.is_some()
    }

    /// The period, without which a rate or a load does not exist.
    pub(crate) fn period(&self) -> Result<&'a Period, NoMatch> {
        match self.period {
            Some(period) => Ok(period),
            None if self.snapshot.source == Source::Import => {
                unknown("counters over a window", "not-in-import")
            }
            None => unknown("counters over a window", "only one sample; use --window"),
        }
    }

    /// Datagrams that the UDP sockets of the test dropped over the period; `None` where none was
    /// read twice.
    pub(crate) fn own_socket_drops(&self) -> Option<u64> {
        let own = self
            .period?
            .deltas()
            .filter(|(key, _)| key.starts_with("self.udp."));
        own.map(|(_, delta)| delta.value)
            .reduce(u64::saturating_add)
    }

    /// Load of one CPU over the period, or in the samples of another program.
    pub(crate) fn cpu_load(&self, cpu: u32) -> Result<CpuLoad, NoMatch> {
        if self.period.is_none() {
            let sampled = self
                .sampled_loads()?
                .into_iter()
                .find(|load| load.cpu == cpu);
            return sampled.map_or_else(
                || unknown(format!("cpu.load.{cpu}.busy_share"), "not sampled"),
                Ok,
            );
        }

        let state = |name: &str| self.delta(&format!("cpu.{cpu}.{name}"));
        // proc(5): `user` and `nice` contain the time of guests.
        let working = state("user")? + state("nice")? + state("system")?;
        // A CPU in iowait is idle: it would run a task that is ready.
        let idle = state("idle")? + state("iowait")?;
        let softirq = state("irq")? + state("softirq")?;
        let steal = state("steal")?;
        let total = working + idle + softirq + steal;
        if total <= 0.0 {
            return unknown(format!("cpu.{cpu}"), "no tick passed in the window");
        }

        Ok(CpuLoad {
            cpu,
            softirq: softirq / total,
            busy: 1.0 - idle / total,
            steal: steal / total,
        })
    }

    /// Loads that a text has of each CPU.
    fn sampled_loads(&self) -> Result<Vec<CpuLoad>, NoMatch> {
        let keys = self
            .snapshot
            .facts_under("cpu.load.")
            .filter_map(|(key, _)| key.strip_suffix(".busy_share"));
        let loads: Vec<CpuLoad> = keys
            .filter_map(|cpu| self.sampled_load(cpu.parse().ok()?))
            .collect();
        if loads.is_empty() {
            // There is no period here: this is the error that names the reason.
            self.period().map(|_| loads)
        } else {
            Ok(loads)
        }
    }

    fn sampled_load(&self, cpu: u32) -> Option<CpuLoad> {
        let share = |state: &str| {
            self.snapshot
                .number(&format!("cpu.load.{cpu}.{state}_share"))
        };
        Some(CpuLoad {
            cpu,
            softirq: share("softirq")?,
            busy: share("busy")?,
            steal: share("steal")?,
        })
    }

    /// Load of every CPU over the period, or in the samples of another program.
    pub(crate) fn cpu_loads(&self) -> Result<Vec<CpuLoad>, NoMatch> {
        let Some(period) = self.period else {
            return self.sampled_loads();
        };
        let cpus: std::collections::BTreeSet<u32> = period
            .deltas()
            .filter_map(|(key, _)| key.strip_prefix("cpu.")?.split('.').next()?.parse().ok())
            .collect();
        if cpus.is_empty() {
            return unknown("cpu.0.user", "not read at both ends of the window");
        }

        cpus.into_iter().map(|cpu| self.cpu_load(cpu)).collect()
    }

    /// The busiest CPU over the period.
    pub(crate) fn busiest_load(&self) -> Result<CpuLoad, NoMatch> {
        self.most_loaded(|load| load.busy)
    }

    /// The CPU with the largest part in interrupts.
    pub(crate) fn most_interrupted_cpu(&self) -> Result<CpuLoad, NoMatch> {
        self.most_loaded(|load| load.softirq)
    }

    fn most_loaded(&self, part: fn(&CpuLoad) -> f64) -> Result<CpuLoad, NoMatch> {
        let loads = self.cpu_loads()?.into_iter();
        loads
            .max_by(|a, b| part(a).total_cmp(&part(b)))
            .or_unknown("cpu.0.user", "no CPU was sampled")
    }

    /// Load of the busiest CPU over the period.
    pub(crate) fn busiest_cpu(&self) -> Result<f64, NoMatch> {
        Ok(self.busiest_load()?.busy)
    }

    /// True if some CPU had no time left over the period. A thread that waits for it appears idle.
    pub(crate) fn has_full_cpu(&self) -> bool {
        const FULL: f64 = 0.9;
        self.busiest_cpu().is_ok_and(|busy| busy >= FULL)
    }

    /// Part of the sampled work of a CPU that is encryption.
    pub(crate) fn encryption_share(&self, cpu: u32) -> Result<f64, NoMatch> {
        Ok(self.number(&format!("work.cpu.{cpu}.crypto"))?.value)
    }

    /// Periods of a CPU quota in which the control group ran, since it was made.
    pub(crate) fn number_of_periods(&self) -> Result<u64, NoMatch> {
        let key = "cgroup.nr_periods";
        self.snapshot
            .counters
            .get(key)
            .map_or_else(|| unknown(key, self.reason(key)), |counter| Ok(counter.v))
    }

    /// True if all that is known of it was pasted, and nothing was read twice.
    pub(crate) fn is_pasted(&self) -> bool {
        self.snapshot.source == Source::Import && self.period.is_none()
    }

    /// True if packets are forwarded: the switch is on, and some were.
    pub(crate) fn forwards(&self) -> Result<bool, NoMatch> {
        if !self.flag("sysctl.net.ipv4.ip_forward")?.value {
            return Ok(false);
        }
        Ok(self.growth("net.snmp.Ip.ForwDatagrams")?.value > 0)
    }
}

/// Part of the work of a CPU from which on encryption fills it.
pub(crate) const ENCRYPTION_MIN: f64 = 0.25;

/// Load of a CPU, shares of the period.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct CpuLoad {
    pub cpu: u32,
    pub softirq: f64,
    pub busy: f64,
    pub steal: f64,
}
