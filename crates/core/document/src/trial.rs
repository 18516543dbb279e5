//! The closing line of `linerate try`.

use crate::numbers::{digits, rate};

/// Data that arrived in one test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Received {
    /// Payload at the receiver in bit/s.
    pub rate_bps: f64,
    /// Lost datagrams in percent of those sent; `None` for TCP.
    pub lost_percent: Option<f64>,
}

/// All tests passed: their numbers, up and down for each transport, and the next command.
pub fn passed(tcp: [Received; 2], udp: [Received; 2]) -> String {
    format!(
        "Passed: TCP {}, {}; UDP {}, {}. \
         Next: `linerate serve` on one host, `linerate iperf3 -c HOST` on another.\n",
        figure(tcp[0], "up"),
        figure(tcp[1], "down"),
        figure(udp[0], "up"),
        figure(udp[1], "down"),
    )
}

/// The test of this title failed.
pub fn failed(title: &str, reason: &str) -> String {
    format!(
        "Failed: {title}: {reason}. Next: `linerate doctor lo` looks for the cause on this \
         host.\n"
    )
}

fn figure(received: Received, way: &str) -> String {
    let lost = received.lost_percent.map(|percent| match percent {
        0.0 => " (0 % lost)".to_owned(),
        // Rounded to two digits this would be no loss.
        some if some < 0.01 => " (less than 0.01 % lost)".to_owned(),
        some => format!(" ({} % lost)", digits(some)),
    });
    let lost = lost.unwrap_or_default();
    format!("{} {way}{lost}", rate(received.rate_bps))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(rate_bps: f64, lost_percent: Option<f64>) -> Received {
        Received {
            rate_bps,
            lost_percent,
        }
    }

    #[test]
    fn closing_line_holds_four_numbers_and_the_next_command() {
        let tcp = [received(38.2e9, None), received(9.5e9, None)];
        let udp = [received(999.6e6, Some(0.0)), received(900e6, Some(9.96))];
        assert_eq!(
            passed(tcp, udp),
            "Passed: TCP 38.2 Gbit/s up, 9.50 Gbit/s down; UDP 1.00 Gbit/s up (0 % lost), 900 \
             Mbit/s down (9.96 % lost). Next: `linerate serve` on one host, `linerate iperf3 -c \
             HOST` on another.\n"
        );

        let few = passed(tcp, [received(1e9, Some(0.001)), udp[1]]);
        assert!(
            few.contains("1.00 Gbit/s up (less than 0.01 % lost)"),
            "{few}"
        );
    }

    #[test]
    fn a_failure_names_the_test_and_the_reason() {
        let line = failed("TCP, the other direction", "nothing was received");
        assert!(
            line.starts_with("Failed: TCP, the other direction: nothing was received. "),
            "{line}"
        );
        assert_eq!(line.lines().count(), 1);
    }
}
