//! One sample of a host.

use std::collections::BTreeMap;

use linerate_model::http::{Counters, NicStats, Peak};

use super::error::ReadError;
use super::text::CpuTicks;

/// Counters and gauges at one moment. What could not be read is absent, with its reason in [`Self::missing`].
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sample {
    /// When, [`linerate_sys::clock::monotonic_ns`].
    pub at_ns: u64,
    /// Ticks of every CPU since boot.
    pub cpus: Option<BTreeMap<u32, CpuTicks>>,
    /// CPU time of the process since it began.
    pub process_cpu_ns: Option<u64>,
    /// CPU time of each of its threads since it began.
    pub threads_ns: Option<BTreeMap<u32, u64>>,
    /// Time its threads ran since the last sample, by the CPU they were found on; those that hardly ran are left
    /// out.
    pub ran_on_ns: BTreeMap<u32, u64>,
    /// Number of processes added up.
    pub processes: u32,
    /// Resident memory of the process.
    pub rss_bytes: Option<u64>,
    /// Most resident memory it ever had; only in a [`Depth::Full`] sample.
    pub rss_high_water_bytes: Option<u64>,
    /// Its memory where shared pages are divided; only in a [`Depth::Full`] sample.
    pub pss_bytes: Option<u64>,
    /// Its descriptors against the soft limit.
    pub fds: Option<Peak>,
    /// Memory of TCP sockets in the kernel.
    pub socket_memory_bytes: Option<u64>,
    /// Unreclaimable slab of the kernel.
    pub slab_unreclaimable_bytes: Option<u64>,
    /// TCP sockets in use, of both families.
    pub sockets_in_use: Option<u64>,
    /// TCP sockets no program holds any more.
    pub sockets_orphaned: Option<u64>,
    /// TCP sockets that have memory, on the whole host.
    pub sockets_allocated: Option<u64>,
    /// Connections of the test by state; only while few sockets exist, or in a full sample.
    pub sockets_by_state: Option<BTreeMap<String, u64>>,
    /// TCP sockets in TIME_WAIT against their limit.
    pub time_wait: Option<Peak>,
    /// Connections that wait at the tested port.
    pub accept_queue: Option<Peak>,
    /// Established connections of the tested port; only while few sockets exist, or in a full sample.
    pub connections: Option<u64>,
    /// Local ports in use towards the tested server; only while few sockets exist, or in a full sample.
    pub ports: Option<Peak>,
    /// Most bytes of payload in a segment of an answer, see [`EndpointStats::mss_bytes`](linerate_model::http::EndpointStats);
    /// only in a [`Depth::Full`] sample.
    pub mss_bytes: Option<u32>,
    /// Entries of the connection tracking table.
    pub conntrack: Option<Peak>,
    /// Memory of the control group in bytes.
    pub group_memory: Option<Peak>,
    /// Processes and threads of the control group.
    pub group_tasks: Option<Peak>,
    /// Time the control group was throttled since it exists.
    pub throttled_ns: Option<u64>,
    /// Counters of the NIC since it exists.
    pub nic: Option<NicStats>,
    /// Counters of the kernel since boot.
    pub counters: Counters,
    /// What could not be read, and why.
    pub missing: Vec<(&'static str, String)>,
}

/// How much work a sample may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// Cheap values: for every step of a period.
    Quick,
    /// Everything, whatever the number of sockets and pages: for the ends of a period.
    Full,
}

impl Sample {
    /// Notes why something is absent.
    pub(crate) fn take<T>(&mut self, what: &'static str, found: Result<T, ReadError>) -> Option<T> {
        found.map_err(|why| self.missing.push((what, why.to_string()))).ok()
    }
}
