//! `linerate fleet agent`: one host of a fleet.
//!
//! One thread with one loop. The protocol machine decides; the loop reads and writes standard streams, and carries out what the
//! machine requests with workers, probes and readings of the host.

mod address;
mod facts;
mod hello;
mod host_window;
mod probes;
mod workers;

use std::collections::VecDeque;
use std::fs::File;
use std::time::Duration;

use linerate_carrier::pipe::{LineInput, LineOutput, Received};
use linerate_carrier::stdio;
use linerate_fleet::agent::{Action, Agent, Input, LeaveReason, Service};
use linerate_fleet::message::{Plan, Sample};
use linerate_sys::poll::{Epoll, Interest, Ready, wait_fd};
use linerate_sys::{OsError, clock, process};

use crate::Error;
pub(super) use hello::sha256_of_program;
use host_window::HostWindow;
use probes::Probes;
use workers::Workers;

const INPUT: u64 = 0;
const OUTPUT: u64 = 1;
/// Probes have the tokens from here on, at most as many as a message has elements.
const FIRST_PROBE: u64 = 1 << 16;
/// Workers have the tokens from here on.
const FIRST_WORKER: u64 = 1 << 32;
/// Longest time in which the coordinator takes the last lines.
const LEAVE_NS: u64 = 300_000_000;

/// Runs an agent on standard input and output until its run ends.
///
/// # Errors
/// No plan arrived, or the operating system refused what an agent needs.
pub fn run_stdio() -> Result<(), Error> {
    let agent = StdioAgent::open().map_err(Error::failed)?;
    match agent.run() {
        Ok(LeaveReason::RunEnded(_)) => Ok(()),
        Ok(_) => Err(Error::failed("no plan arrived")),
        Err(error) => Err(Error::failed(error)),
    }
}

/// The machine and what it needs of this host.
struct StdioAgent {
    machine: Agent,
    input: LineInput<File>,
    output: LineOutput<File>,
    epoll: Epoll,
    workers: Workers,
    probes: Option<Probes>,
    host: HostWindow,
    plan: Option<Box<Plan>>,
    next_sample_ns: Option<u64>,
    /// Local inputs that the machine has not taken yet.
    inputs: VecDeque<Input>,
}

impl StdioAgent {
    fn open() -> Result<Self, OsError> {
        // Each worker and each probe needs descriptors.
        let _ = process::raise_fd_limit();
        let (input, output) = (stdio::input()?, stdio::output()?);
        let epoll = Epoll::new()?;
        epoll.add(&input, INPUT, Interest::READ)?;
        epoll.add(&output, OUTPUT, Interest::default())?;
        let hello = hello::hello();
        Ok(Self {
            machine: Agent::new(clock::monotonic_ns(), Service::Stream, hello),
            input,
            output,
            epoll,
            workers: Workers::new(FIRST_WORKER),
            probes: None,
            host: HostWindow::open(),
            plan: None,
            next_sample_ns: None,
            inputs: VecDeque::new(),
        })
    }

    fn run(mut self) -> Result<LeaveReason, OsError> {
        let mut ready = Vec::new();
        loop {
            if let Some(reason) = self.act() {
                self.leave();
                return Ok(reason);
            }
            self.epoll.wait(&mut ready, self.timeout()).map_err(|source| OsError::new("wait", "", source))?;
            for event in &ready {
                self.handle_ready(*event);
            }
            self.handle_timeout();
        }
    }

    /// Carries out actions and passes their results on until nothing is left to do. The reason when the agent leaves.
    fn act(&mut self) -> Option<LeaveReason> {
        loop {
            while let Some(action) = self.machine.poll_action() {
                if let Action::Leave(reason) = action {
                    return Some(reason);
                }
                self.execute(action);
            }
            self.inputs.extend(self.workers.take_inputs());
            let input = self.inputs.pop_front()?;
            self.machine.handle_local(clock::monotonic_ns(), input);
        }
    }

    fn execute(&mut self, action: Action) {
        let now_ns = clock::monotonic_ns();
        match action {
            Action::Send(line) => self.send(&line),
            Action::Prepare(plan) => self.prepare(plan),
            Action::Probe(preflight) => {
                let devices = self.plan.iter().flat_map(|plan| &plan.addresses);
                let facts = facts::facts(preflight.facts, devices.map(|own| own.address));
                self.probes = Some(Probes::start(&preflight.peers, facts, FIRST_PROBE, &self.epoll));
                self.finish_probes();
            }
            Action::ReadClock { c1_ns, a2_ns } => {
                self.inputs.push_back(Input::Clock { c1_ns, a2_ns, a3_ns: clock::monotonic_ns() });
            }
            Action::Admit(addresses) => self.workers.arm(&addresses),
            Action::StartWorker { round, task } => self.workers.start_task(round, *task, &self.epoll),
            Action::ReadHost { is_after: false, .. } => self.host.begin(),
            Action::ReadHost { is_after: true, .. } => self.inputs.extend(self.host.end().map(Input::HostWindow)),
            Action::BeginAt { task, at_ns } => self.workers.begin(task, at_ns),
            Action::StopTask { task, .. } => self.workers.stop_task(task, now_ns),
            Action::StopRound { round, .. } => self.workers.stop_round(round, now_ns),
            Action::StopAll { .. } => self.workers.stop_all(now_ns),
            Action::Leave(_) => {}
        }
    }

    fn send(&mut self, line: &str) {
        self.output.send(line);
        self.follow_unsent();
    }

    fn prepare(&mut self, plan: Box<Plan>) {
        let Some(run) = self.machine.run() else { return };
        match address::check(&plan.addresses) {
            Ok(()) => {
                self.host.set_peer(plan.peers.first().copied());
                let sample_ns = plan.sample_ms.saturating_mul(1_000_000);
                self.next_sample_ns = (sample_ns > 0).then(|| clock::monotonic_ns().saturating_add(sample_ns));
                self.workers.start_servers(run, &plan, &self.epoll);
                self.plan = Some(plan);
            }
            Err(text) => self.inputs.push_back(Input::PlanRefused { text }),
        }
    }

    fn handle_ready(&mut self, event: Ready) {
        match event.token {
            INPUT => self.receive(),
            OUTPUT => {
                if event.error || event.hangup {
                    self.output.give_up();
                }
                self.output.flush();
                self.follow_unsent();
            }
            token if token >= FIRST_WORKER => self.workers.handle_ready(token, &self.epoll),
            token => {
                if let Some(probes) = &mut self.probes {
                    probes.handle_ready(token);
                    self.finish_probes();
                }
            }
        }
    }

    fn receive(&mut self) {
        let mut received = Vec::new();
        self.input.receive(&mut received);
        let now_ns = clock::monotonic_ns();
        for received in received {
            match received {
                Received::Line(line) => self.machine.handle_line(now_ns, &line),
                Received::TooLong => self.machine.handle_too_long(),
                Received::End => {
                    // An ended stream stays readable.
                    let _ = self.epoll.remove(&self.input);
                    self.machine.handle_lost(now_ns);
                }
            }
        }
    }

    /// A coordinator that takes nothing any more is lost.
    fn follow_unsent(&mut self) {
        if self.output.is_broken() {
            let _ = self.epoll.remove(&self.output);
            return self.machine.handle_lost(clock::monotonic_ns());
        }
        let interest = if self.output.has_unsent() { Interest::WRITE } else { Interest::default() };
        // Fails only when memory is short; the next line tries again.
        let _ = self.epoll.modify(&self.output, OUTPUT, interest);
    }

    fn finish_probes(&mut self) {
        if let Some(probes) = self.probes.take_if(|probes| probes.is_over(clock::monotonic_ns())) {
            self.inputs.push_back(Input::Preflighted(Box::new(probes.finish())));
        }
    }

    fn timeout(&self) -> Option<Duration> {
        let probes = self.probes.as_ref().map(Probes::deadline_ns);
        let deadlines = [self.machine.poll_timeout(), self.workers.deadline_ns(), probes, self.next_sample_ns];
        let next_ns = deadlines.into_iter().flatten().min()?;
        Some(Duration::from_nanos(next_ns.saturating_sub(clock::monotonic_ns())))
    }

    fn handle_timeout(&mut self) {
        let now_ns = clock::monotonic_ns();
        self.workers.handle_timeout(now_ns);
        self.finish_probes();
        if self.next_sample_ns.is_some_and(|at_ns| now_ns >= at_ns) {
            self.sample(now_ns);
        }
        if self.machine.poll_timeout().is_some_and(|at_ns| now_ns >= at_ns) {
            self.machine.handle_timeout(now_ns);
        }
    }

    fn sample(&mut self, now_ns: u64) {
        let period_ms = self.plan.as_ref().map_or(0, |plan| plan.sample_ms);
        self.next_sample_ns = (period_ms > 0).then(|| now_ns.saturating_add(period_ms.saturating_mul(1_000_000)));
        let tasks = self.workers.take_rates();
        if !tasks.is_empty() {
            let cpu_permille = self.host.cpu_permille();
            self.inputs.push_back(Input::Sample(Sample { tasks, cpu_permille, dropped: 0 }));
        }
    }

    /// Ends everything at once; the last lines have a moment to leave.
    fn leave(&mut self) {
        self.workers.kill_all();
        let until_ns = clock::monotonic_ns().saturating_add(LEAVE_NS);
        while self.output.has_unsent() {
            let left = Duration::from_nanos(until_ns.saturating_sub(clock::monotonic_ns()));
            if left.is_zero() || wait_fd(&self.output, Interest::WRITE, Some(left)).is_err() {
                return;
            }
            self.output.flush();
        }
    }
}
