//! Rules of iptables' own kernel part, as bytes (`linux/netfilter_ipv4/ip_tables.h`,
//! `linux/netfilter_ipv6/ip6_tables.h`). What the bytes mean is not known here.

use std::io;

use socket2::{Domain, Protocol, Socket, Type};

use crate::error::{During, Result};
use crate::option::{SocketOption, option};

const INFO: [SocketOption; 2] = [
    option!(IPPROTO_IP, IPT_SO_GET_INFO, 64),
    option!(IPPROTO_IPV6, IP6T_SO_GET_INFO, 64),
];
const ENTRIES: [SocketOption; 2] = [
    option!(IPPROTO_IP, IPT_SO_GET_ENTRIES, 65),
    option!(IPPROTO_IPV6, IP6T_SO_GET_ENTRIES, 65),
];

/// A table of rules.
#[derive(Debug)]
pub struct Table {
    /// `struct ipt_getinfo`.
    pub info: Vec<u8>,
    /// Its `struct ipt_entry`, or `struct ip6t_entry`, one behind the other.
    pub entries: Vec<u8>,
}

/// Reads a table of IPv4 or IPv6. The kernel makes a table that does not exist yet, so its name is
/// to be one of `/proc/net/ip_tables_names`. Takes `CAP_NET_ADMIN` and `CAP_NET_RAW`.
///
/// # Errors
/// The operating system's; `EAGAIN` when a rule was added meanwhile.
pub fn table(is_ipv6: bool, name: &str) -> Result<Table> {
    const NAME_BYTES: usize = 32;
    const INFO_BYTES: usize = 84;

    /// Name, size, and what aligns the entries.
    const HEADER_BYTES: usize = 40;

    const ENTRIES_BYTES_MAX: usize = 64 << 20;

    let domain = if is_ipv6 { Domain::IPV6 } else { Domain::IPV4 };
    let socket = Socket::new(domain, Type::RAW, Some(Protocol::from(libc::IPPROTO_RAW)))
        .during("socket", name)?;
    let name = name
        .as_bytes()
        .get(..NAME_BYTES - 1)
        .unwrap_or(name.as_bytes());
    let mut info = name.to_vec();
    info.resize(INFO_BYTES, 0);

    let option = usize::from(is_ipv6);
    INFO[option].get_bytes(&socket, &mut info)?;
    let size = info
        .last_chunk::<4>()
        .map_or(0, |bytes| u32::from_ne_bytes(*bytes));
    let length = usize::try_from(size)
        .ok()
        .filter(|length| *length <= ENTRIES_BYTES_MAX);
    let length = length
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "too many rules"))
        .during("getsockopt IPT_SO_GET_INFO", "")?;
    let mut entries = info[..NAME_BYTES].to_vec();
    entries.extend(size.to_ne_bytes());
    entries.resize(HEADER_BYTES + length, 0);
    ENTRIES[option].get_bytes(&socket, &mut entries)?;
    entries.drain(..HEADER_BYTES);

    Ok(Table { info, entries })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_that_does_not_exist_is_an_error() {
        for is_ipv6 in [false, true] {
            assert!(table(is_ipv6, "linerate-none").is_err());
        }
    }
}
