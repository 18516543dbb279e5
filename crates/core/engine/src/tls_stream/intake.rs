//! Bound on the input of one connection: bytes per turn of its event loop, and records over time.

use std::time::{Duration, Instant};

use crate::server::limits::requirements::TURN_BYTES;

/// Bounds of one end on a connection with messages.
#[derive(Clone, Copy)]
pub(crate) struct IntakeLimits {
    /// Ciphertext of one turn, so that the other connections of the event loop have theirs.
    pub turn_bytes: usize,
    /// Units per second on the average. A unit is one TLS record or 1 KiB of records, whichever is
    /// more: a record of one byte costs a decryption as well.
    pub units_per_s: u32,
    /// Units that may arrive at once.
    pub burst_units: u32,
}

/// Limits of a server, per connection: a message of 16 KiB, and eight of them per second. Clients
/// send some ten short messages per phase, and one record per probe.
pub(crate) const OF_CLIENTS: IntakeLimits = IntakeLimits {
    turn_bytes: TURN_BYTES,
    units_per_s: 128,
    burst_units: 256,
};

/// Limits of a client: results of up to 1 MiB.
pub(crate) const OF_SERVER: IntakeLimits = IntakeLimits {
    turn_bytes: 64 << 10,
    units_per_s: 4096,
    burst_units: 8192,
};

/// Token bucket of one connection (GCRA).
pub(crate) struct IntakeRate {
    limits: IntakeLimits,
    /// When the bucket is full again.
    full_at: Option<Instant>,
}

/// Bytes of a unit.
const UNIT_BYTES: u64 = 1024;

impl IntakeRate {
    pub(crate) fn new(limits: IntakeLimits) -> Self {
        Self {
            limits,
            full_at: None,
        }
    }

    /// Charges what has arrived; false when it exceeds the bound of the connection.
    pub(crate) fn charge(&mut self, now: Instant, records: u64, bytes: u64) -> bool {
        let units = records.max(bytes / UNIT_BYTES);
        let spacing = Duration::from_secs(1) / self.limits.units_per_s;
        let cost = spacing.saturating_mul(u32::try_from(units).unwrap_or(u32::MAX));

        let full_at = self.full_at.map_or(now, |at| at.max(now));
        let charged = full_at.checked_add(cost).unwrap_or(full_at);
        self.full_at = Some(charged);

        charged.saturating_duration_since(now) <= spacing.saturating_mul(self.limits.burst_units)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: IntakeLimits = IntakeLimits {
        turn_bytes: 4096,
        units_per_s: 10,
        burst_units: 20,
    };

    #[test]
    fn burst_is_accepted_and_what_exceeds_it_is_not() {
        let now = Instant::now();
        let mut rate = IntakeRate::new(LIMITS);
        assert!(rate.charge(now, 20, 100));
        assert!(!rate.charge(now, 1, 1));
    }

    #[test]
    fn long_records_cost_their_bytes_and_short_ones_their_number() {
        let now = Instant::now();
        assert!(IntakeRate::new(LIMITS).charge(now, 1, 20 * 1024));
        assert!(!IntakeRate::new(LIMITS).charge(now, 1, 21 * 1024));
        assert!(!IntakeRate::new(LIMITS).charge(now, 21, 21));
    }

    #[test]
    fn average_rate_is_accepted_without_end() {
        let now = Instant::now();
        let mut rate = IntakeRate::new(LIMITS);

        for tenth in 0..1000 {
            assert!(
                rate.charge(now + Duration::from_millis(100) * tenth, 1, 500),
                "{tenth}"
            );
        }
    }
}
