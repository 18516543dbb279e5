//! Quality of a call with G.711 and packet loss concealment: the E-model of ITU-T G.107 with its
//! default values.

/// Conditions of a call on a path.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct CallPath {
    /// Median delay of one direction in ns; half of the round trip where the clocks of both ends
    /// are unrelated.
    pub one_way_ns: i64,
    /// Distance of the 99th percentile of that delay to its median, in ns: what a jitter buffer has
    /// to hold.
    pub variation_ns: i64,
    /// Share of the packets lost at random, 0 to 1.
    pub loss_share: f64,
}

/// Shortest jitter buffer in ms.
const BUFFER_MIN_MS: f64 = 20.0;

/// Packets of 20 ms and the look-ahead of a codec and its device, in ms.
const PACKET_MS: f64 = 25.0;

/// Transmission rating with the defaults of G.107 and no impairment.
const RATING_MAX: f64 = 93.2;

/// Robustness of G.711 with concealment against loss (ITU-T G.113 appendix I).
const LOSS_ROBUSTNESS: f64 = 25.1;

/// Mean opinion score of a call, 1 to 4.5. Echo counts as cancelled.
pub(super) fn mos(call: &CallPath) -> f64 {
    mos_of_rating(rating(call))
}

/// Transmission rating R of G.107.
fn rating(call: &CallPath) -> f64 {
    let buffer_ms = (call.variation_ns as f64 / 1e6).max(BUFFER_MIN_MS);
    let delay_ms = (call.one_way_ns as f64 / 1e6).max(0.0) + buffer_ms + PACKET_MS;
    RATING_MAX - delay_impairment(delay_ms) - loss_impairment(call.loss_share)
}

/// Idd of G.107 section 7.4 for an absolute delay Ta.
fn delay_impairment(delay_ms: f64) -> f64 {
    if delay_ms <= 100.0 {
        return 0.0;
    }

    let x = (delay_ms / 100.0).log2();
    let root = |value: f64| (1.0 + value.powi(6)).powf(1.0 / 6.0);
    25.0 * (root(x) - 3.0 * root(x / 3.0) + 2.0)
}

/// Ie-eff of G.107 section 7.5 for G.711, whose Ie is 0, under random loss (BurstR of 1).
fn loss_impairment(loss_share: f64) -> f64 {
    let loss_percent = 100.0 * loss_share.clamp(0.0, 1.0);
    95.0 * loss_percent / (loss_percent + LOSS_ROBUSTNESS)
}

/// Annex B of G.107. The cubic falls below 1 for ratings of up to 6.5, where a score cannot.
fn mos_of_rating(rating: f64) -> f64 {
    match rating {
        low if low <= 0.0 => 1.0,
        high if high >= 100.0 => 4.5,
        r => (1.0 + 0.035 * r + r * (r - 60.0) * (100.0 - r) * 7e-6).max(1.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(one_way_ms: i64, variation_ms: i64, loss_share: f64) -> CallPath {
        CallPath {
            one_way_ns: one_way_ms * 1_000_000,
            variation_ns: variation_ms * 1_000_000,
            loss_share,
        }
    }

    #[test]
    fn impairments_are_those_of_the_recommendation() {
        // Worked by hand: X = 1 gives 25 (1.122462 - 3 x 1.000228 + 2), X = 2 gives 25 (2.005174 -
        // 3 x 1.014124 + 2).
        let delays = [(50.0, 0.0), (100.0, 0.0), (200.0, 3.0444), (400.0, 24.0701)];
        for (delay_ms, expected) in delays {
            let found = delay_impairment(delay_ms);
            assert!((found - expected).abs() < 1e-3, "{delay_ms} ms: {found}");
        }

        // 95 x 1 / 26.1 and 95 x 5 / 30.1.
        let losses = [(0.0, 0.0), (0.01, 3.6398), (0.05, 15.7807)];
        for (share, expected) in losses {
            let found = loss_impairment(share);
            assert!((found - expected).abs() < 1e-3, "{share}: {found}");
        }
    }

    #[test]
    fn scores_are_those_worked_by_hand() {
        // 5 + 20 + 25 ms: R = 93.2, 1 + 3.262 + 0.1473. 155 + 20 + 25 ms: R = 90.156. 1 % lost: R =
        // 89.560. 330 + 45 + 25 ms and 5 % lost: R = 93.2 - 24.070 - 15.781 = 53.349.
        let table = [
            (call(5, 0, 0.0), 4.4093),
            (call(155, 3, 0.0), 4.3430),
            (call(5, 0, 0.01), 4.3281),
            (call(330, 45, 0.05), 2.7514),
            (call(2000, 1000, 0.9), 1.0),
        ];
        for (call, expected) in table {
            let found = mos(&call);
            assert!((found - expected).abs() < 2e-3, "{call:?}: {found}");
        }
    }

    #[test]
    fn scores_of_ratings_are_those_of_annex_b() {
        let table = [
            (0.0, 1.0),
            (3.0, 1.0),
            (50.0, 2.575),
            (60.0, 3.1),
            (70.0, 3.597),
            (80.0, 4.024),
            (100.0, 4.5),
        ];
        for (rating, expected) in table {
            assert!((mos_of_rating(rating) - expected).abs() < 1e-9, "{rating}");
        }
    }
}
