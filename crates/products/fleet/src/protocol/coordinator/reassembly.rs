//! Results in parts: joined when all have arrived, in any order.

use std::collections::{BTreeMap, HashMap};

use crate::TaskId;
use crate::protocol::message::{TaskEnd, TaskResult};

/// Most bytes of incomplete results of one host.
const PENDING_MAX_BYTES: usize = 4 << 20;

/// Incomplete results of one host.
#[derive(Debug, Default)]
pub(super) struct Parts {
    pending: HashMap<TaskId, Pending>,
    bytes: usize,
}

/// The parts contradict each other, or too many bytes wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
        let TaskResult {
            task,
            part,
            parts,
            end,
            record,
            ..
        } = result;
        let pending = self.pending.entry(task).or_insert_with(|| Pending {
            parts,
            ..Pending::default()
        });
        if pending.parts != parts {
            return Err(InvalidParts);
        }
        // A bus may deliver a part again when its confirmation was lost.
        if pending.pieces.contains_key(&part) {
            return Ok(None);
        }

        let piece = record.concat();
        // Pieces are counted before they are kept, so the bound holds at any time.
        self.bytes = self.bytes.saturating_add(piece.len());
        if self.bytes > PENDING_MAX_BYTES {
            return Err(InvalidParts);
        }

        // The end is in part 0, which may arrive after others.
        pending.end = pending.end.take().or(end);
        pending.pieces.insert(part, piece);
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
        let Pending { end, pieces, .. } = self.pending.remove(&task)?;
        // Pieces are ordered by their part, so the record is whole whatever the order of arrival.
        let record: String = pieces.into_values().collect();
        self.bytes = self.bytes.saturating_sub(record.len());
        Some((end?, record))
    }
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
}
