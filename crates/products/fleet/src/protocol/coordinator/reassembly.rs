//! Results in parts: joined when all have arrived, in any order.

use std::collections::{BTreeMap, HashMap};

use crate::TaskId;
use crate::protocol::message::{AgentMessage, TaskEnd, TaskResult, decode};

/// Most bytes of incomplete results of one host.
const PENDING_MAX_BYTES: usize = 4 << 20;

/// Incomplete results of one host.
#[derive(Debug, Default)]
pub(super) struct Parts {
    pending: HashMap<TaskId, Pending>,
    bytes: usize,
}

/// The parts contradict each other, or too many bytes wait.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct InvalidParts;

#[derive(Debug, Default)]
struct Pending {
    parts: u32,
    end: Option<TaskEnd>,
    pieces: BTreeMap<u32, String>,
}

impl Parts {
    /// Takes a part and returns the end of the task and its record when they are complete. A part
    /// that arrived before is dropped.
    pub(super) fn add(
        &mut self,
        result: TaskResult,
    ) -> Result<Option<(TaskEnd, String)>, InvalidParts> {
        let task = result.task;
        let parts = result.parts;
        let pending = self.pending.entry(task).or_default();
        if pending.pieces.is_empty() {
            pending.parts = parts;
        }
        if pending.parts != parts {
            return Err(InvalidParts);
        }
        // A bus may deliver a part again when its confirmation was lost.
        if pending.pieces.contains_key(&result.part) {
            return Ok(None);
        }

        let piece = result.record.concat();
        // Pieces are counted before they are kept, so the bound holds at any time.
        self.bytes = self.bytes.saturating_add(piece.len());
        if self.bytes > PENDING_MAX_BYTES {
            return Err(InvalidParts);
        }

        // The end is in part 0, which may arrive after others.
        pending.end = pending.end.take().or(result.end);
        pending.pieces.insert(result.part, piece);
        if pending.pieces.len() < parts as usize {
            return Ok(None);
        }

        Ok(self.take(task))
    }

    /// Drops what is incomplete, at the end of a round.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    fn take(&mut self, task: TaskId) -> Option<(TaskEnd, String)> {
        let pending = self.pending.remove(&task)?;
        // Pieces are ordered by their part, so the record is whole whatever the order of arrival.
        let record: String = pending.pieces.into_values().collect();
        self.bytes = self.bytes.saturating_sub(record.len());
        Some((pending.end?, record))
    }
}

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
        let Ok(envelope) = decode::<AgentMessage>(&line) else {
            continue;
        };
        let AgentMessage::Result(result) = envelope.message else {
            continue;
        };
        let round = (envelope.epoch, result.round);
        let task = result.task;
        // A task that ran again under another term or round has other parts.
        let of_round = parts.entry((host, round.0, round.1)).or_default();

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

    fn part(part: u32, parts: u32, piece: &str) -> TaskResult {
        let end = TaskEnd::done();
        let end = (part == 0).then_some(end);
        let record = vec![piece.to_owned()];

        TaskResult {
            round: 1,
            task: TaskId(1),
            part,
            parts,
            end,
            record,
        }
    }

    #[test]
    fn parts_in_any_order_and_repeated_give_one_result() {
        let mut parts = Parts::default();
        assert_eq!(parts.add(part(2, 3, "c")), Ok(None));
        assert_eq!(parts.add(part(0, 3, "a")), Ok(None));
        assert_eq!(parts.add(part(0, 3, "x")), Ok(None));

        let whole = parts
            .add(part(1, 3, "b"))
            .expect("the parts fit")
            .expect("all are there");
        assert_eq!(whole.1, "abc");
        assert_eq!(parts.bytes, 0);
    }

    #[test]
    fn contradicting_and_endless_parts_are_refused() {
        let mut parts = Parts::default();
        assert_eq!(parts.add(part(0, 3, "a")), Ok(None));
        assert_eq!(parts.add(part(1, 2, "b")), Err(InvalidParts));

        let mut parts = Parts::default();
        let long = "x".repeat(PENDING_MAX_BYTES / 2 + 1);
        assert_eq!(parts.add(part(0, 3, &long)), Ok(None));
        assert_eq!(parts.add(part(1, 3, &long)), Err(InvalidParts));
    }

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
