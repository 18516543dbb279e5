//! A record without names and addresses, for others to read.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use linerate_model::record::{Body, Detail, HostPart, RunKind, RunRecord};
use serde_json::Value;

/// The record with roles in place of host names, addresses for documentation (RFC 5737, RFC 3849)
/// in place of real ones, and without users, keys of hosts, machine and boot ids. Titles and notes
/// stay, but for the names in them.
pub fn anonymized(record: &RunRecord) -> RunRecord {
    let mut names = Names::of(record);
    let mut copy = record.clone();
    for host in &mut copy.hosts {
        host.host_key = None;
        if let Some(snapshot) = &mut host.snapshot {
            snapshot.boot_id = None;
        }
    }

    if let Body::Fleet(run) = &mut copy.body {
        // They have destinations and labels.
        run.inputs = Value::Null;
    }

    for trial in &mut copy.trials {
        if let Some(Detail::Path(report)) = &mut trial.detail {
            report.target.fingerprint = None;
        }
    }

    // Both ways through text: the code that reads and writes records as text is there already.
    let text = serde_json::to_string(&copy).unwrap_or_default();
    let mut value: Value = serde_json::from_str(&text).unwrap_or_default();
    names.replace(&mut value);

    // A text of a closed form could be equal to a name: then nothing of the record is shown rather
    // than the name.
    serde_json::from_str(&value.to_string()).unwrap_or_else(|_| without_names(&copy))
}

/// The record without names, addresses and texts.
fn without_names(record: &RunRecord) -> RunRecord {
    let started_at = record.started_at.clone();
    let mut bare = RunRecord::new(
        record.run_id,
        record.kind,
        Body::Test,
        started_at,
        record.started_unix_ms,
    );
    bare.schema.clone_from(&record.schema);
    bare.state = record.state;
    bare.elapsed_ns = record.elapsed_ns;
    bare.links = record.links.clone();
    bare.notes =
        vec!["the record could not be made anonymous, so its trials are left out".to_owned()];

    bare
}

/// Replacement of each name and address.
#[derive(Default)]
struct Names {
    hosts: BTreeMap<String, String>,
    addresses: BTreeMap<IpAddr, IpAddr>,
    hardware: BTreeMap<String, String>,
}

impl Names {
    fn of(record: &RunRecord) -> Self {
        let mut names = Self::default();
        if record.kind == RunKind::Fleet {
            names.add_fleet(record);
        }

        names.add(record.path.client.as_deref(), "client");
        names.add(record.path.server.as_deref(), "server");

        for host in &record.hosts {
            names_of(Some(host)).for_each(|name| names.add(Some(name), &host.role));
        }

        for trial in &record.trials {
            match &trial.detail {
                Some(Detail::Test(detail)) => names.add(Some(&detail.header.peer_host), "server"),
                Some(Detail::Path(report)) => names.add(Some(&report.target.host), "server"),
                _ => {}
            }
        }

        match &record.body {
            Body::Session(session) => names.add(session.user.as_deref(), "user"),
            Body::Sweep(Some(sweep)) => {
                names.add(sweep.provenance.server.name.as_deref(), "server");
            }
            _ => {}
        }

        names
    }

    /// The ids of a fleet, which are also the roles of its hosts.
    fn add_fleet(&mut self, record: &RunRecord) {
        let of_report = match &record.body {
            Body::Fleet(run) => run.report.as_deref(),
            _ => None,
        };
        let all = of_report
            .into_iter()
            .flat_map(|report| &report.header.hosts)
            .map(|host| host.id.as_str());
        let all: BTreeSet<&str> = all
            .chain(record.hosts.iter().map(|host| host.role.as_str()))
            .collect();
        for (number, id) in (1..).zip(all) {
            let known_as = format!("host{number}");
            let own = record.hosts.iter().find(|host| host.role == id);
            names_of(own)
                .chain([id])
                .for_each(|name| self.add(Some(name), &known_as));
        }
    }

    fn add(&mut self, name: Option<&str>, role: &str) {
        let Some(name) = name.filter(|name| !name.is_empty() && name.parse::<IpAddr>().is_err())
        else {
            return;
        };
        // The first label of a qualified name is in use as a name as well.
        let short = name.split('.').next().unwrap_or(name);
        for name in [name, short] {
            if !matches!(name, "" | "localhost" | "here") {
                self.hosts
                    .entry(name.to_lowercase())
                    // The first role of a name stays, so that one host has one role.
                    .or_insert_with(|| role.to_owned());
            }
        }
    }

    fn replace(&mut self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.text(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.replace(item)),
            Value::Object(members) => {
                let renamed = std::mem::take(members).into_iter().map(|(key, mut value)| {
                    self.replace(&mut value);
                    (self.text(&key), value)
                });
                *members = renamed.collect();
            }
            _ => {}
        }
    }

    /// The text with every word replaced that is a name or an address.
    fn text(&mut self, text: &str) -> String {
        let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | ':' | '-' | '_');
        let mut out = String::with_capacity(text.len());

        let mut rest = text;
        while let Some(begin) = rest.find(is_word) {
            let (before, from) = rest.split_at(begin);
            let (word, after) = from.split_at(from.find(|c| !is_word(c)).unwrap_or(from.len()));
            out.push_str(before);
            out += &self.word(word);
            rest = after;
        }

        out.push_str(rest);
        out
    }

    fn word(&mut self, word: &str) -> String {
        if let Ok(address) = word.parse::<SocketAddr>() {
            return SocketAddr::new(self.address(address.ip()), address.port()).to_string();
        }
        if let Ok(address) = word.parse::<IpAddr>() {
            return self.address(address).to_string();
        }

        if is_hardware_address(word) {
            let number = self.hardware.len() + 1;
            let known = self.hardware.entry(word.to_lowercase());
            return known
                .or_insert_with(|| format!("02:00:00:00:00:{:02x}", number & 0xFF))
                .clone();
        }

        // A name may have a port behind it.
        match word.split_once(':') {
            Some((name, rest)) => format!("{}:{}", self.dotted(name), self.word(rest)),
            None => self.dotted(word),
        }
    }

    fn dotted(&mut self, word: &str) -> String {
        // A full stop may end the sentence, or a qualified name.
        let bare = word.trim_end_matches('.');
        if let Ok(address) = bare.parse::<IpAddr>() {
            return format!("{}{}", self.address(address), &word[bare.len()..]);
        }

        match self.hosts.get(&bare.to_lowercase()) {
            Some(role) => format!("{role}{}", &word[bare.len()..]),
            None => word.to_owned(),
        }
    }

    fn address(&mut self, address: IpAddr) -> IpAddr {
        // These addresses are the same on every host.
        if address.is_loopback() || address.is_unspecified() {
            return address;
        }

        let number = u32::try_from(self.addresses.len() + 1).unwrap_or(u32::MAX);
        *self
            .addresses
            .entry(address)
            .or_insert_with(|| match address {
                // 192.0.2.0/24 for documentation (RFC 5737); what does not fit has addresses of
                // 198.18.0.0/15 for benchmarks (RFC 2544).
                IpAddr::V4(_) => match u8::try_from(number) {
                    Ok(last) => Ipv4Addr::new(192, 0, 2, last),
                    Err(_) => Ipv4Addr::from_bits((0xc612_0000_u32).wrapping_add(number)),
                }
                .into(),
                IpAddr::V6(_) => {
                    Ipv6Addr::from_bits((0x2001_0db8_u128 << 96) | u128::from(number)).into()
                }
            })
    }
}

/// Names that a host has for itself.
fn names_of(host: Option<&HostPart>) -> impl Iterator<Item = &str> {
    let of_snapshot = host
        .and_then(|host| host.snapshot.as_ref())
        .map(|snapshot| snapshot.host.as_str());
    host.map(|host| host.name.as_str())
        .into_iter()
        .chain(of_snapshot)
}

fn is_hardware_address(word: &str) -> bool {
    let bytes: Vec<&str> = word.split(':').collect();
    bytes.len() == 6
        && bytes
            .iter()
            .all(|byte| byte.len() == 2 && byte.chars().all(|c| c.is_ascii_hexdigit()))
}
