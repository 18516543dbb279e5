//! Effect of a line of an agent.

use super::{Action, Coordinator, DropReason, HostState, Step};
use crate::protocol::clock::Exchange;
use crate::protocol::message::{AgentMessage, Envelope, FAULTS_MAX, Fail, Hello, VERSION, decode};

impl Coordinator {
    /// Takes a line of a host without its end.
    pub fn handle_line(&mut self, now_ns: u64, host: usize, line: &[u8]) {
        // Lines of hosts that take part no longer have no effect.
        let known = self.hosts.get_mut(host);
        let Some(known) = known.filter(|host| host.presence != HostState::Out) else {
            return;
        };
        if self.is_over {
            return;
        }

        match decode::<AgentMessage>(line) {
            Ok(envelope) => {
                // Any valid message proves that the host is alive, a BEAT or a result alike.
                known.last_received_ns = now_ns;
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

    /// A line is no message, or does not fit; too many of them drop the host.
    fn handle_fault(&mut self, index: usize) {
        let host = &mut self.hosts[index];
        host.faults = host.faults.saturating_add(1);
        if host.faults > FAULTS_MAX {
            self.drop_host(index, DropReason::Faults);
        }
    }

    fn handle_message(&mut self, now_ns: u64, host: usize, envelope: Envelope<AgentMessage>) {
        let run = envelope.run;
        // A FAIL names the run that keeps the host busy. An earlier coordinator of the run had
        // other tasks.
        let is_foreign = run.is_some_and(|run| run != self.settings.run)
            || envelope.epoch != self.settings.epoch;
        match envelope.message {
            AgentMessage::Fail(fail) => self.handle_fail(host, fail),
            // Its lease of another run has not expired yet.
            AgentMessage::Hello(_) if self.settings.is_solicited && run.is_some() => {}
            // A new process has neither the servers nor the tests of the plan.
            AgentMessage::Hello(_) if self.is_planned(host) => {
                self.drop_host(host, DropReason::Restarted);
            }
            AgentMessage::Hello(hello) => self.handle_hello(host, hello),
            AgentMessage::Beat {} => {}
            // Messages of another run may still be on a bus; they are no fault of the host.
            _ if is_foreign => {}
            _ if !self.hosts[host].is_connected() => self.handle_fault(host),
            message => self.handle_report(now_ns, host, message),
        }
    }

    fn handle_hello(&mut self, index: usize, hello: Box<Hello>) {
        // The largest common version is not negotiated: this end has one version.
        if !(hello.protocol.min..=hello.protocol.max).contains(&VERSION) {
            return self.drop_host(index, DropReason::Version);
        }

        let host = &mut self.hosts[index];
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
            AgentMessage::Planned { ports } if self.hosts[index].has_open_plan() => {
                let host = &mut self.hosts[index];
                host.ports = ports;
                host.presence = HostState::Planned;
                self.arrive(Step::Plan, index);
            }
            AgentMessage::Preflighted(report) if self.awaits(Step::Preflight, index) => {
                let host = index;
                self.actions.push_back(Action::Preflighted { host, report });
                self.arrive(Step::Preflight, index);
            }
            AgentMessage::Done { round, unconfirmed } => {
                self.handle_done(index, round, unconfirmed);
            }
            // Results and readings need a plan; anything before it is a fault.
            _ if !self.is_planned(index) => self.handle_fault(index),
            AgentMessage::Clocked {
                c1_ns,
                a2_ns,
                a3_ns,
            } => {
                let exchange = Exchange {
                    c1_ns,
                    a2_ns,
                    a3_ns,
                    c4_ns: now_ns,
                };
                self.handle_clocked(index, exchange);
            }
            AgentMessage::Armed { round } => self.handle_armed(index, round),
            AgentMessage::Result(result) => self.handle_result(index, *result),
            _ => {}
        }
    }

    fn handle_done(&mut self, index: usize, round: Option<u32>, unconfirmed: bool) {
        if let Some(round) = round {
            // Its tests may still run otherwise: CANCEL is repeated until they have ended.
            if !unconfirmed {
                self.handle_round_done(index, round);
            }
            return;
        }

        // The agent has left, so nothing confirms it later.
        if unconfirmed {
            self.unconfirmed.insert(index);
        }
        if self.awaits(Step::End, index) {
            self.arrive(Step::End, index);
            self.hosts[index].presence = HostState::Out;
        } else {
            // The agent ended the run without a CANCEL, as when its lease expires.
            self.drop_host(index, DropReason::Ended);
        }
    }

    fn handle_fail(&mut self, index: usize, fail: Fail) {
        let code = fail.code;
        let seq = fail.seq;
        self.actions.push_back(Action::Failed { host: index, fail });
        // A FAIL without a number is about a line that could not be read.
        if seq.is_none() {
            return;
        }

        let host = &self.hosts[index];
        let is_step = host.has_open_plan() || self.awaits(Step::Preflight, index);
        if is_step && seq == host.command_seq {
            return self.drop_host(index, DropReason::Refused(code));
        }

        // A host refused ARM or GO.
        let round = self.round.as_ref();
        if let Some(part) = round.and_then(|round| round.hosts.get(&index)) {
            if seq == part.arm_seq {
                self.refuse_arm(index, code);
            } else if seq == part.go_seq {
                self.refuse_go(index, code);
            }
        }
    }
}
