//! Events of a test as lines of a worker: start, record, end.

use crate::protocol::message::{ArmTask, Outcome, TaskEnd};
use linerate_history::run::record::{Labels, head, host_key};
use linerate_model::record::{Body, HostPart, RunId, RunKind, RunRecord, RunState, Trial};
use linerate_model::workload::Start;
use linerate_model::{Event, EventSink, Failure, FailureKind, Flow, SinkError, Summary, measure};
use linerate_store::{Builder, keys, text};
use linerate_sys::{clock, process};

use super::lines::{FromWorker, PIECE_MAX_BYTES, RECORD_MAX_BYTES, emit};

/// Points of the series of a record: an hour in intervals of one fortieth of it, for as many
/// streams as a task may have.
const POINTS_MAX: usize = 1 << 13;

/// Takes the events of the test of a task.
pub(super) struct TaskEvents {
    run: RunId,
    task: ArmTask,
    builder: Builder,
    end: TaskEnd,
    clock_offset_ns: i64,
}

impl TaskEvents {
    pub(super) fn new(run: RunId, task: &ArmTask) -> Self {
        Self {
            run,
            task: task.clone(),
            builder: Builder::default().points_max(POINTS_MAX),
            end: TaskEnd::done(),
            clock_offset_ns: clock::realtime_offset_ns(),
        }
    }

    /// The test has ended: writes its record and its end.
    pub(super) fn finish(mut self, outcome: Result<(), Failure>) {
        if let Err(failure) = outcome {
            self.end.outcome = match failure.kind {
                FailureKind::Interrupted => Outcome::Aborted,
                _ => Outcome::Failed,
            };
            self.end.reason = Some(failure.message);
        }

        self.end.clock_step_ns = clock::realtime_offset_ns().saturating_sub(self.clock_offset_ns);
        let task = self.task.task;
        let mut end = self.end.clone();

        let record = text::write(&self.record());
        if record.len() > RECORD_MAX_BYTES {
            end.leave_out_record();
        } else {
            for piece in pieces(&record) {
                let piece = piece.to_owned();
                emit(&FromWorker::Record { task, piece });
            }
        }

        emit(&FromWorker::Finished { task, end });
    }

    fn record(self) -> RunRecord {
        let trial = self.builder.finish();
        let mut record = head(RunKind::Test, Body::Test, None, Labels::new());
        let name = process::uname().node;
        let peer = self.task.peer.to_string();
        let (role, client, server) = if self.task.is_client() {
            ("client", name.clone(), peer)
        } else {
            ("server", peer, name.clone())
        };

        record.path.spec_key = spec_key(&trial);
        record.path.client = Some(client);
        record.path.server = Some(server);
        record.hosts = vec![HostPart {
            host_key: host_key(),
            ..HostPart::new(role, name)
        }];
        record.elapsed_ns = trial.elapsed_ns;
        record.state = trial.state;
        record.reason = trial.reason.clone();

        if self.end.outcome == Outcome::Aborted {
            record.state = RunState::Interrupted;
        }

        record.links.parent = Some(self.run);
        record.trials = vec![trial];
        record
    }
}

impl EventSink for TaskEvents {
    fn event(&mut self, event: &Event) -> Result<(), SinkError> {
        match event {
            Event::TestStarted { at_monotonic_ns } => {
                let at_ns = at_monotonic_ns.unwrap_or_else(clock::monotonic_ns);
                self.end.started_ns = Some(at_ns);
                let task = self.task.task;
                emit(&FromWorker::Started { task, at_ns });
            }
            Event::Summary(summary) => (self.end.bytes, self.end.elapsed_ns) = totals(summary),
            _ => {}
        }

        self.builder.event(event)
    }
}

/// Payload that arrived in both directions, or left where the other end did not report, and the
/// measured time.
pub(in crate::run) fn totals(summary: &Summary) -> (u64, u64) {
    let mut bytes = 0_u64;
    let mut ns = 0;
    for flow in [Flow::Forward, Flow::Reverse] {
        let received = measure::received(summary, flow);
        if let Some(one) = received.or_else(|| measure::sent(summary, flow)) {
            bytes = bytes.saturating_add(one.bytes);
            ns = one.duration_ns.max(ns);
        }
    }

    (bytes, ns)
}

/// The start is no part of what is measured.
fn spec_key(trial: &Trial) -> String {
    let Some(linerate_model::record::Detail::Test(detail)) = &trial.detail else {
        return String::new();
    };
    let mut spec = detail.header.spec.clone();
    // Each round has a start of its own, and equal tests have one key.
    spec.workload.start = Start::Now;
    keys::spec_key("test", &spec)
}

/// A text in pieces of at most [`PIECE_MAX_BYTES`].
fn pieces(text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let mut len = rest.len().min(PIECE_MAX_BYTES);
        while !rest.is_char_boundary(len) {
            len -= 1;
        }

        let (piece, behind) = rest.split_at(len);
        pieces.push(piece);
        rest = behind;
    }

    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_join_to_the_text_and_end_between_characters() {
        for text in [
            String::new(),
            "{}".to_owned(),
            "x".repeat(200_000),
            "ä".repeat(70_001),
        ] {
            let pieces = pieces(&text);
            assert_eq!(pieces.concat(), text);
            assert!(pieces.iter().all(|piece| piece.len() <= PIECE_MAX_BYTES));
        }
    }
}
