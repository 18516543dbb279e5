//! Bytes that a paced sender on a byte stream may write, and when.

use std::time::Duration;

use linerate_model::{TestSpec, Transport};
use linerate_sys::clock::as_ns;

use crate::data::pacing::Schedule;

/// Splits the schedule of a rate into portions.
///
/// Receivers of stock releases since 3.16 count whole blocks only, and nothing after the end of the
/// test. So the warm-up and the measured part each end between two blocks: what becomes due shortly
/// before such an end is written at once, rounded up to a whole block. That is the amount a sender
/// of whole blocks reaches at the same rate.
pub(crate) struct Pace {
    schedule: Schedule,
    start_ns: u64,
    block_len: u64,
    portion: Portion,
    /// End of the warm-up and of the test, monotonic ns, as far as time decides them.
    warm_up_end_ns: Option<u64>,
    end_ns: Option<u64>,
    /// Time that the last block of a part needs to arrive before its end.
    margin_ns: u64,
    /// Number of the byte behind the current portion.
    portion_end: u64,
}

/// Size of a paced write.
pub(crate) enum Portion {
    /// A number of bytes, the block length that the user fixed.
    Bytes(u64),
    /// Bytes that become due in this time, ns.
    Period(u64),
}

/// Next step of a paced sender.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Nothing before this time, monotonic ns; `u64::MAX` when the test has no more time.
    Wait(u64),
    /// A new portion.
    Begin {
        bytes: u64,
        /// The portion completes the last block of the warm-up or of the test.
        is_closing: bool,
        late_ns: u64,
    },
    /// The rest of the portion.
    Continue { bytes: u64 },
}

/// Periods that divide a tenth of a second, so that portions fit the usual reporting intervals.
const PERIODS_NS: [u64; 4] = [10_000_000, 20_000_000, 50_000_000, 100_000_000];
/// Least bytes of a portion, if the longest period allows it. Each costs a wake-up:
/// with 12 KiB the sender needs six times the CPU time of a sender of whole blocks, with twice that
/// three times.
const PORTION_MIN_BYTES: u64 = 16 * 1024;
/// Period of a fast stream, whose portions the kernel spreads.
const FAST_PERIOD_NS: u64 = 4_000_000;
/// From 100 Mbit/s on a stream is fast.
const FAST_BYTES_PER_S: u64 = 12_500_000;
/// Portions of up to a quarter of a block by default are not spread by the kernel, whose timers
/// cost as much as ours.
const BURST_MAX_BYTES: u64 = 32 * 1024;
/// Least time between the last block of a part and the end of the part.
const MARGIN_NS: u64 = 10_000_000;
/// Round trips that the last block may take.
const MARGIN_ROUND_TRIPS: u64 = 4;
/// The margin is at most this share of the test.
const MARGIN_SHARE: u64 = 10;

impl Portion {
    /// `None` for a stream without a rate.
    pub(crate) fn of(spec: &TestSpec) -> Option<Self> {
        let schedule = Schedule::new(0, spec.pacing.rate_bps?);
        let block_len = u64::from(spec.block_len_bytes.max(1));
        Some(match spec.pacing.burst_blocks {
            Some(burst) => Self::Bytes(block_len.saturating_mul(u64::from(burst.max(1)))),
            // An SCTP send is one message: it is taken whole or refused.
            None if spec.block_len_explicit || spec.transport == Transport::Sctp => {
                Self::Bytes(block_len)
            }
            None => Self::Period(period_ns(&schedule)),
        })
    }

    /// Bytes of one write at this rate, at most.
    pub(crate) fn bytes(self, rate_bps: u64) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Period(ns) => Schedule::new(0, rate_bps).bytes_in(ns).max(1),
        }
    }
}

fn period_ns(schedule: &Schedule) -> u64 {
    if schedule.bytes_in(1_000_000_000) >= FAST_BYTES_PER_S {
        return FAST_PERIOD_NS;
    }

    let fits = |period: &&u64| schedule.bytes_in(**period) >= PORTION_MIN_BYTES;
    *PERIODS_NS
        .iter()
        .find(fits)
        .unwrap_or(&PERIODS_NS[PERIODS_NS.len() - 1])
}

/// Limit for the kernel's pacing of a stream whose portions are bursts, bytes per second: a quarter
/// above the rate, because the schedule decides the average and has to catch up after delays.
pub(crate) fn kernel_pacing_bytes_per_s(spec: &TestSpec) -> Option<u64> {
    let rate_bps = spec.pacing.rate_bps?;
    let own = spec.transport == Transport::Tcp && spec.pacing.fq_rate_bps.is_none();
    // A block length that the user fixed leaves as it is written, as with the original.
    let is_burst =
        |p: Portion| matches!(p, Portion::Period(_)) && p.bytes(rate_bps) > BURST_MAX_BYTES;
    (own && Portion::of(spec).is_some_and(is_burst)).then(|| (rate_bps / 32).saturating_mul(5))
}

impl Pace {
    /// `None` for a stream without a rate.
    pub(crate) fn new(spec: &TestSpec, start_ns: u64, round_trip: Duration) -> Option<Self> {
        let warm_up_end_ns = start_ns.saturating_add(as_ns(spec.omit));
        let duration = spec.end.duration();
        let margin_ns = MARGIN_NS.max(as_ns(round_trip).saturating_mul(MARGIN_ROUND_TRIPS));
        let margin_max_ns = duration.map_or(u64::MAX, |d| as_ns(d) / MARGIN_SHARE);

        Some(Self {
            schedule: Schedule::new(start_ns, spec.pacing.rate_bps?),
            start_ns,
            block_len: u64::from(spec.block_len_bytes.max(1)),
            portion: Portion::of(spec)?,
            warm_up_end_ns: (!spec.omit.is_zero()).then_some(warm_up_end_ns),
            end_ns: duration.map(|d| warm_up_end_ns.saturating_add(as_ns(d))),
            margin_ns: margin_ns.min(margin_max_ns),
            portion_end: 0,
        })
    }

    /// `sent` bytes have been written so far.
    pub(crate) fn turn(&mut self, sent: u64, now_ns: u64) -> Turn {
        if sent < self.portion_end {
            let bytes = self.portion_end - sent;
            return Turn::Continue { bytes };
        }

        let due_ns = self.due_ns(sent);
        if due_ns > now_ns {
            return Turn::Wait(due_ns);
        }

        // A stream that is behind its schedule catches up.
        let (end, is_closing) = self.end_of_portion(sent, due_ns.max(now_ns));
        self.portion_end = end;
        Turn::Begin {
            bytes: self.portion_end - sent,
            is_closing,
            late_ns: now_ns - due_ns,
        }
    }

    /// When the byte behind `sent` bytes is due; what falls into the margin before an end is due at
    /// its beginning.
    fn due_ns(&self, sent: u64) -> u64 {
        let due_ns = self.schedule.due_ns(sent);
        if self.end_ns.is_some_and(|end| due_ns >= end) {
            return u64::MAX;
        }

        let part_end = self.part_end_after(due_ns);
        part_end.map_or(due_ns, |end| due_ns.min(end.saturating_sub(self.margin_ns)))
    }

    fn part_end_after(&self, at_ns: u64) -> Option<u64> {
        [self.warm_up_end_ns, self.end_ns]
            .into_iter()
            .flatten()
            .find(|end| at_ns < *end)
    }

    /// Where a portion that begins now ends, and whether that completes the last block of a part.
    fn end_of_portion(&self, sent: u64, now_ns: u64) -> (u64, bool) {
        let period = match self.portion {
            // Whole blocks as it is; those of the margin are due at its beginning.
            Portion::Bytes(bytes) => return (sent.saturating_add(bytes), false),
            Portion::Period(period) => period,
        };
        let plain = self
            .schedule
            .bytes_in(self.grid_point_after(now_ns, period))
            .max(sent + 1);

        match self.part_end_after(now_ns) {
            Some(end) if self.schedule.due_ns(plain).saturating_add(self.margin_ns) >= end => {
                let due = self.schedule.allowed_bytes(end - 1).max(sent + 1);
                (
                    due.div_ceil(self.block_len).saturating_mul(self.block_len),
                    true,
                )
            }
            _ => (plain, false),
        }
    }

    /// Time from the start to the next point of the grid, ns. The grid lies half a period beside
    /// the start, so that counters read at multiples of the period do not race with a write. A
    /// point that is reached within a quarter of a period is skipped: due times are rounded.
    fn grid_point_after(&self, now_ns: u64, period: u64) -> u64 {
        let elapsed = now_ns
            .saturating_sub(self.start_ns)
            .saturating_add(period / 4);
        let points = elapsed.saturating_add(period / 2) / period;
        points.saturating_mul(period).saturating_add(period / 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::EndCondition;

    const S: u64 = 1_000_000_000;
    const BLOCK: u64 = 131_072;

    fn spec(rate_bps: u64, seconds: u64) -> TestSpec {
        let mut spec = TestSpec {
            end: EndCondition::Duration(Duration::from_secs(seconds)),
            block_len_bytes: BLOCK as u32,
            ..TestSpec::default()
        };
        spec.pacing.rate_bps = Some(rate_bps);
        spec
    }

    /// Runs a sender that is always on time: the writes as (time, bytes).
    fn writes(spec: &TestSpec) -> Vec<(u64, u64)> {
        let mut pace = Pace::new(spec, 0, Duration::ZERO).expect("a rate");
        let (mut now_ns, mut sent, mut writes) = (0, 0, Vec::new());

        loop {
            match pace.turn(sent, now_ns) {
                Turn::Wait(u64::MAX) => return writes,
                Turn::Wait(due_ns) => now_ns = due_ns,
                Turn::Begin { bytes, .. } | Turn::Continue { bytes } => {
                    sent += bytes;
                    writes.push((now_ns, bytes));
                }
            }
        }
    }

    fn total(writes: &[(u64, u64)]) -> u64 {
        writes.iter().map(|w| w.1).sum()
    }

    #[test]
    fn a_timed_test_sends_the_whole_blocks_a_block_sender_would_have_begun() {
        for (rate_bps, seconds, blocks) in [
            (300_000, 3, 1),
            (1_000_000, 10, 10),
            (10_000_000, 3, 29),
            (1_000_000_000, 2, 1908),
            (1_048_576, 3, 3),
            (10, 1, 1),
        ] {
            let writes = writes(&spec(rate_bps, seconds));
            assert_eq!(
                total(&writes),
                blocks * BLOCK,
                "{rate_bps} bit/s for {seconds} s"
            );
            let last_ns = writes.last().expect("a write").0;
            assert!(last_ns <= seconds * S - MARGIN_NS, "{rate_bps}: {last_ns}");
        }
    }

    #[test]
    fn a_warm_up_ends_between_two_blocks_as_well() {
        let mut spec = spec(10_000_000, 2);
        spec.omit = Duration::from_secs(1);
        let writes = writes(&spec);
        let warm_up: u64 = writes.iter().filter(|w| w.0 < S).map(|w| w.1).sum();
        assert_eq!(warm_up % BLOCK, 0);
        assert_eq!(total(&writes), 29 * BLOCK);
    }

    #[test]
    fn tenths_of_a_second_hold_the_same_bytes() {
        let writes = writes(&spec(10_000_000, 3));
        for tenth in 0..29 {
            let in_tenth = writes.iter().filter(|w| w.0 / (S / 10) == tenth);
            let bytes: u64 = in_tenth.map(|w| w.1).sum();
            // The first tenth begins with half a portion, which the later ones end with.
            let wanted = if tenth == 0 { 137_500 } else { 125_000 };
            assert!(bytes.abs_diff(wanted) <= 1, "{tenth}: {bytes}");
        }
    }

    /// Each write is a wake-up, and wake-ups are most of the CPU time of a slow stream: with these
    /// numbers it stays below four times that of the original.
    #[test]
    fn a_rate_has_a_fixed_number_of_writes_per_second() {
        for (rate_bps, per_second) in [(1_000_000, 10), (10_000_000, 50), (100_000_000, 250)] {
            let writes = writes(&spec(rate_bps, 5));
            // The first second begins with half a portion, and the last one ends with a block.
            for second in 1..4 {
                let count = writes.iter().filter(|w| w.0 / S == second).count();
                assert_eq!(count, per_second, "{rate_bps} bit/s, second {second}");
            }
        }
    }

    #[test]
    fn a_fixed_block_length_is_written_block_by_block_and_none_begins_in_the_margin() {
        let mut spec = spec(8_000_000, 1);
        spec.block_len_bytes = 199_000;
        spec.block_len_explicit = true;

        let writes = writes(&spec);
        assert!(writes.iter().all(|w| w.1 % 199_000 == 0), "{writes:?}");
        assert_eq!(total(&writes), 6 * 199_000, "{writes:?}");
        assert!(writes.iter().all(|w| w.0 <= S - MARGIN_NS), "{writes:?}");
    }

    #[test]
    fn only_bursts_are_left_to_the_kernel() {
        assert_eq!(kernel_pacing_bytes_per_s(&spec(1_000_000, 1)), None);
        assert_eq!(
            kernel_pacing_bytes_per_s(&spec(100_000_000, 1)),
            Some(15_625_000)
        );
        let mut fixed = spec(100_000_000, 1);
        fixed.block_len_explicit = true;
        assert_eq!(kernel_pacing_bytes_per_s(&fixed), None);
    }

    #[test]
    fn a_stream_behind_its_schedule_catches_up_and_keeps_the_rest_of_a_portion() {
        let mut pace = Pace::new(&spec(80_000_000, 9), 0, Duration::ZERO).expect("a rate");
        let Turn::Begin { bytes, late_ns, .. } = pace.turn(0, S) else {
            panic!("a portion is due")
        };
        assert!(bytes >= 10_000_000 && late_ns == S, "{bytes}");
        assert_eq!(pace.turn(10, S), Turn::Continue { bytes: bytes - 10 });
        assert!(matches!(pace.turn(bytes, S), Turn::Wait(_)));
    }
}
