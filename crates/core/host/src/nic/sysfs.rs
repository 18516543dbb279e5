//! Facts of `/sys` about one interface: its node, its queues and its interrupts.

use std::path::{Path, PathBuf};

use linerate_model::placement::cpu_list;

use crate::kernel::procfs::Interrupt;
use crate::nic::pci;
use crate::prelude::*;

const SRC: &str = "sysfs";
/// Queues of one interface that are read.
const QUEUES_MAX: usize = 512;

/// Records bus, node and queues of an interface, and which interrupts are its own.
pub(crate) fn record(snapshot: &mut Snapshot, name: &str, interrupts: &[Interrupt]) {
    let nic = &mut Recorder::new(snapshot, format!("nic.{name}"), SRC);
    let root = Path::new("/sys/class/net").join(name);
    queues(nic, &root);

    let Some(device) = pci::device(&root) else {
        nic.absent("pci", Absence::NotApplicableToKind);
        return;
    };
    pci::record(nic, &device);
    node(nic, &device);
    own_interrupts(nic, name, &[root.join("device"), device], interrupts);
}

fn node(nic: &mut Recorder<'_>, device: &Path) {
    nic.known("numa.node", read_number(device.join("numa_node")));
    if let Some(cpus) = read(device.join("local_cpulist")) {
        nic.set("numa.local_cpus", cpu_list(&cpus).len());
        nic.set("numa.local_cpulist", cpus);
    }
}

fn queues(nic: &mut Recorder<'_>, root: &Path) {
    let names: Vec<String> = names(root.join("queues")).take(QUEUES_MAX).collect();

    for direction in ["rx", "tx"] {
        let own = names.iter().filter(|name| name.starts_with(direction));
        nic.set_in(
            format!("queue.{direction}_count"),
            own.clone().count(),
            "queues",
        );

        for name in own {
            let file = if direction == "rx" {
                "rps_cpus"
            } else {
                "xps_cpus"
            };
            let mask = read(root.join("queues").join(name).join(file));
            nic.known(format!("queue.{name}.{file}"), mask);
        }
    }

    let limit = read_number(root.join("queues/tx-0/byte_queue_limits/limit"));
    nic.known_in("bql.tx-0.limit", limit, "bytes");
}

/// Interrupts of a device: those the bus lists for it, otherwise those that carry its name.
fn own_interrupts(
    nic: &mut Recorder<'_>,
    name: &str,
    devices: &[PathBuf],
    interrupts: &[Interrupt],
) {
    // `msi_irqs` exists for devices with message-signalled interrupts (sysfs-bus-pci); others and
    // virtual ones have names only.
    let listed: Vec<String> = devices
        .iter()
        .flat_map(|device| names(device.join("msi_irqs")))
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
            nic.count(format!("irq.{}.cpu{cpu}", irq.number), Some(*count));
        }
        let cpus = read(format!("/proc/irq/{}/smp_affinity_list", irq.number));
        nic.with_source("procfs")
            .known(format!("irq.{}.affinity", irq.number), cpus);
    }
}
