//! One host without an agent: the machine of an agent here, its tests in the shell there.

use std::net::IpAddr;

use crate::TaskId;
use crate::protocol::agent::{Action, Agent, Finish, Input, Service};
use crate::protocol::message::{
    ArmTask, Hello, Outcome, Plan, Preflighted, Role, TaskEnd, VERSION, Versions,
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
    pub(super) commands: Vec<String>,
    /// Lines of the agent for the coordinator.
    pub(super) lines: Vec<String>,
    /// The agent has left, or the host cannot be used: why.
    pub(super) lost: Option<String>,
}

/// The machine, and what it has running.
#[derive(Debug)]
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
#[derive(Debug)]
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
        Self {
            hello: Hello {
                protocol: Versions {
                    min: VERSION,
                    max: VERSION,
                },
                ..Hello::default()
            },
            agent: None,
            plan: None,
            tests: Vec::new(),
            is_arming: false,
            stop: None,
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
        match shell::read(line) {
            Some(Printed::Fact { name: "ready", .. }) => {
                return Outgoing {
                    commands: vec![shell::BEGIN.to_owned()],
                    ..Outgoing::default()
                };
            }
            Some(Printed::Fact { name: "end", .. }) if self.agent.is_none() => return self.begin(),
            Some(Printed::Fact { name, value }) => self.fact(name, value),
            Some(Printed::Pid { task, pid }) => self.started(task, pid),
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
            let (Some(run), Some(_)) = (run, test.begin_at_ns.take_if(|at_ns| now_ns >= *at_ns))
            else {
                continue;
            };
            test.is_sent = true;
            commands.push(shell::client(run, &test.task, test.local));
        }

        if let Some(agent) = &mut self.agent {
            agent.handle_timeout(now_ns);
        }

        let mut outgoing = self.act();
        // Starts precede all other commands, because each is due at a time.
        outgoing.commands.splice(0..0, commands);
        outgoing
    }

    pub(super) fn deadline_ns(&self) -> Option<u64> {
        let tests = self.tests.iter().filter_map(|test| test.begin_at_ns);
        tests
            .chain(self.agent.as_ref().and_then(|agent| agent.poll_timeout()))
            .min()
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
    fn begin(&mut self) -> Outgoing {
        if self.hello.version.is_empty() {
            return Outgoing {
                lost: Some("iperf3 is not installed".to_owned()),
                ..Outgoing::default()
            };
        }

        // Clocks of hosts are not read: starts are commands of this one.
        (self.hello.mono_ns, self.hello.unix_ns) = (clock::monotonic_ns(), clock::unix_ns());
        self.agent = Some(Box::new(Agent::new(
            clock::monotonic_ns(),
            Service::Stream,
            self.hello.clone(),
        )));
        self.act()
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
            Action::StopRound { round, .. } => {
                self.stop = Some(Some(round));
                self.stop_tests(|_| true, outgoing);
            }
            Action::StopAll { .. } => {
                self.stop = Some(None);
                self.stop_tests(|_| true, outgoing);
            }
            Action::Leave(reason) => outgoing.lost = Some(format!("{reason:?}")),
            Action::Admit(_) => {}
        }
    }

    fn start(&mut self, task: ArmTask, outgoing: &mut Outgoing) {
        self.is_arming = true;
        let own = self
            .plan
            .iter()
            .flat_map(|plan| &plan.addresses)
            .find(|own| own.path == task.path);
        let (Some(local), Some(run)) = (
            own.map(|own| own.address),
            self.agent.as_ref().and_then(|agent| agent.run()),
        ) else {
            return self.give(Input::ArmFailed {
                text: format!("path {}: no address", task.path),
            });
        };

        if !task.is_client() {
            outgoing.commands.push(shell::server(run, &task, local));
        }

        let (is_ready, is_sent) = (task.is_client(), !task.is_client());
        let (begin_at_ns, started_ns, output) = (None, None, String::new());
        self.tests.push(Test {
            task,
            local,
            pid: None,
            is_ready,
            begin_at_ns,
            is_sent,
            started_ns,
            output,
        });
    }

    /// Ends tests: processes by signal, clients that have not begun at once.
    fn stop_tests(&mut self, is_meant: impl Fn(&Test) -> bool, outgoing: &mut Outgoing) {
        let pids = self
            .tests
            .iter()
            .filter(|test| is_meant(test))
            .filter_map(|test| test.pid);
        outgoing.commands.extend(pids.map(shell::kill));
        self.tests
            .retain(|test| !is_meant(test) || test.pid.is_some() || test.is_sent);
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

    fn started(&mut self, task: TaskId, pid: u32) {
        if let Some(test) = self.test(task) {
            test.pid = Some(pid);
        }
    }

    fn output(&mut self, task: TaskId, text: &str) {
        let Some(test) = self.test(task) else { return };
        // iperf3 prints `Server listening on PORT` once its socket is bound.
        test.is_ready |= text.contains("listening");

        if test.output.len() + text.len() < OUTPUT_MAX_BYTES {
            test.output.push_str(text);
            test.output.push('\n');
        }

        let is_open = test.started_ns.is_none() && !test.task.is_client();
        let Some(length_ns) = shell::first_interval_ns(text).filter(|_| is_open) else {
            return;
        };
        let at_ns = clock::monotonic_ns().saturating_sub(length_ns);
        test.started_ns = Some(at_ns);
        self.give(Input::Started { task, at_ns });
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
        let (task, started_ns) = (self.task.task, self.started_ns);
        let failed = |reason: String| {
            let end = TaskEnd {
                outcome: Outcome::Failed,
                started_ns,
                ..TaskEnd::aborted(&reason)
            };
            Finish::without_record(task, end)
        };

        let done = TaskEnd {
            started_ns,
            ..TaskEnd::done()
        };
        if self.task.role == Role::Server {
            return match code {
                0 => Finish::without_record(task, done),
                _ => failed(self.last_line(code)),
            };
        }

        let Some((record, summary)) = record_of(&self.output).filter(|_| code == 0) else {
            return failed(self.last_line(code));
        };
        let (bytes, elapsed_ns) = totals(&summary);
        Finish {
            task,
            end: TaskEnd {
                bytes,
                elapsed_ns,
                ..done
            },
            record: text::write(&record),
        }
    }

    /// `iperf3: error - unable to connect to server`
    fn last_line(&self, code: i32) -> String {
        let error = self
            .output
            .lines()
            .rev()
            .find(|line| line.contains("error"));
        let text = error.map(|line| line.trim().trim_matches([',', '"']).to_owned());
        text.unwrap_or_else(|| format!("iperf3 ended with {code}"))
    }
}
