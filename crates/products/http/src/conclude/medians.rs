//! The middle of a cell's runs, and the facts that rules read.

use std::collections::BTreeMap;

use linerate_model::http::{
    CellFacts, CellKey, CellRun, Counters, EndpointFacts, EndpointStats, ErrorCounts, LoadResult,
    Medians, Network, NicStats, Peak, Position, Quantile, RunState,
};
use linerate_model::stats::{median, relative_spread};

use super::ceiling::Link;

/// Runs that count: finished ones, and of several with the same number the last, because it was
/// made to replace the others.
pub(super) fn counted(runs: &[CellRun]) -> Vec<&CellRun> {
    let is_finished = |run: &&CellRun| run.state == RunState::Done && run.load.is_some();
    let finished: Vec<&CellRun> = runs.iter().filter(is_finished).collect();
    finished
        .iter()
        .enumerate()
        .filter(|(index, run)| {
            finished
                .iter()
                .skip(index + 1)
                .all(|later| later.repeat != run.repeat)
        })
        .map(|(_, run)| *run)
        .collect()
}

/// The middle of a figure over the runs that have it.
pub(super) fn median_of(
    runs: &[&CellRun],
    figure: impl Fn(&CellRun) -> Option<f64>,
) -> Option<f64> {
    median(
        &runs
            .iter()
            .filter_map(|run| figure(run))
            .collect::<Vec<f64>>(),
    )
}

/// Medians of the runs that count. Without a link there is no share of one, and without a ceiling
/// no share of that.
pub(super) fn medians(
    runs: &[CellRun],
    link: Option<&Link>,
    ceiling_per_s: Option<f64>,
) -> Medians {
    let runs = counted(runs);
    let of_load =
        |figure: fn(&LoadResult) -> Option<f64>| median_of(&runs, |run| figure(run.load.as_ref()?));

    let quantile = |figure: fn(&LoadResult) -> Option<Quantile>| {
        median_of(&runs, |run| {
            figure(run.load.as_ref()?).map(|quantile| quantile.ns as f64)
        })
        .map(|ns| ns as u64)
    };
    let ok_per_s = of_load(LoadResult::ok_per_s);
    let rates: Vec<f64> = runs
        .iter()
        .filter_map(|run| run.load.as_ref()?.ok_per_s())
        .collect();
    let wire_bps = median_of(&runs, |run| wire_bps(run, link));

    Medians {
        runs: u32::try_from(runs.len()).unwrap_or(u32::MAX),
        ok_per_s,
        spread: relative_spread(&rates),
        payload_bytes_per_s: of_load(LoadResult::payload_bytes_per_s),
        http_bytes_per_s: of_load(LoadResult::http_bytes_per_s),
        wire_bps,
        nic_util: median_of(&runs, |run| nic_util(run, link)),
        of_ceiling: ok_per_s
            .zip(ceiling_per_s)
            .filter(|(_, ceiling)| *ceiling > 0.0)
            .map(|(ok, ceiling)| ok / ceiling),
        p50_ns: quantile(|load| load.latency.p50),
        p99_ns: quantile(|load| load.latency.p99),
        p999_ns: quantile(|load| load.latency.p999),
        mean_ns: of_load(|load| (load.latency.n > 0).then_some(load.latency.mean_ns)),
        error_share: of_load(LoadResult::error_share),
        server_cpus: median_of(&runs, |run| cpus(run.server.as_ref()?)),
        client_cpus: median_of(&runs, |run| cpus(&run.client)),
        server_cpu_ns_per_request: median_of(&runs, |run| {
            cpu_ns_per_request(run, run.server.as_ref()?)
        }),
        client_cpu_ns_per_request: median_of(&runs, |run| cpu_ns_per_request(run, &run.client)),
    }
}

/// CPU time of the program over the window; 1 is one CPU.
pub(super) fn cpus(side: &EndpointStats) -> Option<f64> {
    let used_ns = side.process_cpu_ns.filter(|_| side.window_ns > 0)?;
    Some(used_ns as f64 / side.window_ns as f64)
}

pub(super) fn cpu_ns_per_request(run: &CellRun, side: &EndpointStats) -> Option<f64> {
    let ok_per_s = run.load.as_ref()?.ok_per_s().filter(|ok| *ok > 0.0)?;
    Some(cpus(side)? * 1e9 / ok_per_s)
}

/// Bits per second on the wire in the busier direction; `None` on loopback, which has none.
///
/// The NIC's counters hold frames without checksum, preamble and gap. Some drivers count what was
/// handed to segmentation offload as one packet, so it is never less than what the answers need
/// when every frame is full.
pub(super) fn wire_bps(run: &CellRun, link: Option<&Link>) -> Option<f64> {
    let (nic, window_ns) = nic_stats(run)?;
    let per_s = |bytes: u64, packets: u64| {
        // Checksum 4, preamble 8, gap 12 (IEEE 802.3).
        const UNCOUNTED_BYTES: u64 = 24;
        8.0 * bytes.saturating_add(packets.saturating_mul(UNCOUNTED_BYTES)) as f64 * 1e9
            / window_ns as f64
    };
    let counted = per_s(nic.tx_bytes, nic.tx_packets).max(per_s(nic.rx_bytes, nic.rx_packets));

    let at_least = run
        .load
        .as_ref()
        .and_then(LoadResult::http_bytes_per_s)
        .and_then(|http| mtu_link(nic, link)?.wire_bps_of(http));
    Some(at_least.map_or(counted, |at_least| counted.max(at_least)))
}

fn nic_util(run: &CellRun, link: Option<&Link>) -> Option<f64> {
    let (nic, _) = nic_stats(run)?;
    let bps = link
        .map(|link| link.bps)
        .or(nic.link_bps.map(|bps| bps as f64))
        .filter(|bps| *bps > 0.0)?;
    Some(wire_bps(run, link)? / bps)
}

/// The client's NIC, or the server's where the client's could not be read.
fn nic_stats(run: &CellRun) -> Option<(&NicStats, u64)> {
    std::iter::once(&run.client)
        .chain(run.server.as_ref())
        .find_map(|side| Some((side.nic.as_ref()?, side.window_ns)))
        .filter(|(nic, window_ns)| !nic.is_loopback && *window_ns > 0)
}

/// The link, or one of unknown speed with the NIC's packet size: the speed plays no part in bytes
/// on the wire.
fn mtu_link(nic: &NicStats, link: Option<&Link>) -> Option<Link> {
    let of_nic = || {
        Some(Link {
            mtu_bytes: nic.mtu_bytes?,
            ..Link::of_speed(0.0)
        })
    };
    link.copied().or_else(of_nic)
}

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
        key,
        port,
        network,
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
        position: Position::default(),
        is_lossy_without_load: None,
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
        program_cpus: share(cpus),
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
    use crate::conclude::tests::fixture::{done, idle_nic, load, observed, run};

    const SECOND_NS: u64 = 1_000_000_000;

    #[test]
    fn aborted_runs_and_those_that_were_replaced_do_not_count() {
        let mut runs = vec![
            done(1, 100.0),
            done(2, 500.0),
            done(2, 110.0),
            done(3, 120.0),
        ];
        let mut aborted = done(4, 9000.0);
        aborted.state = RunState::Aborted;
        runs.push(aborted);

        let medians = medians(&runs, None, Some(220.0));
        assert_eq!(medians.runs, 3);
        assert_eq!(medians.ok_per_s, Some(110.0));
        assert_eq!(medians.of_ceiling, Some(0.5));

        let spread = medians.spread.expect("three runs");
        assert!((spread - 20.0 / 110.0).abs() < 1e-9, "{spread}");
    }

    #[test]
    fn one_run_has_no_spread_no_run_no_medians_and_what_was_not_measured_is_absent() {
        let one = medians(&[done(1, 100.0)], None, None);
        assert_eq!(
            (one.spread, one.server_cpus, one.client_cpus),
            (None, None, None)
        );
        assert_eq!(
            (one.wire_bps, one.nic_util, one.of_ceiling),
            (None, None, None)
        );
        assert_eq!(medians(&[], None, Some(1.0)), Medians::default());
    }

    fn with_nic(nic: NicStats) -> CellRun {
        let mut run = run(load(1000.0));
        run.client.window_ns = SECOND_NS;
        run.client.nic = Some(nic);
        run
    }

    #[test]
    fn the_wire_carries_what_the_nic_counts_and_what_surrounds_each_frame() {
        let mut nic = idle_nic();
        (nic.rx_bytes, nic.rx_packets, nic.tx_bytes) = (50_000_000, 100_000, 10);
        let run = with_nic(nic);
        let medians = medians(&[run], None, None);
        let expected = 8.0 * (50_000_000.0 + 2_400_000.0);
        assert_eq!(medians.wire_bps, Some(expected));
        assert_eq!(medians.nic_util, Some(expected / 1e9));
    }

    #[test]
    fn a_driver_that_counts_super_packets_does_not_hide_frames() {
        let mut nic = idle_nic();
        (nic.rx_bytes, nic.rx_packets) = (90_000_000, 1500);
        let mut run = with_nic(nic);
        run.load.as_mut().expect("done").http_bytes = Some(10 * 100_000_000);

        let medians = medians(&[run], Some(&Link::of_speed(1e9)), None);
        let wire_bps = medians.wire_bps.expect("known");
        assert!((wire_bps - 8e8 * 1538.0 / 1448.0).abs() < 1.0, "{wire_bps}");
    }

    #[test]
    fn loopback_has_no_wire() {
        let mut nic = idle_nic();
        (nic.is_loopback, nic.rx_bytes) = (true, 1000);
        let run = with_nic(nic);
        assert_eq!(medians(&[run], None, None).wire_bps, None);
    }

    #[test]
    fn cpu_time_is_shared_among_the_answers() {
        let mut run = run(load(1000.0));
        run.client.window_ns = 2 * SECOND_NS;
        run.client.process_cpu_ns = Some(SECOND_NS);

        let medians = medians(&[run], None, None);
        assert_eq!(medians.client_cpus, Some(0.5));
        assert_eq!(medians.client_cpu_ns_per_request, Some(500_000.0));
    }

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
