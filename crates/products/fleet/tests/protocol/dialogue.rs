//! Dialogues as text: one step per line, `#` begins a comment.
//!
//! | line | step |
//! |---|---|
//! | `agent stream\|bus [planned\|armed\|running]` | the machine, and how far it is |
//! | `coordinator a b [planned\|ready\|solicits]` | the machine with its hosts; those that are ready have a clock |
//! | `t 1500` | time passes until 1,500 ms after the begin |
//! | `> plan 1 {"lease_ms":500}` | a message to the agent with its number; members of the usual body are replaced |
//! | `> beat 9 @2 run=2 v=2` | with another epoch, run (0 for none) or version |
//! | `a> hello` | a message of host a to the coordinator |
//! | `raw> text`, `a raw> text` | a line as it is |
//! | `< done {"round":1}`, `a< plan` | the next line of the machine, with these members; BEAT is passed over |
//! | `raw< text` | the next line as it is |
//! | `quiet`, `a quiet` | no further line |
//! | `do finish 1` | what the owner of the machine does |
//! | `= StopAll lease` | an action of the machine after those seen before |
//! | `!= StartWorker` | no action after those seen before begins like this |
//!
//! All lines but the last three kinds can be played over any carrier.

use serde_json::{Map, Value, json};

/// A dialogue.
pub(crate) struct Dialogue {
    pub machine: Machine,
    /// Number of the line and the step.
    pub steps: Vec<(usize, Step)>,
}

/// The machine under test.
pub(crate) enum Machine {
    Agent {
        is_bus: bool,
    },
    Coordinator {
        hosts: Vec<String>,
        is_solicited: bool,
    },
}

/// A step.
pub(crate) enum Step {
    Time(u64),
    Feed {
        host: String,
        line: String,
    },
    Expect {
        host: String,
        kind: String,
        body: Value,
    },
    ExpectRaw {
        host: String,
        line: String,
    },
    Quiet {
        host: String,
    },
    Owner(String),
    Action(String),
    NoAction(String),
}

/// Reads a dialogue.
pub(crate) fn parse(text: &str) -> Dialogue {
    let lines = text.lines().map(str::trim);
    let mut lines = (1..)
        .zip(lines)
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let (_, header) = lines.next().expect("a machine");
    let (machine, prologue) = machine_of(header);
    let mut seq = 100;
    let mut read = |number: usize, line: &str| (number, step(line, &mut seq));
    let mut steps: Vec<(usize, Step)> = prologue.lines().map(|line| read(0, line.trim())).collect();
    steps.extend(lines.map(|(number, line)| read(number, line)));

    Dialogue { machine, steps }
}

fn machine_of(header: &str) -> (Machine, String) {
    let words: Vec<&str> = header.split_whitespace().collect();
    match words.as_slice() {
        ["agent", service, state @ ..] => {
            let is_bus = *service == "bus";
            let stages = ["planned", "armed", "running"];
            let reached = state.first().map_or(0, |state| {
                1 + stages.iter().position(|s| s == state).expect("a state")
            });

            let hello = if is_bus {
                "< hello"
            } else {
                "raw< LRFLEET/1\n< hello"
            };
            let planned = "> plan 1\n< planned\n> preflight 2\n< preflighted";
            let all = [
                hello,
                planned,
                "> arm 3\n< armed",
                "> go 4\nt 1000\n< started",
            ];
            let prologue = if reached == 0 {
                String::new()
            } else {
                all.get(..=reached).expect("stages").join("\n")
            };

            (Machine::Agent { is_bus }, prologue)
        }
        ["coordinator", hosts @ ..] => {
            let is_ready = hosts.last() == Some(&"ready");
            let is_planned = is_ready || hosts.last() == Some(&"planned");
            let is_solicited = hosts.last() == Some(&"solicits");
            let names = hosts
                .iter()
                .filter(|host| !["planned", "ready", "solicits"].contains(host));
            let hosts: Vec<String> = names.map(|host| (*host).to_owned()).collect();
            let each = |line: &str| {
                hosts
                    .iter()
                    .map(|host| format!("{host}{line}\n"))
                    .collect::<String>()
            };
            let prologue = [
                each("> hello"),
                "do plan\n".to_owned(),
                each("< plan"),
                each("> planned"),
            ]
            .concat();
            let clocks = [
                "do clocks 1\n".to_owned(),
                each("< clock"),
                each("> clocked"),
            ]
            .concat();

            (
                Machine::Coordinator {
                    hosts,
                    is_solicited,
                },
                match (is_planned, is_ready) {
                    (true, true) => prologue + &clocks,
                    (true, false) => prologue,
                    _ => String::new(),
                },
            )
        }
        _ => panic!("{header}: no machine"),
    }
}

fn step(line: &str, seq: &mut u64) -> Step {
    if let Some(time) = line.strip_prefix("t ") {
        return Step::Time(time.parse().expect("a time"));
    }
    if let Some(owner) = line.strip_prefix("do ") {
        return Step::Owner(owner.to_owned());
    }
    if let Some(action) = line.strip_prefix("!= ") {
        return Step::NoAction(action.to_owned());
    }
    if let Some(action) = line.strip_prefix("= ") {
        return Step::Action(action.to_owned());
    }
    if let Some(host) = line.strip_suffix("quiet") {
        return Step::Quiet {
            host: host.trim().to_owned(),
        };
    }

    let at = line
        .find(['<', '>'])
        .unwrap_or_else(|| panic!("{line}: no step"));
    let (left, right) = line.split_at(at);
    let (arrow, rest) = right.split_at(1);
    let (host, is_raw) = left
        .trim_end()
        .strip_suffix("raw")
        .map_or((left, false), |host| (host, true));
    let (host, rest) = (host.trim().to_owned(), rest.trim());

    match (arrow, is_raw) {
        (">", true) => Step::Feed {
            host,
            line: rest.to_owned(),
        },
        (">", false) => Step::Feed {
            host,
            line: message(rest, seq),
        },
        (_, true) => Step::ExpectRaw {
            host,
            line: rest.to_owned(),
        },
        (_, false) => {
            let (kind, body) = rest.split_once(' ').unwrap_or((rest, "{}"));
            Step::Expect {
                host,
                kind: kind.to_owned(),
                body: serde_json::from_str(body).expect("JSON"),
            }
        }
    }
}

/// `plan 1 @2 run=2 v=2 {…}` as a line.
fn message(text: &str, seq: &mut u64) -> String {
    let (head, body) = text.find('{').map_or((text, "{}"), |at| text.split_at(at));
    let mut words = head.split_whitespace();
    let kind = words.next().expect("a type");

    *seq += 1;
    let (mut number, mut epoch, mut run, mut version) = (*seq, 1, 1, 1);

    for word in words {
        if let Some(value) = word.strip_prefix('@') {
            epoch = value.parse().expect("an epoch");
        } else if let Some(value) = word.strip_prefix("run=") {
            run = value.parse().expect("a run");
        } else if let Some(value) = word.strip_prefix("v=") {
            version = value.parse().expect("a version");
        } else {
            number = word.parse().expect("a number");
        }
    }

    let given: Map<String, Value> = serde_json::from_str(body).expect("JSON");
    let mut whole = usual(kind);
    whole.extend(given);

    let run = (run > 0).then(|| run_id(run));
    json!({ "v": version, "run": run, "epoch": epoch, "seq": number, "type": kind, "body": whole })
        .to_string()
}

/// Ids of runs.
pub(crate) fn run_id(number: u32) -> String {
    format!("0199aaaa-0000-7000-8000-{number:012x}")
}

/// A task with its number, as a client of 10.0.0.2 or as its server.
pub(crate) fn task(number: u64, role: &str) -> Value {
    json!({
        "task": format!("{number:032x}"), "role": role, "peer": "10.0.0.2", "port": 5201, "path": "phys",
        "streams": 1, "time_ms": 2000
    })
}

/// The usual body of a message.
fn usual(kind: &str) -> Map<String, Value> {
    let body = match kind {
        "plan" => json!({
            "lease_ms": 3000, "addresses": [{"path": "phys", "address": "10.0.0.1"}],
            "ports": {"first": 5201, "last": 5209}
        }),
        "preflight" => json!({
            "partners": ["10.0.0.2", "10.0.0.3"], "peers": [{"peer": "10.0.0.2", "port": 5201}], "has_facts": true
        }),
        "clock" => json!({ "c1_ns": 5 }),
        "arm" => json!({ "round": 1, "offset_ns": 0, "tasks": [task(1, "client")] }),
        "go" => json!({ "round": 1, "t0_ns": 1_000_000_000_u64 }),
        "hello" => json!({ "protocol": {"min": 1, "max": 1}, "version": "0.2.0" }),
        "planned" => json!({ "ports": [5201] }),
        "clocked" => json!({ "c1_ns": 0, "a2_ns": 0, "a3_ns": 0 }),
        "preflighted" => json!({ "peers": [] }),
        "armed" | "started" => {
            json!({ "round": 1, "task": "00000000000000000000000000000011", "at_ns": 1 })
        }
        "result" => json!({
            "round": 1, "task": "00000000000000000000000000000011", "part": 0, "parts": 1, "record": ["{}"],
            "end": {"outcome": "done", "bytes": 225_000_000, "elapsed_ns": 2_000_000_000_u64}
        }),
        "fail" => json!({ "code": "state", "text": "" }),
        _ => json!({}),
    };
    match body {
        Value::Object(body) => body,
        _ => Map::new(),
    }
}
