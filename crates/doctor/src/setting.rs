//! Commands that change a setting of a host, with the command that restores the former value exactly. Where the host has the
//! value already, no command is printed; where the former value is not known, or no command restores it, the change is advice.

use linerate_model::snapshot::Value;

use crate::rule::Match;
use crate::scope::{Host, Nic};

/// A command and the one that restores the former state.
pub(crate) type Change = (String, String);

impl Match {
    /// A command and its undo, where there is such a pair.
    pub(crate) fn change(self, change: Option<Change>) -> Self {
        match change {
            Some((command, undo)) => self.fix(command, undo),
            None => self,
        }
    }

    /// A command and its undo, or advice where there is no such pair.
    pub(crate) fn change_or(self, change: Option<Change>, advice: impl FnOnce() -> String) -> Self {
        if change.is_some() { self.change(change) } else { self.advice(advice()) }
    }

    /// Sets a kernel variable.
    pub(crate) fn sysctl(self, host: &Host<'_>, key: &str, value: &str) -> Self {
        self.variable(key, host.value(&format!("sysctl.{key}")), value)
    }

    /// Sets a kernel variable whose value is `old`.
    pub(crate) fn variable(self, key: &str, old: Option<impl ToString>, value: &str) -> Self {
        let command = |value: &str| format!("sysctl -w {key}={}", quoted(value));
        let plain = |value: &str| value.split_whitespace().collect::<Vec<_>>().join(" ");
        match old.map(|old| plain(&old.to_string())) {
            None => self.advice(command(value)),
            Some(old) if old == plain(value) => self,
            Some(old) => self
                .fix(command(value), command(&old))
                .persist("write the same line without `sysctl -w` to /etc/sysctl.d/90-network.conf"),
        }
    }

    /// Raises a kernel variable to this number.
    pub(crate) fn raise(self, host: &Host<'_>, key: &str, least: f64) -> Self {
        match host.number(&format!("sysctl.{key}")) {
            Ok(old) if old.value >= least => self,
            _ => self.sysctl(host, key, &format!("{least:.0}")),
        }
    }
}

fn quoted(value: &str) -> String {
    if value.contains(' ') { format!("\"{value}\"") } else { value.to_owned() }
}

impl Nic<'_> {
    /// The command that makes the root discipline as it is.
    pub(crate) fn root_command(&self) -> Option<&str> {
        self.text("qdisc.root.command").ok().map(|command| command.value)
    }

    /// Replaces the root discipline. `None` where the kernel may lack the new one, or the old one cannot be restored.
    pub(crate) fn replace_root(&self, kind: &str, parameters: &str) -> Option<Change> {
        let is_kind = |known: &Value| matches!(known, Value::Text(name) if name == kind);
        let Some(Value::List(kinds)) = self.host.value("kernel.qdiscs") else { return None };
        let undo = kinds.iter().any(is_kind).then(|| self.root_command())??;
        let command = format!("tc qdisc replace dev {} root {kind} {parameters}", self.name);
        Some((command.trim_end().to_owned(), undo.to_owned()))
    }

    /// Switches a driver's setting with `tool`: every name and value to set, with the fact that has the former value. `None`
    /// where one is not known, or nothing differs.
    pub(crate) fn set(&self, tool: &str, settings: &[(&str, &str, &str)]) -> Option<Change> {
        let mut commands = [String::from(tool), String::from(tool)];
        let mut differs = false;
        for (name, fact, value) in settings {
            let old = self.host.value(&self.key(fact))?.to_string();
            differs |= old != *value;
            for (command, value) in commands.iter_mut().zip([*value, old.as_str()]) {
                *command = format!("{command} {name} {value}");
            }
        }
        let [command, undo] = commands;
        differs.then_some((command, undo))
    }
}
