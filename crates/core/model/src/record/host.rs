//! Which program made a run, and what is known of the hosts.

use linerate_macros::{sparse, stored};

use crate::snapshot::Snapshot;

/// Which program made a run.
#[sparse(Vec)]
#[stored(Default, Eq)]
pub struct Origin {
    /// Its name: `linerate`, `iperf3`, `iperf`.
    pub tool: String,
    /// Its version.
    pub version: Option<String>,
    /// The command line as typed, without passwords and tokens.
    pub argv: Vec<String>,
    /// Where it was imported from; absent of a run that was recorded.
    pub imported: Option<Import>,
}

/// The document a run was imported from.
#[sparse(Vec)]
#[stored(Default, Eq)]
pub struct Import {
    /// Its form: `iperf3-json`, `iperf3-json-stream`, `iperf2-csv`.
    pub format: String,
    /// Name of the file, without its directories.
    pub name: Option<String>,
    /// SHA-256 of the canonical document, hexadecimal.
    pub sha256: String,
    /// Equal for every report of one test by one end, also when it is cut off.
    pub key: Option<String>,
    /// Facts that were not read, with the reason.
    pub notes: Vec<String>,
}

/// Between which hosts a run was made.
#[sparse(Vec)]
#[stored(Default, Eq)]
pub struct RunPath {
    /// Hash of both hosts and the interfaces between them; equal for all runs of one path.
    pub key: String,
    /// Hash of what was asked for, without host, port, title and labels; equal for all runs of one
    /// specification.
    pub spec_key: String,
    /// Name of the client's host.
    pub client: Option<String>,
    /// The server as the user named it.
    pub server: Option<String>,
    /// Addresses of the data, client first.
    pub addresses: Vec<String>,
}

/// One host of a run.
#[sparse]
#[stored(Default)]
pub struct HostPart {
    /// `client`, `server` or `here`; of a fleet the id of the host.
    pub role: String,
    /// Its name.
    pub name: String,
    /// First 16 bytes of a SHA-256 of its machine id (machine-id(5)), hexadecimal.
    pub host_key: Option<String>,
    /// SHA-256 of its settings, hexadecimal; equal while they do not change.
    pub facts_key: Option<String>,
    /// Its settings and counters.
    pub snapshot: Option<Box<Snapshot>>,
    /// The other end runs on the same host.
    #[serde(default)]
    pub is_same_host: bool,
}

impl HostPart {
    /// A host of which nothing but its role and its name is known.
    pub fn new(role: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            role: role.into(),
            name: name.into(),
            ..Self::default()
        }
    }
}
