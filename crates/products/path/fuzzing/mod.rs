//! Relation of two clocks by arbitrary probes: whatever the times, the comparison ends, and where
//! they are those of two clocks, the true offset lies within the bounds. For tests and fuzzing.

use linerate_model::path::ProbeSample;

use crate::conclude::{Clock, ClockFacts};

/// Bytes of one probe.
const PROBE_LEN: usize = 32;

/// Largest difference of two clocks whose sums with a delay fit the times used here, ns.
const OFFSET_MAX_NS: i64 = 1 << 58;

/// First time of a simulated path, ns.
const START_NS: i64 = 1 << 59;

/// Compares clocks by probes whose four times are the bytes, and by probes over a path whose delays
/// are the bytes.
pub fn clock_bounds(bytes: &[u8]) {
    let words = || bytes.chunks_exact(PROBE_LEN).map(words_of);
    let hostile: Vec<ProbeSample> = words().map(sample).collect();
    compare(&hostile);

    let Some([offset, skew, ..]) = words().next() else {
        return;
    };
    let path = Path {
        offset_ns: offset as i64 % OFFSET_MAX_NS,
        skew_ppb: skew as i64 % 100_000,
    };
    let probes: Vec<ProbeSample> = words()
        .skip(1)
        .take(10_000)
        .scan(START_NS, |at, word| Some(path.probe(at, word)))
        .collect();
    path.check(&probes);
}

fn words_of(bytes: &[u8]) -> [u64; 4] {
    let mut words = bytes
        .chunks_exact(8)
        .map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default()));
    [(); 4].map(|()| words.next().unwrap_or_default())
}

/// Times as they are; a number divisible by 256 means one that is absent.
fn sample(words: [u64; 4]) -> ProbeSample {
    let [t1, t2, t3, t4] = words;
    let present = |ns: u64| (!ns.is_multiple_of(256)).then_some(ns);
    ProbeSample {
        sent_ns: t1,
        peer_received_ns: present(t2),
        peer_sent_ns: present(t3),
        received_ns: present(t4),
    }
}

fn compare(samples: &[ProbeSample]) -> Option<Clock> {
    for facts in [
        ClockFacts::default(),
        ClockFacts {
            is_same_boot: true,
            disciplined: Some((1, 1)),
        },
    ] {
        let Some(clock) = Clock::from_probes(samples, facts) else {
            continue;
        };
        assert!(
            clock.ignored() < samples.len() as u64,
            "one reply is used at least"
        );
        let (up, down) = clock.one_way(samples);
        let (queue_up, queue_down) = clock.queues(samples);
        assert!(
            up.n == down.n && queue_up.n == up.n && queue_down.n == up.n,
            "each reply has both delays"
        );

        let is_queue = |min_ns: Option<i64>| min_ns.is_none_or(|ns| ns >= 0);
        assert!(
            is_queue(queue_up.min_ns) && is_queue(queue_down.min_ns),
            "no queue is negative"
        );
    }

    Clock::from_probes(samples, ClockFacts::default())
}

/// Two clocks, of which the other one is ahead and runs faster.
struct Path {
    offset_ns: i64,
    skew_ppb: i64,
}

impl Path {
    /// The other clock less this one.
    fn offset_at(&self, own_ns: i64) -> i64 {
        let drift = i128::from(own_ns - START_NS) * i128::from(self.skew_ppb) / 1_000_000_000;
        self.offset_ns + drift as i64
    }

    fn probe(&self, at_ns: &mut i64, words: [u64; 4]) -> ProbeSample {
        const SECOND_NS: u64 = 1_000_000_000;

        let [gap, up, inside, down] = words.map(|word| (word % SECOND_NS) as i64);
        *at_ns += gap;
        let arrived = *at_ns + up;
        let replied = arrived + inside / 1000;
        let peer = |own_ns: i64| u64::try_from(own_ns + self.offset_at(own_ns)).ok();

        ProbeSample {
            sent_ns: *at_ns as u64,
            peer_received_ns: peer(arrived),
            peer_sent_ns: peer(replied),
            received_ns: Some((replied + down) as u64),
        }
    }

    fn check(&self, probes: &[ProbeSample]) {
        let Some(clock) = compare(probes) else { return };
        assert_eq!(clock.ignored(), 0, "no reply contradicts another");
        let (first, last) = (
            probes.first().map_or(0, |one| one.sent_ns),
            probes.last().map_or(0, |one| one.sent_ns),
        );
        let middle = first.midpoint(last);
        let distance = clock
            .offset_at(middle)
            .abs_diff(self.offset_at(middle as i64));

        // Whole ns of times and drift, and the resolution of floating point over the longest
        // examination.
        assert!(distance <= clock.error_ns() + 16, "{distance} of {clock:?}");
    }
}
