//! Address ranges in CIDR notation, and kinds of interfaces.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;
use thiserror::Error;

use crate::printable::printable_start;

/// A range of addresses (RFC 4632, RFC 4291 section 2.3). Bits behind the prefix are zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Network(IpNet);

/// A text that names no address range.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{text:?} is no address range; examples: 192.0.2.0/24, 2001:db8::/32, 198.51.100.7")]
pub struct NotANetwork {
    text: String,
}

/// Longest text that an error quotes.
const QUOTED_CHARS_MAX: usize = 64;

impl Network {
    /// The range of all addresses that share the first `prefix_len` bits; `None` when the address
    /// has fewer. A range of IPv4-mapped addresses (RFC 4291 section 2.5.5.2) is the IPv4 range it
    /// represents; `None` when its prefix is shorter than that of all mapped addresses, because it
    /// would be neither of the two.
    pub fn new(address: IpAddr, prefix_len: u8) -> Option<Self> {
        let canonical = address.to_canonical();
        let prefix_len = if canonical == address {
            prefix_len
        } else {
            prefix_len.checked_sub(MAPPED_PREFIX_LEN)?
        };
        let network = IpNet::new(canonical, prefix_len).ok()?;
        Some(Self(network.trunc()))
    }

    /// The range that is taken for one client: a single IPv4 address, or the /64 of an IPv6
    /// address, within which a host chooses freely (RFC 4291 section 2.5.4, RFC 8981).
    pub fn of_client(address: IpAddr) -> Self {
        // An IPv4 client of a socket of both families has a mapped address (ipv6(7)).
        let address = address.to_canonical();
        let prefix_len = match address {
            IpAddr::V4(_) => 32,
            // A host chooses among all addresses of its /64 (RFC 8981).
            IpAddr::V6(_) => 64,
        };
        Self(IpNet::new_assert(address, prefix_len).trunc())
    }

    /// True if the address is in the range. IPv4-mapped IPv6 addresses count as IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.contains(&address.to_canonical())
    }
}

/// True if a kind of interface consists of software only, so that no wire limits it and its speed
/// is a constant of the kernel.
pub fn is_software_kind(kind: &str) -> bool {
    matches!(
        kind,
        "loopback"
            | "veth"
            | "tun"
            | "bridge"
            | "dummy"
            | "ifb"
            | "vxlan"
            | "wireguard"
            | "gre"
            | "ipip"
            | "sit"
    )
}

impl FromStr for Network {
    type Err = NotANetwork;

    fn from_str(text: &str) -> Result<Self, NotANetwork> {
        let parsed = match text.split_once('/') {
            None => text
                .parse()
                .ok()
                .map(|address: IpAddr| (address, IpNet::from(address).prefix_len())),
            Some((address, prefix_len)) => address.parse().ok().zip(prefix_len.parse().ok()),
        };
        let network = parsed.and_then(|(address, prefix_len)| Self::new(address, prefix_len));
        network.ok_or_else(|| NotANetwork {
            text: printable_start(text, QUOTED_CHARS_MAX),
        })
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.prefix_len() == self.0.max_prefix_len() {
            self.0.addr().fmt(f)
        } else {
            self.0.fmt(f)
        }
    }
}

/// Bits that all IPv4-mapped addresses share.
const MAPPED_PREFIX_LEN: u8 = 96;

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn ranges_contain_what_their_prefix_says() {
        let rows: &[(&str, &[&str], &[&str])] = &[
            (
                "192.0.2.0/24",
                &["192.0.2.0", "192.0.2.255", "::ffff:192.0.2.9"],
                &["192.0.3.0", "::"],
            ),
            ("192.0.2.77/24", &["192.0.2.1"], &["192.0.1.255"]),
            ("198.51.100.7", &["198.51.100.7"], &["198.51.100.6"]),
            ("0.0.0.0/0", &["8.8.8.8"], &["::1"]),
            (
                "2001:db8::/32",
                &["2001:db8:ffff::1"],
                &["2001:db9::", "192.0.2.1"],
            ),
            ("::/0", &["::1", "fe80::1"], &["127.0.0.1"]),
            ("::1", &["::1"], &["::2"]),
            (
                "::ffff:192.0.2.0/120",
                &["192.0.2.9", "::ffff:192.0.2.9"],
                &["192.0.3.0", "::192.0.2.9"],
            ),
            ("::ffff:198.51.100.7", &["198.51.100.7"], &["198.51.100.6"]),
            ("::ffff:0:0/96", &["8.8.8.8", "::ffff:8.8.8.8"], &["::1"]),
        ];
        for (range, inside, outside) in rows {
            let network: Network = range.parse().expect(range);
            assert!(
                inside.iter().all(|a| network.contains(address(a))),
                "{range}"
            );
            assert!(
                !outside.iter().any(|a| network.contains(address(a))),
                "{range}"
            );
        }
    }

    #[test]
    fn near_misses_are_refused() {
        for text in [
            "",
            "/8",
            "10.0.0.0/33",
            "::/129",
            "10.0.0/8",
            "10.0.0.0/-1",
            "10.0.0.0/8/8",
            "host",
            "10.0.0.0/+8x",
            "::ffff:10.0.0.1/95",
            "::ffff:10.0.0.1/129",
        ] {
            assert!(text.parse::<Network>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn one_client_is_an_ipv4_address_or_an_ipv6_subnet() {
        let same = |one: &str, other: &str| {
            Network::of_client(address(one)) == Network::of_client(address(other))
        };
        assert!(same("192.0.2.1", "::ffff:192.0.2.1"));
        assert!(!same("192.0.2.1", "192.0.2.2"));
        assert!(same("2001:db8:0:1::1", "2001:db8:0:1:ffff::"));
        assert!(!same("2001:db8:0:1::1", "2001:db8:0:2::1"));
    }
}
