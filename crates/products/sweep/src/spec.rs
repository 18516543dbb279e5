//! The specification of a sweep.

pub mod grammar;

use std::time::Duration;

use linerate_model::PortRange;
use linerate_model::sweep::Objective;

use grammar::{CpuPinning, FactorError, SweptFactor};

/// Loss that [`Objective::LowLoss`] does not accept, in percent of the datagrams.
pub const LOSS_PERCENT_MAX: f64 = 0.1;

/// A sweep, resolved. [`Self::to`] makes one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SweepSpec {
    /// The server as the user named it.
    pub host: String,
    /// Its port, or a range: the first run takes the first free one, and the others keep it.
    pub port: PortRange,
    /// Factors that are varied.
    pub over: Vec<SweptFactor>,
    /// Objective of the sweep.
    pub objective: Objective,
    /// Measured part of a run in seconds.
    pub time_s: u32,
    /// Warm-up of a run in seconds.
    pub omit_s: u32,
    /// Runs per setting.
    pub repetitions: u32,
    /// Time for all.
    pub budget: Duration,
    /// Order of the runs.
    pub seed: u64,
    /// The server sends.
    pub is_reverse: bool,
    /// UDP instead of TCP.
    pub is_udp: bool,
    /// Settings that are not varied.
    pub held: TestSettings,
    /// Address family the user insists on: 4 or 6.
    pub family: Option<u8>,
}

impl SweepSpec {
    /// Runs of 3 s of TCP against the server at `port` of `host`, three per setting in at most a
    /// quarter of an hour, for the most throughput. Nothing is varied yet.
    pub fn to(host: &str, port: u16) -> Self {
        Self {
            host: host.to_owned(),
            port: port.into(),
            over: Vec::new(),
            objective: Objective::Throughput,
            time_s: 3,
            omit_s: 1,
            repetitions: 3,
            budget: Duration::from_secs(900),
            seed: 1,
            is_reverse: false,
            is_udp: false,
            held: TestSettings::default(),
            family: None,
        }
    }

    /// This specification over these factors, in the form of the option `--over`:
    /// `streams=1..8,length`.
    ///
    /// # Errors
    /// An unknown factor, or levels that it does not have.
    pub fn over(mut self, factors: &str) -> Result<Self, FactorError> {
        self.over = grammar::factors(&[factors.to_owned()], self.is_udp)?;
        Ok(self)
    }
}

/// Settings of a test; `None` for the default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TestSettings {
    /// Streams.
    pub streams: Option<u32>,
    /// Bytes per write or datagram.
    pub length_bytes: Option<u64>,
    /// Socket buffers in bytes.
    pub window_bytes: Option<u64>,
    /// Rate of each stream in bit/s; 0 for no limit.
    pub rate_bps: Option<u64>,
    /// Congestion control.
    pub congestion: Option<String>,
    /// CPUs of both ends.
    pub pinning: CpuPinning,
}

/// A sweep over TCP for tests.
#[cfg(test)]
pub(crate) fn example(over: Vec<SweptFactor>) -> SweepSpec {
    SweepSpec {
        over,
        budget: Duration::from_secs(60),
        ..SweepSpec::to("h", 5201)
    }
}
