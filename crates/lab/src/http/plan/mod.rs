//! The plan of an experiment: what a plan file says, with a default for everything it does not say.

mod default;
mod from_toml;
mod from_yaml;
mod protocol;
mod read;
mod tree;
mod write;

use std::net::IpAddr;
use std::time::Duration;

use linerate_model::http::Arrivals;

pub use protocol::{Protocol, Trust, file_name, fingerprint};
pub use tree::PlanError;

/// Most bytes of a plan file.
pub const TEXT_BYTES_MAX: usize = 64 << 10;
/// Most runs of a plan, refinements aside.
pub const RUNS_MAX: u64 = 10_000;

/// A plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The server, as an URL; the command line may name it instead.
    pub target: Option<String>,
    /// Its control channel, as an URL; by default the same host and the next port.
    pub control: Option<String>,
    /// Device the route must take.
    pub dev: Option<String>,
    /// Decides the order of the cells and Poisson arrivals.
    pub seed: u64,
    /// How the server is spoken to.
    pub protocol: Protocol,
    /// What holds for all phases that do not say otherwise.
    pub defaults: Defaults,
    /// TCP alone.
    pub tcp: TcpPhase,
    /// Payloads at one number of connections.
    pub payloads: PayloadPhase,
    /// Payloads by connections.
    pub matrix: MatrixPhase,
    /// Connections that are only held.
    pub idle: IdlePhase,
    /// Many connections, few requests.
    pub low_rate: LowRatePhase,
    /// Many connections that are all busy.
    pub active: ActivePhase,
    /// What is wanted.
    pub objective: Objective,
    /// Where connections come from and how they end.
    pub source: Source,
}

/// What holds for all phases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Defaults {
    /// Load before the measured window.
    pub warmup: Duration,
    /// The measured window.
    pub duration: Duration,
    /// After which time a request has failed.
    pub timeout: Duration,
    /// Least pause between two runs.
    pub cooldown: Duration,
    /// Runs of each cell of phases 1 and 2.
    pub repeats: u32,
    /// Connections opened per second.
    pub ramp: Ramp,
    /// Threads of the generator; absent for as many as fit.
    pub threads: Option<u32>,
}

/// How fast connections are opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ramp {
    /// So many per second.
    PerSecond(u32),
    /// As fast as it goes.
    Max,
}

/// Direction of a TCP test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// The client sends.
    Forward,
    /// The server sends.
    Reverse,
}

/// Phase 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TcpPhase {
    /// Directions; none to leave the phase out.
    pub directions: Vec<Direction>,
    /// Streams in parallel, one test for each.
    pub streams: Vec<u32>,
    /// Length of a test.
    pub duration: Duration,
}

/// Phase 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PayloadPhase {
    /// Bytes of bodies; none to leave the phase out.
    pub payloads_bytes: Vec<u64>,
    /// Connections.
    pub connections: u32,
}

/// Phase 2.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MatrixPhase {
    /// Bytes of bodies; none to leave the phase out.
    pub payloads_bytes: Vec<u64>,
    /// Numbers of connections.
    pub connections: Vec<u32>,
    /// Add cells around the knee of each payload.
    pub refine_knee: bool,
}

/// Phase 3, connections that are only held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdlePhase {
    /// Numbers of connections, rising; none to leave the part out.
    pub steps: Vec<u32>,
    /// How long each number is held.
    pub hold: Duration,
    /// Pause between two requests of a connection; absent without requests.
    pub heartbeat: Option<Duration>,
    /// Send one request on each connection first, so that the server has its buffers.
    pub touch: bool,
}

/// Phase 3, few requests on many connections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LowRatePhase {
    /// Connections; 0 to leave the part out.
    pub connections: u32,
    /// Requests per second over all of them.
    pub rate_per_s: u32,
    /// Bytes of a body.
    pub payload_bytes: u64,
    /// The measured window.
    pub duration: Duration,
    /// Spread of the requests.
    pub arrivals: Arrivals,
}

/// Phase 3, many connections that are all busy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActivePhase {
    /// Connections; 0 to leave the part out.
    pub connections: u32,
    /// Bytes of bodies.
    pub payloads_bytes: Vec<u64>,
    /// The measured window.
    pub duration: Duration,
}

/// What is wanted of the service.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Objective {
    /// Most the 99th percentile of the latency may be.
    pub p99: Option<Duration>,
    /// Most failures as a share of all that ended, 0 to 1.
    pub error_share: f64,
}

/// Where local ports come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ports {
    /// The kernel's as long as they suffice, then explicit ones.
    Auto,
    /// The kernel's.
    Kernel,
    /// Chosen by the generator.
    Explicit,
}

/// How connections are closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Close {
    /// By reset towards a server of ours, in order towards others.
    Auto,
    /// By reset: leaves nothing behind.
    Reset,
    /// In order: leaves a TIME_WAIT.
    Fin,
}

/// Where connections come from and how they end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Addresses of this host; none for the one the route gives.
    pub addresses: Vec<IpAddr>,
    /// Where local ports come from.
    pub ports: Ports,
    /// How connections are closed.
    pub close: Close,
}

/// Language of a plan file; both have the same keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// TOML 1.0.
    Toml,
    /// YAML 1.2 without anchors, aliases and tags.
    Yaml,
}

impl Format {
    /// By the end of a file's name: YAML for `.yaml` and `.yml`, TOML for all others.
    #[must_use]
    pub fn of_name(name: &str) -> Self {
        let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
        if ending.eq_ignore_ascii_case("yaml") || ending.eq_ignore_ascii_case("yml") {
            Self::Yaml
        } else {
            Self::Toml
        }
    }
}

impl Plan {
    /// Reads a plan file. What it does not say stays as in [`Plan::default`].
    ///
    /// # Errors
    /// The line and what is wrong there: no TOML or YAML, a key that does not exist, a value outside its range, or two
    /// values that contradict each other.
    pub fn parse(text: &str, format: Format) -> Result<Self, PlanError> {
        if text.len() > TEXT_BYTES_MAX {
            return Err(PlanError::whole(format!(
                "a plan has at most {TEXT_BYTES_MAX} bytes, this has {}",
                text.len()
            )));
        }
        let tree = match format {
            Format::Toml => from_toml::tree(text)?,
            Format::Yaml => from_yaml::tree(text)?,
        };
        read::plan(tree)
    }

    /// The plan as a file with every key, explained.
    #[must_use]
    pub fn to_toml(&self) -> String {
        write::explained(self)
    }

    /// Names what the plan says, so that runs of another plan are told apart. Equal for equal plans, whatever file they
    /// were read from; it does not depend on the explanations.
    #[must_use]
    pub fn hash(&self) -> String {
        format!("{:016x}", fnv1a(write::bare(self).as_bytes()))
    }

    /// The same plan in a few minutes: one short run of each cell, short TCP tests, connections held briefly.
    #[must_use]
    pub fn quick(mut self) -> Self {
        let short = Duration::from_secs(3);
        self.defaults.repeats = 1;
        self.defaults.duration = self.defaults.duration.min(short);
        self.defaults.warmup = self.defaults.warmup.min(Duration::from_secs(1));
        self.defaults.cooldown = self.defaults.cooldown.min(Duration::from_secs(1));
        self.tcp.duration = self.tcp.duration.min(short);
        self.idle.hold = self.idle.hold.min(short);
        self.idle.heartbeat = self.idle.heartbeat.filter(|heartbeat| *heartbeat <= self.idle.hold);
        self.low_rate.duration = self.low_rate.duration.min(Duration::from_secs(10));
        self.active.duration = self.active.duration.min(short);
        self
    }
}

/// Fowler, Noll and Vo's hash, variant 1a with 64 bits (RFC 9923): stable across programs and their versions.
fn fnv1a(bytes: &[u8]) -> u64 {
    const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    bytes
        .iter()
        .fold(BASIS, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME))
}

#[cfg(test)]
mod tests;
