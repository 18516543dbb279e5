//! Words and settings that lift limits of a host, for checks before an experiment and for cells of
//! it.

use crate::ruling::Match;

/// Descriptors that are enough for every plan of usual size.
const NOFILE_USUAL: u64 = 200_000;
/// Ways around the need for more local ports.
pub(super) const MORE_PORTS: &str =
    "--ports explicit, which needs no setting, or --src with further addresses of this host";
/// Change that follows a longer queue of connections that wait to be accepted.
pub(super) const LONGER_BACKLOG: &str =
    "restart the server with a longer backlog (nginx: listen 80 backlog=65535)";

/// A higher limit of descriptors. It is inherited from whatever starts the program, so no command
/// changes it alone.
pub(super) fn descriptors(need: u64) -> String {
    let n = need.max(NOFILE_USUAL);
    format!(
        "start the program with a limit of {n} descriptors: `prlimit --nofile={n}:{n} PROGRAM` as \
         root, LimitNOFILE={n} in its systemd unit, or nofile in limits.conf(5)"
    )
}

/// A way past connection tracking for the traffic of the server's port.
pub(super) fn untracked(port: u16) -> String {
    format!(
        "exempt TCP port {port} from connection tracking (notrack in the raw chains of nftables)"
    )
}

impl Match {
    /// Raises a kernel variable whose value is `old`.
    pub(super) fn raise_variable(self, key: &str, old: Option<u64>, least: u64) -> Self {
        match old {
            Some(old) if old >= least => self,
            _ => self.variable(key, old, &least.to_string()),
        }
    }
}

/// Help that is advice alone.
pub(super) fn advise(text: impl Into<String>) -> impl FnOnce(Match) -> Match {
    move |found| found.advice(text)
}

/// Shapes a sender to what a slower link carries. A tbf counts 14 bytes per packet and the wire 38,
/// so the rate stays at 0.95 of the link's.
pub(super) fn pace_command(device: &str, slow_mbps: f64) -> String {
    format!(
        "tc qdisc replace dev {device} root tbf {}",
        pace_parameters(slow_mbps)
    )
}

pub(super) fn pace_parameters(slow_mbps: f64) -> String {
    // At the full rate tbf lets 956 Mbit/s of payload through, where 1 GbE carries 941.
    format!("rate {:.0}mbit burst 64kb latency 50ms", slow_mbps * 0.95)
}
