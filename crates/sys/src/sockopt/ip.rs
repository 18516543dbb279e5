//! Options of the IP layer (ip(7), ipv6(7)).

use std::os::fd::AsFd;

use socket2::{Domain, SockRef};

use crate::error::{During, Result};
use crate::option::{SocketOption, option};

/// Confines an IPv6 socket to IPv6; off, a listener on `::` takes IPv4 peers too (`IPV6_V6ONLY`). Before bind.
///
/// # Errors
/// The operating system's.
pub fn set_v6_only(fd: impl AsFd, on: bool) -> Result<()> {
    V6_ONLY.set_bool(fd, on)
}

/// Whether an IPv6 socket is confined to IPv6 (`IPV6_V6ONLY`).
///
/// # Errors
/// The operating system's.
pub fn get_v6_only(fd: impl AsFd) -> Result<bool> {
    V6_ONLY.get_bool(fd)
}

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

/// The type of service byte of outgoing packets, of the header the socket's packets really have.
///
/// # Errors
/// The operating system's.
pub fn get_tos(fd: impl AsFd) -> Result<u8> {
    let option = if crate::socket::is_ipv4_socket(&fd) { TOS } else { TRAFFIC_CLASS };
    // The kernel stores one byte; the rest of the int is zero.
    Ok(option.get_int(fd)?.to_le_bytes()[0])
}

/// Leaves the choice of the local port to `connect`, so that one port serves connections to different peers
/// (`IP_BIND_ADDRESS_NO_PORT`, Linux 4.2, ip(7)). Before bind; for both families.
///
/// # Errors
/// The operating system's.
pub fn set_bind_address_no_port(fd: impl AsFd, on: bool) -> Result<()> {
    option!(IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT).set_bool(fd, on)
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
        MTU_DISCOVER_V6.set_int(&fd, if on { libc::IPV6_PMTUDISC_DO } else { libc::IPV6_PMTUDISC_DONT })?;
    }
    MTU_DISCOVER.set_int(fd, if on { libc::IP_PMTUDISC_DO } else { libc::IP_PMTUDISC_DONT })
}

/// Whether fragments are forbidden by [`set_dont_fragment`].
///
/// # Errors
/// The operating system's.
pub fn get_dont_fragment(fd: impl AsFd) -> Result<bool> {
    if is_v6(&fd)? {
        Ok(MTU_DISCOVER_V6.get_int(fd)? == libc::IPV6_PMTUDISC_DO)
    } else {
        Ok(MTU_DISCOVER.get_int(fd)? == libc::IP_PMTUDISC_DO)
    }
}

fn is_v6(fd: impl AsFd) -> Result<bool> {
    Ok(SockRef::from(&fd).domain().during("getsockopt SO_DOMAIN", "")? == Domain::IPV6)
}

const V6_ONLY: SocketOption = option!(IPPROTO_IPV6, IPV6_V6ONLY);
const TOS: SocketOption = option!(IPPROTO_IP, IP_TOS);
const TRAFFIC_CLASS: SocketOption = option!(IPPROTO_IPV6, IPV6_TCLASS);
const MTU_DISCOVER: SocketOption = option!(IPPROTO_IP, IP_MTU_DISCOVER);
const MTU_DISCOVER_V6: SocketOption = option!(IPPROTO_IPV6, IPV6_MTU_DISCOVER);
