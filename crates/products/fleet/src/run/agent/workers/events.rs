//! Events of workers: lines, failures, ends.

use crate::TaskId;
use crate::protocol::agent::{Finish, Input};
use crate::protocol::message::TaskEnd;
use crate::run::carrier::HostEvent;
use crate::run::carrier::children::ChildId;
use linerate_sys::clock;

use super::{Server, Task, Workers};
use crate::run::worker::lines::{FromWorker, RECORD_MAX_BYTES};

impl Workers {
    pub(super) fn handle_events(&mut self, events: Vec<(ChildId, HostEvent)>) {
        for (child, event) in events {
            let line = match event {
                HostEvent::Line(line) => serde_json::from_slice(&line).ok(),
                HostEvent::TooLong => None,
                HostEvent::Lost { reason } => {
                    self.handle_end(child, &reason);
                    continue;
                }
            };
            match line {
                Some(line) => self.handle_line(child, line),
                // The lines of a worker are those of this program, so one that is none shows a
                // defect.
                None => self.children.end(child, clock::monotonic_ns()),
            }
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
            // A worker cannot continue, and ends.
            FromWorker::Failed(text) if self.is_planning => self.refuse_plan(&text),
            FromWorker::Failed(text) => self.fail_tasks(child, &text),
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
        let Some(known) = self.tasks.remove(&task) else {
            return;
        };
        if known.record.is_none() {
            end.leave_out_record();
        }
        let record = known.record.unwrap_or_default();
        let finish = Finish { task, end, record };
        self.inputs.push(Input::Finished(Box::new(finish)));
    }

    fn handle_end(&mut self, child: ChildId, reason: &str) {
        // A server that is already known as ended has been reported.
        let mut is_server = false;
        self.update_server(child, |server| {
            is_server = std::mem::replace(&mut server.is_alive, false);
        });
        if let Some(stopping) = &mut self.stopping {
            stopping.children.retain(|known| *known != child);
        }

        if is_server && self.is_planning {
            self.refuse_plan(reason);
        }

        self.fail_tasks(child, reason);
        self.follow_stopping();
    }

    /// Reports all tasks of a worker as failed.
    fn fail_tasks(&mut self, child: ChildId, text: &str) {
        let ids: Vec<TaskId> = self.tasks.keys().copied().collect();
        for id in ids {
            let Some(task) = self.tasks.get(&id).filter(|task| task.child == child) else {
                continue;
            };
            let end = TaskEnd::failed(text, task.started_ns);
            self.finish(id, end);
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
