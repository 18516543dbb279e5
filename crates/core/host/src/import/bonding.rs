//! `/proc/net/bonding/*`: mode, hash policy and members of a bond.

use super::lines::*;
use crate::prelude::*;

const SRC: &str = "import:/proc/net/bonding";

/// Reads one file of that directory.
#[derive(Default)]
pub(super) struct Reader {
    /// The bond, and whether the command names it.
    bond: (String, bool),
    is_active: bool,
    /// The member that the lines describe.
    member: Option<String>,
    members: usize,
}

impl Reader {
    pub(super) fn new(block: &Block<'_>) -> Self {
        let named = block
            .kernel_file()
            .and_then(|path| path.strip_prefix("/proc/net/bonding/"));
        let named = named.filter(|name| !name.is_empty() && !name.contains('*'));

        // The file itself does not name the bond, and most hosts have one, of this name.
        let bond = (named.unwrap_or("bond0").to_owned(), named.is_some());
        Self {
            bond,
            ..Self::default()
        }
    }

    fn of_bond(&self, snapshot: &mut Snapshot, key: &str, value: &str) {
        let fact = match key {
            "Bonding Mode" => "mode",
            "Transmit Hash Policy" => "hash_policy",
            "Currently Active Slave" => "active",
            _ => return,
        };
        let key = format!("nic.{}.bond.{fact}", self.bond.0);

        // `layer2 (0)` has the number of the policy behind its name.
        let value = if fact == "hash_policy" {
            value.split_whitespace().next().unwrap_or(value)
        } else {
            value
        };
        snapshot.set(&key, value, SRC);

        if !self.bond.1 {
            snapshot.qualify(&key, Quality::Inferred);
        }
    }

    fn of_member(&self, snapshot: &mut Snapshot, member: &str, key: &str, value: &str) {
        let nic = &mut Recorder::new(snapshot, format!("nic.{member}"), SRC);
        match key {
            "MII Status" => nic.set("link.up", value == "up"),
            "Speed" => {
                let speed = leading_number(value);
                nic.known_in("link.speed_mbps", speed, "Mbit/s");
            }
            "Duplex" => nic.set("link.duplex", value.to_lowercase()),
            "Link Failure Count" => {
                nic.count("bond.link_failures", value.parse().ok());
            }
            _ => {}
        }
    }
}

impl LineReader for Reader {
    fn line(&mut self, snapshot: &mut Snapshot, line: &str) -> bool {
        if line.starts_with("Ethernet Channel Bonding Driver:") {
            self.is_active = true;
            self.member = None;
            return true;
        }

        if !self.is_active || line.trim().is_empty() {
            return false;
        }

        let Some((key, value)) = field(line) else {
            // `802.3ad info` is the heading of a part.
            return line.trim_end().ends_with("info");
        };

        if key == "Slave Interface" {
            snapshot.set(format!("nic.{value}.net.master"), self.bond.0.as_str(), SRC);
            snapshot.set(format!("nic.{value}.net.master_kind"), "bond", SRC);
            self.member = Some(value.to_owned());
            self.members = self.members.saturating_add(1);
            return true;
        }

        match &self.member {
            Some(member) => self.of_member(snapshot, member, key, value),
            None => self.of_bond(snapshot, key, value),
        }

        true
    }

    fn finish(&mut self, snapshot: &mut Snapshot) {
        if self.members > 0 {
            snapshot.set(format!("nic.{}.net.kind", self.bond.0), "bond", SRC);
            snapshot.set(
                format!("nic.{}.bond.members", self.bond.0),
                self.members,
                SRC,
            );
        }
    }
}
