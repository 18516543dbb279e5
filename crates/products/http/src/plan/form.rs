//! The keys of a plan file with their defaults.

use core::net::IpAddr;
use std::time::Duration;

use linerate_model::Flow;
use linerate_model::http::{Arrivals, Ports};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::protocol::Protocol;
use super::values;

/// A plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Plan {
    /// Version of this form.
    pub version: u32,
    /// The server, as an URL; the command line may name it instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Its control channel, `HOST` or `HOST:PORT`; by default the same host and the next port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control: Option<String>,
    /// Device the route must take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dev: Option<String>,
    /// Rate of the path in bit/s as the user knows it; by default measured, or that of the link.
    #[serde(
        rename = "line_rate",
        with = "values::line_rates",
        skip_serializing_if = "Option::is_none"
    )]
    pub line_rate_bps: Option<f64>,
    /// Seed of the order of the cells and of Poisson arrivals.
    pub seed: u64,
    /// Version of HTTP, streams and trusted certificates.
    pub protocol: Protocol,
    /// Values of all phases that have none of their own.
    pub defaults: Defaults,
    /// TCP alone.
    #[serde(rename = "phase0")]
    pub tcp: TcpPhase,
    /// Payloads at one number of connections.
    #[serde(rename = "phase1")]
    pub payloads: PayloadPhase,
    /// Payloads by connections.
    #[serde(rename = "phase2")]
    pub matrix: MatrixPhase,
    /// Many connections.
    #[serde(rename = "phase3")]
    pub c10k: C10kPhase,
    /// Service level objective.
    #[serde(rename = "slo")]
    pub objective: Objective,
    /// Source addresses and ports, and the teardown of connections.
    pub source: Source,
}

/// Values of all phases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Defaults {
    /// Load before the measured period.
    #[serde(with = "values::time")]
    pub warmup: Duration,
    /// The measured period.
    #[serde(with = "values::time")]
    pub duration: Duration,
    /// Age at which a request has failed.
    #[serde(with = "values::time")]
    pub timeout: Duration,
    /// Least pause between two runs.
    #[serde(with = "values::time")]
    pub cooldown: Duration,
    /// Runs of each cell of phases 1 and 2.
    pub repeats: u32,
    /// Connections opened per second; absent without a limit.
    #[serde(rename = "ramp", with = "values::ramp")]
    pub ramp_per_s: Option<u32>,
    /// Threads of the generator; 0 for one per CPU.
    pub threads: u32,
}

impl Defaults {
    /// Threads of the generator where the plan fixes them.
    pub fn explicit_threads(&self) -> Option<u32> {
        (self.threads > 0).then_some(self.threads)
    }
}

/// Phase 0.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TcpPhase {
    /// Directions; an empty list skips the phase.
    pub directions: Vec<Flow>,
    /// Numbers of parallel streams, one test for each.
    pub streams: Vec<u32>,
    /// Length of a test.
    #[serde(with = "values::time")]
    pub duration: Duration,
}

/// Phase 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PayloadPhase {
    /// Bytes of bodies; an empty list skips the phase.
    #[serde(rename = "payloads", with = "values::payloads")]
    pub payloads_bytes: Vec<u64>,
    /// Connections.
    pub connections: u32,
}

/// Phase 2.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MatrixPhase {
    /// Bytes of bodies; an empty list skips the phase.
    #[serde(rename = "payloads", with = "values::payloads")]
    pub payloads_bytes: Vec<u64>,
    /// Numbers of connections.
    pub connections: Vec<u32>,
    /// Adds cells around the knee of each payload.
    pub refine_knee: bool,
}

/// Phase 3.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct C10kPhase {
    /// Idle connections.
    pub idle: IdlePhase,
    /// Many connections, few requests.
    #[serde(rename = "lowrate")]
    pub low_rate: LowRatePhase,
    /// Many busy connections.
    pub active: ActivePhase,
}

/// Phase 3, idle connections.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct IdlePhase {
    /// Numbers of connections, rising; an empty list skips the part.
    pub steps: Vec<u32>,
    /// Time for which each number is held.
    #[serde(with = "values::time")]
    pub hold: Duration,
    /// Pause between two requests of a connection; absent without requests.
    #[serde(with = "values::time_or_off")]
    pub heartbeat: Option<Duration>,
    /// Sends one request on each connection first, so that the server has allocated its buffers.
    pub touch: bool,
}

/// Phase 3, few requests on many connections.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LowRatePhase {
    /// Connections; 0 skips the part.
    pub connections: u32,
    /// Requests per second over all of them.
    #[serde(rename = "rate")]
    pub rate_per_s: u32,
    /// Bytes of a body.
    #[serde(rename = "payload", with = "values::payload")]
    pub payload_bytes: u64,
    /// The measured period.
    #[serde(with = "values::time")]
    pub duration: Duration,
    /// Distribution of the requests over time.
    #[serde(rename = "arrival")]
    pub arrivals: Arrivals,
}

/// Phase 3, many busy connections.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ActivePhase {
    /// Connections; 0 skips the part.
    pub connections: u32,
    /// Bytes of bodies.
    #[serde(rename = "payloads", with = "values::payloads")]
    pub payloads_bytes: Vec<u64>,
    /// The measured period.
    #[serde(with = "values::time")]
    pub duration: Duration,
}

/// Service level objective.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Objective {
    /// Upper limit of the 99th percentile of the latency.
    #[serde(with = "values::time_or_none")]
    pub p99: Option<Duration>,
    /// Upper limit of failures as a share of all requests that ended, 0 to 1.
    #[serde(rename = "error_rate")]
    pub error_share: f64,
}

/// Teardown of connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Close {
    /// Reset towards a linerate server, FIN towards others.
    #[default]
    Auto,
    /// Reset: leaves no TIME_WAIT.
    #[serde(rename = "rst")]
    Reset,
    /// FIN: leaves a TIME_WAIT.
    Fin,
}

/// Source of connections, and their teardown.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Source {
    /// Local addresses; an empty list for that of the route.
    pub addresses: Vec<IpAddr>,
    /// Choice of local ports.
    pub ports: Ports,
    /// Teardown of connections.
    pub close: Close,
}

/// Why a plan file is refused: line or key, and what is allowed there.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct PlanError(pub(super) String);

const KIB: u64 = 1024;

impl Default for Plan {
    fn default() -> Self {
        Self {
            version: 1,
            target: None,
            control: None,
            dev: None,
            line_rate_bps: None,
            seed: 1,
            protocol: Protocol::default(),
            defaults: Defaults::default(),
            tcp: TcpPhase::default(),
            payloads: PayloadPhase::default(),
            matrix: MatrixPhase::default(),
            c10k: C10kPhase::default(),
            objective: Objective::default(),
            source: Source::default(),
        }
    }
}

impl Default for Defaults {
    fn default() -> Self {
        Self {
            warmup: Duration::from_secs(2),
            duration: Duration::from_secs(10),
            timeout: Duration::from_secs(5),
            cooldown: Duration::from_secs(3),
            repeats: 3,
            ramp_per_s: Some(2000),
            threads: 0,
        }
    }
}

impl Default for TcpPhase {
    fn default() -> Self {
        Self {
            directions: vec![Flow::Forward, Flow::Reverse],
            streams: vec![1, 4],
            duration: Duration::from_secs(10),
        }
    }
}

impl Default for PayloadPhase {
    fn default() -> Self {
        Self {
            payloads_bytes: vec![KIB, 10 * KIB, 100 * KIB],
            connections: 64,
        }
    }
}

impl Default for MatrixPhase {
    fn default() -> Self {
        Self {
            payloads_bytes: vec![KIB, 10 * KIB, 100 * KIB],
            connections: vec![16, 64, 128, 256, 512, 1024],
            refine_knee: true,
        }
    }
}

impl Default for IdlePhase {
    fn default() -> Self {
        Self {
            steps: vec![1000, 5000, 10_000, 20_000],
            hold: Duration::from_secs(30),
            heartbeat: None,
            touch: true,
        }
    }
}

impl Default for LowRatePhase {
    fn default() -> Self {
        Self {
            connections: 10_000,
            rate_per_s: 1000,
            payload_bytes: KIB,
            duration: Duration::from_secs(60),
            arrivals: Arrivals::Poisson,
        }
    }
}

impl Default for ActivePhase {
    fn default() -> Self {
        Self {
            connections: 10_000,
            payloads_bytes: vec![KIB],
            duration: Duration::from_secs(30),
        }
    }
}

impl Default for Objective {
    fn default() -> Self {
        Self {
            p99: None,
            error_share: 1e-4,
        }
    }
}
