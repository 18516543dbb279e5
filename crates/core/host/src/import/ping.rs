//! Output of `ping` of Linux, macOS and Windows: loss, round trips, and the packet sizes that pass
//! unfragmented.

use super::lines::*;
use crate::prelude::*;

const SRC: &str = "import:ping";
/// ICMP and IP headers around the payload of an echo.
const HEADERS_V4_BYTES: f64 = 28.0;
const HEADERS_V6_BYTES: f64 = 48.0;

/// Reads the output of one command.
#[derive(Default)]
pub(super) struct Reader<'a> {
    /// Payload that the command requests, bytes.
    payload: Option<f64>,
    /// Routers must not fragment: `-M do`, `-D` of macOS, `-f` of Windows.
    is_whole: bool,
    is_active: bool,
    peer: &'a str,
    /// Length of the packets, bytes.
    packet: Option<f64>,
    sent: Option<f64>,
    received: f64,
    /// Smallest, mean and largest round trip, ms.
    rtt_ms: [Option<f64>; 3],
    /// A router or this host says that the packets are too large.
    is_refused: bool,
    /// The MTU that it names.
    reported_mtu: Option<f64>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(block: &Block<'a>) -> Self {
        let words: Vec<&str> = block.words().collect();
        let is_ping = matches!(block.program(), "ping" | "ping6");
        let number = |option| after(&words, option).and_then(|word| word.parse::<f64>().ok());
        // On Linux `-f` is a flood and `-l` a preload, which need root and are rarely pasted.
        let is_windows = number("-l").is_some() || words.contains(&"-f");
        let is_whole = matches!(after(&words, "-M"), Some("do" | "probe"))
            // DF is `-M do` on Linux, `-D` on macOS and the BSDs, `-f` on Windows.
            || block.has("-D")
            || block.has("-f");

        Self {
            payload: if is_windows {
                number("-l")
            } else {
                number("-s")
            },
            is_whole: is_ping && is_whole,
            is_active: is_ping,
            peer: words
                .last()
                .copied()
                .filter(|_| is_ping)
                .unwrap_or_default(),
            ..Self::default()
        }
    }

    /// `PING h (192.0.2.1) 1472(1500) bytes of data.`, `PING h(2001:db8::1) 56 data bytes`,
    /// `Pinging h [192.0.2.1] with 32 bytes of data:`
    fn beginning(&mut self, line: &str) -> bool {
        let Some(rest) = line
            .strip_prefix("PING ")
            .or_else(|| line.strip_prefix("Pinging "))
        else {
            return false;
        };
        let words: Vec<&str> = rest.split_whitespace().collect();
        let Some(at) = words
            .iter()
            .position(|word| *word == "bytes" || *word == "data")
        else {
            return false;
        };
        let size = at
            .checked_sub(1)
            .and_then(|before| words.get(before))
            .copied()
            .unwrap_or_default();

        // Linux has the length of the packet in brackets.
        let whole = size
            .split_once('(')
            .and_then(|(_, rest)| leading_number(rest));
        let is_v6 = words
            .first()
            .is_some_and(|host| host.matches(':').count() > 1);
        let headers = if is_v6 {
            HEADERS_V6_BYTES
        } else {
            HEADERS_V4_BYTES
        };
        self.packet = whole.or_else(|| Some(leading_number(size)? + headers));
        self.is_active = true;

        true
    }

    /// Evidence that packets of this size do not pass.
    fn refusal(&mut self, line: &str) -> bool {
        const REFUSALS: [&str; 4] = [
            "Frag needed and DF set",
            "essage too long",
            "Packet needs to be fragmented but DF set",
            "Packet too big",
        ];

        if !REFUSALS.iter().any(|text| line.contains(text)) {
            return false;
        }

        self.is_refused = true;
        let named = line
            .split_once("mtu")
            .map(|(_, rest)| rest.trim_start_matches([' ', '=', ':']));
        self.reported_mtu = named
            .and_then(leading_number)
            .filter(|mtu| *mtu > 0.0)
            .or(self.reported_mtu);

        true
    }

    /// `5 packets transmitted, 5 received, 0% packet loss`,
    /// `Packets: Sent = 4, Received = 4, Lost = 0 (0% loss),`
    fn totals(&mut self, line: &str) -> bool {
        let text = line.trim();
        let windows = |name: &str| leading_number(text.split_once(name)?.1);
        if let Some(sent) = windows("Sent = ") {
            self.sent = Some(sent);
            self.received = windows("Received = ").unwrap_or(0.0);
            return true;
        }

        let mut parts = text.split(", ");
        let Some(sent) = parts
            .next()
            .and_then(|part| part.strip_suffix(" packets transmitted"))
        else {
            return false;
        };
        self.sent = sent.parse().ok();
        self.received = parts.next().and_then(leading_number).unwrap_or(0.0);

        true
    }

    /// `rtt min/avg/max/mdev = 0.199/0.205/0.211/0.006 ms`,
    /// `Minimum = 47ms, Maximum = 48ms, Average = 48ms`
    fn round_trips(&mut self, line: &str) -> bool {
        let text = line.trim();
        let windows = |name: &str| leading_number(text.split_once(name)?.1);

        if text.starts_with("Minimum = ") {
            self.rtt_ms = [
                windows("Minimum = "),
                windows("Average = "),
                windows("Maximum = "),
            ];
            return true;
        }

        let named = ["rtt min/avg/max", "round-trip min/avg/max"];
        let Some((_, numbers)) = text
            .split_once(" = ")
            .filter(|_| named.iter().any(|name| text.starts_with(name)))
        else {
            return false;
        };
        let mut numbers = numbers.split('/').map(leading_number);
        // Smallest, mean and largest; a deviation behind them is left out.
        self.rtt_ms = std::array::from_fn(|_| numbers.next().flatten());

        true
    }

    /// `64 bytes from 192.0.2.1: icmp_seq=1 ttl=64 time=0.2 ms`,
    /// `Reply from 192.0.2.1: bytes=32 time<1ms TTL=52`
    fn reply(&mut self, line: &str) -> bool {
        let is_reply = line.contains(" bytes from ") && line.contains("_seq=");
        let is_reply = is_reply || (line.starts_with("Reply from ") && line.contains("bytes="));
        if !is_reply {
            return false;
        }

        let Some(after_time) = line
            .split_once("time")
            .map(|(_, rest)| rest.trim_start_matches(['=', '<']))
        else {
            return true;
        };
        // A ping that was cut off has no summary.
        if let Some(ms) = leading_number(after_time)
            && self.sent.is_none()
        {
            self.received += 1.0;
            let [least, mean, most] = self.rtt_ms;
            let mean = mean.map_or(ms, |mean| mean + (ms - mean) / self.received);
            self.rtt_ms = [
                Some(least.map_or(ms, |known| known.min(ms))),
                Some(mean),
                Some(most.map_or(ms, |known| known.max(ms))),
            ];
        }

        true
    }

    /// The sizes of packets that must not be fragmented, over all pings to one host: the largest
    /// that passed and the smallest that did not.
    fn record_sizes(&self, snapshot: &mut Snapshot) {
        let Some(bytes) = self
            .packet
            .or_else(|| Some(self.payload? + HEADERS_V4_BYTES))
        else {
            return;
        };
        let known_peer = snapshot.text("path.sized_peer").map(str::to_owned);
        if !self.is_whole || known_peer.is_some_and(|known| known != self.peer) {
            return;
        }

        let passed = snapshot.number("path.passed_bytes");
        let failed = snapshot.number("path.failed_bytes");
        // One reply is enough: a size that passes once passes the path, and the others were lost
        // for another reason.
        let is_failed =
            self.received == 0.0 && (self.sent.is_some_and(|sent| sent > 0.0) || self.is_refused);

        if self.received > 0.0 {
            snapshot.set_in(
                "path.passed_bytes",
                // Several pings of one paste are steps of a search; the largest that passed and the
                // smallest that failed are its result.
                passed.map_or(bytes, |known| known.max(bytes)),
                "bytes",
                SRC,
            );
            snapshot.set("path.small_passes", true, SRC);
        } else if is_failed {
            snapshot.set_in(
                "path.failed_bytes",
                failed.map_or(bytes, |known| known.min(bytes)),
                "bytes",
                SRC,
            );
        } else {
            return;
        }

        snapshot.set("path.sized_peer", self.peer, SRC);

        let is_narrow = snapshot.number("path.failed_bytes").is_some();
        let was_reported = snapshot.flag("path.told_mtu") == Some(true);
        snapshot.set("path.large_passes", !is_narrow, SRC);
        snapshot.set("path.told_mtu", was_reported || self.is_refused, SRC);
        snapshot.set_known_in("path.forward_mtu", self.reported_mtu, "bytes", SRC);
    }
}

impl LineReader for Reader<'_> {
    fn line(&mut self, _: &mut Snapshot, line: &str) -> bool {
        if self.beginning(line) {
            return true;
        }
        if !self.is_active {
            return false;
        }

        const OF_NO_USE: [&str; 5] = [
            "Approximate round trip times",
            "Request timed out",
            "Request timeout for",
            "Ping statistics for",
            "pipe ",
        ];

        self.reply(line)
            || self.refusal(line)
            || self.totals(line)
            || self.round_trips(line)
            || (line.starts_with("--- ") && line.trim_end().ends_with("ping statistics ---"))
            || (line.starts_with("From ") && line.contains("nreachable"))
            || OF_NO_USE.iter().any(|text| line.starts_with(text))
    }

    fn finish(&mut self, snapshot: &mut Snapshot) {
        if !self.is_active {
            return;
        }

        self.record_sizes(snapshot);
        // What full-size packets lose is no loss of ordinary ones.
        if self.is_whole {
            return;
        }

        if let Some(sent) = self.sent.filter(|sent| *sent > 0.0) {
            snapshot.set("path.ping_sent", sent, SRC);
            snapshot.set(
                "path.ping_loss_share",
                (1.0 - self.received / sent).clamp(0.0, 1.0),
                SRC,
            );
        }

        for (fact, ms) in ["rtt_min_us", "rtt_us", "rtt_max_us"]
            .into_iter()
            .zip(self.rtt_ms)
        {
            snapshot.set_known_in(format!("path.{fact}"), ms.map(|ms| ms * 1e3), "µs", SRC);
        }
    }
}

#[cfg(test)]
mod tests {
    use linerate_model::snapshot::Source;

    use super::*;

    fn read(snapshot: &mut Snapshot, command: &str, output: &str) {
        let mut reader = Reader::new(&Block {
            host: None,
            command,
            lines: Vec::new(),
        });
        for line in output.lines().filter(|line| !line.trim().is_empty()) {
            assert!(reader.line(snapshot, line), "{line}");
        }

        reader.finish(snapshot);
    }

    fn facts(command: &str, output: &str) -> Snapshot {
        let mut snapshot = Snapshot::new("a", Source::Import);
        read(&mut snapshot, command, output);
        snapshot
    }

    #[test]
    fn loss_and_round_trips_of_each_system() {
        let linux = "PING h (192.0.2.1) 56(84) bytes of data.\n64 bytes from 192.0.2.1: icmp_seq=1 \
                     ttl=64 time=9.1 ms\n\n\
                     --- h ping statistics ---\n4 packets transmitted, 3 received, 25% packet \
                     loss, time 3004ms\n\
                     rtt min/avg/max/mdev = 9.0/9.5/10.0/0.1 ms\n";
        let mac = "PING h (192.0.2.1): 56 data bytes\nRequest timeout for icmp_seq 0\n\
                   64 bytes from 192.0.2.1: icmp_seq=1 ttl=64 time=9.1 ms\n--- h ping statistics \
                   ---\n\
                   4 packets transmitted, 3 packets received, 25.0% packet loss\nround-trip \
                   min/avg/max/stddev = 9.0/9.5/10.0/0.1 ms\n";

        let windows = "Pinging 192.0.2.1 with 32 bytes of data:\nReply from 192.0.2.1: bytes=32 \
                       time=9ms TTL=52\nRequest timed out.\n\
                       Ping statistics for 192.0.2.1:\n    Packets: Sent = 4, Received = 3, Lost = \
                       1 (25% loss),\n\
                       Approximate round trip times in milli-seconds:\n    Minimum = 9ms, Maximum \
                       = 10ms, Average = 9.5ms\n";
        for (name, output) in [("linux", linux), ("mac", mac), ("windows", windows)] {
            let snapshot = facts("ping h", output);
            let number = |fact: &str| snapshot.number(&format!("path.{fact}"));
            assert_eq!(
                (number("ping_sent"), number("ping_loss_share")),
                (Some(4.0), Some(0.25)),
                "{name}"
            );

            let rtt = ["rtt_min_us", "rtt_us", "rtt_max_us"].map(number);
            assert_eq!(rtt, [Some(9000.0), Some(9500.0), Some(10_000.0)], "{name}");
        }
    }

    #[test]
    fn replies_without_a_summary_give_a_round_trip_and_no_loss() {
        let snapshot = facts(
            "ping h",
            "Reply from 192.0.2.1: bytes=32 time=40ms TTL=52\nReply from 192.0.2.1: bytes=32 \
             time=50ms TTL=52\n",
        );
        assert_eq!(snapshot.number("path.rtt_us"), Some(45_000.0));
        assert_eq!(snapshot.value("path.ping_loss_share"), None);
    }

    #[test]
    fn sizes_that_pass_unfragmented() {
        let large = "PING h (192.0.2.1) 8972(9000) bytes of data.\n\n--- h ping statistics ---\n2 \
                     packets transmitted, 0 received, 100% packet loss, time 1ms\n";
        let small = "PING h (192.0.2.1) 1472(1500) bytes of data.\n1480 bytes from 192.0.2.1: \
                     icmp_seq=1 ttl=64 time=0.2 ms\n--- h ping statistics ---\n2 packets \
                     transmitted, 2 received, 0% packet loss, time 1ms\n";
        let reported = "PING h (192.0.2.1) 8972(9000) bytes of data.\nFrom 192.0.2.9 icmp_seq=1 \
                        Frag needed and DF set (mtu = 1400)\n--- h ping statistics ---\n2 packets \
                        transmitted, 0 received, +2 errors, 100% packet loss, time 1ms\n";
        let local = "PING h (192.0.2.1) 8972(9000) bytes of data.\nping: local error: message too \
                     long, mtu=1500\n";
        let windows = "Pinging h [192.0.2.1] with 8972 bytes of data:\nPacket needs to be \
                       fragmented but DF set.\nPing statistics for 192.0.2.1:\n    Packets: Sent = \
                       1, Received = 0, Lost = 1 (100% loss),\n";

        for (name, command, output, reported) in [
            ("vanished", "ping -M do -s 8972 h", large, false),
            ("reported", "ping -M do -s 8972 h", reported, true),
            ("local", "ping -M do -s 8972 h", local, true),
            ("windows", "ping -f -l 8972 h", windows, true),
        ] {
            let mut snapshot = facts(command, output);
            assert_eq!(snapshot.value("path.small_passes"), None, "{name}");
            read(&mut snapshot, "ping -M do -s 1472 h", small);

            let number = |fact: &str| snapshot.number(&format!("path.{fact}"));
            assert_eq!(
                (number("passed_bytes"), number("failed_bytes")),
                (Some(1500.0), Some(9000.0)),
                "{name}"
            );
            let flags = ["small_passes", "large_passes", "told_mtu"]
                .map(|fact| snapshot.flag(&format!("path.{fact}")));
            assert_eq!(flags, [Some(true), Some(false), Some(reported)], "{name}");
            assert_eq!(number("ping_loss_share"), None, "{name}");
        }

        // Without the flag routers fragment, and another host has another path.
        let mut snapshot = facts("ping -s 8972 h", large);
        assert_eq!(snapshot.value("path.large_passes"), None);
        read(&mut snapshot, "ping -M do -s 8972 h", large);
        read(&mut snapshot, "ping -M do -s 1472 other", small);
        assert_eq!(snapshot.value("path.small_passes"), None);
    }
}
