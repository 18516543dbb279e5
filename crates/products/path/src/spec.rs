//! A test of a path as the user requests it.

mod host_port;

use std::path::PathBuf;
use std::time::Duration;

use linerate_engine::dialect::native::client::{Login, Target};
use linerate_model::PortRange;
use linerate_model::path::PathSpec;

pub use host_port::host_and_port;
pub use linerate_engine::dialect::stamp::client::PORT as STAMP_PORT;

/// Object and options of an examination.
#[derive(Debug, Clone)]
pub struct PathTest {
    /// The server.
    pub target: Target,
    /// Its ports, of which the first free one replaces that of the target.
    pub ports: Option<PortRange>,
    /// The protocol is ndt7; without it the server's first bytes decide.
    pub is_ndt7: bool,
    /// Phases, time and data.
    pub spec: PathSpec,
    /// Demands on its identity.
    pub identity: IdentityOptions,
    /// The server's facts are wanted for the diagnosis.
    pub wants_facts: bool,
    /// The hops have their names in the DNS.
    pub wants_names: bool,
    /// Longest wait for a server that is busy.
    pub wait_max: Duration,
    /// Number of examinations, at least one.
    pub repeat: u32,
    /// Probe that measures the delay beside the tests of an iperf3 server.
    pub side_probe: SideProbe,
    /// The result has every single probe.
    pub wants_samples: bool,
    /// The result has what the CPUs of this host did during the loads.
    pub wants_stacks: bool,
}

/// Probe that measures the delay beside the tests of an iperf3 server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SideProbe {
    /// The first of the others that works.
    #[default]
    Auto,
    /// ICMP echo.
    Icmp,
    /// Connections to the port of the server while it is busy; it refuses them at once.
    Busy,
    /// Connections to another TCP port of the server's host, which are closed once they are
    /// established.
    Tcp(u16),
    /// Nothing.
    None,
}

/// Demands of the user on the server's identity.
#[derive(Debug, Clone, Default)]
pub struct IdentityOptions {
    /// Fingerprint of its key: `sha256:…`.
    pub pin: Option<String>,
    /// File of a token that both ends prove.
    pub token_file: Option<PathBuf>,
    /// User and password for a server that demands them.
    pub login: Option<Login>,
    /// The login is sent also to a server that is met for the first time.
    pub accept_new: bool,
    /// Nothing is demanded, and nothing is remembered.
    pub insecure: bool,
    /// A server of another dialect is a failure.
    pub requires_native: bool,
}
