//! Runs for tests: clean ones, of which each test spoils what it is about.

use linerate_model::http::{
    CellKey, CellRun, Connections, EndpointStats, ErrorCounts, Latency, LoadResult, Mode, NicStats,
    Peak, Phase, Quantile, RunState,
};

/// Length of the window of a run.
const WINDOW_S: u64 = 10;
/// Connections of a run.
const CONNECTIONS: u32 = 64;

/// A distribution with this median; the mean is the same, the 99th percentile twice as much.
pub(crate) fn latency(p50_ns: u64) -> Latency {
    let quantile = |ns| Some(Quantile::new(ns));

    Latency {
        n: 100_000,
        p50: quantile(p50_ns),
        p90: quantile(p50_ns + p50_ns / 2),
        p99: quantile(2 * p50_ns),
        p999: quantile(3 * p50_ns),
        max: quantile(4 * p50_ns),
        mean_ns: p50_ns as f64,
        ..Latency::default()
    }
}

/// A closed loop of 64 connections with this many answers of 1 KiB per second and the latency that
/// belongs to it.
pub(crate) fn load(ok_per_s: f64) -> LoadResult {
    load_of(1024, CONNECTIONS, ok_per_s)
}

/// A closed loop with this many answers per second and the latency that belongs to it by Little's
/// law.
pub(crate) fn load_of(payload_bytes: u64, connections: u32, ok_per_s: f64) -> LoadResult {
    let ok = (ok_per_s * WINDOW_S as f64).round() as u64;
    let header_bytes = crate::plan::estimate::usual_header_bytes(payload_bytes);
    let connected = u64::from(connections);

    LoadResult {
        protocol: Some(linerate_model::http::NegotiatedProtocol::default()),
        mode: Mode::Closed {
            pipeline: 1,
            think_ns: 0,
        },
        connections: Connections {
            wanted: connected,
            opened: connected,
            open_at_end: connected,
            ..Connections::default()
        },
        window_ns: WINDOW_S * 1_000_000_000,
        requests: ok,
        ok,
        payload_bytes: ok * payload_bytes,
        http_bytes: Some(ok * (payload_bytes + header_bytes)),
        request_bytes: Some(ok * 60),
        response_head_bytes: Some(header_bytes),
        errors: ErrorCounts::default(),
        latency: latency((f64::from(connections) / ok_per_s * 1e9) as u64),
        service: None,
        send_lag: None,
        connect: None,
        alone_ns: None,
        seconds: Vec::new(),
        warmup_seconds: 0,
        flags: Vec::new(),
        outage: None,
    }
}

/// A finished run of this load, of which nothing is known at either end.
pub(crate) fn run(load: LoadResult) -> CellRun {
    let mut run = CellRun::new(
        CellKey::new(Phase::Matrix, 1024, CONNECTIONS),
        1,
        RunState::Done,
    );
    run.load = Some(load);
    run
}

/// The finished run with this number.
pub(crate) fn done(repeat: u32, ok_per_s: f64) -> CellRun {
    let mut run = run(load(ok_per_s));
    run.repeat = repeat;
    run
}

/// An end of which everything is known and that has room everywhere: a tenth of each of its four
/// CPUs.
pub(crate) fn resting() -> EndpointStats {
    let mut stats = EndpointStats {
        window_ns: WINDOW_S * 1_000_000_000,
        samples: 50,
        cpus: Some(4),
        cpu_busy: Some(0.1),
        cpu_steal: Some(0.0),
        busiest_cpu: Some(2),
        busiest_cpu_busy: Some(0.1),
        busiest_cpu_softirq: Some(0.02),
        process_cpu_ns: Some(WINDOW_S * 400_000_000),
        busiest_thread_busy: Some(0.1),
        threads: Some(4),
        thread_imbalance: Some(1.0),
        rss_bytes: Some(10 << 20),
        socket_memory_bytes: Some(1 << 20),
        slab_unreclaimable_bytes: Some(50 << 20),
        fds: Some(Peak {
            peak: 100,
            limit: Some(200_000),
        }),
        throttled: Some(0.0),
        nic: Some(idle_nic()),
        ..EndpointStats::default()
    };
    stats.counters.listen_overflows = Some(0);
    stats.counters.listen_drops = Some(0);
    stats.counters.tcp_memory_pressures = Some(0);
    stats.counters.retrans_segs = Some(0);
    stats.counters.out_segs = Some(1_000_000);

    stats
}

/// This run with both ends at rest.
pub(crate) fn observed(mut run: CellRun) -> CellRun {
    run.client = resting();
    run.server = Some(resting());
    run
}

/// A gigabit NIC whose counters stayed 0.
pub(crate) fn idle_nic() -> NicStats {
    NicStats {
        device: "e".to_owned(),
        link_bps: Some(1_000_000_000),
        mtu_bytes: Some(1500),
        ..NicStats::default()
    }
}
