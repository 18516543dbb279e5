//! Load of this host, once per sample.

use linerate_host::{Depth, Growth, Sampler, Tested, Ticks, Watched};
use linerate_model::live::LiveHost;
use linerate_model::snapshot::Snapshot;

/// Samples how busy this host is.
#[derive(Debug)]
pub(super) struct HostLoad {
    sampler: Sampler,
    last: Option<Snapshot>,
    drops_at_start: Option<u64>,
}

impl HostLoad {
    pub(super) fn new() -> Self {
        let sampler = Sampler::open(Watched {
            pids: Vec::new(),
            tested: Tested::Nothing,
        });
        Self {
            sampler,
            last: None,
            drops_at_start: None,
        }
    }

    /// This host since the sample before; `None` for the first.
    pub(super) fn sample(&mut self) -> Option<LiveHost> {
        let now = self.sampler.sample(Depth::Quick);
        let drops = now
            .counters_under(DROPS)
            .next()
            .map(|(_, counter)| counter.v);
        self.drops_at_start = self.drops_at_start.or(drops);

        let since_start = drops
            .zip(self.drops_at_start)
            .map(|(now, start)| now.saturating_sub(start));
        let before = self.last.replace(now.clone())?;
        between(&before, &now, since_start)
    }
}

const DROPS: &str = "softnet.dropped";

fn between(before: &Snapshot, now: &Snapshot, drops: Option<u64>) -> Option<LiveHost> {
    let growth = Growth::between(before, now);
    let share = |ticks: &Ticks, part| ticks.share(part).unwrap_or(0.0);
    let host = LiveHost {
        drops,
        cpus_busy: growth
            .cpus
            .values()
            .map(|cpu| share(cpu, cpu.busy()))
            .collect(),
        softirq: share(&growth.all_cpus, growth.all_cpus.softirq),
    };
    (!host.cpus_busy.is_empty()).then_some(host)
}

#[cfg(test)]
mod tests {
    use linerate_model::snapshot::Source;

    use super::*;

    #[test]
    fn a_cpu_is_busy_for_the_ticks_it_was_not_idle() {
        let sample = |idle: u64, user: u64, softirq: u64| {
            let mut sample = Snapshot::new("host", Source::Live);
            for (state, ticks) in [("idle", idle), ("user", user), ("softirq", softirq)] {
                sample.count(format!("cpu.0.{state}"), ticks);
            }
            sample
        };
        let host = between(&sample(100, 0, 0), &sample(150, 25, 25), Some(2)).expect("a CPU");
        assert_eq!(
            (host.cpus_busy, host.softirq, host.drops),
            (vec![0.5], 0.25, Some(2))
        );
        assert_eq!(
            between(&Snapshot::new("host", Source::Live), &sample(1, 1, 1), None),
            None
        );
    }
}
