//! CPU time of this process during a test.

use linerate_model::CpuUsage;
use linerate_sys::cpu::{self, CpuTime};

/// Measures from its creation.
#[derive(Clone, Copy)]
pub(crate) struct CpuMeter {
    started_ns: u64,
    before: CpuTime,
}

impl CpuMeter {
    pub(crate) fn start(now_ns: u64) -> Self {
        Self {
            started_ns: now_ns,
            before: cpu::process_time(),
        }
    }

    /// CPU time of the whole process since the start in ns.
    #[cfg(feature = "native")]
    pub(crate) fn cpu_ns(&self) -> u64 {
        let now = cpu::process_time();
        let used = now.user.saturating_sub(self.before.user)
            + now.system.saturating_sub(self.before.system);
        linerate_sys::clock::as_ns(used)
    }

    /// Use of the whole process since the start in percent of one core; `None` for an empty period.
    pub(crate) fn usage(&self, now_ns: u64) -> Option<CpuUsage> {
        let wall_s = now_ns.saturating_sub(self.started_ns) as f64 / 1e9;
        if wall_s <= 0.0 {
            return None;
        }

        let now = cpu::process_time();
        let user_percent = now.user.saturating_sub(self.before.user).as_secs_f64() / wall_s * 100.0;
        let system_percent =
            now.system.saturating_sub(self.before.system).as_secs_f64() / wall_s * 100.0;

        Some(CpuUsage {
            total_percent: user_percent + system_percent,
            user_percent,
            system_percent,
        })
    }
}
