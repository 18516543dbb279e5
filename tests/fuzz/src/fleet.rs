//! Checks of fuzz targets and property tests of `linerate-fleet`: functions over arbitrary bytes
//! that panic when a promise is broken.

use std::fmt::Debug;

use linerate_fleet::TaskId;
use linerate_fleet::protocol::agent::{
    Action as AgentAction, Agent, Finish, Input as AgentInput, Service,
};
use linerate_fleet::protocol::coordinator::{
    Action, Coordinator, DropReason, End, Input, NotRun, RoundPlan, RoundTask, Settings,
    kept_results,
};
use linerate_fleet::protocol::line::{LINE_MAX_BYTES, LineReader, OpeningReader};
use linerate_fleet::protocol::message::{
    AgentMessage, ArmTask, CoordinatorMessage, FAIL_TEXT_MAX_BYTES, Hello, Message, Plan,
    Preflight, Preflighted, TaskEnd, Versions, decode, encode,
};
use linerate_fleet::spec::inventory;

use super::segments::pieces;

const MS_NS: u64 = 1_000_000;
const RUN: &str = "0199aaaa-0000-7000-8000-000000000001";
/// A preflight with the partner of every task.
const PREFLIGHT: &str = r#"{"partners":["10.0.0.2"],"peers":[{"peer":"10.0.0.2","port":5201}]}"#;

/// Lines are read alike in one piece and in segments; messages that are accepted survive; a refusal
/// is short.
pub fn lines(cuts: &[u8], bytes: &[u8]) {
    let whole = read([bytes]);
    assert_eq!(whole, read(pieces(cuts, bytes)));

    for line in whole.0 {
        message::<CoordinatorMessage>(&line);
        message::<AgentMessage>(&line);
    }

    let (mut opening, mut rest) = (OpeningReader::default(), bytes);
    let _ = opening.read(&mut rest);
}

/// Any text is an inventory within the bounds, or an error.
pub fn inventories(text: &str) {
    for read in [
        inventory::from_toml,
        inventory::from_ansible_json,
        inventory::parse,
    ] {
        if let Ok(inventory) = read(text) {
            assert!(inventory.hosts.len() <= inventory::HOSTS_MAX);
        }
    }

    if let Ok(names) = inventory::expand_list(text) {
        assert!(names.len() <= inventory::HOSTS_MAX);
    }

    let names = inventory::ssh_names::names(text, |_| vec![text.to_owned()]);
    assert!(names.len() <= inventory::HOSTS_MAX);
}

fn read<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (Vec<Vec<u8>>, usize) {
    let (mut reader, mut found, mut too_long) = (LineReader::default(), Vec::new(), 0);
    for mut piece in pieces {
        while !piece.is_empty() {
            match reader.read(&mut piece) {
                Ok(line) => found.extend(line),
                Err(_) => too_long += 1,
            }
            assert!(reader.buffered_bytes() <= LINE_MAX_BYTES);
        }
    }

    (found, too_long)
}

fn message<M: Message + Clone + PartialEq + Debug>(line: &[u8]) {
    match decode::<M>(line) {
        // Members that were absent are written, which may exceed a bound.
        Ok(envelope) => {
            if let Ok(again) = encode(&envelope) {
                assert_eq!(decode::<M>(again.as_bytes()), Ok(envelope));
            }
        }
        Err(refusal) => assert!(refusal.text.len() <= FAIL_TEXT_MAX_BYTES),
    }
}

/// Any events lead an agent to its end at most once; timers make progress; what it sends is within
/// the bounds.
pub fn agent(script: &[u8]) {
    for service in [Service::Stream, Service::Bus] {
        let hello = Hello {
            protocol: Versions { min: 1, max: 1 },
            ..Hello::default()
        };
        let mut agent = Agent::new(0, service, hello);
        let (mut now_ns, mut seq, mut has_left) = (0_u64, 0_u64, false);
        let (mut epoch, mut round) = (1, 0);

        // Half of the scripts begin with a plan and a preflight.
        if script.first().is_some_and(|byte| byte % 2 == 0) {
            seq = 1;
            agent.handle_line(now_ns, envelope(seq, 1, "plan", &json(&plan())).as_bytes());
            agent.handle_local(AgentInput::Planned { ports: vec![5201] });
            seq = 2;
            agent.handle_line(now_ns, envelope(seq, 1, "preflight", PREFLIGHT).as_bytes());
            agent.handle_local(agent_input(3));
        }

        for [kind, argument] in script.as_chunks::<2>().0 {
            match kind % 8 {
                0..=3 => {
                    seq += u64::from(*kind / 8 % 4 != 0);
                    epoch += u64::from(*argument == 239);
                    round += u32::from(matches!(argument % 16, 6..=8));

                    let id = (
                        if *argument == 255 { seq / 2 } else { seq },
                        if *argument == 223 { 1 } else { epoch },
                    );
                    agent.handle_line(now_ns, command(*argument, id, round, now_ns).as_bytes());
                }
                4 => agent.handle_line(
                    now_ns,
                    script.get(usize::from(*argument)..).unwrap_or_default(),
                ),
                5 => agent.handle_local(agent_input(*argument)),
                6 if *argument > 250 => agent.handle_lost(now_ns),
                6 => agent.handle_too_long(),
                // The owner does its part, and the coordinator continues.
                7 if *argument < 128 => {
                    [0, 5, 3, 255]
                        .into_iter()
                        .for_each(|kind| agent.handle_local(agent_input(kind)));
                    seq += 1;

                    let next = if *argument < 64 {
                        9 + 16 * (argument % 8)
                    } else {
                        6
                    };
                    round += u32::from(next == 6);
                    agent.handle_line(
                        now_ns,
                        command(next, (seq, epoch), round, now_ns).as_bytes(),
                    );
                }
                _ => {
                    now_ns += u64::from(*argument) * u64::from(*kind / 8) * MS_NS;
                    settle(
                        now_ns,
                        &mut agent,
                        Agent::poll_timeout,
                        Agent::handle_timeout,
                    );
                }
            }

            while let Some(action) = agent.poll_action() {
                assert!(!has_left, "nothing follows the end: {action:?}");
                match action {
                    AgentAction::Send(line) => {
                        assert!(line.len() <= LINE_MAX_BYTES && !line.contains('\n'));
                    }
                    AgentAction::Leave(_) => has_left = true,
                    _ => {}
                }
            }

            assert!(!has_left || agent.poll_timeout().is_none());
        }
    }
}

/// Handles timers until none is due. Each call moves the next one.
fn settle<M>(
    now_ns: u64,
    machine: &mut M,
    poll: impl Fn(&M) -> Option<u64>,
    handle: impl Fn(&mut M, u64),
) {
    for _ in 0..10_000 {
        match poll(machine) {
            Some(at_ns) if at_ns <= now_ns => handle(machine, at_ns),
            _ => return,
        }
    }

    panic!("timers make no progress");
}

/// Any events settle each task at most once, and end the run once.
pub fn coordinator(script: &[u8]) {
    let mut watch = Watch {
        coordinator: Coordinator::new(0, settings(), 3),
        ..Watch::new()
    };
    let mut now_ns = 1;
    let mut round = 0;

    // Half of the scripts begin with three planned hosts.
    if script.first().is_some_and(|byte| byte % 2 == 0) {
        (0..3).for_each(|step| lead(&mut watch.coordinator, step));
    }

    for [kind, argument] in script.as_chunks::<2>().0 {
        let host = usize::from(*kind / 8 % 3);
        let coordinator = &mut watch.coordinator;

        match kind % 8 {
            0..=3 => {
                coordinator.handle_line(now_ns, host, report(*argument, round, host).as_bytes());
            }
            4 => coordinator.handle_line(
                now_ns,
                host,
                script.get(usize::from(*argument)..).unwrap_or_default(),
            ),
            5 => {
                let mut next = round;
                let input = decision(*argument, &mut next);
                if coordinator.handle_local(now_ns, input).is_ok() {
                    round = next;
                }
            }
            6 if *argument > 250 => coordinator.handle_lost(now_ns, host),
            6 if *argument > 248 => coordinator.handle_too_long(now_ns, host),
            // All hosts report the same, as they mostly do.
            7 if *argument < 128 => {
                let report = |host| report(*argument, round, host);
                (0..3).for_each(|host| {
                    coordinator.handle_line(now_ns, host, report(host).as_bytes());
                });
            }
            _ => {
                now_ns += u64::from(*argument) * u64::from(*kind / 8) * MS_NS;
                settle(
                    now_ns,
                    coordinator,
                    Coordinator::poll_timeout,
                    Coordinator::handle_timeout,
                );
            }
        }

        watch.check();
    }

    let _ = watch.coordinator.handle_local(now_ns, Input::Cancel);
    watch.coordinator.handle_timeout(now_ns + 2_000 * MS_NS);
    watch.check();
    assert!(watch.has_finished, "CANCEL ends the run");
}

/// A coordinator and what its owner has received.
struct Watch {
    coordinator: Coordinator,
    settled: Vec<TaskId>,
    dropped: Vec<usize>,
    has_finished: bool,
}

impl Watch {
    fn new() -> Self {
        let coordinator = Coordinator::new(0, settings(), 0);
        Self {
            coordinator,
            settled: Vec::new(),
            dropped: Vec::new(),
            has_finished: false,
        }
    }

    fn check(&mut self) {
        while let Some(action) = self.coordinator.poll_action() {
            assert!(!self.has_finished, "nothing follows the end: {action:?}");
            match action {
                Action::Send { hosts, line } => {
                    assert!(!hosts.is_empty() && line.len() <= LINE_MAX_BYTES);
                }
                Action::Dropped { host, .. } => {
                    assert!(!self.dropped.contains(&host), "dropped once");
                    self.dropped.push(host);
                }
                Action::NotRun { task, .. } => self.settle(task),
                Action::Result(result)
                    if result.role == linerate_fleet::protocol::message::Role::Client =>
                {
                    self.settle(result.task);
                }
                Action::Finished { .. } => self.has_finished = true,
                _ => {}
            }
        }
    }

    fn settle(&mut self, task: TaskId) {
        assert!(!self.settled.contains(&task), "{task} is settled once");
        self.settled.push(task);
    }
}

/// Any lines that a bus has kept give results that are complete: no host has more of them than
/// lines, and no record is longer than the lines of its host.
pub fn kept(script: &[u8]) {
    let line = |[kind, argument]: &[u8; 2]| {
        let line = match kind % 8 {
            0 => script
                .get(usize::from(*argument)..)
                .unwrap_or_default()
                .to_vec(),
            1 => report(*argument, 1, 0).into_bytes(),
            _ => kept_line(*kind, *argument).into_bytes(),
        };
        (usize::from(kind / 8 % 3), line)
    };
    let lines: Vec<(usize, Vec<u8>)> = script.as_chunks::<2>().0.iter().map(line).collect();
    let results = kept_results(lines.clone());

    for host in 0..3 {
        let of_host = || lines.iter().filter(|(of, _)| *of == host);
        let found = || results.iter().filter(|result| result.host == host);
        assert!(found().count() <= of_host().count());
        let bytes: usize = of_host().map(|(_, line)| line.len()).sum();
        assert!(found().map(|result| result.record.len()).sum::<usize>() <= bytes);
    }
}

/// A part of a result.
fn kept_line(kind: u8, argument: u8) -> String {
    let (part, parts) = (argument % 4, 1 + argument / 4 % 4);
    let end = if part == 0 {
        r#","end":{"outcome":"done","bytes":5,"elapsed_ns":5}"#
    } else {
        ""
    };

    let task = TaskId(u128::from(kind / 64));
    let piece = "x".repeat(usize::from(argument) * 16);
    let body = format!(
        r#"{{"round":{},"task":"{task}","part":{part},"parts":{parts}{end},"record":["{piece}"]}}"#,
        kind / 32 % 2
    );

    envelope(1, u64::from(argument / 128), "result", &body)
}

/// Lines of a host that are no message drop that host alone, whatever the step is.
pub fn garbage_at_the_coordinator(lines: &[Vec<u8>], steps: usize) {
    let mut coordinator = Coordinator::new(0, settings(), 3);
    let mut actions = Vec::new();

    for step in 0..steps {
        lead(&mut coordinator, step);
        actions.extend(drain(&mut coordinator));
    }

    for line in lines
        .iter()
        .filter(|line| decode::<AgentMessage>(line).is_err())
    {
        coordinator.handle_line(1, 2, line);
    }

    actions.extend(drain(&mut coordinator));
    for step in steps..7 {
        lead(&mut coordinator, step);
        actions.extend(drain(&mut coordinator));
    }

    let others = |action: &&Action| !matches!(action, Action::Send { .. });
    let dropped: Vec<_> = actions
        .iter()
        .filter(|action| matches!(action, Action::Dropped { .. }))
        .collect();
    assert_eq!(
        dropped,
        [&Action::Dropped {
            host: 2,
            reason: DropReason::Faults
        }]
    );

    let results = actions
        .iter()
        .filter(|action| matches!(action, Action::Result(_)))
        .count();
    let lost = actions
        .iter()
        .filter(|action| {
            matches!(
                action,
                Action::NotRun {
                    reason: NotRun::HostLost,
                    ..
                }
            )
        })
        .count();
    assert_eq!(
        (results, lost),
        (2, 0),
        "{:#?}",
        actions.iter().filter(others).collect::<Vec<_>>()
    );
    assert_eq!(
        actions.last(),
        Some(&Action::Finished {
            unconfirmed: Vec::new()
        })
    );
}

/// A step of a run in which a and b have a task, and c answers like the others while it takes part.
fn lead(coordinator: &mut Coordinator, step: usize) {
    let everyone = |coordinator: &mut Coordinator, line: &str| {
        (0..3).for_each(|host| coordinator.handle_line(1, host, line.as_bytes()));
    };
    let done = |result: Result<(), linerate_fleet::protocol::coordinator::Busy>| {
        assert_eq!(result, Ok(()));
    };

    match step {
        0 => everyone(
            coordinator,
            &line("hello", r#"{"protocol":{"min":1,"max":1},"version":"x"}"#),
        ),
        1 => {
            (0..3).for_each(|host| {
                done(coordinator.handle_local(
                    1,
                    Input::Plan {
                        host,
                        plan: Box::new(plan()),
                    },
                ));
            });
            done(coordinator.handle_local(1, Input::PlansSent));
        }
        2 => {
            everyone(coordinator, &line("planned", r#"{"ports":[5201]}"#));
            done(coordinator.handle_local(1, Input::Clocks { exchanges: 1 }));
            everyone(
                coordinator,
                &line("clocked", r#"{"c1_ns":1,"a2_ns":1,"a3_ns":1}"#),
            );
        }
        3 => {
            let ends = |id, client, server| round_task(TaskId(id), client, server);
            let plan = RoundPlan {
                number: 1,
                tasks: vec![ends(1, 0, 1)],
                data_rtt_ns: 0,
            };
            done(coordinator.handle_local(1, Input::Round(Box::new(plan))));
        }
        4 => everyone(coordinator, &line("armed", r#"{"round":1}"#)),
        5 => {
            let result = line(
                "result",
                r#"{"round":1,"task":"00000000000000000000000000000001","part":0,"parts":1,"end":{"outcome":"done"}}"#,
            );
            (0..2).for_each(|host| coordinator.handle_line(1, host, result.as_bytes()));
        }
        _ => {
            done(coordinator.handle_local(1, Input::Cancel));
            everyone(coordinator, &line("done", "{}"));
        }
    }
}

fn drain(coordinator: &mut Coordinator) -> Vec<Action> {
    std::iter::from_fn(|| coordinator.poll_action()).collect()
}

/// Lines that are no message change nothing in any state of an agent: it continues as one that did
/// not receive them.
pub fn garbage_at_the_agent(lines: &[Vec<u8>], steps: usize) {
    let play = |garbage: &[Vec<u8>]| {
        let hello = Hello {
            protocol: Versions { min: 1, max: 1 },
            ..Hello::default()
        };
        let mut agent = Agent::new(0, Service::Stream, hello);
        let mut actions = Vec::new();

        for step in 0..AGENT_STEPS {
            if step == steps {
                garbage.iter().for_each(|line| agent.handle_line(1, line));
            }
            lead_agent(&mut agent, step);
            actions.extend(std::iter::from_fn(|| agent.poll_action()));
        }

        actions
    };
    let garbage: Vec<Vec<u8>> = lines
        .iter()
        .filter(|line| decode::<CoordinatorMessage>(line).is_err())
        .cloned()
        .collect();

    let is_fail = |action: &AgentAction| matches!(action, AgentAction::Send(line) if line.contains(r#""type":"fail""#));
    let with: Vec<AgentAction> = play(&garbage)
        .into_iter()
        .filter(|action| !is_fail(action))
        .collect();
    let without = play(&[]);
    assert_eq!(with.len(), without.len());

    for (with, without) in with.iter().zip(&without) {
        // Messages of the agent have other numbers.
        match (with, without) {
            (AgentAction::Send(_), AgentAction::Send(_)) => {}
            _ => assert_eq!(with, without),
        }
    }
}

/// Steps of [`lead_agent`].
pub const AGENT_STEPS: usize = 8;

/// A step of a run of one task.
fn lead_agent(agent: &mut Agent, step: usize) {
    let mut feed = |seq: u64, kind: &str, body: String| {
        agent.handle_line(1, envelope(seq, 1, kind, &body).as_bytes());
    };
    match step {
        0 => {
            feed(1, "plan", json(&plan()));
            agent.handle_local(AgentInput::Planned { ports: vec![5201] });
        }
        1 => {
            feed(2, "preflight", PREFLIGHT.to_owned());
            agent.handle_local(agent_input(3));
        }
        2 => {
            feed(3, "arm", arm(1));
            agent.handle_local(AgentInput::Armed);
        }
        3 => feed(4, "go", format!(r#"{{"round":1,"t0_ns":{}}}"#, 500 * MS_NS)),
        4 => agent.handle_local(AgentInput::Started {
            task: TaskId(1),
            at_ns: 500 * MS_NS,
        }),
        5 => {
            let finish = Finish {
                task: TaskId(1),
                end: TaskEnd::aborted("x"),
                record: String::new(),
            };
            agent.handle_local(AgentInput::Finished(Box::new(finish)));
        }
        6 => feed(5, "cancel", "{}".to_owned()),
        _ => agent.handle_local(AgentInput::Stopped(None)),
    }
}

/// Settings of a coordinator whose hosts send their HELLO unasked.
pub fn settings() -> Settings {
    Settings {
        run: RUN.parse().expect("a run"),
        epoch: 1,
        hello_timeout_ns: 5_000 * MS_NS,
        silence_max_ns: 30_000 * MS_NS,
        beat_ns: 1_000 * MS_NS,
        is_solicited: false,
        clock_budget_ns: 10 * MS_NS,
    }
}

/// A message of the run of [`settings`], the first of its sender.
pub fn line(kind: &str, body: &str) -> String {
    envelope(1, 1, kind, body)
}

fn envelope(seq: u64, epoch: u64, kind: &str, body: &str) -> String {
    format!(r#"{{"v":1,"run":"{RUN}","epoch":{epoch},"seq":{seq},"type":"{kind}","body":{body}}}"#)
}

fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("JSON")
}

/// A plan for a host.
pub fn plan() -> Plan {
    let text = r#"{"lease_ms":3000,"addresses":[{"path":"phys","address":"10.0.0.1"}],
        "ports":{"first":5201,"last":5209}}"#;
    serde_json::from_str(text).expect("a plan")
}

fn task(id: TaskId, role: &str) -> ArmTask {
    let text = format!(
        r#"{{"task":"{id}","role":"{role}","peer":"10.0.0.2","port":5201,"path":"phys",
        "streams":1,"time_ms":2000}}"#
    );
    serde_json::from_str(&text).expect("a task")
}

fn arm(round: u32) -> String {
    let tasks = [
        json(&task(TaskId(1), "client")),
        json(&task(TaskId(2), "server")),
    ];
    let count = if round.is_multiple_of(2) { 2 } else { 1 };
    format!(
        r#"{{"round":{round},"offset_ns":0,"tasks":[{}]}}"#,
        tasks.get(..count).expect("two tasks").join(",")
    )
}

/// A message of a coordinator with its number and epoch, usual or wrong in one respect.
fn command(kind: u8, (seq, epoch): (u64, u64), round: u32, now_ns: u64) -> String {
    let round = if kind > 248 {
        round.saturating_sub(1)
    } else {
        round
    };
    let t0_ns = now_ns + u64::from(kind / 16) * 50 * MS_NS;

    let (kind, body) = match kind % 16 {
        0 | 1 => ("plan", json(&plan())),
        2 | 3 => ("beat", "{}".to_owned()),
        4 => ("preflight", PREFLIGHT.to_owned()),
        5 => ("clock", r#"{"c1_ns":5}"#.to_owned()),
        6..=8 => ("arm", arm(round)),
        9..=11 => ("go", format!(r#"{{"round":{round},"t0_ns":{t0_ns}}}"#)),
        12 if kind > 200 => ("cancel", "{}".to_owned()),
        12 | 13 => ("cancel", format!(r#"{{"round":{round}}}"#)),
        14 => ("fail", r#"{"code":"later"}"#.to_owned()),
        _ => ("beat", "{}".to_owned()),
    };
    envelope(seq, epoch, kind, &body)
}

fn agent_input(kind: u8) -> AgentInput {
    let task = TaskId(1 + u128::from(kind / 16 % 2));
    match kind % 16 {
        0..=2 => AgentInput::Planned { ports: vec![5201] },
        3 if kind > 200 => AgentInput::PlanRefused {
            text: "no".to_owned(),
        },
        3 => AgentInput::Preflighted(Box::new(Preflighted {
            peers: Vec::new(),
            facts: None,
        })),
        4 => AgentInput::Clock {
            c1_ns: 1,
            a2_ns: 2,
            a3_ns: 3,
        },
        5..=7 => AgentInput::Armed,
        8 if kind > 200 => AgentInput::ArmFailed {
            text: "no".to_owned(),
        },
        8 | 9 => AgentInput::Started { task, at_ns: 1 },
        10..=14 => {
            let record = "x".repeat(usize::from(kind) * 2_000);
            AgentInput::Finished(Box::new(Finish {
                task,
                end: TaskEnd::aborted("x"),
                record,
            }))
        }
        _ => {
            let round = (kind < 128).then_some(u32::from(kind / 16));
            AgentInput::Stopped(round)
        }
    }
}

/// A message of a host, usual or wrong in one respect.
fn report(kind: u8, round: u32, host: usize) -> String {
    // Most reports are about the task in which the host is the client.
    let index = if kind < 224 {
        host as u64
    } else {
        u64::from(kind / 16 % 3)
    };
    let task = TaskId(u128::from(round) * 4 + u128::from(index));
    let part = kind / 16 % 2;
    let end = if part == 0 {
        r#","end":{"outcome":"done","bytes":5,"elapsed_ns":5}"#
    } else {
        ""
    };

    let (kind, body) = match kind % 16 {
        // There are no tasks yet.
        8..=12 if round == 0 && kind < 250 => ("beat", "{}".to_owned()),
        0 | 1 if !(16..=240).contains(&kind) => (
            "hello",
            r#"{"protocol":{"min":1,"max":1},"version":"x"}"#.to_owned(),
        ),
        2 | 3 => ("planned", r#"{"ports":[5201]}"#.to_owned()),
        4 => ("preflighted", r#"{"peers":[]}"#.to_owned()),
        5 => (
            "clocked",
            format!(r#"{{"c1_ns":{host},"a2_ns":5,"a3_ns":6}}"#),
        ),
        0 | 1 | 6 | 7 => ("armed", format!(r#"{{"round":{round}}}"#)),
        8 => (
            "started",
            format!(r#"{{"round":{round},"task":"{task}","at_ns":5}}"#),
        ),
        9..=11 => (
            "result",
            format!(
                r#"{{"round":{round},"task":"{task}","part":0,"parts":1{}}}"#,
                r#","end":{"outcome":"done"}"#
            ),
        ),
        12 => (
            "result",
            format!(r#"{{"round":{round},"task":"{task}","part":{part},"parts":2{end}}}"#),
        ),
        13 if kind > 240 => ("done", "{}".to_owned()),
        13 => ("done", format!(r#"{{"round":{round}}}"#)),
        14 => ("fail", format!(r#"{{"code":"late","seq":{}}}"#, kind / 16)),
        _ => ("beat", "{}".to_owned()),
    };
    envelope(1, 1, kind, &body)
}

fn decision(kind: u8, round: &mut u32) -> Input {
    match kind % 8 {
        0 => Input::Plan {
            host: usize::from(kind / 8 % 4),
            plan: Box::new(plan()),
        },
        1 => Input::PlansSent,
        2 => Input::Preflight(vec![(0, preflight(false)), (9, preflight(true))]),
        3 => Input::Clocks {
            exchanges: u32::from(kind / 64),
        },
        4..=6 => {
            *round += 1;
            let id = |index: u64| TaskId(u128::from(*round) * 4 + u128::from(index));
            let tasks = vec![
                round_task(id(0), 0, 1),
                round_task(id(1), 1, 2),
                round_task(id(2), 2, usize::from(kind / 16)),
            ];
            Input::Round(Box::new(RoundPlan {
                number: *round,
                tasks,
                data_rtt_ns: u64::from(kind) * MS_NS,
            }))
        }
        _ if kind > 250 => Input::Cancel,
        _ => Input::Clocks { exchanges: 1 },
    }
}

fn preflight(has_facts: bool) -> Preflight {
    Preflight {
        partners: Vec::new(),
        peers: Vec::new(),
        has_facts,
    }
}

fn round_task(id: TaskId, client: usize, server: usize) -> RoundTask {
    RoundTask {
        task: id,
        client: End {
            host: client,
            spec: task(id, "client"),
        },
        server: Some(End {
            host: server,
            spec: task(id, "server"),
        }),
        nominal_bps: Some(1_000_000_000),
    }
}
