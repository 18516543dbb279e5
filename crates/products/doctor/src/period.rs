//! Counters over a period: differences of snapshots of one host, interval by interval.

use std::collections::BTreeMap;

use linerate_model::snapshot::{Counter, Snapshot};
use serde::{Deserialize, Serialize};

/// Counters of one host over a period.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Period {
    /// Length of the period.
    pub seconds: f64,
    /// Intervals the period consists of. One interval has no spread, so no verdict rests on it.
    pub intervals: usize,
    deltas: BTreeMap<String, Delta>,
    /// Lengths of queues, which rise and fall: sums over the readings.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    levels: BTreeMap<String, Level>,
    /// It begins before a test and ends behind it. Its length is that of the test.
    #[serde(skip)]
    pub(crate) is_around_test: bool,
    /// The period interval by interval. Not serialised: a peer receives the sums alone.
    #[serde(skip)]
    steps: Vec<Self>,
}

/// Ticks of CPU time per second, the same for every Linux (`times(2)`).
pub(crate) const TICKS_PER_SECOND: f64 = 100.0;

/// Intervals that are stored separately. A test of more than ten minutes is judged by its
/// beginning.
pub(crate) const STEPS_MAX: usize = 600;

/// End of the keys of facts that are lengths of queues.
const LEVEL: &str = ".backlog";

/// Readings of a value that rises and falls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Level {
    sum: u64,
    readings: u64,
}

/// Growth of one counter.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delta {
    /// Growth over the whole period.
    #[serde(rename = "v")]
    pub value: u64,
    /// The counter may have wrapped meanwhile, so it grew by at least this much.
    #[serde(default, skip_serializing_if = "is_off")]
    pub at_least: bool,
    /// It went backwards: it was reset, and the growth is unknown.
    #[serde(default, skip_serializing_if = "is_off")]
    pub reset: bool,
}

/// Most counters of a healthy host did not grow, and a host has hundreds.
#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature serde asks for"
)]
const fn is_off(flag: &bool) -> bool {
    !*flag
}

impl Period {
    /// The period between the first and the last of several snapshots of one host, in the order
    /// they were taken; `None` when there are fewer than two or they cannot be subtracted.
    pub fn over(snapshots: &[Snapshot]) -> Option<Self> {
        let mut period = Self::default();
        for pair in snapshots.windows(2) {
            if let [before, after] = pair {
                period.extend(before, after)?;
            }
        }
        (period.intervals > 0).then_some(period)
    }

    /// Growth between a moment before a test of `seconds` and one behind it, which are not known;
    /// `None` without a counter of both.
    pub(crate) fn around_test(before: &Snapshot, after: &Snapshot, seconds: f64) -> Option<Self> {
        let mut period = Self {
            seconds,
            intervals: 1,
            is_around_test: true,
            ..Self::default()
        };
        for (key, to) in &after.counters {
            if let Some(from) = before.counters.get(key) {
                period
                    .deltas
                    .entry(key.clone())
                    .or_default()
                    .add(*from, *to);
            }
        }

        (seconds > 0.0 && !period.deltas.is_empty()).then_some(period)
    }

    /// Adds the time between two snapshots; the first is the second of the time before, if there
    /// was any. `None` when they cannot be subtracted: of different hosts or boots, without a time,
    /// or not one after the other.
    pub fn extend(&mut self, before: &Snapshot, after: &Snapshot) -> Option<()> {
        let (from, to) = before.monotonic_ns.zip(after.monotonic_ns)?;
        // Counters begin at 0 with each boot.
        if before.boot_id != after.boot_id || before.host != after.host || to <= from {
            return None;
        }

        #[expect(clippy::cast_precision_loss, reason = "a window lasts seconds")]
        let seconds = (to - from) as f64 / 1e9;
        let mut step = Self {
            seconds,
            intervals: 1,
            ..Self::default()
        };

        self.seconds += seconds;
        self.intervals += 1;

        for (key, to) in &after.counters {
            if let Some(from) = before.counters.get(key) {
                self.deltas.entry(key.clone()).or_default().add(*from, *to);
                // The load of a CPU needs all of its states, also those that did not grow.
                if *from != *to || key.starts_with("cpu.") {
                    step.deltas.entry(key.clone()).or_default().add(*from, *to);
                }
            }
        }

        // The end of each interval counts: neighbours share a snapshot, which would count twice.
        for key in after.facts.keys().filter(|key| key.ends_with(LEVEL)) {
            if let Some(value) = after.whole(key) {
                let level = Level {
                    sum: value,
                    readings: 1,
                };
                step.levels.insert(key.clone(), level);
                self.levels.entry(key.clone()).or_default().add(level);
            }
        }

        if self.steps.len() < STEPS_MAX {
            self.steps.push(step);
        }

        Some(())
    }

    /// The intervals, each a period of its own with the counters that grew and those of the CPUs.
    pub(crate) fn steps(&self) -> &[Self] {
        &self.steps
    }

    /// Growth of one counter; `None` when it was not read at both ends.
    pub fn delta(&self, key: &str) -> Option<&Delta> {
        self.deltas.get(key)
    }

    /// Mean length of a queue over the readings; `None` where it was not read.
    pub(crate) fn level(&self, key: &str) -> Option<f64> {
        let level = self.levels.get(key).filter(|level| level.readings > 0)?;
        Some(crate::arithmetic::to_f64(level.sum) / crate::arithmetic::to_f64(level.readings))
    }

    /// All counters that were read, in the order of their keys.
    pub fn deltas(&self) -> impl Iterator<Item = (&str, &Delta)> {
        self.deltas.iter().map(|(key, delta)| (key.as_str(), delta))
    }

    /// Sets a growth that was measured elsewhere, for example by the other end.
    pub fn set(&mut self, key: impl Into<String>, delta: Delta) {
        self.deltas.insert(key.into(), delta);
    }
}

impl Level {
    fn add(&mut self, other: Self) {
        self.sum = self.sum.saturating_add(other.sum);
        self.readings = self.readings.saturating_add(other.readings);
    }
}

impl Delta {
    fn add(&mut self, from: Counter, to: Counter) {
        let grown = match to.v.checked_sub(from.v) {
            Some(grown) => grown,
            // A narrow tally that went backwards has wrapped; more often than once cannot be
            // excluded.
            None => match to.width {
                Some(width @ 1..=32) => {
                    self.at_least = true;
                    (1_u64 << width).saturating_add(to.v).saturating_sub(from.v)
                }
                // A wider counter does not wrap during a test: it was reset.
                _ => {
                    self.reset = true;
                    0
                }
            },
        };
        self.value = self.value.saturating_add(grown);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::snapshot::Source;

    fn at(seconds: u64, value: u64, width: Option<u8>) -> Snapshot {
        let mut snapshot = Snapshot::new("a", Source::Live);
        snapshot.monotonic_ns = Some(seconds * 1_000_000_000);
        let counter = Counter { v: value, width };
        snapshot.counters.insert("x".to_owned(), counter);
        snapshot
    }

    #[test]
    fn growth_adds_up_over_the_intervals() {
        let period = Period::over(&[at(0, 5, None), at(1, 9, None), at(3, 9, None)])
            .expect("three readings");
        assert_eq!((period.seconds, period.intervals), (3.0, 2));
        let delta = period.delta("x").expect("read at both ends");
        assert_eq!((delta.value, delta.at_least), (4, false));
    }

    #[test]
    fn every_interval_is_a_period_of_its_own() {
        let period = Period::over(&[at(0, 5, None), at(1, 9, None), at(3, 9, None)])
            .expect("three readings");
        let grown: Vec<_> = period
            .steps()
            .iter()
            .map(|step| (step.seconds, step.delta("x").map(|d| d.value)))
            .collect();
        assert_eq!(
            grown,
            [(1.0, Some(4)), (2.0, None)],
            "what did not grow is left out"
        );

        let travelled = serde_json::to_string(&period).expect("plain data");
        assert!(!travelled.contains("steps"), "{travelled}");
    }

    #[test]
    fn length_of_a_queue_is_the_mean_of_its_readings() {
        let with = |seconds, backlog: i64| {
            let mut snapshot = at(seconds, 0, None);
            snapshot.set("nic.e.qdisc.root.backlog", backlog, "test");
            snapshot
        };
        let period =
            Period::over(&[with(0, 9_000), with(1, 100), with(2, 300)]).expect("three readings");
        assert_eq!(
            period.level("nic.e.qdisc.root.backlog"),
            Some(200.0),
            "the first reading is before the period"
        );
        assert_eq!(period.level("x"), None);

        let steps: Vec<_> = period
            .steps()
            .iter()
            .map(|step| step.level("nic.e.qdisc.root.backlog"))
            .collect();
        assert_eq!(steps, [Some(100.0), Some(300.0)]);
        let text = serde_json::to_string(&period).expect("plain data");
        let sent: Period = serde_json::from_str(&text).expect("our own");
        assert_eq!(sent.level("nic.e.qdisc.root.backlog"), Some(200.0));
    }

    #[test]
    fn narrow_counter_wraps_and_wide_one_was_reset() {
        let narrow =
            Period::over(&[at(0, 65_530, Some(16)), at(1, 4, Some(16))]).expect("two readings");
        let delta = narrow.delta("x").expect("read");
        assert_eq!(
            (delta.value, delta.at_least, delta.reset),
            (10, true, false)
        );

        let wide = Period::over(&[at(0, 65_530, None), at(1, 4, None)]).expect("two readings");
        assert!(wide.delta("x").expect("read").reset);
    }

    #[test]
    fn different_boots_and_missing_clocks_have_no_period() {
        let mut other = at(1, 9, None);
        other.boot_id = Some("other".into());
        let mut timeless = at(1, 9, None);
        timeless.monotonic_ns = None;

        for second in [
            vec![other],
            vec![timeless],
            vec![at(0, 9, None)],
            Vec::new(),
        ] {
            let snapshots = [vec![at(0, 5, None)], second].concat();
            assert_eq!(Period::over(&snapshots), None, "{snapshots:?}");
        }
    }
}
