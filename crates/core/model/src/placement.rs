//! On which CPUs the work of a test ran.

use linerate_macros::{sparse, stored};

/// The CPUs of one end of a test.
#[sparse(Vec)]
#[stored(Default, Eq)]
pub struct Placement {
    /// Name of the host in the diagnosis.
    pub host: String,
    /// `sender` or `receiver`; `None` where only one end was observed.
    pub end: Option<String>,
    /// NIC of the test.
    pub device: Option<String>,
    /// Worker threads, by CPU time.
    pub worker: CpuShares,
    /// Interrupts of the NIC; `None` for a virtual interface.
    pub interrupts: Option<CpuShares>,
    /// Receive soft interrupts (NET_RX) of the whole host.
    pub softirq: CpuShares,
    /// Which of these CPUs share a core, a cache or a node.
    pub shared: Vec<SharedCpus>,
}

/// Distribution of work over CPUs.
#[sparse(Vec)]
#[stored(Default, Eq)]
pub struct CpuShares {
    /// CPUs with their part of the work, the largest first; CPUs below 1 % are left out.
    pub cpus: Vec<CpuShare>,
    /// Why the distribution is not known.
    pub absent: Option<String>,
}

/// Part of the work that one CPU did.
#[stored(Copy, Eq)]
pub struct CpuShare {
    /// Number of the CPU.
    pub cpu: u32,
    /// Its part in percent.
    pub percent: u32,
}

/// CPUs with a resource in common.
#[stored(Eq)]
pub struct SharedCpus {
    /// `core`, `l2`, `l3` or `node`.
    pub resource: String,
    /// Numbers of the CPUs, ascending.
    pub cpus: Vec<u32>,
}

/// `0-3,8` as numbers. A list that is longer than any machine is cut.
pub fn cpu_list(text: &str) -> Vec<u32> {
    const CPUS_MAX: usize = 8192;

    let ranges = text.split(',').filter_map(|part| {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        Some(from.trim().parse::<u32>().ok()?..=to.trim().parse::<u32>().ok()?)
    });
    // A range may name 2^32 CPUs.
    ranges.flatten().take(CPUS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_as_numbers() {
        for (list, cpus) in [
            ("0-3,8", &[0, 1, 2, 3, 8][..]),
            ("0", &[0]),
            ("", &[]),
            ("3-1", &[]),
            ("x", &[]),
            (" 1 - 2", &[1, 2]),
        ] {
            assert_eq!(cpu_list(list), cpus, "{list}");
        }

        assert_eq!(cpu_list("0-4294967295").len(), 8192);
    }
}
