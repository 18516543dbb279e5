//! Memory for receiving.

use linerate_sys::udp::RecvBatch;

/// What the streams of one worker share: memory, and how far the current one may go.
pub(crate) struct Scratch {
    bytes: Vec<u8>,
    datagrams: Option<RecvBatch>,
    headers: Option<RecvBatch>,
    room_bytes: usize,
}

/// Room for one receive call. It stays in the processor's second-level cache beside what is read; larger buffers make
/// fewer calls and are slower.
pub(super) const RECEIVE_BYTES: usize = 256 * 1024;
/// Datagram slots of one receive call; each holds the largest coalesced buffer. Together they stay in the second-level
/// cache: with 32 slots a receiver is a tenth slower, and loses what a fast sender sends.
pub(super) const RECEIVE_SLOTS: usize = 4;
/// Largest UDP payload, coalesced or not.
const SLOT_BYTES: usize = 65_535;
/// Room for a datagram's header.
const HEADER_SLOT_BYTES: usize = 64;

impl Default for Scratch {
    fn default() -> Self {
        Self {
            bytes: Vec::new(),
            datagrams: None,
            headers: None,
            room_bytes: usize::MAX,
        }
    }
}

impl Scratch {
    /// Most bytes that one call of a pump moves; those that work in larger units move at least one. `usize::MAX` for no
    /// such limit.
    pub(super) fn room(&self) -> usize {
        self.room_bytes
    }

    pub(super) fn set_room(&mut self, bytes: usize) {
        self.room_bytes = bytes;
    }

    pub(super) fn bytes(&mut self) -> &mut [u8] {
        if self.bytes.is_empty() {
            self.bytes = vec![0; RECEIVE_BYTES];
        }
        &mut self.bytes
    }

    pub(super) fn datagrams(&mut self) -> &mut RecvBatch {
        self.datagrams
            .get_or_insert_with(|| RecvBatch::new(RECEIVE_SLOTS, SLOT_BYTES))
    }

    /// Slots that hold the header of a datagram and no more.
    pub(super) fn headers(&mut self) -> &mut RecvBatch {
        self.headers
            .get_or_insert_with(|| RecvBatch::new(RECEIVE_SLOTS, HEADER_SLOT_BYTES))
    }
}
