//! What `/sys` says about one interface: its bus, its node, its queues and its interrupts.

use std::fs;
use std::path::{Path, PathBuf};

use linerate_model::procfs::Interrupt;
use linerate_model::snapshot::{Absence, Snapshot};

const SRC: &str = "sysfs";
/// Queues of one interface that are looked at.
const QUEUES_MAX: usize = 512;

/// A short file as text without the line's end.
pub(crate) fn read(path: impl AsRef<Path>) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned())
}

/// Records bus, node and queues of an interface, and which interrupts are its own.
pub(crate) fn record(snapshot: &mut Snapshot, name: &str, interrupts: &[Interrupt]) {
    let nic = format!("nic.{name}");
    let root = Path::new("/sys/class/net").join(name);
    queues(snapshot, &nic, &root);
    let Some(device) = pci_device(&root) else {
        snapshot.set_absent(format!("{nic}.pci"), Absence::NotApplicableToKind, None, SRC);
        return;
    };
    bus(snapshot, &nic, &device);
    node(snapshot, &nic, &device);
    own_interrupts(snapshot, &nic, name, &[root.join("device"), device], interrupts);
}

/// The PCI device behind an interface; a virtio device is one level below its own.
fn pci_device(root: &Path) -> Option<PathBuf> {
    let device = fs::canonicalize(root.join("device")).ok()?;
    let candidates = device.ancestors().take(3).map(Path::to_path_buf);
    candidates
        .into_iter()
        .find(|path| path.join("vendor").exists() && path.join("class").exists())
}

fn bus(snapshot: &mut Snapshot, nic: &str, device: &Path) {
    let speed = |text: String| text.split_whitespace().next().and_then(|word| word.parse::<f64>().ok());
    let width = |text: String| text.parse::<f64>().ok();
    if let Some(address) = device.file_name().and_then(|name| name.to_str()) {
        snapshot.set(format!("{nic}.pci.addr"), address, SRC);
    }
    for (side, file) in [("cur", "current"), ("max", "max")] {
        let values = [
            (
                "speed_gts",
                read(device.join(format!("{file}_link_speed"))).and_then(speed),
            ),
            ("width", read(device.join(format!("{file}_link_width"))).and_then(width)),
        ];
        for (fact, value) in values {
            let key = format!("{nic}.pci.{side}_{fact}");
            match value {
                Some(value) => snapshot.set(key, value, SRC),
                None => snapshot.set_absent(key, Absence::NotApplicableToKind, None, SRC),
            }
        }
    }
    upstream(snapshot, nic, device);
}

/// The narrowest link between the device and the root, and who else is behind it.
fn upstream(snapshot: &mut Snapshot, nic: &str, device: &Path) {
    let number = |path: &Path, file: &str| {
        read(path.join(file)).and_then(|text| text.split_whitespace().next()?.parse::<f64>().ok())
    };
    let ports = device
        .ancestors()
        .skip(1)
        .take_while(|path| path.join("vendor").exists());
    let (mut speed, mut width) = (f64::INFINITY, f64::INFINITY);
    for port in ports {
        speed = number(port, "max_link_speed").unwrap_or(speed).min(speed);
        width = number(port, "max_link_width")
            .filter(|lanes| *lanes > 0.0)
            .unwrap_or(width)
            .min(width);
    }
    for (fact, value) in [("speed_gts", speed), ("width", width)] {
        if value.is_finite() {
            snapshot.set(format!("{nic}.pci.upstream_max_{fact}"), value, SRC);
        }
    }
    let Some(parent) = device.parent() else { return };
    let networks = fs::read_dir(parent)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.path().join("net").is_dir());
    snapshot.set(format!("{nic}.pci.siblings"), networks.count().saturating_sub(1), SRC);
    if let Some(port) = parent.file_name().and_then(|name| name.to_str()) {
        snapshot.set(format!("{nic}.pci.upstream"), port, SRC);
    }
}

fn node(snapshot: &mut Snapshot, nic: &str, device: &Path) {
    if let Some(node) = read(device.join("numa_node")).and_then(|text| text.parse::<i64>().ok()) {
        snapshot.set(format!("{nic}.numa.node"), node, SRC);
    }
    if let Some(cpus) = read(device.join("local_cpulist")) {
        snapshot.set(format!("{nic}.numa.local_cpus"), crate::cpu::count_of(&cpus), SRC);
        snapshot.set(format!("{nic}.numa.local_cpulist"), cpus, SRC);
    }
}

fn queues(snapshot: &mut Snapshot, nic: &str, root: &Path) {
    let names = fs::read_dir(root.join("queues")).into_iter().flatten().flatten();
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
            let file = if direction == "rx" { "rps_cpus" } else { "xps_cpus" };
            if let Some(mask) = read(root.join("queues").join(name).join(file)) {
                snapshot.set(format!("{nic}.queue.{name}.{file}"), mask, SRC);
            }
        }
    }
    if let Some(limit) =
        read(root.join("queues/tx-0/byte_queue_limits/limit")).and_then(|text| text.parse::<i64>().ok())
    {
        snapshot.set_in(format!("{nic}.bql.tx-0.limit"), limit, "bytes", SRC);
    }
}

/// Interrupts of a device: those the bus lists for it, otherwise those that carry its name.
fn own_interrupts(snapshot: &mut Snapshot, nic: &str, name: &str, devices: &[PathBuf], interrupts: &[Interrupt]) {
    let listed: Vec<String> = devices
        .iter()
        .flat_map(|device| fs::read_dir(device.join("msi_irqs")).into_iter().flatten().flatten())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    let named = |irq: &&Interrupt| irq.description.split([' ', '-', '@', ',']).any(|word| word == name);
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
        if let Some(cpus) = read(format!("/proc/irq/{}/smp_affinity_list", irq.number)) {
            snapshot.set(format!("{nic}.irq.{}.affinity", irq.number), cpus, "procfs");
        }
    }
}
