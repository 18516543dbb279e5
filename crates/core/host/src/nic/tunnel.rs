//! Tunnels: their ends, the device below and what they add to a packet (`ip -d link`,
//! `IFLA_INFO_DATA` of `linux/if_link.h` and `linux/if_tunnel.h`).

mod ipsec;
mod wireguard;

use std::net::IpAddr;

use self::ipsec::Esp;
use super::links::{Link, SRC};
use super::route;
use crate::prelude::*;

/// Numbers of the attributes of a kind; 0 for one that it does not have.
struct Layout {
    kind: &'static str,
    device: u16,
    /// Of IPv4, and of IPv6 where that is another attribute.
    local: [u16; 2],
    remote: [u16; 2],
    port: u16,
    /// Headers around a packet behind the outer IP header, in bytes.
    headers_bytes: u32,
}

const KINDS: [Layout; 8] = [
    // UDP, VXLAN and Ethernet: RFC 7348.
    layout("vxlan", 3, [4, 17], [2, 16], 15, 8 + 8 + 14),
    // The same with GENEVE, without its options: RFC 8926.
    layout("geneve", 0, [0, 0], [2, 7], 5, 8 + 8 + 14),
    // RFC 2784, without key, sequence number and checksum.
    layout("gre", 1, [6, 6], [7, 7], 0, 4),
    layout("ip6gre", 1, [6, 6], [7, 7], 0, 4),
    layout("gretap", 1, [6, 6], [7, 7], 0, 4 + 14),
    layout("ipip", 1, [2, 2], [3, 3], 0, 0),
    layout("sit", 1, [2, 2], [3, 3], 0, 0),
    layout("ip6tnl", 1, [2, 2], [3, 3], 0, 0),
];

const fn layout(
    kind: &'static str,
    device: u16,
    local: [u16; 2],
    remote: [u16; 2],
    port: u16,
    headers_bytes: u32,
) -> Layout {
    Layout {
        kind,
        device,
        local,
        remote,
        port,
        headers_bytes,
    }
}

/// A tunnel as the kernel describes it.
#[derive(Debug, Default)]
struct Tunnel {
    local: Option<IpAddr>,
    /// Other ends: one, but of WireGuard one for each peer whose address is known.
    remotes: Vec<IpAddr>,
    port: Option<u16>,
    /// Device it is bound to.
    device: Option<u32>,
    headers: Headers,
}

/// Headers around a packet behind the outer IP header.
#[derive(Debug)]
enum Headers {
    Bytes(u32),
    Esp(Esp),
}

impl Default for Headers {
    fn default() -> Self {
        Self::Bytes(0)
    }
}

/// Outer MTU where the device below is not known.
const COMMON_MTU: u32 = 1500;

impl Tunnel {
    /// `None` for other devices, and where the kernel or the rights of this process show nothing.
    fn of(link: &Link) -> Option<Self> {
        match link.kind()?.as_str() {
            "wireguard" => wireguard::read(link.index),
            "xfrm" => ipsec::read(link.info_data()?),
            kind => {
                let layout = KINDS.iter().find(|layout| layout.kind == kind)?;
                Some(Self::described(layout, link.info_data()?))
            }
        }
    }

    fn described(layout: &Layout, data: &[u8]) -> Self {
        Self {
            local: address(data, layout.local),
            remotes: address(data, layout.remote).into_iter().collect(),
            // A port is in network byte order, unlike other attributes.
            port: u16_of(data, layout.port).map(u16::swap_bytes),
            device: u32_of(data, layout.device).filter(|index| *index > 0),
            headers: Headers::Bytes(layout.headers_bytes),
        }
    }

    fn below<'a>(&self, own: &Link, all: &'a [Link]) -> Option<&'a Link> {
        let by_route = || route::device_index(*self.remotes.first()?);
        let index = self.device.or_else(by_route)?;
        all.iter()
            .find(|link| link.index == index && link.index != own.index)
    }

    /// Bytes that a full-size packet grows by.
    fn overhead_bytes(&self, below_mtu: Option<u32>) -> u32 {
        let mut ends = self.remotes.iter().chain(&self.local);
        let outer_bytes = if ends.any(IpAddr::is_ipv6) { 40 } else { 20 };
        match &self.headers {
            Headers::Bytes(bytes) => outer_bytes + bytes,
            Headers::Esp(esp) => {
                let mtu = below_mtu.unwrap_or(COMMON_MTU);
                mtu.saturating_sub(esp.largest_bytes(mtu.saturating_sub(outer_bytes)))
            }
        }
    }
}

/// The device that carries a tunnel; `None` for other devices, and where nothing shows it.
pub(crate) fn below<'a>(tunnel: &Link, all: &'a [Link]) -> Option<&'a Link> {
    Tunnel::of(tunnel)?.below(tunnel, all)
}

/// Records what is known of a tunnel; nothing of other devices.
pub(crate) fn record(snapshot: &mut Snapshot, link: &Link, all: &[Link]) {
    let Some(tunnel) = Tunnel::of(link) else {
        return;
    };
    let below = tunnel.below(link, all);
    let below_mtu = below.and_then(Link::mtu_bytes);
    // Of a WireGuard with several peers none: a client of this host must not learn where others are.
    let remote = match tunnel.remotes.as_slice() {
        [only] => Some(only.to_string()),
        _ => None,
    };

    let mut nic = Recorder::new(snapshot, format!("nic.{}", link.name), SRC);
    nic.known("tunnel.local", tunnel.local.map(|local| local.to_string()));
    nic.known("tunnel.remote", remote);
    nic.known("tunnel.port", tunnel.port.map(u32::from));
    nic.known("tunnel.below", below.map(|below| below.name.clone()));
    nic.known_in("tunnel.below_mtu", below_mtu, "bytes");
    nic.set_in("tunnel.overhead", tunnel.overhead_bytes(below_mtu), "bytes");
    if link.kind().as_deref() == Some("wireguard") {
        nic.known("tunnel.worker_cpus", wireguard::worker_cpus(&link.name));
    }
}

/// An address, unless it is unspecified.
fn address(data: &[u8], [v4, v6]: [u16; 2]) -> Option<IpAddr> {
    let found = attribute(data, v4).or_else(|| attribute(data, v6))?;
    route::address_of(found).filter(|address| !address.is_unspecified())
}

#[cfg(test)]
mod tests {
    use linerate_model::snapshot::Source;

    use super::*;
    use crate::netlink::push;
    use crate::nic::links;

    fn nested(kind: u16, parts: &[(u16, &[u8])]) -> Vec<u8> {
        let mut inside = Vec::new();
        parts
            .iter()
            .for_each(|(kind, content)| push(&mut inside, *kind, content));
        let mut whole = Vec::new();
        push(&mut whole, kind, &inside);
        whole
    }

    /// A device with an MTU of 1500 and, where it has one, the description of its kind.
    fn device(index: u32, name: &str, info: &[u8]) -> Link {
        let mut payload = vec![0; 16];
        payload[4..8].copy_from_slice(&index.to_ne_bytes());
        push(&mut payload, 3, name.as_bytes());
        push(&mut payload, 4, &1500_u32.to_ne_bytes());
        payload.extend_from_slice(info);
        links::link(&payload).expect("complete")
    }

    fn facts(kind: &str, data: &[(u16, &[u8])]) -> Snapshot {
        let data = nested(2, data);
        let mut info = Vec::new();
        push(&mut info, 1, kind.as_bytes());
        info.extend_from_slice(&data);
        let mut attribute = Vec::new();
        push(&mut attribute, 18, &info);

        let all = [device(7, "eth0", &[]), device(9, "t0", &attribute)];
        let mut snapshot = Snapshot::new("h", Source::Live);
        record(&mut snapshot, &all[1], &all);
        snapshot
    }

    #[test]
    fn ends_device_and_overhead_are_those_of_the_kind() {
        let device = 7_u32.to_ne_bytes();
        let vxlan = facts(
            "vxlan",
            &[
                (3, &device),
                (2, &[192, 0, 2, 9]),
                (15, &4789_u16.to_be_bytes()),
            ],
        );
        assert_eq!(vxlan.text("nic.t0.tunnel.remote"), Some("192.0.2.9"));
        assert_eq!(vxlan.text("nic.t0.tunnel.below"), Some("eth0"));
        for (fact, value) in [("port", 4789.0), ("below_mtu", 1500.0), ("overhead", 50.0)] {
            let found = vxlan.number(&format!("nic.t0.tunnel.{fact}"));
            assert_eq!(found, Some(value), "{fact}");
        }

        let [v4, v6] = [[192, 0, 2, 1].to_vec(), [0x20; 16].to_vec()];
        for (kind, attribute, remote, overhead) in [
            ("vxlan", 16, &v6, 70.0),
            ("gre", 7, &v4, 24.0),
            ("ip6gre", 7, &v6, 44.0),
            ("gretap", 7, &v4, 38.0),
            ("ipip", 3, &v4, 20.0),
            ("ip6tnl", 3, &v6, 40.0),
        ] {
            let found = facts(kind, &[(attribute, remote)]);
            assert_eq!(
                found.number("nic.t0.tunnel.overhead"),
                Some(overhead),
                "{kind}"
            );
        }
        assert_eq!(facts("veth", &[]).facts.len(), 0);
    }
}
