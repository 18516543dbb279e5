//! An agent of a fleet over pipes; the test is its coordinator.

use std::fs;
use std::io::{self, PipeWriter, Write};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};

use crate::deadline::{TIMEOUT, wait_for};
use crate::process::{Process, Signal};
use crate::program::ours;

/// Name of the only path of a plan.
const PATH: &str = "phys";

/// A run that no other test has: its id is in the command line of each of its workers.
pub struct FleetRun {
    id: String,
}

/// A running agent and the lines it has written.
pub struct FleetAgent {
    process: Process,
    input: Option<PipeWriter>,
    run: String,
    address: String,
    seq: u64,
}

impl FleetRun {
    /// A new run.
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);

        let count = COUNT.fetch_add(1, Ordering::Relaxed) & 0xFFFF;
        Self {
            id: format!(
                "01890a5d-ac96-774b-bcce-{:08x}{count:04x}",
                std::process::id()
            ),
        }
    }

    /// Starts an agent whose tests use this address.
    pub fn agent(&self, address: &str) -> FleetAgent {
        let (reader, writer) = io::pipe().expect("a pipe");
        let mut command = Command::new(ours().path());
        command.args(["fleet", "agent", "--stdio"]);

        let process = Process::start_reading(command, reader);
        FleetAgent {
            process,
            input: Some(writer),
            run: self.id.clone(),
            address: address.to_owned(),
            seq: 0,
        }
    }

    /// Process ids of all workers of the run.
    pub fn workers(&self) -> Vec<u32> {
        let entries = fs::read_dir("/proc").expect("/proc is mounted").flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let is_ours = |pid: &u32| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains(&self.id)
        };
        pids.filter(is_ours).collect()
    }
}

impl Default for FleetRun {
    fn default() -> Self {
        Self::new()
    }
}

impl FleetAgent {
    /// Sends a message of the run and returns its number.
    pub fn send(&mut self, kind: &str, body: &Value) -> u64 {
        self.seq += 1;
        let line = json!({ "v": 1, "run": self.run, "epoch": 1, "seq": self.seq, "type": kind, "body": body });
        self.send_line(line.to_string().as_bytes());
        self.seq
    }

    /// Sends bytes and the end of a line.
    pub fn send_line(&mut self, line: &[u8]) {
        let input = self.input.as_mut().expect("the input is open");
        input
            .write_all(line)
            .and_then(|()| input.write_all(b"\n"))
            .expect("the agent reads");
    }

    /// Sends a plan for this agent's address with ports, and its partners; returns the port of its
    /// server.
    pub fn plan(&mut self, partners: &[&str], first_port: u16, lease_ms: u64) -> u64 {
        let body = json!({
            "lease_ms": lease_ms,
            "addresses": [{ "path": PATH, "address": self.address }],
            "ports": { "first": first_port, "last": first_port + 3 },
        });
        self.send("plan", &body);
        let planned = self.wait_for("planned");

        self.send("preflight", &json!({ "partners": partners, "peers": [] }));
        self.wait_for("preflighted");
        planned["ports"][0]
            .as_u64()
            .unwrap_or_else(|| panic!("no port: {planned}"))
    }

    /// Prepares one task of a round against a partner, and admits the addresses.
    pub fn arm(&mut self, round: u32, task: &Value, admitted: &[&str]) -> Value {
        let mut task = task.clone();
        task["path"] = PATH.into();
        let before = self.messages("armed").len();

        self.send(
            "arm",
            &json!({ "round": round, "offset_ns": 0, "tasks": [task], "admit": admitted }),
        );
        self.wait_for_nth("armed", before)
    }

    /// Time of the agent's monotonic clock.
    pub fn clock_ns(&mut self) -> u64 {
        let before = self.messages("clocked").len();
        self.send("clock", &json!({ "c1_ns": 1 }));
        self.wait_for_nth("clocked", before)["a3_ns"]
            .as_u64()
            .expect("a time")
    }

    /// The first message of a kind, once it arrives: its body.
    pub fn wait_for(&self, kind: &str) -> Value {
        self.wait_for_nth(kind, 0)
    }

    /// The message of a kind behind `before` others.
    pub fn wait_for_nth(&self, kind: &str, before: usize) -> Value {
        let message = wait_for(TIMEOUT, || self.messages(kind).into_iter().nth(before));
        message.unwrap_or_else(|| panic!("{kind} {before} did not arrive: {:?}", self.process))
    }

    /// Bodies of all messages of a kind so far.
    pub fn messages(&self, kind: &str) -> Vec<Value> {
        let stdout = self.process.stdout();
        let lines = stdout
            .split_inclusive('\n')
            .filter(|line| line.ends_with('\n') && line.starts_with('{'));
        let messages =
            lines.map(|line| serde_json::from_str::<Value>(line).expect("a line of JSON"));

        messages
            .filter(|message| message["type"] == kind)
            .map(|mut message| message["body"].take())
            .collect()
    }

    /// The result of a task, its pieces joined: its end, and its record if there is one.
    pub fn result(&self, task: &str) -> (Value, Option<Value>) {
        let of_task = || {
            let results = self.messages("result");
            let parts: Vec<Value> = results
                .into_iter()
                .filter(|result| result["task"] == task)
                .collect();
            let count = parts.first()?["parts"].as_u64()?;
            (parts.len() as u64 == count).then_some(parts)
        };
        let parts =
            wait_for(TIMEOUT, of_task).unwrap_or_else(|| panic!("no result: {:?}", self.process));
        let pieces = parts
            .iter()
            .flat_map(|part| part["record"].as_array().cloned().unwrap_or_default());
        let record: String = pieces
            .filter_map(|piece| piece.as_str().map(str::to_owned))
            .collect();

        (
            parts[0]["end"].clone(),
            (!record.is_empty()).then(|| serde_json::from_str(&record).expect("a record")),
        )
    }

    /// Ends the input.
    pub fn close(&mut self) {
        self.input = None;
    }

    /// Sends a signal to the agent alone.
    pub fn signal(&self, signal: Signal) {
        self.process.signal(signal);
    }

    /// The agent has ended.
    pub fn has_ended(&mut self) -> bool {
        self.process.has_ended()
    }
}
