//! `linerate serve`, and its log as data.

use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::deadline::wait_for;
use crate::net::{free_port, is_bound_udp, listens};
use crate::process::Process;
use crate::program::{Program, ours};

/// A running service on a port of its own, logging JSON lines.
#[derive(Debug)]
pub struct Service {
    /// Its port.
    pub port: u16,
    /// Its process.
    pub process: Process,
}

impl Service {
    /// Starts the service and waits until it listens.
    #[track_caller]
    pub fn start(arguments: &[&str]) -> Self {
        Self::start_by(Command::new(ours().path()), arguments)
    }

    /// The same with a command that ends in the program's name, for example one that enters a
    /// namespace first. It must share this process's network namespace, or the caller waits for the
    /// log.
    #[track_caller]
    pub fn start_by(command: Command, arguments: &[&str]) -> Self {
        let port = free_port();
        let mut service = Self::spawn(command, port, arguments);
        service.process.wait_until_up(|| listens(port));
        service
    }

    /// Starts a service for iperf 2 as well, and returns the port of that.
    #[track_caller]
    pub fn start_both(arguments: &[&str]) -> (Self, u16) {
        Self::start_both_by(Command::new(ours().path()), arguments)
    }

    /// The same with a command that ends in the program's name.
    #[track_caller]
    pub fn start_both_by(command: Command, arguments: &[&str]) -> (Self, u16) {
        let port2 = free_port();
        let mut service = Self::start_by(
            command,
            &[&["--iperf2-port", &port2.to_string()], arguments].concat(),
        );

        // It is open later than the port of iperf3.
        service
            .process
            .wait_until_up(|| listens(port2) && is_bound_udp(port2));
        (service, port2)
    }

    /// Starts the service without waiting.
    pub fn spawn(mut command: Command, port: u16, arguments: &[&str]) -> Self {
        let port_text = port.to_string();
        command
            .args(["serve", "--port", &port_text, "--log-format", "json"])
            .args(arguments);
        Self {
            port,
            process: Process::start(command),
        }
    }

    /// Starts a client of this service.
    pub fn client(&self, program: &Program, arguments: &[&str]) -> Process {
        let port = self.port.to_string();
        Process::start(program.command(["-c", "127.0.0.1", "-p", &port].iter().chain(arguments)))
    }

    /// All log lines of one kind so far.
    pub fn events(&self, kind: &str) -> Vec<Value> {
        let text = self.process.stdout();
        // The last line may not be complete yet.
        let complete = text.rfind('\n').map_or("", |end| &text[..end]);
        let lines = complete
            .lines()
            .map(|line| serde_json::from_str(line).expect("log lines are JSON"));
        lines.filter(|line: &Value| line["event"] == kind).collect()
    }

    /// Waits until there are at least this number of log lines of one kind, and returns them.
    #[track_caller]
    pub fn wait_for_events(&self, kind: &str, count: usize, limit: Duration) -> Vec<Value> {
        let events = wait_for(limit, || {
            Some(self.events(kind)).filter(|events| events.len() >= count)
        });
        events.unwrap_or_else(|| panic!("no {count} {kind} within {limit:?}: {self:?}"))
    }
}
