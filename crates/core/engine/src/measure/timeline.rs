//! The clock of one test: warm-up, reporting grid, end.

use std::time::Duration;

use linerate_model::TestSpec;
use linerate_sys::clock::as_ns;

/// Absolute deadlines of one test, monotonic ns. A deadline that was missed is not repeated, so the
/// grid never drifts.
pub(crate) struct Timeline {
    /// Start of the part that is running: the warm-up, then the measured part.
    part_start_ns: u64,
    /// End of the warm-up while it lasts.
    omit_end_ns: Option<u64>,
    /// Length of the measured part, when time ends it.
    duration: Option<Duration>,
    interval: Option<Duration>,
    next_tick_ns: Option<u64>,
    /// This end decides when the time is up.
    decides_end: bool,
    /// Every point of the grid is reported, however near the end.
    keeps_grid: bool,
}

/// Event that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Due {
    /// An interval of the reporting grid ended.
    Tick,
    /// The warm-up ended.
    OmitEnd,
    /// The time of the test is up.
    End,
}

/// The end that does not decide leaves its last interval open for this part of an interval, so that
/// the last row covers the true end instead of leaving a sliver behind it.
const LAST_TICK_GRACE: u32 = 2;
/// A tick this close to the end would leave a sliver for the last interval.
const TICK_BEFORE_END_NS: u64 = 1_000_000;

impl Timeline {
    pub(crate) fn new(
        spec: &TestSpec,
        interval: Option<Duration>,
        decides_end: bool,
        now_ns: u64,
    ) -> Self {
        let omit_end_ns = (!spec.omit.is_zero()).then(|| now_ns.saturating_add(as_ns(spec.omit)));
        let mut timeline = Self {
            part_start_ns: now_ns,
            omit_end_ns,
            duration: spec.end.duration(),
            interval: interval.filter(|i| !i.is_zero()),
            next_tick_ns: None,
            decides_end,
            keeps_grid: false,
        };
        timeline.next_tick_ns = timeline.tick_after(now_ns);

        timeline
    }

    /// Reports every point of the grid, however near the end.
    pub(crate) fn on_grid(mut self) -> Self {
        self.keeps_grid = true;
        self.next_tick_ns = self.tick_after(self.part_start_ns);
        self
    }

    /// No interval ends by time from now on.
    pub(crate) fn stop_ticks(&mut self) {
        self.next_tick_ns = None;
    }

    /// The warm-up is running.
    pub(crate) fn omitting(&self) -> bool {
        self.omit_end_ns.is_some()
    }

    /// The earliest deadline.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        [
            self.next_tick_ns,
            self.omit_end_ns,
            self.end_ns().filter(|_| self.decides_end),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// One deadline that has passed, the most important first; call again until there is none.
    pub(crate) fn take_due(&mut self, now_ns: u64) -> Option<Due> {
        if self.omit_end_ns.is_some_and(|t| t <= now_ns) {
            // Counting begins when it is noticed, not when it was planned: bytes and time must
            // match.
            self.part_start_ns = now_ns;
            self.omit_end_ns = None;
            self.next_tick_ns = self.tick_after(now_ns);
            return Some(Due::OmitEnd);
        }

        let has_tick_before =
            |end_ns| self.keeps_grid && self.next_tick_ns.is_some_and(|tick_ns| tick_ns <= end_ns);
        if self.decides_end
            && self
                .end_ns()
                .is_some_and(|t| t <= now_ns && !has_tick_before(t))
        {
            self.next_tick_ns = None;
            self.duration = None;
            return Some(Due::End);
        }

        if self.next_tick_ns.is_some_and(|t| t <= now_ns) {
            self.next_tick_ns = self.tick_after(now_ns);
            return Some(Due::Tick);
        }

        None
    }

    /// When time will end the test, monotonic ns, also while the omitted part lasts; `None` for an
    /// end by amount.
    pub(crate) fn planned_end_ns(&self) -> Option<u64> {
        let measured_from_ns = self.omit_end_ns.unwrap_or(self.part_start_ns);
        Some(measured_from_ns.saturating_add(as_ns(self.duration?)))
    }

    fn end_ns(&self) -> Option<u64> {
        self.planned_end_ns().filter(|_| self.omit_end_ns.is_none())
    }

    /// The first point of the grid after `now_ns` that is worth a report of its own.
    fn tick_after(&self, now_ns: u64) -> Option<u64> {
        let step = as_ns(self.interval?);
        let index = now_ns.saturating_sub(self.part_start_ns) / step + 1;
        let tick = self
            .part_start_ns
            .saturating_add(index.saturating_mul(step));
        let part_end = self.omit_end_ns.or(self.end_ns());
        let near_end = part_end.is_some_and(|end| tick.saturating_add(TICK_BEFORE_END_NS) > end);
        if !near_end || self.keeps_grid {
            return Some(tick);
        }

        let waits_for_peer = self.omit_end_ns.is_none() && !self.decides_end;
        waits_for_peer.then(|| tick.saturating_add(step / u64::from(LAST_TICK_GRACE)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::EndCondition;

    const S: u64 = 1_000_000_000;

    fn spec(omit_s: u64, end: EndCondition) -> TestSpec {
        TestSpec {
            omit: Duration::from_secs(omit_s),
            end,
            ..TestSpec::default()
        }
    }

    fn seconds(s: u64) -> EndCondition {
        EndCondition::Duration(Duration::from_secs(s))
    }

    #[test]
    fn the_last_interval_ends_with_the_test_not_with_the_grid() {
        let mut t = Timeline::new(&spec(0, seconds(2)), Some(Duration::from_secs(1)), true, 0);
        assert_eq!(t.next_ns(), Some(S));
        assert_eq!(t.take_due(S), Some(Due::Tick));
        assert_eq!(t.next_ns(), Some(2 * S));
        assert_eq!(t.take_due(2 * S + 7), Some(Due::End));
        assert_eq!((t.take_due(3 * S), t.next_ns()), (None, None));
    }

    #[test]
    fn a_missed_tick_is_skipped_and_the_grid_stays() {
        let mut t = Timeline::new(
            &spec(0, EndCondition::Unlimited),
            Some(Duration::from_secs(1)),
            true,
            0,
        );
        assert_eq!(t.take_due(3 * S + S / 2), Some(Due::Tick));
        assert_eq!(t.next_ns(), Some(4 * S));
    }

    #[test]
    fn the_warm_up_has_its_own_grid_and_the_measured_part_starts_at_zero() {
        let mut t = Timeline::new(
            &spec(1, seconds(1)),
            Some(Duration::from_millis(500)),
            true,
            0,
        );
        assert_eq!(t.take_due(S / 2), Some(Due::Tick));
        assert!(t.omitting());
        assert_eq!(t.next_ns(), Some(S), "no sliver before the warm-up ends");
        assert_eq!(t.take_due(S + 10), Some(Due::OmitEnd));
        assert!(!t.omitting());
        assert_eq!(t.next_ns(), Some(S + 10 + S / 2));
        assert_eq!(t.take_due(S + 10 + S / 2), Some(Due::Tick));
        assert_eq!(t.take_due(2 * S + 10), Some(Due::End));
    }

    #[test]
    fn a_grid_that_is_kept_has_its_points_up_to_the_end_and_none_behind_it() {
        let second = Duration::from_secs(1);
        let mut t = Timeline::new(&spec(0, seconds(2)), Some(second), true, 0).on_grid();
        assert_eq!(t.take_due(S), Some(Due::Tick));
        assert_eq!(t.take_due(2 * S), Some(Due::Tick));
        assert_eq!(t.take_due(2 * S), Some(Due::End));
        assert_eq!((t.take_due(9 * S), t.next_ns()), (None, None));

        let mut t = Timeline::new(&spec(0, seconds(2)), Some(second), false, 0).on_grid();
        assert_eq!(
            [S, 2 * S, 3 * S].map(|now_ns| t.take_due(now_ns)),
            [Some(Due::Tick); 3]
        );
    }

    #[test]
    fn the_other_end_waits_a_little_for_the_true_end() {
        let mut t = Timeline::new(&spec(0, seconds(2)), Some(Duration::from_secs(1)), false, 0);
        assert_eq!(t.take_due(S), Some(Due::Tick));
        assert_eq!(t.next_ns(), Some(2 * S + S / 2));
        assert_eq!(t.take_due(2 * S + S / 2), Some(Due::Tick));
        assert_eq!(
            t.next_ns(),
            Some(3 * S + S / 2),
            "a peer that continues is still reported"
        );
    }
}
