//! An agent at the other end of an in-memory pipe, with an owner that does its part at once.

use std::collections::VecDeque;

use linerate_fleet::TaskId;
use linerate_fleet::protocol::agent::{Action, Agent, Finish, Input, Service};
use linerate_fleet::protocol::line::LINE_MAX_BYTES;
use linerate_fleet::protocol::message::{
    Hello, Outcome, Preflighted, ProbeOutcome, ProbeReport, TaskEnd, Versions,
};

use linerate_model::snapshot::{Snapshot, Source};

use crate::player::Carrier;

/// The agent, its owner, and the lines between it and the player.
pub(crate) struct AgentPipe {
    agent: Agent,
    now_ns: u64,
    lines: VecDeque<String>,
    actions: Vec<String>,
    mode: Mode,
    /// Workers that were started and not reported.
    starting: u32,
    /// Starts that are due.
    begins: Vec<(u64, TaskId)>,
    has_left: bool,
}

/// Reaction of the owner.
#[derive(PartialEq, Eq)]
enum Mode {
    Obeys,
    Silent,
    Refuses,
}

const MS_NS: u64 = 1_000_000;

impl AgentPipe {
    pub(crate) fn new(is_bus: bool) -> Self {
        let service = if is_bus {
            Service::Bus
        } else {
            Service::Stream
        };
        let mut pipe = Self {
            agent: Agent::new(0, service, hello()),
            now_ns: 0,
            lines: VecDeque::new(),
            actions: Vec::new(),
            mode: Mode::Obeys,
            starting: 0,
            begins: Vec::new(),
            has_left: false,
        };
        pipe.obey();

        pipe
    }

    fn input(&mut self, input: Input) {
        self.agent.handle_local(input);
        self.obey();
    }

    fn obey(&mut self) {
        while let Some(action) = self.agent.poll_action() {
            assert!(!self.has_left, "nothing follows the end: {action:?}");
            self.obey_one(action);
        }

        if self.starting > 0 && self.mode != Mode::Silent {
            self.starting = 0;
            let refused = Input::ArmFailed {
                text: "no worker".to_owned(),
            };
            let armed = Input::Armed;
            self.input(if self.mode == Mode::Refuses {
                refused
            } else {
                armed
            });
        }
    }

    fn obey_one(&mut self, action: Action) {
        let (text, answer) = match action {
            Action::Send(line) => {
                assert!(line.len() <= LINE_MAX_BYTES);
                return self.lines.push_back(line);
            }
            Action::Describe => ("Describe".to_owned(), Some(Input::Hello(Box::new(hello())))),
            Action::Prepare(_) if self.mode == Mode::Refuses => (
                "Prepare".to_owned(),
                Some(Input::PlanRefused {
                    text: "no port".to_owned(),
                }),
            ),
            Action::Prepare(plan) => (
                format!("Prepare {}", plan.lease_ms),
                Some(Input::Planned {
                    ports: vec![plan.ports.first],
                }),
            ),
            Action::Probe(preflight) => (
                "Probe".to_owned(),
                Some(Input::Preflighted(Box::new(report(&preflight.peers)))),
            ),
            Action::ReadClock { c1_ns, a2_ns } => {
                let a3_ns = a2_ns + 1;
                (
                    format!("ReadClock {c1_ns}"),
                    Some(Input::Clock {
                        c1_ns,
                        a2_ns,
                        a3_ns,
                    }),
                )
            }
            Action::Admit(addresses) => (format!("Admit {}", addresses.len()), None),
            Action::StartWorker { round, task } => {
                self.starting += 1;
                (
                    format!("StartWorker {round} {} {:?}", task.task, task.role),
                    None,
                )
            }
            Action::BeginAt { task, at_ns } => {
                self.begins.push((at_ns, task));
                (format!("BeginAt {task} {at_ns}"), None)
            }
            Action::StopTask { task, reason } => {
                (format!("StopTask {task} {}", reason.as_str()), None)
            }
            Action::Stop { round, reason } => {
                self.begins.clear();
                let reason = reason.as_str();
                let text = match round {
                    Some(round) => format!("StopRound {round} {reason}"),
                    None => format!("StopAll {reason}"),
                };
                (text, Some(Input::Stopped(round)))
            }
            Action::Leave(reason) => {
                self.has_left = true;
                (format!("Leave {reason:?}"), None)
            }
        };
        self.actions.push(text);

        if let Some(answer) = answer.filter(|_| self.mode != Mode::Silent) {
            self.agent.handle_local(answer);
        }
    }

    fn finish(&mut self, words: &[&str]) {
        let number = words
            .first()
            .and_then(|word| word.parse().ok())
            .expect("a task");
        let record_bytes: usize = words
            .get(1)
            .map_or(2, |word| word.parse().expect("a length"));

        let end = TaskEnd {
            outcome: Outcome::Done,
            reason: None,
            planned_ns: None,
            started_ns: Some(1_000_000_000),
            clock_step_ns: 0,
            bytes: 100,
            elapsed_ns: 2_000_000_000,
        };
        let record = format!("\"{}\"", "x".repeat(record_bytes.saturating_sub(2)));
        self.input(Input::Finished(Box::new(Finish {
            task: TaskId(number),
            end,
            record,
        })));
    }
}

impl Carrier for AgentPipe {
    fn feed(&mut self, _: &str, line: &str) {
        self.agent.handle_line(self.now_ns, line.as_bytes());
        self.obey();
    }

    fn next_line(&mut self, _: &str) -> Option<String> {
        self.lines.pop_front()
    }

    fn pass_until(&mut self, ms: u64) {
        let end_ns = ms * MS_NS;
        for turn in 0.. {
            assert!(turn < 10_000, "timers make no progress");
            let timer_ns = self.agent.poll_timeout();

            let begin_ns = self
                .begins
                .iter()
                .map(|(at_ns, _)| *at_ns)
                .min()
                .filter(|_| self.mode != Mode::Silent);
            let Some(next_ns) = timer_ns
                .into_iter()
                .chain(begin_ns)
                .min()
                .filter(|at_ns| *at_ns <= end_ns)
            else {
                break;
            };
            self.now_ns = self.now_ns.max(next_ns);

            if let Some(at) = self
                .begins
                .iter()
                .position(|(at_ns, _)| begin_ns == Some(*at_ns) && *at_ns <= self.now_ns)
            {
                let (at_ns, task) = self.begins.remove(at);
                self.input(Input::Started { task, at_ns });
            }

            self.agent.handle_timeout(self.now_ns);
            self.obey();
        }

        self.now_ns = end_ns;
    }

    fn own(&mut self, command: &str) {
        let words: Vec<&str> = command.split_whitespace().collect();
        match words.as_slice() {
            ["obey"] => self.mode = Mode::Obeys,
            ["silence"] => self.mode = Mode::Silent,
            ["refuse"] => self.mode = Mode::Refuses,
            ["finish", words @ ..] => self.finish(words),
            ["eof"] => {
                self.agent.handle_lost(self.now_ns);
                self.obey();
            }
            ["stopped", words @ ..] => {
                let round = words.first().map(|word| word.parse().expect("a round"));
                self.input(Input::Stopped(round));
            }
            ["long"] => {
                self.agent.handle_too_long();
                self.obey();
            }
            ["repeat", words @ ..] => {
                // A dialogue that needs more room than a line: the same line many times.
                let (count, line) = words.split_first().expect("a number");
                (0..count.parse().expect("a number"))
                    .for_each(|_: u32| self.feed("", &line.join(" ")));
            }
            _ => panic!("{command}: not known"),
        }
    }

    fn actions(&self) -> &[String] {
        &self.actions
    }
}

fn hello() -> Hello {
    Hello {
        protocol: Versions { min: 1, max: 1 },
        version: "0.2.0".to_owned(),
        ..Hello::default()
    }
}

fn report(peers: &[linerate_fleet::protocol::message::ProbeTarget]) -> Preflighted {
    let probed = |target: &linerate_fleet::protocol::message::ProbeTarget| ProbeReport {
        peer: target.peer,
        port: target.port,
        outcome: ProbeOutcome::Ok,
        rtt_ns: Some(200_000),
        device: Some("eth1".to_owned()),
        mtu_bytes: Some(1500),
        bridge_port: None,
    };
    Preflighted {
        peers: peers.iter().map(probed).collect(),
        facts: Some(Box::new(Snapshot::new("h", Source::Live))),
    }
}
