//! Rules that hold for inventories of all formats.

use std::collections::HashMap;

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
    unique_ids(&inventory.hosts)?;
    unique_addresses(&inventory.hosts)?;
    unique_servers(&inventory.hosts)?;
    inventory
        .hosts
        .sort_by_key(|host| matches!(host.reach, Reach::Server(_)));

    Ok(inventory)
}

/// Ids differ in any case: they name files.
fn unique_ids(hosts: &[Host]) -> Result<(), InventoryError> {
    let mut seen: HashMap<String, &Host> = HashMap::new();
    for host in hosts {
        let Some(first) = seen.insert(host.id.as_str().to_ascii_lowercase(), host) else {
            continue;
        };
        let text = format!(
            "host {} is the same as host {}{}",
            host.id,
            first.id,
            place(first)
        );
        return Err(InventoryError::new(host.line, text));
    }

    Ok(())
}

fn unique_addresses(hosts: &[Host]) -> Result<(), InventoryError> {
    let mut seen = HashMap::new();
    for host in hosts {
        for (path, address) in &host.paths {
            let Some(first) = seen.insert((path, address), host) else {
                continue;
            };
            let text = format!(
                "host {}: {address} of path {path} is that of host {}{}",
                host.id,
                first.id,
                place(first)
            );
            return Err(InventoryError::new(host.line, text));
        }
    }

    Ok(())
}

/// One server under two names would have two tests at a time.
fn unique_servers(hosts: &[Host]) -> Result<(), InventoryError> {
    let mut seen = HashMap::new();
    for host in hosts {
        let Reach::Server(server) = &host.reach else {
            continue;
        };
        let Some(first) = seen.insert(server, host) else {
            continue;
        };
        let text = format!(
            "host {}: {server} is the server of host {}{}",
            host.id,
            first.id,
            place(first)
        );
        return Err(InventoryError::new(host.line, text));
    }

    Ok(())
}

fn place(host: &Host) -> String {
    host.line
        .map_or_else(String::new, |line| format!(" in line {line}"))
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
#[must_use]
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
