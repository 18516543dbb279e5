//! The NIC of the route.

use std::net::IpAddr;
use std::path::Path;

use linerate_model::http::NicStats;
use linerate_sys::netlink::{ANSWER_BYTES_MAX, Family, Netlink};

use super::error::ReadError;
use crate::ethtool::EthtoolQuery;
use crate::links::{self, Link};
use crate::netlink as nl;
use crate::route;

const GET_LINK: u16 = 18;

/// Kinds of `rtnetlink(7)` that wrap packets into others.
const TUNNELS: [&str; 14] = [
    "tun",
    "wireguard",
    "gre",
    "gretap",
    "ip6gre",
    "ip6gretap",
    "ipip",
    "ip6tnl",
    "sit",
    "vti",
    "vti6",
    "xfrm",
    "vxlan",
    "geneve",
];

/// One NIC and its constant properties.
#[derive(Debug)]
pub(crate) struct Nic {
    index: u32,
    netlink: Netlink,
    room: Vec<u8>,
    sequence: u32,
    /// Speed and duplex of the link.
    pub(crate) link: (Option<u64>, Option<bool>),
    /// Its frames carry the tag of a VLAN.
    pub(crate) is_tagged: bool,
}

impl Nic {
    /// The device on the way to a peer.
    ///
    /// # Errors
    /// When there is no such device or the kernel refuses.
    pub(crate) fn towards(peer: IpAddr) -> Result<Self, ReadError> {
        let index = route::device_index(peer).ok_or_else(|| ReadError::not_found(format!("no route to {peer}")))?;
        let all = links::all();
        let link = all.iter().find(|link| link.index == index);
        Self::of(
            link.ok_or_else(|| ReadError::not_found(format!("the device of the route to {peer} is gone")))?,
            &all,
        )
    }

    /// The device of this name.
    ///
    /// # Errors
    /// When there is no such device or the kernel refuses.
    pub(crate) fn named(name: &str) -> Result<Self, ReadError> {
        let all = links::all();
        let link = all.iter().find(|link| link.name == name);
        Self::of(
            link.ok_or_else(|| ReadError::not_found(format!("no device is named {name}")))?,
            &all,
        )
    }

    fn of(link: &Link, all: &[Link]) -> Result<Self, ReadError> {
        Ok(Self {
            index: link.index,
            netlink: Netlink::open(Family::Route)?,
            room: vec![0; ANSWER_BYTES_MAX],
            sequence: 0,
            link: EthtoolQuery::open().link(&link.name),
            is_tagged: link.is_tagged(all),
        })
    }

    /// Its counters since it exists.
    ///
    /// # Errors
    /// When the kernel refuses; the device may be gone.
    pub(crate) fn read(&mut self) -> Result<NicStats, ReadError> {
        let link = self.ask()?;
        let stats = link
            .stats64()
            .ok_or_else(|| ReadError::lacking(format!("{} has no counters", link.name)))?;
        Ok(NicStats {
            is_loopback: link.loopback,
            link_bps: self.link.0,
            mtu_bytes: link.mtu_bytes(),
            rx_bytes: stats.rx_bytes,
            tx_bytes: stats.tx_bytes,
            rx_packets: stats.rx_packets,
            tx_packets: stats.tx_packets,
            drops: stats.drops,
            errors: stats.errors,
            device: link.name,
        })
    }

    /// Whether packets leave by radio, or inside others.
    ///
    /// # Errors
    /// When there is no such device or the kernel refuses.
    pub(crate) fn is_wireless_or_tunnel(&mut self) -> Result<bool, ReadError> {
        let link = self.ask()?;
        let directory = Path::new("/sys/class/net").join(&link.name);
        let is_wireless = directory.join("wireless").exists() || directory.join("phy80211").exists();
        let is_tunnel = link.kind().is_some_and(|kind| TUNNELS.contains(&kind.as_str()));
        Ok(is_wireless || is_tunnel)
    }

    fn ask(&mut self) -> Result<Link, ReadError> {
        self.sequence = self.sequence.wrapping_add(1);
        // `struct ifinfomsg`: the index is its second 32-bit field.
        let mut body = [0_u8; 16];
        body[4..8].copy_from_slice(&self.index.to_ne_bytes());
        let request = nl::request(GET_LINK, 0, self.sequence, &body);
        self.netlink.send(&request)?;
        loop {
            let datagram = self.netlink.receive_into(&mut self.room)?;
            let mut messages = nl::messages(datagram);
            let Some(message) = messages.find(|message| message.sequence == self.sequence) else {
                continue;
            };
            return match message.kind {
                nl::ERROR => Err(ReadError::NotFound(
                    format!(
                        "the device is gone: {}",
                        linerate_sys::error::strerror(nl::errno(message.payload))
                    )
                    .into(),
                )),
                _ => links::link(message.payload)
                    .ok_or_else(|| ReadError::lacking("the answer about the device is cut short")),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    #[test]
    fn the_route_to_this_host_is_loopback_and_what_is_sent_is_counted() {
        let mut nic = Nic::towards([127, 0, 0, 1].into()).expect("every host has loopback");
        let before = nic.read().expect("counters");
        assert!(before.is_loopback && before.device == "lo" && before.link_bps.is_none());
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let own = socket.local_addr().expect("an address");
        socket.send_to(&[0; 1000], own).expect("send");
        let after = nic.read().expect("counters");
        assert!(after.tx_bytes >= before.tx_bytes + 1000 && after.tx_packets > before.tx_packets);
        assert_eq!(nic.is_wireless_or_tunnel(), Ok(false));
        assert!(Nic::named("lr-none").is_err_and(|why| why.to_string().contains("lr-none")));
    }
}
