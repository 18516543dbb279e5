//! The project's own inventory: a TOML file whose unknown keys are errors.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

use super::range::expand;
use super::{
    Control, HOSTS_MAX, Host, Inventory, InventoryError, PORTS_DEFAULT, Rack, Reach, check,
    check_size,
};
use crate::protocol::message::Ports;

/// Reads an inventory.
///
/// # Errors
/// The first thing that is wrong, with its line.
pub fn parse(text: &str) -> Result<Inventory, InventoryError> {
    check_size(text)?;
    let file: File = toml::from_str(text).map_err(|error| syntax(text, &error))?;
    let mut hosts = Vec::new();

    for entry in &file.host {
        let line = line_at(text, entry.span().start);
        hosts.extend(expanded(line, entry.get_ref())?);
        // The bound holds per entry, so that ranges do not fill memory before the check.
        if hosts.len() > HOSTS_MAX {
            return Err(InventoryError::new(
                Some(line),
                format!("more than {HOSTS_MAX} hosts"),
            ));
        }
    }

    let mut racks = BTreeMap::new();
    for (name, entry) in file.racks {
        let rack = Rack {
            uplink_bps: value(text, entry.uplink, "rate; example: 40G", rate_bps)?,
            crossing: entry.crossing,
        };
        racks.insert(name, rack);
    }

    for host in &hosts {
        // Racks need no tables where none is described.
        if let Some(rack) = &host.rack
            && !racks.is_empty()
            && !racks.contains_key(rack)
        {
            let text = format!("host {}: rack {rack:?} has no table [racks.…]", host.id);
            return Err(InventoryError::new(host.line, text));
        }
    }

    let fleet = file.fleet;
    // An inventory that names test addresses has a network apart from that of ssh.
    let control = match fleet.control {
        Some(control) => control,
        None if hosts.iter().any(|host| !host.paths.is_empty()) => Control::Separate,
        None => Control::Shared,
    };

    check::inventory(Inventory {
        name: value(text, fleet.name, SITE, site)?,
        ports: value(text, fleet.ports, PORTS, ports_of)?.unwrap_or(PORTS_DEFAULT),
        control,
        racks,
        hosts,
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    fleet: Fleet,
    #[serde(default)]
    racks: BTreeMap<String, RackEntry>,
    #[serde(default)]
    host: Vec<Spanned<HostEntry>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Fleet {
    name: Option<Spanned<String>>,
    ports: Option<Spanned<String>>,
    control: Option<Control>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RackEntry {
    uplink: Option<Spanned<String>>,
    crossing: Option<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HostEntry {
    name: String,
    ssh: Option<String>,
    server: Option<String>,
    rack: Option<String>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(default)]
    paths: BTreeMap<String, String>,
}

/// The error with its line; an unknown key with the nearest known one.
fn syntax(text: &str, error: &toml::de::Error) -> InventoryError {
    let line = error.span().map(|span| line_at(text, span.start));
    let message = error.message();
    // The message has names between backquotes: every second part is one.
    let mut quoted = message.split('`').skip(1).step_by(2);
    let unknown = quoted
        .next()
        .filter(|_| message.starts_with("unknown field"));
    let Some(unknown) = unknown else {
        return InventoryError::new(line, message);
    };
    let hint =
        nearest(unknown, quoted).map_or_else(String::new, |key| format!("; did you mean {key:?}?"));

    InventoryError::new(line, format!("unknown key {unknown:?}{hint}"))
}

fn line_at(text: &str, offset: usize) -> usize {
    1 + text
        .bytes()
        .take(offset)
        .filter(|byte| *byte == b'\n')
        .count()
}

/// The candidate with the fewest edits, if they are few.
fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let with_edits = candidates
        .into_iter()
        .map(|candidate| (edits(name, candidate), candidate));
    let (count, candidate) = with_edits.min()?;
    (count <= name.chars().count().max(3) / 2).then_some(candidate)
}

/// Longer names are compared by their begin: the time grows with the product of the lengths.
const LENGTH_MAX: usize = 64;

fn edits(from: &str, to: &str) -> usize {
    let [from, to] = [from, to].map(|name| name.chars().take(LENGTH_MAX).collect::<String>());
    strsim::levenshtein(&from, &to)
}

/// The hosts of an entry: its name is a range, and other ranges have as many values or one.
fn expanded(line: usize, entry: &HostEntry) -> Result<Vec<Host>, InventoryError> {
    let wrong = |text: String| InventoryError::new(Some(line), text);
    if entry.ssh.is_some() && entry.server.is_some() {
        return Err(wrong("a host has ssh or server, not both".to_owned()));
    }

    let names = expand(&entry.name).map_err(|error| wrong(format!("name: {error}")))?;
    let mut hosts = Vec::with_capacity(names.len());
    for name in &names {
        let mut host = Host::named(name, Some(line))?;
        host.labels.clone_from(&entry.labels);
        hosts.push(host);
    }

    let paired = |key: &str, pattern: &str| {
        values_for(names.len(), pattern).map_err(|text| wrong(format!("{key}: {text}")))
    };
    if let Some(pattern) = &entry.ssh {
        for (host, destination) in hosts.iter_mut().zip(paired("ssh", pattern)?) {
            host.reach = Reach::Ssh(destination);
        }
    }

    if let Some(pattern) = &entry.server {
        for (host, address) in hosts.iter_mut().zip(paired("server", pattern)?) {
            host.reach = Reach::Server(address);
        }
    }

    if let Some(pattern) = &entry.rack {
        for (host, rack) in hosts.iter_mut().zip(paired("rack", pattern)?) {
            host.rack = Some(rack);
        }
    }

    for (path, pattern) in &entry.paths {
        let key = format!("paths.{path}");
        for (host, text) in hosts.iter_mut().zip(paired(&key, pattern)?) {
            let address = text
                .parse()
                .map_err(|_| wrong(format!("{key}: {text:?} is no address")))?;
            host.paths.insert(path.clone(), address);
        }
    }

    Ok(hosts)
}

/// One value for each of `count` names.
fn values_for(count: usize, pattern: &str) -> Result<Vec<String>, String> {
    let values = expand(pattern)?;
    match values.as_slice() {
        [one] => Ok(vec![one.clone(); count]),
        _ if values.len() == count => Ok(values),
        _ => Err(format!("{} values for {count} names", values.len())),
    }
}

/// A value with a form of its own.
fn value<T>(
    text: &str,
    value: Option<Spanned<String>>,
    expected: &str,
    parse: fn(&str) -> Option<T>,
) -> Result<Option<T>, InventoryError> {
    let Some(value) = value else {
        return Ok(None);
    };
    let parsed = parse(value.get_ref());
    if parsed.is_none() {
        let line = line_at(text, value.span().start);
        let text = format!("{:?} is no {expected}", value.get_ref());
        return Err(InventoryError::new(Some(line), text));
    }

    Ok(parsed)
}

const SITE: &str = "name of a site: 1 to 32 of a-z 0-9 -";
const PORTS: &str = "range of ports; example: 5201-5209";

fn site(text: &str) -> Option<String> {
    let is_allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let is_site = (1..=32).contains(&text.len()) && text.bytes().all(is_allowed);
    is_site.then(|| text.to_owned())
}

fn ports_of(text: &str) -> Option<Ports> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let ports = Ports {
        first: first.trim().parse().ok()?,
        last: last.trim().parse().ok()?,
    };
    (ports.first > 0 && ports.first <= ports.last).then_some(ports)
}

/// A number with K, M, G or T of 1000.
fn rate_bps(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor: f64 = match text.get(digits.len()..)? {
        "" => 1.0,
        "K" | "k" => 1e3,
        "M" | "m" => 1e6,
        "G" | "g" => 1e9,
        "T" | "t" => 1e12,
        _ => return None,
    };
    let rate = digits.parse::<f64>().ok()? * factor;

    (rate.is_finite() && (1.0..=1e18).contains(&rate)).then_some(rate as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_edits_give_a_suggestion_and_many_give_none() {
        let keys = ["name", "ssh", "rack", "labels", "paths", "server"];
        assert_eq!(nearest("label", keys), Some("labels"));
        assert_eq!(nearest("pahts", keys), Some("paths"));
        assert_eq!(nearest("hostname", keys), Some("name"));
        assert_eq!(nearest("frequency", keys), None);
        assert_eq!(edits("kitten", "sitting"), 3);
        assert_eq!(edits(&"a".repeat(1 << 20), &"a".repeat(64)), 0);
    }
}
