//! Goal: a bus carries the dialogues of the protocol as an in-memory pipe does. Method: every
//! dialogue, with each line between the player and the machine over a broker; time is simulated.

use std::collections::{HashSet, VecDeque};
use std::fs;
use std::path::Path;

use linerate_fleet::protocol::message::{Delivery, delivery};
use linerate_fleet::run::carrier::bus::{BusAgents, BusCarrier};
use linerate_fleet::run::carrier::{Carrier as _, HostEvent};

use crate::agent_pipe::AgentPipe;
use crate::broker::Broker;
use crate::coordinator_pipe::CoordinatorPipe;
use crate::dialogue::{Machine, parse, run_id};
use crate::ends;
use crate::player::{Carrier, play};

/// Longest time until an agent is subscribed.
const CONNECT_MAX: std::time::Duration = std::time::Duration::from_secs(10);

/// A machine at the other end of a bus.
struct OverBus<M> {
    machine: M,
    is_agent: bool,
    names: Vec<String>,
    coordinator: BusCarrier,
    agents: BusAgents,
    at_coordinator: Vec<(usize, HostEvent)>,
    at_agents: Vec<(usize, HostEvent)>,
    /// Lines of the machine for each host.
    arrived: Vec<VecDeque<String>>,
    /// Names of results that the broker has.
    kept: HashSet<(usize, String)>,
}

impl<M: Carrier> OverBus<M> {
    fn new(broker: &Broker, site: &str, machine: M, hosts: &[&str], is_agent: bool) -> Self {
        let (coordinator, _) = ends::coordinator(&ends::setup(broker, site, hosts, None));
        let agents = ends::agents(broker, site, hosts);

        let mut bus = Self {
            machine,
            is_agent,
            names: hosts.iter().map(|host| (*host).to_owned()).collect(),
            coordinator,
            agents,
            at_coordinator: Vec::new(),
            at_agents: Vec::new(),
            arrived: vec![VecDeque::new(); hosts.len()],
            kept: HashSet::new(),
        };
        bus.connect();
        bus.carry();

        bus
    }

    /// Both ends are subscribed once a line to each agent has arrived.
    fn connect(&mut self) {
        for host in 0..self.names.len() {
            let mut arrived = Vec::new();
            let begun = std::time::Instant::now();

            while arrived.is_empty() {
                assert!(
                    begun.elapsed() < CONNECT_MAX,
                    "agent {host} is not connected"
                );
                self.coordinator.send(host, "ready?");
                std::thread::sleep(std::time::Duration::from_millis(5));
                arrived = self.agents.poll(0);
            }
        }

        // The last of the lines that were sent while the agents connected.
        (0..self.names.len()).for_each(|host| self.coordinator.send(host, "ready"));
        for _ in 0..self.names.len() {
            while ends::next_line(&mut self.agents, &mut self.at_agents).1 != "ready" {}
        }
    }

    fn host(&self, name: &str) -> usize {
        self.names
            .iter()
            .position(|known| known == name)
            .unwrap_or(0)
    }

    /// A line of an agent, at the coordinator; `None` where the broker or the coordinator does not
    /// take it.
    fn pass_to_coordinator(&mut self, host: usize, line: &str) -> Option<String> {
        self.agents.send(host, line);
        if let Delivery::Kept { run, id } = delivery(line) {
            let is_copy = id.is_some_and(|id| !self.kept.insert((host, id)));
            if is_copy || run.to_string() != run_id(1) {
                return None;
            }
        }

        let (from, arrived) = ends::next_line(&mut self.coordinator, &mut self.at_coordinator);
        assert_eq!(from, host);
        Some(arrived)
    }

    fn pass_to_agent(&mut self, host: usize, line: &str) -> String {
        self.coordinator.send(host, line);
        let (to, arrived) = ends::next_line(&mut self.agents, &mut self.at_agents);
        assert_eq!(to, host);
        arrived
    }

    /// Carries what the machine has sent.
    fn carry(&mut self) {
        for host in 0..self.names.len() {
            let name = self.names[host].clone();
            while let Some(line) = self.machine.next_line(&name) {
                let arrived = match self.is_agent {
                    true => self.pass_to_coordinator(host, &line),
                    false => Some(self.pass_to_agent(host, &line)),
                };
                self.arrived[host].extend(arrived);
            }
        }
    }
}

impl<M: Carrier> Carrier for OverBus<M> {
    fn feed(&mut self, host: &str, line: &str) {
        let index = self.host(host);
        let arrived = match self.is_agent {
            true => Some(self.pass_to_agent(index, line)),
            false => self.pass_to_coordinator(index, line),
        };
        if let Some(line) = arrived {
            self.machine.feed(host, &line);
        }

        self.carry();
    }

    fn next_line(&mut self, host: &str) -> Option<String> {
        let host = self.host(host);
        self.arrived[host].pop_front()
    }

    fn pass_until(&mut self, ms: u64) {
        self.machine.pass_until(ms);
        self.carry();
    }

    fn own(&mut self, command: &str) {
        self.machine.own(command);
        self.carry();
    }

    fn actions(&self) -> &[String] {
        self.machine.actions()
    }
}

#[test]
fn every_dialogue_goes_as_written_over_a_bus() {
    let Some(broker) = Broker::start() else {
        return;
    };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fleet/tests/dialogues");
    let entries = fs::read_dir(folder).expect("the folder is there");
    let (mut count, mut failed) = (0, Vec::new());

    for path in entries.map(|entry| entry.expect("an entry").path()) {
        let name = path
            .file_name()
            .map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let dialogue = parse(&fs::read_to_string(&path).expect("a dialogue"));
        count += 1;

        // Results of one dialogue are none of another one.
        let site = format!("dialogue-{count}");
        let played = match &dialogue.machine {
            Machine::Agent { is_bus } => play(
                &dialogue,
                &mut OverBus::new(&broker, &site, AgentPipe::new(*is_bus), &["a"], true),
            ),
            Machine::Coordinator {
                hosts,
                is_solicited,
            } => {
                let names: Vec<&str> = hosts.iter().map(String::as_str).collect();
                let machine = CoordinatorPipe::new(hosts, *is_solicited);
                play(
                    &dialogue,
                    &mut OverBus::new(&broker, &site, machine, &names, false),
                )
            }
        };
        failed.extend(played.err().map(|text| format!("{name}: {text}")));
    }

    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
    assert!(count >= 40, "{count} dialogues");
}
