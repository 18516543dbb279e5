//! Output of `iw dev DEV link` and `iw dev DEV station dump`.

use super::lines::*;
use crate::prelude::*;

const SRC: &str = "import:iw";

/// Reads lines of iw.
pub(super) struct Reader {
    /// The interface that the indented lines describe.
    device: Option<String>,
    /// Device of the command.
    named: Option<String>,
}

impl Reader {
    pub(super) fn new(block: &Block<'_>) -> Self {
        let words: Vec<&str> = block.words().collect();
        let named = super::lines::after(&words, "dev").filter(|_| block.program() == "iw");
        Self {
            device: None,
            named: named.map(str::to_owned),
        }
    }

    /// `Connected to 02:00:00:00:00:01 (on wlan0)`, `Station 02:00:00:00:00:01 (on wlan0)`
    fn beginning(&mut self, snapshot: &mut Snapshot, line: &str) -> bool {
        if line.trim_end() == "Not connected." {
            let Some(name) = &self.named else {
                return false;
            };
            snapshot.set(format!("nic.{name}.link.up"), false, SRC);
            return true;
        }

        let rest = line
            .strip_prefix("Connected to ")
            .or_else(|| line.strip_prefix("Station "));
        let Some(name) =
            rest.and_then(|rest| rest.trim_end().split_once(" (on ")?.1.strip_suffix(')'))
        else {
            return false;
        };
        snapshot.set(format!("nic.{name}.net.wireless"), true, SRC);
        snapshot.set(format!("nic.{name}.link.up"), true, SRC);
        self.device = Some(name.to_owned());

        true
    }
}

impl LineReader for Reader {
    fn line(&mut self, snapshot: &mut Snapshot, line: &str) -> bool {
        if self.beginning(snapshot, line) {
            return true;
        }

        if !line.starts_with(char::is_whitespace) {
            self.device = None;
            return false;
        }

        let (Some(name), Some((key, value))) = (&self.device, field(line)) else {
            return false;
        };
        let wifi = &mut Recorder::new(snapshot, format!("nic.{name}.wifi"), SRC);
        let rate = || leading_number(value).filter(|_| value.to_lowercase().contains("mbit/s"));

        match key {
            "signal" => {
                // An access point has several stations, of which the weakest is of interest.
                let signal = value
                    .split_whitespace()
                    .next()
                    .and_then(|word| word.parse::<i64>().ok());
                let known = wifi.snapshot.number(&wifi.key("signal_dbm"));
                let weakest = signal.filter(|dbm| known.is_none_or(|known| (*dbm as f64) < known));
                wifi.known_in("signal_dbm", weakest, "dBm");
            }
            "tx bitrate" => wifi.known_in("tx_mbps", rate(), "Mbit/s"),
            "rx bitrate" => wifi.known_in("rx_mbps", rate(), "Mbit/s"),
            "tx packets" | "tx retries" | "tx failed" => {
                wifi.count(key.replace(' ', "_"), value.parse().ok());
            }
            _ => {}
        }

        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::facts_of;
    use super::*;

    fn facts(command: &str, output: &str) -> Snapshot {
        facts_of(Reader::new, command, output)
    }

    #[test]
    fn links_and_stations() {
        let link = "Connected to 02:00:00:00:00:01 (on wlan0)\n\tSSID: x\n\tfreq: 5180\n\tsignal: \
                    -71 dBm\n\ttx bitrate: 6.0 MBit/s\n";
        let dump = "Station 02:00:00:00:00:01 (on wlan0)\n\tinactive time:\t4 ms\n\ttx \
                    packets:\t1000\n\ttx retries:\t300\n\ttx failed:\t4\n\tsignal:  \t-60 [-62, \
                    -65] dBm\n\ttx bitrate:\t866.7 MBit/s VHT-MCS 9\nStation 02:00:00:00:00:02 (on \
                    wlan0)\n\tsignal:  \t-80 dBm\n";
        let snapshot = facts("iw dev wlan0 link", link);
        let number =
            |snapshot: &Snapshot, fact: &str| snapshot.number(&format!("nic.wlan0.wifi.{fact}"));
        assert_eq!(
            (
                number(&snapshot, "signal_dbm"),
                number(&snapshot, "tx_mbps")
            ),
            (Some(-71.0), Some(6.0))
        );

        let snapshot = facts("iw dev wlan0 station dump", dump);
        assert_eq!(
            (
                number(&snapshot, "signal_dbm"),
                number(&snapshot, "tx_mbps")
            ),
            (Some(-80.0), Some(866.7))
        );
        let count = |fact: &str| snapshot.counters[&format!("nic.wlan0.wifi.{fact}")].v;
        assert_eq!(
            (count("tx_packets"), count("tx_retries"), count("tx_failed")),
            (1000, 300, 4)
        );
        assert_eq!(
            facts("iw dev wlan0 link", "Not connected.\n").flag("nic.wlan0.link.up"),
            Some(false)
        );
    }
}
