//! Tests among pasted lines. Their reports are read by a function of the caller, because this crate
//! knows no test program.

use std::collections::{BTreeMap, BTreeSet};

use linerate_model::runs;

use super::lines::*;
use crate::prelude::*;

/// Reads the tests in the output of a command: the command, empty where it is not known, and the
/// lines of its output.
pub type ReadTests<'a> = &'a dyn Fn(&str, &[&str]) -> TestOutput;

/// Tests in the output of a command.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TestOutput {
    /// Each direction of each test.
    pub runs: Vec<TestRun>,
    /// The command starts a test.
    pub is_command: bool,
    /// Places of the lines that belong to a report.
    pub read: BTreeSet<usize>,
    /// Release of iperf3 that the output names, for tests of the host that do not name theirs.
    pub iperf3_version: Option<String>,
    /// Reports that are not read, and why.
    pub refused: Vec<String>,
}

/// One direction of a test as one end reported it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TestRun {
    /// Facts under their names without `run.N.`.
    pub facts: BTreeMap<String, Value>,
    /// Those that the report does not have, and that follow from others or are usual.
    pub inferred: Vec<&'static str>,
    /// Ports of the client's ends.
    pub client_ports: BTreeSet<u16>,
    /// CPUs that the command of a server allows it.
    pub server_cpus: Option<String>,
    /// The server wrote the report.
    pub is_server: bool,
}

/// Runs one text may contain.
const RUNS_MAX: usize = 1000;
const SRC: &str = "import:test";

/// Reads no tests.
pub(super) fn none(_: &str, _: &[&str]) -> TestOutput {
    TestOutput::default()
}

/// The runs of one host.
#[derive(Default)]
pub(super) struct Runs {
    runs: Vec<TestRun>,
    iperf3_version: Option<String>,
}

impl Runs {
    /// Reads the tests in a block; returns what it has of them.
    pub(super) fn read(&mut self, block: &Block<'_>, read: ReadTests<'_>) -> TestOutput {
        let lines: Vec<&str> = block.lines.iter().map(|(_, line)| *line).collect();
        let mut output = read(block.command, &lines);
        let room = RUNS_MAX.saturating_sub(self.runs.len());
        self.runs.extend(output.runs.drain(..).take(room));
        self.iperf3_version = output
            .iperf3_version
            .clone()
            .or_else(|| self.iperf3_version.take());

        output
    }

    /// Adds the runs of one text to those before it. A server's report is joined with its client's
    /// by their ports.
    pub(super) fn finish(mut self, snapshot: &mut Snapshot) {
        for run in self
            .runs
            .iter_mut()
            .filter(|run| run.facts.get("tool") == Some(&"iperf3".into()))
        {
            if let Some(version) = &self.iperf3_version {
                run.facts
                    .entry("version".to_owned())
                    .or_insert_with(|| version.as_str().into());
            }
        }

        let (servers, clients): (Vec<TestRun>, Vec<TestRun>) =
            self.runs.into_iter().partition(|run| run.is_server);
        let mut over_loopback = false;

        for client in &clients {
            let server = servers
                .iter()
                .find(|server| !server.client_ports.is_disjoint(&client.client_ports));
            let cpus = server.and_then(|server| server.server_cpus.as_deref());
            over_loopback |= client.facts.get("same_host") == Some(&true.into());
            add(snapshot, client, cpus);
        }

        let is_known = |server: &&TestRun| {
            clients
                .iter()
                .any(|client| !client.client_ports.is_disjoint(&server.client_ports))
        };
        for server in servers.iter().filter(|server| !is_known(server)) {
            add(snapshot, server, server.server_cpus.as_deref());
        }

        if over_loopback {
            snapshot.set("nic.lo.net.kind", "loopback", SRC);
            snapshot.qualify("nic.lo.net.kind", Quality::Inferred);
        }
    }
}

fn add(snapshot: &mut Snapshot, run: &TestRun, server_cpus: Option<&str>) {
    let cpus = server_cpus.map(|cpus| ("server_cpus".to_owned(), cpus.into()));
    let number = runs::add(snapshot, SRC, run.facts.clone().into_iter().chain(cpus));
    for fact in &run.inferred {
        snapshot.qualify(&format!("run.{number}.{fact}"), Quality::Inferred);
    }
}
