//! The route to a peer (RTM_GETROUTE).

use std::net::IpAddr;

use linerate_model::snapshot::{Absence, Snapshot};
use linerate_sys::netlink::Family;

use crate::netlink::client::NetlinkClient;
use crate::netlink::{self as nl, attribute, u32_of};
use crate::nic::links::Link;

const GET_ROUTE: u16 = 26;
const DEVICE: u16 = 4;
const SRC: &str = "rtnetlink:GETROUTE";

/// Records through which interface a peer is reached, and with which MTU.
pub(crate) fn record(snapshot: &mut Snapshot, peer: IpAddr, links: &[Link]) {
    match route(peer) {
        Some(response) => response_facts(snapshot, &response, links),
        None => snapshot.set_absent("route.peer.dev", Absence::NotReported, None, SRC),
    }
}

fn route(peer: IpAddr) -> Option<Vec<u8>> {
    const IPV4: u8 = 2;
    const IPV6: u8 = 10;
    const DESTINATION: u16 = 1;
    let (family, address) = match peer {
        IpAddr::V4(v4) => (IPV4, v4.octets().to_vec()),
        IpAddr::V6(v6) => (IPV6, v6.octets().to_vec()),
    };
    let bits = u8::try_from(address.len() * 8).unwrap_or(128);
    let mut body = vec![family, bits, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    nl::push(&mut body, DESTINATION, &address);
    let response = NetlinkClient::open(Family::Route).and_then(|mut client| client.get(GET_ROUTE, &body));
    response.ok()?.get(12..).map(<[u8]>::to_vec)
}

pub(crate) fn response_facts(snapshot: &mut Snapshot, body: &[u8], links: &[Link]) {
    const METRICS: u16 = 8;
    const MTU: u16 = 2;
    let index = u32_of(body, DEVICE);
    let link = links.iter().find(|link| Some(link.index) == index);
    snapshot.set_known("route.peer.dev", link.map(|link| link.name.as_str()), SRC);
    let mtu = attribute(body, METRICS).and_then(|metrics| u32_of(metrics, MTU));
    snapshot.set_known_in("route.peer.mtu", mtu, "bytes", SRC);
}
