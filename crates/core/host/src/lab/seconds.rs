//! The seconds of a run on one host.

use linerate_model::http::{EndpointSecond, NicStats};
use linerate_model::snapshot::Snapshot;

use crate::growth::Growth;

const SECOND_NS: u64 = 1_000_000_000;
/// A sample this long before the end of a second is the last of it; half of the sampling interval.
const EARLY_NS: u64 = 100_000_000;
/// Seconds that are kept: two hours.
const SECONDS_MAX: usize = 7200;
/// Bytes of a frame on the wire that NICs do not count: preamble, check sum and gap.
const UNCOUNTED_BYTES: u64 = 24;

/// Seconds from a beginning, from samples at any interval.
#[derive(Debug, Clone)]
pub struct Seconds {
    /// Absent where the first sample has no time: then no second is known.
    origin_ns: Option<u64>,
    /// The sample at the end of the last complete second.
    before: Snapshot,
    complete: Vec<EndpointSecond>,
}

impl Seconds {
    /// Begins with a sample.
    pub fn begin(first: Snapshot) -> Self {
        Self {
            origin_ns: first.monotonic_ns,
            before: first,
            complete: Vec::new(),
        }
    }

    /// Adds a later sample; one without a time belongs to no second. Seconds between late samples
    /// have their mean.
    pub fn add(&mut self, sample: &Snapshot) {
        let Some((origin_ns, now_ns)) = self.origin_ns.zip(sample.monotonic_ns) else {
            return;
        };
        let elapsed_ns = now_ns.saturating_sub(origin_ns).saturating_add(EARLY_NS);
        let ended = usize::try_from(elapsed_ns / SECOND_NS)
            .unwrap_or(SECONDS_MAX)
            .min(SECONDS_MAX);
        if ended > self.complete.len() {
            self.complete.resize(ended, second(&self.before, sample));
            self.before = sample.clone();
        }
    }

    /// The complete ones.
    pub fn into_inner(self) -> Vec<EndpointSecond> {
        self.complete
    }
}

fn second(before: &Snapshot, now: &Snapshot) -> EndpointSecond {
    let change = Growth::between(before, now);
    let mut second = EndpointSecond {
        busiest_cpu_busy: change.busiest_cpu_busy(),
        ..EndpointSecond::default()
    };

    // What goes to the host itself has no wire.
    let wired = change
        .nic()
        .filter(|nic| !nic.is_loopback && change.window_ns > 0);
    second.wire_bps = wired.map(|nic| wire_bits(&nic) * 1e9 / change.window_ns as f64);
    second
}

/// Bits in the busier direction.
fn wire_bits(nic: &NicStats) -> f64 {
    let bytes =
        |bytes: u64, packets: u64| bytes.saturating_add(packets.saturating_mul(UNCOUNTED_BYTES));
    8.0 * bytes(nic.tx_bytes, nic.tx_packets).max(bytes(nic.rx_bytes, nic.rx_packets)) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::endpoint::tests::sample;

    const MS: u64 = 1_000_000;

    /// A host whose second CPU was busy for `busy` ticks, and whose device sent `packets` packets
    /// of 1000 bytes.
    fn host(at_ms: u64, busy: u64, packets: u64, kind: &str) -> Snapshot {
        let facts = [
            ("route.peer.dev", "e0".into()),
            ("nic.e0.net.kind", kind.into()),
        ];
        let ticks = at_ms / 10;

        let mut host = sample(
            at_ms * MS,
            &facts,
            &[
                ("cpu.0.idle", ticks),
                ("cpu.1.user", busy),
                ("cpu.1.idle", ticks - busy),
                ("nic.e0.stats64.tx_bytes", packets * 1000),
                ("nic.e0.stats64.tx_packets", packets),
            ],
        );
        for name in [
            "rx_bytes",
            "rx_packets",
            "rx_dropped",
            "tx_dropped",
            "rx_errors",
            "tx_errors",
        ] {
            host.count(format!("nic.e0.stats64.{name}"), 0);
        }

        host
    }

    fn of(samples: &[(u64, u64, u64)]) -> Vec<(Option<f64>, Option<f64>)> {
        let mut samples = samples
            .iter()
            .map(|(at_ms, busy, packets)| host(*at_ms, *busy, *packets, "ether"));
        let mut seconds = Seconds::begin(samples.next().expect("a first one"));
        samples.for_each(|sample| seconds.add(&sample));

        let seconds = seconds.into_inner().into_iter();
        seconds
            .map(|second| (second.busiest_cpu_busy, second.wire_bps))
            .collect()
    }

    #[test]
    fn samples_within_a_second_make_one_second() {
        let found = of(&[
            (10_000, 0, 0),
            (10_500, 30, 900),
            (10_950, 95, 950),
            (11_990, 95, 950),
            (12_400, 0, 0),
        ]);
        assert_eq!(
            found,
            [
                (Some(1.0), Some(8.0 * 1024.0 * 1000.0)),
                (Some(0.0), Some(0.0))
            ]
        );
    }

    #[test]
    fn seconds_without_samples_have_the_mean_of_both_neighbours() {
        let found = of(&[(10_000, 0, 0), (13_000, 150, 3000)]);
        assert_eq!(found, [(Some(0.5), Some(8.0 * 1024.0 * 1000.0)); 3]);
        assert_eq!(of(&[(10_000, 0, 0), (1 << 40, 0, 0)]).len(), SECONDS_MAX);
    }

    #[test]
    fn sample_without_a_time_belongs_to_no_second() {
        let timeless = Snapshot {
            monotonic_ns: None,
            ..host(9000, 90, 90, "ether")
        };
        let mut seconds = Seconds::begin(timeless.clone());
        seconds.add(&host(10_000, 50, 10, "ether"));
        assert_eq!(seconds.into_inner(), [], "the first one has no time");

        let mut seconds = Seconds::begin(host(10_000, 0, 0, "ether"));
        seconds.add(&timeless);
        seconds.add(&host(11_000, 50, 1000, "ether"));
        let seconds = seconds.into_inner();
        assert_eq!(seconds.len(), 1);
        assert_eq!(seconds[0].wire_bps, Some(8.0 * 1024.0 * 1000.0));
    }

    #[test]
    fn unknown_values_are_absent() {
        let mut seconds = Seconds::begin(host(0, 0, 0, "loopback"));
        seconds.add(&host(1000, 50, 10, "loopback"));
        seconds.add(&sample(2000 * MS, &[], &[]));

        let seconds = seconds.into_inner();
        assert_eq!(
            (seconds[0].busiest_cpu_busy, seconds[0].wire_bps),
            (Some(0.5), None),
            "no wire"
        );
        assert_eq!(seconds[1], EndpointSecond::default());
    }
}
