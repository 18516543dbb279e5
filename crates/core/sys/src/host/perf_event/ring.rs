//! The ring of memory that the kernel writes records into and this process reads them from.

use std::os::fd::AsRawFd;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};

use super::record::{HEADER_BYTES, Record};
use super::{EventError, IOC_SET_OUTPUT, PerfEvent};
use crate::error::{During, OsError};
use crate::process;

/// Where `struct perf_event_mmap_page` has the ends of the unread part, in bytes since the begin.
const HEAD: usize = 1024;
const TAIL: usize = 1032;

/// Records of one CPU.
#[derive(Debug)]
pub struct Ring {
    /// The events that write into it; the first one owns it.
    events: Vec<PerfEvent>,
    /// The page of the ends, and the records behind it.
    base: NonNull<u8>,
    page_bytes: usize,
    record_bytes: usize,
    /// One record, in one piece.
    copy: Vec<u8>,
    has_stacks: bool,
}

// SAFETY: the mapping belongs to this value alone and to no thread, and every access to it takes
// `&mut self`.
unsafe impl Send for Ring {}

impl Ring {
    /// The ring of an event with this number of pages for records, a power of 2. The kernel grants
    /// every user 516 KiB of rings for each CPU (`kernel.perf_event_mlock_kb`).
    ///
    /// # Errors
    /// `NotPermitted` where the memory that this user may lock is used up.
    pub fn new(event: PerfEvent, pages: usize) -> Result<Self, EventError> {
        // A page has some KiB.
        let page_bytes = usize::try_from(process::page_bytes()).unwrap_or(4096);
        let record_bytes = page_bytes * pages;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let fd = event.fd.as_raw_fd();

        // SAFETY: no address is requested, so that no memory in use is replaced.
        let mapped = unsafe {
            libc::mmap(
                ptr::null_mut(),
                page_bytes + record_bytes,
                protection,
                libc::MAP_SHARED,
                fd,
                0,
            )
        };
        if mapped == libc::MAP_FAILED {
            let error = std::io::Error::last_os_error();
            return Err(OsError::new("mmap", "ring of events", error).into());
        }
        let base = NonNull::new(mapped.cast()).expect("mmap(2) returns no null pointer");

        Ok(Self {
            has_stacks: event.has_stacks,
            events: vec![event],
            base,
            page_bytes,
            record_bytes,
            copy: Vec::new(),
        })
    }

    /// Lets another event of the same CPU write into this ring: records keep their order.
    ///
    /// # Errors
    /// The operating system's.
    pub fn add(&mut self, event: PerfEvent) -> Result<(), EventError> {
        event
            .control(IOC_SET_OUTPUT, self.event().fd.as_raw_fd())
            .during("ioctl PERF_EVENT_IOC_SET_OUTPUT", "")?;
        self.events.push(event);
        Ok(())
    }

    /// The event that the ring was made for.
    ///
    /// # Panics
    /// Never: a ring is made with an event and keeps it.
    pub fn event(&self) -> &PerfEvent {
        self.events.first().expect("a ring has its first event")
    }

    /// The events that were added, in that order.
    pub fn others(&self) -> &[PerfEvent] {
        self.events.get(1..).unwrap_or_default()
    }

    /// Reads all records that the kernel has written by now, the oldest first.
    pub fn drain(&mut self, mut take: impl FnMut(Record<'_>)) {
        // Acquire: the records were written before the head was (perf_event_open(2) requires a read
        // barrier here).
        let head = self.end(HEAD).load(Ordering::Acquire);
        // Relaxed: this process alone writes the tail.
        let mut tail = self.end(TAIL).load(Ordering::Relaxed);

        while let Some((kind, length)) = self.header(tail, head) {
            self.read(tail, length);
            tail = tail.wrapping_add(length as u64);
            let body = self.copy.get(HEADER_BYTES..).unwrap_or_default();
            if let Some(record) = Record::parse(kind, body, self.has_stacks) {
                take(record);
            }
        }

        // Release: the kernel must not overwrite records before they were read. What is no record
        // is skipped.
        self.end(TAIL).store(head, Ordering::Release);
    }

    /// Kind and length of the record that begins at `tail`; `None` where there is none.
    fn header(&mut self, tail: u64, head: u64) -> Option<(u32, usize)> {
        let unread = usize::try_from(head.wrapping_sub(tail)).ok()?;
        // The kernel never lets the head overtake the tail; if it did, the copy would still be of
        // the mapping.
        if !(HEADER_BYTES..=self.record_bytes).contains(&unread) {
            return None;
        }

        self.read(tail, HEADER_BYTES);
        let kind = u32::from_ne_bytes(*self.copy.first_chunk()?);
        let length = u16::from_ne_bytes(*self.copy.get(6..)?.first_chunk()?);
        let length = usize::from(length);
        (HEADER_BYTES..=unread)
            .contains(&length)
            .then_some((kind, length))
    }

    /// Copies `length` bytes from `position` on, of which a part may be at the begin of the ring.
    fn read(&mut self, position: u64, length: usize) {
        debug_assert!(length <= self.record_bytes);
        // The remainder is below the size of the ring.
        let from = (position % self.record_bytes as u64) as usize;
        let first = length.min(self.record_bytes - from);
        self.copy.clear();
        self.copy.reserve(length);

        // SAFETY: `from + first` and `length - first` are at most `record_bytes`, which the mapping
        // has behind its first page; the copy has room for `length` bytes and is elsewhere. The
        // kernel does not write between tail and head.
        unsafe {
            let records = self.base.as_ptr().add(self.page_bytes);
            let copy = self.copy.as_mut_ptr();
            ptr::copy_nonoverlapping(records.add(from), copy, first);
            ptr::copy_nonoverlapping(records, copy.add(first), length - first);
            self.copy.set_len(length);
        }
    }

    /// One end of the unread part.
    fn end(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: both offsets are multiples of 8 in the first page of the mapping, which lives as
        // long as `self`; the kernel and this process access them atomically alone.
        unsafe { AtomicU64::from_ptr(self.base.as_ptr().add(offset).cast()) }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        let length = self.page_bytes + self.record_bytes;
        // SAFETY: the mapping is ours, has this length, and no reference into it outlives `self`.
        unsafe { libc::munmap(self.base.as_ptr().cast(), length) };
    }
}
