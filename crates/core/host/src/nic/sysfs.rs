//! Facts of `/sys` about one interface: its node, its queues and its interrupts.

use std::fs;
use std::path::{Path, PathBuf};

use linerate_model::placement::cpu_list;
use linerate_model::snapshot::{Absence, Snapshot};

use crate::kernel::procfs::Interrupt;
use crate::nic::pci;
use crate::short_file::{read, read_number};

const SRC: &str = "sysfs";
/// Queues of one interface that are read.
const QUEUES_MAX: usize = 512;

/// Records bus, node and queues of an interface, and which interrupts are its own.
pub(crate) fn record(snapshot: &mut Snapshot, name: &str, interrupts: &[Interrupt]) {
    let nic = format!("nic.{name}");
    let root = Path::new("/sys/class/net").join(name);
    queues(snapshot, &nic, &root);

    let Some(device) = pci::device(&root) else {
        snapshot.set_absent(
            format!("{nic}.pci"),
            Absence::NotApplicableToKind,
            None,
            SRC,
        );
        return;
    };
    pci::record(snapshot, &nic, &device);
    node(snapshot, &nic, &device);
    own_interrupts(
        snapshot,
        &nic,
        name,
        &[root.join("device"), device],
        interrupts,
    );
}

fn node(snapshot: &mut Snapshot, nic: &str, device: &Path) {
    snapshot.set_known(
        format!("{nic}.numa.node"),
        read_number(device.join("numa_node")),
        SRC,
    );
    if let Some(cpus) = read(device.join("local_cpulist")) {
        snapshot.set(format!("{nic}.numa.local_cpus"), cpu_list(&cpus).len(), SRC);
        snapshot.set(format!("{nic}.numa.local_cpulist"), cpus, SRC);
    }
}

fn queues(snapshot: &mut Snapshot, nic: &str, root: &Path) {
    let names = fs::read_dir(root.join("queues"))
        .into_iter()
        .flatten()
        .flatten();
    let names: Vec<String> = names
        .filter_map(|entry| entry.file_name().into_string().ok())
        .take(QUEUES_MAX)
        .collect();

    for direction in ["rx", "tx"] {
        let own = names.iter().filter(|name| name.starts_with(direction));
        snapshot.set_in(
            format!("{nic}.queue.{direction}_count"),
            own.clone().count(),
            "queues",
            SRC,
        );

        for name in own {
            let file = if direction == "rx" {
                "rps_cpus"
            } else {
                "xps_cpus"
            };
            let mask = read(root.join("queues").join(name).join(file));
            snapshot.set_known(format!("{nic}.queue.{name}.{file}"), mask, SRC);
        }
    }

    let limit = read_number(root.join("queues/tx-0/byte_queue_limits/limit"));
    snapshot.set_known_in(format!("{nic}.bql.tx-0.limit"), limit, "bytes", SRC);
}

/// Interrupts of a device: those the bus lists for it, otherwise those that carry its name.
fn own_interrupts(
    snapshot: &mut Snapshot,
    nic: &str,
    name: &str,
    devices: &[PathBuf],
    interrupts: &[Interrupt],
) {
    // `msi_irqs` exists for devices with message-signalled interrupts (sysfs-bus-pci); others and
    // virtual ones have names only.
    let listed: Vec<String> = devices
        .iter()
        .flat_map(|device| {
            fs::read_dir(device.join("msi_irqs"))
                .into_iter()
                .flatten()
                .flatten()
        })
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    let named = |irq: &&Interrupt| {
        irq.description
            .split([' ', '-', '@', ','])
            .any(|word| word == name)
    };
    let own = |irq: &&Interrupt| {
        if listed.is_empty() {
            named(irq)
        } else {
            listed.contains(&irq.number)
        }
    };
    for irq in interrupts.iter().filter(own) {
        for (cpu, count) in &irq.per_cpu {
            snapshot.count(format!("{nic}.irq.{}.cpu{cpu}", irq.number), *count, None);
        }
        let cpus = read(format!("/proc/irq/{}/smp_affinity_list", irq.number));
        snapshot.set_known(format!("{nic}.irq.{}.affinity", irq.number), cpus, "procfs");
    }
}
