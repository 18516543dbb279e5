//! What rules are applied to: all hosts, one host, one interface, one test run. Reading an absent fact ends a rule as
//! unknown, with the key and the reason.

use linerate_model::finding::{Confidence, Evidence};
use linerate_model::snapshot::{Absence, Fact, Quality, Snapshot, Source, Value};

use crate::classes::{Class, classify};
use crate::derive::is_software_kind;
use crate::period::{Delta, Period};
use crate::rule::{Match, NoMatch, clear, require, unknown};

/// All hosts of a diagnosis.
#[derive(Debug)]
pub(crate) struct Scope<'a> {
    pub(crate) hosts: Vec<Host<'a>>,
}

/// One host.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Host<'a> {
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) period: Option<&'a Period>,
    /// The other host, when there are exactly two.
    pub(crate) other: Option<&'a Snapshot>,
}

/// One interface of a host.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Nic<'a> {
    pub(crate) host: Host<'a>,
    pub(crate) name: &'a str,
}

/// One test run a snapshot contains.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run<'a> {
    pub(crate) host: Host<'a>,
    pub(crate) index: usize,
}

/// A value with the key it was read from.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Reading<T> {
    pub(crate) key: String,
    pub(crate) value: T,
    /// The value is less than certain.
    pub(crate) inferred: bool,
}

impl Match {
    /// Quotes a number that was read.
    pub(crate) fn read(self, reading: &Reading<f64>, threshold: impl Into<String>) -> Self {
        let value = Value::Real(reading.value);
        let matched = self.because(reading.key.clone(), value, threshold);
        if reading.inferred {
            matched.cap(Confidence::Medium)
        } else {
            matched
        }
    }

    /// Quotes a text that was read.
    pub(crate) fn read_text(self, reading: &Reading<&str>, threshold: impl Into<String>) -> Self {
        self.because(reading.key.clone(), reading.value, threshold)
    }

    /// Quotes how counters grew; totals since boot are weak evidence.
    pub(crate) fn grew(self, growth: &Growth) -> Self {
        let matched = self.because_all(growth.evidence.clone());
        if growth.total {
            matched.cap(Confidence::Low)
        } else {
            matched
        }
    }
}

/// How much a counter or a class of counters grew.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Growth {
    pub(crate) value: u64,
    /// A total since boot, because there is no period.
    pub(crate) total: bool,
    /// Length of the period in seconds.
    pub(crate) seconds: f64,
    pub(crate) evidence: Vec<Evidence>,
}

impl Growth {
    /// Growth per second; a total has none.
    pub(crate) fn rate(&self, what: &str) -> Result<f64, NoMatch> {
        if self.total || self.seconds <= 0.0 {
            return unknown(format!("rate of {what}"), "needs counters over a window");
        }
        Ok(to_f64(self.value) / self.seconds)
    }

    /// The rule is ruled out when nothing grew.
    pub(crate) fn or_clear(&self, what: &str) -> Result<(), NoMatch> {
        let span = if self.total {
            "since boot".to_owned()
        } else {
            format!("in {:.1} s", self.seconds)
        };
        require(self.value > 0, || format!("{what}: none {span}"))
    }

    fn add(&mut self, key: &str, grown: &Delta, period: &Period) {
        self.value = self.value.saturating_add(grown.value);
        self.seconds = period.seconds;
        if grown.value > 0 {
            let least = if grown.at_least { "at least " } else { "" };
            let threshold = format!(
                "grew by {least}{} in {:.1} s, must not grow",
                grown.value, period.seconds
            );
            self.push(key, grown.value, threshold);
        }
    }

    fn add_total(&mut self, key: &str, total: u64) {
        self.total = true;
        self.value = self.value.saturating_add(total);
        if total > 0 {
            self.push(key, total, "total since boot, expected 0".to_owned());
        }
    }

    fn push(&mut self, key: &str, value: u64, threshold: String) {
        // A device with a hundred queues must not fill the screen.
        const QUOTED_COUNTERS_MAX: usize = 6;
        if self.evidence.len() < QUOTED_COUNTERS_MAX {
            self.evidence.push(Evidence {
                fact: key.to_owned(),
                value: value.to_string(),
                threshold,
            });
        }
    }
}

/// Counters stay far below 2^53 over a period; a total that does not is rounded.
#[expect(clippy::cast_precision_loss, reason = "rounding is harmless here")]
pub(crate) const fn to_f64(value: u64) -> f64 {
    value as f64
}

impl<'a> Scope<'a> {
    pub(crate) fn nics(&self) -> impl Iterator<Item = Nic<'a>> {
        self.hosts.iter().flat_map(|host| host.nics())
    }

    /// Every run once: of one that both ends watched, the sender's.
    pub(crate) fn runs(&self) -> impl Iterator<Item = Run<'a>> {
        let both = self.hosts.len() > 1;
        let runs = self.hosts.iter().flat_map(|host| host.runs());
        runs.filter(move |run| !both || run.part() != Some("receiver"))
    }
}

/// Runs one snapshot may contain.
const RUNS_MAX: usize = 10_000;

impl<'a> Host<'a> {
    pub(crate) fn name(&self) -> &'a str {
        &self.snapshot.host
    }

    pub(crate) fn nics(&self) -> impl Iterator<Item = Nic<'a>> + use<'a> {
        let host = *self;
        self.snapshot
            .interfaces()
            .into_iter()
            .map(move |name| Nic { host, name })
    }

    pub(crate) fn runs(&self) -> impl Iterator<Item = Run<'a>> + use<'a> {
        let host = *self;
        (0..RUNS_MAX)
            .map(move |index| Run { host, index })
            .take_while(move |run| host.value(&format!("run.{}.tool", run.index)).is_some())
    }

    pub(crate) fn value(&self, key: &str) -> Option<&'a Value> {
        self.snapshot.value(key)
    }

    pub(crate) fn number(&self, key: &str) -> Result<Reading<f64>, NoMatch> {
        let value = self.known(key)?.number();
        self.typed(key, value)
    }

    pub(crate) fn flag(&self, key: &str) -> Result<Reading<bool>, NoMatch> {
        let value = match self.known(key)? {
            Value::Bool(on) => Some(*on),
            Value::Integer(0) => Some(false),
            Value::Integer(_) => Some(true),
            _ => None,
        };
        self.typed(key, value)
    }

    pub(crate) fn text(&self, key: &str) -> Result<Reading<&'a str>, NoMatch> {
        let value = match self.known(key)? {
            Value::Text(text) => Some(text.as_str()),
            _ => None,
        };
        self.typed(key, value)
    }

    fn known(&self, key: &str) -> Result<&'a Value, NoMatch> {
        match self.snapshot.value(key) {
            Some(value) => Ok(value),
            None => unknown(key, self.reason(key)),
        }
    }

    fn typed<T>(&self, key: &str, value: Option<T>) -> Result<Reading<T>, NoMatch> {
        match value {
            Some(value) => Ok(Reading {
                key: key.to_owned(),
                value,
                inferred: self.snapshot.quality(key) == Some(Quality::Inferred),
            }),
            None => unknown(key, Absence::ParseError.name()),
        }
    }

    /// Why a fact is absent: the reason recorded for its key, or for its group.
    pub(crate) fn absence(&self, key: &str) -> Absence {
        let mut at = key;
        loop {
            if let Some(Fact::Absent { absent, .. }) = self.snapshot.facts.get(at) {
                return *absent;
            }
            match at.rsplit_once('.') {
                Some((group, _)) => at = group,
                None => break,
            }
        }
        match self.snapshot.source {
            Source::Import => Absence::NotInImport,
            Source::Live => Absence::NotReported,
        }
    }

    pub(crate) fn reason(&self, key: &str) -> String {
        self.absence(key).name().to_owned()
    }

    /// Growth of one counter: over the period, or since boot where there is none.
    pub(crate) fn growth(&self, key: &str) -> Result<Growth, NoMatch> {
        self.growth_of(&[key])
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
            let delta = period.delta(key).filter(|delta| !delta.reset);
            if let Some(delta) = delta {
                sum.add(key, delta, period);
            }
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
            None => unknown("counters over a window", "only one reading was taken; use --window"),
        }
    }

    /// Growth of a counter over the period; a total will not do.
    pub(crate) fn delta(&self, key: &str) -> Result<f64, NoMatch> {
        match self.period()?.delta(key).filter(|delta| !delta.reset) {
            Some(delta) => Ok(to_f64(delta.value)),
            None => unknown(key, "not read at both ends of the window"),
        }
    }

    /// Load of one CPU over the period.
    pub(crate) fn cpu_load(&self, cpu: u32) -> Result<CpuLoad, NoMatch> {
        self.period()?;
        let state = |name: &str| self.delta(&format!("cpu.{cpu}.{name}"));
        let (user, system, idle) = (state("user")? + state("nice")?, state("system")?, state("idle")?);
        let (wait, irq, softirq, steal) = (state("iowait")?, state("irq")?, state("softirq")?, state("steal")?);
        let total = user + system + idle + wait + irq + softirq + steal;
        if total <= 0.0 {
            return unknown(format!("cpu.{cpu}"), "no tick passed in the window");
        }
        Ok(CpuLoad {
            cpu,
            softirq: (irq + softirq) / total,
            busy: 1.0 - (idle + wait) / total,
            steal: steal / total,
        })
    }

    /// Load of every CPU over the period.
    pub(crate) fn cpu_loads(&self) -> Result<Vec<CpuLoad>, NoMatch> {
        let period = self.period()?;
        let cpus: std::collections::BTreeSet<u32> = period
            .deltas()
            .filter_map(|(key, _)| key.strip_prefix("cpu.")?.split('.').next()?.parse().ok())
            .collect();
        if cpus.is_empty() {
            return unknown("cpu.0.user", "not read at both ends of the window");
        }
        cpus.into_iter().map(|cpu| self.cpu_load(cpu)).collect()
    }

    /// Whether some CPU had no time left over the period. A thread that waits for it appears idle.
    pub(crate) fn has_full_cpu(&self) -> bool {
        const FULL: f64 = 0.9;
        self.cpu_loads()
            .is_ok_and(|loads| loads.iter().any(|load| load.busy >= FULL))
    }

    /// Whether packets are forwarded: the switch is on, and some were.
    pub(crate) fn forwards(&self) -> Result<bool, NoMatch> {
        if !self.flag("sysctl.net.ipv4.ip_forward")?.value {
            return Ok(false);
        }
        Ok(self.growth("net.snmp.Ip.ForwDatagrams")?.value > 0)
    }
}

/// Load of a CPU, shares of the period.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct CpuLoad {
    pub(crate) cpu: u32,
    pub(crate) softirq: f64,
    pub(crate) busy: f64,
    pub(crate) steal: f64,
}

impl<'a> Nic<'a> {
    pub(crate) fn key(&self, fact: &str) -> String {
        format!("nic.{}.{fact}", self.name)
    }

    pub(crate) fn number(&self, fact: &str) -> Result<Reading<f64>, NoMatch> {
        self.host.number(&self.key(fact))
    }

    pub(crate) fn flag(&self, fact: &str) -> Result<Reading<bool>, NoMatch> {
        self.host.flag(&self.key(fact))
    }

    pub(crate) fn text(&self, fact: &str) -> Result<Reading<&'a str>, NoMatch> {
        self.host.text(&self.key(fact))
    }

    /// A number, or ruled out because the driver or the kind of device has no such thing.
    pub(crate) fn number_if_any(&self, fact: &str, otherwise: &str) -> Result<Reading<f64>, NoMatch> {
        self.number(fact).map_err(|stop| {
            let none = matches!(
                self.host.absence(&self.key(fact)),
                Absence::UnsupportedByDriver | Absence::NotApplicableToKind
            );
            if none {
                NoMatch::Clear(otherwise.to_owned())
            } else {
                stop
            }
        })
    }

    /// Goes on unless the driver or the kind of device has no such group of facts at all.
    pub(crate) fn supports(&self, group: &str, otherwise: &str) -> Result<(), NoMatch> {
        let absence = self.host.absence(&self.key(group));
        let none = matches!(absence, Absence::UnsupportedByDriver | Absence::NotApplicableToKind);
        require(!none, || otherwise.to_owned())
    }

    /// How reports name it.
    pub(crate) fn subject(&self) -> String {
        format!("{} {}", self.host.name(), self.name)
    }

    /// Goes on for an interface whose other end has an MTU too: a wire or one half of a veth pair.
    pub(crate) fn wired_or_pair(&self) -> Result<(), NoMatch> {
        let kind = self.text("net.kind").or_else(|_| self.text("drv.name"));
        if kind.is_ok_and(|kind| kind.value == "veth") {
            return Ok(());
        }
        self.wired()
    }

    /// Whether a feature is active.
    pub(crate) fn feature(&self, name: &str) -> Result<Reading<bool>, NoMatch> {
        let words = self.text(&format!("feat.{name}"))?;
        Ok(Reading {
            value: words.value.starts_with("on"),
            key: words.key,
            inferred: false,
        })
    }

    /// Goes on for an interface with a wire behind it only.
    pub(crate) fn wired(&self) -> Result<(), NoMatch> {
        for fact in ["net.kind", "drv.name"] {
            if let Some(Value::Text(kind)) = self.host.value(&self.key(fact)).filter(|kind| software(kind)) {
                return clear(format!("{kind} has no link"));
            }
        }
        Ok(())
    }

    /// Goes on for a wire with a carrier only.
    pub(crate) fn carrier(&self) -> Result<(), NoMatch> {
        self.wired()?;
        match self.host.value(&self.key("link.up")) {
            Some(Value::Bool(false)) => unknown(self.key("link.up"), "no carrier: nothing is negotiated"),
            _ => Ok(()),
        }
    }

    /// Speed of the wire; the made-up speed of a virtual device does not count.
    pub(crate) fn speed_mbps(&self) -> Result<Reading<f64>, NoMatch> {
        self.carrier()?;
        let key = self.key("link.speed_mbps");
        if self.host.snapshot.quality(&key) == Some(Quality::Nominal) {
            return unknown(key, "the kernel makes this number up for a virtual device");
        }
        self.host.number(&key)
    }

    /// Growth of a class of the driver's counters.
    pub(crate) fn growth(&self, class: Class) -> Result<Growth, NoMatch> {
        let driver = self.text("drv.name").ok().map(|reading| reading.value);
        let prefix = self.key("drv.");
        let names = self.host.snapshot.counters_under(&prefix);
        let of_class = names.filter(|(name, _)| classify(driver, name) == Some(class));
        let mut keys: Vec<String> = of_class.map(|(name, _)| format!("{prefix}{name}")).collect();
        if class == Class::RxRingFull && keys.is_empty() {
            let fallback = self.key("stats64.rx_missed_errors");
            keys.extend(self.host.snapshot.counters.contains_key(&fallback).then_some(fallback));
        }
        if keys.is_empty() {
            let key = format!("{prefix}* ({})", class.name());
            return unknown(key, self.host.reason(&self.key("drv.counters")));
        }
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        self.host.growth_of(&keys)
    }

    /// The interface at the other end of the wire, when exactly two hosts with one such interface each are known.
    pub(crate) fn peer(&self) -> Option<Self> {
        let snapshot = self.host.other?;
        let host = Host {
            snapshot,
            period: None,
            other: Some(self.host.snapshot),
        };
        if self.host.nics().filter(|nic| nic.wired_or_pair().is_ok()).count() != 1 {
            return None;
        }
        let mut wired = host.nics().filter(|nic| nic.wired_or_pair().is_ok());
        let first = wired.next()?;
        wired.next().is_none().then_some(first)
    }

    /// A number of the other end: from its snapshot, from an option or from the test.
    pub(crate) fn peer_number(&self, fact: &str) -> Result<Reading<f64>, NoMatch> {
        match self.peer() {
            Some(peer) => peer.number(fact).map(|mut reading| {
                reading.key = format!("{}: {}", peer.host.name(), reading.key);
                reading
            }),
            None => self.host.number(&format!("peer.{fact}")),
        }
    }

    /// Bytes of one direction over the period: `rx` or `tx`.
    pub(crate) fn bytes(&self, direction: &str) -> Result<f64, NoMatch> {
        self.host.delta(&self.key(&format!("stats64.{direction}_bytes")))
    }

    /// MTU, or Ethernet's where it is unknown.
    pub(crate) fn mtu(&self) -> f64 {
        self.number("net.mtu").map_or(1500.0, |reading| reading.value)
    }

    /// The queueing disciplines of this interface: handle, kind and their facts' prefix.
    pub(crate) fn qdiscs(&self) -> Result<Vec<Qdisc<'a>>, NoMatch> {
        let prefix = self.key("qdisc.");
        let mut found: Vec<Qdisc<'a>> = Vec::new();
        for (key, fact) in &self.host.snapshot.facts {
            let Some(handle) = key.strip_prefix(&prefix).and_then(|rest| rest.strip_suffix(".kind")) else {
                continue;
            };
            if let Fact::Known {
                v: Value::Text(kind), ..
            } = fact
            {
                let key = format!("{prefix}{handle}");
                found.push(Qdisc { nic: *self, kind, key });
            }
        }
        if found.is_empty() {
            return unknown(self.key("qdisc"), self.host.reason(&self.key("qdisc")));
        }
        Ok(found)
    }
}

fn software(kind: &Value) -> bool {
    matches!(kind, Value::Text(kind) if is_software_kind(kind))
}

/// One queueing discipline.
#[derive(Debug, Clone)]
pub(crate) struct Qdisc<'a> {
    nic: Nic<'a>,
    pub(crate) kind: &'a str,
    /// Key of its facts, without a dot at the end.
    pub(crate) key: String,
}

impl Qdisc<'_> {
    pub(crate) fn number(&self, fact: &str) -> Result<Reading<f64>, NoMatch> {
        self.nic.host.number(&format!("{}.{fact}", self.key))
    }

    /// Whether it can shape and has no rate.
    pub(crate) fn is_unlimited(&self) -> bool {
        self.nic.host.absence(&format!("{}.rate_bps", self.key)) == Absence::NotApplicableToKind
    }

    pub(crate) fn drops_key(&self) -> String {
        format!("{}.drops", self.key)
    }
}

impl<'a> Run<'a> {
    pub(crate) fn key(&self, fact: &str) -> String {
        format!("run.{}.{fact}", self.index)
    }

    pub(crate) fn number(&self, fact: &str) -> Result<Reading<f64>, NoMatch> {
        self.host.number(&self.key(fact))
    }

    pub(crate) fn flag(&self, fact: &str) -> Result<Reading<bool>, NoMatch> {
        self.host.flag(&self.key(fact))
    }

    pub(crate) fn text(&self, fact: &str) -> Result<Reading<&'a str>, NoMatch> {
        self.host.text(&self.key(fact))
    }

    /// A switch that is off by default.
    pub(crate) fn is(&self, fact: &str) -> bool {
        self.flag(fact).is_ok_and(|reading| reading.value)
    }

    /// What this host did in it, where both ends were watched: `sender` or `receiver`.
    pub(crate) fn part(&self) -> Option<&'a str> {
        self.text("end").ok().map(|reading| reading.value)
    }

    /// The host that received if it is known, otherwise the one that has the run.
    pub(crate) fn receiver(&self) -> Host<'a> {
        match self.host.other.filter(|_| self.part() == Some("sender")) {
            Some(snapshot) => Host {
                snapshot,
                period: None,
                other: Some(self.host.snapshot),
            },
            None => self.host,
        }
    }

    /// Goes on for a run that is known to be one of UDP.
    pub(crate) fn over_udp(&self) -> Result<(), NoMatch> {
        let transport = self.text("transport")?;
        require(transport.value == "udp", || "not UDP".to_owned())
    }

    pub(crate) fn is_udp(&self) -> bool {
        self.text("transport").is_ok_and(|reading| reading.value == "udp")
    }

    /// A target rate was given and reached.
    pub(crate) fn reaches_its_target(&self) -> bool {
        let Ok(target) = self.number("target_bps") else {
            return false;
        };
        let streams = self.number("streams").map_or(1.0, |streams| streams.value);
        target.value > 0.0
            && self
                .goodput_bps()
                .is_ok_and(|rate| rate.value >= 0.97 * target.value * streams)
    }

    /// Goodput at the receiver; at the sender only where the receiver's is absent.
    pub(crate) fn goodput_bps(&self) -> Result<Reading<f64>, NoMatch> {
        match self.number("received_bps") {
            Ok(received) if received.value > 0.0 => Ok(received),
            _ => unknown(self.key("received_bps"), "the receiver's total is not known"),
        }
    }

    /// What it is called in a report.
    pub(crate) fn label(&self) -> String {
        match self.text("label") {
            Ok(label) => label.value.to_owned(),
            Err(_) => format!("run {}", self.index + 1),
        }
    }

    /// Interface the test ran over, when it is known or there is only one.
    pub(crate) fn nic(&self) -> Option<Nic<'a>> {
        let host = self.host;
        if let Ok(device) = host.text("route.peer.dev") {
            return host.nics().find(|nic| nic.name == device.value);
        }
        let mut wired = host.nics().filter(|nic| nic.wired().is_ok());
        let first = wired.next()?;
        wired.next().is_none().then_some(first)
    }
}
