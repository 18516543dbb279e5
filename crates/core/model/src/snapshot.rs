//! Facts of a host at an instant: flat, dotted facts, each a value or an absence with
//! its reason.
//!
//! Flat keys make comparing, importing and quoting trivial: `nic.eth0.ring.rx.cur`,
//! `sysctl.net.core.rmem_max`, `run.0.received_bps`. Settings are facts; counters that only grow
//! are kept apart, because one reading of a counter has little meaning and the difference of two
//! much.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use linerate_macros::{sparse, stored};

/// Schema name of a [`Snapshot`] on disk.
pub const SNAPSHOT_SCHEMA: &str = "linerate.snapshot/1";

/// A host at an instant.
#[sparse]
#[stored(Default)]
pub struct Snapshot {
    /// Always [`SNAPSHOT_SCHEMA`].
    pub schema: String,
    /// Name of the host, or of the file it was imported from.
    pub host: String,
    /// Wall-clock time, RFC 3339. `None` where the source has none.
    pub taken_at: Option<String>,
    /// Time on the monotonic clock of that host, for differences of counters.
    pub monotonic_ns: Option<u64>,
    /// Identity of the boot; counters of different boots cannot be subtracted.
    pub boot_id: Option<String>,
    /// Release of the kernel, `uname -r`.
    pub kernel: Option<String>,
    /// It was collected with the rights of root. `None` for imports.
    pub privileged: Option<bool>,
    /// Where the facts come from.
    pub source: Source,
    /// Settings and states by dotted key.
    #[serde(default)]
    pub facts: BTreeMap<String, Fact>,
    /// Counters since boot (or since the driver was loaded) by dotted key.
    #[serde(default)]
    pub counters: BTreeMap<String, Counter>,
}

/// Where the facts of a snapshot come from.
#[stored(Copy, Default, Eq)]
pub enum Source {
    /// Read from the running kernel.
    #[default]
    Live,
    /// Read from pasted text; what was not pasted is unknown.
    Import,
}

/// One fact: a value, or why there is none.
#[sparse]
#[stored]
#[serde(untagged)]
pub enum Fact {
    /// The value is known.
    Known {
        /// The value.
        v: Value,
        /// Its unit.
        u: Option<String>,
        /// Confidence, when that is less than full.
        quality: Option<Quality>,
        /// Where it was read: `ethtool-nl:RINGS_GET`, a file, or `import:` and the command.
        src: String,
    },
    /// It was requested and is not available.
    Absent {
        /// Why not.
        absent: Absence,
        /// Error number of the kernel, where it gave one.
        errno: Option<i32>,
        /// Where it was expected.
        src: String,
    },
}

/// Confidence of a value.
#[stored(Copy, Eq)]
pub enum Quality {
    /// A number the kernel makes up for a device that has none, as the 10 Gbit/s of a veth pair.
    Nominal,
    /// Concluded from something else, as the speed of a chip from its firmware's name.
    Inferred,
    /// A measurement shows that it is wrong, as the speed of a link that a test exceeds.
    Contradicted,
}

/// Why a fact has no value.
#[stored(Copy, Eq, PartialOrd, Ord)]
#[serde(rename_all = "kebab-case")]
pub enum Absence {
    /// The driver has no such operation.
    UnsupportedByDriver,
    /// A device of this kind has no such thing.
    NotApplicableToKind,
    /// The kernel refuses it to this user.
    Permission,
    /// The running kernel does not know the request.
    KernelTooOld,
    /// There is no such device.
    NoSuchDevice,
    /// The response could not be parsed.
    ParseError,
    /// The pasted text does not contain it.
    NotInImport,
    /// The device responded without this part.
    NotReported,
}

/// The value of a fact.
#[stored]
#[serde(untagged)]
pub enum Value {
    /// A switch.
    Bool(bool),
    /// A whole number.
    Integer(i64),
    /// A number with a fraction.
    Real(f64),
    /// Words.
    Text(String),
    /// Several values.
    List(Vec<Self>),
}

impl Value {
    /// The value as a number; a switch counts as 0 or 1 nowhere.
    #[expect(clippy::cast_precision_loss, reason = "facts are far below 2^53")]
    pub const fn number(&self) -> Option<f64> {
        match self {
            Self::Integer(whole) => Some(*whole as f64),
            Self::Real(real) => Some(*real),
            _ => None,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(true) => f.write_str("on"),
            Self::Bool(false) => f.write_str("off"),
            Self::Integer(whole) => write!(f, "{whole}"),
            // Shares of a thousandth matter: lost packets.
            Self::Real(real) if real.abs() < 0.1 => write!(f, "{}", (real * 1e6).round() / 1e6),
            Self::Real(real) => write!(f, "{}", (real * 100.0).round() / 100.0),
            Self::Text(text) => f.write_str(text),
            Self::List(list) => {
                for (index, value) in list.iter().enumerate() {
                    write!(f, "{}{value}", if index == 0 { "" } else { ", " })?;
                }
                Ok(())
            }
        }
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Integer(value)
    }
}

impl From<u32> for Value {
    fn from(value: u32) -> Self {
        Self::Integer(value.into())
    }
}

impl From<u64> for Value {
    fn from(value: u64) -> Self {
        Self::Integer(i64::try_from(value).unwrap_or(i64::MAX))
    }
}

impl From<usize> for Value {
    fn from(value: usize) -> Self {
        Self::Integer(i64::try_from(value).unwrap_or(i64::MAX))
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Real(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Self::Text(value)
    }
}

/// One reading of a counter.
#[stored(Copy, Eq)]
pub struct Counter {
    /// The reading.
    pub v: u64,
    /// Bits after which the hardware tally wraps; `None` means 64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width: Option<u8>,
}

/// The groups of facts an interface can have: what follows the interface's name in a key.
const GROUPS: [&str; 21] = [
    "link",
    "bond",
    "wifi",
    "drv",
    "ring",
    "chan",
    "coal",
    "pause",
    "feat",
    "stat",
    "rss",
    "privflags",
    "ts",
    "net",
    "qdisc",
    "bql",
    "queue",
    "irq",
    "pci",
    "numa",
    "stats64",
];

impl Snapshot {
    /// A snapshot without facts.
    pub fn new(host: impl Into<String>, source: Source) -> Self {
        Self {
            schema: SNAPSHOT_SCHEMA.to_owned(),
            host: host.into(),
            source,
            ..Self::default()
        }
    }

    /// Records a value; a later value of the same key replaces an earlier one.
    pub fn set(&mut self, key: impl Into<String>, value: impl Into<Value>, src: &str) {
        let fact = Fact::Known {
            v: value.into(),
            u: None,
            quality: None,
            src: src.to_owned(),
        };
        self.facts.insert(key.into(), fact);
    }

    /// Records a value with its unit.
    pub fn set_in(
        &mut self,
        key: impl Into<String>,
        value: impl Into<Value>,
        unit: &str,
        src: &str,
    ) {
        let fact = Fact::Known {
            v: value.into(),
            u: Some(unit.to_owned()),
            quality: None,
            src: src.to_owned(),
        };
        self.facts.insert(key.into(), fact);
    }

    /// Lowers the trust in a value that was just recorded.
    pub fn qualify(&mut self, key: &str, how: Quality) {
        if let Some(Fact::Known { quality, .. }) = self.facts.get_mut(key) {
            *quality = Some(how);
        }
    }

    /// Records that there is no value, unless one is known.
    pub fn set_absent(
        &mut self,
        key: impl Into<String>,
        reason: Absence,
        errno: Option<i32>,
        src: &str,
    ) {
        self.facts
            .entry(key.into())
            // A value that another source has stays.
            .or_insert_with(|| Fact::Absent {
                absent: reason,
                errno,
                src: src.to_owned(),
            });
    }

    /// Records a counter of full width.
    pub fn count(&mut self, key: impl Into<String>, v: u64) {
        self.counters.insert(key.into(), Counter { v, width: None });
    }

    /// Records a value if there is one.
    pub fn set_known<T: Into<Value>>(
        &mut self,
        key: impl Into<String>,
        value: Option<T>,
        src: &str,
    ) {
        if let Some(value) = value {
            self.set(key, value, src);
        }
    }

    /// Records a value if there is one, with its unit.
    pub fn set_known_in<T: Into<Value>>(
        &mut self,
        key: impl Into<String>,
        value: Option<T>,
        unit: &str,
        src: &str,
    ) {
        if let Some(value) = value {
            self.set_in(key, value, unit, src);
        }
    }

    /// Records a value, or why there is none.
    pub fn set_or_absent<T: Into<Value>>(
        &mut self,
        key: impl Into<String>,
        value: Option<T>,
        reason: Absence,
        src: &str,
    ) {
        match value {
            Some(value) => self.set(key, value, src),
            None => self.set_absent(key, reason, None, src),
        }
    }

    /// Records a counter if it is known.
    pub fn count_known(&mut self, key: impl Into<String>, v: Option<u64>) {
        if let Some(v) = v {
            self.count(key, v);
        }
    }

    /// The value of a fact; `None` when it is absent or was never requested.
    pub fn value(&self, key: &str) -> Option<&Value> {
        match self.facts.get(key) {
            Some(Fact::Known { v, .. }) => Some(v),
            _ => None,
        }
    }

    /// The quality of a known value.
    pub fn quality(&self, key: &str) -> Option<Quality> {
        match self.facts.get(key) {
            Some(Fact::Known { quality, .. }) => *quality,
            _ => None,
        }
    }

    /// Why a fact has no value. What was never requested is not in the import, or not reported.
    pub fn absence(&self, key: &str) -> Option<Absence> {
        match self.facts.get(key) {
            Some(Fact::Known { .. }) => None,
            Some(Fact::Absent { absent, .. }) => Some(*absent),
            None => Some(match self.source {
                Source::Import => Absence::NotInImport,
                Source::Live => Absence::NotReported,
            }),
        }
    }

    /// The value of a fact as a number.
    pub fn number(&self, key: &str) -> Option<f64> {
        self.value(key).and_then(Value::number)
    }

    /// The value of a fact as a whole number that is not negative.
    pub fn whole(&self, key: &str) -> Option<u64> {
        match self.value(key) {
            Some(Value::Integer(whole)) => u64::try_from(*whole).ok(),
            _ => None,
        }
    }

    /// The value of a fact as words.
    pub fn text(&self, key: &str) -> Option<&str> {
        match self.value(key) {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// The value of a fact as a switch.
    pub fn flag(&self, key: &str) -> Option<bool> {
        match self.value(key) {
            Some(Value::Bool(on)) => Some(*on),
            _ => None,
        }
    }

    /// Names of the interfaces with facts in this snapshot, sorted.
    pub fn interfaces(&self) -> BTreeSet<&str> {
        let facts = self.facts_under(NIC);
        let counters = self.counters_under(NIC);
        let keys = facts
            .map(|(key, _)| key)
            .chain(counters.map(|(key, _)| key));
        let mut names = BTreeSet::new();
        let mut last = None;

        for key in keys {
            // Keys of one interface are adjacent.
            let same = last.is_some_and(|name: &str| key.strip_prefix(name).is_some_and(is_group));
            if !same && let Some(name) = interface_of(key) {
                names.insert(name);
                last = Some(name);
            }
        }

        names
    }

    /// Counters whose key starts with `prefix`, the prefix removed.
    pub fn counters_under<'a>(
        &'a self,
        prefix: &'a str,
    ) -> impl Iterator<Item = (&'a str, &'a Counter)> {
        let from_prefix = self.counters.range::<str, _>((
            std::ops::Bound::Included(prefix),
            std::ops::Bound::Unbounded,
        ));
        // Keys are sorted, so that those with the prefix are adjacent.
        from_prefix.map_while(move |(key, counter)| Some((key.strip_prefix(prefix)?, counter)))
    }

    /// Facts whose key starts with `prefix`, the prefix removed.
    pub fn facts_under<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a Fact)> {
        let from_prefix = self.facts.range::<str, _>((
            std::ops::Bound::Included(prefix),
            std::ops::Bound::Unbounded,
        ));
        from_prefix.map_while(move |(key, fact)| Some((key.strip_prefix(prefix)?, fact)))
    }
}

/// Prefix of keys about interfaces.
const NIC: &str = "nic.";

/// The interface of a key without its prefix. Names of interfaces may contain dots, so the name
/// ends where a known group begins.
fn interface_of(rest: &str) -> Option<&str> {
    let mut dots = rest.match_indices('.').map(|(at, _)| at);
    // Names of devices have dots themselves (`eth0.100`): a known group ends them.
    dots.find(|at| is_group(&rest[*at..])).map(|at| &rest[..at])
}

/// True if a known group begins here, after a dot.
fn is_group(rest: &str) -> bool {
    let group = rest
        .strip_prefix('.')
        .map(|rest| rest.split('.').next().unwrap_or(rest));
    group.is_some_and(|group| GROUPS.contains(&group))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interfaces_with_dots_keep_their_name() {
        let mut snapshot = Snapshot::new("a", Source::Live);
        snapshot.set("nic.eth0.100.link.up", true, "test");
        snapshot.count("nic.eth1.drv.rx_missed", 3);
        snapshot.set("nic.nothing", 1_i64, "test");
        assert_eq!(
            snapshot.interfaces().into_iter().collect::<Vec<_>>(),
            ["eth0.100", "eth1"]
        );
    }

    #[test]
    fn an_absence_never_hides_a_value() {
        let mut snapshot = Snapshot::new("a", Source::Import);
        snapshot.set("x", 5_i64, "test");
        snapshot.set_absent("x", Absence::Permission, None, "test");
        assert_eq!(snapshot.number("x"), Some(5.0));
        assert_eq!(snapshot.absence("y"), Some(Absence::NotInImport));
    }

    #[test]
    fn prefixes_end_where_the_keys_change() {
        let mut snapshot = Snapshot::new("a", Source::Live);
        for key in ["a.b.c", "a.b.d", "a.bc", "b"] {
            snapshot.count(key, 1);
        }

        let found: Vec<_> = snapshot
            .counters_under("a.b.")
            .map(|(key, _)| key)
            .collect();
        assert_eq!(found, ["c", "d"]);
    }
}
