//! Sending on a byte stream (TCP, Multipath TCP, SCTP).

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use linerate_model::{StreamRole, TestSpec, Transport};
use linerate_sys::source_file::SourceFile;
use linerate_sys::stream_io;
use linerate_sys::{errno, lending};

use super::{Ended, Pump, Pumped, Scratch};
use crate::budget::Budget;
use crate::counters::StreamCounters;
use crate::observations::Observations;
use crate::pacing::Schedule;

/// Where the bytes come from.
pub(crate) enum Source {
    /// The same memory again and again, copied by the kernel; it holds one block or more.
    Block(Arc<[u8]>),
    /// The same, borrowed by the kernel.
    Lent(Arc<[u8]>),
    /// Pages of a memory file that holds the block as often as fits one submission (`sendfile(2)`).
    Pages(Arc<SourceFile>),
    /// A file, once.
    File {
        file: File,
        buffer: Vec<u8>,
        filled: usize,
        sent: usize,
    },
}

/// Sends blocks until told otherwise.
pub(crate) struct StreamSender {
    fd: Arc<OwnedFd>,
    counters: Arc<StreamCounters>,
    source: Source,
    block_len: usize,
    /// Bytes of the current block that are already sent.
    offset: usize,
    /// Largest number of bytes handed over per call.
    submission: usize,
    schedule: Option<Schedule>,
    budget: Option<Arc<Budget>>,
    /// Bytes the budget granted and that are not sent yet.
    granted: u64,
    sent: u64,
    /// A write is a message that cannot be divided.
    is_whole: bool,
}

/// Bytes per call when nobody fixed the block length: the fewest calls at the best cache use, see ARCHITECTURE.md.
pub(crate) const SUBMISSION_BYTES: usize = 1024 * 1024;
/// Memory of gathered small blocks: as long as a block by default.
const MEMORY_BYTES: usize = 128 * 1024;
/// A paced stream writes what is due in this time, so that a slow one does not send a whole block at once …
const PACED_CHUNK_NS: u64 = 1_000_000;
/// … and a fast one does not pay a wake-up per block: the kernel spreads the write.
const FAST_CHUNK_NS: u64 = 4_000_000;
/// From 100 Mbit/s on a stream is fast.
const FAST_BYTES_PER_S: u64 = 12_500_000;
/// Smallest paced write: about one segment on Ethernet.
const PACED_CHUNK_MIN_BYTES: usize = 1448;
/// Calls per pump: small blocks must not pay the worker's loop each time, and a stop must be seen soon.
const CALLS_PER_PUMP: u32 = 64;
/// A write of this size is worth a turn of the worker's loop.
const LARGE_WRITE_BYTES: usize = 256 * 1024;

impl StreamSender {
    pub(crate) fn new(
        fd: Arc<OwnedFd>,
        counters: Arc<StreamCounters>,
        source: Source,
        spec: &TestSpec,
        start_ns: u64,
        budget: Option<Arc<Budget>>,
    ) -> Self {
        let block_len = (spec.block_len_bytes as usize).max(1);
        let schedule = spec.pacing.rate_bps.map(|rate| Schedule::new(start_ns, rate));
        let submission = submission_bytes(spec);
        Self {
            fd,
            counters,
            source,
            block_len,
            offset: 0,
            submission,
            schedule,
            budget,
            granted: 0,
            sent: 0,
            is_whole: spec.transport == Transport::Sctp,
        }
    }

    /// One write; `Ok(None)` when the source has nothing left.
    fn write(&mut self, want: usize) -> io::Result<Option<usize>> {
        let fd = self.fd.as_fd();
        match &mut self.source {
            Source::Block(memory) => {
                let copies = want / memory.len();
                if self.offset == 0 && copies > 1 {
                    stream_io::send_gathered(fd, memory, copies).map(Some)
                } else {
                    let end = (self.offset + want).min(memory.len());
                    stream_io::send(fd, &memory[self.offset..end]).map(Some)
                }
            }
            Source::Lent(memory) => {
                let copies = (want / memory.len()).max(1);
                let end = (self.offset + want).min(memory.len());
                let portion = if copies > 1 && self.offset == 0 {
                    &memory[..]
                } else {
                    &memory[self.offset..end]
                };
                let copies = if portion.len() == memory.len() { copies } else { 1 };
                lend(fd, portion, copies, &self.counters.observations).map(Some)
            }
            Source::Pages(pages) => {
                let mut position = self.offset as u64;
                stream_io::send_file(fd, pages.as_fd(), &mut position, want).map(Some)
            }
            Source::File {
                file,
                buffer,
                filled,
                sent,
            } => {
                if sent == filled {
                    *filled = file.read(buffer)?;
                    *sent = 0;
                    if *filled == 0 {
                        return Ok(None);
                    }
                }
                let end = sent.saturating_add(want).min(*filled);
                let n = stream_io::send(fd, &buffer[*sent..end])?;
                *sent += n;
                Ok(Some(n))
            }
        }
    }

    /// Bytes of the next call; a call that completes blocks ends on a block boundary.
    fn portion(&self) -> usize {
        if self.submission >= self.block_len {
            self.submission - self.offset
        } else {
            self.submission.min(self.block_len - self.offset)
        }
    }

    /// Takes from the budget; `None` when it is used up.
    fn grant(&mut self, want: usize) -> Option<usize> {
        let Some(budget) = &self.budget else { return Some(want) };
        if self.granted == 0 {
            let blocks = (want / self.block_len).max(1) as u64;
            self.granted = budget.take_bytes(blocks, self.block_len as u64);
        }
        (self.granted > 0).then(|| want.min(usize::try_from(self.granted).unwrap_or(usize::MAX)))
    }

    fn account(&mut self, n: usize) {
        let position = self.offset + n;
        self.counters.add(n as u64, (position / self.block_len) as u64);
        self.offset = position % self.block_len;
        self.sent += n as u64;
        self.granted = self.granted.saturating_sub(n as u64);
    }
}

impl Pump for StreamSender {
    fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    fn role(&self) -> StreamRole {
        StreamRole::Sender
    }

    fn pump(&mut self, now_ns: u64, scratch: &mut Scratch) -> Pumped {
        let mut room = scratch.room();
        for _ in 0..CALLS_PER_PUMP {
            if room == 0 {
                return Pumped::Again;
            }
            if let Some(schedule) = &self.schedule {
                let due_ns = schedule.due_ns(self.sent);
                if due_ns > now_ns {
                    return Pumped::Until(due_ns);
                }
                self.counters.observations.note_lateness(now_ns - due_ns);
            }
            let portion = if self.is_whole {
                self.portion()
            } else {
                self.portion().min(room)
            };
            let Some(want) = self.grant(portion) else {
                return Pumped::Ended(Ended::AmountReached);
            };
            match self.write(want) {
                Ok(Some(n)) => {
                    self.account(n);
                    room = room.saturating_sub(n);
                    if n >= LARGE_WRITE_BYTES {
                        break;
                    }
                }
                Ok(None) => return Pumped::Ended(Ended::AmountReached),
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Pumped::Blocked,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Pumped::Ended(Ended::Failed(e)),
            }
        }
        Pumped::Again
    }
}

/// Lends memory to the kernel, which returns that of earlier calls first.
fn lend(fd: BorrowedFd<'_>, portion: &[u8], copies: usize, observations: &Observations) -> io::Result<usize> {
    while let Ok(returned) = lending::take_returned(fd) {
        observations.note_returned(returned.calls, returned.copied);
    }
    match lending::lend_gathered(fd, portion, copies) {
        // Too much is lent; what comes back makes the socket ready.
        Err(e) if e.raw_os_error() == Some(errno::ENOBUFS) => Err(ErrorKind::WouldBlock.into()),
        sent => sent,
    }
}

/// The sender writes less than a block at a time to keep its rate smooth.
pub(crate) fn paces_below_block(spec: &TestSpec) -> bool {
    submission_bytes(spec) < spec.block_len_bytes as usize
}

/// How much one call hands over: what the user fixed exactly, otherwise what is fast or smooth.
pub(crate) fn submission_bytes(spec: &TestSpec) -> usize {
    let block_len = (spec.block_len_bytes as usize).max(1);
    // An SCTP send is one message: it is taken whole or refused.
    if spec.transport == Transport::Sctp {
        return block_len;
    }
    let schedule = spec.pacing.rate_bps.map(|rate| Schedule::new(0, rate));
    match (schedule, spec.pacing.burst_blocks) {
        (_, Some(burst)) => block_len.saturating_mul(burst.max(1) as usize),
        (Some(_), None) if spec.block_len_explicit => block_len,
        (Some(schedule), None) => paced_chunk(&schedule, block_len),
        (None, None) if spec.block_len_explicit && !spec.coalesce => block_len,
        (None, None) => {
            let unit = block_len * blocks_per_memory(spec);
            (SUBMISSION_BYTES / unit).max(1) * unit
        }
    }
}

/// Blocks that lie one behind the other in memory: one, or as many small ones as make a large one when they may share a
/// write.
pub(crate) fn blocks_per_memory(spec: &TestSpec) -> usize {
    if spec.coalesce && spec.block_len_explicit {
        (MEMORY_BYTES / (spec.block_len_bytes as usize).max(1)).max(1)
    } else {
        1
    }
}

/// Less than a block, or whole blocks.
fn paced_chunk(schedule: &Schedule, block_len: usize) -> usize {
    let fast = schedule.bytes_in(1_000_000_000) >= FAST_BYTES_PER_S;
    let due = schedule.bytes_in(if fast { FAST_CHUNK_NS } else { PACED_CHUNK_NS });
    let chunk = usize::try_from(due).unwrap_or(usize::MAX).min(SUBMISSION_BYTES);
    match chunk / block_len {
        0 => chunk.max(PACED_CHUNK_MIN_BYTES).min(block_len),
        blocks => blocks * block_len,
    }
}
