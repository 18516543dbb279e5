//! Facts that rules read about one cell, from its runs.

use std::collections::BTreeMap;

use linerate_model::http::{
    CellFacts, CellKey, CellRun, Counters, EndpointFacts, EndpointStats, ErrorCounts, LoadResult,
    Medians, Network, Peak,
};

use super::medians::{self, counted, median_of};

/// Gathers the facts of a cell from its runs.
pub(super) fn cell_facts(
    key: CellKey,
    runs: &[CellRun],
    medians: &Medians,
    network: Network,
    port: u16,
) -> CellFacts {
    let reason = runs.iter().rev().find_map(|run| run.reason.clone());
    let runs = counted(runs);
    let loads: Vec<&LoadResult> = runs.iter().filter_map(|run| run.load.as_ref()).collect();
    let sum = |amount: fn(&LoadResult) -> u64| {
        loads
            .iter()
            .map(|load| amount(load))
            .fold(0, u64::saturating_add)
    };
    let requests = sum(|load| load.requests);
    let mut flags = BTreeMap::new();
    for flag in runs.iter().flat_map(|run| &run.flags) {
        *flags.entry(*flag).or_default() += 1;
    }

    let has_agent = runs.iter().any(|run| run.server.is_some());
    CellFacts {
        is_one_host: network == Network::Loopback,
        mode: loads.first().map(|load| load.mode),
        reason,
        medians: *medians,
        open_share: open_share(&loads),
        service_ns: median_of(&runs, |run| {
            let service = run.load.as_ref()?.service.as_ref()?;
            (service.n > 0).then_some(service.mean_ns)
        }),
        alone_ns: median_of(&runs, |run| run.load.as_ref()?.alone_ns.map(|ns| ns as f64)),
        answered_share: (requests > 0).then(|| sum(|load| load.ok) as f64 / requests as f64),
        ended: sum(|load| load.ok.saturating_add(load.errors.total())),
        errors: errors(&loads),
        flags,
        client: endpoint(&runs, |run| Some(&run.client)),
        server: has_agent.then(|| endpoint(&runs, |run| run.server.as_ref())),
        ..CellFacts::new(key, port, network)
    }
}

fn open_share(loads: &[&LoadResult]) -> Option<f64> {
    let connections = loads.iter().map(|load| load.connections);
    connections
        .filter(|connections| connections.wanted > 0)
        .map(|connections| connections.opened as f64 / connections.wanted as f64)
        .reduce(f64::min)
}

fn errors(loads: &[&LoadResult]) -> ErrorCounts {
    let mut errors = ErrorCounts::default();
    for load in loads {
        errors.merge(load.errors.clone());
    }
    errors
}

fn endpoint(runs: &[&CellRun], side: impl Fn(&CellRun) -> Option<&EndpointStats>) -> EndpointFacts {
    let share =
        |figure: fn(&EndpointStats) -> Option<f64>| median_of(runs, |run| figure(side(run)?));
    let sides: Vec<&EndpointStats> = runs.iter().filter_map(|run| side(run)).collect();
    let busiest = sides.iter().max_by(|a, b| {
        // An unknown share ranks below every known one.
        let busy = |side: &EndpointStats| side.busiest_cpu_busy.unwrap_or(-1.0);
        busy(a).total_cmp(&busy(b))
    });
    let fullest = |figure: fn(&EndpointStats) -> Option<Peak>| {
        let peaks = sides.iter().filter_map(|side| figure(side));
        peaks.max_by_key(|peak| peak.peak)
    };
    let growth = |counter: fn(&Counters) -> Option<u64>| {
        let grown = sides.iter().filter_map(|side| counter(&side.counters));
        grown.reduce(u64::saturating_add)
    };

    EndpointFacts {
        cpus: sides.iter().find_map(|side| side.cpus),
        cpu_busy: share(|side| side.cpu_busy),
        cpu_softirq: share(|side| side.cpu_softirq),
        program_cpus: share(medians::cpus),
        core: busiest.and_then(|side| side.busiest_cpu),
        core_busy: share(|side| side.busiest_cpu_busy),
        core_softirq: share(|side| side.busiest_cpu_softirq),
        core_own: share(|side| side.busiest_cpu_own),
        thread_busy: share(|side| side.busiest_thread_busy),
        threads: sides.iter().find_map(|side| side.threads),
        imbalance: share(|side| side.thread_imbalance),
        steal: share(|side| side.cpu_steal),
        throttled: share(|side| side.throttled),
        retransmit_share: share(retransmit_share),
        fds: fullest(|side| side.fds),
        conntrack: fullest(|side| side.conntrack),
        listen_overflows: growth(|counters| counters.listen_overflows),
        listen_drops: growth(|counters| counters.listen_drops),
        tcp_memory_pressures: growth(|counters| counters.tcp_memory_pressures),
    }
}

fn retransmit_share(side: &EndpointStats) -> Option<f64> {
    let sent = side.counters.out_segs.filter(|sent| *sent > 0)?;
    Some(side.counters.retrans_segs? as f64 / sent as f64)
}

#[cfg(test)]
mod tests {
    use linerate_model::http::{ErrorClass, Flag};

    use super::*;
    use crate::conclude::medians::medians;
    use crate::conclude::tests::fixture::{done, observed};

    #[test]
    fn facts_are_medians_of_shares_maxima_of_peaks_and_sums_of_counts() {
        let runs: Vec<CellRun> = [(1, 0.2), (2, 0.9), (3, 0.3)]
            .map(|(repeat, busy)| {
                let mut run = observed(done(repeat, 1000.0));
                run.client.cpu_busy = Some(busy);
                run.client.busiest_cpu = Some(repeat);
                run.client.busiest_cpu_busy = Some(busy);
                run.client.counters.listen_drops = (repeat != 1).then_some(2);
                run.client.fds = Some(Peak {
                    peak: u64::from(repeat),
                    limit: Some(10),
                });
                run.flags.extend((repeat == 2).then_some(Flag::Unsteady));

                let load = run.load.as_mut().expect("done");
                load.connections.opened = 60 + u64::from(repeat);
                load.errors
                    .add(ErrorClass::Eof, || format!("error {repeat}"));
                run
            })
            .into();
        let facts = cell_facts(
            runs[0].key,
            &runs,
            &medians(&runs, None, None),
            Network::Unknown,
            80,
        );
        let client = &facts.client;
        assert_eq!(
            (client.cpu_busy, client.core, client.listen_drops),
            (Some(0.3), Some(2), Some(4))
        );
        assert_eq!(client.fds.map(|fds| fds.peak), Some(3));
        assert_eq!(facts.open_share, Some(61.0 / 64.0));
        assert_eq!(
            (facts.errors.count(ErrorClass::Eof), facts.ended),
            (3, 30_003)
        );
        assert_eq!(
            (
                facts.flagged(Flag::Unsteady),
                facts.is_mostly(Flag::Unsteady)
            ),
            (1, false)
        );
        assert!(facts.server.is_some());
    }
}
