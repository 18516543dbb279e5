//! Options of a run.

use std::time::Duration;

use linerate_model::fleet::{FleetMode, PairDirection};
use linerate_model::outcome::Error;
use serde::{Deserialize, Serialize};

use super::hosts::FleetHosts;
use super::inventory::Reach;
use super::topology::Topology;

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
