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
    /// Connections that failed since the last one that arrived.
    refused_in_a_row: u32,
    refused_in_a_row_max: u32,
}

/// Why a connection is given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loss {
    /// The server said that it would close.
    Announced,
    /// It was lost, or is of no use any more.
    Unannounced,
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
            refused_in_a_row: 0,
            refused_in_a_row_max: in_flight_max.max(1),
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

    /// One of those on their way arrived.
    pub(crate) fn arrived(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.refused_in_a_row = 0;
    }

    /// One of those on their way failed. Returns how many connections count as failed by that: what this host lacks
    /// (`is_client_limit`), it lacks for each of those that wait, so they are given up and counted with it. After too many
    /// in a row for other reasons they are given up, too: a server that is silent costs a timeout for each.
    pub(crate) fn refused(&mut self, is_client_limit: bool) -> usize {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.refused_in_a_row += 1;
        if is_client_limit {
            return 1 + self.waiting.drain(..).count();
        }
        if self.refused_in_a_row >= self.refused_in_a_row_max {
            self.give_up();
        }
        1
    }

    /// One that was open is gone, after `losses` without notice of which `losses_max` are allowed. Returns whether it will
    /// be opened again: after an announced end before all others and without regard to the rate.
    pub(crate) fn lost(&mut self, number: u32, loss: Loss, losses: &mut u8, losses_max: u8) -> bool {
        match loss {
            Loss::Announced => {
                self.waiting.push_front(number);
                self.next_ns = 0;
            }
            Loss::Unannounced if *losses < losses_max => {
                *losses += 1;
                self.waiting.push_back(number);
            }
            Loss::Unannounced => return false,
        }
        true
    }

    /// None of those that wait will be opened.
    pub(crate) fn give_up(&mut self) {
        self.waiting.clear();
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
        ramp.arrived();
        assert_eq!(ramp.take(1), Some(4));
    }

    #[test]
    fn it_is_through_when_the_last_one_landed() {
        let mut ramp = Ramp::new(1, None, 8, (0, 1), 0);
        assert_eq!(ramp.take(0), Some(0));
        assert!(!ramp.is_through());
        ramp.arrived();
        assert!(ramp.is_through());
        assert!(ramp.lost(0, Loss::Announced, &mut 0, 0));
        assert_eq!(ramp.take(0), Some(0));
    }

    #[test]
    fn what_the_host_lacks_fails_all_that_wait_and_a_server_many_in_a_row() {
        let mut ramp = Ramp::new(10, None, 3, (0, 1), 0);
        ramp.take(0);
        assert_eq!(ramp.refused(true), 10);
        assert!(ramp.is_through());

        let mut ramp = Ramp::new(10, None, 3, (0, 1), 0);
        for goes_on in [true, true, false] {
            ramp.take(0);
            assert_eq!((ramp.refused(false), !ramp.is_through()), (1, goes_on));
        }
    }

    #[test]
    fn without_notice_a_connection_is_opened_again_only_so_often() {
        let mut ramp = Ramp::new(0, None, 3, (0, 1), 0);
        let mut losses = 0;
        let again: Vec<bool> = (0..3)
            .map(|_| ramp.lost(7, Loss::Unannounced, &mut losses, 2))
            .collect();
        assert_eq!(again, [true, true, false]);
        assert!(
            ramp.lost(7, Loss::Announced, &mut losses, 2),
            "an announced end is none of these"
        );
    }
}
