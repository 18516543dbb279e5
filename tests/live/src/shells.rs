//! Hosts of a fleet at addresses of loopback, behind a script in the place of ssh(1) whose shells
//! begin after a time.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::net::free_port_run;
use crate::program::ours;
use crate::skip;

/// Runs the command of a host here, after the time in its file, with a machine-id of its own: two
/// hosts with one are one machine.
const SSH: &str = r#"#!/bin/sh
while [ "$1" != -- ]; do
    [ "$1" != -G ] || exit 0
    shift
done
folder=$(dirname "$0")
read -r seconds <"$folder/$2.seconds"
sleep "$seconds"
exec unshare --mount sh -c 'mount --bind "$0" /etc/machine-id && exec sh -c "$1"' "$folder/$2.id" "$3"
"#;

/// Hosts `h1`, `h2` … and the folder of their script, their inventory and the history.
pub struct Shells(TempDir);

impl Shells {
    /// A host for each time in seconds, after which its shell begins; `None`, with the reason
    /// printed, without the right to mount.
    pub fn new(seconds: &[u32]) -> Option<Self> {
        let may_mount = Command::new("unshare").args(["--mount", "true"]).status();
        if !may_mount.is_ok_and(|status| status.success()) {
            skip("a machine-id for each agent needs root");
            return None;
        }

        let shells = Self(tempfile::tempdir().expect("a folder"));
        let ssh = shells.folder().join("ssh");
        fs::write(&ssh, SSH).expect("written");
        fs::set_permissions(&ssh, fs::Permissions::from_mode(0o755)).expect("a mode");
        symlink(ours().path(), shells.folder().join("linerate")).expect("a link");
        shells.write_hosts(seconds);

        Some(shells)
    }

    fn write_hosts(&self, seconds: &[u32]) {
        let first_port = free_port_run(4);
        let last_port = first_port + 3;
        let mut inventory = format!(
            "[fleet]\nname = \"shells\"\nports = \"{first_port}-{last_port}\"\ncontrol = \
             \"shared\"\n"
        );

        for (number, seconds) in (1..).zip(seconds) {
            let write = |name: &str, text: String| {
                fs::write(self.folder().join(name), text).expect("written");
            };
            write(&format!("h{number}.seconds"), format!("{seconds}\n"));
            write(&format!("h{number}.id"), format!("{number:032x}\n"));
            inventory += &format!(
                "[[host]]\nname = \"h{number}\"\npaths = {{ lo = \"127.0.8.{number}\" }}\n"
            );
        }

        fs::write(self.folder().join("fleet.toml"), inventory).expect("written");
    }

    fn folder(&self) -> &Path {
        self.0.path()
    }

    /// The history of [`Self::linerate`].
    pub fn history(&self) -> PathBuf {
        self.folder().join("state/linerate/history.db")
    }

    /// A mesh of all hosts with tests of a second.
    pub fn mesh(&self) -> Command {
        let mut command =
            self.linerate(&["fleet", "run", "mesh", "-t", "1", "-O", "0", "--json", "-i"]);
        command.arg(self.folder().join("fleet.toml"));
        command
    }

    /// A command of `linerate` that finds the script and the history.
    pub fn linerate(&self, words: &[&str]) -> Command {
        let path = format!(
            "{}:{}",
            self.folder().display(),
            std::env::var("PATH").expect("a path")
        );
        let mut command = Command::new(ours().path());
        command.args(words).env("PATH", path);

        // Cargo turns the history off for tests.
        command
            .env("XDG_STATE_HOME", self.folder().join("state"))
            .env_remove("LINERATE_STORE");
        command
    }
}
