//! Connections of a thread. An idle one takes 24 bytes and owns no buffer.

use std::os::fd::OwnedFd;

use linerate_sys::poll::Interest;

use crate::server::machine::Machine;
use crate::server::write_queue::WriteQueue;

/// Connections by index. An index is reused only after [`Self::recycle`]: an event that was
/// received together with the one that closed a connection must not match a later connection.
#[derive(Debug, Default)]
pub(super) struct ConnectionTable {
    slots: Vec<Option<Connection>>,
    free: Vec<u32>,
    /// Freed since the last [`Self::recycle`].
    closed: Vec<u32>,
}

/// A connection.
#[derive(Debug)]
pub(super) struct Connection {
    pub fd: OwnedFd,
    /// Time of the last progress.
    pub since: Ticks,
    /// Event its descriptor is registered for.
    pub awaited: Interest,
    /// Within the limit, not rejected.
    pub is_admitted: bool,
    /// `None` between requests.
    pub partial: Option<Box<PartialIo>>,
}

/// Tenths of a second since the start of the thread.
pub(super) type Ticks = u32;

/// State of an incomplete request or response.
#[derive(Debug, Default)]
pub(super) struct PartialIo {
    /// Received, not parsed.
    pub input: Vec<u8>,
    /// Unsent. Nothing is read until it is empty.
    pub output: WriteQueue,
    pub machine: Machine,
    /// Lingering close: what the client still sends is discarded.
    pub is_closing: bool,
}

impl ConnectionTable {
    /// True if there are no connections.
    pub(super) fn is_empty(&self) -> bool {
        self.slots.len() == self.free.len() + self.closed.len()
    }

    /// Adds a connection; `None` when all indices are in use.
    pub(super) fn insert(&mut self, connection: Connection) -> Option<(u32, &mut Connection)> {
        let index = match self.free.pop() {
            Some(index) => index,
            None => {
                self.slots.push(None);
                u32::try_from(self.slots.len() - 1).ok()?
            }
        };
        Some((
            index,
            self.slots.get_mut(index as usize)?.insert(connection),
        ))
    }

    /// The connection, if it still exists.
    pub(super) fn get(&mut self, index: u32) -> Option<&mut Connection> {
        self.slots.get_mut(index as usize)?.as_mut()
    }

    /// Removes a connection.
    pub(super) fn remove(&mut self, index: u32) -> Option<Connection> {
        let connection = self.slots.get_mut(index as usize)?.take()?;
        self.closed.push(index);
        Some(connection)
    }

    /// Allows the indices of removed connections to be reused: no event of theirs is left.
    pub(super) fn recycle(&mut self) {
        self.free.append(&mut self.closed);
    }

    /// All connections with their indices.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &Connection)> {
        (0..)
            .zip(&self.slots)
            .filter_map(|(index, slot)| Some((index, slot.as_ref()?)))
    }
}

#[cfg(test)]
impl Connection {
    pub(super) fn of_test(since: Ticks, partial: Option<Box<PartialIo>>) -> Self {
        let fd = std::fs::File::open("/dev/null")
            .expect("always there")
            .into();
        Self {
            fd,
            since,
            awaited: Interest::READ,
            is_admitted: true,
            partial,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_connection_takes_24_bytes() {
        assert_eq!(size_of::<Option<Connection>>(), 24);
    }

    #[test]
    fn index_of_a_removed_connection_matches_no_later_one_until_recycled() {
        let mut table = ConnectionTable::default();
        let insert = |table: &mut ConnectionTable| {
            let inserted = table.insert(Connection::of_test(0, None));
            inserted.map(|(index, _)| index).expect("room")
        };
        let (first, second) = (insert(&mut table), insert(&mut table));
        assert!(table.remove(first).is_some());
        assert!(table.remove(first).is_none(), "once");

        let third = insert(&mut table);
        assert_ne!(first, third);
        assert!(table.get(first).is_none() && table.get(second).is_some());
        table.recycle();
        assert_eq!(insert(&mut table), first);
        assert_eq!(table.iter().count(), 3);

        for index in [first, second, third] {
            assert!(!table.is_empty() && table.remove(index).is_some());
        }

        assert!(table.is_empty() && table.get(u32::MAX).is_none());
    }
}
