//! Subject of a line that was not understood, so that nothing is called fine of which a part was
//! not read.

use super::sections::Block;

/// Prefixes of the rules that need the output of a program.
type Subjects = &'static [&'static str];

/// The rules that the line of a block concerns; empty where that is not known.
pub(super) fn of(block: &Block<'_>, line: &str) -> Subjects {
    match block.program() {
        "" => of_text(line),
        "ethtool" => of_ethtool(block),
        "cat" | "head" | "grep" | "tail" => block.kernel_file().map_or(&[], of_file),
        program => of_program(program),
    }
}

fn of_program(program: &str) -> Subjects {
    match program {
        "tc" => &["QD"],
        "ip" | "ifconfig" => &["LNK", "MTU", "ADDR"],
        "ping" | "ping6" | "mtr" | "traceroute" | "tracert" | "tracepath" => {
            &["PATH", "MTU", "LAT"]
        }
        "netstat" | "nstat" => &["SYS", "UDP", "WIN"],
        "ss" => &["WIN", "SYS"],
        "sysctl" => &["WIN", "SYS", "UDP"],
        "mpstat" | "vmstat" | "top" | "lscpu" | "cpupower" | "numactl" => &["CPU"],
        "dmesg" | "journalctl" | "lshw" | "iw" => &["LNK"],
        "lspci" => &["PCI"],
        "conntrack" => &["SYS"],
        "nft" | "iptables" | "ip6tables" => &["FW"],
        "iperf3" | "iperf" => &["TOOL", "WIN", "PATH", "LAT", "APP"],
        "ovs-appctl" => &["VIRT"],
        _ => &[],
    }
}

fn of_ethtool(block: &Block<'_>) -> Subjects {
    match block.ethtool().map_or("", |(option, _)| option) {
        "-k" | "--show-features" => &["OFF", "VIRT"],
        "-g" | "--show-ring" => &["NIC"],
        "-l" | "--show-channels" => &["CHN"],
        "-a" | "--show-pause" => &["PAU"],
        "-c" | "--show-coalesce" => &["IRQ"],
        "-S" | "--statistics" => &["NIC", "LNK", "PAU"],
        _ => &["LNK", "PAU"],
    }
}

fn of_file(path: &str) -> Subjects {
    const FILES: [(&str, Subjects); 12] = [
        ("bonding", &["LNK", "PATH"]),
        ("cpufreq", &["CPU"]),
        ("cgroup", &["CPU"]),
        ("/proc/stat", &["CPU"]),
        ("/proc/cpuinfo", &["CPU"]),
        ("interrupts", &["IRQ"]),
        ("softnet_stat", &["SOFT"]),
        ("/proc/net/snmp", &["UDP", "WIN"]),
        ("/proc/net/netstat", &["SYS", "WIN"]),
        ("sockstat", &["SYS"]),
        ("/sys/class/net", &["LNK", "MTU"]),
        ("/sys/bus/pci", &["PCI"]),
    ];

    FILES
        .iter()
        .find(|(part, _)| path.contains(part))
        .map_or(&[], |(_, subjects)| *subjects)
}

/// Subjects of output without its command.
fn of_text(line: &str) -> Subjects {
    const BEGINNINGS: [(&str, Subjects); 4] = [
        ("qdisc ", &["QD"]),
        ("class ", &["QD"]),
        ("filter ", &["QD"]),
        ("Settings for ", &["LNK"]),
    ];

    BEGINNINGS
        .iter()
        .find(|(words, _)| line.starts_with(words))
        .map_or(&[], |(_, subjects)| *subjects)
}
