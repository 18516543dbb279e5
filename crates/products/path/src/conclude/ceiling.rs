//! Upper bounds of the rate of one direction.

use linerate_model::path::RateCeiling;

/// Facts about both ends of one direction. Every figure is optional: what is unknown limits
/// nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CeilingFacts {
    /// Rate of this host's link in bit/s.
    pub link_bps: Option<f64>,
    /// Rate of the other host's link in bit/s.
    pub far_link_bps: Option<f64>,
    /// Share of a link's bits that is payload on full-size packets: 0.9415 with TCP over IPv4 and
    /// an MTU of 1500.
    pub link_payload_share: f64,
    /// Rate of a shaper in one of the two hosts in bit/s.
    pub shaper_bps: Option<f64>,
    /// Share of a shaper's bits that is payload: 0.9564 with an MTU of 1500 (tc-tbf(8) counts 14
    /// bytes of header).
    pub shaper_payload_share: f64,
    /// Largest receive window of the receiving end in bytes.
    pub receive_window_bytes: Option<u64>,
    /// Largest send buffer of the sending end in bytes.
    pub send_buffer_bytes: Option<u64>,
    /// Streams that share the load: each has a window and a buffer of its own.
    pub streams: u32,
    /// Rate that the user asked for in bit/s.
    pub rate_bps: Option<f64>,
}

/// The least of all limits, payload in bit/s. Windows and buffers limit by the round trip without
/// load (RFC 6349 section 3.3.1). `None` where nothing is known.
pub(super) fn ceiling(facts: &CeilingFacts, idle_rtt_ns: Option<i64>) -> Option<RateCeiling> {
    let per_round_trip = |bytes: Option<u64>| {
        let seconds = idle_rtt_ns.filter(|ns| *ns > 0)? as f64 / 1e9;
        Some(bytes? as f64 * 8.0 * f64::from(facts.streams.max(1)) / seconds)
    };
    let share_of = |bps: Option<f64>, share: f64| bps.map(|bps| bps * share);
    let limits = [
        ("link", share_of(facts.link_bps, facts.link_payload_share)),
        (
            "far-link",
            share_of(facts.far_link_bps, facts.link_payload_share),
        ),
        (
            "shaper",
            share_of(facts.shaper_bps, facts.shaper_payload_share),
        ),
        ("receive-window", per_round_trip(facts.receive_window_bytes)),
        ("send-buffer", per_round_trip(facts.send_buffer_bytes)),
        ("rate", facts.rate_bps),
    ];
    let known = limits
        .into_iter()
        // A link or shaper without a share of payload has a limit of 0, which is none.
        .filter_map(|(by, bps)| bps.filter(|bps| *bps > 0.0).map(|bps| (by, bps)));
    let (by, rate_bps) = known.min_by(|a, b| a.1.total_cmp(&b.1))?;

    Some(RateCeiling {
        rate_bps,
        by: by.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use linerate_doctor::arithmetic::{shaper_payload, tcp_ceiling};

    use super::*;

    const MS: i64 = 1_000_000;

    fn link(bps: f64) -> CeilingFacts {
        CeilingFacts {
            link_bps: Some(bps),
            link_payload_share: tcp_ceiling(1.0, 1500.0),
            shaper_payload_share: shaper_payload(1.0, 1500.0),
            streams: 1,
            ..CeilingFacts::default()
        }
    }

    fn found(facts: &CeilingFacts, idle_rtt_ns: Option<i64>) -> (f64, String) {
        let ceiling = ceiling(facts, idle_rtt_ns).expect("a limit");
        ((ceiling.rate_bps / 1e5).round() / 10.0, ceiling.by)
    }

    #[test]
    fn the_least_limit_decides() {
        let gigabit = link(1e9);
        assert_eq!(found(&gigabit, Some(10 * MS)), (941.5, "link".to_owned()));
        assert_eq!(
            found(
                &CeilingFacts {
                    far_link_bps: Some(1e8),
                    ..gigabit
                },
                None
            ),
            (94.1, "far-link".to_owned())
        );

        // 1448 of 1514 bytes of 100 Mbit/s.
        assert_eq!(
            found(
                &CeilingFacts {
                    shaper_bps: Some(1e8),
                    ..gigabit
                },
                None
            ),
            (95.6, "shaper".to_owned())
        );
        assert_eq!(
            found(
                &CeilingFacts {
                    rate_bps: Some(5e6),
                    ..gigabit
                },
                None
            ),
            (5.0, "rate".to_owned())
        );
    }

    #[test]
    fn windows_limit_by_the_round_trip_and_per_stream() {
        // 1 MB per 100 ms is 80 Mbit/s of one stream.
        let small = CeilingFacts {
            receive_window_bytes: Some(1_000_000),
            ..link(1e9)
        };
        assert_eq!(
            found(&small, Some(100 * MS)),
            (80.0, "receive-window".to_owned())
        );
        assert_eq!(
            found(
                &CeilingFacts {
                    streams: 4,
                    ..small
                },
                Some(100 * MS)
            ),
            (320.0, "receive-window".to_owned())
        );
        assert_eq!(found(&small, None).1, "link");

        let buffer = CeilingFacts {
            send_buffer_bytes: Some(500_000),
            ..small
        };
        assert_eq!(
            found(&buffer, Some(100 * MS)),
            (40.0, "send-buffer".to_owned())
        );
    }

    #[test]
    fn without_facts_there_is_no_ceiling() {
        assert_eq!(ceiling(&CeilingFacts::default(), Some(MS)), None);
    }
}
