//! Commands that lift limits of a host, as the user would type them. Words behind `#` are for the reader.

use linerate_model::http::Side;

/// Descriptors that are enough for every plan of usual size.
const NOFILE_USUAL: u64 = 200_000;

/// Raises the limit of descriptors of a shell, of a user and of a unit.
pub(super) fn descriptors(need: u64) -> Vec<String> {
    let n = need.max(NOFILE_USUAL);
    vec![
        format!("sudo prlimit --pid $$ --nofile={n}:{n}  # this shell"),
        format!(
            "printf '* - nofile {n}\\nroot - nofile {n}\\n' | sudo tee /etc/security/limits.d/90-linerate.conf  # for good; log in again"
        ),
        format!("LimitNOFILE={n}  # in a unit of systemd"),
    ]
}

/// Raises the kernel's bounds of descriptors.
pub(super) fn kernel_descriptors(need: u64) -> Vec<String> {
    let per_process = need.max(1_048_576);
    let all = need.saturating_mul(2).max(2_097_152);
    vec![format!("sudo sysctl -w fs.nr_open={per_process} fs.file-max={all}")]
}

/// More local ports, or ways around the need for them.
pub(super) fn local_ports(address: &str, device: &str) -> Vec<String> {
    vec![
        "sudo sysctl -w net.ipv4.ip_local_port_range=\"1024 65535\"".to_owned(),
        "--ports explicit  # needs no privilege".to_owned(),
        format!("sudo ip addr add {address} dev {device}  # then --src with this address as well"),
    ]
}

/// Keeps the kernel from assigning reserved ports.
pub(super) fn reserved_ports(list: &str) -> Vec<String> {
    vec![format!("sudo sysctl -w net.ipv4.ip_local_reserved_ports={list}")]
}

/// Fewer sockets in TIME_WAIT.
pub(super) fn time_wait() -> Vec<String> {
    vec![
        "wait 60 s: the time is fixed in the kernel, tcp_fin_timeout does not change it".to_owned(),
        "sudo sysctl -w net.ipv4.tcp_tw_reuse=1  # the default 2 is for loopback only; needs tcp_timestamps=1"
            .to_owned(),
        "--close rst  # leaves none".to_owned(),
    ]
}

/// A longer queue of connections that wait to be accepted.
pub(super) fn accept_queue() -> Vec<String> {
    vec![
        "sudo sysctl -w net.core.somaxconn=65535  # and restart the server".to_owned(),
        "listen 80 backlog=65535;  # where the server is nginx".to_owned(),
    ]
}

/// A longer queue of connections that are being opened.
pub(super) fn syn_queue() -> Vec<String> {
    vec!["sudo sysctl -w net.ipv4.tcp_max_syn_backlog=65535".to_owned()]
}

/// A larger table of connection tracking, or a way past it for traffic of the server's port.
pub(super) fn conntrack(side: Side, port: u16) -> Vec<String> {
    // What a host receives passes `prerouting`, what it sends passes `output`; the server receives on the port.
    let (received, sent) = match side {
        Side::Server => ("dport", "sport"),
        Side::Client => ("sport", "dport"),
    };
    let chain = |name: &str, hook: &str| {
        format!("sudo nft 'add chain ip lr_raw {name} {{ type filter hook {hook} priority raw; }}'")
    };
    vec![
        "sudo sysctl -w net.netfilter.nf_conntrack_max=1048576".to_owned(),
        "sudo nft add table ip lr_raw  # or past the table, with these five".to_owned(),
        chain("pre", "prerouting"),
        format!("sudo nft add rule ip lr_raw pre tcp {received} {port} notrack"),
        chain("output", "output"),
        format!("sudo nft add rule ip lr_raw output tcp {sent} {port} notrack"),
    ]
}

/// More memory for sockets: low, pressure and high in pages of 4 KiB.
pub(super) fn socket_memory(pressure_pages: u64) -> Vec<String> {
    let (low, high) = (pressure_pages / 4 * 3, pressure_pages.saturating_add(pressure_pages / 2));
    vec![format!("sudo sysctl -w net.ipv4.tcp_mem=\"{low} {pressure_pages} {high}\"")]
}

/// The route over a device.
pub(super) fn route(server: &str, prefix: u8, device: &str) -> Vec<String> {
    vec![format!("sudo ip route replace {server}/{prefix} dev {device}")]
}

/// Processors at their full frequency.
pub(super) fn governor() -> Vec<String> {
    vec!["sudo cpupower frequency-set -g performance".to_owned()]
}

/// Several commands in one line.
pub(super) fn line(remedies: &[String]) -> String {
    remedies.join("; ")
}
