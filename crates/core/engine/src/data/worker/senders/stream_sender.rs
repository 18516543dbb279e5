//! Sending on a byte stream (TCP, Multipath TCP, SCTP).

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use linerate_model::spec::SendPath;
use linerate_model::{TestSpec, Transport};
use linerate_sys::sendfile_source::SourceFile;
use linerate_sys::{PageBuffer, errno, sockopt, stream_io, tcp_info, zerocopy};

use super::pace::{Pace, Portion, Turn, kernel_pacing_bytes_per_s};
use crate::data::budget::Budget;
use crate::data::worker::{Ended, Pump, Pumped, RepeatedBlock, Scratch};
use crate::measure::counters::StreamCounters;
use crate::measure::observations::Observations;

/// Where the bytes come from.
pub(crate) enum Source {
    /// One block or more in memory, copied by the kernel.
    Block(RepeatedBlock),
    /// One block or more in memory, borrowed by the kernel.
    ZeroCopy(Arc<PageBuffer>),
    /// Pages of a memory file that holds the block as often as fits one submission (`sendfile(2)`).
    Pages(Arc<SourceFile>),
    /// A file, once.
    File {
        file: File,
        buffer: PageBuffer,
        filled: usize,
        sent: usize,
    },
}

/// Sends blocks until stopped.
pub(crate) struct StreamSender {
    fd: Arc<OwnedFd>,
    counters: Arc<StreamCounters>,
    source: Source,
    block_len: usize,
    /// Bytes of the current block that are already sent.
    offset: usize,
    /// Largest number of bytes handed over per call.
    submission: usize,
    /// The user left the number of blocks per call open.
    is_adjustable: bool,
    pace: Option<Pace>,
    /// Limit of the kernel's pacing in bytes per second, if it has one.
    kernel_pacing: Option<u64>,
    /// The limit is lifted for the last block of a part.
    is_unlimited: bool,
    budget: Option<Arc<Budget>>,
    /// Bytes the budget granted and that are not sent yet.
    granted: u64,
    sent: u64,
    /// A write is a message that cannot be divided.
    is_whole: bool,
}

/// Bytes per call when no option fixes the block length: the fewest calls at the best cache use,
/// see docs/decisions/008-strategy-trials.md.
pub(crate) const SUBMISSION_BYTES: usize = 1024 * 1024;
/// Memory of gathered small blocks: as long as a block by default.
const MEMORY_BYTES: usize = 128 * 1024;
/// Calls per pump: small blocks must not pay the worker's loop each time, and a stop must be seen
/// soon.
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
        let submission = submission_bytes(spec);
        // The handshake has measured it; SCTP does not report it.
        let round_trip = tcp_info::tcp_info(&fd).map_or(0, |info| u64::from(info.rtt_us));

        Self {
            fd,
            counters,
            source,
            block_len,
            offset: 0,
            submission,
            is_adjustable: is_adjustable(spec),
            pace: Pace::new(spec, start_ns, Duration::from_micros(round_trip)),
            kernel_pacing: kernel_pacing_bytes_per_s(spec),
            is_unlimited: false,
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
            Source::Block(block) => block.send(fd, self.offset, want).map(Some),
            // One iovec entry per copy of the block: the pages of one block in memory stay in the
            // cache, whatever the length of the call.
            Source::ZeroCopy(memory) => {
                let copies = (want / memory.len()).max(1);
                let end = (self.offset + want).min(memory.len());
                let portion = if copies > 1 && self.offset == 0 {
                    &memory[..]
                } else {
                    &memory[self.offset..end]
                };
                let copies = if portion.len() == memory.len() {
                    copies
                } else {
                    1
                };

                lend(fd, portion, copies, &self.counters.observations).map(Some)
            }
            Source::Pages(pages) => {
                let mut position = self.offset as u64;
                // The file holds the block often enough that a call ends inside of it; sendfile(2)
                // stops at the end of the file.
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

    /// Bytes of the next call, or when to ask again.
    fn turn(&mut self, now_ns: u64) -> Result<usize, Pumped> {
        let Some(pace) = &mut self.pace else {
            return Ok(self.unpaced_portion());
        };
        let due = match pace.turn(self.sent, now_ns) {
            Turn::Wait(due_ns) => return Err(Pumped::Until(due_ns)),
            Turn::Continue { bytes } => bytes,
            Turn::Begin {
                bytes,
                is_closing,
                late_ns,
            } => {
                // At the begin of a portion only: later calls of it wait for room in the socket,
                // which is the path's delay and not the sender's.
                self.counters.observations.note_lateness(late_ns);
                self.limit_kernel_pacing(is_closing);
                bytes
            }
        };
        Ok(usize::try_from(due)
            .unwrap_or(usize::MAX)
            .min(self.submission))
    }

    /// The last block of a part has to arrive before its end, so the kernel does not spread it.
    fn limit_kernel_pacing(&mut self, is_closing: bool) {
        if let Some(limit) = self.kernel_pacing
            && is_closing != self.is_unlimited
        {
            self.is_unlimited = is_closing;
            // Without it the last block may come late; nothing else depends on it.
            let _ =
                sockopt::set_max_pacing_rate(&self.fd, if is_closing { u64::MAX } else { limit });
        }
    }

    /// Bytes of a call without a rate; a call that completes blocks ends on a block boundary.
    fn unpaced_portion(&self) -> usize {
        // A partial write of the kernel leaves the next call inside a block; ending it on the
        // boundary keeps the following ones whole.
        if self.submission >= self.block_len {
            self.submission - self.offset
        } else {
            self.submission.min(self.block_len - self.offset)
        }
    }

    /// Takes from the budget; `None` when it is used up.
    fn grant(&mut self, want: usize) -> Option<usize> {
        let Some(budget) = &self.budget else {
            return Some(want);
        };
        if self.granted == 0 {
            // Whole blocks, although a call may send a part of one: iperf3 counts `-k` in blocks.
            let blocks = (want / self.block_len).max(1) as u64;
            self.granted = budget.take_bytes(blocks, self.block_len as u64);
        }

        (self.granted > 0).then(|| want.min(usize::try_from(self.granted).unwrap_or(usize::MAX)))
    }

    fn account(&mut self, n: usize) {
        let position = self.offset + n;
        self.counters
            .add(n as u64, (position / self.block_len) as u64);
        self.offset = position % self.block_len;
        self.sent += n as u64;
        self.granted = self.granted.saturating_sub(n as u64);
    }
}

impl Pump for StreamSender {
    fn set_blocks_per_call(&mut self, blocks: u16) {
        if self.is_adjustable {
            self.submission = self.block_len * usize::from(blocks.max(1));
        }
    }

    fn pump(&mut self, now_ns: u64, scratch: &mut Scratch) -> Pumped {
        let mut room = scratch.room_bytes;
        for _ in 0..CALLS_PER_PUMP {
            if room == 0 {
                return Pumped::Again;
            }

            let portion = match self.turn(now_ns) {
                // An SCTP message that is cut to the room would arrive as two.
                Ok(portion) if self.is_whole => portion,
                Ok(portion) => portion.min(room),
                Err(not_yet) => return not_yet,
            };
            let Some(want) = self.grant(portion) else {
                return Pumped::Ended(Ended::AmountReached);
            };
            match self.write(want) {
                Ok(Some(n)) => {
                    self.account(n);
                    room = room.saturating_sub(n);
                    // The worker's loop costs little beside a call of 100 µs, and the other streams
                    // get their turn.
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
fn lend(
    fd: impl AsFd,
    portion: &[u8],
    copies: usize,
    observations: &Observations,
) -> io::Result<usize> {
    // Unread notifications count against `net.core.optmem_max` of the socket, and sends fail with
    // ENOBUFS when it is used up (Documentation/networking/msg_zerocopy.rst).
    while let Ok(returned) = zerocopy::take_completion(&fd) {
        observations.note_completions(returned.calls, returned.copied);
    }

    match zerocopy::send_gathered(&fd, portion, copies) {
        // Too much is lent; what comes back makes the socket ready.
        Err(e) if e.raw_os_error() == Some(errno::ENOBUFS) => Err(ErrorKind::WouldBlock.into()),
        sent => sent,
    }
}

/// The number of blocks per call may vary: no explicit option depends on it.
pub(crate) fn is_adjustable(spec: &TestSpec) -> bool {
    spec.transport == Transport::Tcp
        && spec.send_path == SendPath::Auto
        && !spec.block_len_explicit
        && spec.pacing.rate_bps.is_none()
        && spec.pacing.burst_blocks.is_none()
}

/// The sender writes less than a block at a time to keep its rate smooth.
pub(crate) fn paces_below_block(spec: &TestSpec) -> bool {
    usual_call_bytes(spec) < spec.block_len_bytes as usize
}

/// Bytes that most calls hand over.
pub(crate) fn usual_call_bytes(spec: &TestSpec) -> usize {
    let most = submission_bytes(spec);
    let portion = Portion::of(spec).zip(spec.pacing.rate_bps);
    portion.map_or(most, |(portion, rate_bps)| {
        usize::try_from(portion.bytes(rate_bps)).map_or(most, |bytes| bytes.min(most))
    })
}

/// Largest number of bytes of one call: what the user fixed exactly, otherwise what is fast or
/// smooth.
fn submission_bytes(spec: &TestSpec) -> usize {
    let block_len = (spec.block_len_bytes as usize).max(1);
    match Portion::of(spec) {
        Some(Portion::Bytes(bytes)) => return usize::try_from(bytes).unwrap_or(usize::MAX),
        Some(Portion::Period(_)) => return SUBMISSION_BYTES.max(block_len),
        None => {}
    }

    // An SCTP send is one message: it is taken whole or refused.
    if spec.transport == Transport::Sctp || spec.block_len_explicit && !spec.coalesce {
        return block_len;
    }

    let unit = block_len * blocks_per_memory(spec);
    (SUBMISSION_BYTES / unit).max(1) * unit
}

/// Blocks that lie one behind the other in memory: one, or as many small ones as make a large one
/// when they may share a write.
pub(crate) fn blocks_per_memory(spec: &TestSpec) -> usize {
    if spec.coalesce && spec.block_len_explicit {
        (MEMORY_BYTES / (spec.block_len_bytes as usize).max(1)).max(1)
    } else {
        1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::payload;
    use crate::data::worker::tests::connected;

    const BLOCK: u32 = 131_072;

    /// The socket is one of datagrams, so that each arrives as it was written. Time is virtual.
    #[test]
    fn a_portion_is_one_write_even_across_the_end_of_a_block() {
        let mut spec = TestSpec {
            block_len_bytes: BLOCK,
            ..TestSpec::default()
        };
        spec.pacing.rate_bps = Some(10_000_000);

        let (sender, receiver) = connected();
        receiver.set_nonblocking(true).expect("a socket");
        let block = payload::shared_block(BLOCK as usize, 0).expect("memory");
        let counters = Arc::new(StreamCounters::default());
        let source = Source::Block(RepeatedBlock::new(Arc::clone(&block), BLOCK as usize));
        let mut pump = StreamSender::new(Arc::new(sender.into()), counters, source, &spec, 0, None);

        let (mut scratch, mut now_ns, mut buffer) = (Scratch::default(), 0, [0; 65_535]);
        let mut lengths = Vec::new();
        let mut content = Vec::new();

        while now_ns < 1_000_000_000 {
            let Pumped::Until(due_ns) = pump.pump(now_ns, &mut scratch) else {
                panic!("portions leave at once")
            };
            while let Ok(len) = receiver.recv(&mut buffer) {
                lengths.push(len);
                content.extend_from_slice(&buffer[..len]);
            }

            now_ns = due_ns;
        }

        assert_eq!(lengths[0], 12_500, "half a period");
        assert_eq!(lengths[1..], [25_000; 50]);
        let expected = block[..BLOCK as usize].iter().cycle().take(content.len());
        assert!(content.iter().eq(expected), "blocks follow each other");
    }
}
