//! Effect of a line of an agent.

use super::host::Host;
use super::{Action, Coordinator, DropReason, HostState, Step};
use crate::protocol::message::{
    AgentMessage, Done, Envelope, FAULTS_MAX, Fail, Hello, VERSION, decode,
};

impl Coordinator {
    /// Takes a line of a host without its end.
    pub fn handle_line(&mut self, now_ns: u64, host: usize, line: &[u8]) {
        if self.ignores(host) {
            return;
        }

        match decode::<AgentMessage>(line) {
            Ok(envelope) => {
                if let Some(host) = self.host_mut(host) {
                    // Any valid message proves that the host is alive, a BEAT or a result alike.
                    host.last_received_ns = now_ns;
                }
                self.handle_message(now_ns, host, envelope);
            }
            Err(_) => self.handle_fault(host),
        }

        self.advance(now_ns);
    }

    /// A line of a host exceeds the bound of its length.
    pub fn handle_too_long(&mut self, now_ns: u64, host: usize) {
        self.handle_end(now_ns, host, DropReason::Line);
    }

    /// The connection of a host is lost.
    pub fn handle_lost(&mut self, now_ns: u64, host: usize) {
        self.handle_end(now_ns, host, DropReason::Lost);
    }

    fn handle_end(&mut self, now_ns: u64, host: usize, reason: DropReason) {
        if !self.is_over {
            self.drop_host(host, reason);
            self.advance(now_ns);
        }
    }

    /// Lines of hosts that take part no longer have no effect.
    fn ignores(&self, host: usize) -> bool {
        self.is_over
            || self
                .hosts
                .get(host)
                .is_none_or(|host| host.presence == HostState::Out)
    }

    /// A line is no message, or does not fit; too many of them drop the host.
    fn handle_fault(&mut self, index: usize) {
        let Some(host) = self.host_mut(index) else {
            return;
        };
        host.faults = host.faults.saturating_add(1);
        if host.faults > FAULTS_MAX {
            self.drop_host(index, DropReason::Faults);
        }
    }

    fn handle_message(&mut self, now_ns: u64, host: usize, envelope: Envelope<AgentMessage>) {
        let Envelope {
            run,
            epoch,
            message,
            ..
        } = envelope;
        let is_greeted = self.hosts.get(host).is_some_and(Host::is_connected);

        // A FAIL names the run that keeps the host busy. An earlier coordinator of the run had
        // other tasks.
        let is_foreign =
            run.is_some_and(|run| run != self.settings.run) || epoch != self.settings.epoch;
        match message {
            AgentMessage::Fail(fail) => self.handle_fail(host, fail),
            // Its lease of another run has not expired yet.
            AgentMessage::Hello(_) if self.settings.is_solicited && run.is_some() => {}
            // A new process has neither the servers nor the tests of the plan.
            AgentMessage::Hello(_) if self.is_planned(host) => {
                self.drop_host(host, DropReason::Restarted);
            }
            AgentMessage::Hello(hello) => self.handle_hello(host, hello),
            AgentMessage::Beat(_) => {}
            // Messages of another run may still be on a bus; they are no fault of the host.
            _ if is_foreign => {}
            _ if !is_greeted => self.handle_fault(host),
            message => self.handle_report(now_ns, host, message),
        }
    }

    fn handle_hello(&mut self, index: usize, hello: Box<Hello>) {
        // The largest common version is not negotiated: this end has one version.
        if !(hello.protocol.min..=hello.protocol.max).contains(&VERSION) {
            return self.drop_host(index, DropReason::Version);
        }

        let Some(host) = self.host_mut(index) else {
            return;
        };
        host.hello = Some(hello);

        // On a bus several are solicited.
        if host.presence == HostState::Awaited {
            host.presence = HostState::Greeted;
            self.actions.push_back(Action::Greeted { host: index });
            self.arrive(Step::Hello, index);
        }
    }

    /// Messages of hosts that are greeted. An answer that arrives too late has no effect.
    fn handle_report(&mut self, now_ns: u64, index: usize, message: AgentMessage) {
        match message {
            AgentMessage::Planned(planned) if self.has_open_plan(index) => {
                if let Some(host) = self.host_mut(index) {
                    host.ports = planned.ports;
                    host.presence = HostState::Planned;
                }
                self.arrive(Step::Plan, index);
            }
            AgentMessage::Preflighted(report) if self.awaits(Step::Preflight, index) => {
                self.actions.push_back(Action::Preflighted {
                    host: index,
                    report,
                });
                self.arrive(Step::Preflight, index);
            }
            AgentMessage::Done(done) => self.handle_done(index, &done),
            // Results and readings need a plan; anything before it is a fault.
            _ if !self.is_planned(index) => self.handle_fault(index),
            AgentMessage::Clocked(clocked) => self.handle_clocked(now_ns, index, clocked),
            AgentMessage::Armed(armed) => self.handle_armed(index, armed.round),
            AgentMessage::Started(started) => self.handle_started(now_ns, index, started),
            AgentMessage::Result(result) => self.handle_result(index, *result),
            _ => {}
        }
    }

    fn has_open_plan(&self, index: usize) -> bool {
        self.hosts.get(index).is_some_and(Host::has_open_plan)
    }

    fn handle_done(&mut self, index: usize, done: &Done) {
        match done.round {
            // Its tests may still run: CANCEL is repeated until they have ended.
            Some(_) if done.unconfirmed => {}
            Some(round) => self.handle_round_done(index, round),
            None => self.handle_run_done(index, done.unconfirmed),
        }
    }

    fn handle_run_done(&mut self, index: usize, unconfirmed: bool) {
        // The agent has left, so nothing confirms it later.
        if unconfirmed {
            self.unconfirmed.insert(index);
        }
        if !self.awaits(Step::End, index) {
            // The agent ended the run without a CANCEL, as when its lease expires.
            return self.drop_host(index, DropReason::Ended);
        }
        self.arrive(Step::End, index);
        if let Some(host) = self.host_mut(index) {
            host.presence = HostState::Out;
        }
    }

    fn handle_fail(&mut self, index: usize, fail: Fail) {
        let code = fail.code;
        let seq = fail.seq;
        self.actions.push_back(Action::Failed { host: index, fail });

        let command_seq = self.hosts.get(index).and_then(|host| host.command_seq);
        let is_step = self.has_open_plan(index) || self.awaits(Step::Preflight, index);
        // The number of the refused command separates the refusal from a FAIL about a garbled line.
        if is_step && seq.is_some() && seq == command_seq {
            return self.drop_host(index, DropReason::Refused(code));
        }

        self.handle_round_fail(index, seq, code);
    }
}
