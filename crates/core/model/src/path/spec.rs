//! Questions of a user about a path.

use std::time::Duration;

use linerate_macros::stored;

use super::{PhaseKind, PhaseTransport};

/// Bounds of an examination in time and data.
#[stored(Copy, Default, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// About 11 s: idle, down, up.
    Quick,
    /// About 27 s: all phases but those that are asked for by name.
    #[default]
    Default,
    /// About 90 s.
    Thorough,
    /// The parameters of draft-ietf-ippm-responsiveness-09.
    Draft09,
}

/// The examination of a path, resolved.
#[stored]
#[serde(default)]
pub struct PathSpec {
    /// Time and data.
    pub profile: Profile,
    /// Only these phases, if any are named.
    pub only: Vec<PhaseKind>,
    /// Without these phases.
    pub skip: Vec<PhaseKind>,
    /// Length of a load phase; absent leaves it to the profile.
    #[serde(rename = "load_ns", with = "crate::units::optional_ns")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    pub load: Option<Duration>,
    /// Most bytes of all phases together, both directions.
    pub bytes_max: Option<u64>,
    /// Streams of a load phase; absent grows them until the rate stands still.
    pub streams: Option<u32>,
    /// Rate of a load phase or of datagrams in bit/s.
    pub rate_bps: Option<u64>,
    /// Congestion control of the load.
    pub congestion: Option<String>,
    /// DSCP of load and probes.
    pub dscp: u8,
    /// DSCPs of further probe flows.
    pub probe_dscps: Vec<u8>,
    /// Transport of the load.
    pub transport: PhaseTransport,
    /// Load without frames: no echo in the load's own streams.
    pub raw: bool,
    /// Bytes of a request and of a response of `rr` and `crr`.
    pub request_bytes: u32,
    /// Bytes of a response.
    pub response_bytes: u32,
}

impl Default for PathSpec {
    fn default() -> Self {
        Self {
            profile: Profile::Default,
            only: Vec::new(),
            skip: Vec::new(),
            load: None,
            bytes_max: None,
            streams: None,
            rate_bps: None,
            congestion: None,
            dscp: 0,
            probe_dscps: Vec::new(),
            transport: PhaseTransport::Tcp,
            raw: false,
            request_bytes: 1,
            response_bytes: 1,
        }
    }
}
