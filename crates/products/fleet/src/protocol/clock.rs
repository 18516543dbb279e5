//! Offset between the monotonic clocks of coordinator and agent, and the time between GO and the
//! start of a round.

use std::collections::VecDeque;

use crate::{MS_NS, SECOND_NS};

/// Exchanges that are kept.
pub const EXCHANGES_MAX: usize = 64;
/// Age beyond which an exchange is not used.
pub const AGE_MAX_NS: u64 = 60 * SECOND_NS;
/// Longest round trip of a usable exchange.
pub const RTT_MAX_NS: u64 = SECOND_NS;
/// Difference of two crystals that is assumed while the drift is not measured, in parts per
/// million.
pub const DRIFT_ASSUMED_PPM: u64 = 100;
/// Time between two estimates that give the drift.
pub const DRIFT_SPACING_NS: u64 = 30 * SECOND_NS;
/// Shortest time between GO and the start.
pub const LEAD_MIN_NS: u64 = 250 * MS_NS;
/// Longest time between GO and the start: servers close a control connection that is silent for
/// longer.
pub const LEAD_MAX_NS: u64 = 1_500 * MS_NS;

/// Drift beyond this is an error of the exchanges, not of a crystal.
const DRIFT_MAX_PPM: f64 = 500.0;

/// Four clock readings of one CLOCK and its CLOCKED.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchange {
    /// CLOCK sent, coordinator's clock.
    pub c1_ns: u64,
    /// CLOCK received, agent's clock.
    pub a2_ns: u64,
    /// CLOCKED sent, agent's clock.
    pub a3_ns: u64,
    /// CLOCKED received, coordinator's clock.
    pub c4_ns: u64,
}

/// Where the agent's clock is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Estimate {
    /// Agent's clock minus coordinator's clock.
    pub offset_ns: i64,
    /// The true offset is at most this far away.
    pub uncertainty_ns: u64,
}

/// One exchange as an offset.
#[derive(Debug, Clone, Copy)]
struct Sample {
    at_ns: u64,
    rtt_ns: u64,
    offset_ns: i64,
}

/// Estimates the offset of one agent by the exchange with the least round trip.
#[derive(Debug, Clone, Default)]
pub struct Estimator {
    samples: VecDeque<Sample>,
    /// The estimate from which the drift is measured.
    anchor: Option<Sample>,
    drift: Option<Drift>,
}

/// Measured drift and how far it may be wrong, as ratios.
#[derive(Debug, Clone, Copy)]
struct Drift {
    ratio: f64,
    error: f64,
}

impl Estimator {
    /// Takes an exchange. `false` when its readings are impossible or its round trip is above
    /// [`RTT_MAX_NS`].
    pub fn add(&mut self, exchange: Exchange) -> bool {
        let Some(sample) = sample_of(exchange) else {
            return false;
        };
        if self.samples.len() == EXCHANGES_MAX {
            self.samples.pop_front();
        }

        self.samples.push_back(sample);
        self.measure_drift(sample.at_ns);
        true
    }

    /// The offset now; `None` without an exchange younger than [`AGE_MAX_NS`].
    pub fn estimate(&self, now_ns: u64) -> Option<Estimate> {
        let best = self.best(now_ns)?;
        let age = now_ns.saturating_sub(best.at_ns) as f64;
        let drift = self.drift.unwrap_or(Drift {
            ratio: 0.0,
            error: DRIFT_ASSUMED_PPM as f64 / 1e6,
        });
        // The clock continued to drift since the exchange; the cast keeps whole nanoseconds.
        let offset_ns = best.offset_ns.saturating_add((drift.ratio * age) as i64);

        Some(Estimate {
            offset_ns,
            // All of the delay may belong to one direction, so half of the round trip is the bound.
            uncertainty_ns: (best.rtt_ns / 2).saturating_add((drift.error * age) as u64),
        })
    }

    /// The uncertainty is above a quarter of the budget: another exchange is due.
    pub fn needs_refresh(&self, now_ns: u64, budget_ns: u64) -> bool {
        self.estimate(now_ns)
            .is_none_or(|estimate| estimate.uncertainty_ns > budget_ns / 4)
    }

    /// The 99th percentile (nearest rank) of the round trips that are kept.
    pub fn rtt_p99_ns(&self) -> Option<u64> {
        let mut rtts: Vec<u64> = self.samples.iter().map(|sample| sample.rtt_ns).collect();
        rtts.sort_unstable();
        // Nearest rank: the smallest reading that at least 99 % of the readings do not exceed.
        let rank = (rtts.len() * 99).div_ceil(100);
        // Without a reading the rank is 0 and has no predecessor.
        rtts.get(rank.checked_sub(1)?).copied()
    }

    fn best(&self, now_ns: u64) -> Option<Sample> {
        let fresh = self
            .samples
            .iter()
            .filter(|sample| now_ns.saturating_sub(sample.at_ns) <= AGE_MAX_NS);
        // The exchange with the least delay waited least in queues (clock filter, RFC 5905, section
        // 10).
        fresh.min_by_key(|sample| sample.rtt_ns).copied()
    }

    fn measure_drift(&mut self, now_ns: u64) {
        let Some(best) = self.best(now_ns) else {
            return;
        };
        let Some(anchor) = self.anchor else {
            self.anchor = Some(best);
            return;
        };
        // Too close estimates would show the noise of the exchanges as drift.
        let apart_ns = best.at_ns.saturating_sub(anchor.at_ns);
        if apart_ns < DRIFT_SPACING_NS {
            // The better of two early ones is the anchor.
            if best.rtt_ns < anchor.rtt_ns {
                self.anchor = Some(best);
            }
            return;
        }

        let apart = apart_ns as f64;
        let ratio = best.offset_ns.saturating_sub(anchor.offset_ns) as f64 / apart;
        // Each offset is wrong by at most half of its round trip.
        let error = (best.rtt_ns / 2 + anchor.rtt_ns / 2) as f64 / apart;
        self.drift = (ratio.abs() <= DRIFT_MAX_PPM / 1e6).then_some(Drift { ratio, error });
    }
}

/// Time between GO and the start: agents receive GO and open their connections before it.
///
/// `control_rtt_p99_ns` and `uncertainty_ns` are the largest of the hosts of the round,
/// `data_rtt_ns` of its paths.
pub fn lead_ns(control_rtt_p99_ns: u64, uncertainty_ns: u64, data_rtt_ns: u64) -> u64 {
    let control = control_rtt_p99_ns.saturating_mul(3);
    let needed = control
        .saturating_add(uncertainty_ns.saturating_mul(2))
        .saturating_add(data_rtt_ns.saturating_mul(4));
    needed.clamp(LEAD_MIN_NS, LEAD_MAX_NS)
}

fn sample_of(exchange: Exchange) -> Option<Sample> {
    let Exchange {
        c1_ns,
        a2_ns,
        a3_ns,
        c4_ns,
    } = exchange;
    // Readings of a clock that went back are no exchange.
    let held_ns = a3_ns.checked_sub(a2_ns)?;
    let rtt_ns = c4_ns.checked_sub(c1_ns)?.checked_sub(held_ns)?;
    // Readings of an agent are untrusted: differences of 64-bit numbers need 65 bits.
    let there = i128::from(a2_ns) - i128::from(c1_ns);
    let back = i128::from(a3_ns) - i128::from(c4_ns);
    let offset_ns = i64::try_from((there + back) / 2).ok()?;

    (rtt_ns <= RTT_MAX_NS).then_some(Sample {
        at_ns: c4_ns,
        rtt_ns,
        offset_ns,
    })
}

#[cfg(test)]
#[path = "clock_tests.rs"]
mod tests;
