//! Events of workers: lines, failures, ends.

use crate::TaskId;
use crate::protocol::agent::{Finish, Input};
use crate::protocol::message::{Outcome, TaskEnd};
use crate::run::carrier::children::{ChildEvent, ChildId};
use linerate_sys::clock;

use super::{Server, Task, Workers};
use crate::run::worker::lines::{FromWorker, RECORD_MAX_BYTES};

impl Workers {
    pub(super) fn handle_event(&mut self, child: ChildId, event: ChildEvent) {
        match event {
            ChildEvent::Line(line) => match serde_json::from_slice(&line) {
                Ok(line) => self.handle_line(child, line),
                // The lines of a worker are those of this program, so one that is none shows a
                // defect.
                Err(_) => self.children.end(child, clock::monotonic_ns()),
            },
            ChildEvent::TooLong => self.children.end(child, clock::monotonic_ns()),
            ChildEvent::Ended { signal } => self.handle_end(child, signal),
        }
    }

    fn handle_line(&mut self, child: ChildId, line: FromWorker) {
        match line {
            FromWorker::Listening { port } => {
                self.update_server(child, |server| server.port = Some(port));
                self.follow_planning();
            }
            FromWorker::Admitted => self.update_server(child, |server| server.is_current = true),
            FromWorker::Ready { task } => self.update_task(task, |task| task.is_ready = true),
            FromWorker::Started { task, at_ns } => {
                self.update_task(task, |task| task.started_ns = Some(at_ns));
                if self.tasks.get(&task).is_some_and(|task| task.is_client) {
                    self.inputs.push(Input::Started { task, at_ns });
                }
            }
            FromWorker::Record { task, piece } => self.update_task(task, |task| task.add(&piece)),
            FromWorker::Finished { task, end } => self.finish(task, end),
            FromWorker::Failed(text) => self.handle_failure(child, &text),
        }
    }

    fn update_server(&mut self, child: ChildId, update: impl FnOnce(&mut Server)) {
        if let Some(server) = self.servers.iter_mut().find(|server| server.child == child) {
            update(server);
        }
    }

    fn update_task(&mut self, task: TaskId, update: impl FnOnce(&mut Task)) {
        if let Some(task) = self.tasks.get_mut(&task) {
            update(task);
        }
    }

    fn finish(&mut self, task: TaskId, mut end: TaskEnd) {
        let Some(Task { record, .. }) = self.tasks.remove(&task) else {
            return;
        };
        let record = record.unwrap_or_else(|| {
            end.leave_out_record();
            String::new()
        });
        self.inputs
            .push(Input::Finished(Box::new(Finish { task, end, record })));
    }

    /// A worker cannot continue, and ends.
    fn handle_failure(&mut self, child: ChildId, text: &str) {
        if self.is_planning {
            return self.refuse_plan(text);
        }
        self.fail_tasks(child, text);
    }

    fn handle_end(&mut self, child: ChildId, signal: Option<i32>) {
        // A server that is already known as ended has been reported.
        let is_server = self
            .servers
            .iter()
            .any(|server| server.child == child && server.is_alive);

        self.update_server(child, |server| server.is_alive = false);
        if let Some(stopping) = &mut self.stopping {
            stopping.children.retain(|known| *known != child);
        }

        let text = match signal {
            Some(signal) => format!("a worker was ended by signal {signal}"),
            None => "a worker ended without a result".to_owned(),
        };
        if is_server && self.is_planning {
            self.refuse_plan(&text);
        }

        self.fail_tasks(child, &text);
        self.follow_stopping();
    }

    /// Reports all tasks of a worker as failed.
    fn fail_tasks(&mut self, child: ChildId, text: &str) {
        let tasks: Vec<TaskId> = self
            .tasks
            .iter()
            .filter(|(_, task)| task.child == child)
            .map(|(task, _)| *task)
            .collect();
        for task in tasks {
            let started_ns = self.tasks.get(&task).and_then(|task| task.started_ns);
            self.finish(
                task,
                TaskEnd {
                    outcome: Outcome::Failed,
                    started_ns,
                    ..TaskEnd::aborted(text)
                },
            );
        }
    }
}

impl Task {
    /// Takes a piece of the record. One beyond the bound is left out as a whole: a part of JSON is
    /// of no value to its reader.
    fn add(&mut self, piece: &str) {
        let has_room = |record: &String| record.len() + piece.len() <= RECORD_MAX_BYTES;
        self.record = self.record.take().filter(has_room);
        if let Some(record) = &mut self.record {
            record.push_str(piece);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use linerate_sys::poll::Epoll;

    use super::*;

    #[test]
    fn record_beyond_its_bound_is_left_out_as_a_whole_with_a_reason() {
        let epoll = Epoll::new().expect("epoll");
        let mut workers = Workers::new(0);
        let child = workers
            .children
            .start(Command::new("true"), &epoll)
            .expect("a process");
        let id = TaskId(1);
        workers.tasks.insert(
            id,
            Task {
                round: 1,
                child,
                is_client: true,
                is_ready: true,
                started_ns: None,
                record: Some(String::new()),
            },
        );

        for len in [RECORD_MAX_BYTES - 10, 20, 5] {
            let piece = "x".repeat(len);
            workers.handle_line(child, FromWorker::Record { task: id, piece });
        }
        workers.handle_line(
            child,
            FromWorker::Finished {
                task: id,
                end: TaskEnd::done(),
            },
        );

        let Some(Input::Finished(finish)) = workers.inputs.pop() else {
            panic!("the end of the task")
        };
        assert_eq!(finish.record.len(), 0);
        assert!(
            finish
                .end
                .reason
                .is_some_and(|text| text.contains("record")),
            "why there is none"
        );
    }
}
