//! Responsiveness under load in round trips per minute.

use linerate_model::path::trimmed_mean;

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
    let (foreign, own) = (foreign_ms.and_then(per_minute), own_ms.and_then(per_minute));
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
