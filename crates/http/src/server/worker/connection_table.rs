//! Connections of a thread. An idle one takes 32 bytes and owns no buffer.

use std::os::fd::OwnedFd;

use linerate_sys::poll::Interest;

use crate::server::machine::Machine;
use crate::server::write_queue::WriteQueue;

/// Connections by reusable index.
#[derive(Debug, Default)]
pub(super) struct ConnectionTable {
    slots: Vec<Slot>,
    free: Vec<u32>,
    occupied: usize,
}

#[derive(Debug)]
struct Slot {
    /// Uses of the slot, so that a late event does not match a later connection.
    generation: u32,
    connection: Option<Connection>,
}

/// A connection.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) fd: OwnedFd,
    /// Time of the last progress.
    pub(super) since: Ticks,
    /// Event its descriptor is registered for.
    pub(super) awaited: AwaitedEvent,
    /// Within the limit, not rejected.
    pub(super) is_admitted: bool,
    /// `None` between requests.
    pub(super) partial: Option<Box<PartialIo>>,
}

/// Tenths of a second since the start of the thread.
pub(super) type Ticks = u32;

/// Event a descriptor is registered for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AwaitedEvent {
    Readable,
    Writable,
}

impl AwaitedEvent {
    pub(super) fn interest(self) -> Interest {
        match self {
            Self::Readable => Interest::READ,
            Self::Writable => Interest::WRITE,
        }
    }
}

/// State of an incomplete request or response.
#[derive(Debug, Default)]
pub(super) struct PartialIo {
    /// Received, not parsed.
    pub(super) input: Vec<u8>,
    /// Unsent. Nothing is read until it is empty.
    pub(super) output: WriteQueue,
    pub(super) machine: Machine,
    /// Lingering close: what the client still sends is discarded.
    pub(super) is_closing: bool,
}

/// Index and generation of a connection, as epoll returns it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Token(u64);

impl Token {
    /// As a number below the highest 2³² ones, which are free for other descriptors.
    pub(super) fn number(self) -> u64 {
        self.0
    }

    pub(super) fn from_number(number: u64) -> Self {
        Self(number)
    }

    #[cfg(test)]
    pub(super) const HIGHEST: Self = Self::new(GENERATIONS - 1, u32::MAX);

    const fn new(generation: u32, index: u32) -> Self {
        Self((generation as u64) << 32 | index as u64)
    }

    fn index(self) -> usize {
        // The lower half.
        usize::try_from(self.0 & u64::from(u32::MAX)).unwrap_or(usize::MAX)
    }
}

impl ConnectionTable {
    /// Whether there are no connections.
    pub(super) fn is_empty(&self) -> bool {
        self.occupied == 0
    }

    /// Adds a connection; `None` when all indices are in use.
    pub(super) fn insert(&mut self, connection: Connection) -> Option<Token> {
        let index = match self.free.pop() {
            Some(index) => index,
            None => {
                let index = u32::try_from(self.slots.len()).ok()?;
                self.slots.push(Slot { generation: 0, connection: None });
                index
            }
        };
        let slot = self.slots.get_mut(index as usize)?;
        slot.connection = Some(connection);
        self.occupied += 1;
        Some(Token::new(slot.generation, index))
    }

    /// The connection, if it still exists.
    pub(super) fn get(&mut self, token: Token) -> Option<&mut Connection> {
        let slot = self.slots.get_mut(token.index())?;
        let is_current = Token::new(slot.generation, 0).0 == token.0 & !u64::from(u32::MAX);
        slot.connection.as_mut().filter(|_| is_current)
    }

    /// Removes a connection.
    pub(super) fn remove(&mut self, token: Token) -> Option<Connection> {
        self.get(token)?;
        let index = token.index();
        let slot = self.slots.get_mut(index)?;
        // The highest generation would collide with the tokens of other descriptors.
        slot.generation = (slot.generation + 1) % GENERATIONS;
        self.free.push(u32::try_from(index).ok()?);
        self.occupied -= 1;
        slot.connection.take()
    }

    /// All connections with their tokens.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Token, &Connection)> {
        let numbered = (0..).zip(&self.slots);
        numbered.filter_map(|(index, slot)| Some((Token::new(slot.generation, index), slot.connection.as_ref()?)))
    }
}

const GENERATIONS: u32 = u32::MAX;

#[cfg(test)]
impl Connection {
    pub(super) fn of_test(since: Ticks, partial: Option<Box<PartialIo>>) -> Self {
        Self {
            fd: std::fs::File::open("/dev/null").expect("always there").into(),
            since,
            awaited: AwaitedEvent::Readable,
            is_admitted: true,
            partial,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_connection_takes_32_bytes() {
        assert_eq!(size_of::<Slot>(), 32);
    }

    #[test]
    fn token_of_a_removed_connection_matches_no_later_one() {
        let mut table = ConnectionTable::default();
        let first = table.insert(Connection::of_test(0, None)).expect("room");
        let second = table.insert(Connection::of_test(0, None)).expect("room");
        assert!(table.remove(first).is_some());
        assert!(table.remove(first).is_none(), "once");
        let third = table.insert(Connection::of_test(0, None)).expect("room");
        assert_ne!(first, third);
        assert_eq!(first.index(), third.index());
        assert!(table.get(first).is_none());
        assert!(table.get(third).is_some() && table.get(second).is_some());
        assert_eq!(table.iter().count(), 2);
        assert!(!table.is_empty());
        let foreign = Token::from_number(u64::MAX);
        assert!(table.get(foreign).is_none());
    }
}
