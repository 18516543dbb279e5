//! Payload of frames whose length follows the rate of their stream.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use linerate_sys::page_buffer::PAGE_ALIGNMENT;
use linerate_sys::poll::{self, Interest};
use linerate_sys::{PageBuffer, Result as OsResult, sockopt};

use crate::data::payload;

/// Frames of payload on one stream.
pub(crate) struct FramePayload {
    block: Arc<PageBuffer>,
    len: usize,
    len_max: usize,
    meter: RateMeter,
    /// The bound on unsent bytes in the socket is less than one packet of the kernel.
    is_limited: bool,
    /// Bytes written to the stream so far.
    position: u64,
}

/// Measures the rate of a stream over the last period.
struct RateMeter {
    since_ns: u64,
    bytes: u64,
}

/// Time in which the path takes the payload of one frame.
const FRAME_NS: u64 = 5_000_000;
const FRAME_BYTES_MIN: usize = 4 * 1024;
/// Payload of the first frames, until a rate is known.
const FRAME_BYTES_FIRST: usize = 16 * 1024;
/// Period of the rate.
pub(crate) const METER_NS: u64 = 100_000_000;
/// Most that the kernel puts into one packet before it is divided into segments
/// (`GSO_LEGACY_MAX_SIZE`).
const PACKET_BYTES_MAX: u32 = 65_536;

impl FramePayload {
    /// Frames of at most `len_max` bytes for this socket.
    pub(crate) fn new(fd: impl AsFd, len_max: usize, now_ns: u64) -> OsResult<Self> {
        // A page more than the longest frame, since frames begin at any place of the first page.
        let block = payload::shared_block(len_max + PAGE_ALIGNMENT, 0)?;
        let meter = RateMeter {
            since_ns: now_ns,
            bytes: 0,
        };
        let mut frames = Self {
            block,
            len: FRAME_BYTES_FIRST,
            len_max,
            meter,
            is_limited: false,
            position: 0,
        };

        // A buffer that is filled before the rate is known takes seconds to leave on a slow path.
        frames.limit_unsent(&fd, FRAME_BYTES_FIRST);
        Ok(frames)
    }

    /// Length of the next frame.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// More waits unsent in the socket than is allowed. A write alone does not find that: the
    /// kernel appends to a packet that is not full whatever waits. poll(2) has the kernel report
    /// when there is room.
    pub(crate) fn waits_for_room(&self, fd: impl AsFd) -> bool {
        self.is_limited
            && !poll::wait_fd(&fd, Interest::WRITE, Some(Duration::ZERO)).unwrap_or(true)
    }

    /// The next bytes of a frame, after this number of bytes of its head. They begin at the offset
    /// from a page boundary that the kernel copies them to: on several CPUs a copy is slow whose
    /// destination lies slightly ahead of its source modulo 4096.
    pub(crate) fn part(&self, head_len: usize, len: usize) -> &[u8] {
        let offset = (self.position as usize).wrapping_add(head_len) % PAGE_ALIGNMENT;
        self.block.get(offset..offset + len).unwrap_or_default()
    }

    /// Adapts the length of the next frame, and what may wait unsent in the socket, to the rate.
    pub(crate) fn account(&mut self, written: u64, fd: impl AsFd, now_ns: u64) {
        self.position = self.position.wrapping_add(written);
        self.meter.bytes += written;
        let elapsed_ns = now_ns.saturating_sub(self.meter.since_ns);
        if elapsed_ns < METER_NS {
            return;
        }

        let share = u128::from(self.meter.bytes) * u128::from(FRAME_NS) / u128::from(elapsed_ns);
        let bytes = usize::try_from(share).unwrap_or(usize::MAX);
        self.len = bytes.clamp(FRAME_BYTES_MIN, self.len_max);
        self.limit_unsent(&fd, bytes.max(FRAME_BYTES_MIN));
        self.meter = RateMeter {
            since_ns: now_ns,
            bytes: 0,
        };
    }

    /// Without a limit more waits in the socket, and in-band echoes measure that.
    fn limit_unsent(&mut self, fd: impl AsFd, bytes: usize) {
        let unsent = u32::try_from(bytes).unwrap_or(u32::MAX);
        let _ = sockopt::TCP_NOTSENT_LOWAT.set(&fd, unsent);
        self.is_limited = unsent < PACKET_BYTES_MAX;
    }
}
