//! Many datagrams received per call, joined trains included.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use libc::{c_uint, iovec};

use super::ADDRESS_LEN;
use super::message::{Control, Message};
use crate::error::Result;
use crate::page_buffer::{PAGE_ALIGNMENT, PageBuffer};
use crate::syscall::syscall;

/// Most slots of a batch.
pub const SLOTS_MAX: usize = 128;

/// Longest slot in bytes: the largest datagram, and the largest train the kernel joins.
pub const SLOT_LEN_MAX: usize = 65536;

/// Buffers for up to `slots` messages per call (recvmmsg(2), Linux 2.6.33). A message is a datagram
/// or, on a socket with [`crate::sockopt::UDP_GRO`], a train of them.
///
/// Every slot begins at a page boundary, for the reason given at [`PageBuffer`]: slots of 65,535
/// bytes one behind the other would drift by a byte each. Memory is `slots` × (`slot_len` up to the
/// next boundary + about 300 bytes), allocated once: at most 8 MiB and a little.
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

// SAFETY: the raw pointers in `headers` and `slices` point into the other boxes, which move with
// the batch and are rewritten before every call; nothing else holds them.
unsafe impl Send for RecvBatch {}

impl RecvBatch {
    /// A batch of 1..=[`SLOTS_MAX`] slots of 1..=[`SLOT_LEN_MAX`] bytes; values outside are
    /// clamped. A slot shorter than the datagrams is legitimate: the rest is not even copied.
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
            controls: vec![Control::EMPTY; slots].into(),
        })
    }

    /// Receives what is there, as many messages as there are slots, and returns how many came. They
    /// replace those of the call before.
    ///
    /// # Errors
    /// `WouldBlock` when none is there; else the operating system's.
    pub fn recv(&mut self, fd: impl AsFd) -> io::Result<usize> {
        self.received = 0;
        self.prepare();
        let fd = fd.as_fd().as_raw_fd();
        let slots = self.headers.len() as c_uint;

        // With MSG_TRUNC the kernel returns the full length of what it cut. The type of the flags
        // differs between C libraries.
        let flags = (libc::MSG_DONTWAIT | libc::MSG_TRUNC) as _;
        // SAFETY: `prepare` made every header point to its own slot's slice, source and control
        // buffer with their true sizes; all are writable, and the timeout may be null.
        let received = syscall(unsafe {
            libc::recvmmsg(
                fd,
                self.headers.as_mut_ptr(),
                slots,
                flags,
                std::ptr::null_mut(),
            )
        })?;
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
            *slice = iovec {
                iov_base: data.as_mut_ptr().cast(),
                iov_len: self.slot_len,
            };
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
    pub fn message(&self, index: usize) -> Message<'_> {
        assert!(index < self.received, "only received messages may be read");
        let header = &self.headers[index];
        let full_len = header.msg_len as usize;
        let slot = &self.data[index * self.stride..][..self.slot_len];

        // SAFETY: the last call filled in this header, and its control buffer is a part of `self`.
        unsafe { Message::of(&header.msg_hdr, &self.sources[index], slot, full_len) }
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
