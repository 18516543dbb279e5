//! Which commands are new: each is executed once per (run, epoch, seq), in ascending order.

use std::collections::VecDeque;

use linerate_model::record::RunId;

/// Commands whose answers are kept.
const RECENT_MAX: usize = 16;

/// Meaning of a number.
pub(super) enum SequenceCheck {
    /// Execute it.
    New,
    /// It is executed and has no answer, or none yet.
    Pending,
    /// It was executed: repeat the answer.
    Answered(String),
    /// A later command was executed before it.
    Old,
}

/// Latest commands of one coordinator.
#[derive(Debug, Default)]
pub(super) struct Commands {
    of: Option<(RunId, u64)>,
    highest: u64,
    recent: VecDeque<(u64, Option<String>)>,
}

impl Commands {
    pub(super) fn check_sequence(&self, run: RunId, epoch: u64, seq: u64) -> SequenceCheck {
        // Numbers of another coordinator begin at 1 and say nothing about those of this one.
        if self.of != Some((run, epoch)) {
            return SequenceCheck::New;
        }

        match self.recent.iter().find(|(known, _)| *known == seq) {
            Some((_, Some(answer))) => SequenceCheck::Answered(answer.clone()),
            Some((_, None)) => SequenceCheck::Pending,
            None if seq > self.highest => SequenceCheck::New,
            // The command left the window of kept answers or was overtaken; its answer is not
            // known.
            None => SequenceCheck::Old,
        }
    }

    /// Notes a command that is new.
    pub(super) fn begin(&mut self, run: RunId, epoch: u64, seq: u64) {
        if self.of != Some((run, epoch)) {
            *self = Self {
                of: Some((run, epoch)),
                ..Self::default()
            };
        }

        self.highest = seq;
        if self.recent.len() == RECENT_MAX {
            self.recent.pop_front();
        }

        self.recent.push_back((seq, None));
    }

    /// Keeps the answer to a command.
    pub(super) fn answer(&mut self, seq: u64, line: String) {
        if let Some((_, answer)) = self.recent.iter_mut().find(|(known, _)| *known == seq) {
            *answer = Some(line);
        }
    }
}
