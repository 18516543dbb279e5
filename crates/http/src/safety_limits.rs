//! Limits of loads on servers that are not known to be the user's.

use std::net::IpAddr;

use linerate_model::http::Mode;

/// Location of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TargetScope {
    /// Loopback, link-local, private (RFC 1918, RFC 4193), or on a network of this host.
    Private,
    /// Anywhere else.
    Public,
}

impl TargetScope {
    /// Of an address; `networks` are the addresses of this host with their prefix lengths.
    #[must_use]
    pub fn of(address: IpAddr, networks: &[(IpAddr, u8)]) -> Self {
        let is_private = match address {
            IpAddr::V4(v4) => v4.is_loopback() || v4.is_private() || v4.is_link_local(),
            IpAddr::V6(v6) => v6.is_loopback() || v6.is_unique_local() || v6.is_unicast_link_local(),
        };
        let is_on_link = networks
            .iter()
            .any(|(network, prefix)| shares_prefix(address, *network, *prefix));
        if is_private || is_on_link {
            Self::Private
        } else {
            Self::Public
        }
    }
}

/// Size of a load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Demand {
    /// Connections.
    pub connections: u32,
    /// When requests are sent.
    pub mode: Mode,
    /// Warm-up and window together.
    pub duration_ns: u64,
}

/// The user's statements about the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TargetOwnership {
    /// It proved the token on the control channel.
    pub is_ours: bool,
    /// The user owns it and confirmed its host.
    pub is_owned: bool,
    /// Large loads on private addresses are allowed.
    pub allows_large: bool,
}

/// Bytes a load may receive; `None` without a limit.
pub type BytesMax = Option<u64>;

/// Checks a load against the limits of `scope`. Returns how many bytes it may receive.
///
/// # Errors
/// The exceeded limit, and the option that lifts it.
pub fn check(demand: &Demand, scope: TargetScope, ownership: TargetOwnership) -> Result<BytesMax, String> {
    match scope {
        _ if ownership.is_ours => Ok(None),
        TargetScope::Public if ownership.is_owned => Ok(None),
        TargetScope::Public => {
            let lift = "it is a public address: --i-own-this-target HOST lifts the limit";
            within(
                "connections",
                u64::from(demand.connections),
                PUBLIC_CONNECTIONS_MAX,
                lift,
            )?;
            within(
                "seconds",
                demand.duration_ns.div_ceil(1_000_000_000),
                PUBLIC_SECONDS_MAX,
                lift,
            )?;
            check_public_rate(demand.mode, lift)?;
            Ok(Some(PUBLIC_BYTES_MAX))
        }
        TargetScope::Private if ownership.allows_large || ownership.is_owned => Ok(None),
        TargetScope::Private => {
            let lift = "the server is not known to be one of ours: --allow-large lifts the limit";
            within(
                "connections",
                u64::from(demand.connections),
                PRIVATE_CONNECTIONS_MAX,
                lift,
            )?;
            Ok(Some(PRIVATE_BYTES_MAX))
        }
    }
}

/// A closed loop has no rate limit, so a public server gets an open one.
fn check_public_rate(mode: Mode, lift: &str) -> Result<(), String> {
    match mode {
        Mode::Open { rate_per_s, .. } if rate_per_s <= PUBLIC_RATE_MAX_PER_S => Ok(()),
        Mode::Open { rate_per_s, .. } => Err(format!(
            "{rate_per_s} requests/s are more than the {PUBLIC_RATE_MAX_PER_S} allowed; {lift}"
        )),
        Mode::Idle { .. } => Ok(()),
        Mode::Closed { .. } => Err(format!(
            "without --rate the requests have no upper limit; at most --rate {PUBLIC_RATE_MAX_PER_S} is allowed; {lift}"
        )),
    }
}

fn within(what: &str, value: u64, max: u64, lift: &str) -> Result<(), String> {
    if value <= max {
        return Ok(());
    }
    Err(format!("{value} {what} are more than the {max} allowed; {lift}"))
}

/// Whether two addresses agree in their first `prefix` bits.
fn shares_prefix(a: IpAddr, b: IpAddr, prefix: u8) -> bool {
    let (a, b, bits) = match (a, b) {
        (IpAddr::V4(a), IpAddr::V4(b)) => (u128::from(a.to_bits()), u128::from(b.to_bits()), 32),
        (IpAddr::V6(a), IpAddr::V6(b)) => (a.to_bits(), b.to_bits(), 128),
        _ => return false,
    };
    let ignored = 128_u32.min(bits).saturating_sub(u32::from(prefix));
    // A prefix of no bits is not a network.
    prefix > 0 && (a ^ b).checked_shr(ignored).unwrap_or(0) == 0
}

const PUBLIC_CONNECTIONS_MAX: u64 = 16;
const PUBLIC_RATE_MAX_PER_S: f64 = 100.0;
const PUBLIC_SECONDS_MAX: u64 = 30;
const PUBLIC_BYTES_MAX: u64 = 1_000_000_000;
const PRIVATE_CONNECTIONS_MAX: u64 = 1024;
const PRIVATE_BYTES_MAX: u64 = 100_000_000_000;

#[cfg(test)]
mod tests {
    use linerate_model::http::Arrivals;

    use super::*;

    fn demand(connections: u32, rate_per_s: Option<f64>, seconds: u64) -> Demand {
        let closed = Mode::Closed {
            pipeline: 1,
            think_ns: 0,
        };
        let open = |rate_per_s| Mode::Open {
            rate_per_s,
            arrivals: Arrivals::Uniform,
        };
        Demand {
            connections,
            mode: rate_per_s.map_or(closed, open),
            duration_ns: seconds * 1_000_000_000,
        }
    }

    #[test]
    fn addresses_are_private_or_public() {
        let networks = [
            (IpAddr::from([198, 51, 100, 7]), 24),
            (IpAddr::from([203, 0, 113, 1]), 0),
        ];
        for (address, expected) in [
            ("127.0.0.1", TargetScope::Private),
            ("10.1.2.3", TargetScope::Private),
            ("169.254.1.1", TargetScope::Private),
            ("::1", TargetScope::Private),
            ("fd00::1", TargetScope::Private),
            ("fe80::1", TargetScope::Private),
            ("198.51.100.200", TargetScope::Private),
            ("198.51.101.1", TargetScope::Public),
            ("8.8.8.8", TargetScope::Public),
            ("2001:db8::1", TargetScope::Public),
        ] {
            let address = address.parse().expect("an address");
            assert_eq!(TargetScope::of(address, &networks), expected, "{address}");
        }
    }

    #[test]
    fn public_server_has_limits_unless_owned() {
        let ownership = TargetOwnership::default();
        let polite = demand(16, Some(100.0), 30);
        assert_eq!(check(&polite, TargetScope::Public, ownership), Ok(Some(1_000_000_000)));
        for rude in [
            demand(17, Some(100.0), 30),
            demand(16, Some(101.0), 30),
            demand(16, Some(100.0), 31),
            demand(16, None, 10),
        ] {
            let refusal = check(&rude, TargetScope::Public, ownership).expect_err("it is too much");
            assert!(refusal.contains("--i-own-this-target"), "{refusal}");
            let owned = TargetOwnership {
                is_owned: true,
                ..ownership
            };
            assert_eq!(check(&rude, TargetScope::Public, owned), Ok(None));
            let large = TargetOwnership {
                allows_large: true,
                ..ownership
            };
            assert!(check(&rude, TargetScope::Public, large).is_err());
        }
    }

    #[test]
    fn private_server_has_higher_limits_and_own_server_none() {
        let large = demand(1025, None, 600);
        let ownership = TargetOwnership::default();
        assert!(check(&large, TargetScope::Private, ownership).is_err_and(|text| text.contains("--allow-large")));
        assert_eq!(
            check(&demand(1024, None, 600), TargetScope::Private, ownership),
            Ok(Some(100_000_000_000))
        );
        let ours = TargetOwnership {
            is_ours: true,
            ..ownership
        };
        assert_eq!(check(&large, TargetScope::Private, ours), Ok(None));
    }
}
