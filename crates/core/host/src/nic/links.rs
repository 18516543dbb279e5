//! Interfaces and their standard counters (`rtnetlink(7)`, RTM_GETLINK).

use std::net::Ipv6Addr;

use linerate_sys::netlink::Family;

use crate::prelude::*;

pub(crate) const GET_LINK: u16 = 18;
const STATS64: u16 = 23;
pub(crate) const SRC: &str = "rtnetlink:GETLINK";
/// Interfaces of one host that are read.
const LINKS_MAX: usize = 1024;

/// One interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Link {
    pub index: u32,
    pub name: String,
    pub loopback: bool,
    /// It is administratively up.
    pub up: bool,
    carrier: bool,
    body: Vec<u8>,
}

/// All interfaces of this network namespace.
pub(crate) fn all() -> Vec<Link> {
    let links = dump(Family::Route, GET_LINK, &[0; 16]).0;
    links
        .iter()
        .take(LINKS_MAX)
        .filter_map(|payload| link(payload))
        .collect()
}

pub(crate) fn link(payload: &[u8]) -> Option<Link> {
    const UP: u32 = 1;
    const LOOPBACK: u32 = 8;
    const LOWER_UP: u32 = 1 << 16;
    const NAME: u16 = 3;

    // `ifi_flags`, and the attributes after the 16 bytes of `struct ifinfomsg`.
    let flags = u32_at(payload, 8)?;
    let body = payload.get(16..)?;
    Some(Link {
        index: u32_at(payload, 4)?,
        name: text(attribute(body, NAME)?),
        loopback: flags & LOOPBACK != 0,
        up: flags & UP != 0,
        carrier: flags & LOWER_UP != 0,
        body: body.to_vec(),
    })
}

impl Link {
    /// Records its facts.
    pub(crate) fn record_facts(&self, snapshot: &mut Snapshot, all: &[Self]) {
        let mut nic = Recorder::new(snapshot, format!("nic.{}", self.name), SRC);
        let number = |kind| u32_of(&self.body, kind);
        // `IFF_UP` alone is the administrator's setting; `IFF_LOWER_UP` is the carrier.
        nic.set("link.up", self.up && self.carrier);

        let facts = [
            (4, "net.mtu", "bytes"),
            (50, "net.minmtu", "bytes"),
            (51, "net.maxmtu", "bytes"),
            (13, "net.txqlen", "packets"),
            (41, "net.gso_max", "bytes"),
            (40, "net.gso_max_segs", "segments"),
            (60, "net.tso_max_segs", "segments"),
            (58, "net.gro_max", "bytes"),
            (59, "net.tso_max", "bytes"),
            (63, "net.gso_ipv4_max", "bytes"),
            (64, "net.gro_ipv4_max", "bytes"),
            (31, "net.numtx", "queues"),
            (32, "net.numrx", "queues"),
        ];
        for (kind, fact, unit) in facts {
            nic.known_in(fact, number(kind), unit);
        }

        nic.known("net.kind", self.kind());
        if let Some(master) =
            number(10).and_then(|index| all.iter().find(|link| link.index == index))
        {
            nic.set("net.master", master.name.as_str());
            nic.known("net.master_kind", master.kind());
        }

        // `IFLA_XDP_ATTACHED` of `linux/if_link.h`: 1 is the driver's hook, 2 the generic one
        // behind the socket buffer, 3 the NIC itself.
        let attached =
            attribute(&self.body, 43).and_then(|xdp| attribute(xdp, 2)?.first().copied());
        let mode = match attached {
            None | Some(0) => "none",
            Some(2) => "generic",
            Some(_) => "native",
        };
        nic.set("net.xdp", mode);
    }

    /// Largest packet in bytes.
    pub(crate) fn mtu_bytes(&self) -> Option<u32> {
        const MTU: u16 = 4;
        u32_of(&self.body, MTU)
    }

    /// Kind of a device that is no hardware: `veth`, `bridge`, `wireguard`.
    pub(super) fn kind(&self) -> Option<String> {
        if self.loopback {
            return Some("loopback".to_owned());
        }

        self.info().and_then(|info| attribute(info, 1)).map(text)
    }

    /// What its kind adds (`IFLA_INFO_DATA`).
    pub(super) fn info_data(&self) -> Option<&[u8]> {
        attribute(self.info()?, 2)
    }

    fn info(&self) -> Option<&[u8]> {
        attribute(&self.body, 18)
    }

    /// True if its frames carry the tag of a VLAN: it is a VLAN device, or a bridge or bond all of
    /// whose ports are.
    pub(crate) fn is_tagged(&self, all: &[Self]) -> bool {
        const MASTER: u16 = 10;
        let is_vlan = |link: &Self| link.kind().as_deref() == Some("vlan");
        let is_port = |link: &&Self| u32_of(&link.body, MASTER) == Some(self.index);
        let mut ports = all.iter().filter(is_port).peekable();
        is_vlan(self) || (ports.peek().is_some() && ports.all(is_vlan))
    }

    /// Records its counters alone.
    pub(crate) fn record_counters(&self, snapshot: &mut Snapshot) {
        const NAMES: &str = "rx_packets tx_packets rx_bytes tx_bytes rx_errors tx_errors \
                             rx_dropped tx_dropped multicast collisions rx_length_errors \
                             rx_over_errors rx_crc_errors rx_frame_errors rx_fifo_errors \
                             rx_missed_errors";

        let mut nic = Recorder::new(snapshot, format!("nic.{}", self.name), SRC);
        if let Some(stats) = attribute(&self.body, STATS64) {
            // `struct rtnl_link_stats64` has eight bytes per counter, in this order.
            for (index, name) in NAMES.split(' ').enumerate() {
                nic.count(format!("stats64.{name}"), u64_at(stats, index * 8));
            }
        }

        nic.count(
            "link.carrier_changes",
            u32_of(&self.body, 35).map(u64::from),
        );
    }
}

/// Records the IPv6 addresses that another host on the link has too (RTM_GETADDR).
pub(crate) fn record_duplicates(snapshot: &mut Snapshot, links: &[&Link]) {
    const GET_ADDRESS: u16 = 22;
    const IPV6: u8 = 10;

    // `struct ifaddrmsg` has eight bytes, the first of which is the family.
    let addresses = dump(Family::Route, GET_ADDRESS, &[IPV6, 0, 0, 0, 0, 0, 0, 0]).0;
    let duplicates: Vec<(u32, Ipv6Addr)> = addresses
        .iter()
        .filter_map(|payload| duplicate(payload))
        .collect();

    for link in links {
        let own = duplicates
            .iter()
            .filter(|(index, _)| *index == link.index)
            .map(|(_, address)| address.to_string());
        let own = own.collect::<Vec<_>>().join(" ");
        let key = format!("nic.{}.net.duplicates", link.name);
        snapshot.set(
            key,
            if own.is_empty() { "none" } else { &own },
            "rtnetlink:GETADDR",
        );
    }
}

/// Interface and address that failed duplicate address detection (`struct ifaddrmsg`).
pub(crate) fn duplicate(payload: &[u8]) -> Option<(u32, Ipv6Addr)> {
    const ADDRESS: u16 = 1;
    const FLAGS: u16 = 8;
    const DAD_FAILED: u32 = 8;

    let body = payload.get(8..)?;
    let octets = attribute(body, ADDRESS)?.first_chunk::<16>()?;
    (u32_of(body, FLAGS)? & DAD_FAILED != 0)
        .then_some((u32_at(payload, 4)?, Ipv6Addr::from(*octets)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::{encoded, push};

    #[test]
    fn address_that_failed_detection_is_a_duplicate() {
        let address = |flags: u32| {
            let mut payload = vec![10, 64, 0, 0, 7, 0, 0, 0];
            push(&mut payload, 1, &Ipv6Addr::LOCALHOST.octets());
            push(&mut payload, 8, &flags.to_ne_bytes());
            payload
        };
        assert_eq!(duplicate(&address(0x48)), Some((7, Ipv6Addr::LOCALHOST)));

        // Permanent, and still being checked.
        assert_eq!(duplicate(&address(0xc0)), None);
        assert_eq!(duplicate(&address(0x48)[..20]), None);
    }

    /// A device of a kind, a port of `master` where that is not 0.
    fn device(index: u32, kind: &str, master: u32) -> Link {
        let mut payload = vec![0; 16];
        payload[4..8].copy_from_slice(&index.to_ne_bytes());
        push(&mut payload, 3, b"name\0");
        push(&mut payload, 18, &encoded(1, kind.as_bytes()));

        if master > 0 {
            push(&mut payload, 10, &master.to_ne_bytes());
        }

        link(&payload).expect("a device")
    }

    #[test]
    fn frames_of_a_vlan_device_are_tagged_and_those_of_a_bridge_over_nothing_else() {
        let [plain, vlan] = ["veth", "vlan"].map(|kind| device(1, kind, 0));
        assert!(vlan.is_tagged(&[]) && !plain.is_tagged(std::slice::from_ref(&plain)));
        let bridge = device(9, "bridge", 0);

        let rows: [(&[(&str, u32)], bool); 5] = [
            (&[], false),
            (&[("vlan", 9)], true),
            (&[("vlan", 9), ("vlan", 9)], true),
            (&[("vlan", 9), ("veth", 9)], false),
            (&[("vlan", 8)], false),
        ];
        for (ports, expected) in rows {
            let mut all = vec![bridge.clone()];
            all.extend(ports.iter().map(|(kind, master)| device(2, kind, *master)));
            assert_eq!(bridge.is_tagged(&all), expected, "{ports:?}");
        }
    }
}
