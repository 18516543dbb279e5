//! Output of `lspci -vv`, and attributes of a device in sysfs written as `name=value`.

use super::attribute::UnattributedFacts;
use super::lines::*;

const SRC: &str = "import:lspci -vv";
const SYSFS: &str = "import:sysfs";

/// Reads lines about PCI devices.
pub(super) struct Reader {
    /// Address of the device the lines describe.
    address: Option<String>,
}

impl Reader {
    pub(super) fn new(block: &Block<'_>) -> Self {
        let words: Vec<&str> = block.words().collect();
        let selected = after(&words, "-s").filter(|_| block.has("lspci"));
        Self {
            address: selected.and_then(full_address),
        }
    }

    pub(super) fn line(&mut self, loose: &mut UnattributedFacts, line: &str) -> bool {
        if let Some(address) = device_line(line) {
            self.address = Some(address);
            return true;
        }

        if let Some(address) = line.strip_prefix("pci_or_bus_id=") {
            self.address = Some(full_address(address).unwrap_or_else(|| address.to_owned()));
            loose.seen_in_sysfs(self.address.as_deref().unwrap_or_default());
            return true;
        }

        let Some(address) = &self.address else {
            return false;
        };
        capability(loose, address, line) || attribute(loose, address, line)
    }
}

/// `01:00.0 Ethernet controller: …`, with or without a domain.
fn device_line(line: &str) -> Option<String> {
    let (address, rest) = line.split_once(' ')?;
    full_address(address).filter(|_| rest.contains(':'))
}

/// `04:00.0` and `0000:04:00.0` are the same device.
fn full_address(text: &str) -> Option<String> {
    let (bus, function) = text.rsplit_once('.')?;
    let is_hex =
        |part: &str, len: usize| part.len() == len && part.bytes().all(|b| b.is_ascii_hexdigit());
    let parts: Vec<&str> = bus.split(':').collect();
    let (domain, bus, device) = match *parts.as_slice() {
        [domain, bus, device] => (domain, bus, device),
        [bus, device] => ("0000", bus, device),
        _ => return None,
    };
    let is_address =
        is_hex(domain, 4) && is_hex(bus, 2) && is_hex(device, 2) && is_hex(function, 1);

    is_address.then(|| format!("{domain}:{bus}:{device}.{function}"))
}

/// `LnkCap: Port #0, Speed 2.5GT/s, Width x1, ASPM L0s` and its kin.
fn capability(loose: &mut UnattributedFacts, address: &str, line: &str) -> bool {
    let Some((key, value)) = field(line) else {
        return line.starts_with(char::is_whitespace) && sizes(loose, address, line);
    };
    let side = match key {
        "LnkCap" => "max",
        "LnkSta" => "cur",
        "DevCap" => {
            let size = value.split_once("MaxPayload ");
            return size
                .is_none_or(|(_, rest)| payload(loose, address, "pci.mps_supported_bytes", rest));
        }
        "LnkCtl" => {
            power_saving(loose, address, value);
            return true;
        }
        "DevCtl"
        | "LnkCap2"
        | "LnkSta2"
        | "LnkCtl2"
        | "Subsystem"
        | "Capabilities"
        | "Kernel driver in use" => {
            return true;
        }
        _ => return line.starts_with(char::is_whitespace) && line.contains("access denied"),
    };

    for part in value.split(',').map(str::trim) {
        if let Some(speed) = part.strip_prefix("Speed ").and_then(leading_number) {
            loose.fact(address, &format!("pci.{side}_speed_gts"), speed, SRC);
        }

        if let Some(width) = part.strip_prefix("Width x").and_then(leading_number) {
            loose.fact(address, &format!("pci.{side}_width"), width, SRC);
        }
    }

    true
}

/// `MaxPayload 128 bytes, MaxReadReq 512 bytes`
fn sizes(loose: &mut UnattributedFacts, address: &str, line: &str) -> bool {
    let mut read = |words: &str, fact| {
        line.split_once(words)
            .is_some_and(|(_, rest)| payload(loose, address, fact, rest))
    };
    // One line can have both: `||` would stop after the first.
    read("MaxPayload ", "pci.mps_bytes") | read("MaxReadReq ", "pci.mrrs_bytes")
}

/// `ASPM L1 Enabled; RCB 64 bytes`, `ASPM L0s L1 Enabled`, `ASPM Disabled`
fn power_saving(loose: &mut UnattributedFacts, address: &str, value: &str) {
    let words = value
        .strip_prefix("ASPM ")
        .and_then(|rest| rest.split(';').next())
        .unwrap_or_default()
        .trim();
    let states = if words == "Disabled" {
        Some("off")
    } else {
        words.strip_suffix(" Enabled")
    };
    if let Some(states) = states {
        loose.fact(address, "pci.aspm", states, SRC);
    }
}

fn payload(loose: &mut UnattributedFacts, address: &str, fact: &str, rest: &str) -> bool {
    let size = leading_number(rest);
    if let Some(size) = size {
        loose.fact(address, fact, size, SRC);
    }
    size.is_some()
}

/// `current_link_speed=2.5 GT/s PCIe`, `parent max_link_width=1`, `numa_node=-1`.
fn attribute(loose: &mut UnattributedFacts, address: &str, line: &str) -> bool {
    let Some((name, value)) = line.split_once('=') else {
        return false;
    };
    let (prefix, name) = name
        .strip_prefix("parent ")
        .map_or(("", name), |name| ("upstream_", name));
    let fact = match name {
        "current_link_speed" => "cur_speed_gts",
        "current_link_width" => "cur_width",
        "max_link_speed" => "max_speed_gts",
        "max_link_width" => "max_width",
        "numa_node" if prefix.is_empty() => {
            if let Ok(node) = value.trim().parse::<i64>() {
                loose.fact(address, "numa.node", node, SYSFS);
            }
            return true;
        }
        "local_cpulist" if prefix.is_empty() => {
            loose.fact(address, "numa.local_cpulist", value.trim(), SYSFS);
            return true;
        }
        "numa_node" | "local_cpulist" => return true,
        _ => return false,
    };

    match leading_number(value) {
        Some(number) => loose.fact(address, &format!("pci.{prefix}{fact}"), number, SYSFS),
        None => loose.seen_in_sysfs(address),
    }

    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_with_and_without_domain() {
        assert_eq!(full_address("04:00.0").as_deref(), Some("0000:04:00.0"));
        assert_eq!(
            full_address("0001:04:00.1").as_deref(),
            Some("0001:04:00.1")
        );

        for bad in ["virtio0", "04:00", "4:0.0", "x4:00.0", "04:00.0.1", ""] {
            assert_eq!(full_address(bad), None, "{bad}");
        }

        assert_eq!(
            device_line("01:00.0 Ethernet controller: Intel").as_deref(),
            Some("0000:01:00.0")
        );
        assert_eq!(device_line("01:00.0 nothing"), None);
    }
}
