//! Lines between an agent and its workers: one JSON object each, `{"begin":{"at_ns":12345}}`.

use std::io::{self, Write};
use std::net::IpAddr;

use crate::TaskId;
use crate::protocol::message::{ArmTask, Ports, TaskEnd};
use serde::{Deserialize, Serialize};

/// Longest piece of a record in bytes. As a string of JSON it has at most twice as many, since JSON
/// has no control characters.
pub(crate) const PIECE_MAX_BYTES: usize = 64 << 10;
/// Longest record in bytes, the bound of a result.
pub(crate) const RECORD_MAX_BYTES: usize = 3 << 20;

/// A line to a worker.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ToWorker {
    /// First line of a client.
    Client(Box<ClientTask>),
    /// The client's data begins at this time.
    Begin {
        /// ns of the monotonic clock.
        at_ns: u64,
    },
    /// First line of a server.
    Server(ServerTask),
    /// The server admits these addresses and no others.
    Admit(Vec<IpAddr>),
    /// The server awaits the client of this task.
    Expect(Box<ArmTask>),
    /// The server no longer awaits the client of this task, and does not report it.
    Forget(TaskId),
}

/// A test as client.
#[derive(Serialize, Deserialize)]
pub(crate) struct ClientTask {
    /// The test.
    pub task: ArmTask,
    /// Local address of all connections.
    pub local: IpAddr,
}

/// The server of an address.
#[derive(Serialize, Deserialize)]
pub(crate) struct ServerTask {
    /// The address.
    pub address: IpAddr,
    /// The first free port of these is used.
    pub ports: Ports,
}

/// A line of a worker.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FromWorker {
    /// The server listens.
    Listening {
        /// Its port.
        port: u16,
    },
    /// The addresses of the last `Admit` are admitted.
    Admitted,
    /// The task can begin.
    Ready {
        /// The task.
        task: TaskId,
    },
    /// The data began.
    Started {
        /// The task.
        task: TaskId,
        /// ns of the monotonic clock.
        at_ns: u64,
    },
    /// A piece of the record of a task; all of them come before `Finished`.
    Record {
        /// The task.
        task: TaskId,
        /// The piece.
        piece: String,
    },
    /// The task ended.
    Finished {
        /// The task.
        task: TaskId,
        /// End of the task.
        end: TaskEnd,
    },
    /// The worker cannot continue.
    Failed(String),
}

/// Writes a line. Without a reader this process has no purpose; its input ends as well then.
pub(super) fn emit(line: &FromWorker) {
    let Ok(mut text) = serde_json::to_string(line) else {
        return;
    };
    text.push('\n');
    let mut stdout = io::stdout().lock();
    let _ = stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_objects_with_one_member() {
        let begin = serde_json::to_string(&ToWorker::Begin { at_ns: 7 }).expect("JSON");
        assert_eq!(begin, r#"{"begin":{"at_ns":7}}"#);
        let started = FromWorker::Started {
            task: TaskId(1),
            at_ns: 2,
        };
        let text = serde_json::to_string(&started).expect("JSON");
        assert_eq!(
            text,
            r#"{"started":{"task":"00000000000000000000000000000001","at_ns":2}}"#
        );
        assert_eq!(
            serde_json::from_str::<FromWorker>(&text).ok(),
            Some(started)
        );
    }
}
