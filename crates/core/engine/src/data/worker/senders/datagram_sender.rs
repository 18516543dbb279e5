//! Sending UDP datagrams.

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use linerate_model::TestSpec;
use linerate_model::spec::Segmentation;
use linerate_sys::{OsError, PageBuffer, errno, udp};

use crate::data::budget::Budget;
use crate::data::pacing::Schedule;
use crate::data::worker::{Ended, Pump, Pumped, Scratch, SequenceWriter};
use crate::measure::counters::StreamCounters;

/// System call of a batch; a way that the system refuses is replaced by the next one for
/// good.
#[derive(PartialEq, Eq)]
enum Batching {
    /// One segmented buffer (`UDP_SEGMENT`, udp(7)).
    Segmented,
    /// One call, many datagrams (`sendmmsg(2)`).
    Many,
    /// One call per datagram.
    Single,
}

/// Content of datagrams.
pub(crate) struct Datagrams<'a> {
    /// Payload of each.
    pub block: &'a [u8],
    /// The other end takes large bursts.
    pub peer_coalesces: bool,
    /// Writes their heads.
    pub sequence: Box<dyn SequenceWriter>,
}

/// Sends numbered datagrams until stopped.
pub(crate) struct DatagramSender {
    fd: Arc<OwnedFd>,
    counters: Arc<StreamCounters>,
    /// `batch` datagrams in a row; payload stays, headers are rewritten.
    buffer: PageBuffer,
    datagram_len: usize,
    sequence: Box<dyn SequenceWriter>,
    batch: usize,
    burst: u64,
    /// The start of each datagram is met to the microsecond: they are so far apart that spinning
    /// before each costs next to nothing, or their times are what is measured.
    pub spins: bool,
    batching: Batching,
    schedule: Option<Schedule>,
    budget: Option<Arc<Budget>>,
    granted: u64,
    /// Datagrams sent so far.
    pub sent: u64,
    /// Continues while the peer's port is closed (ICMP port unreachable).
    pub ignores_unreachable: bool,
}

/// Datagrams per segmented buffer towards a receiver that may not coalesce. A receiver that takes
/// one datagram per call gets most of them through with four at a time; with eight it loses twice
/// as many.
const BATCH_DEFAULT: u32 = 4;
/// Datagrams closer than this are sent in small groups: waking for each would cost a whole CPU.
const TICK_THRESHOLD_NS: u64 = 100_000;
/// Time between two such groups.
const TICK_NS: u64 = 250_000;
/// From this distance on the start of each datagram is met to the microsecond.
const SPIN_THRESHOLD_NS: u64 = 1_000_000;
/// Batches per pump.
const CALLS_PER_PUMP: u32 = 16;
/// Pause after the device queue was full.
const QUEUE_FULL_PAUSE_NS: u64 = 50_000;

impl DatagramSender {
    pub(crate) fn new(
        fd: Arc<OwnedFd>,
        counters: Arc<StreamCounters>,
        datagrams: Datagrams<'_>,
        spec: &TestSpec,
        start_ns: u64,
        budget: Option<Arc<Budget>>,
    ) -> Result<Self, OsError> {
        let Datagrams {
            block,
            peer_coalesces,
            sequence,
        } = datagrams;
        let datagram_len = block.len().max(1);
        let schedule = spec
            .pacing
            .rate_bps
            .map(|rate| Schedule::new(start_ns, rate));
        let gap_ns = schedule.map(|s| s.due_ns(datagram_len as u64).saturating_sub(start_ns));
        let batch = datagrams_per_call(spec, datagram_len, peer_coalesces);

        Ok(Self {
            fd,
            counters,
            buffer: PageBuffer::repeated(block, batch)?,
            datagram_len,
            sequence,
            batch,
            burst: u64::from(spec.pacing.burst_blocks.unwrap_or(1).max(1)),
            batching: if batch > 1 {
                Batching::Segmented
            } else {
                Batching::Single
            },
            spins: gap_ns.is_some_and(|gap| gap >= SPIN_THRESHOLD_NS),
            schedule,
            budget,
            granted: 0,
            sent: 0,
            ignores_unreachable: false,
        })
    }

    /// Datagrams due now, or when the next are.
    fn due(&self, now_ns: u64) -> Result<u64, u64> {
        let Some(schedule) = &self.schedule else {
            // Without a rate the socket's buffer is the limit: a full call each time.
            return Ok(self.batch as u64);
        };
        let len = self.datagram_len as u64;
        let sent_bytes = self.sent * len;
        let due_ns = schedule.due_ns(sent_bytes);
        if due_ns > now_ns {
            let gap_ns = schedule.due_ns(sent_bytes + len) - due_ns;
            // A wake-up costs about as much CPU time as sending a group; closer than the threshold,
            // single wake-ups would need a CPU of their own.
            let ahead = if gap_ns < TICK_THRESHOLD_NS && !self.spins {
                schedule.bytes_in(TICK_NS) / len * len
            } else {
                0
            };
            return Err(schedule.due_ns(sent_bytes + ahead.saturating_sub(len)));
        }

        self.counters.observations.note_lateness(now_ns - due_ns);
        let due = schedule
            .allowed_bytes(now_ns)
            .saturating_sub(sent_bytes)
            .div_ceil(len);
        // iperf3 checks the rate only between bursts (`--pacing-timer`, `-b rate/burst`), so a
        // burst that has begun is sent as a whole.
        Ok(due.next_multiple_of(self.burst))
    }

    fn grant(&mut self, want: u64) -> Option<u64> {
        let Some(budget) = &self.budget else {
            return Some(want);
        };
        if self.granted == 0 {
            self.granted = budget.take(want, self.datagram_len as u64);
        }
        (self.granted > 0).then(|| want.min(self.granted))
    }

    /// Sends up to `count` datagrams in one call; returns how many the kernel took.
    fn send(&mut self, count: usize, now_ns: u64) -> io::Result<usize> {
        let count = if self.batching == Batching::Single {
            1
        } else {
            count.min(self.batch)
        };
        // Written before each call, not once: the kernel may take fewer datagrams than are offered.
        self.number(count, now_ns);
        let fd = self.fd.as_fd();
        let bytes = &self.buffer[..count * self.datagram_len];

        match self.batching {
            // One datagram needs no segmentation, so kernels before 4.18 never see the option for
            // it.
            _ if count == 1 => udp::send(fd, bytes).map(|_| 1),
            Batching::Segmented => udp::send_segmented(fd, bytes, self.datagram_len).map(|_| count),
            Batching::Many | Batching::Single => udp::send_many(fd, bytes, self.datagram_len),
        }
    }

    /// Writes the headers; numbers of datagrams that the kernel refuses are used again.
    fn number(&mut self, count: usize, now_ns: u64) {
        for (i, datagram) in self
            .buffer
            .chunks_exact_mut(self.datagram_len)
            .take(count)
            .enumerate()
        {
            self.sequence
                .write(datagram, self.sent + 1 + i as u64, now_ns);
        }
    }

    fn account(&mut self, datagrams: usize) {
        let n = datagrams as u64;
        self.sent += n;
        self.granted = self.granted.saturating_sub(n);
        self.counters.add(n * self.datagram_len as u64, n);
        self.counters.set_packets(self.sent);
    }

    /// The next simpler way to batch, when the kernel or the device refuses this one.
    fn degrade(&mut self, error: &io::Error) -> bool {
        let refused = matches!(
            error.raw_os_error(),
            Some(
                errno::EINVAL
                    | errno::EIO
                    | errno::EMSGSIZE
                    | errno::ENOPROTOOPT
                    | errno::EOPNOTSUPP
                    | errno::ENOSYS
            )
        );
        // EIO comes from routes without checksum offload, EINVAL from segments above the path MTU
        // (udp_send_skb in net/ipv4/udp.c).
        self.batching = match self.batching {
            Batching::Segmented if refused => Batching::Many,
            Batching::Many if refused => Batching::Single,
            _ => return false,
        };
        true
    }
}

/// Most datagrams per call. An explicit option decides; otherwise it depends on what the
/// receiver can take.
pub(crate) fn datagrams_per_call(
    spec: &TestSpec,
    datagram_len: usize,
    peer_coalesces: bool,
) -> usize {
    let len = u32::try_from(datagram_len).unwrap_or(u32::MAX);
    let buffer_bytes = match spec.udp.gso {
        Some(gso) => gso.buffer_bytes,
        None if peer_coalesces => Segmentation::of_datagrams(len).buffer_bytes,
        None => len
            .saturating_mul(BATCH_DEFAULT)
            .min(Segmentation::BUFFER_MAX_BYTES),
    };
    (buffer_bytes / len.max(1)).clamp(1, Segmentation::DATAGRAMS_MAX) as usize
}

impl Pump for DatagramSender {
    fn pump(&mut self, now_ns: u64, scratch: &mut Scratch) -> Pumped {
        let mut room = scratch.room_bytes.div_ceil(self.datagram_len);
        for _ in 0..CALLS_PER_PUMP {
            if room == 0 {
                return Pumped::Again;
            }

            let due = match self.due(now_ns) {
                Ok(due) => due,
                Err(next_ns) if self.spins => return Pumped::Precisely(next_ns),
                Err(next_ns) => return Pumped::Until(next_ns),
            };
            let Some(count) = self.grant(due.min(self.batch.min(room) as u64)) else {
                return Pumped::Ended(Ended::AmountReached);
            };
            match self.send(count as usize, now_ns) {
                Ok(n) => {
                    self.account(n);
                    room = room.saturating_sub(n);
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Pumped::Blocked,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                // It is the answer to an earlier datagram; this one was not sent.
                Err(e) if self.ignores_unreachable && e.kind() == ErrorKind::ConnectionRefused => {}
                Err(e) if e.raw_os_error() == Some(errno::ENOBUFS) => {
                    // The output queue of this host was full (send(2)). The socket counts as
                    // writable meanwhile, so no event would end the wait, only time.
                    return Pumped::Until(now_ns + QUEUE_FULL_PAUSE_NS);
                }
                Err(e) => {
                    if !self.degrade(&e) {
                        return Pumped::Ended(Ended::Failed(e));
                    }
                }
            }
        }

        Pumped::Again
    }
}
