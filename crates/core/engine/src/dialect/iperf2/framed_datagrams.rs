//! Frames on a grid, each cut into datagrams.

use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use linerate_iperf2::wire::frame::FrameWords;
use linerate_iperf2::wire::{Timestamp, Version};
use linerate_model::metrics::FrameCounts;
use linerate_model::workload::Isochronous;
use linerate_sys::clock::{self, RealtimeOffset};
use linerate_sys::{OsError, PageBuffer, errno, udp};

use super::burst_sender::note_frame;
use super::datagrams::HeadWriter;
use super::frame_sizes::FrameSizes;
use crate::data::budget::Budget;
use crate::data::run::PumpInputs;
use crate::data::worker::{Ended, Pump, Pumped, Scratch, SequenceWriter};
use crate::measure::counters::StreamCounters;
use crate::measure::stream_stats::StreamStats;

/// Sends one frame after the other.
pub(super) struct FramedDatagrams {
    fd: Arc<OwnedFd>,
    counters: Arc<StreamCounters>,
    stats: Arc<StreamStats>,
    datagram: PageBuffer,
    version: Version,
    numbers: HeadWriter,
    sizes: FrameSizes,
    period_ns: u64,
    gap_ns: u64,
    start_ns: u64,
    wall_start: Timestamp,
    /// Place of the next frame on the grid.
    next: u64,
    frame: FrameWords,
    /// Bytes of this frame that are still to be sent.
    left: usize,
    not_before_ns: u64,
    sent: u64,
    budget: Option<Arc<Budget>>,
    /// An unreachable port does not end it.
    pub ignores_unreachable: bool,
}

/// Datagrams per pump, so that a stop is seen soon.
const CALLS_PER_PUMP: u32 = 16;
/// Pause after the device queue was full.
const QUEUE_FULL_PAUSE_NS: u64 = 50_000;

impl FramedDatagrams {
    pub(super) fn new(
        inputs: PumpInputs,
        frames: &Isochronous,
        mut template: Vec<u8>,
        version: Version,
        stats: Arc<StreamStats>,
        budget: Option<Arc<Budget>>,
    ) -> Result<Self, OsError> {
        template.resize(template.len().max(FrameWords::end(version)), b'0');
        stats.update(|samples| samples.frames = Some(FrameCounts::default()));
        let period_ns = ((1e9 / frames.frames_per_s.max(1e-3)) as u64).max(1000);
        Ok(Self {
            fd: inputs.fd,
            counters: inputs.counters,
            stats,
            version,
            numbers: HeadWriter::new(),
            sizes: FrameSizes::of_frames(frames, FrameWords::end(version)),
            datagram: PageBuffer::repeated(&template, 1)?,
            period_ns,
            gap_ns: clock::as_ns(frames.gap),
            start_ns: inputs.start_ns,
            wall_start: Timestamp::from_unix_ns(RealtimeOffset::read().unix_ns(inputs.start_ns)),
            next: 0,
            frame: FrameWords::default(),
            left: 0,
            not_before_ns: 0,
            sent: 0,
            budget,
            ignores_unreachable: true,
        })
    }

    fn begin_frame(&mut self, now_ns: u64) -> Result<(), Pumped> {
        let due_ns = self
            .start_ns
            .saturating_add(self.next.saturating_mul(self.period_ns));
        if due_ns > now_ns {
            return Err(Pumped::Precisely(due_ns));
        }

        let missed = (now_ns - due_ns) / self.period_ns;
        self.next += missed + 1;
        let previous = self.frame.number;

        self.left = whole_datagrams(
            self.sizes.next(),
            self.datagram.len(),
            FrameWords::end(self.version),
        );
        self.frame = FrameWords {
            period_us: u32::try_from(self.period_ns / 1000).unwrap_or(u32::MAX),
            start: self.wall_start,
            previous,
            number: u32::try_from(self.next).unwrap_or(u32::MAX),
            size_bytes: u32::try_from(self.left).unwrap_or(u32::MAX),
            left_bytes: 0,
        };
        note_frame(&self.stats, missed, (now_ns - due_ns) % self.period_ns);

        Ok(())
    }

    fn send(&mut self, now_ns: u64) -> std::io::Result<()> {
        self.frame.left_bytes = u32::try_from(self.left).unwrap_or(u32::MAX);
        self.frame.write(&mut self.datagram, self.version);
        self.numbers
            .write(&mut self.datagram, self.sent + 1, now_ns);

        let len = self
            .left
            .clamp(FrameWords::end(self.version), self.datagram.len());
        udp::send(&self.fd, &self.datagram[..len])?;
        self.left = self.left.saturating_sub(len);
        self.sent += 1;
        self.counters.add(len as u64, 1);
        self.counters.set_packets(self.sent);

        Ok(())
    }
}

/// A frame of about `size` bytes whose last datagram holds the words, too. The original takes a
/// frame for lost whose last datagram is longer than what was left of it.
fn whole_datagrams(size: usize, datagram_len: usize, len_min: usize) -> usize {
    match size % datagram_len {
        0 => size,
        tail => size - tail + tail.max(len_min),
    }
}

impl Pump for FramedDatagrams {
    fn pump(&mut self, _: u64, _: &mut Scratch) -> Pumped {
        for _ in 0..CALLS_PER_PUMP {
            let now_ns = clock::monotonic_ns();
            if self.not_before_ns > now_ns {
                return Pumped::Precisely(self.not_before_ns);
            }
            if self.left == 0
                && let Err(pumped) = self.begin_frame(now_ns)
            {
                return pumped;
            }
            if self
                .budget
                .as_ref()
                .is_some_and(|b| b.take(1, self.datagram.len() as u64) == 0)
            {
                return Pumped::Ended(Ended::AmountReached);
            }

            match self.send(now_ns) {
                Ok(()) => self.not_before_ns = now_ns.saturating_add(self.gap_ns),
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Pumped::Blocked,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.raw_os_error() == Some(errno::ENOBUFS) => {
                    return Pumped::Until(now_ns + QUEUE_FULL_PAUSE_NS);
                }
                Err(e) if self.ignores_unreachable && e.kind() == ErrorKind::ConnectionRefused => {}
                Err(e) => return Pumped::Ended(Ended::Failed(e)),
            }
        }

        Pumped::Again
    }
}

#[cfg(test)]
mod tests {
    use super::whole_datagrams;

    #[test]
    fn the_last_datagram_of_a_frame_is_as_long_as_what_is_left_of_it() {
        for (size, expected) in [
            (1470, 1470),
            (2940, 2940),
            (1471, 1578),
            (1577, 1578),
            (1578, 1578),
            (108, 108),
        ] {
            assert_eq!(whole_datagrams(size, 1470, 108), expected);
        }
    }
}
