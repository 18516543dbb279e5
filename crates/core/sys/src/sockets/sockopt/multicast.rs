//! Options of sockets that send to or receive from multicast groups (ip(7), ipv6(7)).

use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::AsFd;

use socket2::SockRef;

use crate::error::{During, Result};

/// Time to live of datagrams to a group: how many routers they pass (`IP_MULTICAST_TTL`,
/// `IPV6_MULTICAST_HOPS`).
///
/// # Errors
/// The operating system's.
pub fn set_multicast_ttl(fd: impl AsFd, ttl: u8) -> Result<()> {
    let socket = SockRef::from(&fd);
    if crate::socket::is_ipv4_socket(&fd) {
        socket
            .set_multicast_ttl_v4(ttl.into())
            .during("setsockopt IP_MULTICAST_TTL", ttl)
    } else {
        socket
            .set_multicast_hops_v6(ttl.into())
            .during("setsockopt IPV6_MULTICAST_HOPS", ttl)
    }
}

/// Receives what is sent to a group (`IP_ADD_MEMBERSHIP`, `IPV6_ADD_MEMBERSHIP`); with a source
/// only what that address sends (`IP_ADD_SOURCE_MEMBERSHIP`, IPv4 only).
///
/// # Errors
/// The operating system's; `InvalidInput` for an address that is no group or a source of another
/// family.
pub fn join_group(fd: impl AsFd, group: IpAddr, source: Option<IpAddr>) -> Result<()> {
    let socket = SockRef::from(&fd);
    let any = Ipv4Addr::UNSPECIFIED;

    match (group, source) {
        (IpAddr::V4(group), None) => socket
            .join_multicast_v4(&group, &any)
            .during("join group", group),
        (IpAddr::V4(group), Some(IpAddr::V4(source))) => socket
            .join_ssm_v4(&source, &group, &any)
            .during("join group", group),
        (IpAddr::V6(group), None) => socket
            .join_multicast_v6(&group, 0)
            .during("join group", group),
        (group, Some(_)) => {
            Err(std::io::Error::from(std::io::ErrorKind::InvalidInput)).during("join group", group)
        }
    }
}
