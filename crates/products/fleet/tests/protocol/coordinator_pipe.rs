//! A coordinator at the other end of in-memory pipes, one per host, with an owner that a dialogue
//! directs.

use std::collections::VecDeque;

use linerate_fleet::TaskId;
use linerate_fleet::protocol::coordinator::{
    Action, Coordinator, End, Input, NotRun, RoundPlan, RoundTask, Settings,
};
use linerate_fleet::protocol::message::{ArmTask, FailCode, Plan, Preflight};
use serde_json::{Value, json};

use crate::dialogue::{run_id, task};
use crate::player::Carrier;

/// The coordinator and the lines to its hosts.
pub(crate) struct CoordinatorPipe {
    coordinator: Coordinator,
    now_ns: u64,
    names: Vec<String>,
    lines: Vec<VecDeque<String>>,
    actions: Vec<String>,
    has_finished: bool,
}

const MS_NS: u64 = 1_000_000;

impl CoordinatorPipe {
    pub(crate) fn new(names: &[String], is_solicited: bool) -> Self {
        let settings = Settings {
            run: run_id(1).parse().expect("a run"),
            epoch: 1,
            hello_timeout_ns: 10_000 * MS_NS,
            silence_max_ns: 60_000 * MS_NS,
            beat_ns: 1_000 * MS_NS,
            is_solicited,
            clock_budget_ns: 10 * MS_NS,
        };
        let mut pipe = Self {
            coordinator: Coordinator::new(0, settings, names.len()),
            now_ns: 0,
            names: names.to_vec(),
            lines: vec![VecDeque::new(); names.len()],
            actions: Vec::new(),
            has_finished: false,
        };
        pipe.drain();

        pipe
    }

    fn host(&self, name: &str) -> usize {
        self.names
            .iter()
            .position(|known| known == name)
            .unwrap_or_else(|| panic!("{name:?}: no host"))
    }

    fn name(&self, host: usize) -> &str {
        &self.names[host]
    }

    fn joined(&self, hosts: &[usize]) -> String {
        hosts
            .iter()
            .map(|host| self.name(*host))
            .collect::<Vec<_>>()
            .join(",")
    }

    fn drain(&mut self) {
        while let Some(action) = self.coordinator.poll_action() {
            assert!(!self.has_finished, "nothing follows the end: {action:?}");
            let text = match action {
                Action::Send { hosts, line } => {
                    hosts
                        .iter()
                        .for_each(|host| self.lines[*host].push_back(line.clone()));
                    continue;
                }
                Action::Dropped { host, reason } => format!("Dropped {} {reason}", self.name(host)),
                Action::Greeted { host } => format!("Greeted {}", self.name(host)),
                Action::StepDone(step) => format!("StepDone {step:?}"),
                Action::Preflighted { host, report } => {
                    format!("Preflighted {} {}", self.name(host), report.peers.len())
                }
                Action::Failed { host, fail } => {
                    format!("Failed {} {:?}", self.name(host), fail.code)
                }

                Action::Result(result) => {
                    let (role, outcome) = (result.role, result.end.outcome);
                    let plausible = if result.is_plausible {
                        "plausible"
                    } else {
                        "implausible"
                    };

                    let (host, len) = (self.name(result.host), result.record.len());
                    format!(
                        "Result {host} {} {role:?} {outcome:?} {plausible} {len}",
                        result.task
                    )
                }
                Action::NotRun { task, reason } => {
                    format!(
                        "NotRun {task} {reason}{}",
                        if may_retry(reason) { " retry" } else { "" }
                    )
                }
                Action::RoundDone { round, unconfirmed } => {
                    format!("RoundDone {round} [{}]", self.joined(&unconfirmed))
                }
                Action::Finished { unconfirmed } => {
                    self.has_finished = true;
                    format!("Finished [{}]", self.joined(&unconfirmed))
                }
            };
            self.actions.push(text);
        }
    }

    fn input(&mut self, input: Input) {
        if self.coordinator.handle_local(self.now_ns, input).is_err() {
            self.actions.push("Busy".to_owned());
        }
        self.drain();
    }

    fn plan(&mut self, host: usize) {
        self.input(Input::Plan {
            host,
            plan: Box::new(plan()),
        });
    }

    /// `1 a>b b>c`: tasks with the numbers 0x11, 0x12, …
    fn round(&self, words: &[&str]) -> Input {
        let (number, pairs) = words.split_first().expect("a number");
        let number: u32 = number.parse().expect("a number");
        let tasks = (1..).zip(pairs).map(|(index, pair)| {
            let (client, server) = pair.split_once('>').expect("a pair");
            let id = u64::from(number) * 16 + index;
            let end = |name: &str, role: &str| End {
                host: self.host(name),
                spec: arm_task(id, role),
            };
            let server = Some(server)
                .filter(|server| *server != "-")
                .map(|server| end(server, "server"));

            RoundTask {
                task: TaskId(id.into()),
                client: end(client, "client"),
                server,
                nominal_bps: Some(1_000_000_000),
            }
        });

        Input::Round(Box::new(RoundPlan {
            number,
            tasks: tasks.collect(),
            data_rtt_ns: 0,
        }))
    }

    fn everyone<T>(&self, of_each: impl Fn() -> T) -> Vec<(usize, T)> {
        (0..self.names.len())
            .map(|host| (host, of_each()))
            .collect()
    }
}

impl Carrier for CoordinatorPipe {
    fn feed(&mut self, host: &str, line: &str) {
        let host = self.host(host);
        self.coordinator
            .handle_line(self.now_ns, host, line.as_bytes());
        self.drain();
    }

    fn next_line(&mut self, host: &str) -> Option<String> {
        let host = self.host(host);
        self.lines[host].pop_front()
    }

    fn pass_until(&mut self, ms: u64) {
        let end_ns = ms * MS_NS;
        for turn in 0.. {
            assert!(turn < 10_000, "timers make no progress");
            let Some(at_ns) = self
                .coordinator
                .poll_timeout()
                .filter(|at_ns| *at_ns <= end_ns)
            else {
                break;
            };
            self.now_ns = self.now_ns.max(at_ns);
            self.coordinator.handle_timeout(self.now_ns);
            self.drain();
        }

        self.now_ns = end_ns;
    }

    fn own(&mut self, command: &str) {
        let words: Vec<&str> = command.split_whitespace().collect();
        match words.as_slice() {
            ["plan"] => {
                (0..self.names.len()).for_each(|host| self.plan(host));
                self.input(Input::PlansSent);
            }
            ["plan", hosts @ ..] => hosts.iter().for_each(|host| self.plan(self.host(host))),
            ["plans-sent"] => self.input(Input::PlansSent),
            ["preflight"] => {
                let preflight = || Preflight {
                    partners: Vec::new(),
                    peers: Vec::new(),
                    has_facts: true,
                };
                self.input(Input::Preflight(self.everyone(preflight)));
            }
            ["clocks", count] => self.input(Input::Clocks {
                exchanges: count.parse().expect("a number"),
            }),
            ["round", words @ ..] => self.input(self.round(words)),
            ["cancel"] => self.input(Input::Cancel),
            ["lost", host] => {
                self.coordinator.handle_lost(self.now_ns, self.host(host));
                self.drain();
            }
            ["long", host] => {
                self.coordinator
                    .handle_too_long(self.now_ns, self.host(host));
                self.drain();
            }
            ["repeat", count, host, line @ ..] => {
                (0..count.parse().expect("a number"))
                    .for_each(|_: u32| self.feed(host, &line.join(" ")));
            }
            _ => panic!("{command}: not known"),
        }
    }

    fn actions(&self) -> &[String] {
        &self.actions
    }
}

fn plan() -> Plan {
    let plan = json!({
        "lease_ms": 3000, "addresses": [{"path": "phys", "address": "10.0.0.1"}],
        "ports": {"first": 5201, "last": 5209}
    });
    serde_json::from_value(plan).expect("a plan")
}

fn arm_task(id: u64, role: &str) -> ArmTask {
    let value: Value = task(id, role);
    serde_json::from_value(value).expect("a task")
}

/// Another round may give a result.
fn may_retry(reason: NotRun) -> bool {
    match reason {
        NotRun::SlowControl | NotRun::NoResult => true,
        NotRun::Refused(code) => {
            matches!(code, FailCode::State | FailCode::Order | FailCode::Late)
        }
        _ => false,
    }
}
