//! One host without an agent: the machine of an agent here, its tests in the shell there.

use std::net::IpAddr;

use crate::TaskId;
use crate::protocol::agent::{Action, Agent, Finish, Input, Service};
use crate::protocol::message::{
    ArmTask, Hello, Plan, Preflighted, Role, TaskEnd, VERSION, Versions,
};
use linerate_history::run::import::record_of;
use linerate_store::text;
use linerate_sys::clock;

use super::shell::{self, Printed};
use crate::run::worker::totals;

/// Longest output of a test in bytes.
const OUTPUT_MAX_BYTES: usize = 4 << 20;

/// Output of a call.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    /// Lines for the shell.
    pub commands: Vec<String>,
    /// Lines of the agent for the coordinator.
    pub lines: Vec<String>,
    /// The agent has left, or the host cannot be used: why.
    pub lost: Option<String>,
}

/// The machine, and what it has running.
#[derive(Default)]
pub(super) struct ScriptHost {
    hello: Hello,
    agent: Option<Box<Agent>>,
    plan: Option<Box<Plan>>,
    tests: Vec<Test>,
    /// The tests of a round are started.
    is_arming: bool,
    /// A round, or without one everything, is being ended.
    stop: Option<Option<u32>>,
}

/// A test of this host.
struct Test {
    task: ArmTask,
    local: IpAddr,
    pid: Option<u32>,
    /// A server that listens, or a client.
    is_ready: bool,
    begin_at_ns: Option<u64>,
    /// The command has left; that of a server leaves at once.
    is_sent: bool,
    /// When the first stream of a server began, from its first interval.
    started_ns: Option<u64>,
    output: String,
}

impl ScriptHost {
    pub(super) fn new() -> Self {
        let min = VERSION;
        let max = VERSION;
        Self {
            hello: Hello {
                protocol: Versions { min, max },
                ..Hello::default()
            },
            ..Self::default()
        }
    }

    /// Takes a line of the coordinator.
    pub(super) fn command(&mut self, line: &str) -> Outgoing {
        if let Some(agent) = &mut self.agent {
            agent.handle_line(clock::monotonic_ns(), line.as_bytes());
        }
        self.act()
    }

    /// Takes a line of the shell.
    pub(super) fn printed(&mut self, line: &str) -> Outgoing {
        let mut outgoing = Outgoing::default();
        match shell::read(line) {
            Some(Printed::Fact { name: "ready", .. }) => {
                outgoing.commands.push(shell::BEGIN.to_owned());
                return outgoing;
            }
            Some(Printed::Fact { name: "end", .. }) if self.agent.is_none() => {
                if self.hello.version.is_empty() {
                    outgoing.lost = Some("iperf3 is not installed".to_owned());
                    return outgoing;
                }
                self.begin();
            }
            Some(Printed::Fact { name, value }) => self.fact(name, value),
            Some(Printed::Pid { task, pid }) => {
                if let Some(test) = self.test(task) {
                    test.pid = Some(pid);
                }
            }
            Some(Printed::Output { task, text }) => self.output(task, text),
            Some(Printed::Exit { task, code }) => self.exited(task, code),
            None => {}
        }

        self.act()
    }

    /// Takes the time, at or after [`Self::deadline_ns`].
    pub(super) fn timeout(&mut self, now_ns: u64) -> Outgoing {
        let mut commands = Vec::new();
        let run = self.agent.as_ref().and_then(|agent| agent.run());
        for test in &mut self.tests {
            if let Some(run) = run
                && test.begin_at_ns.take_if(|at_ns| now_ns >= *at_ns).is_some()
            {
                test.is_sent = true;
                commands.push(shell::client(run, &test.task, test.local));
            }
        }

        if let Some(agent) = &mut self.agent {
            agent.handle_timeout(now_ns);
        }

        let mut outgoing = self.act();
        // Starts precede all other commands, because each is due at a time.
        commands.append(&mut outgoing.commands);
        outgoing.commands = commands;
        outgoing
    }

    pub(super) fn deadline_ns(&self) -> Option<u64> {
        let tests = self.tests.iter().filter_map(|test| test.begin_at_ns);
        let agent = self.agent.as_ref().and_then(|agent| agent.poll_timeout());
        tests.chain(agent).min()
    }

    fn fact(&mut self, name: &str, value: &str) {
        let value = value.trim();
        match name {
            "host" => self.hello.host = value.to_owned(),
            // Address and port of the client, then of this host (ssh(1)).
            "ssh" => {
                self.hello.control_address =
                    value.split(' ').nth(2).and_then(|text| text.parse().ok());
            }
            "iperf3" if !value.is_empty() => {
                self.hello.version = value.split(" (").next().unwrap_or(value).to_owned();
            }
            _ => {}
        }
    }

    /// All facts are there.
    fn begin(&mut self) {
        // Clocks of hosts are not read: starts are commands of this one.
        let now_ns = clock::monotonic_ns();
        self.hello.mono_ns = now_ns;
        self.hello.unix_ns = clock::unix_ns();
        let agent = Agent::new(now_ns, Service::Stream, self.hello.clone());
        self.agent = Some(Box::new(agent));
    }

    /// Carries out actions until nothing is left to do.
    fn act(&mut self) -> Outgoing {
        let mut outgoing = Outgoing::default();
        loop {
            while let Some(action) = self.agent.as_mut().and_then(|agent| agent.poll_action()) {
                self.execute(action, &mut outgoing);
            }

            let Some(input) = self.due_input() else {
                return outgoing;
            };
            self.give(input);
        }
    }

    fn give(&mut self, input: Input) {
        if let Some(agent) = &mut self.agent {
            agent.handle_local(input);
        }
    }

    fn execute(&mut self, action: Action, outgoing: &mut Outgoing) {
        match action {
            Action::Send(line) => outgoing.lines.push(line),
            Action::Prepare(plan) => {
                let ports = vec![plan.ports.first; plan.addresses.len()];
                self.plan = Some(plan);
                self.give(Input::Planned { ports });
            }
            // A server listens for one test alone: there is nothing to probe before.
            Action::Probe(_) => {
                self.give(Input::Preflighted(Box::new(Preflighted {
                    peers: Vec::new(),
                    facts: None,
                })));
            }
            Action::ReadClock { c1_ns, a2_ns } => {
                self.give(Input::Clock {
                    c1_ns,
                    a2_ns,
                    a3_ns: clock::monotonic_ns(),
                });
            }
            Action::Describe => self.give(Input::Hello(Box::new(self.hello.clone()))),
            Action::StartWorker { task, .. } => self.start(*task, outgoing),
            Action::BeginAt { task, at_ns } => {
                if let Some(test) = self.test(task) {
                    test.begin_at_ns = Some(at_ns);
                }
            }
            Action::StopTask { task, .. } => {
                self.stop_tests(|test| test.task.task == task, outgoing);
            }
            Action::Stop { round, .. } => {
                self.stop = Some(round);
                self.stop_tests(|_| true, outgoing);
            }
            Action::Leave(reason) => outgoing.lost = Some(format!("{reason:?}")),
            Action::Admit(_) => {}
        }
    }

    fn start(&mut self, task: ArmTask, outgoing: &mut Outgoing) {
        self.is_arming = true;
        let run = self.agent.as_ref().and_then(|agent| agent.run());
        let mut own = self.plan.iter().flat_map(|plan| &plan.addresses);
        let own = own.find(|own| own.path == task.path);
        let (Some(own), Some(run)) = (own, run) else {
            let text = format!("path {}: no address", task.path);
            return self.give(Input::ArmFailed { text });
        };

        let local = own.address;
        let is_client = task.is_client();
        if !is_client {
            outgoing.commands.push(shell::server(run, &task, local));
        }
        self.tests.push(Test {
            task,
            local,
            pid: None,
            is_ready: is_client,
            begin_at_ns: None,
            is_sent: !is_client,
            started_ns: None,
            output: String::new(),
        });
    }

    /// Ends tests: processes by signal, clients that have not begun at once.
    fn stop_tests(&mut self, is_meant: impl Fn(&Test) -> bool, outgoing: &mut Outgoing) {
        self.tests.retain(|test| {
            if !is_meant(test) {
                return true;
            }
            outgoing.commands.extend(test.pid.map(shell::kill));
            test.pid.is_some() || test.is_sent
        });
    }

    /// Input that is due after all tests together.
    fn due_input(&mut self) -> Option<Input> {
        if self.is_arming && self.tests.iter().all(|test| test.is_ready) {
            self.is_arming = false;
            return Some(Input::Armed);
        }

        let round = self.stop.take_if(|_| self.tests.is_empty())?;
        Some(Input::Stopped(round))
    }

    fn test(&mut self, task: TaskId) -> Option<&mut Test> {
        self.tests.iter_mut().find(|test| test.task.task == task)
    }

    fn output(&mut self, task: TaskId, text: &str) {
        let Some(test) = self.test(task) else { return };
        // iperf3 prints `Server listening on PORT` once its socket is bound.
        test.is_ready |= text.contains("listening");

        if test.output.len() + text.len() < OUTPUT_MAX_BYTES {
            test.output += text;
            test.output += "\n";
        }

        if test.started_ns.is_none()
            && !test.task.is_client()
            && let Some(length_ns) = shell::first_interval_ns(text)
        {
            let at_ns = clock::monotonic_ns().saturating_sub(length_ns);
            test.started_ns = Some(at_ns);
            self.give(Input::Started { task, at_ns });
        }
    }

    fn exited(&mut self, task: TaskId, code: i32) {
        let Some(at) = self.tests.iter().position(|test| test.task.task == task) else {
            return;
        };
        let test = self.tests.swap_remove(at);
        if self.stop.is_none() {
            self.give(Input::Finished(Box::new(test.finish(code))));
        }
    }
}

impl Test {
    /// The end of this test, with its record where the report is readable.
    fn finish(self, code: i32) -> Finish {
        let mut end = TaskEnd::done();
        let mut record = String::new();
        let found = record_of(&self.output);
        match found {
            _ if code != 0 => end = TaskEnd::failed(&self.last_line(code), None),
            _ if self.task.role == Role::Server => {}
            Some((found, summary)) => {
                (end.bytes, end.elapsed_ns) = totals(&summary);
                record = text::write(&found);
            }
            None => end = TaskEnd::failed(&self.last_line(code), None),
        }

        end.started_ns = self.started_ns;
        Finish {
            task: self.task.task,
            end,
            record,
        }
    }

    /// `iperf3: error - unable to connect to server`
    fn last_line(&self, code: i32) -> String {
        let mut lines = self.output.lines().rev();
        match lines.find(|line| line.contains("error")) {
            Some(line) => line.trim().trim_matches([',', '"']).to_owned(),
            None => format!("iperf3 ended with {code}"),
        }
    }
}
