//! Facts of one cell for rules: medians of its runs, sums of their errors, and both endpoints.

use std::collections::BTreeMap;

use linerate_macros::stored;

use super::{CellKey, ErrorClass, ErrorCounts, Flag, Medians, Mode, Peak, Share};

/// The network between the hosts.
#[stored(Copy)]
pub enum Network {
    /// None: both endpoints are on one host.
    Loopback,
    /// A link of unknown speed.
    Unknown,
    /// A link of this speed.
    Link {
        /// Speed in bit/s.
        bps: f64,
        /// Bits of a response on it, with all headers and gaps; absent before the first response
        /// was measured.
        bits_per_response: Option<f64>,
    },
}

/// Where a cell lies among those of its payload.
#[stored(Copy, Default)]
pub struct Position {
    /// Past the knee: no faster, and with a longer latency.
    pub is_queueing: bool,
    /// Best throughput with more connections; absent where none were tried.
    pub best_larger_per_s: Option<f64>,
    /// Best throughput with fewer connections; absent where none were tried.
    pub best_smaller_per_s: Option<f64>,
    /// Connections that Little's law predicts for the best throughput.
    pub predicted_connections: Option<f64>,
    /// Fewest connections that are fast, steady and without failures.
    pub best_stable_connections: Option<u32>,
}

/// One endpoint over the runs of a cell: the median of its shares, the largest of its peaks, the
/// sum of its counters.
#[stored(Default)]
pub struct EndpointFacts {
    /// CPUs of the host.
    pub cpus: Option<u32>,
    /// Share of all CPUs that was busy.
    pub cpu_busy: Option<Share>,
    /// Share of all CPUs taken by soft interrupts.
    pub cpu_softirq: Option<Share>,
    /// CPU time of the program; 1 is one CPU.
    pub program_cpus: Option<f64>,
    /// The busiest CPU: its number.
    pub core: Option<u32>,
    /// Share of the busiest CPU that was busy.
    pub core_busy: Option<Share>,
    /// Share of the busiest CPU taken by soft interrupts.
    pub core_softirq: Option<Share>,
    /// Share of the busiest CPU taken by the program.
    pub core_own: Option<Share>,
    /// The busiest thread of the program, as a share of one CPU.
    pub thread_busy: Option<Share>,
    /// Threads of the program that carry data.
    pub threads: Option<u32>,
    /// Connections of the fullest thread over the mean of all.
    pub imbalance: Option<f64>,
    /// Share of all CPUs the hypervisor gave to others.
    pub steal: Option<Share>,
    /// Share of the time the control group was throttled.
    pub throttled: Option<Share>,
    /// Retransmitted segments as a share of all that were sent.
    pub retransmit_share: Option<Share>,
    /// Descriptors of the program.
    pub fds: Option<Peak>,
    /// Entries of the connection tracking table.
    pub conntrack: Option<Peak>,
    /// Growth of `ListenOverflows`.
    pub listen_overflows: Option<u64>,
    /// Growth of `ListenDrops`.
    pub listen_drops: Option<u64>,
    /// Growth of `TCPMemoryPressures`.
    pub tcp_memory_pressures: Option<u64>,
}

/// Facts of a cell; absent where they could not be measured.
#[stored]
pub struct CellFacts {
    /// The cell.
    pub key: CellKey,
    /// Port of the server, for commands.
    pub port: u16,
    /// The network between the hosts.
    pub network: Network,
    /// Both endpoints share their CPUs, though a network may lie between them: namespaces of one
    /// host.
    pub is_one_host: bool,
    /// When requests were sent; absent without a finished run.
    pub mode: Option<Mode>,
    /// Why a run was not finished.
    #[serde(default)]
    pub reason: Option<String>,
    /// Medians of the finished runs.
    pub medians: Medians,
    /// Its place among the cells of its payload.
    pub position: Position,
    /// Least share of the wanted connections that a run opened.
    pub open_share: Option<Share>,
    /// Mean time from sending to the complete response in an open loop; absent in a closed one.
    #[serde(default)]
    pub service_ns: Option<f64>,
    /// The same of the only request before the load; absent where none was timed.
    #[serde(default)]
    pub alone_ns: Option<f64>,
    /// Complete responses as a share of the requests that were due or sent.
    pub answered_share: Option<Share>,
    /// Requests that ended, failures included.
    pub ended: u64,
    /// The path lost segments without load; absent where that was not measured.
    #[serde(default)]
    pub is_lossy_without_load: Option<bool>,
    /// Failures of all runs.
    pub errors: ErrorCounts,
    /// Runs with each flag.
    pub flags: BTreeMap<Flag, u32>,
    /// The client's endpoint.
    pub client: EndpointFacts,
    /// The server's endpoint; absent without an agent there.
    pub server: Option<EndpointFacts>,
}

impl CellFacts {
    /// True if at least half of the runs have this flag, so that the median run may.
    pub fn is_mostly(&self, flag: Flag) -> bool {
        let flagged = self.flagged(flag);
        // A flag of no run is not that of most of no runs.
        flagged > 0 && 2 * flagged >= u64::from(self.medians.runs)
    }

    /// Runs with this flag.
    pub fn flagged(&self, flag: Flag) -> u64 {
        self.flags.get(&flag).copied().map_or(0, u64::from)
    }

    /// Failures of these kinds as a share of the requests that ended.
    pub fn error_share(&self, classes: &[ErrorClass]) -> Share {
        let failed: u64 = classes.iter().map(|class| self.errors.count(*class)).sum();
        if self.ended == 0 {
            0.0
        } else {
            failed as f64 / self.ended as f64
        }
    }
}
