//! Results that a bus has kept for an earlier coordinator of the run.

use std::collections::BTreeMap;

use super::reassembly::Parts;
use crate::TaskId;
use crate::protocol::message::{AgentMessage, Envelope, TaskEnd, decode};

/// The result of one end of a task.
#[derive(Debug, Clone, PartialEq)]
pub struct KeptResult {
    /// The host.
    pub host: usize,
    /// Term of the coordinator, and number of the round in it.
    pub round: (u64, u32),
    /// The task.
    pub task: TaskId,
    /// End of the task.
    pub end: TaskEnd,
    /// Record of the test, as the host wrote it; empty without one.
    pub record: String,
}

/// The whole results among lines of hosts. Other lines, and those of a host whose parts contradict
/// each other, are left out.
pub fn kept_results(lines: impl IntoIterator<Item = (usize, Vec<u8>)>) -> Vec<KeptResult> {
    let mut parts: BTreeMap<(usize, u64, u32), Parts> = BTreeMap::new();
    let mut results = Vec::new();

    for (host, line) in lines {
        let Ok(Envelope {
            epoch,
            message: AgentMessage::Result(result),
            ..
        }) = decode::<AgentMessage>(&line)
        else {
            continue;
        };
        let (round, task) = ((epoch, result.round), result.task);
        // A task that ran again under another term or round has other parts.
        let of_round = parts.entry((host, epoch, result.round)).or_default();

        if let Ok(Some((end, record))) = of_round.add(*result) {
            results.push(KeptResult {
                host,
                round,
                task,
                end,
                record,
            });
        }
    }

    results
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(epoch: u64, round: u32, part: u32, parts: u32) -> Vec<u8> {
        let end = if part == 0 {
            r#""end":{"outcome":"done","bytes":5},"#
        } else {
            ""
        };
        let task = format!("{:032x}", 17);
        let body = format!(
            r#"{{"round":{round},"task":"{task}",{end}"part":{part},"parts":{parts},"record":["{part}"]}}"#
        );

        format!(r#"{{"v":1,"epoch":{epoch},"seq":1,"type":"result","body":{body}}}"#).into_bytes()
    }

    #[test]
    fn results_are_whole_and_known_by_host_term_and_round() {
        let lines = [
            (3, line(7, 1, 1, 2)),
            (3, b"garbage".to_vec()),
            (3, line(7, 1, 0, 2)),
            (4, line(7, 1, 0, 2)),
            (3, line(8, 1, 0, 1)),
        ];
        let results = kept_results(lines);
        let known: Vec<_> = results
            .iter()
            .map(|result| (result.host, result.round, result.record.as_str()))
            .collect();
        assert_eq!(known, [(3, (7, 1), "01"), (3, (8, 1), "0")]);
        assert!(
            results
                .iter()
                .all(|result| result.task == TaskId(17) && result.end.bytes == 5)
        );
    }
}
