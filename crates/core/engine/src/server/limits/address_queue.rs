//! Queue of clients' work, round robin over their addresses.

use std::collections::{HashMap, VecDeque};

use linerate_model::network::Network;

/// Waiting items. A client has one at most, so the bounds on clients bound this queue.
pub(crate) struct AddressQueue<T> {
    waiting: HashMap<Network, VecDeque<(u64, T)>>,
    /// Addresses with waiting items; the first one is next.
    turns: VecDeque<Network>,
}

impl<T> Default for AddressQueue<T> {
    fn default() -> Self {
        Self {
            waiting: HashMap::new(),
            turns: VecDeque::new(),
        }
    }
}

impl<T> AddressQueue<T> {
    pub(crate) fn enter(&mut self, id: u64, address: Network, item: T) {
        let own = self.waiting.entry(address).or_default();
        if own.is_empty() {
            self.turns.push_back(address);
        }
        own.push_back((id, item));
    }

    /// The oldest item of the address whose turn it is. Many clients of one address delay others of
    /// that address alone.
    pub(crate) fn next(&mut self) -> Option<(u64, T)> {
        let address = self.turns.pop_front()?;
        let own = self.waiting.get_mut(&address)?;
        let next = own.pop_front();

        if own.is_empty() {
            self.waiting.remove(&address);
        } else {
            self.turns.push_back(address);
        }

        next
    }

    pub(crate) fn leave(&mut self, id: u64, address: Network) {
        if let Some(own) = self.waiting.get_mut(&address) {
            own.retain(|(other, _)| *other != id);
            if own.is_empty() {
                self.waiting.remove(&address);
                self.turns.retain(|other| *other != address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(entries: &[(u64, u8)]) -> AddressQueue<()> {
        let mut queue = AddressQueue::default();
        for &(id, last) in entries {
            queue.enter(id, address(last), ());
        }
        queue
    }

    fn address(last: u8) -> Network {
        Network::of_client([192, 0, 2, last].into())
    }

    fn order(mut queue: AddressQueue<()>) -> Vec<u64> {
        std::iter::from_fn(|| queue.next())
            .map(|(id, _)| id)
            .collect()
    }

    #[test]
    fn addresses_take_turns() {
        assert_eq!(
            order(queue(&[(1, 1), (2, 1), (3, 1), (4, 2), (5, 3)])),
            [1, 4, 5, 2, 3]
        );
    }

    #[test]
    fn removed_client_gets_no_turn() {
        let mut left = queue(&[(1, 1), (2, 1), (3, 2)]);
        left.leave(3, address(2));
        left.leave(1, address(1));
        left.leave(9, address(9));
        assert_eq!(order(left), [2]);
    }
}
