//! The kernel's log, from `dmesg`, `journalctl -k` or syslog: changes of links, stalls of transmit
//! queues, and tables that are full.

use std::collections::BTreeMap;

use super::lines::*;
use crate::prelude::*;

const SRC: &str = "import:dmesg";
/// Speeds of one link that are kept.
const SPEEDS_MAX: usize = 16;

/// Events of one link in the log.
#[derive(Debug, Default)]
struct Link {
    downs: u64,
    ups: u64,
    is_up: bool,
    /// Seconds since boot of the first and the last change.
    first_and_last: Option<(f64, f64)>,
    speeds_mbps: Vec<i64>,
}

/// Reads lines of the log.
#[derive(Default)]
pub(super) struct Reader {
    is_log: bool,
    links: BTreeMap<String, Link>,
    tx_timeouts: BTreeMap<String, u64>,
    table_full: u64,
}

impl Reader {
    pub(super) fn new(block: &Block<'_>) -> Self {
        Self {
            is_log: matches!(block.program(), "dmesg" | "journalctl"),
            ..Self::default()
        }
    }

    /// `igc 0000:13:00.0 eth1: NIC Link is Up 2500 Mbps Full Duplex`,
    /// `eth0: Link is Up - 1Gbps/Full`, `r8169 ... eth0: link down`
    fn link(&mut self, seconds: Option<f64>, message: &str) -> bool {
        let Some((at, is_up)) = change(message) else {
            return false;
        };
        let before = message.get(..at).unwrap_or_default().trim_end();
        let before = before
            .strip_suffix("NIC")
            .unwrap_or(before)
            .trim_end()
            .trim_end_matches(':');
        let name = before
            .split_whitespace()
            .last()
            .unwrap_or_default()
            .trim_end_matches(':');
        if !is_interface(name) {
            return false;
        }

        let link = self.links.entry(name.to_owned()).or_default();
        link.is_up = is_up;

        if is_up {
            link.ups = link.ups.saturating_add(1);
            link.add_speed(message.get(at..).unwrap_or_default());
        } else {
            link.downs = link.downs.saturating_add(1);
        }

        if let Some(now) = seconds {
            let first = link.first_and_last.map_or(now, |(first, _)| first);
            link.first_and_last = Some((first, now));
        }

        true
    }

    /// `NETDEV WATCHDOG: eth0 (e1000e): transmit queue 0 timed out`
    fn timeout(&mut self, message: &str) -> bool {
        let Some((_, rest)) = message.split_once("NETDEV WATCHDOG: ") else {
            return false;
        };
        let name = rest.split([' ', ':']).next().unwrap_or_default();
        if !is_interface(name) || !rest.contains("timed out") {
            return false;
        }

        let count = self.tx_timeouts.entry(name.to_owned()).or_default();
        *count = count.saturating_add(1);
        true
    }
}

impl Link {
    fn add_speed(&mut self, text: &str) {
        let words: Vec<&str> = text.split([' ', '/', ',']).collect();
        let of_word = |(index, word): (usize, &&str)| {
            let number = leading_number(word)?;
            let unit = word.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
            let unit = if unit.is_empty() {
                words.get(index + 1).copied()?
            } else {
                unit
            };
            match unit {
                "Mbps" => Some(number),
                "Gbps" => Some(number * 1000.0),
                _ => None,
            }
        };
        let speed = words
            .iter()
            .enumerate()
            .find_map(of_word)
            .filter(|mbps| (1.0..1e7).contains(mbps));
        if let Some(speed) = speed.filter(|_| self.speeds_mbps.len() < SPEEDS_MAX) {
            self.speeds_mbps.push(speed as i64);
        }
    }

    fn record(self, snapshot: &mut Snapshot, nic: &str) {
        snapshot.count(format!("{nic}.link.log_downs"), self.downs);
        snapshot.count(format!("{nic}.link.log_ups"), self.ups);

        if let Some((first, last)) = self.first_and_last.filter(|(first, last)| last > first) {
            snapshot.set_in(format!("{nic}.link.log_seconds"), last - first, "s", SRC);
        }

        let speeds: Vec<Value> = self
            .speeds_mbps
            .iter()
            .map(|speed| Value::from(*speed))
            .collect();
        if !speeds.is_empty() {
            snapshot.set(format!("{nic}.link.log_speeds"), Value::List(speeds), SRC);
        }

        // What the link is now is known better from other output.
        if snapshot.value(&format!("{nic}.link.up")).is_none() {
            snapshot.set(format!("{nic}.link.up"), self.is_up, SRC);
        }
    }
}

impl LineReader for Reader {
    fn line(&mut self, _: &mut Snapshot, line: &str) -> bool {
        let Some((seconds, message)) = split(line) else {
            // A shell may have cut the time of the log away.
            return self.is_log && self.link(None, line);
        };
        if message.contains("nf_conntrack: ") && message.contains("table full, dropping packet") {
            self.table_full = self.table_full.saturating_add(1);
            return true;
        }

        self.link(seconds, message) || self.timeout(message)
    }

    fn finish(&mut self, snapshot: &mut Snapshot) {
        for (name, link) in std::mem::take(&mut self.links) {
            link.record(snapshot, &format!("nic.{name}"));
        }

        for (name, count) in &self.tx_timeouts {
            snapshot.count(format!("nic.{name}.link.log_tx_timeouts"), *count);
        }

        if self.table_full > 0 {
            snapshot.count("conntrack.log_full", self.table_full);
        }
    }
}

/// Seconds since boot, where the line has them, and the message: `[58437.485179] message`,
/// `[Sat Jun  1 12:00:00 2024] message`, `Jun  1 12:00:00 host kernel: message`.
fn split(line: &str) -> Option<(Option<f64>, &str)> {
    if let Some((time, message)) = line
        .strip_prefix('[')
        .and_then(|rest| rest.split_once("] "))
    {
        let seconds = time
            .trim()
            .parse::<f64>()
            .ok()
            .filter(|seconds| seconds.is_finite());
        let is_date = || time.split_whitespace().count() == 5 && time.contains(':');
        return (seconds.is_some() || is_date()).then_some((seconds, message));
    }

    let (_, message) = line.split_once(" kernel: ")?;
    // journalctl may keep the time since boot behind its own.
    let inner = message
        .strip_prefix('[')
        .and_then(|rest| rest.split_once("] "));
    let seconds = inner.and_then(|(time, _)| time.trim().parse::<f64>().ok());

    Some((seconds, inner.map_or(message, |(_, message)| message)))
}

/// Where a message says that a link changed, and whether it came up.
fn change(message: &str) -> Option<(usize, bool)> {
    const CHANGES: [(&str, bool); 6] = [
        ("Link is Down", false),
        ("Link is Up", true),
        ("Link is down", false),
        ("Link is up", true),
        ("link down", false),
        ("link up", true),
    ];

    CHANGES
        .iter()
        .find_map(|(words, is_up)| Some((message.find(words)?, *is_up)))
}

/// Names of the kernel have at most 15 characters (`IFNAMSIZ`).
fn is_interface(name: &str) -> bool {
    (1..16).contains(&name.len())
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

#[cfg(test)]
mod tests {
    use linerate_model::snapshot::Source;

    use super::*;

    #[test]
    fn changes_of_a_link_in_the_words_of_several_drivers() {
        let igc = "[10.5] igc 0000:13:00.0 eth1: NIC Link is Down\n[20.5] igc 0000:13:00.0 eth1: \
                   NIC Link is Up 2500 Mbps Full Duplex, Flow Control: RX/TX\n";
        let phylib = "[10.5] mv88e6085 30be0000.ethernet-1:00 eth1: Link is Down\n[20.5] mvneta \
                      f1070000.ethernet eth1: Link is Up - 2.5Gbps/Full - flow control rx/tx\n";
        let e1000e = "[10.5] e1000e: eth1 NIC Link is Down\n[20.5] e1000e: eth1 NIC Link is Up \
                      2500 Mbps Full Duplex, Flow Control: None\n";

        let journal = "Jun 01 12:00:00 host kernel: [10.5] r8169 0000:04:00.0 eth1: Link is \
                       Down\nJun 01 12:00:10 host kernel: [20.5] r8169 0000:04:00.0 eth1: Link is \
                       Up - 2.5Gbps/Full - flow control off\n";
        for log in [igc, phylib, e1000e, journal] {
            let mut snapshot = Snapshot::new("a", Source::Import);
            let mut reader = Reader::new(&Block {
                host: None,
                command: "dmesg",
                lines: Vec::new(),
            });

            for line in log.lines() {
                assert!(reader.line(&mut snapshot, line), "{line}");
            }

            reader.finish(&mut snapshot);
            let count = |fact: &str| {
                snapshot
                    .counters
                    .get(&format!("nic.eth1.link.{fact}"))
                    .map(|counter| counter.v)
            };
            assert_eq!(
                (count("log_downs"), count("log_ups")),
                (Some(1), Some(1)),
                "{log}"
            );
            assert_eq!(
                snapshot.number("nic.eth1.link.log_seconds"),
                Some(10.0),
                "{log}"
            );
            assert_eq!(
                snapshot.value("nic.eth1.link.log_speeds"),
                Some(&Value::List(vec![2500_i64.into()])),
                "{log}"
            );
            assert_eq!(snapshot.flag("nic.eth1.link.up"), Some(true));
        }
    }

    #[test]
    fn full_tables_and_stalled_queues_are_counted_and_other_messages_are_not_understood() {
        let mut snapshot = Snapshot::new("a", Source::Import);
        let mut reader = Reader::new(&Block {
            host: None,
            command: "dmesg",
            lines: Vec::new(),
        });

        for line in [
            "[1.0] nf_conntrack: table full, dropping packet",
            "[Sat Jun  1 12:00:00 2024] nf_conntrack: nf_conntrack: table full, dropping packet",
            "[2.0] NETDEV WATCHDOG: eth0 (e1000e): transmit queue 0 timed out",
        ] {
            assert!(reader.line(&mut snapshot, line), "{line}");
        }

        for line in [
            "[3.0] usb 1-1: new device",
            "[  5]   0.00-1.00   sec  1 MBytes",
            "no log",
        ] {
            assert!(!reader.line(&mut snapshot, line), "{line}");
        }

        reader.finish(&mut snapshot);
        assert_eq!(snapshot.counters["conntrack.log_full"].v, 2);
        assert_eq!(snapshot.counters["nic.eth0.link.log_tx_timeouts"].v, 1);
    }
}
