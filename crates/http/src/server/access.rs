//! Access list.

use std::net::IpAddr;

use linerate_model::network::Network;
use linerate_sys::interfaces;

use super::spec::Access;

/// Networks that are served.
#[derive(Debug)]
pub(crate) struct AccessList(Vec<Network>);

impl AccessList {
    /// Resolves the rule; addresses of this host are read once.
    pub(crate) fn new(access: &Access) -> Self {
        Self(access.networks())
    }

    /// Whether the address is served.
    pub(crate) fn permits(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(address))
    }
}

impl Access {
    /// Networks that are served; addresses of this host are read at the call.
    #[must_use]
    pub fn networks(&self) -> Vec<Network> {
        match self {
            Self::Networks(networks) => networks.clone(),
            Self::LocalNetworks => local_networks(&interfaces::addresses()).collect(),
        }
    }
}

/// Private ranges, and the networks of these addresses with their prefix lengths. A prefix of no bits would be every address.
pub(crate) fn local_networks(addresses: &[(IpAddr, u8)]) -> impl Iterator<Item = Network> {
    let on_link = addresses.iter().filter(|(_, prefix_len)| *prefix_len > 0);
    let on_link = on_link.filter_map(|(address, prefix_len)| Network::new(*address, *prefix_len));
    PRIVATE_NETWORKS.iter().filter_map(|range| range.parse().ok()).chain(on_link)
}

/// Ranges that are not routed (RFC 1122, RFC 1918, RFC 3927, RFC 4193, RFC 4291).
const PRIVATE_NETWORKS: [&str; 8] = [
    "127.0.0.0/8",
    "10.0.0.0/8",
    "172.16.0.0/12",
    "192.168.0.0/16",
    "169.254.0.0/16",
    "::1/128",
    "fc00::/7",
    "fe80::/10",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().expect("a test address")
    }

    #[test]
    fn private_addresses_are_served_and_public_ones_are_not() {
        let access = AccessList(local_networks(&[]).collect());
        assert_eq!(access.0.len(), PRIVATE_NETWORKS.len(), "every range is one");
        for near in ["127.0.0.9", "10.1.2.3", "172.31.0.1", "192.168.5.2", "169.254.1.1", "::1", "fd00::1", "fe80::1"] {
            assert!(access.permits(address(near)), "{near}");
        }
        for far in ["8.8.8.8", "172.32.0.1", "192.169.0.1", "2001:4860::1", "::2"] {
            assert!(!access.permits(address(far)), "{far}");
        }
    }

    #[test]
    fn list_replaces_local_networks() {
        let only = AccessList::new(&Access::Networks(vec!["203.0.113.0/24".parse().expect("a network")]));
        assert!(only.permits(address("203.0.113.7")) && !only.permits(address("127.0.0.1")));
        assert!(AccessList::new(&Access::LocalNetworks).permits(address("127.0.0.1")));
    }
}
