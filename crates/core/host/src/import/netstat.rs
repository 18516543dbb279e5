//! Output of `netstat -s`, `-st` and `-su`: the name of a protocol alone, and indented below it
//! counters in words or by their names. Older releases have other words for some.

use linerate_model::snapshot::Snapshot;

use super::lines::LineReader;

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
            self.protocol = PROTOCOLS.split(' ').find(|known| named == Some(*known));
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
            snapshot.count(format!("net.{file}.{protocol}.{name}"), count);
        }

        true
    }
}

/// The name of a counter that is written in words, with or without a dot at the end. A line of the
/// table has the protocol, the name in `/proc`, and what follows the number.
fn in_words(protocol: &str, text: &str) -> Option<&'static str> {
    let words = text
        .trim_start_matches(|c: char| c.is_ascii_digit())
        .trim_end_matches('.');
    include_str!("netstat.txt").lines().find_map(|line| {
        let named = line.strip_prefix(protocol)?.strip_prefix(' ')?;
        named.strip_suffix(words).filter(|name| !name.contains(' '))
    })
}

const PROTOCOLS: &str = "Ip Icmp IcmpMsg Tcp Udp UdpLite TcpExt IpExt MPTcpExt Sctp";

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
