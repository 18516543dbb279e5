//! Limits of loads on servers that are not known to be the user's.

use std::net::IpAddr;

use linerate_model::http::Mode;

use crate::load::LoadSpec;
use crate::server::local_networks;

/// Location of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TargetScope {
    /// Loopback, link-local, private (RFC 1918, RFC 4193), or on a network of this host.
    Private,
    /// Anywhere else.
    Public,
}

impl TargetScope {
    /// Class of an address; `networks` are the addresses of this host with their prefix lengths.
    pub fn of(address: IpAddr, networks: &[(IpAddr, u8)]) -> Self {
        if local_networks(networks).any(|network| network.contains(address)) {
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

impl Demand {
    /// The size of `load`, its warm-up included.
    pub fn of(load: &LoadSpec) -> Self {
        Self {
            connections: load.connections,
            mode: load.mode,
            duration_ns: load.duration_ns.saturating_add(load.warmup_ns),
        }
    }
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

/// A load exceeds a limit; the text names the option that lifts it.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum LimitExceeded {
    /// Connections of a public server.
    #[error("{0} connections are more than the {PUBLIC_CONNECTIONS_MAX} allowed; {PUBLIC_LIFT}")]
    PublicConnections(u32),
    /// Duration in seconds.
    #[error("{0} seconds are more than the {PUBLIC_SECONDS_MAX} allowed; {PUBLIC_LIFT}")]
    Seconds(u64),
    /// Requests per second.
    #[error("{0} requests/s are more than the {PUBLIC_RATE_MAX_PER_S} allowed; {PUBLIC_LIFT}")]
    Rate(f64),
    /// A closed loop has no rate limit, so a public server gets an open one.
    #[error(
        "without --rate the requests have no upper limit; at most --rate {PUBLIC_RATE_MAX_PER_S} \
         is allowed; {PUBLIC_LIFT}"
    )]
    NoRate,
    /// Connections of a private server.
    #[error(
        "{0} connections are more than the {PRIVATE_CONNECTIONS_MAX} allowed; the server is not \
         known to be one of ours: --allow-large lifts the limit"
    )]
    PrivateConnections(u32),
}

/// Checks a load against the limits of `scope`. Returns how many bytes it may receive.
///
/// # Errors
/// The exceeded limit.
pub fn check(
    demand: &Demand,
    scope: TargetScope,
    ownership: TargetOwnership,
) -> Result<BytesMax, LimitExceeded> {
    if ownership.is_ours || ownership.is_owned {
        return Ok(None);
    }

    let seconds = demand.duration_ns.div_ceil(1_000_000_000);
    match (scope, demand.mode) {
        (TargetScope::Private, _) if ownership.allows_large => Ok(None),
        (TargetScope::Private, _) if demand.connections > PRIVATE_CONNECTIONS_MAX => {
            Err(LimitExceeded::PrivateConnections(demand.connections))
        }
        (TargetScope::Private, _) => Ok(Some(PRIVATE_BYTES_MAX)),
        (TargetScope::Public, _) if demand.connections > PUBLIC_CONNECTIONS_MAX => {
            Err(LimitExceeded::PublicConnections(demand.connections))
        }
        (TargetScope::Public, _) if seconds > PUBLIC_SECONDS_MAX => {
            Err(LimitExceeded::Seconds(seconds))
        }
        (TargetScope::Public, Mode::Open { rate_per_s, .. })
            if rate_per_s > PUBLIC_RATE_MAX_PER_S =>
        {
            Err(LimitExceeded::Rate(rate_per_s))
        }
        // The rate of a closed loop follows from the server's speed, so it has no bound.
        (TargetScope::Public, Mode::Closed { .. }) => Err(LimitExceeded::NoRate),
        (TargetScope::Public, Mode::Open { .. } | Mode::Idle { .. }) => Ok(Some(PUBLIC_BYTES_MAX)),
    }
}

const PUBLIC_LIFT: &str = "it is a public address: --i-own-this-target HOST lifts the limit";
const PUBLIC_CONNECTIONS_MAX: u32 = 16;
const PUBLIC_RATE_MAX_PER_S: f64 = 100.0;
const PUBLIC_SECONDS_MAX: u64 = 30;
const PUBLIC_BYTES_MAX: u64 = 1_000_000_000;
const PRIVATE_CONNECTIONS_MAX: u32 = 1024;
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
            ("172.31.0.1", TargetScope::Private),
            ("192.168.5.2", TargetScope::Private),
            ("169.254.1.1", TargetScope::Private),
            ("::1", TargetScope::Private),
            ("fd00::1", TargetScope::Private),
            ("fe80::1", TargetScope::Private),
            ("198.51.100.200", TargetScope::Private),
            ("198.51.101.1", TargetScope::Public),
            ("172.32.0.1", TargetScope::Public),
            ("192.169.0.1", TargetScope::Public),
            ("8.8.8.8", TargetScope::Public),
            ("::2", TargetScope::Public),
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
        assert_eq!(
            check(&polite, TargetScope::Public, ownership),
            Ok(Some(1_000_000_000))
        );

        for rude in [
            demand(17, Some(100.0), 30),
            demand(16, Some(101.0), 30),
            demand(16, Some(100.0), 31),
            demand(16, None, 10),
        ] {
            let refusal = check(&rude, TargetScope::Public, ownership).expect_err("it is too much");
            let refusal = refusal.to_string();
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
        assert!(
            check(&large, TargetScope::Private, ownership)
                .is_err_and(|error| error.to_string().contains("--allow-large"))
        );
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
