//! The JSON of `ansible-inventory --list`: hosts, groups and connection variables.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value;

use super::groups::{GROUPS_MAX, Group, Groups};
use super::{Host, Inventory, InventoryError, Reach, check, check_size};

/// Prefix of the labels of groups.
const GROUP_LABEL: &str = "group.";

/// Connection of a host, as far as Ansible's variables state it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Connection {
    host: Option<String>,
    user: Option<String>,
    port: Option<String>,
}

impl Connection {
    /// Takes a variable; those that do not concern the connection are passed over.
    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let place = match name {
            "ansible_host" | "ansible_ssh_host" => &mut self.host,
            "ansible_user" | "ansible_ssh_user" => &mut self.user,
            "ansible_port" | "ansible_ssh_port" => &mut self.port,
            _ => return Ok(()),
        };
        // Templates are evaluated by Ansible alone, from variables that are not in this text.
        if value.contains("{{") {
            return Err(format!(
                "{name} is a template; use: ansible-inventory --list | linerate fleet … -i -"
            ));
        }

        *place = Some(value.to_owned());
        Ok(())
    }

    /// Destination of ssh(1); a port makes it an URI.
    fn destination(&self, name: &str) -> String {
        let host = self.host.as_deref().unwrap_or(name);
        let user = self
            .user
            .as_ref()
            .map_or_else(String::new, |user| format!("{user}@"));

        match &self.port {
            // The brackets separate the colons of an IPv6 address from that of the port (RFC 3986,
            // 3.2.2).
            Some(port) if host.contains(':') => format!("ssh://{user}[{host}]:{port}"),
            Some(port) => format!("ssh://{user}{host}:{port}"),
            None => format!("{user}{host}"),
        }
    }
}

/// A host of an inventory with its groups as labels.
fn host(
    name: &str,
    connection: &Connection,
    groups: &BTreeSet<&str>,
) -> Result<Host, InventoryError> {
    let mut host = Host::named(name, None)?;
    if let Some(port) = connection
        .port
        .as_ref()
        .filter(|port| port.parse::<u16>().is_err())
    {
        return Err(InventoryError::new(
            None,
            format!("host {name}: {port:?} is no port"),
        ));
    }

    host.reach = Reach::Ssh(connection.destination(name));
    let named = groups
        .iter()
        // `all` has every host and `ungrouped` those without a group, so they say nothing.
        .filter(|group| !matches!(**group, "all" | "ungrouped"));
    host.labels = named
        .map(|group| (format!("{GROUP_LABEL}{group}"), "yes".to_owned()))
        .collect();

    Ok(host)
}

/// Reads the JSON of `ansible-inventory --list`, whose variables of hosts are complete.
///
/// # Errors
/// When the text is no such JSON or is beyond a bound.
pub fn from_json(text: &str) -> Result<Inventory, InventoryError> {
    check_size(text)?;
    let mut groups: BTreeMap<String, Value> =
        serde_json::from_str(text).map_err(|error| at(&error))?;
    let meta = groups
        .remove("_meta")
        .map(serde_json::from_value::<Meta>)
        .transpose();
    let meta = meta
        .map_err(|error| InventoryError::new(None, format!("_meta: {error}")))?
        .unwrap_or_default();

    if groups.len() > GROUPS_MAX {
        return Err(InventoryError::new(
            None,
            format!("more than {GROUPS_MAX} groups"),
        ));
    }

    let groups = groups.into_iter().map(|(name, value)| {
        let group = serde_json::from_value::<Group>(value);
        group
            .map(|group| (name.clone(), group))
            .map_err(|error| InventoryError::new(None, format!("{name}: {error}")))
    });
    let groups = Groups(groups.collect::<Result<_, _>>()?);
    let mut inventory = Inventory::default();

    for (name, groups) in groups.of_hosts() {
        let mut connection = Connection::default();
        for (key, value) in meta.hostvars.get(name).into_iter().flatten() {
            let value = value
                .as_str()
                // Ports are numbers in JSON.
                .map_or_else(|| value.to_string(), str::to_owned);
            connection
                .set(key, &value)
                .map_err(|text| InventoryError::new(None, format!("host {name}: {text}")))?;
        }

        inventory.hosts.push(host(name, &connection, &groups)?);
    }

    check::inventory(inventory)
}

fn at(error: &serde_json::Error) -> InventoryError {
    InventoryError::new(
        Some(error.line()).filter(|line| *line > 0),
        error.to_string(),
    )
}

#[derive(Default, Deserialize)]
struct Meta {
    #[serde(default)]
    hostvars: BTreeMap<String, BTreeMap<String, Value>>,
}
