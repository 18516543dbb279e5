//! Hosts of a fleet from files of the user: TOML of our own, the JSON of `ansible-inventory --list`,
//! names of an ssh configuration.
//!
//! Readers are functions of texts. Who includes other files passes a function that reads them.

mod ansible;
mod check;
mod file;
mod range;
pub mod ssh_names;

use std::collections::BTreeMap;
use std::net::IpAddr;

use linerate_model::fleet::HostIdError;
use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use ansible::from_json as from_ansible_json;
pub use check::{host_port, inventory as checked};
pub use file::parse as from_toml;
pub use range::{expand, expand_list};

use crate::HostId;
use crate::protocol::message::Ports;

/// Most bytes of an inventory.
pub const TEXT_MAX_BYTES: usize = 4 << 20;
/// Most hosts.
pub const HOSTS_MAX: usize = 10_000;
/// Most paths of a host.
pub const PATHS_MAX: usize = 16;
/// Most labels of a host.
pub const LABELS_MAX: usize = 64;
/// Ports of tests where the inventory names none.
pub const PORTS_DEFAULT: Ports = Ports {
    first: 5201,
    last: 5209,
};

/// Hosts and what is known about them before a connection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Inventory {
    /// Name of the site, `[a-z0-9-]{1,32}`.
    pub name: Option<String>,
    /// Ports of tests.
    pub ports: Ports,
    /// Relation of the tests to the control path: on shared ports or separate.
    pub control: Control,
    /// Racks by name.
    pub racks: BTreeMap<String, Rack>,
    /// The hosts in the order of the text, servers without an agent behind those with one.
    pub hosts: Vec<Host>,
}

impl Default for Inventory {
    fn default() -> Self {
        Self {
            name: None,
            ports: PORTS_DEFAULT,
            control: Control::Shared,
            racks: BTreeMap::new(),
            hosts: Vec::new(),
        }
    }
}

impl Inventory {
    /// Tests share the network of the control path, or it is not known that they do not.
    pub(crate) fn is_control_shared(&self) -> bool {
        self.control == Control::Shared
    }
}

/// Relation of control path and tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Control {
    /// Tests must not use the port of the control path. The default of inventories with paths.
    Separate,
    /// Tests and control use the same network.
    Shared,
}

/// A rack and its link to the others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rack {
    /// Rate of the uplink.
    pub uplink_bps: Option<u64>,
    /// Most pairs that cross the uplink at once.
    pub crossing: Option<u32>,
}

/// A host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// Its id in every report.
    pub id: HostId,
    /// Line of the inventory; `None` where the format has none.
    #[serde(skip)]
    pub line: Option<usize>,
    /// The way to the host.
    pub reach: Reach,
    /// Its rack.
    pub rack: Option<String>,
    /// Names and values of the user.
    pub labels: BTreeMap<String, String>,
    /// Test addresses by the name of the path. Empty: the address of the control path.
    pub paths: BTreeMap<String, IpAddr>,
}

/// The way to a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reach {
    /// Destination of ssh(1).
    Ssh(String),
    /// A server without an agent, `HOST:PORT`, that is tested with hosts that have one.
    Server(String),
}

/// Why a text is no inventory.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{}{text}", .line.map(|line| format!("line {line}: ")).unwrap_or_default())]
pub struct InventoryError {
    /// Line, from 1; `None` where it is not known.
    pub line: Option<usize>,
    /// The problem.
    pub text: String,
}

impl InventoryError {
    fn new(line: Option<usize>, text: impl Into<String>) -> Self {
        Self {
            line,
            text: text.into(),
        }
    }
}

/// Reads an inventory whose format is recognised by its text: JSON begins with `{`, TOML has a
/// table `[[host]]` or `[fleet]`. INI and YAML files of Ansible are read by Ansible alone, which
/// knows their variables.
///
/// # Errors
/// When the text is no inventory or is beyond a bound.
pub fn parse(text: &str) -> Result<Inventory, InventoryError> {
    let is_toml = |line: &str| {
        let line = line.split('#').next().unwrap_or_default();
        ["[[host]]", "[fleet]"].contains(&line.trim())
    };
    // No TOML document begins with a brace (TOML 1.0), and each JSON object does.
    if text.trim_start().starts_with('{') {
        from_ansible_json(text)
    } else if text.lines().any(is_toml) {
        from_toml(text)
    } else {
        check_size(text)?;
        Err(InventoryError::new(
            None,
            "neither TOML with [[host]] nor JSON; for an inventory of Ansible use: \
             ansible-inventory --list | linerate fleet … -i -",
        ))
    }
}

/// An inventory of names alone, as of `--hosts` and of an ssh configuration.
///
/// # Errors
/// When a name is no host id, occurs twice, or too many are given.
pub fn from_names(names: impl IntoIterator<Item = String>) -> Result<Inventory, InventoryError> {
    let mut inventory = Inventory::default();
    // One name beyond the bound is enough for the check to report it.
    for name in names.into_iter().take(HOSTS_MAX + 1) {
        inventory.hosts.push(Host::named(&name, None)?);
    }
    check::inventory(inventory)
}

impl Host {
    fn named(name: &str, line: Option<usize>) -> Result<Self, InventoryError> {
        let id = name
            .parse()
            .map_err(|error: HostIdError| InventoryError::new(line, error.to_string()))?;
        let reach = Reach::Ssh(name.to_owned());
        Ok(Self {
            id,
            line,
            reach,
            rack: None,
            labels: BTreeMap::new(),
            paths: BTreeMap::new(),
        })
    }
}

fn check_size(text: &str) -> Result<(), InventoryError> {
    if text.len() <= TEXT_MAX_BYTES {
        return Ok(());
    }

    Err(InventoryError::new(
        None,
        format!("{} bytes, at most {TEXT_MAX_BYTES} are allowed", text.len()),
    ))
}

#[cfg(test)]
mod tests;
