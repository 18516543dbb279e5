//! Options of the IP layer (ip(7), ipv6(7)).

use std::os::fd::AsFd;

use socket2::{Domain, SockRef};

use crate::error::{During, Result};
use crate::option::{SocketOption, option};

/// Confines an IPv6 socket to IPv6; off, a listener on `::` takes IPv4 peers too. Before bind.
pub const IPV6_V6ONLY: SocketOption<bool> = option!(IPPROTO_IPV6, IPV6_V6ONLY);

/// Leaves the choice of the local port to `connect`, so that one port serves connections to different peers (Linux 4.2).
/// Before bind; for both families.
pub const IP_BIND_ADDRESS_NO_PORT: SocketOption<bool> = option!(IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT);

/// Off, the socket receives only from multicast groups it has joined itself (Linux 2.6.31).
pub const IP_MULTICAST_ALL: SocketOption<bool> = option!(IPPROTO_IP, IP_MULTICAST_ALL);

/// Whether IPv4 packets may be fragmented (`IP_PMTUDISC_DO`: never); see [`set_dont_fragment`].
pub const IP_MTU_DISCOVER: SocketOption<u32> = option!(IPPROTO_IP, IP_MTU_DISCOVER);

/// [`IP_MTU_DISCOVER`] of IPv6 packets.
pub const IPV6_MTU_DISCOVER: SocketOption<u32> = option!(IPPROTO_IPV6, IPV6_MTU_DISCOVER);

/// Sets the type of service byte, DSCP and ECN bits together, 0..=255 (`IP_TOS`, `IPV6_TCLASS`).
///
/// An IPv6 socket gets both options, because it sends IPv4 packets to mapped addresses. On a TCP socket the kernel
/// keeps the ECN bits to itself.
///
/// # Errors
/// The operating system's.
pub fn set_tos(fd: impl AsFd, tos: u8) -> Result<()> {
    if is_v6(&fd)? {
        TRAFFIC_CLASS.set_int(&fd, tos.into())?;
    }
    TOS.set_int(fd, tos.into())
}

/// Confines the kernel's choice of a local port to `low..=high` within `net.ipv4.ip_local_port_range`
/// (`IP_LOCAL_PORT_RANGE`, Linux 6.3, ip(7)). With any range, even the system's own, the search takes the same time
/// however many ports are taken.
///
/// # Errors
/// The operating system's.
pub fn set_local_port_range(fd: impl AsFd, low: u16, high: u16) -> Result<()> {
    let packed = u32::from(high) << 16 | u32::from(low);
    LOCAL_PORT_RANGE.set_bytes(fd, &packed.to_ne_bytes(), format_args!("{low}-{high}"))
}

/// From the kernel's `in.h`; C libraries lack it.
const LOCAL_PORT_RANGE: SocketOption = option!(IPPROTO_IP, IP_LOCAL_PORT_RANGE, 51);

/// Forbids (`on`) or allows fragments: with it, datagrams beyond the path MTU fail with `EMSGSIZE` and IPv4 packets
/// carry the DF bit (`IP_MTU_DISCOVER`, `IPV6_MTU_DISCOVER`). Off means that every packet may be fragmented on the way.
///
/// # Errors
/// The operating system's.
pub fn set_dont_fragment(fd: impl AsFd, on: bool) -> Result<()> {
    if is_v6(&fd)? {
        IPV6_MTU_DISCOVER.set_int(&fd, if on { libc::IPV6_PMTUDISC_DO } else { libc::IPV6_PMTUDISC_DONT })?;
    }
    IP_MTU_DISCOVER.set_int(fd, if on { libc::IP_PMTUDISC_DO } else { libc::IP_PMTUDISC_DONT })
}

fn is_v6(fd: impl AsFd) -> Result<bool> {
    Ok(SockRef::from(&fd).domain().during("getsockopt SO_DOMAIN", "")? == Domain::IPV6)
}

const TOS: SocketOption = option!(IPPROTO_IP, IP_TOS);
const TRAFFIC_CLASS: SocketOption = option!(IPPROTO_IPV6, IPV6_TCLASS);
