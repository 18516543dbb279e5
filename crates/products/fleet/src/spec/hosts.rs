//! Hosts of a fleet and the way to them.

use std::collections::BTreeSet;
use std::path::PathBuf;

use linerate_model::outcome::Error;
use serde::{Deserialize, Serialize};

use super::inventory::{Control, Host, Inventory, Reach};

/// Name of the path of hosts without one in the inventory.
pub(crate) const CONTROL_PATH: &str = "control";
/// Name of a site whose inventory has none.
pub const SITE_DEFAULT: &str = "fleet";

/// Hosts and the way to them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FleetHosts {
    /// The hosts.
    pub inventory: Inventory,
    /// Names of the paths that are tested; empty for the only one of the inventory.
    pub paths: Vec<String>,
    /// Configuration of ssh instead of the user's. It starts programs, so no record determines it.
    #[serde(skip)]
    pub ssh_config: Option<PathBuf>,
    /// The hosts run sh(1) and iperf3 instead of an agent.
    pub is_scripted: bool,
    /// The bus that carries the control connections; ssh without one. No record determines it.
    #[serde(skip)]
    pub bus: Option<BusOptions>,
}

/// A broker and the credentials for it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BusOptions {
    /// `nats://HOST:PORT` or `tls://HOST:PORT`.
    pub url: String,
    /// Certificates of the authorities that are trusted, instead of the system's (PEM).
    pub authority: Option<PathBuf>,
    /// Certificate of this client and its key (PEM).
    pub certificate: Option<(PathBuf, PathBuf)>,
    /// A file of nsc(1) with a token and a key, `.creds`.
    pub credentials: Option<PathBuf>,
}

impl FleetHosts {
    /// Name of the inventory; the number of hosts of one without a name.
    pub(crate) fn name(&self) -> String {
        self.inventory
            .name
            .clone()
            .unwrap_or_else(|| format!("{} hosts", self.inventory.hosts.len()))
    }

    /// Hosts with an agent, the first ones of the inventory.
    pub(crate) fn with_agent(&self) -> impl Iterator<Item = &Host> {
        self.inventory
            .hosts
            .iter()
            .filter(|host| matches!(host.reach, Reach::Ssh(_)))
    }

    /// Tests may use the network of the control connections.
    pub fn share_path(&mut self) {
        self.inventory.control = Control::Shared;
    }

    /// Names of the paths that are tested.
    ///
    /// # Errors
    /// No host has one of them, or none is named and there are several.
    pub(crate) fn path_names(&self) -> Result<Vec<String>, Error> {
        let mut names: BTreeSet<&String> = BTreeSet::new();
        for host in &self.inventory.hosts {
            names.extend(host.paths.keys());
        }
        for path in &self.paths {
            if !names.contains(path) {
                return Err(Error::usage(format!("no host has the path {path}")));
            }
        }

        // Names on the command line win over the inventory.
        if !self.paths.is_empty() {
            return Ok(self.paths.clone());
        }
        match names.len() {
            0 => Ok(vec![CONTROL_PATH.to_owned()]),
            1 => Ok(names.into_iter().cloned().collect()),
            count => Err(Error::usage(format!(
                "{count} paths in the inventory; name one with --path"
            ))),
        }
    }
}
