//! The worker processes of an agent: a server per address of the plan, a client per task.

mod events;

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::TaskId;
use crate::protocol::agent::Input;
use crate::protocol::message::{ArmTask, Plan};
use crate::run::carrier::children::{ChildId, Children};
use linerate_model::record::RunId;
use linerate_sys::clock;
use linerate_sys::poll::Epoll;

use crate::run::worker::lines::{ClientTask, ServerTask, ToWorker};

/// Servers and clients of one run. What they do becomes inputs of the machine.
pub(super) struct Workers {
    children: Children,
    run: Option<RunId>,
    servers: Vec<Server>,
    tasks: BTreeMap<TaskId, Task>,
    /// Servers are started, and the answer to the plan is due.
    is_planning: bool,
    /// Workers are started, and the answer to ARM is due.
    is_arming: bool,
    stopping: Option<Stopping>,
    inputs: Vec<Input>,
}

/// The server of an address.
struct Server {
    child: ChildId,
    path: String,
    address: IpAddr,
    /// Once it listens.
    port: Option<u16>,
    /// It has the addresses that are admitted.
    is_current: bool,
    is_alive: bool,
}

/// A task of a round, until its end was reported.
struct Task {
    round: u32,
    child: ChildId,
    is_client: bool,
    is_ready: bool,
    started_ns: Option<u64>,
    /// Pieces so far; `None` of a record beyond its bound.
    record: Option<String>,
}

/// The end of a round or of everything.
struct Stopping {
    /// These have to end before.
    children: Vec<ChildId>,
    round: Option<u32>,
}

impl Workers {
    /// No workers. Those to come have the tokens from `first_token` on.
    pub(super) fn new(first_token: u64) -> Self {
        Self {
            children: Children::new(first_token),
            run: None,
            servers: Vec::new(),
            tasks: BTreeMap::new(),
            is_planning: false,
            is_arming: false,
            stopping: None,
            inputs: Vec::new(),
        }
    }

    /// Starts a server for each address of the plan; their ports are the answer.
    pub(super) fn start_servers(&mut self, run: RunId, plan: &Plan, epoll: &Epoll) {
        self.run = Some(run);
        self.is_planning = true;
        // Those of an earlier run have ended.
        self.servers.clear();

        for own in &plan.addresses {
            let task = ToWorker::Server(ServerTask {
                address: own.address,
                ports: plan.ports,
            });
            let child = match self.start(&task, epoll) {
                Ok(child) => child,
                Err(error) => return self.refuse_plan(&format!("start a server: {error}")),
            };
            self.servers.push(Server {
                child,
                path: own.path.clone(),
                address: own.address,
                port: None,
                is_current: true,
                is_alive: true,
            });
        }

        self.follow_planning();
    }

    /// A round begins: servers admit these addresses and no others.
    pub(super) fn arm(&mut self, admitted: &[IpAddr]) {
        self.is_arming = true;
        let line = ToWorker::Admit(admitted.to_vec());

        let mut alive = Vec::new();
        for server in self.servers.iter_mut().filter(|server| server.is_alive) {
            // The answer to ARM waits until this server has confirmed the addresses.
            server.is_current = false;
            alive.push(server.child);
        }
        for child in alive {
            self.send(child, &line);
        }
    }

    /// Prepares a task: a process of its own as client, a test that the server of its path awaits.
    pub(super) fn start_task(&mut self, round: u32, spec: ArmTask, epoll: &Epoll) {
        let task = spec.task;
        let is_client = spec.is_client();
        let Some(server) = self.servers.iter().find(|server| server.path == spec.path) else {
            return self.fail_arming(&format!("task {task}: no server of path {}", spec.path));
        };
        let mut child = server.child;
        let local = server.address;
        if is_client {
            let first = ToWorker::Client(Box::new(ClientTask { task: spec, local }));
            child = match self.start(&first, epoll) {
                Ok(child) => child,
                Err(error) => {
                    return self.fail_arming(&format!("task {task}: start a worker: {error}"));
                }
            };
        } else {
            self.send(child, &ToWorker::Expect(Box::new(spec)));
        }

        let new = Task {
            round,
            child,
            is_client,
            is_ready: false,
            started_ns: None,
            record: Some(String::new()),
        };
        self.tasks.insert(task, new);
    }

    /// The data of a client begins at this time.
    pub(super) fn begin(&mut self, task: TaskId, at_ns: u64) {
        if let Some(task) = self.tasks.get(&task) {
            self.send(task.child, &ToWorker::Begin { at_ns });
        }
    }

    /// Ends a task without a report.
    pub(super) fn stop_task(&mut self, task: TaskId, now_ns: u64) {
        let Some(known) = self.tasks.remove(&task) else {
            return;
        };

        if known.is_client {
            self.children.end(known.child, now_ns);
        } else {
            // The server of an address runs as long as the plan.
            self.send(known.child, &ToWorker::Forget(task));
        }
    }

    /// Ends the tasks of a round, or everything; the answer follows the end of the processes.
    pub(super) fn stop(&mut self, round: Option<u32>, now_ns: u64) {
        // An answer to ARM after the end of its round would arm nothing.
        self.is_arming = false;
        let mut children = Vec::new();
        let tasks: Vec<TaskId> = self.tasks.keys().copied().collect();
        for id in tasks {
            let task = &self.tasks[&id];
            if round.is_some_and(|round| round != task.round) {
                continue;
            }
            if task.is_client {
                children.push(task.child);
            }
            self.stop_task(id, now_ns);
        }

        if round.is_none() {
            self.is_planning = false;
            children = self.children.ids();
            for child in &children {
                self.children.end(*child, now_ns);
            }
        }

        self.stopping = Some(Stopping { children, round });
        self.follow_stopping();
    }

    /// Ends what is left at once.
    pub(super) fn kill_all(&mut self) {
        self.children.kill_all();
    }

    /// Takes the events since the last call.
    pub(super) fn take_inputs(&mut self) -> Vec<Input> {
        self.follow_arming();
        std::mem::take(&mut self.inputs)
    }

    pub(super) fn deadline_ns(&self) -> Option<u64> {
        self.children.deadline_ns()
    }

    pub(super) fn handle_timeout(&mut self, now_ns: u64) {
        let events = self.children.handle_timeout(now_ns);
        self.handle_events(events);
    }

    pub(super) fn handle_ready(&mut self, token: u64, epoll: &Epoll) {
        let now_ns = clock::monotonic_ns();
        let events = self.children.handle_ready(token, now_ns, epoll);
        self.handle_events(events);
    }

    /// The answer to the plan, once every server listens.
    fn follow_planning(&mut self) {
        let ports: Option<Vec<u16>> = self.servers.iter().map(|server| server.port).collect();
        if let Some(ports) = ports.filter(|_| self.is_planning) {
            self.is_planning = false;
            self.inputs.push(Input::Planned { ports });
        }
    }

    fn refuse_plan(&mut self, text: &str) {
        self.is_planning = false;
        self.children.kill_all();
        self.servers.clear();
        self.inputs.push(Input::PlanRefused {
            text: text.to_owned(),
        });
    }

    /// The answer to ARM, once every task is ready and every server has the admitted addresses.
    fn follow_arming(&mut self) {
        let mut servers = self.servers.iter();
        let is_ready = servers.all(|server| server.is_current || !server.is_alive)
            && self.tasks.values().all(|task| task.is_ready);
        if self.is_arming && is_ready {
            self.is_arming = false;
            self.inputs.push(Input::Armed);
        }
    }

    fn fail_arming(&mut self, text: &str) {
        self.is_arming = false;
        self.inputs.push(Input::ArmFailed {
            text: text.to_owned(),
        });
    }

    fn follow_stopping(&mut self) {
        let stopping = &mut self.stopping;
        if let Some(ended) = stopping.take_if(|stopping| stopping.children.is_empty()) {
            self.inputs.push(Input::Stopped(ended.round));
        }
    }

    /// Starts a process of this program with its first line.
    fn start(&mut self, first: &ToWorker, epoll: &Epoll) -> io::Result<ChildId> {
        let run = self.run.map(|run| run.to_string()).unwrap_or_default();
        // This program, also when its file was replaced. Its name selects its own command line.
        let mut command = Command::new("/proc/self/exe");
        command
            .arg0("linerate")
            .args(["fleet", "worker", "--run", &run]);

        let child = self.children.start(command, epoll)?;
        self.send(child, first);
        Ok(child)
    }

    /// Sends a line; a worker that does not read is ended.
    fn send(&mut self, child: ChildId, line: &ToWorker) {
        let Ok(line) = serde_json::to_string(line) else {
            return;
        };
        // A worker that does not read its pipe would miss all later lines.
        if self.children.send(child, &line).is_err() {
            self.children.end(child, clock::monotonic_ns());
        }
    }
}
