//! Output of `ss -tin`, with or without `-m` and `-O`: the busiest connections as a run.

use linerate_model::runs;
use linerate_sys::tcp_info::{TcpInfo, decode};

use super::lines::*;
use crate::kernel::connections::{Addresses, State, printed};
use crate::prelude::*;

const SRC: &str = "import:ss";
/// Connections that are kept.
const CONNECTIONS_MAX: usize = 65_536;

/// Reads lines of ss.
#[derive(Default)]
pub(super) struct Reader {
    /// Connection that the indented line belongs to.
    ends: Option<Addresses>,
    connections: Vec<(Addresses, State)>,
    app_limited: Vec<Addresses>,
}

impl Reader {
    pub(super) fn line(&mut self, line: &str) -> bool {
        let words: Vec<&str> = line
            .split_whitespace()
            // Without `-t` ss prints the column `Netid`.
            .skip_while(|word| ["Netid", "tcp"].contains(word))
            .collect();
        let is_connection =
            !line.starts_with(char::is_whitespace) && self.connection(&words).is_some();

        if let Some(ends) = self.ends
            && let Some(state) = state(&words)
        {
            if self.connections.len() < CONNECTIONS_MAX {
                self.connections.push((ends, state));
                self.app_limited
                    .extend(words.contains(&"app_limited").then_some(ends));
            }

            self.ends = None;
            return true;
        }

        // A listener has no round trip.
        let is_detail = |word: &&str| word.starts_with("cwnd:") || word.starts_with("skmem:(");
        is_connection
            || line.starts_with(char::is_whitespace) && words.iter().any(is_detail)
            || words.starts_with(&["State", "Recv-Q", "Send-Q"])
            || words.starts_with(&["Recv-Q", "Send-Q"])
    }

    /// `ESTAB 0 0 192.0.2.1:44000 192.0.2.2:5201`; a filter by state leaves the state out.
    fn connection(&mut self, words: &[&str]) -> Option<()> {
        let is_number = |word: &&&str| word.parse::<u64>().is_ok();
        let queues = usize::from(words.first().filter(is_number).is_none());
        let is_state = words
            .first()?
            .chars()
            .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '-');

        words
            .get(queues)
            .filter(is_number)
            .and(words.get(queues + 1).filter(is_number))
            .filter(|_| is_state)?;
        let address = |place: usize| words.get(queues + place).filter(|word| word.contains(':'));
        let (local, remote) = address(2).zip(address(3))?;
        self.ends = local.parse().ok().zip(remote.parse().ok());

        Some(())
    }

    pub(super) fn finish(self, snapshot: &mut Snapshot) {
        let Some((ends, facts)) = printed(&self.connections) else {
            return;
        };
        let run = runs::add(snapshot, SRC, facts);
        let is_app_limited = self.app_limited.contains(&ends);
        snapshot.set(
            format!("run.{run}.app_limited_share"),
            if is_app_limited { 1.0 } else { 0.0 },
            SRC,
        );

        // One sample, and a rate that the application set.
        for fact in ["received_bps", "app_limited_share"] {
            snapshot.qualify(&format!("run.{run}.{fact}"), Quality::Inferred);
        }

        if is_app_limited {
            snapshot.facts.remove(&format!("run.{run}.received_bps"));
        }
    }
}

/// `cubic wscale:7,7 rto:204 rtt:0.5/0.2 mss:1448 cwnd:10 … delivery_rate 93456789bps busy:4ms`; ss
/// leaves out what is 0.
fn state(words: &[&str]) -> Option<State> {
    let field = |name: &str| {
        words
            .iter()
            .find_map(|word| word.strip_prefix(name)?.strip_prefix(':'))
    };
    let number = |name| field(name).and_then(leading_number);

    // A float cast saturates.
    let count = |name| number(name).map_or(0, |count| count as u64);
    let small = |name| number(name).map_or(0, |count| count as u32);
    let us = |name| number(name).map(|ms| (ms * 1e3) as u32);
    let long_us = |name| Some(number(name).map_or(0, |ms| (ms * 1e3) as u64));

    let rate = |name: &str| {
        let at = words.iter().position(|word| *word == name)?;
        words
            .get(at + 1)
            .and_then(|word| bit_rate(word))
            .map(|bps| bps as u64)
    };
    let rto = words.iter().position(|word| word.starts_with("rto:"))?;
    let rtt_us = us("rtt")?;
    // The name of the congestion control has no key; it precedes `wscale:`, or `rto:` where windows
    // are not scaled.
    let options = words
        .iter()
        .position(|word| word.starts_with("wscale:"))
        .unwrap_or(rto);
    let congestion = options
        .checked_sub(1)
        .and_then(|before| words.get(before))
        .map(|word| (*word).to_owned());

    let info = TcpInfo {
        retransmits_total: field("retrans")
            .and_then(|both| both.split_once('/')?.1.parse().ok())
            .unwrap_or(0),
        snd_cwnd_segments: small("cwnd"),
        snd_mss_bytes: small("mss"),
        pmtu_bytes: small("pmtu"),
        rtt_us,
        min_rtt_us: us("minrtt"),
        snd_wnd_bytes: number("snd_wnd").map(|bytes| bytes as u32),
        dsack_segments: Some(small("dsack_dups")),
        // ss prints it only where it differs from the default of 3 (`TCP_FASTRETRANS_THRESH`).
        reordering_segments: small("reordering").max(3),
        reorder_seen: Some(small("reord_seen")),
        ecn_negotiated: words.contains(&"ecn"),
        ecn_seen: words.contains(&"ecnseen"),
        delivered_segments: Some(small("delivered")),
        delivered_ce_segments: Some(small("delivered_ce")),
        notsent_bytes: Some(small("notsent")),
        delivery_rate_bps: rate("delivery_rate"),
        pacing_rate_bps: rate("pacing_rate"),
        bytes_acked: Some(count("bytes_acked")),
        bytes_received: Some(count("bytes_received")),
        bytes_retransmitted: Some(count("bytes_retrans")),
        busy_us: long_us("busy"),
        rwnd_limited_us: long_us("rwnd_limited"),
        sndbuf_limited_us: long_us("sndbuf_limited"),
        // A `struct tcp_info` of zeros, because ss leaves out what is 0.
        ..decode(&[0; 240])?
    };
    Some((info, congestion))
}

/// `93456789bps`, and `93.5Mbps` of older releases.
fn bit_rate(word: &str) -> Option<f64> {
    let unit = word.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let factor = [("bps", 1.0), ("Kbps", 1e3), ("Mbps", 1e6), ("Gbps", 1e9)]
        .into_iter()
        .find(|(name, _)| *name == unit)?
        .1;
    Some(leading_number(word)? * factor)
}

#[cfg(test)]
mod tests {
    use linerate_model::snapshot::Source;

    use super::*;

    const PASTED: &str = "\
State Recv-Q Send-Q Local Address:Port Peer Address:Port Process
ESTAB 0 0 192.0.2.1:22 192.0.2.9:50000
\t cubic wscale:7,7 rto:204 rtt:30.1/2 mss:1448 cwnd:10 bytes_sent:9000 bytes_acked:9001 delivery_rate 1Mbps app_limited
ESTAB 0 4194304 192.0.2.1:44000 192.0.2.2:5201
\t skmem:(r0,rb131072,t0,tb4194304,f0,w0,o0,bl0,d0) ts sack cubic wscale:7,7 rto:240 rtt:40.2/0.5 mss:1448 pmtu:1500 \
cwnd:90 bytes_sent:90000000 bytes_retrans:14480 bytes_acked:89000000 segs_out:62000 send 25.9Mbps pacing_rate 31124352bps \
delivery_rate 12800000bps busy:9000ms rwnd_limited:8100ms(90.0%) retrans:0/10 dsack_dups:2 minrtt:20.1 snd_wnd:65536
LISTEN 0 128 0.0.0.0:22 0.0.0.0:*
\t skmem:(r0,rb131072) cubic cwnd:10
";

    fn facts(text: &str) -> Snapshot {
        let (mut reader, mut snapshot) = (Reader::default(), Snapshot::new("a", Source::Import));
        for line in text.lines() {
            assert!(reader.line(line), "{line}");
        }

        reader.finish(&mut snapshot);
        snapshot
    }

    #[test]
    fn busiest_connection_is_a_run() {
        let joined = PASTED.replace("5201\n", "5201 ");
        let with_protocol = PASTED
            .replace("State ", "Netid State ")
            .replace("ESTAB ", "tcp ESTAB ");

        for text in [
            PASTED,
            &joined,
            &with_protocol,
            &PASTED.replace("ESTAB ", ""),
        ] {
            let snapshot = facts(text);
            for (fact, expected) in [
                ("received_bps", 12.8e6),
                ("rwnd_limited_share", 0.9),
                ("sndbuf_limited_share", 0.0),
                ("snd_wnd_bytes", 65_536.0),
                ("rtt_us", 40_200.0),
                ("retransmits", 10.0),
                ("dsack_segments", 2.0),
                ("app_limited_share", 0.0),
                ("streams", 1.0),
            ] {
                assert_eq!(
                    snapshot.number(&format!("run.0.{fact}")),
                    Some(expected),
                    "{fact}\n{text}"
                );
            }

            assert_eq!(snapshot.text("run.0.congestion"), Some("cubic"));
            assert_eq!(
                (
                    snapshot.value("run.0.busy_share"),
                    snapshot.value("run.1.tool")
                ),
                (None, None)
            );
        }
    }

    #[test]
    fn what_ss_prints_of_a_socket_alone_is_read_too() {
        let read = |text: &str| {
            state(&text.split(' ').collect::<Vec<_>>())
                .expect("a state")
                .0
        };
        let info = read(
            "ts sack ecn ecnseen bbr wscale:7,7 rto:204 rtt:1/1 delivered:9 delivered_ce:2 \
             notsent:70",
        );
        assert_eq!((info.ecn_negotiated, info.ecn_seen), (true, true));

        let counts = (
            info.delivered_segments,
            info.delivered_ce_segments,
            info.notsent_bytes,
        );
        assert_eq!(counts, (Some(9), Some(2), Some(70)));
        let info = read("ts sack bbr wscale:7,7 rto:204 rtt:1/1 delivered:9");
        assert_eq!(
            (
                info.ecn_negotiated,
                info.ecn_seen,
                info.delivered_ce_segments
            ),
            (false, false, Some(0))
        );
    }

    #[test]
    fn connection_without_load_and_other_lines_are_no_run() {
        let idle: String = PASTED
            .lines()
            .take(3)
            .map(|line| format!("{line}\n"))
            .collect();
        assert_eq!(facts(&idle).value("run.0.tool"), None);

        for line in [
            "",
            "1 2",
            "00000012 00000000 00000001 00000000 00000000",
            "TX: bytes packets",
            " 0 1 192.0.2.1:22 192.0.2.2:1",
            "net.core.x = 1",
            "ESTAB",
        ] {
            assert!(!Reader::default().line(line), "{line}");
        }
    }
}
