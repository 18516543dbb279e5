//! Number of threads that receive.

use super::group::GroupSize;

/// The scheduler divides a CPU evenly among threads that have work, and often runs a receiver on
/// the CPU of its sender. With several shares of a CPU receivers keep their queues short, so that
/// the data is still in a cache when it is read.
const RECEIVERS_PER_SHARED_CPU: usize = 8;
/// Most of them. Receivers share an only CPU with all senders of a peer on this machine, which may
/// have a thread per stream.
pub(crate) const RECEIVERS_PER_CPU_MAX: usize = 64;
/// The same where several would not help: small blocks wake a thread often, and senders of the same
/// test need the CPU.
const RECEIVERS_PER_CPU_MAX_WHERE_FEW: usize = 2;

/// The numbers of receivers of a test.
pub(crate) struct ReceiverCount {
    /// CPUs that workers may use; none where the kernel does not report them.
    cpus: Vec<u32>,
    /// A CPU may have several receivers from the start.
    may_share_cpus: bool,
}

impl ReceiverCount {
    pub(crate) fn new(cpus: Vec<u32>, may_share_cpus: bool) -> Self {
        Self {
            cpus,
            may_share_cpus,
        }
    }

    /// At the start, and at most. `incoming_cpu` is the CPU on which all data arrived before the
    /// start, if it is one.
    pub(crate) fn size(&self, incoming_cpu: Option<u32>) -> GroupSize {
        let cpus = self.cpus.len().max(1);
        // The handshake shows it before data flows: windows of eight streams on one CPU closed 496
        // times per second with one receiver, four times with one per stream.
        let initial = if self.are_all_among(incoming_cpu.as_slice()) {
            self.on_all_cpus()
        } else {
            cpus
        };

        let per_cpu_max = if self.may_share_cpus {
            RECEIVERS_PER_CPU_MAX
        } else {
            RECEIVERS_PER_CPU_MAX_WHERE_FEW
        };
        GroupSize {
            initial,
            max: per_cpu_max * cpus,
        }
    }

    /// For data that arrives on these CPUs; 0 where none is known.
    pub(crate) fn of(&self, incoming_cpus: &[u32]) -> usize {
        if self.are_all_among(incoming_cpus) {
            self.on_all_cpus()
        } else {
            incoming_cpus.len().min(self.cpus.len())
        }
    }

    /// Data arrives on all CPUs that workers may use.
    fn are_all_among(&self, incoming_cpus: &[u32]) -> bool {
        !self.cpus.is_empty() && self.cpus.iter().all(|cpu| incoming_cpus.contains(cpu))
    }

    /// Where data arrives on all CPUs, a peer on this machine has at least as many threads.
    fn on_all_cpus(&self) -> usize {
        match self.cpus.len() {
            // More receivers of small blocks are woken more often, which halved the rate of 32-byte
            // writes.
            cpus if !self.may_share_cpus => cpus,
            1 => RECEIVERS_PER_CPU_MAX,
            cpus => RECEIVERS_PER_SHARED_CPU * cpus,
        }
    }
}
