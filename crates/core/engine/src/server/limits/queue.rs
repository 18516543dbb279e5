//! The queue of clients that wait for admission, and their expected wait.

use std::collections::VecDeque;
use std::time::Duration;

use linerate_model::network::Network;

/// Clients in the order in which they came.
#[derive(Default)]
pub(crate) struct AdmissionQueue {
    waiting: VecDeque<(u64, Network)>,
}

/// Most clients in the queue; more would exceed any reasonable timeout.
const WAITING_MAX: usize = 128;
/// Clients of one address that may wait, so that none fills the queue alone.
const WAITING_PER_ADDRESS_MAX: usize = WAITING_MAX / 8;

impl AdmissionQueue {
    /// Assumed duration of a test whose parameters are not known: the default of clients.
    pub(crate) const DEFAULT_TEST_TIME: Duration = Duration::from_secs(10);

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Queues a client, unless its wait would exceed `wait_max`. `remaining` is the time left of
    /// the running tests, `None` where it is unknown.
    pub(crate) fn enter(
        &mut self,
        id: u64,
        address: Network,
        remaining: impl Iterator<Item = Option<Duration>>,
        places: usize,
        wait_max: Duration,
    ) -> bool {
        let wait = expected_wait(remaining, self.waiting.len(), places);
        let own = self
            .waiting
            .iter()
            .filter(|(_, other)| *other == address)
            .count();
        let has_room = self.waiting.len() < WAITING_MAX && own < WAITING_PER_ADDRESS_MAX;
        let welcome = has_room && wait <= wait_max;
        if welcome {
            self.waiting.push_back((id, address));
        }

        welcome
    }

    pub(crate) fn leave(&mut self, id: u64) {
        self.waiting.retain(|(other, _)| *other != id);
    }

    /// Who waits longest.
    pub(crate) fn first(&self) -> Option<u64> {
        self.waiting.front().map(|(id, _)| *id)
    }

    /// Clients before this one, and its expected wait.
    #[cfg(feature = "native")]
    pub(crate) fn turn(
        &self,
        id: u64,
        remaining: impl Iterator<Item = Option<Duration>>,
        places: usize,
    ) -> Option<(usize, Duration)> {
        let ahead = self.waiting.iter().position(|(other, _)| *other == id)?;
        Some((ahead, expected_wait(remaining, ahead, places)))
    }
}

/// Wait of a new client behind `ahead` others. A test without a known end may end at
/// any moment.
fn expected_wait(
    remaining: impl Iterator<Item = Option<Duration>>,
    ahead: usize,
    places: usize,
) -> Duration {
    let mut ends: Vec<Duration> = remaining.map(Option::unwrap_or_default).collect();
    // A place without a test is free at once.
    ends.resize(ends.len().max(places), Duration::ZERO);

    for _ in 0..ahead {
        if let Some(first) = ends.iter_mut().min() {
            *first += AdmissionQueue::DEFAULT_TEST_TIME;
        }
    }

    ends.into_iter().min().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(s: u64) -> Option<Duration> {
        Some(Duration::from_secs(s))
    }

    fn address(last: u8) -> Network {
        Network::of_client([192, 0, 2, last].into())
    }

    #[test]
    fn one_address_does_not_fill_the_queue() {
        let mut queue = AdmissionQueue::default();
        let mut enter =
            |id, last| queue.enter(id, address(last), [None].into_iter(), 1, Duration::MAX);
        let entered = (0..1000).filter(|id| enter(*id, 1)).count();
        assert_eq!(entered, WAITING_PER_ADDRESS_MAX);
        assert!(enter(1000, 2));
    }

    #[test]
    fn the_wait_is_that_of_the_first_free_place_after_those_ahead() {
        let wait = |remaining: &[Option<Duration>], ahead, places| {
            expected_wait(remaining.iter().copied(), ahead, places).as_secs()
        };
        assert_eq!(wait(&[seconds(7)], 0, 1), 7);
        assert_eq!(wait(&[seconds(7)], 1, 1), 17);
        assert_eq!(wait(&[seconds(7), seconds(3)], 0, 2), 3);
        assert_eq!(wait(&[seconds(7), seconds(3)], 1, 2), 7);
        assert_eq!(wait(&[seconds(7), seconds(3)], 2, 2), 13);
        assert_eq!(wait(&[None], 0, 1), 0, "an unknown wait refuses no client");
        assert_eq!(wait(&[], 0, 1), 0);
    }

    #[test]
    fn client_with_too_long_a_wait_is_not_queued() {
        let mut queue = AdmissionQueue::default();
        let wait_max = Duration::from_secs(25);
        let mut enter = |id| queue.enter(id, address(1), [seconds(10)].into_iter(), 1, wait_max);
        assert_eq!([enter(1), enter(2), enter(3)], [true, true, false]);

        let turn = |queue: &AdmissionQueue, id| queue.turn(id, [seconds(10)].into_iter(), 1);
        assert_eq!(turn(&queue, 2), Some((1, Duration::from_secs(20))));
        queue.leave(1);
        assert_eq!(
            (queue.first(), turn(&queue, 2)),
            (Some(2), Some((0, Duration::from_secs(10))))
        );
        queue.leave(2);
        assert_eq!((queue.first(), turn(&queue, 2)), (None, None));
    }
}
