//! Commands that change a setting of a host, with the command that restores the former value
//! exactly. Where the host has the value already, no command is printed; where the former value is
//! not known, or no command restores it, the change is advice.

use linerate_model::snapshot::Value;

use crate::command::{Change, Command, assignment, command, token_or};
use crate::ruling::Match;
use crate::scope::{Facts, Host, Nic};

/// The advice in place of a command in which a value of others is no token.
const NO_COMMAND: &str =
    "there is no command to copy: a name or value in it has characters that a shell may interpret";

impl Match {
    /// A command and its undo, where there is such a pair.
    pub(crate) fn change(self, change: Option<Change>) -> Self {
        match change {
            Some(change) => self.fix(change),
            None => self,
        }
    }

    /// A command and its undo, which exist unless a value in them is no token.
    pub(crate) fn fix_of_tokens(self, change: Option<Change>) -> Self {
        self.change_or(change, NO_COMMAND.to_owned())
    }

    /// A command that changes no setting, unless its device is no token.
    pub(crate) fn run_or_advise(self, command: Option<Command>) -> Self {
        match command {
            Some(command) => self.run(&command),
            None => self.advice(NO_COMMAND),
        }
    }

    /// A command and its undo, or advice where there is no such pair.
    pub(crate) fn change_or(self, change: Option<Change>, advice: impl Into<String>) -> Self {
        match change {
            Some(change) => self.fix(change),
            None => self.advice(advice),
        }
    }

    /// Sets a kernel variable.
    pub(crate) fn sysctl(self, host: &Host<'_>, key: &str, value: &str) -> Self {
        self.variable(key, host.value(&format!("sysctl.{key}")), value)
    }

    /// Sets a kernel variable whose value is `old`.
    pub(crate) fn variable(self, key: &str, old: Option<impl ToString>, value: &str) -> Self {
        // The kernel separates values by tabs: they are no difference.
        let plain = |value: &str| value.split_whitespace().collect::<Vec<_>>().join(" ");
        let Some(new) = assignment(key, value) else {
            return self.advice(NO_COMMAND);
        };

        match old.map(|old| plain(&old.to_string())) {
            // Without the former value there is no undo.
            None => self.advice(new.line()),
            Some(old) if old == plain(value) => self,
            Some(old) => match assignment(key, &old) {
                None => self.advice(NO_COMMAND),
                Some(undo) => self.fix((new, undo)).persist(
                    "write the same line without `sysctl -w` to /etc/sysctl.d/90-network.conf",
                ),
            },
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

impl Nic<'_> {
    /// The name in advice that has a command.
    pub(crate) fn word(&self) -> &str {
        token_or(self.name, "DEVICE")
    }

    /// The command that makes the root discipline as it is. It is a fact, so a file or a peer may
    /// state any text as one.
    pub(crate) fn root_command(&self) -> Option<Command> {
        let stated = self.text("qdisc.root.command").ok()?.value;
        let words: Vec<&str> = stated.split(' ').collect();
        match words.as_slice() {
            ["tc", "qdisc", "replace", "dev", device, "root", rest @ ..]
                if *device == self.name =>
            {
                command("tc qdisc replace dev {} root", &[&self.name])?.with_words(rest)
            }
            // The kernel attaches its default discipline again where the root is deleted.
            ["tc", "qdisc", "del", "dev", device, "root"] if *device == self.name => {
                command("tc qdisc del dev {} root", &[&self.name])
            }
            _ => None,
        }
    }

    /// Replaces the root discipline. `None` where the kernel may lack the new one, or the old one
    /// cannot be restored.
    pub(crate) fn replace_root(&self, kind: &str, parameters: &str) -> Option<Change> {
        let is_kind = |known: &Value| matches!(known, Value::Text(name) if name == kind);
        let Some(Value::List(kinds)) = self.host.value("kernel.qdiscs") else {
            return None;
        };
        let undo = kinds.iter().any(is_kind).then(|| self.root_command())??;
        let words: Vec<&str> = std::iter::once(kind)
            .chain(parameters.split_whitespace())
            .collect();
        let new = command("tc qdisc replace dev {} root", &[&self.name])?.with_words(&words)?;

        Some((new, undo))
    }

    /// Switches a driver's setting with `tool`, whose place `{}` is the device: every name and
    /// value to set, with the fact that has the former value. `None` where one is not known or no
    /// token, or nothing differs.
    pub(crate) fn set(&self, tool: &str, settings: &[(&str, &str, &str)]) -> Option<Change> {
        let mut new = command(tool, &[&self.name])?;
        let mut undo = new.clone();
        let mut differs = false;

        for (name, fact, value) in settings {
            let old = self.value(fact)?.to_string();
            differs |= old != *value;
            new = new.with_words(&[name, value])?;
            undo = undo.with_words(&[name, &old])?;
        }

        differs.then_some((new, undo))
    }
}
