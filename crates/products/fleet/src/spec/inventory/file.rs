//! The project's own inventory: a TOML file whose unknown keys are errors.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::Deserialize;
use toml::Spanned;

use super::nearest::nearest;
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

    let racks = racks(text, &file.racks)?;
    // Racks need no tables where none is described.
    let unknown = hosts.iter().find(|host| {
        host.rack
            .as_ref()
            .is_some_and(|rack| !racks.is_empty() && !racks.contains_key(rack))
    });
    if let Some(host) = unknown {
        let text = format!(
            "host {}: rack {:?} has no table [racks.…]",
            host.id,
            host.rack.as_deref().unwrap_or_default()
        );
        return Err(InventoryError::new(host.line, text));
    }

    let (name, ports, control) = fleet(text, file.fleet)?;
    // An inventory that names test addresses has a network apart from that of ssh.
    let has_paths = hosts.iter().any(|host| !host.paths.is_empty());
    let control = control.unwrap_or(if has_paths {
        Control::Separate
    } else {
        Control::Shared
    });

    check::inventory(Inventory {
        name,
        ports,
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

/// The hosts of an entry: its name is a range, and other ranges have as many values or one.
fn expanded(line: usize, entry: &HostEntry) -> Result<Vec<Host>, InventoryError> {
    let wrong = |text: String| InventoryError::new(Some(line), text);
    if entry.ssh.is_some() && entry.server.is_some() {
        return Err(wrong("a host has ssh or server, not both".to_owned()));
    }

    let names = expand(&entry.name).map_err(|error| wrong(format!("name: {error}")))?;
    let mut hosts = Vec::with_capacity(names.len());

    for name in &names {
        hosts.push(Host {
            labels: entry.labels.clone(),
            ..Host::named(name, Some(line))?
        });
    }

    let paired = |key: &str, pattern: &Option<String>| {
        pattern.as_ref().map_or(Ok(Vec::new()), |pattern| {
            values_for(names.len(), pattern).map_err(|text| wrong(format!("{key}: {text}")))
        })
    };
    for (host, destination) in hosts.iter_mut().zip(paired("ssh", &entry.ssh)?) {
        host.reach = Reach::Ssh(destination);
    }

    for (host, address) in hosts.iter_mut().zip(paired("server", &entry.server)?) {
        host.reach = Reach::Server(address);
    }

    for (host, rack) in hosts.iter_mut().zip(paired("rack", &entry.rack)?) {
        host.rack = Some(rack);
    }

    for (path, pattern) in &entry.paths {
        let place = |text: String| wrong(format!("paths.{path}: {text}"));
        for (host, address) in hosts
            .iter_mut()
            .zip(values_for(names.len(), pattern).map_err(place)?)
        {
            let parsed: Result<IpAddr, _> = address.parse();
            host.paths.insert(
                path.clone(),
                parsed.map_err(|_| place(format!("{address:?} is no address")))?,
            );
        }
    }

    Ok(hosts)
}

/// One value for each of `count` names.
fn values_for(count: usize, pattern: &str) -> Result<Vec<String>, String> {
    let values = expand(pattern).map_err(|error| error.to_string())?;
    match values.as_slice() {
        [one] => Ok(vec![one.clone(); count]),
        _ if values.len() == count => Ok(values),
        _ => Err(format!("{} values for {count} names", values.len())),
    }
}

fn fleet(
    text: &str,
    fleet: Fleet,
) -> Result<(Option<String>, Ports, Option<Control>), InventoryError> {
    let wrong = |value: &Spanned<String>, expected: &str| {
        let line = line_at(text, value.span().start);
        InventoryError::new(
            Some(line),
            format!("{:?} is no {expected}", value.get_ref()),
        )
    };
    let name = fleet.name.map(|name| {
        if is_site(name.get_ref()) {
            Ok(name)
        } else {
            Err(wrong(&name, SITE))
        }
    });

    let ports = fleet
        .ports
        .map(|value| ports_of(value.get_ref()).ok_or_else(|| wrong(&value, PORTS)));
    Ok((
        name.transpose()?.map(Spanned::into_inner),
        ports.transpose()?.unwrap_or(PORTS_DEFAULT),
        fleet.control,
    ))
}

const SITE: &str = "name of a site: 1 to 32 of a-z 0-9 -";
const PORTS: &str = "range of ports; example: 5201-5209";
const RATE: &str = "rate; example: 40G";

fn racks(
    text: &str,
    entries: &BTreeMap<String, RackEntry>,
) -> Result<BTreeMap<String, Rack>, InventoryError> {
    let mut racks = BTreeMap::new();
    for (name, entry) in entries {
        let uplink_bps = entry.uplink.as_ref().map(|value| {
            let line = line_at(text, value.span().start);
            let wrong =
                || InventoryError::new(Some(line), format!("{:?} is no {RATE}", value.get_ref()));
            rate_bps(value.get_ref()).ok_or_else(wrong)
        });
        racks.insert(
            name.clone(),
            Rack {
                uplink_bps: uplink_bps.transpose()?,
                crossing: entry.crossing,
            },
        );
    }

    Ok(racks)
}

fn is_site(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=32).contains(&text.len()) && text.bytes().all(is_allowed)
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
