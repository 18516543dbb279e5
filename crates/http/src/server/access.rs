//! Who may come.

use std::net::IpAddr;

use linerate_model::network::Network;
use linerate_sys::interfaces;

use super::spec::Access;

/// The networks whose addresses are served.
#[derive(Debug)]
pub(crate) struct Guests(Vec<Network>);

impl Guests {
    /// Resolves what was asked for; the networks of this host are read once.
    pub(crate) fn new(access: &Access) -> Self {
        Self(access.networks())
    }

    /// Whether this address is served.
    pub(crate) fn include(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(address))
    }
}

impl Access {
    /// The networks whose addresses are served; those of this host are read now.
    #[must_use]
    pub fn networks(&self) -> Vec<Network> {
        match self {
            Self::Networks(networks) => networks.clone(),
            Self::Neighbours => {
                let private = PRIVATE.iter().filter_map(|range| range.parse().ok());
                private.chain(on_link()).collect()
            }
        }
    }
}

/// Networks this host has an address in. A prefix of no bits would be everybody.
fn on_link() -> impl Iterator<Item = Network> {
    let addresses = interfaces::addresses().into_iter();
    addresses
        .filter(|(_, prefix_len)| *prefix_len > 0)
        .filter_map(|(address, prefix_len)| Network::new(address, prefix_len))
}

/// Addresses nobody routes (RFC 1122, RFC 1918, RFC 3927, RFC 4193, RFC 4291).
const PRIVATE: [&str; 8] = [
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
    fn neighbours_are_served_and_strangers_are_not() {
        let guests = Guests(PRIVATE.iter().filter_map(|range| range.parse().ok()).collect());
        assert_eq!(guests.0.len(), PRIVATE.len(), "every range is one");
        for near in [
            "127.0.0.9",
            "10.1.2.3",
            "172.31.0.1",
            "192.168.5.2",
            "169.254.1.1",
            "::1",
            "fd00::1",
            "fe80::1",
        ] {
            assert!(guests.include(address(near)), "{near}");
        }
        for far in ["8.8.8.8", "172.32.0.1", "192.169.0.1", "2001:4860::1", "::2"] {
            assert!(!guests.include(address(far)), "{far}");
        }
    }

    #[test]
    fn a_list_replaces_the_neighbours() {
        let only = Guests::new(&Access::Networks(vec!["203.0.113.0/24".parse().expect("a network")]));
        assert!(only.include(address("203.0.113.7")) && !only.include(address("127.0.0.1")));
        assert!(Guests::new(&Access::Neighbours).include(address("127.0.0.1")));
    }
}
