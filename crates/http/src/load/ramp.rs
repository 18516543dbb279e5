//! How fast connections are opened.

use std::collections::VecDeque;

/// Connections that wait to be opened, at a rate and with a limit of how many are on their way.
#[derive(Debug)]
pub(crate) struct Ramp {
    waiting: VecDeque<u32>,
    gap_ns: u64,
    next_ns: u64,
    in_flight: u32,
    in_flight_max: u32,
}

impl Ramp {
    /// For one of `lanes` that share a rate and a limit; connections `0..connections` wait.
    pub(crate) fn new(
        connections: u32,
        rate_per_s: Option<u32>,
        in_flight_max: u32,
        (index, lanes): (u32, u32),
        now_ns: u64,
    ) -> Self {
        let lanes = lanes.max(1);
        let gap_ns = rate_per_s.map_or(0, |rate| 1_000_000_000 * u64::from(lanes) / u64::from(rate.max(1)));
        Self {
            waiting: (0..connections).collect(),
            gap_ns,
            // Lanes take turns instead of opening together.
            next_ns: now_ns + gap_ns / u64::from(lanes) * u64::from(index),
            in_flight: 0,
            in_flight_max: (in_flight_max / lanes).max(1),
        }
    }

    /// A connection that may be opened now.
    pub(crate) fn take(&mut self, now_ns: u64) -> Option<u32> {
        if now_ns < self.next_ns || self.in_flight >= self.in_flight_max {
            return None;
        }
        let number = self.waiting.pop_front()?;
        // What a busy moment held up is made up for, but not all at once after a long one.
        self.next_ns = (self.next_ns + self.gap_ns).max(now_ns.saturating_sub(CATCH_UP_NS));
        self.in_flight += 1;
        Some(number)
    }

    /// When [`Self::take`] will give one, unless the limit of those on their way is in force.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        (!self.waiting.is_empty() && self.in_flight < self.in_flight_max).then_some(self.next_ns)
    }

    /// One of those on their way arrived or failed.
    pub(crate) fn landed(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    /// One is to be opened again.
    pub(crate) fn again(&mut self, number: u32) {
        self.waiting.push_back(number);
    }

    /// One is to be opened again before all others and without regard to the rate.
    pub(crate) fn at_once(&mut self, number: u32) {
        self.waiting.push_front(number);
        self.next_ns = 0;
    }

    /// None of those that wait will be opened: it would fail for the same reason. Returns how many these are.
    pub(crate) fn give_up(&mut self) -> usize {
        self.waiting.drain(..).count()
    }

    /// Nothing waits and nothing is on its way.
    pub(crate) fn is_through(&self) -> bool {
        self.waiting.is_empty() && self.in_flight == 0
    }
}

const CATCH_UP_NS: u64 = 100_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_kept_and_what_was_late_is_made_up_for() {
        let mut ramp = Ramp::new(1_000, Some(1_000), 10_000, (0, 1), 0);
        let mut opened = 0;
        for now_ms in (0..=500).step_by(10) {
            while ramp.take(now_ms * 1_000_000).is_some() {
                opened += 1;
            }
        }
        assert_eq!(opened, 501);
    }

    #[test]
    fn only_so_many_are_on_their_way() {
        let mut ramp = Ramp::new(100, None, 8, (0, 2), 0);
        assert_eq!((0..100).filter_map(|_| ramp.take(1)).count(), 4);
        assert_eq!(ramp.next_ns(), None);
        ramp.landed();
        assert_eq!(ramp.take(1), Some(4));
    }

    #[test]
    fn it_is_through_when_the_last_one_landed() {
        let mut ramp = Ramp::new(1, None, 8, (0, 1), 0);
        assert_eq!(ramp.take(0), Some(0));
        assert!(!ramp.is_through());
        ramp.landed();
        assert!(ramp.is_through());
        ramp.at_once(0);
        assert_eq!(ramp.take(0), Some(0));
    }
}
