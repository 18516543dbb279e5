//! Amounts that a path cannot have carried.

use crate::MS_NS;
use crate::protocol::agent;
use crate::protocol::message::{ArmTask, TaskEnd};

/// A rate above nominal by this ratio is an error of the report: clocks and counters are better
/// than that.
const EXCESS_PERCENT: u128 = 120;
const NS_PER_SECOND: u128 = 1_000_000_000;

/// The reported amount fits the time of the task and the nominal rate. Without a
/// nominal rate only the time is checked.
pub fn is_plausible(end: &TaskEnd, spec: &ArmTask, nominal_bps: Option<u64>) -> bool {
    let time_ns = spec
        .time_ms
        .saturating_mul(MS_NS)
        .saturating_add(agent::OVERTIME_NS);
    // Bytes without time would be an infinite rate.
    if end.elapsed_ns > time_ns || end.elapsed_ns == 0 && end.bytes > 0 {
        return false;
    }

    let Some(nominal_bps) = nominal_bps else {
        return true;
    };
    let max_bps = u128::from(nominal_bps) * EXCESS_PERCENT / 100;

    // Products of 64-bit numbers need 128 bits; the multiplied form has no division by a time of 0.
    u128::from(end.bytes) * 8 * NS_PER_SECOND <= max_bps * u128::from(end.elapsed_ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TaskId;
    use crate::protocol::message::Role;

    fn is_plausible_of(bytes: u64, elapsed_ms: u64, nominal_bps: Option<u64>) -> bool {
        let spec = ArmTask {
            task: TaskId(1),
            role: Role::Client,
            peer: "10.0.0.2".parse().expect("an address"),
            port: 5201,
            path: "phys".to_owned(),
            is_reversed: false,
            streams: 1,
            time_ms: 5000,
            omit_ms: 0,
            delay_ms: 0,
            rate_bps: None,
            congestion: None,
        };
        let end = TaskEnd {
            bytes,
            elapsed_ns: elapsed_ms * MS_NS,
            ..TaskEnd::aborted("")
        };
        is_plausible(&end, &spec, nominal_bps)
    }

    #[test]
    fn amounts_above_the_nominal_rate_or_beyond_the_time_are_implausible() {
        let gigabit = Some(1_000_000_000);
        let rows = [
            (true, 0, 0, gigabit),
            (true, 600_000_000, 5_000, gigabit),
            (true, 750_000_000, 5_000, gigabit),
            (false, 750_000_001, 5_000, gigabit),
            (false, 1, 0, None),
            (true, u64::MAX, 5_000, None),
            (false, 600_000_000, 7_001, gigabit),
            (false, u64::MAX, 5_000, Some(u64::MAX / 1_000_000_000)),
        ];
        for (expected, bytes, elapsed_ms, nominal_bps) in rows {
            assert_eq!(
                is_plausible_of(bytes, elapsed_ms, nominal_bps),
                expected,
                "{bytes} bytes in {elapsed_ms} ms at {nominal_bps:?}"
            );
        }
    }
}
