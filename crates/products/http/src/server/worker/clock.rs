//! Time of the current iteration of the event loop, and the timeouts of connections.

use std::time::Duration;

use linerate_sys::clock::{monotonic_ns, unix_ns};

use super::connection_table::{Connection, ConnectionTable, Ticks};

/// Read once per iteration.
#[derive(Debug)]
pub(super) struct Clock {
    started_ns: u64,
    pub now_ns: u64,
    next_second_ns: u64,
}

impl Clock {
    pub(super) fn new() -> Self {
        let now_ns = monotonic_ns();
        Self {
            started_ns: now_ns,
            now_ns,
            next_second_ns: now_ns,
        }
    }

    /// Reads the clock; the UNIX time in seconds when it has changed.
    pub(super) fn advance(&mut self) -> Option<u64> {
        self.now_ns = monotonic_ns();
        if self.now_ns < self.next_second_ns {
            return None;
        }

        // The `Date` field has a resolution of one second, so it is formatted once in each.
        let unix_ns = unix_ns();
        // Seconds of the wall clock do not begin with those of the monotonic clock.
        self.next_second_ns = self.now_ns + NS_PER_S - unix_ns % NS_PER_S;
        Some(unix_ns / NS_PER_S)
    }

    pub(super) fn ticks(&self) -> Ticks {
        // Saturates after 13 years.
        Ticks::try_from((self.now_ns - self.started_ns) / NS_PER_TICK).unwrap_or(Ticks::MAX)
    }
}

const NS_PER_S: u64 = 1_000_000_000;
/// A tenth of a second.
const NS_PER_TICK: u64 = NS_PER_S / 10;

/// Timeouts of connections. They have no timers; a periodic scan finds those that expired.
#[derive(Debug)]
pub(super) struct IdleTimeouts {
    idle: Ticks,
    /// Until a request header is complete: a partial one holds more memory than an idle connection.
    header: Ticks,
    scan_period_ns: u64,
    pub next_scan_ns: u64,
}

impl IdleTimeouts {
    pub(super) fn new(idle_timeout: Duration) -> Self {
        // A connection expires up to one period late: a tenth of the timeout, in 100 ms to 1 s.
        let period = (idle_timeout / SCANS_PER_TIMEOUT).clamp(SCAN_PERIOD_MIN, SCAN_PERIOD_MAX);
        Self {
            idle: ticks(idle_timeout),
            header: ticks(idle_timeout.min(HEADER_TIMEOUT)),
            scan_period_ns: u64::try_from(period.as_nanos()).unwrap_or(u64::MAX),
            next_scan_ns: 0,
        }
    }

    /// True if a scan is due; schedules the next one.
    pub(super) fn is_scan_due(&mut self, now_ns: u64) -> bool {
        let is_time = now_ns >= self.next_scan_ns;
        if is_time {
            self.next_scan_ns = now_ns.saturating_add(self.scan_period_ns);
        }
        is_time
    }

    /// Indices of connections whose timeout has expired.
    pub(super) fn expired(&self, table: &ConnectionTable, now: Ticks) -> Vec<u32> {
        let is_late =
            |connection: &Connection| now.saturating_sub(connection.since) > self.limit(connection);
        let late = table.iter().filter(|(_, connection)| is_late(connection));
        late.map(|(index, _)| index).collect()
    }

    fn limit(&self, connection: &Connection) -> Ticks {
        match &connection.partial {
            Some(partial) if partial.is_closing => ticks(LINGER_TIMEOUT),
            // With no response and no body in progress, the rest of a header is awaited.
            Some(partial) if partial.output.is_empty() && partial.machine.pending.is_none() => {
                self.header
            }
            Some(_) | None => self.idle,
        }
    }
}

fn ticks(duration: Duration) -> Ticks {
    let ns = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    Ticks::try_from(ns / NS_PER_TICK).unwrap_or(Ticks::MAX)
}

const SCANS_PER_TIMEOUT: u32 = 10;
const SCAN_PERIOD_MIN: Duration = Duration::from_millis(100);
/// A scan of ten thousand connections takes some ten microseconds.
const SCAN_PERIOD_MAX: Duration = Duration::from_secs(1);
const HEADER_TIMEOUT: Duration = Duration::from_secs(60);
/// For what the client still sends after its last response.
const LINGER_TIMEOUT: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::super::connection_table::PartialIo;
    use super::*;

    #[test]
    fn idle_connections_expire_and_unfinished_ones_earlier() {
        let idle_timeouts = IdleTimeouts::new(Duration::from_secs(600));
        let mut table = ConnectionTable::default();
        let slow = Box::new(PartialIo {
            input: b"GET ".to_vec(),
            ..PartialIo::default()
        });
        let lingering = Box::new(PartialIo {
            is_closing: true,
            ..PartialIo::default()
        });
        let [idle, busy, slow, lingering] = [
            (0, None),
            (6000, None),
            (0, Some(slow)),
            (0, Some(lingering)),
        ]
        .map(|(since, partial)| {
            let inserted = table.insert(Connection::of_test(since, partial));
            inserted.map(|(index, _)| index).expect("room")
        });

        assert!(idle_timeouts.expired(&table, 20).is_empty());
        assert_eq!(idle_timeouts.expired(&table, 21), [lingering]);
        table.remove(lingering);
        assert!(idle_timeouts.expired(&table, 600).is_empty());
        assert_eq!(idle_timeouts.expired(&table, 601), [slow]);
        assert_eq!(idle_timeouts.expired(&table, 6001), [idle, slow]);
        assert_eq!(idle_timeouts.expired(&table, 12_001), [idle, busy, slow]);
    }

    #[test]
    fn scans_are_a_period_apart() {
        let mut idle_timeouts = IdleTimeouts::new(Duration::from_secs(1));
        assert!(idle_timeouts.is_scan_due(5));
        assert!(!idle_timeouts.is_scan_due(6));
        assert_eq!(idle_timeouts.next_scan_ns, 100_000_005);
        assert!(idle_timeouts.is_scan_due(100_000_005));
    }
}
