//! Receiving from a byte stream (TCP, Multipath TCP, SCTP).

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use linerate_model::StreamRole;
use linerate_sys::{clock, stream_io};

use super::scratch::RECEIVE_BYTES;
use super::{Ended, Observer, Pump, Pumped, Scratch};
use crate::counters::StreamCounters;
use crate::target::Target;

/// Where the bytes go.
pub(crate) enum Sink {
    /// Into memory, as an application would take them, and nowhere else.
    Memory,
    /// Discarded inside the kernel (`MSG_TRUNC`, tcp(7)).
    Discard,
    /// Into a file.
    File(File),
}

/// Receives until told otherwise.
pub(crate) struct StreamReceiver {
    fd: Arc<OwnedFd>,
    counters: Arc<StreamCounters>,
    sink: Sink,
    block_len: u64,
    total: u64,
    nap: Nap,
    target: Option<Arc<Target>>,
    observer: Option<Box<dyn Observer>>,
    /// Most bytes of one read into memory.
    read_len: usize,
    /// The peer's end of the stream is what ends the test.
    awaits_end: bool,
}

/// Calls per pump, so that a flood on one stream leaves its neighbours their turn.
const CALLS_PER_PUMP: u32 = 16;
/// A discarding read has no buffer to fit into cache.
const DISCARD_BYTES: usize = 4 * 1024 * 1024;

impl StreamReceiver {
    pub(crate) fn new(
        fd: Arc<OwnedFd>,
        counters: Arc<StreamCounters>,
        sink: Sink,
        block_len: u32,
        may_nap: bool,
        target: Option<Arc<Target>>,
    ) -> Self {
        let nap = Nap::new(may_nap);
        Self {
            fd,
            counters,
            sink,
            block_len: u64::from(block_len.max(1)),
            total: 0,
            nap,
            target,
            observer: None,
            read_len: RECEIVE_BYTES,
            awaits_end: false,
        }
    }

    /// Notices at once that the peer has closed the stream, for one more call whenever the queue is empty.
    pub(crate) fn awaiting_end(mut self) -> Self {
        self.awaits_end = true;
        self
    }

    /// Takes at most `len` bytes with one call.
    pub(crate) fn reading_at_most(mut self, len: u32) -> Self {
        self.read_len = usize::try_from(len).unwrap_or(RECEIVE_BYTES).clamp(1, RECEIVE_BYTES);
        self
    }

    /// Lets `observer` see everything that is read into memory.
    pub(crate) fn observed_by(mut self, observer: Box<dyn Observer>) -> Self {
        self.observer = Some(observer);
        self
    }

    fn read(&mut self, scratch: &mut Scratch, len: usize) -> io::Result<usize> {
        let fd = self.fd.as_fd();
        match &mut self.sink {
            Sink::Memory => stream_io::recv(fd, &mut scratch.bytes()[..len]),
            Sink::Discard => stream_io::recv_discard(fd, len),
            Sink::File(file) => {
                let n = stream_io::recv(fd, &mut scratch.bytes()[..len])?;
                file.write_all(&scratch.bytes()[..n])?;
                Ok(n)
            }
        }
    }

    fn capacity(&self) -> usize {
        match self.sink {
            Sink::Memory | Sink::File(_) => self.read_len,
            Sink::Discard => DISCARD_BYTES,
        }
    }

    /// Counts every byte read. Blocks are derived from bytes, because the sizes of reads mean nothing.
    fn account(&mut self, n: usize) {
        let blocks_before = self.total / self.block_len;
        self.total += n as u64;
        self.counters.add(n as u64, self.total / self.block_len - blocks_before);
        if let Some(target) = &self.target {
            target.add(n as u64);
        }
    }
}

impl Pump for StreamReceiver {
    fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    fn role(&self) -> StreamRole {
        StreamRole::Receiver
    }

    fn pump(&mut self, _: u64, scratch: &mut Scratch) -> Pumped {
        let mut taken = 0;
        for _ in 0..CALLS_PER_PUMP {
            let len = self.capacity().min(scratch.room() - taken);
            if len == 0 {
                return Pumped::Again;
            }
            match self.read(scratch, len) {
                Ok(0) => return Pumped::Ended(Ended::Eof),
                Ok(n) => {
                    self.account(n);
                    if let Some(observer) = &mut self.observer {
                        observer.saw(&scratch.bytes()[..n.min(RECEIVE_BYTES)]);
                    }
                    taken += n;
                    // A short read says that the queue is empty (epoll(7), "Questions and answers"), but not whether the
                    // peer has closed behind it.
                    if n < len && !self.awaits_end {
                        return self.nap.after(taken);
                    }
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => return self.nap.after(taken),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Pumped::Ended(Ended::Failed(e)),
            }
        }
        Pumped::Again
    }
}

/// Decides whether a receiver waits for the next segment or lets data gather first.
///
/// Being woken for each segment costs the *sender* an interrupt to another processor, about a quarter of its time at
/// full speed; a receiver that looks every 30 µs spares it and finds several segments at once. That only pays, and
/// only is invisible, while data arrives much faster than it needs to be looked at.
#[derive(Debug)]
struct Nap {
    allowed: bool,
    last_ns: u64,
    /// Consecutive looks that found enough to justify another nap.
    streak: u32,
    /// Sum of what those looks found, to follow the rate.
    rate_bytes_per_ns: f64,
}

/// Time between two looks.
const NAP_NS: u64 = 30_000;
/// Below this rate (2 Gbit/s) waking for data is cheap enough.
const NAP_MIN_RATE_BYTES_PER_NS: f64 = 0.25;
/// More than this in one look says that the window, not the sender, is about to limit: look at once.
const NAP_MAX_LOOK_BYTES: usize = 2 * 1024 * 1024;
/// Looks that must confirm the rate first.
const NAP_STREAK: u32 = 8;

impl Nap {
    fn new(allowed: bool) -> Self {
        Self {
            allowed,
            last_ns: 0,
            streak: 0,
            rate_bytes_per_ns: 0.0,
        }
    }

    /// `taken` bytes were found; the pause begins when they have been read, however long that took.
    fn after(&mut self, taken: usize) -> Pumped {
        if !self.allowed {
            return Pumped::Blocked;
        }
        let now_ns = clock::monotonic_ns();
        let elapsed = now_ns.saturating_sub(self.last_ns).max(1);
        self.last_ns = now_ns;
        // Exponential average over about eight looks.
        let rate = taken as f64 / elapsed as f64;
        self.rate_bytes_per_ns += (rate - self.rate_bytes_per_ns) / 8.0;
        self.streak = if self.rate_bytes_per_ns > NAP_MIN_RATE_BYTES_PER_NS {
            self.streak + 1
        } else {
            0
        };
        if taken > 0 && taken < NAP_MAX_LOOK_BYTES && self.streak >= NAP_STREAK {
            Pumped::Nap(now_ns + NAP_NS)
        } else {
            Pumped::Blocked
        }
    }
}
