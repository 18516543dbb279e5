//! Options of a run.

use std::time::Duration;

use super::hosts::FleetHosts;
use super::inventory::Reach;
use linerate_model::fleet::{FleetMode, FleetTopology, HostId, LadderDirection, PairDirection};
use linerate_model::fnv::Fnv128;
use linerate_model::outcome::Error;
use serde::{Deserialize, Serialize};

/// Specification of a run. A record has it as the inputs of the plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunSpec {
    /// The hosts.
    pub hosts: FleetHosts,
    /// Which of them exchange data.
    pub topology: Topology,
    /// Which tests run at the same time.
    pub mode: FleetMode,
    /// The two directions of a pair: at the same time or one after the other.
    pub direction: PairDirection,
    /// Varied settings, `cc=bbr`; empty where nothing is.
    pub variants: Vec<String>,
    /// Rounds of a mesh that is sampled.
    pub sample_rounds: Option<u32>,
    /// Tests of each pair.
    pub repetitions: u32,
    /// Decides the order.
    pub seed: u64,
    /// Each test.
    pub test: TestOptions,
    /// No round is started that would end later; `None` for no limit.
    pub budget: Option<Duration>,
    /// Most payload of all tests in bytes; absent for a terabyte, where the rates are known.
    pub bytes_max: Option<u64>,
}

/// Options of each test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestOptions {
    /// Measured time.
    pub time: Duration,
    /// Time before it that does not count.
    pub omit: Duration,
    /// Parallel streams.
    pub streams: u32,
    /// Highest rate of each direction in bit/s; absent without a limit.
    pub rate_bps: Option<u64>,
    /// Time between the starts of two tests of a ladder step.
    pub stagger: Duration,
}

impl RunSpec {
    /// Checks that the hub of a ladder is a host of the inventory that can have several tests at a
    /// time.
    ///
    /// # Errors
    /// It is not.
    pub(crate) fn check_hub(&self) -> Result<(), Error> {
        let Some(hub) = self.topology.hub() else {
            return Ok(());
        };
        let mut hosts = self.hosts.inventory.hosts.iter();
        match hosts.find(|host| host.id == *hub) {
            None => Err(Error::usage(format!("{hub} is no host of the inventory"))),
            Some(host) if matches!(host.reach, Reach::Server(_)) => Err(Error::usage(format!(
                "{hub} is a server without an agent, which has one test at a time: no ladder is \
             possible; try `linerate fleet run pairs`"
            ))),
            Some(_) => Ok(()),
        }
    }
}

impl TestOptions {
    /// Time from the start to the end.
    pub(crate) fn length(self) -> Duration {
        self.omit + self.time
    }

    pub(crate) fn time_ms(self) -> u64 {
        u64::try_from(self.time.as_millis()).unwrap_or(u64::MAX)
    }

    pub(crate) fn omit_ms(self) -> u64 {
        u64::try_from(self.omit.as_millis()).unwrap_or(u64::MAX)
    }

    pub(crate) fn time_ns(self) -> u64 {
        self.time_ms().saturating_mul(1_000_000)
    }

    pub(crate) fn omit_ns(self) -> u64 {
        self.omit_ms().saturating_mul(1_000_000)
    }
}

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
