//! Cost of a run at one of its ends.

use std::collections::BTreeMap;

use linerate_macros::stored;
use serde::{Deserialize, Serialize};

/// A part of a whole, 0 to 1.
pub type Share = f64;

/// A value that has a limit.
#[stored(Copy, Eq)]
pub struct Peak {
    /// Largest value seen.
    pub peak: u64,
    /// Upper bound; absent without a limit.
    pub limit: Option<u64>,
}

/// Growth of one NIC's counters over the window, and what it can carry.
#[stored(Default, Eq)]
pub struct NicStats {
    /// Name of the device the traffic takes.
    pub device: String,
    /// It is the loopback device, which has no speed.
    pub is_loopback: bool,
    /// Speed of the link in bit/s.
    pub link_bps: Option<u64>,
    /// Largest packet in bytes, without the frame.
    pub mtu_bytes: Option<u32>,
    /// Received bytes, frames without checksum.
    pub rx_bytes: u64,
    /// Sent bytes, frames without checksum.
    pub tx_bytes: u64,
    /// Received packets.
    pub rx_packets: u64,
    /// Sent packets.
    pub tx_packets: u64,
    /// Dropped in both directions.
    pub drops: u64,
    /// Failed in both directions.
    pub errors: u64,
}

/// Growth of the kernel's counters over the window (`/proc/net/netstat`, `/proc/net/snmp`). All are
/// of the whole network namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[allow(missing_docs)] // The kernel's own names, in its own words.
pub struct Counters {
    pub listen_overflows: Option<u64>,
    pub listen_drops: Option<u64>,
    pub tcp_req_q_full_drop: Option<u64>,
    pub syncookies_sent: Option<u64>,
    pub tcp_time_wait_overflow: Option<u64>,
    pub tcp_memory_pressures: Option<u64>,
    pub tcp_abort_on_memory: Option<u64>,
    pub retrans_segs: Option<u64>,
    pub out_segs: Option<u64>,
    pub attempt_fails: Option<u64>,
    pub estab_resets: Option<u64>,
    pub out_rsts: Option<u64>,
}

/// One second of one end of a run.
#[stored(Copy, Default)]
pub struct EndpointSecond {
    /// Share of the busiest CPU that was busy.
    pub busiest_cpu_busy: Option<Share>,
    /// Bits per second on the wire in the busier direction, frames and gaps included.
    pub wire_bps: Option<f64>,
}

/// One end of a run, from the beginning of its window to the end. What could not be read is absent.
#[stored(Default)]
pub struct EndpointStats {
    /// Length of the period.
    pub window_ns: u64,
    /// Readings they are made from.
    pub samples: u32,
    /// CPUs of the host.
    pub cpus: Option<u32>,
    /// Share of all CPUs that was busy.
    pub cpu_busy: Option<Share>,
    /// Share of all CPUs taken by user code.
    pub cpu_user: Option<Share>,
    /// Share of all CPUs taken by the kernel, interrupts aside.
    pub cpu_system: Option<Share>,
    /// Share of all CPUs taken by soft interrupts.
    pub cpu_softirq: Option<Share>,
    /// Share of all CPUs the hypervisor gave to others.
    pub cpu_steal: Option<Share>,
    /// The busiest CPU: its number.
    pub busiest_cpu: Option<u32>,
    /// Share of the busiest CPU that was busy.
    pub busiest_cpu_busy: Option<Share>,
    /// Share of the busiest CPU taken by soft interrupts.
    pub busiest_cpu_softirq: Option<Share>,
    /// Share of the busiest CPU the program itself took, as far as its threads could be followed.
    pub busiest_cpu_own: Option<Share>,
    /// Processes of the program, added up.
    pub processes: Option<u32>,
    /// CPU time the program itself used.
    pub process_cpu_ns: Option<u64>,
    /// The busiest thread of the program, as a share of one CPU.
    pub busiest_thread_busy: Option<Share>,
    /// Threads of the program that carry data.
    pub threads: Option<u32>,
    /// Connections of the fullest thread over the mean of all.
    pub thread_imbalance: Option<f64>,
    /// Resident memory of the program, largest.
    pub rss_bytes: Option<u64>,
    /// Most resident memory the program ever had (`VmHWM`), which may have been before the window.
    pub rss_high_water_bytes: Option<u64>,
    /// Memory of the program at the end, where pages are divided by those who share them
    /// (`smaps_rollup`).
    pub pss_bytes: Option<u64>,
    /// Memory of sockets in the kernel (`/proc/net/sockstat`), largest.
    pub socket_memory_bytes: Option<u64>,
    /// Unreclaimable slab of the kernel (`/proc/meminfo`), largest.
    pub slab_unreclaimable_bytes: Option<u64>,
    /// Descriptors of the program.
    pub fds: Option<Peak>,
    /// Established connections of the tested port, most.
    pub connections: Option<u64>,
    /// TCP sockets in use in the namespace.
    pub sockets_in_use: Option<u64>,
    /// TCP sockets in the namespace that no program holds any more, most.
    pub sockets_orphaned: Option<u64>,
    /// TCP sockets that have memory, on the whole host, most.
    pub sockets_allocated: Option<u64>,
    /// Sockets of the test by state, in the words of ss(8), most of each in one sample; of
    /// thousands of sockets only those at the ends of the window.
    pub sockets_by_state: Option<BTreeMap<String, u64>>,
    /// TCP sockets in TIME_WAIT in the namespace, against `tcp_max_tw_buckets`.
    pub time_wait: Option<Peak>,
    /// Connections that wait to be accepted, against the backlog.
    pub accept_queue: Option<Peak>,
    /// Entries of the connection tracking table.
    pub conntrack: Option<Peak>,
    /// Local ports in use towards the server, against what is to be had.
    pub ports: Option<Peak>,
    /// Most bytes of payload in a segment of a response, on most connections of the test: at the
    /// server what the kernel sends at most (`tcpi_snd_mss`, of the path's MTU and what the client
    /// announced); at the client what it announced (`tcpi_advmss`), above which nothing can come.
    /// Timestamps are not payload.
    pub mss_bytes: Option<u32>,
    /// Memory of the program's control group in bytes, with what it caches (`memory.current`,
    /// `memory.max`).
    pub group_memory: Option<Peak>,
    /// Processes and threads of the program's control group (`pids.current`, `pids.max`).
    pub group_tasks: Option<Peak>,
    /// Share of the window the control group was throttled.
    pub throttled: Option<Share>,
    /// The NIC of the route.
    pub nic: Option<NicStats>,
    /// Counters of the kernel.
    pub counters: Counters,
    /// Every second since the start of the warm-up, side by side with
    /// [`LoadResult::seconds`](super::LoadResult); empty where that was not kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seconds: Vec<EndpointSecond>,
    /// Measures that are missing, with the reason.
    pub missing: Vec<String>,
}

/// One sample of one end: changes since the last sample, and current values. What could not be read
/// is absent.
#[stored(Default)]
pub struct Reading {
    /// Number of it, from 1 without gaps.
    pub sequence: u64,
    /// When, monotonic clock of that end.
    pub at_ns: Option<u64>,
    /// Time since the last sample; 0 where one of both has no time.
    pub window_ns: u64,
    /// Share of all CPUs that was busy.
    pub cpu_busy: Option<Share>,
    /// Share of the busiest CPU that was busy.
    pub busiest_cpu_busy: Option<Share>,
    /// The busiest thread of the program, as a share of one CPU.
    pub busiest_thread_busy: Option<Share>,
    /// CPU time of the program; 1 is one CPU.
    pub process_cpus: Option<f64>,
    /// Resident memory of the program.
    pub rss_bytes: Option<u64>,
    /// Descriptors of the program against its limit.
    pub fds: Option<Peak>,
    /// Established connections of the tested port.
    pub connections: Option<u64>,
    /// TCP sockets in TIME_WAIT in the namespace.
    pub time_wait: Option<Peak>,
    /// Connections that wait to be accepted, against the backlog.
    pub accept_queue: Option<Peak>,
    /// Bytes the NIC received, frames without checksum.
    pub rx_bytes: Option<u64>,
    /// Bytes the NIC sent, frames without checksum.
    pub tx_bytes: Option<u64>,
}
