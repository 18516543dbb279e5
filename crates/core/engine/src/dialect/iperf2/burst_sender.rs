//! A sender whose writes have a shape: bursts with heads, frames on a grid, pauses after writes,
//! timed writes.

use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use linerate_iperf2::wire::Timestamp;
use linerate_iperf2::wire::burst::{BURST_HEAD_LEN, BurstHead};
use linerate_model::TestSpec;
use linerate_model::metrics::{FrameCounts, HistogramKind, WriteCounts};
use linerate_model::spec::Payload;
use linerate_model::workload::Shape;
use linerate_sys::tcp_info::tcp_info;
use linerate_sys::{OsError, PageBuffer, clock, stream_io};

use super::frame_sizes::FrameSizes;
use crate::data::budget::Budget;
use crate::data::pacing::Schedule;
use crate::data::run::PumpInputs;
use crate::data::worker::{Ended, Pump, Pumped, Scratch};
use crate::measure::counters::StreamCounters;
use crate::measure::stream_stats::StreamStats;

/// Writes bursts; a plain block is a burst without a head.
pub(super) struct ShapedSender {
    fd: Arc<OwnedFd>,
    counters: Arc<StreamCounters>,
    stats: Arc<StreamStats>,
    /// Longest write.
    block: PageBuffer,
    timing: BurstTiming,
    has_heads: bool,
    times_writes: bool,
    /// Pause after each write in round-trip times.
    pause_rtts: Option<f64>,
    budget: Option<Arc<Budget>>,
    start_ns: u64,
    test_start: Timestamp,
    /// Unit being written.
    burst: Burst,
    number: u32,
    sent: u64,
    paused_until_ns: u64,
}

#[derive(Default)]
struct Burst {
    size: usize,
    written: usize,
    /// The write that is not complete began then.
    write_began_ns: u64,
}

/// When bursts are due and how long they are.
enum BurstTiming {
    /// By the schedule of bytes.
    Steady {
        size: usize,
        schedule: Option<Schedule>,
    },
    /// Every so often.
    Grid {
        sizes: FrameSizes,
        period_ns: u64,
        next: u64,
        /// Nothing is due at this time or later.
        end_ns: Option<u64>,
    },
}

/// Time in which the end of the test stops a sender that has nothing more to send.
const END_GRACE_NS: u64 = 1_000_000_000;
/// Writes per pump, so that a stop is seen soon.
const CALLS_PER_PUMP: u32 = 32;

impl ShapedSender {
    pub(super) fn new(
        inputs: PumpInputs,
        spec: &TestSpec,
        stats: Arc<StreamStats>,
        budget: Option<Arc<Budget>>,
    ) -> Result<Self, OsError> {
        let workload = &spec.workload;
        let block_len = (spec.block_len_bytes as usize).max(1);
        let mut block = PageBuffer::zeroed(block_len)?;
        Payload::fill_repeating(&mut block);

        let is_on_grid = matches!(workload.shape, Shape::Isochronous(_) | Shape::Bursts { .. });
        stats.update(|samples| {
            samples.writes = Some(WriteCounts::default());
            samples.frames =
                matches!(workload.shape, Shape::Isochronous(_)).then(FrameCounts::default);
        });
        Ok(Self {
            fd: inputs.fd,
            counters: inputs.counters,
            stats,
            block,
            timing: BurstTiming::of(spec, inputs.start_ns, block_len),
            has_heads: workload.trip_times || is_on_grid,
            times_writes: workload.write_times,
            pause_rtts: match workload.shape {
                Shape::NearCongestion { weight } => Some(weight),
                _ => None,
            },
            budget,
            start_ns: inputs.start_ns,
            test_start: super::machine::wall(),
            burst: Burst::default(),
            number: 0,
            sent: 0,
            paused_until_ns: 0,
        })
    }

    /// Begins the next burst, if it is due.
    fn begin(&mut self, now_ns: u64) -> Result<(), Pumped> {
        let size = match &mut self.timing {
            BurstTiming::Steady { size, schedule } => {
                let due_ns = schedule.map_or(0, |schedule| schedule.due_ns(self.sent));
                if due_ns > now_ns {
                    return Err(Pumped::Until(due_ns));
                }
                *size
            }
            BurstTiming::Grid {
                sizes,
                period_ns,
                next,
                end_ns,
            } => {
                let due_ns = self
                    .start_ns
                    .saturating_add(next.saturating_mul(*period_ns));
                if due_ns > now_ns {
                    // The lateness of a frame is a result, so its start is met by spinning.
                    return Err(Pumped::Precisely(due_ns));
                }

                // A burst that is due when the test ends would be sent or not by chance.
                if let Some(end_ns) = end_ns.filter(|end_ns| due_ns >= *end_ns) {
                    let until_ns = end_ns.saturating_add(END_GRACE_NS);
                    let is_over = now_ns >= until_ns;
                    return Err(if is_over {
                        Pumped::Ended(Ended::AmountReached)
                    } else {
                        Pumped::Until(until_ns)
                    });
                }

                // Bursts whose time has passed are left out; the grid stays.
                let missed = (now_ns - due_ns) / (*period_ns).max(1);
                *next += missed + 1;
                note_frame(&self.stats, missed, (now_ns - due_ns) % (*period_ns).max(1));
                sizes.next()
            }
        };
        let size = match &self.budget {
            Some(budget) => usize::try_from(budget.take_bytes(1, size as u64)).unwrap_or(size),
            None => size,
        };
        if size == 0 {
            return Err(Pumped::Ended(Ended::AmountReached));
        }

        self.number = self.number.wrapping_add(1);
        self.burst = Burst {
            size,
            written: 0,
            write_began_ns: now_ns,
        };

        if self.has_heads {
            self.write_head();
        }

        Ok(())
    }

    fn write_head(&mut self) {
        let head = BurstHead {
            test_start: self.test_start,
            written: super::machine::wall(),
            period_us: self.timing.period_us(),
            number: self.number,
            size_bytes: u32::try_from(self.burst.size).unwrap_or(u32::MAX),
            total_bytes: self.sent.saturating_add(self.burst.size as u64),
        };
        head.write(&mut self.block);
    }

    /// One write of the current burst.
    fn write(&mut self) -> std::io::Result<()> {
        let Burst { size, written, .. } = self.burst;
        let offset = written % self.block.len();
        let end = self.block.len().min(offset + (size - written));
        let n = stream_io::send(&self.fd, &self.block[offset..end])?;
        self.burst.written += n;
        self.sent += n as u64;
        self.counters.add(n as u64, 1);

        if self.has_heads && offset < BURST_HEAD_LEN && self.burst.written >= BURST_HEAD_LEN {
            // The head is in the first block only.
            let len = self.block.len().min(BURST_HEAD_LEN);
            Payload::fill_repeating(&mut self.block[..len]);
        }

        if self.burst.written.is_multiple_of(self.block.len()) || self.burst.written >= size {
            self.note_write();
        }

        Ok(())
    }

    /// One block, or what the burst has left of it, is written.
    fn note_write(&mut self) {
        let now_ns = clock::monotonic_ns();
        let took_s = now_ns.saturating_sub(self.burst.write_began_ns) as f64 / 1e9;
        self.burst.write_began_ns = now_ns;

        let times = self.times_writes;
        let unix_s = clock::unix_ns() as f64 / 1e9;
        self.stats.update(|samples| {
            samples.writes.get_or_insert_default().calls += 1;
            if times {
                samples.write_times.add(took_s);
                samples.add_to_histogram(HistogramKind::Writes, took_s, unix_s);
            }
        });
    }

    fn end(&mut self) {
        // `--near-congestion` of iperf 2 pauses for a multiple of the kernel's smoothed round trip
        // after each write.
        if let Some(rtts) = self.pause_rtts
            && let Ok(info) = tcp_info(&self.fd)
        {
            let pause_ns = (f64::from(info.rtt_us) * 1000.0 * rtts).max(0.0) as u64;
            self.paused_until_ns = clock::monotonic_ns().saturating_add(pause_ns);
        }
    }
}

/// Counts a frame that begins now, and those before it whose time has passed.
pub(super) fn note_frame(stats: &StreamStats, missed: u64, late_ns: u64) {
    stats.update(|samples| {
        if let Some(frames) = &mut samples.frames {
            frames.done += 1;
            frames.missed += missed;
            frames.slips += u64::from(missed > 0);
            samples.frame_delay.add(late_ns as f64 / 1e9);
        }
    });
}

impl BurstTiming {
    fn of(spec: &TestSpec, start_ns: u64, block_len: usize) -> Self {
        let (sizes, period_s) = match &spec.workload.shape {
            Shape::Isochronous(frames) => (
                FrameSizes::of_frames(frames, BURST_HEAD_LEN),
                1.0 / frames.frames_per_s.max(1e-3),
            ),
            Shape::Bursts { size_bytes, period } => (
                FrameSizes::fixed((*size_bytes as usize).max(BURST_HEAD_LEN)),
                period.as_secs_f64(),
            ),
            _ => {
                let schedule = spec
                    .pacing
                    .rate_bps
                    .map(|rate| Schedule::new(start_ns, rate));
                return Self::Steady {
                    size: block_len,
                    schedule,
                };
            }
        };
        let end_ns = spec
            .end
            .duration()
            .map(|time| start_ns.saturating_add(clock::as_ns(time)));

        // Conversions of floats saturate.
        Self::Grid {
            sizes,
            period_ns: ((period_s * 1e9) as u64).max(1000),
            next: 0,
            end_ns,
        }
    }

    fn period_us(&self) -> u32 {
        match self {
            Self::Steady { .. } => 0,
            Self::Grid { period_ns, .. } => u32::try_from(period_ns / 1000).unwrap_or(u32::MAX),
        }
    }
}

impl Pump for ShapedSender {
    fn pump(&mut self, now_ns: u64, _: &mut Scratch) -> Pumped {
        if self.paused_until_ns > now_ns {
            return Pumped::Until(self.paused_until_ns);
        }

        for _ in 0..CALLS_PER_PUMP {
            if self.burst.written >= self.burst.size {
                let now_ns = clock::monotonic_ns();
                if let Err(pumped) = self.begin(now_ns) {
                    return pumped;
                }
            }

            match self.write() {
                Ok(()) if self.burst.written < self.burst.size => {}
                Ok(()) => {
                    self.end();
                    if self.pause_rtts.is_some() {
                        return Pumped::Until(self.paused_until_ns);
                    }
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Pumped::Blocked,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Pumped::Ended(Ended::Failed(e)),
            }
        }

        Pumped::Again
    }
}
