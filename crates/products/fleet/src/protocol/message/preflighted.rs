//! Findings of an agent before the first round.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use linerate_model::snapshot::Snapshot;

/// Paths to the partners.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Preflighted {
    /// One entry per probed port.
    pub peers: Vec<ProbeReport>,
    /// Facts of the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub facts: Option<Box<Snapshot>>,
}

/// A probed port and the route to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeReport {
    /// Address of the partner.
    pub peer: IpAddr,
    /// Probed port.
    pub port: u16,
    /// Outcome of the probe.
    pub outcome: ProbeOutcome,
    /// Round trip of the handshake.
    #[serde(default)]
    pub rtt_ns: Option<u64>,
    /// Device of the route.
    #[serde(default)]
    pub device: Option<String>,
    /// MTU of the route in bytes.
    #[serde(default)]
    pub mtu_bytes: Option<u32>,
    /// Port of a bridge that leads to the partner.
    #[serde(default)]
    pub bridge_port: Option<BridgePort>,
}

/// A port of a bridge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BridgePort {
    /// Its device.
    pub name: String,
    /// Bridge of the bus that its card is behind; absent of a device without a bus.
    #[serde(default)]
    pub slot: Option<String>,
}

/// Outcome of a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProbeOutcome {
    /// The port is open.
    Ok,
    /// The partner refused the connection.
    Refused,
    /// No answer.
    Timeout,
    /// There is no route.
    NoRoute,
    /// Another error.
    #[serde(other)]
    Other,
}
