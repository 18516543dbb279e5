//! `linerate fleet agent`: one host of a fleet.
//!
//! One thread with one loop. The protocol machine decides; the loop carries its lines, and carries
//! out what it requests with workers, probes and readings of the host.

mod hello;
mod probes;
mod workers;

use std::collections::{BTreeSet, VecDeque};
use std::net::{IpAddr, UdpSocket};
use std::time::Duration;

use crate::protocol::agent::{Action, Agent, Input, LeaveReason, Service};
use crate::protocol::message::Plan;
use crate::run::carrier::stdio::StdioCarrier;
use crate::run::carrier::{Carrier, HostEvent, wait};
use linerate_host::{Request, collect};
use linerate_model::snapshot::Snapshot;
use linerate_sys::interfaces::device_of;
use linerate_sys::poll::{Epoll, Interest, Ready};
use linerate_sys::{OsError, clock, errno, process};

use crate::run::carrier::bus::BusAgents;
use crate::spec::BusOptions;
use linerate_model::outcome::{Error, Outcome};
use probes::Probes;
use workers::Workers;

/// Token of the control path.
const PATH: u64 = 0;
/// The coordinator, on the control path.
const COORDINATOR: usize = 0;
/// Probes have the tokens from here on, at most as many as a message has elements.
const FIRST_PROBE: u64 = 1 << 16;
/// Workers have the tokens from here on.
const FIRST_WORKER: u64 = 1 << 32;
/// Longest time in which the coordinator takes the last lines.
const LEAVE_NS: u64 = 300_000_000;
/// Advice where a standard stream is no pipe.
const STDIO_NEEDS: &str = "an agent needs pipes of a coordinator, which starts it over ssh; as a \
                           service it is started with --bus";

/// Runs an agent on standard input and output until its run ends.
///
/// # Errors
/// No plan arrived, or the operating system refused what an agent needs.
pub fn run_stdio() -> Result<(), Error> {
    let path = StdioCarrier::open().map_err(|error| match error.errno() {
        Some(errno::EPERM) => {
            Error::usage(format!("{error}: it is a file or a device; {STDIO_NEEDS}"))
        }
        _ => Error::failed(error),
    })?;
    let connection = std::env::var("SSH_CONNECTION").unwrap_or_default();
    let address = hello::control_address(&connection);
    let agent = HostAgent::open(Box::new(path), Service::Stream, address);
    match agent.map_err(Error::failed)?.run()? {
        LeaveReason::RunEnded(_) => Ok(()),
        LeaveReason::NoPlan => Err(Error::failed("no plan arrived")),
    }
}

/// Runs an agent on a bus, for one run after the other, until the broker refuses it.
///
/// # Errors
/// The broker cannot be reached or refuses the agent, or the operating system refused what an agent
/// needs.
pub fn run_bus(options: &BusOptions, site: &str, host: String) -> Result<(), Error> {
    let address = options.ip().and_then(source_to);
    let path = Box::new(BusAgents::start(options, site, &[host])?);
    let agent = HostAgent::open(path, Service::Bus, address);
    agent.map_err(Error::failed)?.run().map(drop)
}

/// Address from which this host reaches another one.
fn source_to(address: IpAddr) -> Option<IpAddr> {
    let any: IpAddr = match address {
        IpAddr::V4(_) => [0; 4].into(),
        IpAddr::V6(_) => [0; 16].into(),
    };
    let socket = UdpSocket::bind((any, 0)).ok()?;

    // No datagram is sent: the kernel looks up the route.
    socket.connect((address, 9)).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

/// The machine and what it needs of this host.
struct HostAgent {
    machine: Agent,
    /// The control path and the address of this host on it.
    path: Box<dyn Carrier>,
    address: Option<IpAddr>,
    service: Service,
    epoll: Epoll,
    workers: Workers,
    probes: Option<Probes>,
    plan: Option<Box<Plan>>,
    /// Local inputs that the machine has not taken yet.
    inputs: VecDeque<Input>,
}

impl HostAgent {
    fn open(
        path: Box<dyn Carrier>,
        service: Service,
        address: Option<IpAddr>,
    ) -> Result<Self, OsError> {
        // Each worker and each probe needs descriptors.
        let _ = process::raise_fd_limit();
        let epoll = Epoll::new()?;
        epoll.add(path.fd(), PATH, Interest::READ)?;

        Ok(Self {
            machine: Agent::new(clock::monotonic_ns(), service, hello::hello(address)),
            path,
            address,
            service,
            epoll,
            workers: Workers::new(FIRST_WORKER),
            probes: None,
            plan: None,
            inputs: VecDeque::new(),
        })
    }

    fn run(mut self) -> Result<LeaveReason, Error> {
        let mut ready = Vec::new();
        loop {
            if let Some(reason) = self.act() {
                self.leave();
                return Ok(reason);
            }

            self.epoll
                .wait(&mut ready, self.timeout())
                .map_err(Error::failed)?;
            for event in &ready {
                self.handle_ready(*event);
            }

            self.receive()?;
            self.handle_timeout();
        }
    }

    /// Carries out actions and passes their results on until nothing is left to do. The reason when
    /// the agent leaves.
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
            self.machine.handle_local(input);
        }
    }

    fn execute(&mut self, action: Action) {
        let now_ns = clock::monotonic_ns();
        match action {
            Action::Send(line) => self.path.send(COORDINATOR, &line),
            Action::Describe => {
                let hello = hello::hello(self.address);
                self.inputs.push_back(Input::Hello(Box::new(hello)));
            }
            Action::Prepare(plan) => self.prepare(plan),
            Action::Probe(preflight) => {
                let facts = preflight.has_facts.then(|| self.facts());
                let probes = Probes::start(&preflight.peers, facts, FIRST_PROBE, &self.epoll);
                self.probes = Some(probes);
                self.finish_probes();
            }
            Action::ReadClock { c1_ns, a2_ns } => {
                // The time between both readings is subtracted from the round trip.
                self.inputs.push_back(Input::Clock {
                    c1_ns,
                    a2_ns,
                    a3_ns: clock::monotonic_ns(),
                });
            }
            Action::Admit(addresses) => self.workers.arm(&addresses),
            Action::StartWorker { round, task } => {
                self.workers.start_task(round, *task, &self.epoll);
            }
            Action::BeginAt { task, at_ns } => self.workers.begin(task, at_ns),
            Action::StopTask { task, .. } => self.workers.stop_task(task, now_ns),
            Action::Stop { round, .. } => self.workers.stop(round, now_ns),
            Action::Leave(_) => {}
        }
    }

    fn prepare(&mut self, plan: Box<Plan>) {
        let Some(run) = self.machine.run() else {
            return;
        };
        for own in &plan.addresses {
            // bind(2) refuses addresses that no interface has (EADDRNOTAVAIL). A socket decides,
            // because a loopback network has more addresses than its device.
            if UdpSocket::bind((own.address, 0)).is_err() {
                let address = own.address;
                let path = &own.path;
                let text = format!("{address}, path {path}: no address of this host");
                return self.inputs.push_back(Input::PlanRefused { text });
            }
        }

        self.workers.start_servers(run, &plan, &self.epoll);
        self.plan = Some(plan);
    }

    /// A snapshot of this host and the interfaces that have the addresses of the plan.
    fn facts(&self) -> Box<Snapshot> {
        let mut devices = BTreeSet::new();
        for own in self.plan.iter().flat_map(|plan| &plan.addresses) {
            devices.extend(device_of(own.address));
        }

        Box::new(collect(&Request {
            interfaces: devices.into_iter().collect(),
            ..Request::default()
        }))
    }

    fn handle_ready(&mut self, event: Ready) {
        let token = event.token;
        if token >= FIRST_WORKER {
            self.workers.handle_ready(token, &self.epoll);
        } else if token != PATH
            && let Some(probes) = &mut self.probes
        {
            probes.handle_ready(token);
            self.finish_probes();
        }
    }

    /// Takes what the coordinator sent.
    fn receive(&mut self) -> Result<(), Error> {
        let now_ns = clock::monotonic_ns();
        for (_, event) in self.path.poll(now_ns) {
            match event {
                HostEvent::Line(line) => self.machine.handle_line(now_ns, &line),
                HostEvent::TooLong => self.machine.handle_too_long(),
                // A broker that refuses an agent does so again.
                HostEvent::Lost { reason } if self.service == Service::Bus => {
                    return Err(Error::new(Outcome::Unreachable, reason));
                }
                HostEvent::Lost { .. } => self.machine.handle_lost(now_ns),
            }
        }

        Ok(())
    }

    fn finish_probes(&mut self) {
        let now_ns = clock::monotonic_ns();
        if let Some(probes) = self.probes.take_if(|probes| probes.is_over(now_ns)) {
            let report = Box::new(probes.finish());
            self.inputs.push_back(Input::Preflighted(report));
        }
    }

    fn timeout(&self) -> Option<Duration> {
        let deadlines = [
            self.machine.poll_timeout(),
            self.path.deadline_ns(),
            self.workers.deadline_ns(),
            self.probes.as_ref().map(Probes::deadline_ns),
        ];
        let next_ns = deadlines.into_iter().flatten().min()?;
        let left_ns = next_ns.saturating_sub(clock::monotonic_ns());
        Some(Duration::from_nanos(left_ns))
    }

    fn handle_timeout(&mut self) {
        let now_ns = clock::monotonic_ns();
        self.workers.handle_timeout(now_ns);
        self.finish_probes();

        self.machine.handle_timeout(now_ns);
    }

    /// Ends everything at once; the last lines have a moment to leave.
    fn leave(&mut self) {
        self.workers.kill_all();
        self.path.close(COORDINATOR);
        let until_ns = clock::monotonic_ns().saturating_add(LEAVE_NS);

        while self.path.has_open() && clock::monotonic_ns() < until_ns {
            if wait(&*self.path, None, Some(until_ns)).is_err() {
                return;
            }
            self.path.poll(clock::monotonic_ns());
        }
    }
}
