//! The JSON of `ansible-inventory --list`: hosts, groups and connection variables.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value;

use super::{Host, Inventory, InventoryError, Reach, check, check_size};

/// Most groups of an inventory.
const GROUPS_MAX: usize = 4096;

/// A group of hosts and of other groups.
#[derive(Deserialize)]
struct Group {
    #[serde(default)]
    hosts: Vec<String>,
    #[serde(default)]
    children: Vec<String>,
}

#[derive(Default, Deserialize)]
struct Meta {
    #[serde(default)]
    hostvars: BTreeMap<String, Variables>,
}

type Variables = BTreeMap<String, Value>;

/// Reads the JSON of `ansible-inventory --list`, whose variables of hosts are complete.
///
/// # Errors
/// When the text is no such JSON or is beyond a bound.
pub fn from_json(text: &str) -> Result<Inventory, InventoryError> {
    check_size(text)?;
    let wrong = |text: String| InventoryError::new(None, text);
    let mut members: BTreeMap<String, Value> = serde_json::from_str(text).map_err(|error| {
        let line = Some(error.line()).filter(|line| *line > 0);
        InventoryError::new(line, error.to_string())
    })?;
    let mut meta = Meta::default();
    if let Some(value) = members.remove("_meta") {
        meta = serde_json::from_value(value).map_err(|error| wrong(format!("_meta: {error}")))?;
    }
    if members.len() > GROUPS_MAX {
        return Err(wrong(format!("more than {GROUPS_MAX} groups")));
    }

    let mut groups = BTreeMap::new();
    for (name, value) in members {
        let group: Group =
            serde_json::from_value(value).map_err(|error| wrong(format!("{name}: {error}")))?;
        groups.insert(name, group);
    }

    let mut inventory = Inventory::default();
    for (name, groups) in groups_by_host(&groups) {
        let mut host = Host::named(name, None)?;
        if let Some(variables) = meta.hostvars.get(name) {
            let destination = destination(name, variables);
            host.reach =
                Reach::Ssh(destination.map_err(|text| wrong(format!("host {name}: {text}")))?);
        }

        for group in groups {
            // `all` has every host and `ungrouped` those without a group, so they say nothing.
            if !["all", "ungrouped"].contains(&group) {
                host.labels
                    .insert(format!("group.{group}"), "yes".to_owned());
            }
        }
        inventory.hosts.push(host);
    }

    check::inventory(inventory)
}

/// All groups of each host, those around its own included.
fn groups_by_host(groups: &BTreeMap<String, Group>) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut of_hosts: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for name in groups.keys() {
        // Groups may contain each other, so each is visited once.
        let mut seen = BTreeSet::from([name]);
        let mut open = vec![name];
        while let Some(within) = open.pop() {
            let Some(group) = groups.get(within) else {
                continue;
            };
            for host in &group.hosts {
                of_hosts.entry(host).or_default().insert(name);
            }
            for child in &group.children {
                if seen.insert(child) {
                    open.push(child);
                }
            }
        }
    }

    of_hosts
}

/// Destination of ssh(1) by the variables of a host; a port makes it an URI. Variables that do not
/// concern the connection are passed over.
fn destination(name: &str, variables: &Variables) -> Result<String, String> {
    let mut host = name.to_owned();
    let mut user = String::new();
    let mut port = None;
    for (key, value) in variables {
        match &**key {
            "ansible_host" | "ansible_ssh_host" => host = plain(key, value)?,
            "ansible_user" | "ansible_ssh_user" => user = plain(key, value)? + "@",
            "ansible_port" | "ansible_ssh_port" => port = Some(plain(key, value)?),
            _ => {}
        }
    }

    let Some(port) = port else {
        return Ok(user + &host);
    };
    if port.parse::<u16>().is_err() {
        return Err(format!("{port:?} is no port"));
    }
    // The brackets separate the colons of an IPv6 address from that of the port (RFC 3986, 3.2.2).
    if host.contains(':') {
        host = format!("[{host}]");
    }
    Ok(format!("ssh://{user}{host}:{port}"))
}

/// The text of a variable.
fn plain(name: &str, value: &Value) -> Result<String, String> {
    // Ports are numbers in JSON.
    let text = value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned);
    // Templates are evaluated by Ansible alone, from variables that are not in this text.
    if text.contains("{{") {
        return Err(format!(
            "{name} is a template; use: ansible-inventory --list | linerate fleet … -i -"
        ));
    }

    Ok(text)
}
