//! The physical ports that a device sends through.

use std::collections::BTreeSet;
use std::path::Path;

use crate::prelude::*;

/// Devices below each other that are followed; the kernel nests no more (`MAX_NEST_DEV`).
const DEPTH_MAX: usize = 8;
/// Ports of one device.
const PORTS_MAX: usize = 64;

/// Devices below a device.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Attachment {
    /// Devices without another one below; the device itself where it is one.
    pub ports: BTreeSet<String>,
    /// A VLAN lies between.
    pub has_vlan: bool,
}

/// Lower device that a device of this network namespace sends through. VLAN, bridge, bond and
/// macvlan have links to the devices below them (`lower_*` of sysfs).
pub fn attachment(device: &str) -> Attachment {
    let mut found = Attachment::default();
    descend(device, DEPTH_MAX, &read_device, &mut found);
    found
}

/// A device as sysfs shows it.
struct Device {
    below: Vec<String>,
    is_vlan: bool,
}

fn read_device(name: &str) -> Device {
    let folder = Path::new("/sys/class/net").join(name);
    let is_vlan = read(folder.join("uevent"))
        .is_some_and(|text| text.lines().any(|line| line == "DEVTYPE=vlan"));
    let below = names(&folder).filter_map(|name| name.strip_prefix("lower_").map(str::to_owned));

    Device {
        below: below.take(PORTS_MAX).collect(),
        is_vlan,
    }
}

fn descend(name: &str, depth: usize, read: &impl Fn(&str) -> Device, found: &mut Attachment) {
    let device = read(name);
    found.has_vlan |= device.is_vlan;

    if device.below.is_empty() && found.ports.len() < PORTS_MAX {
        found.ports.insert(name.to_owned());
    }

    // Bounded: names may change between two reads and form a loop.
    if depth > 0 {
        device
            .below
            .iter()
            .for_each(|lower| descend(lower, depth - 1, read, found));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_found_below_a_bridge_a_vlan_and_a_bond() {
        let device = |name: &str| {
            let below: &[&str] = match name {
                "br0" => &["bond0.5", "eth2"],
                "bond0.5" => &["bond0"],
                "bond0" => &["eth0", "eth1"],
                "loop0" => &["loop0"],
                _ => &[],
            };
            Device {
                below: below.iter().map(|lower| (*lower).to_owned()).collect(),
                is_vlan: name == "bond0.5",
            }
        };
        let of = |name: &str| {
            let mut found = Attachment::default();
            descend(name, DEPTH_MAX, &device, &mut found);
            (
                found.ports.into_iter().collect::<Vec<_>>().join(" "),
                found.has_vlan,
            )
        };
        assert_eq!(of("br0"), ("eth0 eth1 eth2".to_owned(), true));
        assert_eq!(of("bond0"), ("eth0 eth1".to_owned(), false));
        assert_eq!(of("eth2"), ("eth2".to_owned(), false));
        assert_eq!(
            of("loop0"),
            (String::new(), false),
            "no device is below itself without end"
        );
    }
}
