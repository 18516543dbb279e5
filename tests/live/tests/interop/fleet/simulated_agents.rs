//! Agents on a bus that test nothing and report what a test would, each with a connection and a
//! machine of its own: their workers are times.

use std::net::{IpAddr, Ipv4Addr};
use std::thread;
use std::time::Duration;

use linerate_fleet::TaskId;
use linerate_fleet::protocol::agent::{Action, Agent, Finish, Input, Service};
use linerate_fleet::protocol::message::{
    Hello, Preflight, Preflighted, ProbeOutcome, ProbeReport, ProbeTarget, TaskEnd, VERSION,
    Versions,
};
use linerate_fleet::run::carrier::bus::BusAgents;
use linerate_fleet::run::carrier::{Carrier, HostEvent};
use linerate_fleet::spec::{BusOptions, SITE_DEFAULT};
use linerate_sys::poll::{Interest, wait_fd};
use linerate_sys::{clock, process};

/// Longest wait between two checks of the times of all agents.
const TICK: Duration = Duration::from_millis(5);
/// Rate that every test reports.
const RATE_BPS: u64 = 940_000_000;
/// Round trip that every probe reports.
const RTT_NS: u64 = 200_000;
/// Addresses for measurements of networks, RFC 2544: nothing is sent to them.
const FIRST_ADDRESS: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);

/// Starts this many agents, `sim1`, `sim2` and so on, in a thread that ends with its broker.
pub(super) fn start(url: String, count: usize) {
    // Each connection needs a descriptor.
    let _ = process::raise_fd_limit();
    let names: Vec<String> = (1..=count).map(|number| format!("sim{number}")).collect();
    let options = BusOptions {
        url,
        ..BusOptions::default()
    };
    let path = BusAgents::start(&options, SITE_DEFAULT, &names).expect("agents");
    thread::spawn(move || run(path, count));
}

fn run(mut path: BusAgents, count: usize) {
    let mut agents: Vec<SimulatedAgent> = (0..count).map(SimulatedAgent::new).collect();
    let mut next_tick_ns = 0;

    loop {
        for (index, event) in path.poll(clock::monotonic_ns()) {
            let agent = &mut agents[index];
            match event {
                HostEvent::Line(line) => agent.machine.handle_line(clock::monotonic_ns(), &line),
                HostEvent::TooLong => agent.machine.handle_too_long(),
                HostEvent::Lost { .. } => return,
            }
            agent.act(index, &mut path);
        }

        let now_ns = clock::monotonic_ns();
        if now_ns >= next_tick_ns {
            next_tick_ns = now_ns.saturating_add(TICK.as_nanos() as u64);
            for (index, agent) in agents.iter_mut().enumerate() {
                agent.handle_time(now_ns);
                agent.act(index, &mut path);
            }
        }

        wait_fd(path.fd(), Interest::READ, Some(TICK)).expect("a descriptor");
    }
}

/// An agent and the times of its workers.
struct SimulatedAgent {
    machine: Agent,
    address: IpAddr,
    port: u16,
    starting: Vec<Worker>,
    running: Vec<Worker>,
}

/// A worker, as far as its task is concerned.
struct Worker {
    task: TaskId,
    duration_ns: u64,
    is_client: bool,
    /// When its data begins.
    start_ns: Option<u64>,
    is_started: bool,
}

impl SimulatedAgent {
    fn new(index: usize) -> Self {
        let offset = u32::try_from(index).expect("few agents");
        let address = Ipv4Addr::from_bits(FIRST_ADDRESS.to_bits() + offset).into();
        let machine = Agent::new(clock::monotonic_ns(), Service::Bus, hello(address));
        Self {
            machine,
            address,
            port: 0,
            starting: Vec::new(),
            running: Vec::new(),
        }
    }

    fn act(&mut self, index: usize, path: &mut dyn Carrier) {
        loop {
            let mut inputs = Vec::new();
            while let Some(action) = self.machine.poll_action() {
                match action {
                    Action::Send(line) => path.send(index, &line),
                    action => inputs.extend(self.execute(action)),
                }
            }

            // All workers of an ARM are started before the answer, as with real processes.
            if !self.starting.is_empty() {
                self.running.append(&mut self.starting);
                inputs.push(Input::Armed);
            }

            if inputs.is_empty() {
                return;
            }

            inputs
                .into_iter()
                .for_each(|input| self.machine.handle_local(input));
        }
    }

    fn execute(&mut self, action: Action) -> Option<Input> {
        let now_ns = clock::monotonic_ns();
        match action {
            Action::Describe => Some(Input::Hello(Box::new(hello(self.address)))),
            Action::Prepare(plan) => {
                self.port = plan.ports.first;
                Some(Input::Planned {
                    ports: vec![self.port],
                })
            }
            Action::Probe(preflight) => Some(Input::Preflighted(Box::new(probed(&preflight)))),
            Action::ReadClock { c1_ns, a2_ns } => Some(Input::Clock {
                c1_ns,
                a2_ns,
                a3_ns: now_ns,
            }),
            Action::StartWorker { task, .. } => {
                self.starting.push(Worker {
                    task: task.task,
                    duration_ns: task.duration_ns(),
                    is_client: task.is_client(),
                    start_ns: None,
                    is_started: false,
                });
                None
            }
            Action::BeginAt { at_ns, .. } => {
                // Servers of the host begin with it.
                self.running
                    .iter_mut()
                    .for_each(|worker| worker.start_ns = Some(at_ns));
                None
            }
            Action::StopTask { task, .. } => {
                self.running.retain(|worker| worker.task != task);
                None
            }
            Action::Stop { round, .. } => {
                self.running.clear();
                Some(Input::Stopped(round))
            }
            _ => None,
        }
    }

    fn handle_time(&mut self, now_ns: u64) {
        let mut inputs = Vec::new();
        self.running.retain_mut(|worker| {
            let Some(start_ns) = worker.start_ns.filter(|start_ns| now_ns >= *start_ns) else {
                return true;
            };
            if worker.is_client && !std::mem::replace(&mut worker.is_started, true) {
                inputs.push(Input::Started {
                    task: worker.task,
                    at_ns: start_ns,
                });
            }

            let has_ended = now_ns >= start_ns.saturating_add(worker.duration_ns);
            if has_ended {
                inputs.push(Input::Finished(Box::new(finished(worker, start_ns))));
            }

            !has_ended
        });
        inputs
            .into_iter()
            .for_each(|input| self.machine.handle_local(input));

        self.machine.handle_timeout(now_ns);
    }
}

fn hello(address: IpAddr) -> Hello {
    Hello {
        protocol: Versions {
            min: VERSION,
            max: VERSION,
        },
        control_address: Some(address),
        mono_ns: clock::monotonic_ns(),
        unix_ns: clock::unix_ns(),
        ..Hello::default()
    }
}

fn probed(preflight: &Preflight) -> Preflighted {
    let report = |target: &ProbeTarget| ProbeReport {
        peer: target.peer,
        port: target.port,
        outcome: ProbeOutcome::Ok,
        rtt_ns: Some(RTT_NS),
        device: None,
        mtu_bytes: None,
        bridge_port: None,
    };
    Preflighted {
        peers: preflight.peers.iter().map(report).collect(),
        facts: None,
    }
}

fn finished(worker: &Worker, start_ns: u64) -> Finish {
    // Bit/s times nanoseconds are 8e9 to a byte.
    let bytes = u128::from(RATE_BPS) * u128::from(worker.duration_ns) / 8_000_000_000;
    let end = TaskEnd {
        started_ns: Some(start_ns),
        bytes: u64::try_from(bytes).expect("a short test"),
        elapsed_ns: worker.duration_ns,
        ..TaskEnd::done()
    };
    Finish::without_record(worker.task, end)
}
