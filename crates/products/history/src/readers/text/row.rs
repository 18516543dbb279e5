//! One line of a report: who it is about, and the columns of a row.

/// Which streams a line is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Subject {
    /// The stream with this number. iperf 2 marks the direction from the server with an asterisk.
    Stream { number: u32, is_marked: bool },
    /// All streams of one direction together.
    Sum,
    /// Both directions of a connection together (iperf 2, full duplex).
    Both,
    /// The head of a table.
    Head,
}

/// Role of a stream at the end that printed the line; of a test in both directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RoleTag {
    pub sends: bool,
    pub is_server: bool,
}

/// A line that begins with a subject in brackets.
#[derive(Debug)]
pub(super) struct Bracketed<'a> {
    pub subject: Subject,
    pub tag: Option<RoleTag>,
    pub rest: &'a str,
}

/// The end that counted a total of iperf3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Counted {
    Sender,
    Receiver,
}

/// An interval or a total.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Row {
    pub start_s: f64,
    pub end_s: f64,
    pub bytes: f64,
    pub rate_bps: f64,
    pub counted: Option<Counted>,
    pub is_omitted: bool,
    /// Segments sent again. The same column has the datagrams of a UDP sender.
    pub count: Option<u64>,
    pub cwnd_bytes: Option<u64>,
    pub rtt_us: Option<u32>,
    pub udp: Option<UdpColumns>,
}

/// Jitter, lost datagrams, and datagrams up to the highest number that arrived.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct UdpColumns {
    pub jitter_s: f64,
    pub lost: u64,
    pub packets: u64,
}

impl<'a> Bracketed<'a> {
    /// Finds the subject: at the begin of a line, or behind the time or the title that a program or
    /// a log puts before it.
    pub(super) fn find(line: &'a str) -> Option<Self> {
        let starts = line.match_indices('[').take(4);
        { starts }.find_map(|(at, _)| Self::parse(line.get(at + 1..)?))
    }

    fn parse(text: &'a str) -> Option<Self> {
        let (name, rest) = text.split_once(']')?;
        let subject = subject(name.trim())?;
        // A log has the number of the process before the line.
        if !rest.starts_with([' ', '\t', '[']) {
            return None;
        }

        let tagged = rest
            .strip_prefix('[')
            .and_then(|inner| inner.split_once(']'));
        let (tag, rest) = match tagged {
            Some(("Role", rest)) => (None, rest),
            Some((name, rest)) => (Some(role_tag(name)?), rest),
            None => (None, rest),
        };

        let is_head = rest.trim_start().starts_with("Interval");
        let subject = if is_head { Subject::Head } else { subject };
        Some(Self {
            subject,
            tag,
            rest: rest.trim(),
        })
    }
}

impl Subject {
    /// The stream with an asterisk, of one without.
    pub(super) fn marked(self) -> Option<Self> {
        match self {
            Self::Stream {
                number,
                is_marked: false,
            } => Some(Self::Stream {
                number,
                is_marked: true,
            }),
            _ => None,
        }
    }

    /// The stream of the other direction, of one with an asterisk.
    pub(super) fn unmarked(self) -> Option<Self> {
        match self {
            Self::Stream {
                number,
                is_marked: true,
            } => Some(Self::Stream {
                number,
                is_marked: false,
            }),
            _ => None,
        }
    }
}

fn subject(name: &str) -> Option<Subject> {
    if name == "ID" || name == "SUM-cnt" {
        return Some(Subject::Head);
    }
    if name == "SUM" || name.starts_with("SUM-") {
        return Some(Subject::Sum);
    }
    if name.starts_with("FD") {
        return Some(Subject::Both);
    }

    let (is_marked, digits) = name
        .strip_prefix('*')
        .map_or((false, name), |digits| (true, digits));
    let number = digits.parse().ok()?;
    Some(Subject::Stream { number, is_marked })
}

fn role_tag(name: &str) -> Option<RoleTag> {
    let (role, end) = name.split_once('-')?;
    let sends = match role {
        "TX" => true,
        "RX" => false,
        _ => return None,
    };

    Some(RoleTag {
        sends,
        is_server: end == "S",
    })
}

impl Row {
    /// Reads what follows the subject: `0.00-1.00   sec  2.63 MBytes  22.0 Mbits/sec  ...`.
    pub(super) fn parse(rest: &str) -> Option<Self> {
        let words = words(rest);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();

        let [
            range,
            "sec",
            amount,
            amount_unit,
            rate,
            rate_unit,
            columns @ ..,
        ] = words.as_slice()
        else {
            return None;
        };
        let (start, end) = range.split_once('-')?;
        let start_s = seconds(start)?;
        let end_s = seconds(end)?;
        if !rate_unit.ends_with("/sec") || end_s < start_s {
            return None;
        }

        let bytes = quantity(amount, amount_unit)?;
        let rate = quantity(rate, rate_unit.strip_suffix("/sec")?)?;
        // `-f` with a capital letter prints bytes per second (iperf3(1)).
        let rate_bps = if rate_unit.contains("yte") {
            rate * 8.0
        } else {
            rate
        };

        let mut row = Self {
            start_s,
            end_s,
            bytes,
            rate_bps,
            ..Self::default()
        };
        row.columns(columns);
        Some(row)
    }

    /// The columns behind the rate. What is not known of a release is left out.
    fn columns(&mut self, columns: &[&str]) {
        let mut columns = columns;
        loop {
            columns = match columns {
                [before @ .., "sender"] => {
                    self.counted = Some(Counted::Sender);
                    before
                }
                [before @ .., "receiver"] => {
                    self.counted = Some(Counted::Receiver);
                    before
                }
                [before @ .., "(omitted)"] => {
                    self.is_omitted = true;
                    before
                }
                _ => break,
            };
        }

        if let [jitter, "ms", lost, ..] = columns
            && let Some(udp) = datagrams(jitter, lost)
        {
            self.udp = Some(udp);
            return;
        }

        match columns {
            // iperf3: segments sent again and the congestion window, or the datagrams of a sender.
            [count, cwnd, unit, ..] if unit.contains("yte") => {
                self.count = count.parse().ok();
                self.cwnd_bytes = quantity(cwnd, unit).map(|bytes| bytes as u64);
            }
            // iperf 2 with -e: writes and their errors, datagrams per second.
            [calls, _, "pps", ..] => {
                self.count = calls
                    .split_once('/')
                    .and_then(|(calls, _)| calls.parse().ok());
            }
            // The same over TCP: segments sent again, and the state of the connection.
            [calls, retried, state, ..] if calls.contains('/') => {
                self.count = retried.parse().ok();
                self.connection(state);
            }
            [count] => self.count = count.parse().ok(),
            _ => {}
        }
    }

    /// `1090K/10000`, `236K(167)/37(5)` or `1K(1)/325K(230)/15821(18523)`: what is in flight,
    /// congestion window, round trip.
    fn connection(&mut self, state: &str) {
        let plain = |word: &str| word.split('(').next().unwrap_or(word).to_owned();
        let parts: Vec<String> = state.split('/').map(plain).collect();
        let [.., cwnd, rtt] = parts.as_slice() else {
            return;
        };
        // iperf 2 prints the congestion window in KiB.
        self.cwnd_bytes = cwnd
            .strip_suffix('K')
            .and_then(|kib| kib.parse::<u64>().ok())
            .and_then(|kib| kib.checked_mul(1024));
        self.rtt_us = rtt.parse().ok().filter(|us| *us > 0);
    }
}

/// Words of a row. A blank behind the dash of a range or the slash of a share belongs to it:
/// `0.0- 1.0 sec`, `0/  893`.
fn words(rest: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in rest.split_whitespace() {
        let is_number = word.starts_with(|c: char| c.is_ascii_digit());
        match words.last_mut().filter(|last| is_number && is_open(last)) {
            Some(last) => last.push_str(word),
            None => words.push(word.to_owned()),
        }
    }

    words
}

fn is_open(word: &str) -> bool {
    let number = word.strip_suffix(['-', '/']);
    number.is_some_and(|number| number.starts_with(|c: char| c.is_ascii_digit()))
}

fn datagrams(jitter: &str, lost: &str) -> Option<UdpColumns> {
    let jitter_ms: f64 = jitter
        .parse()
        .ok()
        .filter(|ms: &f64| ms.is_finite() && *ms >= 0.0)?;
    let (lost, packets) = lost.split_once('/')?;

    // Late datagrams take back losses of the interval before.
    let lost: i64 = lost.parse().ok()?;
    Some(UdpColumns {
        jitter_s: jitter_ms / 1e3,
        lost: lost.max(0).unsigned_abs(),
        packets: packets.parse().ok()?,
    })
}

fn seconds(text: &str) -> Option<f64> {
    text.parse()
        .ok()
        .filter(|seconds| (0.0..1e9).contains(seconds))
}

/// A number with the unit of an amount: `7.56 GBytes` in bytes, `20.8 Gbits` in bits.
pub(super) fn quantity(number: &str, unit: &str) -> Option<f64> {
    let number: f64 = number
        .parse()
        .ok()
        .filter(|number| (0.0..1e18).contains(number))?;
    let unit = unit.trim_end_matches('s');

    // Amounts of bytes are counted in powers of 1024, rates of bits in powers of 1000.
    let (prefix, base) = match (unit.strip_suffix("Byte"), unit.strip_suffix("bit")) {
        (Some(prefix), _) => (prefix, 1024.0_f64),
        (None, Some(prefix)) => (prefix, 1000.0),
        (None, None) => return None,
    };
    let power = ["", "K", "M", "G", "T"]
        .iter()
        .position(|known| *known == prefix)?;

    Some(number * base.powi(i32::try_from(power).ok()?)).filter(|amount| *amount < 1e18)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(line: &str) -> Row {
        let line = Bracketed::find(line).unwrap_or_else(|| panic!("{line}"));
        Row::parse(line.rest).unwrap_or_else(|| panic!("{line:?}"))
    }

    #[test]
    fn rows_of_all_releases_have_their_range_and_rate() {
        let rows = [
            (
                "[  5]   0.00-1.00   sec  2.63 MBytes  22.0 Mbits/sec    3   1.41 KBytes       ",
                0.0,
                1.0,
                22e6,
            ),
            (
                "[  3]  0.0- 1.0 sec   112 MBytes   940 Mbits/sec",
                0.0,
                1.0,
                940e6,
            ),
            (
                "[  1] 0.0000-4.2611 sec  9.75 MBytes  19.2 Mbits/sec",
                0.0,
                4.2611,
                19.2e6,
            ),
            (
                "[SUM-3] 0.00-2.03 sec  22.1 MBytes  91.5 Mbits/sec  180/0         0",
                0.0,
                2.03,
                91.5e6,
            ),
            (
                "Sat Nov 21 18:53:55 2026 [  4]   1.00-2.00   sec  59.8 MBytes   501 Mbits/sec",
                1.0,
                2.0,
                501e6,
            ),
            (
                "Nov 29 a iperf3[123]: [  4]   1.00-2.00   sec  59.8 MBytes   501 Mbits/sec",
                1.0,
                2.0,
                501e6,
            ),
            (
                "[  1] 0.00-1.05 sec  2688 KBytes  2563 KBytes/sec",
                0.0,
                1.05,
                2563.0 * 1024.0 * 8.0,
            ),
            (
                "[  4][TX-C]   0.00-1.00   sec  12.0 MBytes   101 Mbits/sec    0    895 KBytes",
                0.0,
                1.0,
                101e6,
            ),
        ];
        for (line, start_s, end_s, rate_bps) in rows {
            let found = row(line);
            assert_eq!(
                (found.start_s, found.end_s, found.rate_bps),
                (start_s, end_s, rate_bps),
                "{line}"
            );
        }
    }

    #[test]
    fn columns_behind_the_rate_are_distinguished() {
        let tcp = row(
            "[  5]   0.00-1.00   sec  7.89 MBytes  66.2 Mbits/sec   12   43.9 KBytes       \
             (omitted)",
        );
        assert_eq!(
            (tcp.count, tcp.cwnd_bytes, tcp.is_omitted),
            (Some(12), Some(44_953), true)
        );

        for (line, cwnd_kib, rtt_us) in [
            (
                "[  3] 0.00-1.00 sec   102 MBytes   858 Mbits/sec  818/0        299     \
                 1090K/10000 us",
                1090,
                10_000,
            ),
            (
                "[  1] 0.00-1.00 sec  1.19 MBytes  9.99 Mbits/sec  61/0      299      \
                 236K(167)/37(5) us   61/0/0   33747",
                236,
                37,
            ),
            (
                "[  1] 0.00-1.00 sec  1 MBytes  1 Mbits/sec  30/0    299   \
                 1K(1)/325K(230)/15821(18523) us  240",
                325,
                15_821,
            ),
        ] {
            let found = row(line);
            assert_eq!(
                (found.count, found.cwnd_bytes, found.rtt_us),
                (Some(299), Some(cwnd_kib * 1024), Some(rtt_us))
            );
        }

        let expected = UdpColumns {
            jitter_s: 0.000_179,
            lost: 4025,
            packets: 10_704,
        };
        for columns in [
            "0.179 ms 4025/10704 (38%)",
            "0.179 ms  4025/  10704 (38%)  receiver",
        ] {
            let found = row(&format!(
                "[  1] 0.00-4.02 sec  9.36 MBytes  19.5 Mbits/sec   {columns}"
            ));
            assert_eq!(found.udp, Some(expected), "{columns}");
        }

        let sender = row("[  4]   0.00-1.00   sec  2.63 MBytes  22.0 Mbits/sec  1901  ");
        assert_eq!((sender.count, sender.udp), (Some(1901), None));
        let enhanced = row("[  1] 0.0-1.0 sec  1.19 MBytes  10.0 Mbits/sec  851/0      852 pps");
        assert_eq!(enhanced.count, Some(851));
    }

    #[test]
    fn other_lines_are_no_rows() {
        for rest in [
            "local 192.0.2.1 port 1 connected to 192.0.2.2 port 2",
            "Sent 183 datagrams",
            "0.00-3.01 sec  BB8(f)-PDF: bin(w=100us):cnt(30)=1:25",
            "2.00-1.00 sec 1 MBytes 1 Mbits/sec",
            "0.00-1.00 sec 1 Frogs 1 Mbits/sec",
            "",
        ] {
            assert_eq!(Row::parse(rest), None, "{rest}");
        }
    }
}
