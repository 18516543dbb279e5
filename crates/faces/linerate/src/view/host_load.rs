//! Load of this host, once per sample.

use std::collections::BTreeMap;

use linerate_host::{Depth, Sampler, Tested, Watched};
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

/// Ticks of a CPU: all, those it was idle, those in softirqs.
type Ticks = [u64; 3];

fn between(before: &Snapshot, now: &Snapshot, drops: Option<u64>) -> Option<LiveHost> {
    let (before, now) = (ticks(before), ticks(now));
    let mut host = LiveHost {
        drops,
        ..LiveHost::default()
    };

    let (mut all, mut softirq) = (0, 0);
    for (cpu, after) in &now {
        let Some(first) = before.get(cpu) else {
            continue;
        };
        let grown: Vec<u64> = after
            .iter()
            .zip(first)
            .map(|(after, first)| after.saturating_sub(*first))
            .collect();
        let [total, idle, in_softirq] = <Ticks>::try_from(grown).ok()?;
        host.cpus_busy
            .push(share(total.saturating_sub(idle), total));
        all += total;
        softirq += in_softirq;
    }

    host.softirq = share(softirq, all);
    (!host.cpus_busy.is_empty()).then_some(host)
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

fn ticks(sample: &Snapshot) -> BTreeMap<u32, Ticks> {
    let mut cpus: BTreeMap<u32, Ticks> = BTreeMap::new();
    for (key, counter) in sample.counters_under("cpu.") {
        let mut words = key.split('.');
        let (Some(cpu), Some(state)) = (
            words.next().and_then(|word| word.parse().ok()),
            words.next(),
        ) else {
            continue;
        };
        let [all, idle, softirq] = cpus.entry(cpu).or_default();
        *all = all.saturating_add(counter.v);

        match state {
            "idle" | "iowait" => *idle = idle.saturating_add(counter.v),
            "softirq" => *softirq = softirq.saturating_add(counter.v),
            _ => {}
        }
    }

    cpus
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
                sample.count(format!("cpu.0.{state}"), ticks, None);
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
