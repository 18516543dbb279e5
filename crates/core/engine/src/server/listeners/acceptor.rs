//! Pending connections of the shared listener: accepted, dialect not yet known.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use linerate_sys::poll::{Epoll, Interest};
use linerate_sys::stream_io;

use super::accepted::Accepted;
use crate::server::dialect::{Recognised, ServerDialect};
use crate::server::tokens::{PENDING, token};
use crate::wait::if_ready;

/// Longest wait for the bytes by which a connection is recognised; progress does not extend it.
pub(crate) const HEADER_TIMEOUT: Duration = Duration::from_secs(5);

/// Reads the first bytes of connections until a dialect recognises them.
#[derive(Default)]
pub(crate) struct Acceptor {
    /// With their deadlines.
    pending: BTreeMap<u64, (Accepted, Instant)>,
}

/// Result of a read.
#[derive(PartialEq, Eq)]
pub(crate) enum Progress {
    Incomplete,
    /// The dialect with this index recognises the connection.
    Recognised(usize),
    Closed,
}

/// Bytes per read, and most that a dialect needs.
const READ_BYTES: usize = 64;

impl Acceptor {
    pub(crate) fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    pub(crate) fn add(&mut self, connection: Accepted, epoll: &Epoll) {
        let token = token(connection.id, PENDING);
        // Without an event the deadline ends it.
        let _ = epoll.add(&connection.fd, token, Interest::READ);
        // Absolute: a client that sends a byte from time to time does not extend it.
        let deadline = Instant::now() + HEADER_TIMEOUT;
        self.pending.insert(connection.id, (connection, deadline));
    }

    /// Reads what has arrived, and not a byte beyond what the dialects need: the rest is for the
    /// session.
    pub(crate) fn read(&mut self, id: u64, dialects: &[Box<dyn ServerDialect>]) -> Progress {
        let Some((connection, _)) = self.pending.get_mut(&id) else {
            return Progress::Incomplete;
        };
        let mut buffer = [0; READ_BYTES];

        loop {
            let bytes = &mut connection.first_bytes;
            let wanted = match recognise(dialects, bytes) {
                Ok(dialect) => return Progress::Recognised(dialect),
                Err(len) if len > bytes.len() => (len - bytes.len()).min(READ_BYTES),
                Err(_) => return Progress::Closed,
            };
            // Consumed, not peeked: with MSG_PEEK a level-triggered event would repeat until the
            // header is complete.
            match if_ready(stream_io::recv(&connection.fd, &mut buffer[..wanted])) {
                Ok(Some(0)) | Err(_) => return Progress::Closed,
                Ok(Some(n)) => bytes.extend_from_slice(&buffer[..n]),
                Ok(None) => return Progress::Incomplete,
            }
        }
    }

    /// Takes a connection out of the event loop. It still counts against the limit.
    pub(crate) fn take(&mut self, id: u64, epoll: &Epoll) -> Option<Accepted> {
        let (connection, _) = self.pending.remove(&id)?;
        // The dialect watches it in an epoll of its own.
        let _ = epoll.remove(&connection.fd);
        Some(connection)
    }

    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        // Later connections have later deadlines.
        self.pending
            .first_key_value()
            .map(|(_, (_, deadline))| *deadline)
    }

    /// Connections whose time is up.
    pub(crate) fn late(&self, now: Instant) -> Vec<u64> {
        let late = self
            .pending
            .iter()
            .take_while(|(_, (_, deadline))| *deadline <= now);
        late.map(|(&id, _)| id).collect()
    }
}

/// The dialect that recognises these bytes, or else the number of bytes to read before the dialects
/// are asked again; 0 if none can recognise them any more. The first dialect is asked last: it
/// takes what no other one recognises.
fn recognise(dialects: &[Box<dyn ServerDialect>], bytes: &[u8]) -> Result<usize, usize> {
    let mut needed = None;
    let in_order = dialects.iter().enumerate();
    for (index, dialect) in in_order.clone().skip(1).chain(in_order.take(1)) {
        match dialect.recognise(bytes) {
            Recognised::Mine => return Ok(index),
            Recognised::NeedMore(len) => {
                needed = Some(needed.map_or(len, |least: usize| least.min(len)));
            }
            Recognised::NotMine => {}
        }
    }

    Err(needed.unwrap_or_default())
}
