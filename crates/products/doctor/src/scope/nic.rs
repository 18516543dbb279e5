//! One interface of a host and its queueing disciplines.

use linerate_model::finding::Inapplicable;
use linerate_model::network::is_software_kind;
use linerate_model::snapshot::{Absence, Fact, Quality, Value};

use super::host::{Facts, Host};
use super::reading::{Growth, Reading};
use crate::classes::{Class, classify};
use crate::ruling::{NoMatch, inapplicable, unknown};

/// One interface of a host.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Nic<'a> {
    pub host: Host<'a>,
    pub name: &'a str,
}

impl<'a> Host<'a> {
    pub(crate) fn nics(&self) -> impl Iterator<Item = Nic<'a>> + use<'a> {
        let host = *self;
        self.snapshot
            .interfaces()
            .into_iter()
            .map(move |name| Nic { host, name })
    }
}

impl<'a> Facts<'a> for Nic<'a> {
    fn host(&self) -> &Host<'a> {
        &self.host
    }

    fn key(&self, fact: &str) -> String {
        format!("nic.{}.{fact}", self.name)
    }
}

impl<'a> Nic<'a> {
    /// Name in reports.
    pub(crate) fn subject(&self) -> String {
        format!("{} {}", self.host.name(), self.name)
    }

    /// Continues only where the other end has an MTU too: a physical interface or one half of a
    /// veth pair.
    pub(crate) fn wired_or_pair(&self) -> Result<(), NoMatch> {
        // `ip -d link` shows the kind, `ethtool -i` the driver; pasted text may have one.
        let kind = self.text("net.kind").or_else(|_| self.text("drv.name"));
        if kind.is_ok_and(|kind| kind == "veth") {
            return Ok(());
        }
        self.wired()
    }

    /// True if a feature is active.
    pub(crate) fn feature(&self, name: &str) -> Result<Reading<bool>, NoMatch> {
        let words = self.text(&format!("feat.{name}"))?;
        // `on [fixed]` is active as well (ethtool(8)).
        Ok(Reading::new(words.key, words.value.starts_with("on")))
    }

    /// Continues only for a physical interface.
    pub(crate) fn wired(&self) -> Result<(), NoMatch> {
        for fact in ["net.kind", "drv.name"] {
            if let Some(kind) = self
                .text(fact)
                .ok()
                .filter(|kind| is_software_kind(kind.value))
            {
                return inapplicable(
                    Inapplicable::VirtualInterface,
                    format!("{kind} has no link"),
                );
            }
        }

        Ok(())
    }

    /// Continues only for a link with carrier.
    pub(crate) fn carrier(&self) -> Result<(), NoMatch> {
        self.wired()?;
        match self.value("link.up") {
            // A link of unknown state may have carrier.
            Some(Value::Bool(false)) => unknown(self.key("link"), "no carrier"),
            _ => Ok(()),
        }
    }

    /// Speed of the wire; the made-up speed of a virtual device does not count.
    pub(crate) fn speed_mbps(&self) -> Result<Reading<f64>, NoMatch> {
        self.carrier()?;
        let key = self.key("link.speed_mbps");
        match self.host.snapshot.quality(&key) {
            Some(Quality::Nominal) => unknown(key, "nominal: a virtual device has no link speed"),
            Some(Quality::Contradicted) => unknown(key, "contradicted: a test was faster"),
            _ => self.host.number(&key),
        }
    }

    /// Growth of a class of the driver's counters.
    pub(crate) fn class_growth(&self, class: Class) -> Result<Growth, NoMatch> {
        let driver = self.text("drv.name").ok().map(|reading| reading.value);
        let prefix = self.key("drv.");
        let names = self.host.snapshot.counters_under(&prefix);
        let of_class = names.filter(|(name, _)| classify(driver, name) == Some(class));
        let mut keys: Vec<String> = of_class
            .map(|(name, _)| format!("{prefix}{name}"))
            .collect();
        if class == Class::RxRingFull && keys.is_empty() {
            // Not `rx_dropped`, which counts packets of unknown protocols and VLANs as well.
            let fallback = self.key("stats64.rx_missed_errors");
            keys.extend(
                self.host
                    .snapshot
                    .counters
                    .contains_key(&fallback)
                    .then_some(fallback),
            );
        }

        if keys.is_empty() {
            let key = format!("{prefix}* ({})", class.name());
            return unknown(key, self.reason("drv.counters"));
        }

        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        self.host.growth_of(&keys)
    }

    /// The interface at the other end of the wire, when exactly two hosts with one such interface
    /// in use each are known.
    pub(crate) fn peer(&self) -> Option<Self> {
        let host = self.host.other_host()?;

        let is_used = |nic: &Nic<'_>| {
            // A link of unknown state counts as one in use.
            nic.wired_or_pair().is_ok() && !nic.flag("link.up").is_ok_and(|up| !up.value)
        };
        if self.host.nics().filter(is_used).count() != 1 {
            return None;
        }

        let mut wired = host.nics().filter(is_used);
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
        self.delta(&format!("stats64.{direction}_bytes"))
    }

    /// Length of the queue of its root discipline, bytes: mean over the period, otherwise at the
    /// last reading.
    pub(crate) fn backlog_bytes(&self) -> Result<Reading<f64>, NoMatch> {
        let kind = self.text("qdisc.root.kind");
        // A discipline without a queue holds nothing, also where no backlog was read.
        if let Some(kind) = kind.ok().filter(|kind| *kind == "noqueue") {
            return Ok(Reading::new(kind.key, 0.0));
        }

        let key = self.key("qdisc.root.backlog");
        match self.host.period.and_then(|period| period.level(&key)) {
            Some(value) => Ok(Reading::new(key, value)),
            None => self.host.number(&key),
        }
    }

    /// MTU, or Ethernet's where it is unknown.
    pub(crate) fn mtu(&self) -> f64 {
        self.number("net.mtu")
            .map_or(1500.0, |reading| reading.value)
    }

    /// The queueing disciplines of this interface: handle, kind and their facts' prefix.
    pub(crate) fn qdiscs(&self) -> Result<Vec<Qdisc<'a>>, NoMatch> {
        let prefix = self.key("qdisc.");
        let mut found: Vec<Qdisc<'a>> = Vec::new();

        for (key, fact) in &self.host.snapshot.facts {
            let Some(handle) = key
                .strip_prefix(&prefix)
                .and_then(|rest| rest.strip_suffix(".kind"))
            else {
                continue;
            };
            if let Fact::Known {
                v: Value::Text(kind),
                ..
            } = fact
            {
                let key = format!("{prefix}{handle}");
                found.push(Qdisc {
                    nic: *self,
                    kind,
                    key,
                });
            }
        }

        if found.is_empty() {
            return unknown(self.key("qdisc"), self.reason("qdisc"));
        }

        Ok(found)
    }
}

/// One queueing discipline.
#[derive(Debug, Clone)]
pub(crate) struct Qdisc<'a> {
    nic: Nic<'a>,
    pub kind: &'a str,
    /// Key of its facts, without a dot at the end.
    pub key: String,
}

impl<'a> Facts<'a> for Qdisc<'a> {
    fn host(&self) -> &Host<'a> {
        &self.nic.host
    }

    fn key(&self, fact: &str) -> String {
        format!("{}.{fact}", self.key)
    }
}

impl Qdisc<'_> {
    /// True if it can shape and has no rate.
    pub(crate) fn is_unlimited(&self) -> bool {
        self.absence("rate_bps") == Absence::NotApplicableToKind
    }

    /// True if all packets that leave pass it first.
    pub(crate) fn is_root(&self) -> bool {
        self.key.ends_with(".qdisc.root")
    }
}
