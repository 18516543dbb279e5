//! Output of `netstat -s`, `-st` and `-su`: the name of a protocol alone, and indented below it
//! counters in words or by their names. Older releases have other words for some.

use linerate_model::snapshot::Snapshot;

use super::line_reader::LineReader;

/// Reads lines of netstat.
#[derive(Default)]
pub(super) struct Reader {
    /// Protocol whose counters follow.
    protocol: Option<&'static str>,
}

impl LineReader for Reader {
    fn line(&mut self, snapshot: &mut Snapshot, line: &str) -> bool {
        let text = line.trim();
        if !line.starts_with(char::is_whitespace) {
            let named = text.strip_suffix(':');
            self.protocol = PROTOCOLS.into_iter().find(|known| named == Some(*known));
            return self.protocol.is_some();
        }

        let Some(protocol) = self.protocol else {
            return false;
        };
        let Some(count) = text
            .split_whitespace()
            .find_map(|word| word.parse::<u64>().ok())
        else {
            return text.ends_with(':');
        };

        let by_name = text
            .split_once(": ")
            .map(|(name, _)| name)
            .filter(|name| !name.contains(' '));
        if let Some(name) = in_words(protocol, text).or(by_name) {
            let file = if protocol.ends_with("Ext") {
                "netstat"
            } else {
                "snmp"
            };
            snapshot.count(format!("net.{file}.{protocol}.{name}"), count, None);
        }

        true
    }
}

/// The name of a counter that is written in words, with or without a dot at the end.
fn in_words(protocol: &str, text: &str) -> Option<&'static str> {
    let words = text
        .trim_start_matches(|c: char| c.is_ascii_digit())
        .trim_end_matches('.');
    PROSE
        .iter()
        .find(|(of, _, known)| *of == protocol && words == *known)
        .map(|(_, name, _)| *name)
}

const PROTOCOLS: [&str; 10] = [
    "Ip", "Icmp", "IcmpMsg", "Tcp", "Udp", "UdpLite", "TcpExt", "IpExt", "MPTcpExt", "Sctp",
];

/// Counters in words: protocol, name in `/proc`, what follows the number.
const PROSE: [(&str, &str, &str); 33] = [
    ("Ip", "ForwDatagrams", " forwarded"),
    ("Ip", "InDiscards", " incoming packets discarded"),
    ("Ip", "OutDiscards", " outgoing packets dropped"),
    ("Ip", "ReasmFails", " packet reassembles failed"),
    ("Ip", "ReasmFails", " packet reassemblies failed"),
    ("Ip", "FragFails", " fragments failed"),
    ("Tcp", "ActiveOpens", " active connection openings"),
    ("Tcp", "ActiveOpens", " active connections openings"),
    ("Tcp", "PassiveOpens", " passive connection openings"),
    ("Tcp", "AttemptFails", " failed connection attempts"),
    ("Tcp", "EstabResets", " connection resets received"),
    ("Tcp", "InSegs", " segments received"),
    ("Tcp", "OutSegs", " segments sent out"),
    ("Tcp", "OutSegs", " segments send out"),
    ("Tcp", "RetransSegs", " segments retransmitted"),
    ("Tcp", "RetransSegs", " segments retransmited"),
    ("Tcp", "InErrs", " bad segments received"),
    ("Tcp", "OutRsts", " resets sent"),
    ("Udp", "InDatagrams", " packets received"),
    ("Udp", "NoPorts", " packets to unknown port received"),
    ("Udp", "InErrors", " packet receive errors"),
    ("Udp", "OutDatagrams", " packets sent"),
    ("Udp", "RcvbufErrors", " receive buffer errors"),
    ("Udp", "SndbufErrors", " send buffer errors"),
    (
        "TcpExt",
        "ListenOverflows",
        " times the listen queue of a socket overflowed",
    ),
    ("TcpExt", "ListenDrops", " SYNs to LISTEN sockets dropped"),
    ("TcpExt", "ListenDrops", " SYNs to LISTEN sockets ignored"),
    (
        "TcpExt",
        "PruneCalled",
        " packets pruned from receive queue because of socket buffer overrun",
    ),
    ("TcpExt", "RcvPruned", " packets pruned from receive queue"),
    (
        "TcpExt",
        "TCPRcvCollapsed",
        " packets collapsed in receive queue due to low socket buffer",
    ),
    ("TcpExt", "TCPTimeouts", " other TCP timeouts"),
    ("TcpExt", "TCPDSACKRecv", " DSACKs received"),
    (
        "TcpExt",
        "TW",
        " TCP sockets finished time wait in fast timer",
    ),
];

#[cfg(test)]
mod tests {
    use linerate_model::snapshot::Source;

    use super::*;

    #[test]
    fn counters_of_old_and_new_releases() {
        let old = "Tcp:\n    27 active connections openings\n    99 segments send out\n    4 \
                   segments retransmited\nUdp:\n    7 packets to unknown port received.\n    \
                   RcvbufErrors: 5\nTcpExt:\n    3 SYNs to LISTEN sockets ignored\n";
        let new = "Tcp:\n    27 active connection openings\n    99 segments sent out\n    4 \
                   segments retransmitted\nUdp:\n    7 packets to unknown port received\n    5 \
                   receive buffer errors\nTcpExt:\n    3 SYNs to LISTEN sockets dropped\n";
        for text in [old, new] {
            let (mut reader, mut snapshot) =
                (Reader::default(), Snapshot::new("a", Source::Import));
            for line in text.lines() {
                assert!(reader.line(&mut snapshot, line), "{line}");
            }

            for (key, expected) in [
                ("net.snmp.Tcp.ActiveOpens", 27),
                ("net.snmp.Tcp.OutSegs", 99),
                ("net.snmp.Tcp.RetransSegs", 4),
                ("net.snmp.Udp.NoPorts", 7),
                ("net.snmp.Udp.RcvbufErrors", 5),
                ("net.netstat.TcpExt.ListenDrops", 3),
            ] {
                assert_eq!(
                    snapshot.counters.get(key).map(|counter| counter.v),
                    Some(expected),
                    "{key}\n{text}"
                );
            }
        }
    }
}
