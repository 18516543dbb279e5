//! Kernel variables, `/proc`, and the odd line about the system.

use super::attribute::UnattributedFacts;
use super::lines::*;
use crate::kernel::procfs;
use crate::prelude::*;

/// Reads lines about the system; tables are collected and read at the end of the block.
pub(super) struct Reader<'a> {
    block: &'a Block<'a>,
    interrupts: String,
    table: String,
    /// Inside the output of lscpu.
    lscpu: bool,
    /// Part of its highest clock at which the CPU runs, per cent, as lscpu prints it.
    scaling_percent: Option<f64>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(block: &'a Block<'a>) -> Self {
        Self {
            block,
            interrupts: String::new(),
            table: String::new(),
            lscpu: block.program() == "lscpu",
            scaling_percent: None,
        }
    }

    pub(super) fn line(&mut self, snapshot: &mut Snapshot, line: &str) -> bool {
        self.interrupt(line)
            || connection_tracking(snapshot, line)
            || self.table(line)
            || self.kernel(snapshot, line)
            || variable(snapshot, line)
            || nstat(snapshot, line).is_some()
            || profile(snapshot, line)
            || self.of_no_use(line)
    }

    /// `CPU(s):  8` and the other lines of lscpu.
    pub(super) fn lscpu(&mut self, snapshot: &mut Snapshot, line: &str) -> bool {
        self.lscpu |= line.starts_with("Architecture:");
        let Some((key, value)) = field(line).filter(|_| self.lscpu) else {
            self.lscpu = self.block.program() == "lscpu";
            return false;
        };
        let src = "import:lscpu";

        match key {
            "CPU(s)" => {
                snapshot.set_known("cpu.count", value.parse::<i64>().ok(), src);
                // A virtual machine has a line about its hypervisor below.
                snapshot.set("cpu.virt", false, src);
            }
            "On-line CPU(s) list" => snapshot.set("cpu.online", value, src),
            "NUMA node(s)" => snapshot.set_known("numa.nodes", value.parse::<i64>().ok(), src),
            "Hypervisor vendor" => snapshot.set("cpu.virt", true, src),
            "CPU max MHz" => {
                snapshot.set_known_in("cpu.freq.max_khz", khz(value), "kHz", src);
                let at = self
                    .scaling_percent
                    .zip(khz(value))
                    .map(|(percent, khz)| (percent / 100.0 * khz as f64) as i64);
                snapshot.set_known_in("cpu.freq.cur_khz", at, "kHz", src);
            }
            "CPU min MHz" => snapshot.set_known_in("cpu.freq.min_khz", khz(value), "kHz", src),
            "CPU MHz" => snapshot.set_known_in("cpu.freq.cur_khz", khz(value), "kHz", src),
            "CPU(s) scaling MHz" => {
                self.scaling_percent = leading_number(value).filter(|percent| *percent <= 100.0);
            }
            _ => {}
        }

        true
    }

    fn interrupt(&mut self, line: &str) -> bool {
        let is_header = line.trim_start().starts_with("CPU0 ");
        let is_device = |irq: &procfs::Interrupt| {
            irq.number.parse::<u32>().is_ok() && irq.description.contains(char::is_alphabetic)
        };
        let is_interrupt = || !line.contains('=') && procfs::interrupts(line).iter().any(is_device);
        collect(&mut self.interrupts, line, is_header || is_interrupt())
    }

    /// Lines of `/proc/net/softnet_stat`, `/proc/net/snmp`, `/proc/stat` and `/proc/net/sockstat`.
    fn table(&mut self, line: &str) -> bool {
        let words: Vec<&str> = line.split_whitespace().collect();
        let Some(first) = words.first() else {
            return false;
        };

        let paired = [
            "Ip:",
            "Icmp:",
            "Tcp:",
            "Udp:",
            "UdpLite:",
            "TcpExt:",
            "IpExt:",
            "IcmpMsg:",
            "MPTcpExt:",
        ];
        let is_cpu = first
            .strip_prefix("cpu")
            .is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_digit()))
            && words.len() > 4;
        let is_sockets = ["TCP:", "UDP:", "sockets:", "RAW:", "FRAG:", "UDPLITE:"].contains(first)
            && words.len() > 2;
        let wanted =
            procfs::is_softnet_line(&words) || paired.contains(first) || is_cpu || is_sockets;

        collect(&mut self.table, line, wanted)
    }

    fn kernel(&self, snapshot: &mut Snapshot, line: &str) -> bool {
        let release = match self.block.command {
            "uname -r" => Some(line.trim()),
            _ => line
                .strip_prefix("Linux ")
                .and_then(|rest| rest.split_whitespace().nth(1)),
        };
        if let Some(release) =
            release.filter(|release| release.starts_with(|c: char| c.is_ascii_digit()))
        {
            snapshot.kernel = Some(release.to_owned());
        }

        release.is_some()
    }

    /// Lines that are understood and hold nothing a rule reads.
    fn of_no_use(&self, line: &str) -> bool {
        let command = self
            .block
            .words()
            .find(|word| *word != "sudo")
            .unwrap_or_default();
        match command {
            "modinfo" => line.contains(':'),
            "tuned-adm" => line.starts_with("- ") || line.starts_with("Available profiles"),
            "remedy" => line.starts_with("sudo "),
            _ => false,
        }
    }

    pub(super) fn finish(self, snapshot: &mut Snapshot, loose: &mut UnattributedFacts) {
        let searched = self.block.words().last().filter(|_| self.block.has("grep"));
        for interrupt in procfs::interrupts(&self.interrupts) {
            loose.interrupt(searched, interrupt);
        }

        if !self.table.is_empty() {
            procfs::softnet(snapshot, &self.table);
            procfs::snmp(snapshot, &self.table, |_| true);
            procfs::stat(snapshot, &self.table);
            procfs::sockstat(snapshot, &self.table, "import:sockstat");
        }
    }
}

/// `3600.0000` MHz in kHz.
fn khz(mhz: &str) -> Option<i64> {
    mhz.parse::<f64>()
        .ok()
        .filter(|mhz| (1.0..1e6).contains(mhz))
        .map(|mhz| (mhz * 1e3) as i64)
}

/// Adds a line that is wanted; returns whether it is.
fn collect(lines: &mut String, line: &str, is_wanted: bool) -> bool {
    if is_wanted {
        lines.extend([line, "\n"]);
    }
    is_wanted
}

/// `cpu=0  found=0 invalid=2 insert=0 insert_failed=0 drop=7 early_drop=0 …` of `conntrack -S`, one
/// line per CPU.
fn connection_tracking(snapshot: &mut Snapshot, line: &str) -> bool {
    let Some(rest) = line
        .strip_prefix("cpu=")
        .filter(|rest| rest.contains(" insert_failed="))
    else {
        return false;
    };
    for (name, count) in rest
        .split_whitespace()
        .filter_map(|word| word.split_once('='))
    {
        if let Ok(count) = count.parse::<u64>()
            && procfs::CONNECTION_TRACKING.contains(&name)
        {
            let key = format!("conntrack.{name}");
            let former = snapshot.counters.get(&key).map_or(0, |counter| counter.v);
            snapshot.count(key, former.saturating_add(count));
        }
    }

    true
}

/// `net.core.rmem_max = 212992`
fn variable(snapshot: &mut Snapshot, line: &str) -> bool {
    let Some((key, value)) = line.split_once('=') else {
        return false;
    };
    let key = key.trim();

    const TREES: [&str; 6] = ["net.", "vm.", "kernel.", "fs.", "dev.", "user."];

    if !TREES.iter().any(|tree| key.starts_with(tree)) || key.contains(char::is_whitespace) {
        return false;
    }

    match key.strip_prefix("net.netfilter.nf_conntrack_") {
        Some(name @ ("count" | "max")) => {
            snapshot.set_known(
                format!("limits.conntrack.{name}"),
                value.trim().parse::<u64>().ok(),
                "import:sysctl",
            );
        }
        _ => procfs::sysctl(snapshot, key, value, "import:sysctl"),
    }

    true
}

/// `TcpRetransSegs   4311   0.0` of nstat. IPv6 has a group of its own.
fn nstat(snapshot: &mut Snapshot, line: &str) -> Option<()> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [name, count, rate] = words.as_slice() else {
        return (line == "#kernel").then_some(());
    };
    let (count, _) = (count.parse().ok()?, rate.parse::<f64>().ok()?);

    const PROTOCOLS: [&str; 9] = [
        "TcpExt", "IpExt", "MPTcpExt", "IcmpMsg", "UdpLite", "Tcp", "Udp", "Icmp", "Ip",
    ];

    let key = match PROTOCOLS
        .iter()
        .find_map(|protocol| Some((*protocol, name.strip_prefix(protocol)?)))?
    {
        (_, field) if field.starts_with('6') => format!("net.snmp6.{name}"),
        (protocol, field) if protocol.ends_with("Ext") => format!("net.netstat.{protocol}.{field}"),
        (protocol, field) => format!("net.snmp.{protocol}.{field}"),
    };
    snapshot.count(key, count);
    Some(())
}

fn profile(snapshot: &mut Snapshot, line: &str) -> bool {
    let Some(profile) = line.strip_prefix("Current active profile: ") else {
        return false;
    };
    snapshot.set("svc.tuned_profile", profile.trim(), "import:tuned-adm");
    true
}
