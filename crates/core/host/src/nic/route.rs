//! The route to a peer and its next hop (RTM_GETROUTE, RTM_GETNEIGH).

use std::net::IpAddr;

use linerate_sys::netlink::Family;

use crate::netlink as nl;
use crate::nic::links::{self, Link};
use crate::prelude::*;

const GET_ROUTE: u16 = 26;
const GET_NEIGHBOUR: u16 = 30;
const DEVICE: u16 = 4;
const GATEWAY: u16 = 5;
const SRC: &str = "rtnetlink:GETROUTE";

/// Records through which interface and next hop a peer is reached, and with which MTU.
pub(crate) fn record(snapshot: &mut Snapshot, peer: IpAddr, links: &[Link]) {
    match route(peer) {
        Some(response) => {
            response_facts(snapshot, &response, links);
            let next_hop =
                // Without a gateway the peer is on the link itself.
                attribute(&response, GATEWAY).map_or_else(|| octets(peer), <[u8]>::to_vec);
            let address =
                u32_of(&response, DEVICE).and_then(|index| link_layer_address(&next_hop, index));
            snapshot.set_known("route.peer.lladdr", address, "rtnetlink:GETNEIGH");
        }
        None => snapshot.set_absent("route.peer.dev", Absence::NotReported, None, SRC),
    }
}

/// Route of the kernel to a peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// Interface.
    pub device: Option<String>,
    /// Source address of packets to the peer.
    pub source: Option<IpAddr>,
    /// MTU of the route, or else of the interface, in bytes.
    pub mtu_bytes: Option<u32>,
}

/// The routes to some peers; `None` for a peer without one.
pub fn routes(peers: &[IpAddr]) -> Vec<Option<Route>> {
    let links = links::all();
    peers
        .iter()
        .map(|peer| route(*peer).map(|response| route_of(&response, &links)))
        .collect()
}

fn route_of(body: &[u8], links: &[Link]) -> Route {
    const PREFERRED_SOURCE: u16 = 7;

    let index = u32_of(body, DEVICE);
    let link = links.iter().find(|link| Some(link.index) == index);
    Route {
        device: link.map(|link| link.name.clone()),
        source: attribute(body, PREFERRED_SOURCE).and_then(address_of),
        mtu_bytes: metric_mtu(body).or_else(|| link.and_then(Link::mtu_bytes)),
    }
}

pub(super) fn address_of(octets: &[u8]) -> Option<IpAddr> {
    match octets.len() {
        4 => octets.first_chunk::<4>().map(|v4| IpAddr::from(*v4)),
        16 => octets.first_chunk::<16>().map(|v6| IpAddr::from(*v6)),
        _ => None,
    }
}

fn metric_mtu(body: &[u8]) -> Option<u32> {
    const METRICS: u16 = 8;
    const MTU: u16 = 2;
    attribute(body, METRICS).and_then(|metrics| u32_of(metrics, MTU))
}

/// Index of the interface through which a peer is reached.
pub(crate) fn device_index(peer: IpAddr) -> Option<u32> {
    u32_of(&route(peer)?, DEVICE)
}

fn route(peer: IpAddr) -> Option<Vec<u8>> {
    let address = octets(peer);
    // A full prefix asks for the route that the kernel would take, as `ip route get` does
    // (rtnetlink(7)).
    let bits = u8::try_from(address.len() * 8).unwrap_or(128);
    get(
        GET_ROUTE,
        [family(&address), bits, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        &address,
    )
}

/// The entry of the next hop in the table of neighbours; `None` when there is none, as on a
/// point-to-point device.
fn link_layer_address(next_hop: &[u8], device: u32) -> Option<String> {
    let mut header = [0; 12];
    header[0] = family(next_hop);
    header[4..8].copy_from_slice(&device.to_ne_bytes());
    address_in(&get(GET_NEIGHBOUR, header, next_hop)?)
}

/// The link-layer address in the attributes of a neighbour: `52:54:00:12:34:56`.
fn address_in(neighbour: &[u8]) -> Option<String> {
    const ADDRESS: u16 = 2;

    let bytes: Vec<String> = attribute(neighbour, ADDRESS)?
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    Some(bytes.join(":")).filter(|address| !address.is_empty())
}

/// Attributes of the response about an address; `struct rtmsg` and `struct ndmsg` are equally long.
fn get(kind: u16, header: [u8; 12], address: &[u8]) -> Option<Vec<u8>> {
    const DESTINATION: u16 = 1;

    let mut body = header.to_vec();
    nl::push(&mut body, DESTINATION, address);
    let response =
        NetlinkClient::open(Family::Route).and_then(|mut client| client.get(kind, &body));
    response.ok()?.get(header.len()..).map(<[u8]>::to_vec)
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(v4) => v4.octets().to_vec(),
        IpAddr::V6(v6) => v6.octets().to_vec(),
    }
}

/// `AF_INET` or `AF_INET6`.
const fn family(address: &[u8]) -> u8 {
    if address.len() == 4 { 2 } else { 10 }
}

pub(crate) fn response_facts(snapshot: &mut Snapshot, body: &[u8], links: &[Link]) {
    let index = u32_of(body, DEVICE);
    let link = links.iter().find(|link| Some(link.index) == index);
    snapshot.set_known("route.peer.dev", link.map(|link| link.name.as_str()), SRC);
    snapshot.set_known_in("route.peer.mtu", metric_mtu(body), "bytes", SRC);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn route_to_this_host_goes_over_loopback_with_its_mtu() {
        let routes = routes(&[IpAddr::from([127, 0, 0, 1])]);
        let [Some(route)] = routes.as_slice() else {
            panic!("{routes:?}")
        };
        assert_eq!(route.device.as_deref(), Some("lo"));
        assert_eq!(route.source, Some(IpAddr::from([127, 0, 0, 1])));
        assert!(route.mtu_bytes.is_some_and(|mtu| mtu >= 1500), "{route:?}");
    }

    #[test]
    fn mtu_of_a_route_outweighs_that_of_its_interface() {
        let mut body = Vec::new();
        nl::push(&mut body, 8, &nl::encoded(2, &1400_u32.to_ne_bytes()));
        nl::push(&mut body, 7, &[192, 0, 2, 1]);

        let expected = Route {
            device: None,
            source: Some([192, 0, 2, 1].into()),
            mtu_bytes: Some(1400),
        };
        assert_eq!(route_of(&body, &[]), expected);
    }

    #[test]
    fn neighbour_has_its_link_layer_address() {
        let mut neighbour = Vec::new();
        nl::push(&mut neighbour, 1, &[192, 0, 2, 1]);
        assert_eq!(
            address_in(&neighbour),
            None,
            "an entry that is not resolved"
        );
        nl::push(&mut neighbour, 2, &[0x52, 0x54, 0, 0x12, 0x34, 0xff]);
        assert_eq!(address_in(&neighbour).as_deref(), Some("52:54:00:12:34:ff"));
    }
}
