//! Output of a shell and messages of a coordinator, in any order, as arbitrary bytes. For tests and
//! fuzzing.

use crate::TaskId;
use crate::protocol::line::LINE_MAX_BYTES;
use linerate_sys::clock;
use serde_json::{Value, json};

use super::host::{Outgoing, ScriptHost};

/// Names of facts.
const FACTS: [&str; 5] = ["ready", "end", "host", "ssh", "iperf3"];

/// Whatever arrives, commands for the shell and lines for the coordinator are lines within the
/// bounds.
pub fn script(bytes: &[u8]) {
    let mut host = ScriptHost::new();
    // Half of the scripts begin with a host that has iperf3.
    if bytes.first().is_some_and(|byte| byte % 2 == 0) {
        ["LRF ready", "LRF iperf3 iperf 3.12", "LRF end"]
            .iter()
            .for_each(|line| check(&host.printed(line)));
        check(&host.command(&plan(1)));
    }

    let mut seq = 1;
    for [kind, argument] in bytes.as_chunks::<2>().0 {
        let rest = bytes.get(usize::from(*argument)..).unwrap_or_default();
        let text = String::from_utf8_lossy(rest.get(..rest.len().min(300)).unwrap_or_default());
        let text = text.lines().next().unwrap_or_default();
        let task = TaskId(u128::from(argument % 4));
        let outgoing = match kind % 8 {
            0 => host.printed(text),
            1 => host.printed(&format!("LRF {} {text}", FACTS[usize::from(argument % 5)])),
            2 => host.printed(&format!("LRT {task} LRP {argument}")),
            3 => host.printed(&format!("LRT {task} LRX {}", argument % 3)),
            4 => host.printed(&format!("LRT {task} Server listening {text}")),
            5 | 6 => {
                seq += 1;
                host.command(&command(seq, *argument))
            }
            _ => {
                let at_ns = host.deadline_ns().unwrap_or_else(clock::monotonic_ns);
                host.timeout(at_ns)
            }
        };
        check(&outgoing);
    }
}

fn check(outgoing: &Outgoing) {
    assert!(
        outgoing
            .commands
            .iter()
            .all(|command| !command.contains('\n')),
        "{outgoing:?}"
    );
    assert!(
        outgoing
            .lines
            .iter()
            .all(|line| line.len() <= LINE_MAX_BYTES && !line.contains('\n')),
        "{outgoing:?}"
    );
}

fn command(seq: u64, argument: u8) -> String {
    let round = u32::from(argument / 64);
    let task = |id: u8, role: &str| {
        let peer = if id.is_multiple_of(2) {
            "10.0.0.2"
        } else {
            "10.0.0.9"
        };
        let id = TaskId(u128::from(id % 4)).to_string();
        json!({"task": id, "role": role, "peer": peer, "port": 5201, "path": "phys", "streams": 1, "time_ms": 2000})
    };

    let (kind, body) = match argument % 8 {
        0 => return plan(seq),
        1..=3 => (
            "arm",
            json!({"round": round, "offset_ns": 0, "tasks": [task(argument / 8, "client"), task(argument / 16, "server")]}),
        ),
        4 | 5 => (
            "go",
            json!({"round": round, "t0_ns": clock::monotonic_ns() + u64::from(argument) * 1_000_000}),
        ),
        6 if argument > 200 => ("cancel", json!({})),
        6 => ("cancel", json!({"round": round})),
        _ => ("beat", json!({})),
    };
    line(seq, kind, &body)
}

fn plan(seq: u64) -> String {
    let body = json!({"lease_ms": 3000, "addresses": [{"path": "phys", "address": "10.0.0.1"}],
        "ports": {"first": 5201, "last": 5209}});
    line(seq, "plan", &body)
}

fn line(seq: u64, kind: &str, body: &Value) -> String {
    json!({"v": 1, "run": "0199aaaa-0000-7000-8000-000000000001", "epoch": 1, "seq": seq, "type": kind, "body": body})
        .to_string()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_output_of_a_shell_gives_lines(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            super::script(&bytes);
        }
    }
}
