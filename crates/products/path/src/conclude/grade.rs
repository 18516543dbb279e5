//! Grade of a path by what load adds to the delay of others.

use linerate_model::path::{Grade, PhaseKind, ProbeKind, trimmed_mean};

/// Increase in ms below which a path has a letter (scale of the DSLReports speed test); `F` beyond.
const LETTERS: [(i64, &str); 5] = [(5, "A+"), (30, "A"), (60, "B"), (200, "C"), (400, "D")];

/// Grade by the load that adds most to the median round trip, each with what it adds in ns. `None`
/// without a load, and where the increase of one is not known: it may be the largest.
pub(super) fn grade(loads: &[(PhaseKind, Option<i64>)], probe: ProbeKind) -> Option<Grade> {
    let known: Option<Vec<(PhaseKind, i64)>> = loads
        .iter()
        .map(|(kind, added_ns)| Some((*kind, (*added_ns)?)))
        .collect();
    // The mean of down and up hid the worse one: +91 and +410 ms were a D.
    let (load, added_ns) = known?.into_iter().max_by_key(|(_, added_ns)| *added_ns)?;
    Some(Grade {
        letter: letter(added_ns).to_owned(),
        load: Some(load),
        added_ns,
        probe,
    })
}

fn letter(added_ns: i64) -> &'static str {
    const NS_PER_MS: i64 = 1_000_000;
    LETTERS
        .iter()
        .find(|(below_ms, _)| added_ns < below_ms * NS_PER_MS)
        .map_or("F", |(_, letter)| letter)
}

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

/// Round trips per minute, by the formulas of draft-ietf-ippm-responsiveness-09 and of
/// goresponsiveness.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Responsiveness {
    /// Mean of the next two; absent without one of them.
    pub rpm: Option<f64>,
    /// Round trips per minute of probes over new connections.
    pub foreign: Option<f64>,
    /// Round trips per minute of echoes in the load's own streams.
    pub own: Option<f64>,
    /// Round trips per minute of the mean of both kinds of round trip.
    pub mean_rtt: Option<f64>,
}

/// Responsiveness of round trips in ns. `tls` holds single round trips of the handshakes.
///
/// Each kind has its trimmed mean, so that one slow probe in twenty changes nothing.
/// goresponsiveness divides the time of a whole new connection into three equal parts, whose mean
/// is that of the three means used here.
pub(super) fn responsiveness(
    tcp_ns: &[i64],
    tls_ns: &[i64],
    echo_ns: &[i64],
    in_band_ns: &[i64],
) -> Responsiveness {
    let foreign_ms = mean_of(&[trimmed_ms(tcp_ns), trimmed_ms(tls_ns), trimmed_ms(echo_ns)]);
    let own_ms = trimmed_ms(in_band_ns);
    let foreign = foreign_ms.and_then(per_minute);
    let own = own_ms.and_then(per_minute);
    Responsiveness {
        rpm: mean_of(&[foreign, own]),
        foreign,
        own,
        mean_rtt: mean_of(&[own_ms, foreign_ms]).and_then(per_minute),
    }
}

/// Word for a responsiveness: `poor` below 300, `fair` below 1,000, `good` below 6,000, `excellent`
/// (draft-ietf-ippm-responsiveness-09).
pub(crate) fn responsiveness_class(rpm: f64) -> &'static str {
    match rpm {
        poor if poor < 300.0 => "poor",
        fair if fair < 1000.0 => "fair",
        good if good < 6000.0 => "good",
        _ => "excellent",
    }
}

fn trimmed_ms(round_trips_ns: &[i64]) -> Option<f64> {
    trimmed_mean(round_trips_ns).map(|ns| ns as f64 / 1e6)
}

fn per_minute(round_trip_ms: f64) -> Option<f64> {
    (round_trip_ms > 0.0).then(|| 60_000.0 / round_trip_ms)
}

/// Mean of all; `None` where one is absent.
fn mean_of(values: &[Option<f64>]) -> Option<f64> {
    let known: Vec<f64> = values.iter().copied().collect::<Option<_>>()?;
    (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_begin_at_their_borders() {
        let table = [
            (-3_000_000, "A+"),
            (4_999_999, "A+"),
            (5_000_000, "A"),
            (29_999_999, "A"),
            (30_000_000, "B"),
            (59_999_999, "B"),
            (60_000_000, "C"),
            (199_999_999, "C"),
            (200_000_000, "D"),
            (399_999_999, "D"),
            (400_000_000, "F"),
        ];
        for (added_ns, letter) in table {
            assert_eq!(
                grade(&[(PhaseKind::Up, Some(added_ns))], ProbeKind::Udp).map(|grade| grade.letter),
                Some(letter.to_owned()),
                "{added_ns}"
            );
        }
    }

    #[test]
    fn worst_load_decides_and_none_may_be_unknown() {
        use PhaseKind::{Both, Down, Up};

        let table = [
            (
                vec![(Down, Some(91_000_000)), (Up, Some(410_000_000))],
                Some(("F", Up, 410_000_000)),
            ),
            (
                vec![
                    (Down, Some(4_000_000)),
                    (Up, Some(2_000_000)),
                    (Both, Some(203_000_000)),
                ],
                Some(("D", Both, 203_000_000)),
            ),
            (vec![(Down, Some(91_000_000)), (Up, None)], None),
            (vec![], None),
        ];
        for (loads, expected) in table {
            let expected = expected.map(|(letter, load, added_ns)| Grade {
                letter: String::from(letter),
                load: Some(load),
                added_ns,
                probe: ProbeKind::Icmp,
            });
            assert_eq!(grade(&loads, ProbeKind::Icmp), expected, "{loads:?}");
        }
    }
}

#[cfg(test)]
mod mos_tests {
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

#[cfg(test)]
mod responsiveness_tests {
    use super::*;

    const MS: i64 = 1_000_000;

    #[test]
    fn a_slow_load_with_fast_connections_has_both_formulas() {
        let (foreign, own) = ([20 * MS; 30], [200 * MS; 100]);
        let found = responsiveness(&foreign, &foreign, &foreign, &own);
        assert_eq!(
            (found.rpm, found.foreign, found.own),
            (Some(1650.0), Some(3000.0), Some(300.0))
        );

        // 60,000 / ((200 + 20) / 2) = 545.45.
        assert!(
            found
                .mean_rtt
                .is_some_and(|rpm| (rpm - 545.45).abs() < 0.01),
            "{found:?}"
        );
    }

    #[test]
    fn foreign_probes_count_by_the_mean_of_their_three_parts() {
        // (10 + 20 + 30) / 3 = 20 ms.
        let found = responsiveness(&[10 * MS], &[20 * MS], &[30 * MS], &[]);
        assert_eq!(
            (found.foreign, found.own, found.rpm, found.mean_rtt),
            (Some(3000.0), None, None, None)
        );
        assert_eq!(
            responsiveness(&[10 * MS], &[], &[30 * MS], &[20 * MS]).foreign,
            None
        );
    }

    #[test]
    fn the_slowest_in_twenty_does_not_count() {
        let mut own = vec![100 * MS; 19];
        own.push(9000 * MS);
        assert_eq!(responsiveness(&[], &[], &[], &own).own, Some(600.0));
        assert_eq!(responsiveness(&[], &[], &[], &[0, 0]).own, None);
    }

    #[test]
    fn classes_have_the_borders_of_the_draft() {
        let table = [
            (0.0, "poor"),
            (299.9, "poor"),
            (300.0, "fair"),
            (999.9, "fair"),
            (1000.0, "good"),
            (5999.9, "good"),
            (6000.0, "excellent"),
        ];
        for (rpm, class) in table {
            assert_eq!(responsiveness_class(rpm), class, "{rpm}");
        }
    }
}
