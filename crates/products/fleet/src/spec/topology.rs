//! Which hosts of a fleet exchange data.

use linerate_model::fleet::{FleetTopology, HostId, LadderDirection};
use linerate_model::fnv::Fnv128;
use serde::{Deserialize, Serialize};

/// Which hosts exchange data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Topology {
    /// Each with each other.
    Mesh,
    /// These pairs, in both directions.
    Pairs(Vec<(HostId, HostId)>),
    /// All others send to this one.
    Incast(HostId),
    /// This one sends to all others.
    Fanout(HostId),
    /// All others send to this one, and it sends to all others.
    IncastAndFanout(HostId),
}

impl Topology {
    /// The one end of a ladder.
    pub fn hub(&self) -> Option<&HostId> {
        match self {
            Self::Incast(hub) | Self::Fanout(hub) | Self::IncastAndFanout(hub) => Some(hub),
            Self::Mesh | Self::Pairs(_) => None,
        }
    }

    /// Directions of the ladders, in the order in which they run.
    pub const fn directions(&self) -> &'static [LadderDirection] {
        match self {
            Self::Incast(_) => &[LadderDirection::Incast],
            Self::Fanout(_) => &[LadderDirection::Fanout],
            Self::IncastAndFanout(_) => &[LadderDirection::Incast, LadderDirection::Fanout],
            Self::Mesh | Self::Pairs(_) => &[],
        }
    }

    pub(crate) fn hash(&self, hash: Fnv128) -> Fnv128 {
        match self {
            Self::Mesh => hash.number(0),
            Self::Pairs(pairs) => {
                let mut hash = hash.number(1).number(pairs.len() as u128);
                for (a, b) in pairs {
                    hash = hash.text(a.as_str()).text(b.as_str());
                }
                hash
            }
            Self::Incast(sink) => hash.number(2).text(sink.as_str()),
            Self::Fanout(source) => hash.number(3).text(source.as_str()),
            Self::IncastAndFanout(hub) => hash.number(4).text(hub.as_str()),
        }
    }
}

impl From<&Topology> for FleetTopology {
    fn from(topology: &Topology) -> Self {
        match topology {
            Topology::Mesh => Self::Mesh,
            Topology::Pairs(_) => Self::Pairs,
            Topology::Incast(hub) => Self::Incast(hub.clone()),
            Topology::Fanout(hub) => Self::Fanout(hub.clone()),
            Topology::IncastAndFanout(hub) => Self::IncastAndFanout(hub.clone()),
        }
    }
}
