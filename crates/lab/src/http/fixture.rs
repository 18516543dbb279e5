//! Runs for tests: clean ones, of which each test spoils what it is about.

use linerate_model::http::{
    CellKey, CellRun, Connections, Counters, EndpointStats, ErrorCounts, Latency, LoadResult, Mode, NicStats, Peak,
    Phase, Quantile, RunState,
};

/// Length of the window of a run.
const WINDOW_S: u64 = 10;
/// Connections of a run.
const CONNECTIONS: u32 = 64;

/// A distribution with this median; the mean is the same, the 99th percentile twice as much.
pub(crate) fn latency(p50_ns: u64) -> Latency {
    let quantile = |ns| Some(Quantile { ns, is_lower_bound: false });
    Latency {
        n: 100_000,
        p50: quantile(p50_ns),
        p90: quantile(p50_ns + p50_ns / 2),
        p99: quantile(2 * p50_ns),
        p999: quantile(3 * p50_ns),
        max: quantile(4 * p50_ns),
        mean_ns: p50_ns as f64,
        hdr: String::new(),
    }
}

/// A closed loop of 64 connections with this many answers of 1 KiB per second and the latency that belongs to it.
pub(crate) fn load(ok_per_s: f64) -> LoadResult {
    load_of(1024, CONNECTIONS, ok_per_s)
}

/// A closed loop with this many answers per second and the latency that belongs to it by Little's law.
pub(crate) fn load_of(payload_bytes: u64, connections: u32, ok_per_s: f64) -> LoadResult {
    let ok = (ok_per_s * WINDOW_S as f64).round() as u64;
    LoadResult {
        protocol: Some(linerate_model::http::NegotiatedProtocol::default()),
        mode: Mode::Closed { pipeline: 1, think_ns: 0 },
        connections: Connections {
            wanted: u64::from(connections),
            opened: u64::from(connections),
            open_at_end: u64::from(connections),
            reconnects: 0,
            dropped: 0,
        },
        window_ns: WINDOW_S * 1_000_000_000,
        requests: ok,
        ok,
        payload_bytes: ok * payload_bytes,
        http_bytes: Some(ok * (payload_bytes + super::ceiling::usual_header_bytes(payload_bytes))),
        request_bytes: Some(ok * 60),
        response_head_bytes: Some(super::ceiling::usual_header_bytes(payload_bytes)),
        errors: ErrorCounts::default(),
        latency: latency((f64::from(connections) / ok_per_s * 1e9) as u64),
        service: None,
        send_lag: None,
        connect: None,
        seconds: Vec::new(),
        warmup_seconds: 0,
        flags: Vec::new(),
        outage: None,
    }
}

/// A finished run of this load, of which nothing is known at either end.
pub(crate) fn run(load: LoadResult) -> CellRun {
    CellRun {
        key: CellKey { phase: Phase::Matrix, payload_bytes: 1024, connections: CONNECTIONS, rate_per_s: None },
        repeat: 1,
        state: RunState::Done,
        reason: None,
        started_unix_ms: 0,
        load: Some(load),
        client: EndpointStats::default(),
        server: None,
        flags: Vec::new(),
    }
}

/// The finished run with this number.
pub(crate) fn done(repeat: u32, ok_per_s: f64) -> CellRun {
    CellRun { repeat, ..run(load(ok_per_s)) }
}

/// An end of which everything is known and that has room everywhere: a tenth of each of its four CPUs.
pub(crate) fn resting() -> EndpointStats {
    EndpointStats {
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
        fds: Some(Peak { peak: 100, limit: Some(200_000) }),
        throttled: Some(0.0),
        nic: Some(idle_nic()),
        counters: Counters {
            listen_overflows: Some(0),
            listen_drops: Some(0),
            tcp_memory_pressures: Some(0),
            retrans_segs: Some(0),
            out_segs: Some(1_000_000),
            ..Counters::default()
        },
        ..EndpointStats::default()
    }
}

/// The same run with both ends at rest.
pub(crate) fn observed(run: CellRun) -> CellRun {
    CellRun { client: resting(), server: Some(resting()), ..run }
}

/// A gigabit NIC whose counters stayed 0.
pub(crate) fn idle_nic() -> NicStats {
    NicStats {
        device: "e".to_owned(),
        is_loopback: false,
        link_bps: Some(1_000_000_000),
        mtu_bytes: Some(1500),
        rx_bytes: 0,
        tx_bytes: 0,
        rx_packets: 0,
        tx_packets: 0,
        drops: 0,
        errors: 0,
    }
}
