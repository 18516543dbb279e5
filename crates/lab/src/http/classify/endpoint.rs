//! One end of a cell: the middle of its shares, the largest of its peaks, the sum of its counters.

use linerate_model::http::{CellRun, Counters, EndpointStats, Peak};

use crate::http::medians::{self, median_of};

/// One end over the runs of a cell. What no run knows is absent.
#[derive(Debug, Clone, Default)]
pub(super) struct EndpointSummary {
    pub(super) cpus: Option<u32>,
    pub(super) cpu_busy: Option<f64>,
    pub(super) cpu_softirq: Option<f64>,
    /// CPU time of the program; 1 is one CPU.
    pub(super) program_cpus: Option<f64>,
    pub(super) core_busy: Option<f64>,
    pub(super) core_softirq: Option<f64>,
    /// What the program took of that CPU.
    pub(super) core_own: Option<f64>,
    pub(super) core: Option<u32>,
    pub(super) thread_busy: Option<f64>,
    pub(super) threads: Option<u32>,
    pub(super) imbalance: Option<f64>,
    pub(super) steal: Option<f64>,
    pub(super) throttled: Option<f64>,
    pub(super) retransmit_share: Option<f64>,
    pub(super) fds: Option<Peak>,
    pub(super) conntrack: Option<Peak>,
    counters: Vec<Counters>,
}

impl EndpointSummary {
    pub(super) fn of(runs: &[&CellRun], side: impl Fn(&CellRun) -> Option<&EndpointStats>) -> Self {
        let share = |figure: fn(&EndpointStats) -> Option<f64>| median_of(runs, |run| figure(side(run)?));
        let sides: Vec<&EndpointStats> = runs.iter().filter_map(|run| side(run)).collect();
        let busiest = sides
            .iter()
            .filter(|side| side.busiest_cpu_busy.is_some())
            .max_by(|a, b| {
                a.busiest_cpu_busy
                    .unwrap_or(0.0)
                    .total_cmp(&b.busiest_cpu_busy.unwrap_or(0.0))
            });
        Self {
            cpus: sides.iter().find_map(|side| side.cpus),
            cpu_busy: share(|side| side.cpu_busy),
            cpu_softirq: share(|side| side.cpu_softirq),
            program_cpus: share(medians::cpus),
            core_busy: share(|side| side.busiest_cpu_busy),
            core_own: share(|side| side.busiest_cpu_own),
            core_softirq: share(|side| side.busiest_cpu_softirq),
            core: busiest.and_then(|side| side.busiest_cpu),
            thread_busy: share(|side| side.busiest_thread_busy),
            threads: sides.iter().find_map(|side| side.threads),
            imbalance: share(|side| side.thread_imbalance),
            steal: share(|side| side.cpu_steal),
            throttled: share(|side| side.throttled),
            retransmit_share: share(retransmit_share),
            fds: fullest(&sides, |side| side.fds),
            conntrack: fullest(&sides, |side| side.conntrack),
            counters: sides.iter().map(|side| side.counters).collect(),
        }
    }

    /// Growth of a counter over all runs; 0 where it could not be read, because then it is no evidence.
    pub(super) fn grew(&self, counter: fn(&Counters) -> Option<u64>) -> u64 {
        self.counters.iter().filter_map(counter).fold(0, u64::saturating_add)
    }
}

/// A figure as a share of its limit.
pub(super) fn fullness(peak: Option<Peak>) -> Option<f64> {
    let peak = peak?;
    let limit = peak.limit.filter(|limit| *limit > 0)?;
    Some(peak.peak as f64 / limit as f64)
}

fn fullest(sides: &[&EndpointStats], figure: fn(&EndpointStats) -> Option<Peak>) -> Option<Peak> {
    let peaks = sides.iter().filter_map(|side| figure(side));
    peaks.max_by_key(|peak| peak.peak)
}

/// Segments sent again as a share of all that were sent.
fn retransmit_share(side: &EndpointStats) -> Option<f64> {
    let sent = side.counters.out_segs.filter(|sent| *sent > 0)?;
    Some(side.counters.retrans_segs? as f64 / sent as f64)
}
