//! Settings of this host that a proof changes and restores.

use std::collections::BTreeMap;
use std::net::IpAddr;

use linerate_host::{Request, collect};
use linerate_model::finding::Finding;
use linerate_model::outcome::Error;

use super::command::run;
use super::journal::{Journal, Record};

/// The present state, and the commands that restore it.
pub(super) fn record(peer: IpAddr, finding: &Finding, boot_id: String) -> Record {
    let request = Request {
        peer: Some(peer),
        ..Request::default()
    };
    let route = collect(&request);
    let interface = route.text("route.peer.dev").unwrap_or_default().to_owned();

    Record {
        boot_id,
        undo: finding.undo.clone(),
        settings: settings_of(&interface),
        interface,
    }
}

/// Settings of this host that commands of findings change, by the keys of their facts.
fn settings_of(interface: &str) -> BTreeMap<String, String> {
    let request = Request {
        interfaces: vec![interface.to_owned()],
        ..Request::default()
    };
    let nic = format!("nic.{interface}.");
    let is_setting = |key: &str| match key.strip_prefix(&nic) {
        Some(fact) => {
            ["net.", "feat.", "qdisc.", "coal."]
                .iter()
                .any(|group| fact.starts_with(group))
                // The length of a queue is no setting and differs at every reading.
                && !fact.ends_with("backlog")
        }
        None => key.starts_with("sysctl."),
    };

    let snapshot = collect(&request);
    let keys = snapshot.facts.keys().filter(|key| is_setting(key));
    keys.filter_map(|key| Some((key.clone(), snapshot.value(key)?.to_string())))
        .collect()
}

/// Settings of this host, which are those of a fix or the former ones.
pub(super) struct Settings<'a> {
    pub journal: &'a mut Journal,
    pub record: Record,
    pub are_changed: bool,
}

impl Settings<'_> {
    /// Runs the commands of a fix.
    pub(super) fn apply(&mut self, commands: &[String]) -> Result<(), Error> {
        // After SIGKILL the next `--prove` restores the settings from it.
        self.journal.write(&self.record)?;
        // Before the first command: one that fails may have changed a part.
        self.are_changed = true;
        commands
            .iter()
            .try_for_each(|line| run(line))
            .map_err(Error::failed)
    }

    /// Restores the former settings, if they are not in force. A command that fails is no error
    /// where they are in force nevertheless.
    pub(super) fn restore(&mut self) -> Result<(), Error> {
        if !self.are_changed {
            return Ok(());
        }

        let failures: Vec<String> = self
            .record
            .undo
            .iter()
            .filter_map(|line| run(line).err())
            .collect();
        if !failures.is_empty() && settings_of(&self.record.interface) != self.record.settings {
            return Err(Error::failed(format!(
                "the former settings are not restored: {}; the next --prove tries again, or remove \
                 {}",
                failures.join("; "),
                self.journal.path.display()
            )));
        }

        self.are_changed = false;
        self.journal.clear()
    }
}
