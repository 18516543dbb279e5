//! The other end of a path.

use std::net::IpAddr;

use linerate_macros::{sparse, stored};

/// The other end.
#[sparse]
#[stored(Default)]
pub struct PathTarget {
    /// As the user named it.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// Address that was reached.
    pub address: String,
    /// `ipv4` or `ipv6`.
    pub family: String,
    /// Protocol of the control connection.
    pub dialect: Dialect,
    /// Program of the other end as it names itself.
    pub program: Option<String>,
    /// What is known of the server's identity.
    pub identity: Identity,
    /// Fingerprint of its key: `sha256:…`.
    pub fingerprint: Option<String>,
    /// Time of the TCP handshake of the control connection, ns.
    pub connect_ns: Option<u64>,
}

impl PathTarget {
    /// A server that was reached at `address` and has not proved its identity.
    pub fn new(host: impl Into<String>, port: u16, address: IpAddr, dialect: Dialect) -> Self {
        Self {
            host: host.into(),
            port,
            address: address.to_string(),
            family: if address.is_ipv6() { "ipv6" } else { "ipv4" }.to_owned(),
            dialect,
            ..Self::default()
        }
    }
}

/// Protocol of an examination.
#[stored(Copy, Default, Eq)]
pub enum Dialect {
    /// `linerate/1`.
    #[default]
    Native,
    /// That of iperf3; what only linerate measures is absent.
    Iperf3,
    /// STAMP (RFC 8762), which has no control connection.
    Stamp,
    /// That of ndt7, the speed test of M-Lab; what only linerate measures is absent.
    Ndt7,
    /// That of a speed test, whose report was imported.
    SpeedTest,
}

/// What is known of the server's identity.
#[stored(Copy, Default, Eq)]
pub enum Identity {
    /// Its key is the one of earlier tests.
    Known,
    /// Its key is the one that the user named.
    Pinned,
    /// It proved that it knows the token.
    Token,
    /// First contact; the key is remembered.
    New,
    /// Nothing.
    #[default]
    Unproven,
}
