//! Rate limit of probes beside a load: at most 5 % of its rate, as
//! draft-ietf-ippm-responsiveness has it.

use std::sync::atomic::{AtomicU64, Ordering};

use linerate_model::path::LoadSample;

/// The rate of the load so far, for those who probe beside it.
#[derive(Debug, Default)]
pub(super) struct ProbeBudget {
    /// 0 while it is unknown.
    rate_bps: AtomicU64,
}

/// A part of the rate that probes of one kind may take, in thousandths, and the bits of one.
#[derive(Clone, Copy)]
pub(super) struct ProbeShare {
    permille: u64,
    bits: u64,
}

/// UDP probes: IPv6 packets of 120 bytes.
pub(super) const UDP: ProbeShare = ProbeShare {
    permille: 20,
    bits: 960,
};
/// New connections with TLS handshake and echo, about 5,000 bytes each.
pub(super) const CONNECTIONS: ProbeShare = ProbeShare {
    permille: 25,
    bits: 40_000,
};
/// Echoes within the load: a segment each.
pub(super) const ECHOES: ProbeShare = ProbeShare {
    permille: 5,
    bits: 720,
};

/// Data of this time gives a rate.
const KNOWN_AFTER_NS: u64 = 1_000_000_000;
/// Longest time between two probes.
const PERIOD_MAX_NS: u64 = 10_000_000_000;

impl ProbeBudget {
    /// Takes what the load has moved so far. In two directions the slower one counts.
    pub(super) fn on_sample(&self, sample: &LoadSample) {
        if sample.at_ns < KNOWN_AFTER_NS {
            return;
        }

        let bytes = [sample.down_bytes, sample.up_bytes]
            .into_iter()
            .filter(|bytes| *bytes > 0)
            .min()
            .unwrap_or(0);
        let bps = u128::from(bytes) * 8 * 1_000_000_000 / u128::from(sample.at_ns);
        self.rate_bps
            .store(u64::try_from(bps).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Time between two probes of a kind whose `count` senders send one every `usual_ns` at most.
    pub(super) fn period_ns(&self, usual_ns: u64, share: ProbeShare, count: u64) -> u64 {
        let rate_bps = u128::from(self.rate_bps.load(Ordering::Relaxed));
        let ns = u128::from(share.bits * count) * 1_000_000_000 * 1_000;
        let least_ns = ns
            .checked_div(rate_bps * u128::from(share.permille))
            .unwrap_or(0);

        u64::try_from(least_ns)
            .unwrap_or(u64::MAX)
            .min(PERIOD_MAX_NS)
            .max(usual_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn budget(down_bps: u64, up_bps: u64) -> ProbeBudget {
        let budget = ProbeBudget::default();
        let sample = LoadSample {
            at_ns: 2_000_000_000,
            down_bytes: down_bps / 4,
            up_bytes: up_bps / 4,
            ..LoadSample::default()
        };
        budget.on_sample(&sample);

        budget
    }

    #[test]
    fn probes_of_all_kinds_take_five_percent_of_a_slow_path() {
        let rate_bps = 1_000_000;
        let budget = budget(rate_bps, 0);
        let kinds = [(5 * MS, UDP), (100 * MS, CONNECTIONS), (20 * MS, ECHOES)];
        let bps = |(usual_ns, share): (u64, ProbeShare)| {
            share.bits as f64 * 1e9 / budget.period_ns(usual_ns, share, 1) as f64
        };
        let all: f64 = kinds.into_iter().map(bps).sum();
        assert!((0.045..=0.05).contains(&(all / rate_bps as f64)), "{all}");
        assert_eq!(
            budget.period_ns(5 * MS, UDP, 2),
            2 * budget.period_ns(5 * MS, UDP, 1)
        );
    }

    #[test]
    fn fast_paths_and_unknown_ones_have_the_usual_period() {
        for (budget, expected_ns) in [
            (ProbeBudget::default(), 5 * MS),
            (budget(100_000_000, 0), 5 * MS),
            (budget(0, 100_000_000), 5 * MS),
            (budget(100_000_000, 4_800_000), 10 * MS),
            (budget(100, 0), PERIOD_MAX_NS),
        ] {
            assert_eq!(budget.period_ns(5 * MS, UDP, 1), expected_ns, "{budget:?}");
        }
    }
}
