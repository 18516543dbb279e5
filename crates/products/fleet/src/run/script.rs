//! Hosts where nothing is installed but iperf3: a shell over ssh, and the machine of an agent at
//! this end.
//!
//! Clocks, probes and facts of the hosts are absent. The command of a test leaves this host at its
//! time. When it started is known from its server: the arrival of the first interval, less its
//! length of two decimals. A test ends itself after its time where the connection is lost.

#[cfg(any(test, fuzzing))]
pub(super) mod fuzzing;
mod host;
mod shell;

use std::os::fd::BorrowedFd;

use crate::run::carrier::ssh::SshCarrier;
use crate::run::carrier::{Carrier, HostEvent};

use host::{Outgoing, ScriptHost};

/// Hosts behind a carrier of shells.
pub(super) struct ScriptCarrier {
    shells: SshCarrier,
    hosts: Vec<ScriptHost>,
    /// Events of calls other than [`Carrier::poll`].
    events: Vec<(usize, HostEvent)>,
}

impl ScriptCarrier {
    /// One shell for each host.
    pub(super) fn new(shells: SshCarrier, count: usize) -> Self {
        Self {
            shells,
            hosts: (0..count).map(|_| ScriptHost::new()).collect(),
            events: Vec::new(),
        }
    }

    fn carry(&mut self, index: usize, call: impl FnOnce(&mut ScriptHost) -> Outgoing) {
        let outgoing = call(&mut self.hosts[index]);
        for command in outgoing.commands {
            self.shells.send(index, &command);
        }
        for line in outgoing.lines {
            self.events
                .push((index, HostEvent::Line(line.into_bytes())));
        }

        if let Some(reason) = outgoing.lost {
            self.shells.close(index);
            self.events.push((index, HostEvent::Lost { reason }));
        }
    }
}

impl Carrier for ScriptCarrier {
    fn send(&mut self, host: usize, line: &str) {
        self.carry(host, |host| host.command(line));
    }

    fn close(&mut self, host: usize) {
        self.shells.close(host);
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.shells.fd()
    }

    fn deadline_ns(&self) -> Option<u64> {
        let now = (!self.events.is_empty()).then_some(0);
        let hosts = self.hosts.iter().filter_map(ScriptHost::deadline_ns);
        hosts.chain(now).chain(self.shells.deadline_ns()).min()
    }

    fn poll(&mut self, now_ns: u64) -> Vec<(usize, HostEvent)> {
        for (index, event) in self.shells.poll(now_ns) {
            match event {
                HostEvent::Line(line) => {
                    self.carry(index, |host| host.printed(&String::from_utf8_lossy(&line)));
                }
                // Output of a test; its report is not readable without it.
                HostEvent::TooLong => {}
                lost @ HostEvent::Lost { .. } => self.events.push((index, lost)),
            }
        }

        for index in 0..self.hosts.len() {
            let at_ns = self.hosts[index].deadline_ns();
            if at_ns.is_some_and(|at_ns| now_ns >= at_ns) {
                self.carry(index, |host| host.timeout(now_ns));
            }
        }

        std::mem::take(&mut self.events)
    }

    fn has_open(&self) -> bool {
        self.shells.has_open()
    }
}
