//! Rules that hold for inventories of all formats.

use std::collections::HashMap;

use super::{HOSTS_MAX, Host, Inventory, InventoryError, LABELS_MAX, PATHS_MAX, Reach};
use crate::protocol::message::is_name;

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
        let text = format!("more than {HOSTS_MAX} hosts");
        return Err(InventoryError::new(None, text));
    }

    let mut seen: HashMap<String, &Host> = HashMap::new();
    for host in &inventory.hosts {
        check(host)?;
        for (key, text) in unique(host) {
            let Some(first) = seen.insert(key, host) else {
                continue;
            };
            let line = first.line.map(|line| format!(" in line {line}"));
            let text = format!("{text} host {}{}", first.id, line.unwrap_or_default());
            return Err(InventoryError::new(host.line, text));
        }
    }
    inventory
        .hosts
        .sort_by_key(|host| matches!(host.reach, Reach::Server(_)));

    Ok(inventory)
}

/// What no other host has, and the begin of the text where one does.
fn unique(host: &Host) -> Vec<(String, String)> {
    let id = &host.id;
    // Ids differ in any case: they name files.
    let key = id.as_str().to_ascii_lowercase();
    let mut keys = vec![(key, format!("host {id} is the same as"))];

    for (path, address) in &host.paths {
        let text = format!("host {id}: {address} of path {path} is that of");
        keys.push((format!("{path} {address}"), text));
    }

    // One server under two names would have two tests at a time.
    if let Reach::Server(server) = &host.reach {
        let text = format!("host {id}: {server} is the server of");
        keys.push((format!("= {server}"), text));
    }

    keys
}

fn check(host: &Host) -> Result<(), InventoryError> {
    let wrong = |text: String| {
        let text = format!("host {}: {text}", host.id);
        Err(InventoryError::new(host.line, text))
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
    if matches!(host.reach, Reach::Server(_)) && host_port(destination).is_none() {
        return wrong(format!(
            "{destination:?} is no HOST:PORT; example: 10.0.0.250:5201"
        ));
    }

    let labels = host.labels.keys().chain(host.labels.values());
    for text in labels.chain(&host.rack) {
        if text.len() > TEXT_MAX_BYTES || text.chars().any(char::is_control) {
            return wrong(format!("{text:?} is too long or has control characters"));
        }
    }

    for path in host.paths.keys() {
        if !is_name(path, 32) {
            return wrong(format!(
                "{path:?} is no name of a path: 1 to 32 of A-Z a-z 0-9 _ -"
            ));
        }
    }

    Ok(())
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
