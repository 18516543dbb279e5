//! Rows of the report, one for each burst or frame that has arrived.

use linerate_model::{Event, StreamInterval};

use super::connection::Connection;
use super::received_bursts::{BurstQueue, ReceivedBurst};
use crate::data::run::TestRun;
use crate::reporter::Reporter;

/// Reports the bursts of these connections that have arrived since the last call.
pub(super) fn report(connections: &[Connection], run: &TestRun, reporter: &mut Reporter<'_>) {
    let Some(start_ns) = run.start_ns() else {
        return;
    };
    let mut rows: Vec<StreamInterval> = connections
        .iter()
        .flat_map(|connection| rows_of(connection, start_ns))
        .collect();
    if rows.is_empty() {
        return;
    }

    rows.sort_by_key(|row| row.end_ns);
    reporter.emit(&Event::Bursts(rows));
}

/// Reports how many bursts have no row.
pub(super) fn report_left_out(connections: &[Connection], reporter: &mut Reporter<'_>) {
    for connection in connections {
        let left_out = connection.bursts().map_or(0, BurstQueue::left_out);
        if left_out > 0 {
            reporter.emit(&Event::Warning(format!(
                "[{:3}] WARNING: {left_out} bursts are not reported one by one.",
                connection.number
            )));
        }
    }
}

fn rows_of(connection: &Connection, start_ns: u64) -> Vec<StreamInterval> {
    let (Some(direction), Some(queue)) = (&connection.receiver, connection.bursts()) else {
        return Vec::new();
    };
    let row = |burst: &ReceivedBurst| {
        // A sender may write its first burst before the clock runs here.
        let began_ns = burst.began_ns.saturating_sub(start_ns);
        let ended_ns = began_ns.saturating_add(burst.ended_ns.saturating_sub(burst.began_ns));
        let mut interval = StreamInterval::new(&direction.stream, began_ns, ended_ns, burst.bytes);
        interval.udp = burst.frame.map(|frame| frame.datagrams);
        interval.metrics = Some(Box::new(burst.measured()));
        interval
    };
    queue.take().iter().map(row).collect()
}
