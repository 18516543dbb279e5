//! Rate at which connections are opened.

use std::collections::VecDeque;

use super::pace::WorkerIndex;

/// Connections to be opened, with a rate and a limit of concurrent attempts.
#[derive(Debug)]
pub(crate) struct Ramp {
    waiting: VecDeque<u32>,
    gap_ns: u64,
    next_ns: u64,
    in_flight: u32,
    in_flight_max: u32,
    /// Failed attempts since the last success.
    refused_in_a_row: u32,
    refused_in_a_row_max: u32,
}

/// Way in which a connection was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loss {
    /// The server announced the close.
    Announced,
    /// Its first request had no response in time. Another attempt would wait as long, and in the
    /// same queue.
    Unanswered,
    /// Otherwise.
    Unannounced,
}

impl Ramp {
    /// For one of `workers` that share a rate and a limit, with connections `0..connections`.
    pub(crate) fn new(
        connections: u32,
        rate_per_s: Option<u32>,
        in_flight_max: u32,
        (index, workers): WorkerIndex,
        now_ns: u64,
    ) -> Self {
        let workers = workers.max(1);
        let gap_ns = rate_per_s.map_or(0, |rate| {
            1_000_000_000 * u64::from(workers) / u64::from(rate.max(1))
        });
        Self {
            waiting: (0..connections).collect(),
            gap_ns,
            // Workers start staggered.
            next_ns: now_ns + gap_ns / u64::from(workers) * u64::from(index),
            in_flight: 0,
            in_flight_max: (in_flight_max / workers).max(1),
            refused_in_a_row: 0,
            refused_in_a_row_max: in_flight_max.max(1),
        }
    }

    /// The next connection that may be opened.
    pub(crate) fn take(&mut self, now_ns: u64) -> Option<u32> {
        if now_ns < self.next_ns || self.in_flight >= self.in_flight_max {
            return None;
        }

        let number = self.waiting.pop_front()?;
        // A delay is made up for, but not in one burst after a long one.
        self.next_ns = (self.next_ns + self.gap_ns).max(now_ns.saturating_sub(CATCH_UP_NS));
        self.in_flight += 1;

        Some(number)
    }

    /// When [`Self::take`] returns one, unless the limit of concurrent attempts is reached.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        (!self.waiting.is_empty() && self.in_flight < self.in_flight_max).then_some(self.next_ns)
    }

    /// An attempt succeeded.
    pub(crate) fn arrived(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.refused_in_a_row = 0;
    }

    /// An attempt failed. Returns how many connections fail with it: a limit of this host
    /// (`is_client_limit`) fails all that are waiting. After many other failures in a row the rest
    /// is given up too, because a silent server costs a timeout for each.
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

    /// An open connection was lost, after `losses` unannounced ones of `losses_max`. Returns
    /// whether it is reopened: after an announced close before all others and regardless of the
    /// rate.
    pub(crate) fn lost(
        &mut self,
        number: u32,
        loss: Loss,
        losses: &mut u8,
        losses_max: u8,
    ) -> bool {
        match loss {
            Loss::Announced => {
                self.waiting.push_front(number);
                self.next_ns = 0;
            }
            Loss::Unannounced if *losses < losses_max => {
                *losses += 1;
                self.waiting.push_back(number);
            }
            Loss::Unanswered | Loss::Unannounced => return false,
        }

        true
    }

    /// Gives up all that are waiting.
    pub(crate) fn give_up(&mut self) {
        self.waiting.clear();
    }

    pub(crate) fn is_connecting(&self) -> bool {
        self.in_flight > 0
    }

    /// Nothing is waiting or being opened.
    pub(crate) fn is_through(&self) -> bool {
        self.waiting.is_empty() && self.in_flight == 0
    }
}

const CATCH_UP_NS: u64 = 100_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_is_kept_and_a_delay_made_up_for() {
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
    fn concurrent_attempts_are_limited() {
        let mut ramp = Ramp::new(100, None, 8, (0, 2), 0);
        assert_eq!((0..100).filter_map(|_| ramp.take(1)).count(), 4);
        assert_eq!(ramp.next_ns(), None);
        ramp.arrived();
        assert_eq!(ramp.take(1), Some(4));
    }

    #[test]
    fn ramp_ends_with_its_last_attempt() {
        let mut ramp = Ramp::new(1, None, 8, (0, 1), 0);
        assert_eq!(ramp.take(0), Some(0));
        assert!(!ramp.is_through());
        ramp.arrived();
        assert!(ramp.is_through());
        assert!(ramp.lost(0, Loss::Announced, &mut 0, 0));
        assert_eq!(ramp.take(0), Some(0));
    }

    #[test]
    fn client_limit_fails_all_waiting_and_many_failures_end_the_ramp() {
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
    fn unannounced_losses_are_reopened_up_to_a_limit() {
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
        assert!(
            !ramp.lost(7, Loss::Unanswered, &mut 0, 2),
            "the server does not accept it a second time either"
        );
    }
}
