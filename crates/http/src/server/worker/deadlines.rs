//! Deadlines of single connections and of listeners. Few: the idle timeout has a periodic scan.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::connection_table::Token;

/// Action at a deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Event {
    /// Ends a lingering close.
    Close(Token),
    /// Resumes accepting.
    Accept,
}

/// Deadlines in order, in nanoseconds of the monotonic clock.
#[derive(Debug, Default)]
pub(super) struct Deadlines(BinaryHeap<Reverse<(u64, Event)>>);

impl Deadlines {
    /// Adds a deadline.
    pub(super) fn add(&mut self, at_ns: u64, event: Event) {
        self.0.push(Reverse((at_ns, event)));
    }

    /// The next deadline.
    pub(super) fn next_ns(&self) -> Option<u64> {
        self.0.peek().map(|Reverse((at_ns, _))| *at_ns)
    }

    /// Removes a deadline that has passed.
    pub(super) fn take_due(&mut self, now_ns: u64) -> Option<Event> {
        if self.next_ns()? > now_ns {
            return None;
        }
        self.0.pop().map(|Reverse((_, event))| event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_are_ordered() {
        let mut deadlines = Deadlines::default();
        let close = Event::Close(Token::from_number(7));
        deadlines.add(30, close);
        deadlines.add(10, Event::Accept);
        assert_eq!((deadlines.next_ns(), deadlines.take_due(9)), (Some(10), None));
        assert_eq!(deadlines.take_due(30), Some(Event::Accept));
        assert_eq!(deadlines.take_due(30), Some(close));
        assert_eq!((deadlines.next_ns(), deadlines.take_due(30)), (None, None));
    }
}
