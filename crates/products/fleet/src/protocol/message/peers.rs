//! Addresses of partners, as ranges: those of a large fleet are mostly consecutive.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Consecutive addresses of one family, `10.0.0.1-10.0.0.9`, or one address, `10.0.0.1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddressRange {
    first: IpAddr,
    last: IpAddr,
}

impl AddressRange {
    /// The address is one of them.
    pub fn contains(self, address: IpAddr) -> bool {
        (self.first..=self.last).contains(&address)
    }

    /// The address is in one of the ranges.
    pub fn any_contains(ranges: &[Self], address: IpAddr) -> bool {
        ranges.iter().any(|range| range.contains(address))
    }

    /// The fewest ranges that have these addresses and no others.
    pub fn of(addresses: impl IntoIterator<Item = IpAddr>) -> Vec<Self> {
        let mut addresses: Vec<IpAddr> = addresses.into_iter().collect();
        // The order of `IpAddr` has all IPv4 addresses before those of IPv6, so no range mixes
        // them.
        addresses.sort_unstable();
        addresses.dedup();

        let mut ranges: Vec<Self> = Vec::new();
        for address in addresses {
            match ranges.last_mut() {
                Some(range) if next(range.last) == Some(address) => range.last = address,
                _ => ranges.push(Self {
                    first: address,
                    last: address,
                }),
            }
        }

        ranges
    }
}

fn next(address: IpAddr) -> Option<IpAddr> {
    Some(match address {
        // The last address of a family has no successor.
        IpAddr::V4(v4) => Ipv4Addr::from_bits(v4.to_bits().checked_add(1)?).into(),
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits().checked_add(1)?).into(),
    })
}

impl fmt::Display for AddressRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last {
            return self.first.fmt(f);
        }

        write!(f, "{}-{}", self.first, self.last)
    }
}

impl FromStr for AddressRange {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // A single address is a range of one; neither notation of addresses contains a dash.
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let (Ok(first), Ok(last)) = (first.parse::<IpAddr>(), last.parse::<IpAddr>()) else {
            return Err("neither an address nor a range of addresses");
        };
        // The order of `IpAddr` compares families first, so the families are compared as well.
        if first > last || first.is_ipv4() != last.is_ipv4() {
            return Err("a range from a higher to a lower address, or of two families");
        }

        Ok(Self { first, last })
    }
}

impl Serialize for AddressRange {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for AddressRange {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn ranges_have_the_addresses_they_are_made_of_and_no_others() {
        let ranges = AddressRange::of(
            ["10.0.0.9", "10.0.0.255", "::1", "10.0.1.0", "10.0.0.9"].map(address),
        );
        let texts: Vec<String> = ranges.iter().map(ToString::to_string).collect();
        assert_eq!(texts, ["10.0.0.9", "10.0.0.255-10.0.1.0", "::1"]);

        let has = |text: &str| AddressRange::any_contains(&ranges, address(text));
        assert!(
            has("10.0.1.0") && has("::1") && !has("10.0.1.1") && !has("10.0.0.10") && !has("::2")
        );

        for (text, range) in texts.iter().zip(ranges) {
            assert_eq!(text.parse(), Ok(range));
        }

        assert_eq!(AddressRange::of([address("255.255.255.255")]).len(), 1);
    }

    #[test]
    fn near_misses_are_no_ranges() {
        for text in [
            "",
            "-",
            "10.0.0.2-10.0.0.1",
            "10.0.0.1-::1",
            "10.0.0.1-",
            "h1",
        ] {
            assert!(text.parse::<AddressRange>().is_err(), "{text}");
        }
    }
}
