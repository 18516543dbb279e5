//! Environment that makes a host comparable to itself on another day, and what the checks before an
//! experiment need.

use linerate_macros::stored;

use super::Peak;

/// One host as it is before an experiment. What could not be read is absent.
#[stored(Default)]
pub struct Environment {
    /// Version of linerate there.
    pub version: String,
    /// Kernel release.
    pub kernel: Option<String>,
    /// Identity of the running kernel (`/proc/sys/kernel/random/boot_id`): two ends with the same
    /// one share a host, whatever network namespaces lie between them.
    pub boot_id: Option<String>,
    /// CPUs.
    pub cpus: Option<u32>,
    /// Frequency governor of the CPUs; absent where there is none.
    pub governor: Option<String>,
    /// Device the traffic takes.
    pub device: Option<String>,
    /// It is the loopback device: both ends are one host.
    pub is_loopback: bool,
    /// It is a wireless or tunnel device.
    pub is_wireless_or_tunnel: bool,
    /// Its frames carry the tag of a VLAN (IEEE 802.1Q).
    pub is_vlan: Option<bool>,
    /// Speed of its link in bit/s.
    pub link_bps: Option<u64>,
    /// Largest packet in bytes.
    pub mtu_bytes: Option<u32>,
    /// The link is full duplex.
    pub is_full_duplex: Option<bool>,
    /// Soft limit of descriptors of the program.
    pub nofile_soft: Option<u64>,
    /// Hard limit of descriptors of the program.
    pub nofile_hard: Option<u64>,
    /// It may raise the hard limit itself (`CAP_SYS_RESOURCE`).
    pub can_raise_nofile: bool,
    /// `fs.nr_open`.
    pub nr_open: Option<u64>,
    /// `fs.file-max`.
    pub file_max: Option<u64>,
    /// `net.ipv4.ip_local_port_range`, both included.
    pub port_range: Option<(u16, u16)>,
    /// `net.ipv4.ip_local_reserved_ports`, as written there.
    pub reserved_ports: Option<String>,
    /// Ports with a listener.
    pub listening_ports: Vec<u16>,
    /// TCP sockets in TIME_WAIT now, against `tcp_max_tw_buckets`.
    pub time_wait: Option<Peak>,
    /// `net.ipv4.tcp_tw_reuse`.
    pub tw_reuse: Option<u8>,
    /// `net.ipv4.tcp_timestamps`.
    pub timestamps: Option<u8>,
    /// `net.core.somaxconn`.
    pub somaxconn: Option<u64>,
    /// Backlog of the listener under test as the kernel has it.
    pub backlog: Option<u64>,
    /// `net.ipv4.tcp_max_syn_backlog`.
    pub max_syn_backlog: Option<u64>,
    /// Entries of the connection tracking table; absent without it.
    pub conntrack: Option<Peak>,
    /// `MemAvailable`.
    pub memory_available_bytes: Option<u64>,
    /// `net.ipv4.tcp_mem` in pages: low, pressure, high.
    pub tcp_mem_pages: Option<[u64; 3]>,
    /// Share of all CPUs others were using.
    pub other_load: Option<f64>,
    /// The busiest other program.
    pub busiest_other: Option<String>,
    /// Share of time the hypervisor gave to others.
    pub steal: Option<f64>,
    /// The control group was throttled meanwhile.
    pub is_throttled: Option<bool>,
    /// Errors of the NIC since boot.
    pub nic_errors: Option<u64>,
    /// Facts that could not be read, with the reason.
    pub missing: Vec<String>,
}

/// Choice of local ports.
#[stored(Copy, Eq, Default)]
pub enum Ports {
    /// By the kernel as long as its range suffices, then explicit.
    #[default]
    Auto,
    /// By the kernel, within `net.ipv4.ip_local_port_range`.
    Kernel,
    /// By the generator: any free port from 1024 on, without a setting or a privilege.
    Explicit,
}
