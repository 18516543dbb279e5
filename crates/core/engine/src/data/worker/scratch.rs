//! Memory for receiving.

use std::io;

use linerate_sys::PageBuffer;
use linerate_sys::udp::RecvBatch;

use super::receivers::read_place::PLACES_BYTES;

/// State that the streams of one worker share: memory, and the room of the current one.
pub(crate) struct Scratch {
    bytes: Option<PageBuffer>,
    datagrams: Option<RecvBatch>,
    headers: Option<RecvBatch>,
    /// Most bytes that one call of a pump moves; those that work in larger units move at least one.
    /// `usize::MAX` for no such limit.
    pub room_bytes: usize,
}

/// Room for one receive call. It stays in the second-level cache beside what is read; larger
/// buffers make fewer calls and are slower.
pub(super) const RECEIVE_BYTES: usize = 256 * 1024;
/// Datagram slots of one receive call; each holds the largest coalesced buffer. Together they stay
/// in the second-level cache: with 32 slots a receiver is a tenth slower, and loses what a fast
/// sender sends.
pub(super) const RECEIVE_SLOTS: usize = 4;
/// Largest UDP payload, coalesced or not.
const SLOT_BYTES: usize = 65_535;
/// Room for a datagram's header.
const HEADER_SLOT_BYTES: usize = 64;

impl Default for Scratch {
    fn default() -> Self {
        Self {
            bytes: None,
            datagrams: None,
            headers: None,
            room_bytes: usize::MAX,
        }
    }
}

impl Scratch {
    pub(super) fn set_room(&mut self, bytes: usize) {
        self.room_bytes = bytes;
    }

    /// Room for what one call receives from a byte stream: the longest read at each of its places.
    ///
    /// # Errors
    /// `OutOfMemory`, at the first call only.
    pub(crate) fn bytes(&mut self) -> io::Result<&mut [u8]> {
        match &mut self.bytes {
            Some(bytes) => Ok(bytes),
            place => {
                let bytes = PageBuffer::zeroed(RECEIVE_BYTES + PLACES_BYTES)
                    .map_err(|error| error.source)?;
                Ok(place.insert(bytes))
            }
        }
    }

    /// Slots that hold whole datagrams.
    ///
    /// # Errors
    /// `OutOfMemory`, at the first call only.
    pub(super) fn datagrams(&mut self) -> io::Result<&mut RecvBatch> {
        batch(&mut self.datagrams, SLOT_BYTES)
    }

    /// Slots that hold the header of a datagram and no more.
    ///
    /// # Errors
    /// `OutOfMemory`, at the first call only.
    pub(super) fn headers(&mut self) -> io::Result<&mut RecvBatch> {
        batch(&mut self.headers, HEADER_SLOT_BYTES)
    }
}

fn batch(place: &mut Option<RecvBatch>, slot_bytes: usize) -> io::Result<&mut RecvBatch> {
    match place {
        Some(batch) => Ok(batch),
        None => {
            let batch = RecvBatch::new(RECEIVE_SLOTS, slot_bytes).map_err(|error| error.source)?;
            Ok(place.insert(batch))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::connected;
    use super::*;
    use linerate_sys::page_buffer::PAGE_ALIGNMENT;
    use linerate_sys::udp;

    #[test]
    fn receive_buffer_begins_at_a_page_boundary() {
        let mut scratch = Scratch::default();
        let start = scratch.bytes().expect("memory").as_ptr();
        assert_eq!(start.addr() % PAGE_ALIGNMENT, 0);
    }

    #[test]
    fn every_datagram_slot_begins_at_a_page_boundary() {
        let (sender, receiver) = connected();
        let mut scratch = Scratch::default();

        for batch in [Scratch::datagrams, Scratch::headers] {
            let sent: Vec<usize> = (0..RECEIVE_SLOTS)
                .map(|_| udp::send(&sender, &[7; 48]).expect("room"))
                .collect();
            let batch = batch(&mut scratch).expect("memory");

            // Datagrams on loopback are in the receiver's queue when the send call returns.
            assert_eq!(batch.recv(&receiver).expect("datagrams"), sent.len());
            for index in 0..sent.len() {
                let message = batch.message(index);
                assert_eq!(
                    (message.data, message.data.as_ptr().addr() % PAGE_ALIGNMENT),
                    (&[7; 48][..], 0),
                    "{index}"
                );
            }
        }
    }
}
