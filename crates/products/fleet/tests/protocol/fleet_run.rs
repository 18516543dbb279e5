//! Whole runs of a coordinator and its agents in simulated time, with hosts whose clocks differ and
//! hosts that freeze.

use std::collections::BTreeMap;

use linerate_fleet::TaskId;
use linerate_fleet::protocol::agent::{
    Action as AgentAction, Agent, Finish, Input as AgentInput, Service,
};
use linerate_fleet::protocol::coordinator::{
    Action, Coordinator, DropReason, End, Input, NotRun, RoundPlan, RoundTask, Settings, Step,
};
use linerate_fleet::protocol::message::{
    ArmTask, Hello, Outcome, PREAMBLE, Plan, Preflight, Preflighted, TaskEnd, Versions,
};

use crate::dialogue::{run_id, task};

const MS_NS: u64 = 1_000_000;
/// As long as a coordinator waits for hosts over ssh; an agent waits for its plan for a third of
/// it.
const HELLO_TIMEOUT_NS: u64 = 30_000 * MS_NS;
/// Delay of a line.
const DELAY_NS: u64 = MS_NS / 10;
const TASK_NS: u64 = 2_000 * MS_NS;

/// An agent with its owner.
struct Host {
    agent: Agent,
    /// When it starts.
    arrival_ns: u64,
    /// Its clock is ahead by this.
    offset_ns: u64,
    /// Neither lines nor time reach it.
    is_frozen: bool,
    starting: u32,
    /// Starts and ends of its workers, in its clock.
    due: Vec<(u64, TaskId, bool)>,
    /// Starts so far, in the clock of the coordinator.
    starts: Vec<u64>,
    has_left: bool,
}

/// A coordinator and its hosts.
struct Fleet {
    now_ns: u64,
    coordinator: Coordinator,
    hosts: Vec<Host>,
    /// Lines on their way, by arrival; `None` is the coordinator, as receiver.
    lines: BTreeMap<(u64, u64), (Option<usize>, usize, String)>,
    sent: u64,
    actions: Vec<(u64, Action)>,
}

impl Fleet {
    fn new(count: usize) -> Self {
        Self::with_arrivals(&vec![0; count])
    }

    /// Hosts whose agents start after these times.
    fn with_arrivals(arrivals_ns: &[u64]) -> Self {
        let count = arrivals_ns.len();
        let settings = Settings {
            run: run_id(1).parse().expect("a run"),
            epoch: 1,
            hello_timeout_ns: HELLO_TIMEOUT_NS,
            silence_max_ns: 4_000 * MS_NS,
            beat_ns: 1_000 * MS_NS,
            is_solicited: false,
            clock_budget_ns: 10 * MS_NS,
        };

        let hello = Hello {
            protocol: Versions { min: 1, max: 1 },
            ..Hello::default()
        };
        let host = |(index, arrival_ns): (usize, &u64)| {
            let offset_ns = index as u64 * 3_600_000 * MS_NS;
            let agent = Agent::new(arrival_ns + offset_ns, Service::Stream, hello.clone());
            Host {
                agent,
                arrival_ns: *arrival_ns,
                offset_ns,
                is_frozen: false,
                starting: 0,
                due: Vec::new(),
                starts: Vec::new(),
                has_left: false,
            }
        };

        Self {
            now_ns: 0,
            coordinator: Coordinator::new(0, settings, count),
            hosts: arrivals_ns.iter().enumerate().map(host).collect(),
            lines: BTreeMap::new(),
            sent: 0,
            actions: Vec::new(),
        }
    }

    fn input(&mut self, input: Input) {
        self.coordinator
            .handle_local(self.now_ns, input)
            .expect("the step before has ended");
    }

    /// Time passes until the coordinator has done this.
    fn run_until(&mut self, is_last: impl Fn(&Action) -> bool) {
        let first = self.actions.len();
        for _ in 0..100_000 {
            self.drain();
            if self
                .actions
                .iter()
                .skip(first)
                .any(|(_, action)| is_last(action))
            {
                return;
            }

            self.pass_time();
        }

        panic!("no end: {:#?}", self.actions);
    }

    /// Time passes until something is due.
    fn pass_time(&mut self) {
        let line = self.lines.keys().next().map(|(at_ns, _)| *at_ns);
        let hosts = self.hosts.iter().filter_map(Host::next_ns).min();
        let next = [line, hosts, self.coordinator.poll_timeout()]
            .into_iter()
            .flatten()
            .min();
        self.now_ns = self.now_ns.max(next.expect("something is due"));
        self.carry();
    }

    fn carry(&mut self) {
        while let Some(entry) = self
            .lines
            .first_entry()
            .filter(|entry| entry.key().0 <= self.now_ns)
        {
            let (to, from, line) = entry.remove();
            match to {
                Some(host) => self.hosts[host].receive(self.now_ns, &line),
                None => self
                    .coordinator
                    .handle_line(self.now_ns, from, line.as_bytes()),
            }
        }

        self.coordinator.handle_timeout(self.now_ns);
        self.hosts
            .iter_mut()
            .for_each(|host| host.handle_time(self.now_ns));
    }

    fn drain(&mut self) {
        while let Some(action) = self.coordinator.poll_action() {
            match action {
                Action::Send { hosts, line } => hosts
                    .iter()
                    .for_each(|host| self.send(Some(*host), *host, &line)),
                Action::Greeted { host } => self.input(Input::Plan {
                    host,
                    plan: Box::new(plan()),
                }),
                action => self.actions.push((self.now_ns, action)),
            }
        }

        for index in 0..self.hosts.len() {
            for line in self.hosts[index].obey(self.now_ns) {
                self.send(None, index, &line);
            }
        }
    }

    fn send(&mut self, to: Option<usize>, host: usize, line: &str) {
        self.sent += 1;
        self.lines.insert(
            (self.now_ns + DELAY_NS, self.sent),
            (to, host, line.to_owned()),
        );
    }

    /// HELLO, plan, preflight and clocks of all hosts.
    fn prepare(&mut self) {
        self.run_until(|action| *action == Action::StepDone(Step::Hello));
        self.input(Input::PlansSent);
        self.run_until(|action| *action == Action::StepDone(Step::Plan));

        let preflight = || Preflight {
            partners: vec!["10.0.0.2".parse().expect("an address")],
            peers: Vec::new(),
            has_facts: false,
        };
        self.input(Input::Preflight(
            (0..self.hosts.len())
                .map(|host| (host, preflight()))
                .collect(),
        ));
        self.run_until(|action| *action == Action::StepDone(Step::Preflight));
        self.input(Input::Clocks { exchanges: 8 });
        self.run_until(|action| *action == Action::StepDone(Step::Clock));
    }

    fn round(&mut self, number: u32, pairs: &[(usize, usize)]) {
        self.hosts.iter_mut().for_each(|host| host.starts.clear());
        let tasks = (0..).zip(pairs).map(|(index, (client, server))| {
            let id = u64::from(number) * 100 + index;
            let end = |host: usize, role: &str| End {
                host,
                spec: spec(id, role),
            };
            let server = Some(end(*server, "server"));
            RoundTask {
                task: TaskId(id.into()),
                client: end(*client, "client"),
                server,
                nominal_bps: Some(1_000_000_000),
            }
        });
        let plan = RoundPlan {
            number,
            tasks: tasks.collect(),
            data_rtt_ns: 2 * DELAY_NS,
        };
        self.input(Input::Round(Box::new(plan)));
        self.run_until(|action| matches!(action, Action::RoundDone { .. }));
    }

    fn results(&self) -> Vec<(TaskId, Outcome, bool)> {
        let result = |(_, action): &(u64, Action)| match action {
            Action::Result(result)
                if result.role == linerate_fleet::protocol::message::Role::Client =>
            {
                Some((result.task, result.end.outcome, result.is_plausible))
            }
            _ => None,
        };
        self.actions.iter().filter_map(result).collect()
    }

    fn not_run(&self) -> Vec<NotRun> {
        let reason = |(_, action): &(u64, Action)| match action {
            Action::NotRun { reason, .. } => Some(*reason),
            _ => None,
        };
        self.actions.iter().filter_map(reason).collect()
    }

    /// Distance of the starts of a round on the coordinator's clock.
    fn spread_ns(&self) -> u64 {
        let starts = || self.hosts.iter().flat_map(|host| &host.starts);
        starts().max().expect("starts") - starts().min().expect("starts")
    }
}

impl Host {
    fn next_ns(&self) -> Option<u64> {
        let due = self.due.iter().map(|(at_ns, ..)| *at_ns);
        let next = self
            .agent
            .poll_timeout()
            .into_iter()
            .chain(due)
            .min()
            .filter(|_| !self.is_frozen);
        next.map(|at_ns| at_ns.saturating_sub(self.offset_ns).max(self.arrival_ns))
    }

    fn receive(&mut self, now_ns: u64, line: &str) {
        if !self.is_frozen {
            self.agent
                .handle_line(now_ns + self.offset_ns, line.as_bytes());
        }
    }

    fn handle_time(&mut self, now_ns: u64) {
        if self.is_frozen || now_ns < self.arrival_ns {
            return;
        }

        let now_ns = now_ns + self.offset_ns;
        while let Some(at) = self.due.iter().position(|(at_ns, ..)| *at_ns <= now_ns) {
            let (at_ns, task, is_end) = self.due.remove(at);
            if is_end {
                self.agent.handle_local(finished(task));
            } else {
                self.starts.push(at_ns - self.offset_ns);
                self.agent.handle_local(AgentInput::Started { task, at_ns });
            }
        }

        self.agent.handle_timeout(now_ns);
    }

    /// Does what the agent requests and returns its lines.
    fn obey(&mut self, now_ns: u64) -> Vec<String> {
        if now_ns < self.arrival_ns {
            return Vec::new();
        }

        let now_ns = now_ns + self.offset_ns;
        let mut lines = Vec::new();

        while let Some(action) = self.agent.poll_action() {
            let answer = match action {
                AgentAction::Send(line) => {
                    lines.extend(Some(line).filter(|line| line != PREAMBLE));
                    None
                }
                AgentAction::Prepare(_) => Some(AgentInput::Planned { ports: vec![5201] }),
                AgentAction::Probe(_) => Some(AgentInput::Preflighted(Box::new(Preflighted {
                    peers: Vec::new(),
                    facts: None,
                }))),
                AgentAction::ReadClock { c1_ns, a2_ns } => Some(AgentInput::Clock {
                    c1_ns,
                    a2_ns,
                    a3_ns: now_ns,
                }),
                AgentAction::StartWorker { task, .. } => {
                    self.starting += 1;
                    // A server ends with its client.
                    self.due.extend((!task.is_client()).then_some((
                        now_ns + TASK_NS + 300 * MS_NS,
                        task.task,
                        true,
                    )));
                    None
                }
                AgentAction::BeginAt { task, at_ns } => {
                    self.due
                        .extend([(at_ns, task, false), (at_ns + TASK_NS, task, true)]);
                    None
                }
                AgentAction::Stop { round, .. } => {
                    self.due.clear();
                    Some(AgentInput::Stopped(round))
                }
                AgentAction::Leave(_) => {
                    self.has_left = true;
                    None
                }
                _ => None,
            };
            answer
                .into_iter()
                .for_each(|answer| self.agent.handle_local(answer));

            let is_ready = std::mem::take(&mut self.starting) > 0;
            if is_ready {
                self.agent.handle_local(AgentInput::Armed);
            }
        }

        lines
    }
}

fn finished(task: TaskId) -> AgentInput {
    let end = TaskEnd {
        bytes: 235_000_000,
        elapsed_ns: TASK_NS,
        ..TaskEnd::done()
    };
    AgentInput::Finished(Box::new(Finish {
        task,
        end,
        record: "{}".to_owned(),
    }))
}

fn plan() -> Plan {
    let text = r#"{"lease_ms":3000,"addresses":[{"path":"phys","address":"10.0.0.1"}],
        "ports":{"first":5201,"last":5209}}"#;
    serde_json::from_str(text).expect("a plan")
}

fn spec(id: u64, role: &str) -> ArmTask {
    serde_json::from_value(task(id, role)).expect("a task")
}

/// Rounds of a complete tournament, circle method: the first stays, the others rotate.
fn tournament(count: usize) -> Vec<Vec<(usize, usize)>> {
    let place = |round: usize, at: usize| {
        if at == 0 {
            0
        } else {
            1 + (at + round) % (count - 1)
        }
    };
    let pairs = |round| {
        (0..count / 2)
            .map(|at| (place(round, at), place(round, count - 1 - at)))
            .collect()
    };
    (0..count - 1).map(pairs).collect()
}

#[test]
fn mesh_of_eight_hosts_with_different_clocks_is_complete_and_starts_together() {
    let mut fleet = Fleet::new(8);
    fleet.prepare();

    for (number, pairs) in (1..).zip(tournament(8)) {
        let first = fleet.actions.len();
        fleet.round(number, &pairs);
        fleet.actions.drain(..first);
        assert_eq!(fleet.results().len(), 4, "{:#?}", fleet.actions);
        assert!(
            fleet
                .results()
                .iter()
                .all(|(_, outcome, is_plausible)| *outcome == Outcome::Done && *is_plausible)
        );
        assert!(fleet.spread_ns() < MS_NS, "{} ns", fleet.spread_ns());
    }

    assert!(fleet.now_ns < 7 * 3_200 * MS_NS, "{} ns", fleet.now_ns);
    fleet.input(Input::Cancel);
    fleet.run_until(|action| {
        *action
            == Action::Finished {
                unconfirmed: Vec::new(),
            }
    });
    assert!(
        fleet.hosts.iter().all(|host| host.has_left),
        "no agent stays"
    );
}

#[test]
fn frozen_host_delays_a_round_by_its_deadline_and_costs_its_own_tasks_alone() {
    let mut fleet = Fleet::new(4);
    fleet.prepare();
    fleet.hosts[3].is_frozen = true;

    let begin_ns = fleet.now_ns;
    fleet.round(1, &[(0, 1), (2, 3)]);
    assert_eq!(fleet.results(), [(TaskId(100), Outcome::Done, true)]);
    assert_eq!(fleet.not_run(), [NotRun::SlowControl]);

    // ARMED 2 s, lead, task, results.
    assert!(
        fleet.now_ns - begin_ns < 5_100 * MS_NS,
        "{} ns",
        fleet.now_ns - begin_ns
    );
    fleet.round(2, &[(0, 2), (1, 3)]);

    // It has not confirmed the end of the first round, and while the second one waits for it, its
    // silence is too long.
    fleet.round(3, &[(0, 1), (2, 3)]);
    assert_eq!(
        fleet.not_run(),
        [NotRun::SlowControl, NotRun::HostOut, NotRun::HostOut]
    );
    assert_eq!(fleet.results().len(), 3);
    fleet.input(Input::Cancel);
    fleet.run_until(|action| {
        *action
            == Action::Finished {
                unconfirmed: Vec::new(),
            }
    });
}

#[test]
fn host_that_freezes_while_it_runs_costs_its_own_task_alone() {
    let mut fleet = Fleet::new(4);
    fleet.prepare();

    let spec = |id: u64| End {
        host: id as usize,
        spec: spec(
            100 + id / 2,
            if id.is_multiple_of(2) {
                "client"
            } else {
                "server"
            },
        ),
    };
    let tasks = [0, 2].map(|id| RoundTask {
        task: TaskId(u128::from(100 + id / 2)),
        client: spec(id),
        server: Some(spec(id + 1)),
        nominal_bps: None,
    });
    fleet.input(Input::Round(Box::new(RoundPlan {
        number: 1,
        tasks: tasks.to_vec(),
        data_rtt_ns: 0,
    })));
    while fleet.hosts[2].starts.is_empty() {
        fleet.drain();
        fleet.pass_time();
    }
    fleet.hosts[2].is_frozen = true;
    fleet.run_until(|action| matches!(action, Action::RoundDone { .. }));
    assert_eq!(fleet.results(), [(TaskId(100), Outcome::Done, true)]);
    assert_eq!(fleet.not_run(), [NotRun::HostLost]);

    // The thawed host finds its lease expired.
    fleet.hosts[2].is_frozen = false;
    fleet.input(Input::Cancel);
    fleet.run_until(|action| {
        *action
            == Action::Finished {
                unconfirmed: Vec::new(),
            }
    });
    assert!(
        fleet.hosts.iter().all(|host| host.has_left),
        "no agent stays"
    );
}

/// A shell that prints its first line late neither ends the run of the others nor is lost itself,
/// unless its time has passed.
#[test]
fn hosts_that_arrive_late_take_part_and_one_that_does_not_arrive_is_left_out() {
    let mut fleet = Fleet::with_arrivals(&[0, 12_000 * MS_NS, 29_000 * MS_NS, 31_000 * MS_NS]);
    fleet.prepare();
    let is_planned = |host: &usize| fleet.coordinator.is_planned(*host);
    assert_eq!(
        (0..4).filter(is_planned).collect::<Vec<_>>(),
        [0, 1, 2],
        "{:#?}",
        fleet.actions
    );

    let dropped = Action::Dropped {
        host: 3,
        reason: DropReason::Late(Step::Hello),
    };
    let left_out = fleet
        .actions
        .iter()
        .filter(|(_, action)| matches!(action, Action::Dropped { .. }));
    assert_eq!(
        left_out.map(|(_, action)| action).collect::<Vec<_>>(),
        [&dropped]
    );
    fleet.round(1, &[(0, 1), (2, 3)]);
    assert_eq!(fleet.results(), [(TaskId(100), Outcome::Done, true)]);
    assert_eq!(fleet.not_run(), [NotRun::HostOut]);
    fleet.round(2, &[(1, 2)]);
    assert_eq!(fleet.results().len(), 2);
    assert!(
        fleet.now_ns < HELLO_TIMEOUT_NS + 8_000 * MS_NS,
        "{} ns",
        fleet.now_ns
    );
}

#[test]
fn agents_end_within_the_lease_when_the_coordinator_is_silent() {
    let mut fleet = Fleet::new(2);
    fleet.prepare();
    let begin_ns = fleet.now_ns;

    for _ in 0..1_000 {
        let Some(next_ns) = fleet.hosts.iter().filter_map(Host::next_ns).min() else {
            break;
        };
        fleet.now_ns = fleet.now_ns.max(next_ns);

        for host in &mut fleet.hosts {
            host.handle_time(fleet.now_ns);
            host.obey(fleet.now_ns);
        }
    }

    assert!(fleet.hosts.iter().all(|host| host.has_left));
    assert!(
        fleet.now_ns - begin_ns <= 3_000 * MS_NS,
        "{} ns",
        fleet.now_ns - begin_ns
    );
}
