//! Texts of `/proc` as facts and counters, of the running kernel or pasted.

use crate::prelude::*;

/// One line of `/proc/interrupts`.
pub(crate) struct Interrupt {
    /// Number, or name for those of the CPU itself.
    pub number: String,
    /// Interrupts each CPU took.
    pub per_cpu: Vec<(u32, u64)>,
    /// Fields after the counts: controller, hardware number and the names of the handlers.
    pub description: String,
}

/// CPUs a line may have columns for.
const CPUS_MAX: usize = 8192;

/// Lines of `/proc/interrupts`. Without the header, columns are numbered from 0 and end where the
/// numbers end.
pub(crate) fn interrupts(text: &str) -> Vec<Interrupt> {
    let header = text
        .lines()
        // The header names the columns: CPUs that are offline have none.
        .find(|line| line.trim_start().starts_with("CPU"));
    let cpus: Option<Vec<u32>> = header.map(|line| {
        let numbers = line
            .split_whitespace()
            .filter_map(|name| name.strip_prefix("CPU")?.parse().ok());
        numbers.take(CPUS_MAX).collect()
    });
    text.lines()
        .filter_map(|line| interrupt(line, cpus.as_deref()))
        .collect()
}

fn interrupt(line: &str, cpus: Option<&[u32]>) -> Option<Interrupt> {
    let (number, rest) = line.trim_start().split_once(':')?;
    if number.is_empty() || number.contains(char::is_whitespace) {
        return None;
    }

    let mut per_cpu = Vec::new();
    let mut rest = rest.trim_start();

    for column in 0..cpus.map_or(CPUS_MAX, <[u32]>::len) {
        let word = rest.split_whitespace().next().unwrap_or_default();
        // Lines such as `ERR` and `MIS` have fewer columns than CPUs.
        let Ok(count) = word.parse::<u64>() else {
            break;
        };
        let cpu = cpus
            .and_then(|cpus| cpus.get(column).copied())
            .or_else(|| u32::try_from(column).ok())?;
        per_cpu.push((cpu, count));
        rest = rest[word.len()..].trim_start();
    }

    (!per_cpu.is_empty()).then(|| Interrupt {
        number: number.to_owned(),
        per_cpu,
        description: rest.split_whitespace().collect::<Vec<_>>().join(" "),
    })
}

/// `/proc/softirqs`: receive soft interrupts of each CPU that has taken one.
pub(crate) fn softirqs(snapshot: &mut Snapshot, text: &str) {
    let received = interrupts(text)
        .into_iter()
        .filter(|line| line.number == "NET_RX");
    for (cpu, count) in received
        .flat_map(|line| line.per_cpu)
        .filter(|(_, count)| *count > 0)
    {
        snapshot.count(format!("softirq.net_rx.cpu{cpu}"), count);
    }
}

/// `/proc/net/softnet_stat`: sums over all CPUs. Columns are hexadecimal: processed, dropped,
/// time_squeeze, seven unused or about steering, and from kernel 2.6.35 on received_rps and
/// flow_limit (`net/core/net-procfs.c`).
pub(crate) fn softnet(snapshot: &mut Snapshot, text: &str) {
    let mut sums: Option<[u64; 3]> = None;
    for line in text.lines() {
        let columns: Vec<&str> = line.split_whitespace().collect();
        if !is_softnet_line(&columns) {
            continue;
        }

        for (sum, column) in sums.get_or_insert_default().iter_mut().zip(columns) {
            // One line per CPU that is online; a loss on one of them is a loss of the host.
            *sum = sum.saturating_add(u64::from_str_radix(column, 16).unwrap_or(0));
        }
    }

    for (name, sum) in ["processed", "dropped", "time_squeeze"]
        .into_iter()
        .zip(sums.into_iter().flatten())
    {
        snapshot.count(format!("softnet.{name}"), sum);
    }
}

/// True if words are a line of `/proc/net/softnet_stat`.
pub(crate) fn is_softnet_line(columns: &[&str]) -> bool {
    columns.len() >= 9
        && columns
            .iter()
            .all(|word| word.len() == 8 && word.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// `/proc/net/snmp` and `/proc/net/netstat`: a line of names, then a line of values with the same
/// first word. Counters whose key `is_wanted` refuses are left out.
pub(crate) fn snmp(snapshot: &mut Snapshot, text: &str, is_wanted: impl Fn(&str) -> bool) {
    let mut names: Option<(&str, Vec<&str>)> = None;
    for line in text.lines() {
        let Some((protocol, rest)) = line.split_once(':') else {
            continue;
        };
        let words: Vec<&str> = rest.split_whitespace().collect();

        match names.take().filter(|(of, _)| *of == protocol) {
            Some((_, names)) => {
                let file = if protocol.ends_with("Ext") {
                    "netstat"
                } else {
                    "snmp"
                };
                for (name, value) in names.into_iter().zip(words) {
                    // Some columns are settings and may be negative; they are no counters.
                    let key = format!("net.{file}.{protocol}.{name}");
                    if let Some(value) = value.parse().ok().filter(|_| is_wanted(&key)) {
                        snapshot.count(key, value);
                    }
                }
            }
            None => names = Some((protocol, words)),
        }
    }
}

/// `/proc/net/snmp6`: a name and a value per line. Counters whose key `is_wanted` refuses are left
/// out.
pub(crate) fn snmp6(snapshot: &mut Snapshot, text: &str, is_wanted: impl Fn(&str) -> bool) {
    for line in text.lines() {
        let mut words = line.split_whitespace();
        if let Some(name) = words.next()
            && let Some(Ok(value)) = words.next().map(str::parse)
        {
            let key = format!("net.snmp6.{name}");
            if is_wanted(&key) {
                snapshot.count(key, value);
            }
        }
    }
}

/// Lines of `/proc/stat` for single CPUs, ticks of 10 ms by state (`proc(5)`).
pub(crate) fn stat(snapshot: &mut Snapshot, text: &str) {
    const STATES: [&str; 8] = [
        "user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal",
    ];

    for line in text.lines() {
        let mut words = line.split_whitespace();
        let Some(cpu) = words
            .next()
            .and_then(|name| name.strip_prefix("cpu")?.parse::<u32>().ok())
        else {
            continue;
        };

        // proc_stat(5): the columns of guests follow, whose time `user` and `nice` contain.
        for (state, ticks) in STATES.into_iter().zip(words) {
            if let Ok(ticks) = ticks.parse() {
                snapshot.count(format!("cpu.{cpu}.{state}"), ticks);
            }
        }
    }
}

/// `/proc/net/sockstat` and `/proc/net/sockstat6`: TCP sockets by state, and memory of TCP in
/// pages.
pub(crate) fn sockstat(snapshot: &mut Snapshot, text: &str, src: &str) {
    let tcp = |line: &&str| line.starts_with("TCP: ") || line.starts_with("TCP6: ");
    let Some(words) = text
        .lines()
        .find(tcp)
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
    else {
        return;
    };
    for pair in words.get(1..).unwrap_or_default().chunks(2) {
        let [name, value] = pair else { continue };
        let key = match (words[0], *name) {
            ("TCP6:", "inuse") => "sock.tcp6.inuse",
            ("TCP:", "inuse") => "sock.tcp.inuse",
            ("TCP:", "orphan") => "sock.tcp.orphan",
            ("TCP:", "tw") => "sock.tcp.tw",
            ("TCP:", "alloc") => "sock.tcp.alloc",
            ("TCP:", "mem") => "sock.tcp.mem_pages",
            _ => continue,
        };

        if let Ok(value) = value.parse::<i64>() {
            snapshot.set(key, value, src);
        }
    }
}

/// Counters of connection tracking about packets it dropped.
pub(crate) const CONNECTION_TRACKING: [&str; 3] = ["insert_failed", "drop", "early_drop"];

/// `/proc/net/stat/nf_conntrack`: a line of names, then one of hexadecimal values per CPU.
pub(crate) fn connection_tracking(snapshot: &mut Snapshot, text: &str) {
    let mut lines = text.lines().map(str::split_whitespace);
    let Some(names) = lines.next().map(Iterator::collect::<Vec<_>>) else {
        return;
    };
    let rows: Vec<Vec<&str>> = lines.map(Iterator::collect).collect();

    for name in CONNECTION_TRACKING {
        let Some(column) = names.iter().position(|known| *known == name) else {
            continue;
        };
        let of_cpus = rows
            .iter()
            .filter_map(|row| u64::from_str_radix(row.get(column)?, 16).ok());
        snapshot.count_known(
            format!("conntrack.{name}"),
            // The counters are per CPU; `entries` alone is repeated in each line, and is not among
            // them.
            of_cpus.reduce(u64::saturating_add),
        );
    }
}

/// A kernel variable: a number where it is one, otherwise words with single blanks between them.
pub(crate) fn sysctl(snapshot: &mut Snapshot, key: &str, value: &str, src: &str) {
    let words = value.split_whitespace().collect::<Vec<_>>().join(" ");
    let value = words
        .parse::<i64>()
        .map_or_else(|_| Value::Text(words), Value::Integer);
    snapshot.set(format!("sysctl.{key}"), value, src);
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::snapshot::Source;

    #[test]
    fn interrupts_with_and_without_their_header() {
        let text = "           CPU0       CPU2\n 25:          0          4   PCI-MSI 524288-edge      eth1-rx-0\nNMI: 1 2 Non-maskable\n";
        let found = interrupts(text);
        assert_eq!(found[0].per_cpu, [(0, 0), (2, 4)]);
        assert_eq!(found[0].description, "PCI-MSI 524288-edge eth1-rx-0");
        assert_eq!(found[1].number, "NMI");

        let bare = interrupts(
            " 137:          0          0          0     149352 IR-PCI-MSIX-0000:04:00.0    0-ed",
        );
        assert_eq!(bare[0].per_cpu[3], (3, 149_352));
        assert_eq!(bare[0].description, "IR-PCI-MSIX-0000:04:00.0 0-ed");
        assert!(interrupts("no line of that file").is_empty());
    }

    #[test]
    fn tables_of_names_and_values() {
        let mut snapshot = Snapshot::new("a", Source::Import);
        let text = "Tcp: MaxConn InSegs OutSegs\nTcp: -1 7 8\nTcpExt: PruneCalled\nTcpExt: 3\n";
        snmp(&mut snapshot, text, |key| !key.ends_with("OutSegs"));
        assert!(
            !snapshot.counters.contains_key("net.snmp.Tcp.OutSegs"),
            "not wanted"
        );
        assert_eq!(snapshot.counters["net.snmp.Tcp.InSegs"].v, 7);
        assert_eq!(snapshot.counters["net.netstat.TcpExt.PruneCalled"].v, 3);
        assert!(!snapshot.counters.contains_key("net.snmp.Tcp.MaxConn"));
        softirqs(
            &mut snapshot,
            "          CPU0       CPU2\n NET_TX:    9   9\n NET_RX:   0   74\n",
        );
        assert_eq!(snapshot.counters["softirq.net_rx.cpu2"].v, 74);
        assert!(
            !snapshot.counters.contains_key("softirq.net_rx.cpu0"),
            "offline"
        );

        let line =
            "0000000a 00000001 000000ff 00000000 00000000 00000000 00000000 00000000 00000000\n";
        softnet(&mut snapshot, &line.repeat(2));
        assert_eq!(snapshot.counters["softnet.processed"].v, 20);
        assert_eq!(snapshot.counters["softnet.time_squeeze"].v, 510);
        stat(&mut snapshot, "cpu 1 2 3\ncpu1 1 2 3 4 5 6 7 8 9 10\n");
        assert_eq!(snapshot.counters["cpu.1.steal"].v, 8);
        sysctl(
            &mut snapshot,
            "net.ipv4.tcp_rmem",
            "4096\t131072\t6291456",
            "test",
        );
        assert_eq!(
            snapshot.text("sysctl.net.ipv4.tcp_rmem"),
            Some("4096 131072 6291456")
        );
        sockstat(
            &mut snapshot,
            "sockets: used 9\nTCP: inuse 5 orphan 0 tw 3 alloc 7 mem 2\n",
            "test",
        );
        connection_tracking(
            &mut snapshot,
            "entries  found drop early_drop\n00000009  1 0000000a 0\n00000009  1 7 0\n",
        );
        assert_eq!(
            (
                snapshot.counters["conntrack.drop"].v,
                snapshot.counters.get("conntrack.found")
            ),
            (17, None)
        );
        sockstat(&mut snapshot, "TCP6: inuse 4\nUDP6: inuse 1\n", "test");

        for (key, expected) in [
            ("tcp.tw", 3.0),
            ("tcp.orphan", 0.0),
            ("tcp.alloc", 7.0),
            ("tcp6.inuse", 4.0),
        ] {
            assert_eq!(
                snapshot.number(&format!("sock.{key}")),
                Some(expected),
                "{key}"
            );
        }
    }
}
