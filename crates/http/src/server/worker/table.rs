//! The connections of a thread. One that is idle costs 32 bytes here and owns nothing.

use std::os::fd::OwnedFd;

use linerate_sys::poll::Interest;

use crate::server::conversation::Conversation;
use crate::server::outbox::Outbox;

/// Connections under numbers that are used again.
#[derive(Debug, Default)]
pub(super) struct Table {
    slots: Vec<Slot>,
    free: Vec<u32>,
    occupied: usize,
}

#[derive(Debug)]
struct Slot {
    /// How often the slot was used: an event that is late belongs to nobody.
    generation: u32,
    connection: Option<Connection>,
}

/// A connection.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) fd: OwnedFd,
    /// When it last made progress, in ticks.
    pub(super) since: Ticks,
    /// What its descriptor is waited for.
    pub(super) waits_for: WaitsFor,
    /// It counts among those that were accepted, not among those that were refused.
    pub(super) is_guest: bool,
    /// It is one of [`crate::server::body_path::is_paced`].
    pub(super) is_paced: bool,
    /// What an idle connection does not have.
    pub(super) spill: Option<Box<Spill>>,
}

/// Tenths of a second since the start of the thread.
pub(super) type Ticks = u32;

/// What a descriptor is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WaitsFor {
    Input,
    Room,
}

impl WaitsFor {
    pub(super) fn interest(self) -> Interest {
        match self {
            Self::Input => Interest::READ,
            Self::Room => Interest::WRITE,
        }
    }
}

/// What a connection keeps while a request or an answer is only half there.
#[derive(Debug, Default)]
pub(super) struct Spill {
    /// Received and not understood.
    pub(super) input: Vec<u8>,
    /// Not sent. While there is any, nothing is read.
    pub(super) output: Outbox,
    pub(super) conversation: Conversation,
    /// All is said; what the peer still sends is thrown away.
    pub(super) lingers: bool,
}

/// A connection's number and generation in one, as the kernel gives it back with an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Token(u64);

impl Token {
    /// The token as a number. Never one of the highest 2³² numbers, which are free for others.
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

impl Table {
    /// Whether there is no connection.
    pub(super) fn is_empty(&self) -> bool {
        self.occupied == 0
    }

    /// Adds a connection; `None` where no number is left, far beyond any limit of descriptors.
    pub(super) fn insert(&mut self, connection: Connection) -> Option<Token> {
        let index = match self.free.pop() {
            Some(index) => index,
            None => {
                let index = u32::try_from(self.slots.len()).ok()?;
                self.slots.push(Slot {
                    generation: 0,
                    connection: None,
                });
                index
            }
        };
        let slot = self.slots.get_mut(index as usize)?;
        slot.connection = Some(connection);
        self.occupied += 1;
        Some(Token::new(slot.generation, index))
    }

    /// The connection, unless it is gone.
    pub(super) fn get(&mut self, token: Token) -> Option<&mut Connection> {
        let slot = self.slots.get_mut(token.index())?;
        let is_current = Token::new(slot.generation, 0).0 == token.0 & !u64::from(u32::MAX);
        slot.connection.as_mut().filter(|_| is_current)
    }

    /// Takes a connection out.
    pub(super) fn remove(&mut self, token: Token) -> Option<Connection> {
        self.get(token)?;
        let index = token.index();
        let slot = self.slots.get_mut(index)?;
        // The highest generation would make tokens that belong to others.
        slot.generation = (slot.generation + 1) % GENERATIONS;
        self.free.push(u32::try_from(index).ok()?);
        self.occupied -= 1;
        slot.connection.take()
    }

    /// Every connection with its token.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Token, &Connection)> {
        let numbered = (0..).zip(&self.slots);
        numbered.filter_map(|(index, slot)| Some((Token::new(slot.generation, index), slot.connection.as_ref()?)))
    }
}

const GENERATIONS: u32 = u32::MAX;

#[cfg(test)]
mod tests {
    use super::*;

    fn connection() -> Connection {
        Connection {
            fd: std::fs::File::open("/dev/null").expect("always there").into(),
            since: 0,
            waits_for: WaitsFor::Input,
            is_guest: true,
            is_paced: false,
            spill: None,
        }
    }

    #[test]
    fn an_idle_connection_takes_32_bytes() {
        assert_eq!(size_of::<Slot>(), 32);
    }

    #[test]
    fn a_number_is_used_again_and_an_old_token_finds_nobody() {
        let mut table = Table::default();
        let first = table.insert(connection()).expect("room");
        let second = table.insert(connection()).expect("room");
        assert!(table.remove(first).is_some());
        assert!(table.remove(first).is_none(), "once");
        let third = table.insert(connection()).expect("room");
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
