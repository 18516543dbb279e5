//! A host of native tests: the programs that run there have one state directory, with a key and the
//! servers they know.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::deadline::TIMEOUT;
use crate::namespaces::{Net, inside};
use crate::net::free_port;
use crate::process::Process;
use crate::program::ours;
use crate::service::Service;

/// Where native tests run. Its state goes when this goes.
#[derive(Debug)]
pub struct NativeHost {
    namespace: Option<String>,
    state: TempDir,
}

/// Longest time of a test of the default profile on a busy machine.
const TEST_TIMEOUT: Duration = Duration::from_secs(90);
/// Port of a server in a namespace.
const PORT: u16 = 5201;

impl NativeHost {
    /// This host.
    pub fn here() -> Self {
        Self {
            namespace: None,
            state: tempfile::tempdir().expect("a temporary folder"),
        }
    }

    /// A namespace.
    pub fn within(namespace: &str) -> Self {
        Self {
            namespace: Some(namespace.to_owned()),
            ..Self::here()
        }
    }

    /// The client's and the server's.
    pub fn both(net: &Net) -> (Self, Self) {
        (Self::within(&net.a), Self::within(&net.b))
    }

    /// A file in the state directory of the programs.
    pub fn state_file(&self, name: &str) -> PathBuf {
        self.state.path().join("linerate").join(name)
    }

    /// Our program on this host.
    pub fn command(&self, words: &[&str]) -> Command {
        self.command_of(ours().path(), words)
    }

    /// Another program on this host.
    pub fn command_of(&self, program: &Path, words: &[&str]) -> Command {
        let mut command = match &self.namespace {
            Some(namespace) => inside(namespace, program, words),
            None => {
                let mut command = Command::new(program);
                command.args(words).env("LC_ALL", "C").env("TZ", "UTC");
                command
            }
        };
        command.env("XDG_STATE_HOME", self.state.path());
        command
    }

    /// Starts `linerate serve` and waits until it listens; in a namespace on port 5201.
    #[track_caller]
    pub fn serve(&self, words: &[&str]) -> Service {
        let port = if self.namespace.is_some() {
            PORT
        } else {
            free_port()
        };
        self.serve_at(port, words)
    }

    /// The same on a given port.
    #[track_caller]
    pub fn serve_at(&self, port: u16, words: &[&str]) -> Service {
        let service = Service::spawn(self.command(&[]), port, words);
        service.wait_for_events("listening", 1, TIMEOUT);
        service
    }

    /// Starts `linerate test` without a history.
    pub fn test(&self, target: &str, words: &[&str]) -> Process {
        Process::start(self.command(&[&["test", target, "--store", "off"], words].concat()))
    }

    /// Report of a complete test.
    #[track_caller]
    pub fn report(&self, target: &str, words: &[&str]) -> Value {
        let test = self
            .test(target, &[&["--json", "-q"], words].concat())
            .finish_within(TEST_TIMEOUT);
        test.expect_code(0).json()
    }
}
