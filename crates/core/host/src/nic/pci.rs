//! The PCI Express link of an interface, from its device to the root of the bus, and the
//! IOMMU before it.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::nic::config_space::{NoPcieCapability, PcieLink, pcie_link};
use crate::prelude::*;

const CONFIG: &str = "sysfs:config";

/// The PCI device behind an interface; a virtio device is one level below its own.
pub(crate) fn device(root: &Path) -> Option<PathBuf> {
    let device = fs::canonicalize(root.join("device")).ok()?;
    let candidates = device.ancestors().take(3).map(Path::to_path_buf);
    candidates
        .into_iter()
        .find(|path| path.join("vendor").exists() && path.join("class").exists())
}

/// Records the link of a device, the path to the root, payloads and translation.
pub(crate) fn record(nic: &mut Recorder<'_>, device: &Path) {
    let speed = |text: String| {
        text.split_whitespace()
            .next()
            .and_then(|word| word.parse::<f64>().ok())
    };
    // A device inside the root complex claims no lane, or 255.
    let width = |text: String| {
        text.parse::<f64>()
            .ok()
            .filter(|lanes| (1.0..=64.0).contains(lanes))
    };

    nic.known(
        "pci.addr",
        device.file_name().and_then(|name| name.to_str()),
    );
    for (side, file) in [("cur", "current"), ("max", "max")] {
        let values = [
            (
                "speed_gts",
                read(device.join(format!("{file}_link_speed"))).and_then(speed),
            ),
            (
                "width",
                read(device.join(format!("{file}_link_width"))).and_then(width),
            ),
        ];
        for (fact, value) in values {
            nic.or_absent(
                format!("pci.{side}_{fact}"),
                value,
                Absence::NotApplicableToKind,
            );
        }
    }

    upstream(nic, device);
    payloads(nic, device);
    translation(nic, device);
}

/// The narrowest link between the device and the root, and the other devices behind it.
fn upstream(nic: &mut Recorder<'_>, device: &Path) {
    let number = |path: &Path, file: &str| {
        read(path.join(file))?
            .split_whitespace()
            .next()?
            .parse::<f64>()
            .ok()
    };
    let mut speed = f64::INFINITY;
    let mut width = f64::INFINITY;

    for port in ports(device) {
        speed = number(&port, "max_link_speed").unwrap_or(speed).min(speed);
        width = number(&port, "max_link_width")
            .filter(|lanes| *lanes > 0.0)
            .unwrap_or(width)
            .min(width);
    }

    for (fact, value) in [("speed_gts", speed), ("width", width)] {
        let known = value.is_finite().then_some(value);
        nic.known(format!("pci.upstream_max_{fact}"), known);
    }

    let Some(parent) = device.parent() else {
        return;
    };
    let networks = entries(parent).filter(|path| path.join("net").is_dir());
    // The device itself is one of them.
    nic.set("pci.siblings", networks.count().saturating_sub(1));
    nic.known(
        "pci.upstream",
        parent.file_name().and_then(|name| name.to_str()),
    );
}

/// Sizes of packets on the bus: of the device, and the smallest between it and the root.
fn payloads(nic: &mut Recorder<'_>, device: &Path) {
    let nic = &mut nic.with_source(CONFIG);
    let own = |fact: &str| format!("pci.{fact}");
    match configuration(device) {
        Ok(device) => {
            let sizes = [
                ("mps_bytes", device.payload_bytes),
                ("mps_supported_bytes", device.payload_supported_bytes),
                ("mrrs_bytes", device.read_request_bytes),
            ];
            for (fact, bytes) in sizes {
                nic.set_in(own(fact), bytes, "bytes");
            }

            let states = ["off", "L0s", "L1", "L0s L1"];
            let aspm = device
                .aspm
                .and_then(|bits| states.get(usize::from(bits)).copied());
            nic.or_absent(own("aspm"), aspm, Absence::NotApplicableToKind);
        }
        Err(absence) => {
            for fact in ["mps_bytes", "mps_supported_bytes", "mrrs_bytes", "aspm"] {
                nic.absent(own(fact), absence);
            }
            return;
        }
    }

    let ports = ports(device)
        .map(|port| configuration(&port))
        .collect::<Result<Vec<_>, _>>();
    let key = |fact: &str| format!("pci.upstream_{fact}");

    match ports.as_deref() {
        Err(absence) => nic.absent(key("mps_supported_bytes"), *absence),
        Ok(ports) => {
            let least = |size: fn(&PcieLink) -> u32| ports.iter().map(size).min();
            let sizes = [
                ("mps_bytes", least(|port| port.payload_bytes)),
                (
                    "mps_supported_bytes",
                    least(|port| port.payload_supported_bytes),
                ),
            ];
            for (fact, size) in sizes {
                nic.known_in(key(fact), size, "bytes");
                nic.absent(key(fact), Absence::NotApplicableToKind);
            }
        }
    }
}

/// The bridges between a device and the root, the nearest first.
fn ports(device: &Path) -> impl Iterator<Item = PathBuf> {
    let above = device.ancestors().skip(1);
    above
        // The directories above the root port, such as `pci0000:00`, are no devices.
        .take_while(|path| path.join("vendor").exists())
        .map(Path::to_path_buf)
}

fn configuration(device: &Path) -> Result<PcieLink, Absence> {
    // The extended space begins behind; nothing of it is needed.
    const BYTES: u64 = 256;

    let mut config = Vec::new();
    let file = fs::File::open(device.join("config")).map_err(|_| Absence::NotReported)?;
    // Reads beyond 64 bytes need CAP_SYS_ADMIN: the kernel shows the rest to root alone
    // (pci-sysfs.c).
    file.take(BYTES)
        .read_to_end(&mut config)
        .map_err(|_| Absence::NotReported)?;

    pcie_link(&config).map_err(|reason| match reason {
        NoPcieCapability::Hidden => Absence::Permission,
        NoPcieCapability::NotExpress => Absence::NotApplicableToKind,
    })
}

/// Treatment of the buffers of a device by the IOMMU.
fn translation(nic: &mut Recorder<'_>, device: &Path) {
    // `iommu_group/type` exists since Linux 5.11.
    let mode = match (
        read(device.join("iommu_group/type")),
        device.join("iommu_group").exists(),
    ) {
        (Some(kind), _) => domain(&kind),
        // Kernels before 5.11 report only the boot option.
        (None, true) => by_boot_option(&read("/proc/cmdline").unwrap_or_default()),
        (None, false) => Some("off"),
    };
    nic.or_absent("pci.iommu", mode, Absence::NotReported);
}

/// The kernel's names for a kind of domain (`sysfs-kernel-iommu_groups`).
fn domain(kind: &str) -> Option<&'static str> {
    match kind {
        "identity" => Some("passthrough"),
        "DMA" => Some("strict"),
        "DMA-FQ" => Some("lazy"),
        _ => None,
    }
}

fn by_boot_option(command_line: &str) -> Option<&'static str> {
    command_line.split_whitespace().find_map(|word| match word {
        "iommu=pt" | "iommu.passthrough=1" => Some("passthrough"),
        "iommu.strict=1" | "intel_iommu=strict" => Some("strict"),
        "iommu.strict=0" => Some("lazy"),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iommu_modes_are_parsed_from_kernel_names() {
        let rows = [
            ("identity", Some("passthrough")),
            ("DMA", Some("strict")),
            ("DMA-FQ", Some("lazy")),
        ];
        for (kind, mode) in rows.into_iter().chain([("blocked", None), ("", None)]) {
            assert_eq!(domain(kind), mode, "{kind}");
        }

        assert_eq!(by_boot_option("quiet iommu=pt"), Some("passthrough"));
        assert_eq!(by_boot_option("iommu.strict=0"), Some("lazy"));
        assert_eq!(by_boot_option("quiet"), None);
    }
}
