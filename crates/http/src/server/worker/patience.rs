//! Who is closed because nothing happens. Connections have no timers: all are looked through from time to time.

use std::time::Duration;

use super::clock::NS_PER_TICK;
use super::table::{Connection, Table, Ticks, Token};

/// How long connections may be idle.
#[derive(Debug)]
pub(super) struct Patience {
    idle: Ticks,
    /// For the head of a request: a client that sends it byte by byte keeps more than an idle one.
    head: Ticks,
    period_ns: u64,
    next_look_ns: u64,
}

impl Patience {
    pub(super) fn new(idle_timeout: Duration) -> Self {
        let period = (idle_timeout / LOOKS_PER_TIMEOUT).clamp(PERIOD_MIN, PERIOD_MAX);
        Self {
            idle: ticks(idle_timeout),
            head: ticks(idle_timeout.min(HEAD_TIMEOUT)),
            period_ns: u64::try_from(period.as_nanos()).unwrap_or(u64::MAX),
            next_look_ns: 0,
        }
    }

    pub(super) fn next_look_ns(&self) -> u64 {
        self.next_look_ns
    }

    /// Whether it is time; if so, the next look is a period away.
    pub(super) fn is_time_to_look(&mut self, now_ns: u64) -> bool {
        let is_time = now_ns >= self.next_look_ns;
        if is_time {
            self.next_look_ns = now_ns.saturating_add(self.period_ns);
        }
        is_time
    }

    /// Connections that made no progress for too long.
    pub(super) fn exhausted(&self, table: &Table, now: Ticks) -> Vec<Token> {
        let is_late = |connection: &Connection| {
            self.limit(connection)
                .is_some_and(|limit| now.saturating_sub(connection.since) > limit)
        };
        let late = table.iter().filter(|(_, connection)| is_late(connection));
        late.map(|(token, _)| token).collect()
    }

    /// `None` for one that lingers: it has a deadline of its own.
    fn limit(&self, connection: &Connection) -> Option<Ticks> {
        let Some(spill) = &connection.spill else {
            return Some(self.idle);
        };
        if spill.lingers {
            return None;
        }
        let is_in_head = spill.output.is_empty() && !spill.conversation.is_arriving();
        Some(if is_in_head { self.head } else { self.idle })
    }
}

fn ticks(duration: Duration) -> Ticks {
    let ns = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    Ticks::try_from(ns / NS_PER_TICK).unwrap_or(Ticks::MAX)
}

const LOOKS_PER_TIMEOUT: u32 = 10;
const PERIOD_MIN: Duration = Duration::from_millis(100);
/// Looking through ten thousand connections takes some ten microseconds.
const PERIOD_MAX: Duration = Duration::from_secs(5);
const HEAD_TIMEOUT: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::super::table::{Spill, WaitsFor};
    use super::*;

    fn connection(since: Ticks, spill: Option<Box<Spill>>) -> Connection {
        Connection {
            fd: std::fs::File::open("/dev/null").expect("always there").into(),
            since,
            waits_for: WaitsFor::Input,
            is_guest: true,
            is_paced: false,
            spill,
        }
    }

    #[test]
    fn the_idle_are_found_and_half_a_head_has_less_time() {
        let patience = Patience::new(Duration::from_secs(600));
        let mut table = Table::default();
        let idle = table.insert(connection(0, None)).expect("room");
        let busy = table.insert(connection(6000, None)).expect("room");
        let slow = Box::new(Spill {
            input: b"GET ".to_vec(),
            ..Spill::default()
        });
        let slow = table.insert(connection(0, Some(slow))).expect("room");
        let lingering = Box::new(Spill {
            lingers: true,
            ..Spill::default()
        });
        table.insert(connection(0, Some(lingering))).expect("room");
        assert_eq!(patience.exhausted(&table, 600), []);
        assert_eq!(patience.exhausted(&table, 601), [slow]);
        assert_eq!(patience.exhausted(&table, 6001), [idle, slow]);
        assert_eq!(patience.exhausted(&table, 12_001), [idle, busy, slow]);
    }

    #[test]
    fn looks_are_a_period_apart() {
        let mut patience = Patience::new(Duration::from_secs(1));
        assert!(patience.is_time_to_look(5));
        assert!(!patience.is_time_to_look(6));
        assert_eq!(patience.next_look_ns(), 100_000_005);
        assert!(patience.is_time_to_look(100_000_005));
    }
}
