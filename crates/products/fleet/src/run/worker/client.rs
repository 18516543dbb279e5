//! A test as client, from the task to the result.

use std::time::Duration;

use linerate_model::record::RunId;
use linerate_model::spec::{ClientSpec, LocalOptions};
use linerate_model::workload::Start;
use linerate_model::{EndCondition, TestSpec};

use super::lines::{ClientTask, FromWorker, ToWorker, WorkerInput, emit};
use super::task_events::TaskEvents;
use linerate_engine::dialect::iperf3::client;

/// Time before the start at which the client connects: less than the engine holds an open test at
/// most.
const CONNECT_AHEAD_NS: u64 = 1_200_000_000;
/// Longest time to set up the control connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// Shortest time between two intervals of the record.
pub(super) const INTERVAL_MIN: Duration = Duration::from_millis(100);
/// Intervals of a test, unless they would be shorter than that.
const INTERVALS: u32 = 40;

/// Awaits the start, runs the test and reports it. Returns at the end of the input as well.
pub(super) fn run(run: RunId, task: &ClientTask, input: &WorkerInput) {
    let mut spec = client_spec(task);
    let id = task.task.task;
    emit(&FromWorker::Ready { task: id });
    let at_ns = loop {
        match input.next_until(None) {
            Some(ToWorker::Begin { at_ns }) => break at_ns,
            Some(_) => {}
            None => return,
        }
    };

    // The wait ends early at the end of the input, which the test notices as well.
    let _ = input.next_until(Some(at_ns.saturating_sub(CONNECT_AHEAD_NS)));
    spec.test.workload.start = Start::AtMonotonic(Duration::from_nanos(at_ns));
    let mut events = TaskEvents::new(run, &task.task);
    let result = client::run(&spec, &mut events, input);
    events.finish(result.outcome);
}

/// The test of a task.
fn client_spec(task: &ClientTask) -> ClientSpec {
    let ClientTask { task, local } = task;
    let time = Duration::from_millis(task.time_ms);
    let mut options = LocalOptions {
        port: task.port,
        interval: Some((time / INTERVALS).max(INTERVAL_MIN)),
        ..LocalOptions::default()
    };
    // The server admits the partners of a round by address.
    options.bind.host = Some(local.to_string());

    let mut test = TestSpec {
        direction: task.direction(),
        streams: task.streams,
        end: EndCondition::Duration(time),
        omit: Duration::from_millis(task.omit_ms),
        ..TestSpec::default()
    };
    // The rate of a task is that of all streams, the rate of a test that of one.
    let streams = u64::from(task.streams.max(1));
    test.pacing.rate_bps = task.rate_bps.map(|bps| (bps / streams).max(1));
    test.socket.congestion = task.congestion.clone();

    ClientSpec {
        connect_timeout: Some(CONNECT_TIMEOUT),
        ..ClientSpec::new(task.peer.to_string(), options, test)
    }
}

#[cfg(test)]
mod tests {
    use crate::TaskId;
    use crate::protocol::message::{ArmTask, Role};
    use linerate_model::Direction;

    use super::*;

    #[test]
    fn rate_is_shared_by_the_streams_and_intervals_have_a_bound() {
        let task = ArmTask {
            task: TaskId(1),
            role: Role::Client,
            peer: [192, 0, 2, 1].into(),
            port: 5201,
            path: "phys".to_owned(),
            is_reversed: true,
            streams: 4,
            time_ms: 2_000,
            omit_ms: 500,
            delay_ms: 0,
            rate_bps: Some(1_000_000_000),
            congestion: None,
        };
        let spec = client_spec(&ClientTask {
            task,
            local: [192, 0, 2, 2].into(),
        });
        assert_eq!(spec.test.pacing.rate_bps, Some(250_000_000));
        assert_eq!(spec.test.direction, Direction::Reverse);
        assert_eq!(spec.local.interval, Some(Duration::from_millis(100)));
        assert_eq!(
            (spec.host.as_str(), spec.local.bind.host.as_deref()),
            ("192.0.2.1", Some("192.0.2.2"))
        );
    }
}
