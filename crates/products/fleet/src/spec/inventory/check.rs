//! Rules that hold for inventories of all formats.

use std::collections::HashMap;
use std::hash::Hash;

use crate::HostId;

use super::{HOSTS_MAX, Host, Inventory, InventoryError, LABELS_MAX, PATHS_MAX, Reach};

/// Longest destination and label in bytes.
const TEXT_MAX_BYTES: usize = 255;

/// The inventory when it fits all bounds.
///
/// Servers without an agent move behind the hosts with one, so that both ends of a control
/// connection number the hosts alike.
///
/// # Errors
/// The first host that does not, or that has the name or the address of another one.
pub fn inventory(mut inventory: Inventory) -> Result<Inventory, InventoryError> {
    if inventory.hosts.len() > HOSTS_MAX {
        return Err(InventoryError::new(
            None,
            format!("more than {HOSTS_MAX} hosts"),
        ));
    }

    inventory.hosts.iter().try_for_each(host)?;
    let hosts = &inventory.hosts;
    // Ids differ in any case: they name files.
    let name = |host: &Host| vec![host.id.as_str().to_ascii_lowercase()];
    unique(hosts, name, |id, _, first| {
        format!("host {id} is the same as {first}")
    })?;
    unique(
        hosts,
        |host| host.paths.iter().collect(),
        |id, (path, address), first| {
            format!("host {id}: {address} of path {path} is that of {first}")
        },
    )?;
    // One server under two names would have two tests at a time.
    unique(hosts, servers, |id, server, first| {
        format!("host {id}: {server} is the server of {first}")
    })?;
    inventory
        .hosts
        .sort_by_key(|host| matches!(host.reach, Reach::Server(_)));

    Ok(inventory)
}

fn servers(host: &Host) -> Vec<&String> {
    match &host.reach {
        Reach::Server(server) => vec![server],
        Reach::Ssh(_) => Vec::new(),
    }
}

/// No host has a key of another one. `text` says so of a host, its key and the other host.
fn unique<'a, K: Hash + Eq + Clone>(
    hosts: &'a [Host],
    keys: impl Fn(&'a Host) -> Vec<K>,
    text: impl Fn(&HostId, K, String) -> String,
) -> Result<(), InventoryError> {
    let mut seen: HashMap<K, &Host> = HashMap::new();
    for host in hosts {
        for key in keys(host) {
            let Some(first) = seen.insert(key.clone(), host) else {
                continue;
            };
            let line = first.line.map(|line| format!(" in line {line}"));
            let first = format!("host {}{}", first.id, line.unwrap_or_default());
            return Err(InventoryError::new(host.line, text(&host.id, key, first)));
        }
    }

    Ok(())
}

fn host(host: &Host) -> Result<(), InventoryError> {
    let wrong = |text: String| {
        Err(InventoryError::new(
            host.line,
            format!("host {}: {text}", host.id),
        ))
    };
    if host.paths.len() > PATHS_MAX {
        return wrong(format!("more than {PATHS_MAX} paths"));
    }
    if host.labels.len() > LABELS_MAX {
        return wrong(format!("more than {LABELS_MAX} labels"));
    }

    let (Reach::Ssh(destination) | Reach::Server(destination)) = &host.reach;
    if !is_destination(destination) {
        return wrong(format!("{destination:?} is no destination"));
    }
    if matches!(&host.reach, Reach::Server(server) if host_port(server).is_none()) {
        return wrong(format!(
            "{destination:?} is no HOST:PORT; example: 10.0.0.250:5201"
        ));
    }

    for text in host
        .labels
        .iter()
        .flat_map(|(name, value)| [name, value])
        .chain(&host.rack)
    {
        if text.len() > TEXT_MAX_BYTES || text.chars().any(char::is_control) {
            return wrong(format!("{text:?} is too long or has control characters"));
        }
    }

    match host
        .paths
        .keys()
        .find(|path| !crate::protocol::message::is_name(path, 32))
    {
        Some(path) => wrong(format!(
            "{path:?} is no name of a path: 1 to 32 of A-Z a-z 0-9 _ -"
        )),
        None => Ok(()),
    }
}

/// Name or address, and port, of `HOST:PORT` or `[ADDRESS]:PORT`.
pub fn host_port(text: &str) -> Option<(&str, u16)> {
    let (host, port) = text.rsplit_once(':')?;
    let port = port.parse::<u16>().ok().filter(|port| *port > 0)?;
    let host = match host.strip_prefix('[') {
        Some(address) => address.strip_suffix(']')?,
        None => Some(host).filter(|host| !host.contains(':'))?,
    };
    (!host.is_empty()).then_some((host, port))
}

/// It cannot be read as an option of ssh(1), and is one word.
fn is_destination(text: &str) -> bool {
    (1..=TEXT_MAX_BYTES).contains(&text.len())
        && !text.starts_with('-')
        && !text.chars().any(|c| c.is_control() || c.is_whitespace())
}
