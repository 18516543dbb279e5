//! Kernel variables, `/proc`, and the odd line about the system.

use linerate_model::snapshot::Snapshot;

use super::blocks::Block;
use super::join::Loose;
use crate::kernel::procfs;

/// Reads lines about the system; tables are collected and read at the end of the block.
pub(super) struct Reader<'a> {
    block: Block<'a>,
    interrupts: String,
    table: String,
}

impl<'a> Reader<'a> {
    pub(super) fn new(block: &Block<'a>) -> Self {
        Self { block: Block { lines: Vec::new(), ..block.clone() }, interrupts: String::new(), table: String::new() }
    }

    pub(super) fn line(&mut self, snapshot: &mut Snapshot, _: &mut Loose, line: &str) -> bool {
        self.interrupt(line)
            || self.table(line)
            || self.kernel(snapshot, line)
            || variable(snapshot, line)
            || profile(snapshot, line)
            || self.of_no_use(line)
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
        let Some(first) = words.first() else { return false };
        let paired = ["Ip:", "Icmp:", "Tcp:", "Udp:", "UdpLite:", "TcpExt:", "IpExt:", "IcmpMsg:", "MPTcpExt:"];
        let is_cpu =
            first.strip_prefix("cpu").is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_digit())) && words.len() > 4;
        let is_sockets = ["TCP:", "UDP:", "sockets:", "RAW:", "FRAG:", "UDPLITE:"].contains(first) && words.len() > 2;
        let wanted = procfs::is_softnet_line(&words) || paired.contains(first) || is_cpu || is_sockets;
        collect(&mut self.table, line, wanted)
    }

    fn kernel(&self, snapshot: &mut Snapshot, line: &str) -> bool {
        let release = match self.block.command {
            "uname -r" => Some(line.trim()),
            _ => line.strip_prefix("Linux ").and_then(|rest| rest.split_whitespace().nth(1)),
        };
        if let Some(release) = release.filter(|release| release.starts_with(|c: char| c.is_ascii_digit())) {
            snapshot.kernel = Some(release.to_owned());
        }
        release.is_some()
    }

    /// Lines that are understood and hold nothing a rule reads.
    fn of_no_use(&self, line: &str) -> bool {
        let command = self.block.words().find(|word| *word != "sudo").unwrap_or_default();
        match command {
            "modinfo" => line.contains(':'),
            "tuned-adm" => line.starts_with("- ") || line.starts_with("Available profiles"),
            "remedy" => line.starts_with("sudo "),
            _ => false,
        }
    }

    pub(super) fn finish(self, snapshot: &mut Snapshot, loose: &mut Loose) {
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

/// Adds a line that is wanted; returns whether it is.
fn collect(lines: &mut String, line: &str, is_wanted: bool) -> bool {
    if is_wanted {
        lines.extend([line, "\n"]);
    }
    is_wanted
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
    procfs::sysctl(snapshot, key, value, "import:sysctl");
    true
}

fn profile(snapshot: &mut Snapshot, line: &str) -> bool {
    let Some(profile) = line.strip_prefix("Current active profile: ") else {
        return false;
    };
    snapshot.set("svc.tuned_profile", profile.trim(), "import:tuned-adm");
    true
}
