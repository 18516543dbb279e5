//! Datagrams that are read before their flow has a worker.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;

use linerate_sys::OsError;
use linerate_sys::clock::{self, RealtimeOffset};
use linerate_sys::udp::RecvBatch;

/// Datagrams that arrived at a socket.
pub(super) struct ReceivedDatagram {
    pub datagram: Vec<u8>,
    pub from: SocketAddr,
    /// Local address that it was sent to, where the socket receives that.
    pub to: Option<IpAddr>,
    /// Monotonic.
    pub at_ns: u64,
}

/// Limit of datagrams taken in one turn, for fairness to the other sockets.
const DATAGRAMS_PER_TURN: usize = 4096;
/// Datagrams of one call.
const SLOTS: usize = 4;
/// Largest UDP payload.
const DATAGRAM_BYTES: usize = 65_535;

/// Reads datagrams into memory of its own.
pub(super) struct DatagramReader {
    batch: RecvBatch,
}

impl DatagramReader {
    /// # Errors
    /// `OutOfMemory`.
    pub(super) fn new() -> Result<Self, OsError> {
        let batch = RecvBatch::new(SLOTS, DATAGRAM_BYTES)?;
        Ok(Self { batch })
    }

    /// Reads what is there, as far as one turn allows.
    pub(super) fn drain(&mut self, fd: impl AsFd, into: &mut impl Extend<ReceivedDatagram>) {
        let offset = RealtimeOffset::read();
        let mut taken = 0;
        // An error of an earlier send is unrelated to what has arrived; the next turn reads again.
        while taken < DATAGRAMS_PER_TURN
            && let Ok(messages) = self.batch.recv(&fd)
        {
            let read_ns = clock::monotonic_ns();
            taken += messages;
            into.extend((0..messages).filter_map(|index| {
                let message = self.batch.message(index);
                Some(ReceivedDatagram {
                    datagram: message.data.to_vec(),
                    from: message.from?,
                    to: message.to,
                    at_ns: message.arrival_ns(offset, read_ns),
                })
            }));
        }
    }
}
