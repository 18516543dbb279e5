//! Ports of a bridge, and which of them leads to a neighbour.

use std::fs;
use std::net::IpAddr;
use std::path::Path;

use crate::nic::pci;
use crate::prelude::*;

/// Bytes of an entry of the forwarding table (`struct __fdb_entry` of `linux/if_bridge.h`).
const ENTRY_BYTES: usize = 16;
/// Entries that are read.
const ENTRIES_MAX: usize = 1 << 16;

/// A port of a bridge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BridgePort {
    /// Its device.
    pub name: String,
    /// Bridge of the bus that its card is behind; `None` of a device without a bus.
    pub slot: Option<String>,
}

/// The port of a bridge of this network namespace that leads to a neighbour, as the bridge learned
/// it; `None` of another device, and of what it did not learn. IPv4 only.
pub fn bridge_port(device: &str, neighbour: IpAddr) -> Option<BridgePort> {
    let root = Path::new("/sys/class/net").join(device);
    // Other devices have no such file.
    let table = fs::read(root.join("brforward")).ok()?;
    // The bridge knows hardware addresses alone.
    let arp = read("/proc/net/arp")?;
    let number = port_number(&table, mac_of(&arp, neighbour, device)?)?;
    let port = entries(root.join("brif"))
        // sysfs prints the number in hexadecimal (`show_port_no`).
        .find(|port| read(port.join("port_no")) == Some(format!("{number:#x}")))?;
    let name = port.file_name()?.to_str()?.to_owned();
    let device = pci::device(&Path::new("/sys/class/net").join(&name));
    let slot = device.and_then(|device| Some(device.parent()?.file_name()?.to_str()?.to_owned()));

    Some(BridgePort { name, slot })
}

/// The hardware address of a neighbour in the table of arp(7).
fn mac_of(arp: &str, neighbour: IpAddr, device: &str) -> Option<[u8; 6]> {
    let mut rows = arp
        .lines()
        .skip(1)
        .map(|row| row.split_whitespace().collect::<Vec<_>>());
    let is_wanted = |row: &Vec<&str>| {
        row.first().and_then(|ip| ip.parse().ok()) == Some(neighbour) && row.last() == Some(&device)
    };
    let row = rows.find(is_wanted)?;
    let bytes = row
        .get(3)?
        .split(':')
        .map(|byte| u8::from_str_radix(byte, 16).ok())
        .collect::<Option<Vec<u8>>>()?;

    bytes.try_into().ok()
}

/// The number of the port behind which a hardware address is.
fn port_number(table: &[u8], mac: [u8; 6]) -> Option<u16> {
    let entries = table.chunks_exact(ENTRY_BYTES).take(ENTRIES_MAX);
    let mut of_mac = entries.filter(|entry| entry.starts_with(&mac));
    // Low byte, whether the address is the bridge's own, age, high byte.
    of_mac.find_map(|entry| match (entry.get(6..8)?, entry.get(12)?) {
        ([low, 0], high) => Some(u16::from_le_bytes([*low, *high])),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ARP: &str = "IP address       HW type     Flags       HW address            Mask     \
                       Device\n\
                       10.0.0.2         0x1         0x2         02:00:00:00:00:02     *        \
                       br0\n\
                       10.0.0.3         0x1         0x0         00:00:00:00:00:00     *        \
                       eth0\n";

    fn entry(last: u8, port: u16, is_local: u8) -> [u8; ENTRY_BYTES] {
        let [low, high] = port.to_le_bytes();
        [
            2, 0, 0, 0, 0, last, low, is_local, 9, 0, 0, 0, high, 0, 0, 0,
        ]
    }

    #[test]
    fn neighbour_is_behind_the_port_that_the_bridge_learned() {
        let mac = mac_of(ARP, [10, 0, 0, 2].into(), "br0");
        assert_eq!(mac, Some([2, 0, 0, 0, 0, 2]));
        assert_eq!(
            mac_of(ARP, [10, 0, 0, 2].into(), "eth0"),
            None,
            "of another device"
        );
        assert_eq!(
            mac_of("x\n10.0.0.2 a b c:d", [10, 0, 0, 2].into(), "c:d"),
            None
        );

        let table = [entry(1, 1, 0), entry(2, 3, 1), entry(2, 258, 0)].concat();
        assert_eq!(
            port_number(&table, [2, 0, 0, 0, 0, 2]),
            Some(258),
            "not the address of the bridge itself"
        );
        assert_eq!(port_number(&table[..40], [2, 0, 0, 0, 0, 2]), None);
    }
}
