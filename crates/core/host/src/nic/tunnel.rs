//! Tunnels: their ends, the device below and what they add to a packet (`ip -d link`,
//! `IFLA_INFO_DATA` of `linux/if_link.h` and `linux/if_tunnel.h`).

use std::net::IpAddr;

use linerate_model::snapshot::Snapshot;

use super::links::{Link, SRC};
use super::route;
use crate::netlink::{attribute, u16_of, u32_of};
use crate::recorder::Recorder;

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

/// The device that carries a tunnel; `None` for other devices, and where nothing shows it.
pub(crate) fn below<'a>(tunnel: &Link, all: &'a [Link]) -> Option<&'a Link> {
    let (layout, data) = described(tunnel)?;
    let bound = u32_of(&data, layout.device).filter(|index| *index > 0);
    let index = bound.or_else(|| route::device_index(address(&data, layout.remote)?))?;
    all.iter()
        .find(|link| link.index == index && link.index != tunnel.index)
}

/// Records what is known of a tunnel; nothing of other devices.
pub(super) fn record(snapshot: &mut Snapshot, link: &Link, all: &[Link]) {
    let Some((layout, data)) = described(link) else {
        return;
    };
    let (local, remote) = (address(&data, layout.local), address(&data, layout.remote));
    let is_ipv6 = remote.or(local).is_some_and(|address| address.is_ipv6());
    let outer_bytes = if is_ipv6 { 40 } else { 20 };

    let mut nic = Recorder::new(snapshot, format!("nic.{}", link.name), SRC);
    nic.known("tunnel.local", local.map(|address| address.to_string()));
    nic.known("tunnel.remote", remote.map(|address| address.to_string()));
    // A port is in network byte order, unlike other attributes.
    nic.known(
        "tunnel.port",
        u16_of(&data, layout.port)
            .map(u16::swap_bytes)
            .map(u32::from),
    );
    nic.known(
        "tunnel.below",
        below(link, all).map(|below| below.name.clone()),
    );
    nic.known_in(
        "tunnel.below_mtu",
        below(link, all).and_then(Link::mtu_bytes),
        "bytes",
    );
    nic.set_in(
        "tunnel.overhead",
        outer_bytes + layout.headers_bytes,
        "bytes",
    );
}

fn described(link: &Link) -> Option<(&'static Layout, Vec<u8>)> {
    let kind = link.kind()?;
    let layout = KINDS.iter().find(|layout| layout.kind == kind)?;
    Some((layout, link.info_data()?.to_vec()))
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
