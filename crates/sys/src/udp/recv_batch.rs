//! Many datagrams received per call, joined trains included.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd};

use libc::{c_int, c_uint, iovec};

use super::{ADDRESS_LEN, UDP_GRO};
use crate::clock::RealtimeOffset;
use crate::error::Result;
use crate::page_buffer::{PAGE_ALIGNMENT, PageBuffer};
use crate::socket::unmap;
use crate::syscall::{socket_addr, syscall};

/// Most slots of a batch.
pub const SLOTS_MAX: usize = 128;

/// Longest slot in bytes: the largest datagram, and the largest train the kernel joins.
pub const SLOT_LEN_MAX: usize = 65536;

/// Buffers for up to `slots` messages per call (recvmmsg(2), Linux 2.6.33). A message is a datagram or, on a socket with
/// [`crate::sockopt::UDP_GRO`], a train of them.
///
/// Every slot begins at a page boundary, for the reason given at [`PageBuffer`]: slots of 65,535 bytes one behind the other
/// would drift by a byte each. Memory is `slots` × (`slot_len` up to the next boundary + about 300 bytes), allocated once:
/// at most 8 MiB and a little.
pub struct RecvBatch {
    slot_len: usize,
    received: usize,
    data: PageBuffer,
    /// From the beginning of one slot to that of the next.
    stride: usize,
    headers: Box<[libc::mmsghdr]>,
    slices: Box<[iovec]>,
    sources: Box<[libc::sockaddr_storage]>,
    controls: Box<[Control]>,
}

// SAFETY: the raw pointers in `headers` and `slices` point into the other boxes, which move with the batch and are
// written anew before every call; nothing else holds them.
unsafe impl Send for RecvBatch {}

/// One received message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message<'a> {
    /// The bytes, cut at the slot's length.
    pub data: &'a [u8],
    /// Payload of one datagram. Less than [`Self::full_len`] when the kernel joined several, of which the last may be
    /// shorter; otherwise equal to it.
    pub segment_len: usize,
    /// The sender, unmapped.
    pub from: Option<SocketAddr>,
    /// Length of the message as it came; what exceeds the slot is lost.
    pub full_len: usize,
    /// When the kernel received it, by the wall clock, ns since 1970; of joined datagrams the first. `None` without
    /// [`crate::sockopt::SO_TIMESTAMPNS`].
    pub stamped_unix_ns: Option<u64>,
}

impl<'a> Message<'a> {
    /// How many datagrams the message is, at least one: an empty datagram is one too.
    #[must_use]
    pub fn datagrams(&self) -> usize {
        self.full_len.div_ceil(self.segment_len.max(1)).max(1)
    }

    /// When it arrived by the monotonic clock. `read_ns`, when it was read, stands in for a missing stamp and bounds one.
    #[must_use]
    pub fn arrival_ns(&self, offset: RealtimeOffset, read_ns: u64) -> u64 {
        self.stamped_unix_ns.map_or(read_ns, |stamp_ns| offset.monotonic_ns(stamp_ns).min(read_ns))
    }

    /// The datagrams one by one, as far as they are in [`Self::data`]; nothing for an empty one.
    pub fn segments(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.data.chunks(self.segment_len.max(1))
    }
}

impl RecvBatch {
    /// A batch of 1..=[`SLOTS_MAX`] slots of 1..=[`SLOT_LEN_MAX`] bytes; values outside are brought inside. A slot
    /// shorter than the datagrams is legitimate: the rest is not even copied.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn new(slots: usize, slot_len: usize) -> Result<Self> {
        let slots = slots.clamp(1, SLOTS_MAX);
        let slot_len = slot_len.clamp(1, SLOT_LEN_MAX);
        let stride = slot_len.next_multiple_of(PAGE_ALIGNMENT);
        // SAFETY: all-zero bytes are a valid mmsghdr, iovec and sockaddr_storage.
        let (header, slice, source) = unsafe { std::mem::zeroed() };
        Ok(Self {
            slot_len,
            received: 0,
            data: PageBuffer::zeroed(slots * stride)?,
            stride,
            headers: vec![header; slots].into(),
            slices: vec![slice; slots].into(),
            sources: vec![source; slots].into(),
            controls: vec![Control([0; CONTROL_WORDS]); slots].into(),
        })
    }

    /// Receives what is there, as many messages as there are slots, and returns how many came. They replace those of
    /// the call before.
    ///
    /// # Errors
    /// `WouldBlock` when none is there; else the operating system's.
    pub fn recv(&mut self, fd: impl AsFd) -> io::Result<usize> {
        self.received = 0;
        self.prepare();
        let fd = fd.as_fd().as_raw_fd();
        let slots = self.headers.len() as c_uint;
        // With MSG_TRUNC the kernel returns the full length of what it cut. The type of the flags differs between C
        // libraries.
        let flags = (libc::MSG_DONTWAIT | libc::MSG_TRUNC) as _;
        // SAFETY: `prepare` made every header point to its own slot's slice, source and control buffer with their
        // true sizes; all are writable, and the timeout may be null.
        let received =
            syscall(unsafe { libc::recvmmsg(fd, self.headers.as_mut_ptr(), slots, flags, std::ptr::null_mut()) })?;
        self.received = usize::try_from(received).unwrap_or_default();
        Ok(self.received)
    }

    /// Points every header to its slot again; the kernel overwrote the lengths.
    fn prepare(&mut self) {
        let slots = self
            .headers
            .iter_mut()
            .zip(&mut self.slices)
            .zip(self.data.chunks_exact_mut(self.stride))
            .zip(&mut self.sources)
            .zip(&mut self.controls);
        for ((((header, slice), data), source), control) in slots {
            *slice = iovec { iov_base: data.as_mut_ptr().cast(), iov_len: self.slot_len };
            let message = &mut header.msg_hdr;
            message.msg_name = std::ptr::from_mut(source).cast();
            message.msg_namelen = ADDRESS_LEN;
            message.msg_iov = slice;
            message.msg_iovlen = 1;
            message.msg_control = std::ptr::from_mut(control).cast();
            message.msg_controllen = size_of::<Control>() as _;
            message.msg_flags = 0;
        }
    }

    /// The message in slot `index` of the last [`Self::recv`].
    ///
    /// # Panics
    /// When `index` is not below the number that call returned: a defect of the caller.
    #[must_use]
    pub fn message(&self, index: usize) -> Message<'_> {
        assert!(index < self.received, "only received messages may be read");
        let header = &self.headers[index];
        let full_len = header.msg_len as usize;
        let slot = &self.data[index * self.stride..][..self.slot_len];
        let attached = Attached::of(&header.msg_hdr);
        let from = (header.msg_hdr.msg_namelen > 0).then(|| socket_addr(&self.sources[index])).flatten();
        Message {
            data: &slot[..full_len.min(self.slot_len)],
            segment_len: attached.segment_len.map_or(full_len, |len| len.min(full_len)),
            from: from.map(unmap),
            full_len,
            stamped_unix_ns: attached.stamped_unix_ns,
        }
    }
}

impl std::fmt::Debug for RecvBatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RecvBatch")
            .field("slots", &self.headers.len())
            .field("slot_len", &self.slot_len)
            .field("received", &self.received)
            .finish()
    }
}

/// What the kernel attached to a message.
#[derive(Default)]
struct Attached {
    /// Payload of one datagram of a joined train.
    segment_len: Option<usize>,
    stamped_unix_ns: Option<u64>,
}

impl Attached {
    fn of(message: &libc::msghdr) -> Self {
        let mut attached = Self::default();
        // SAFETY: the kernel filled in the control buffer of this message and set its length to what it wrote, so header
        // and data of each message it put there lie inside; reads are unaligned and no longer than the data.
        unsafe {
            let mut header = libc::CMSG_FIRSTHDR(message);
            while !header.is_null() {
                let (kind, data) = (((*header).cmsg_level, (*header).cmsg_type), libc::CMSG_DATA(header));
                let holds = |len: usize| (*header).cmsg_len as usize >= libc::CMSG_LEN(len as c_uint) as usize;
                if kind == (libc::SOL_UDP, UDP_GRO) && holds(size_of::<c_int>()) {
                    let len = data.cast::<c_int>().read_unaligned();
                    attached.segment_len = usize::try_from(len).ok().filter(|len| *len > 0);
                } else if kind == (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) && holds(size_of::<libc::timespec>()) {
                    attached.stamped_unix_ns = nanoseconds(&data.cast::<libc::timespec>().read_unaligned());
                }
                header = libc::CMSG_NXTHDR(message, header);
            }
        }
        attached
    }
}

fn nanoseconds(time: &libc::timespec) -> Option<u64> {
    let (seconds, rest) = (u64::try_from(time.tv_sec).ok()?, u64::try_from(time.tv_nsec).ok()?);
    seconds.checked_mul(1_000_000_000)?.checked_add(rest)
}

/// Room for two control messages, an `int` and a time, aligned as `cmsghdr` wants it.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct Control([u64; CONTROL_WORDS]);

const CONTROL_WORDS: usize = 7;

// SAFETY: CMSG_SPACE only computes.
const NEEDED_BYTES: u32 =
    unsafe { libc::CMSG_SPACE(size_of::<c_int>() as c_uint) + libc::CMSG_SPACE(size_of::<libc::timespec>() as c_uint) };
const _: () = assert!(NEEDED_BYTES as usize <= size_of::<Control>());
const _: () = assert!(align_of::<Control>() >= align_of::<libc::cmsghdr>());
