//! Goodput of TCP alone: a short download from the server under test, with large bodies over a few
//! connections.

use std::time::Duration;

use linerate_engine::Interrupts;
use linerate_engine::dialect::iperf3::client::{self, ClientResult};
use linerate_model::TestSpec;
use linerate_model::http::units::nanoseconds;
use linerate_model::http::{Arrivals, Baseline, EndpointStats, Flag, LoadResult, Mode};
use linerate_model::outcome::Error;
use linerate_model::spec::{ClientSpec, LocalOptions};

use super::sampled_load::BothSides;
use crate::load::LoadSpec;

/// Large enough for a path of 10 Gbit/s, small enough for one of 10 Mbit/s.
pub(super) const BODY_BYTES: u64 = 64 << 10;
/// One connection may be limited by its window.
pub(super) const CONNECTIONS: u32 = 4;
/// Warm-up and measured period before the cells of a study.
pub(super) const OF_STUDY: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(2)];
/// Durations before a single load, which it must not delay.
pub(super) const OF_LOAD: [Duration; 2] = [Duration::from_millis(250), Duration::from_millis(650)];
/// A body that fits into the first window of a connection.
pub(super) const SMALL_BODY_BYTES: u64 = 10 << 10;
/// Connections of the load that leaves the queues empty.
pub(super) const SMALL_CONNECTIONS: u32 = 8;
/// Its length.
const TRICKLE: Duration = Duration::from_secs(2);
/// Fewest and most requests per second of it.
const TRICKLE_PER_S: [f64; 2] = [10.0, 2_000.0];
/// Its name on the control channel.
pub(super) const ID: &str = "tcp-baseline";

/// The download as a load: with the addresses and limits of `base`.
pub(super) fn download(
    base: &LoadSpec,
    request: Vec<u8>,
    [warmup, duration]: [Duration; 2],
) -> LoadSpec {
    LoadSpec {
        request,
        is_head: false,
        mode: Mode::Closed {
            pipeline: 1,
            think_ns: 0,
        },
        connections: CONNECTIONS,
        sends_first_request: false,
        warmup_ns: nanoseconds(warmup),
        duration_ns: nanoseconds(duration),
        verifies: false,
        spins: false,
        ..base.clone()
    }
}

/// A tenth of a rate in bit/s as a load of small bodies, which leaves the queues of the path empty.
pub(super) fn trickle(base: &LoadSpec, goodput_bps: f64) -> LoadSpec {
    let rate_per_s = (0.1 * goodput_bps / (8.0 * SMALL_BODY_BYTES as f64))
        .clamp(TRICKLE_PER_S[0], TRICKLE_PER_S[1]);
    LoadSpec {
        mode: Mode::Open {
            rate_per_s,
            arrivals: Arrivals::Uniform,
        },
        connections: SMALL_CONNECTIONS,
        sends_first_request: false,
        warmup_ns: 0,
        duration_ns: nanoseconds(TRICKLE),
        ..base.clone()
    }
}

/// Goodput of a download. `None`: the user ended it.
///
/// # Errors
/// Why it does not show what the path carries.
pub(super) fn judged(
    measured: Result<(LoadResult, BothSides), Error>,
) -> Result<Option<Baseline>, String> {
    let (result, stats) = measured.map_err(|error| error.to_string())?;
    if result.flags.contains(&Flag::Interrupted) {
        return Ok(None);
    }
    if is_limited_by_cpu(&stats) {
        return Err("a CPU was full, so TCP alone does not show what the path carries".to_owned());
    }

    let goodput_bps = 8.0 * result.http_bytes_per_s().unwrap_or(0.0);
    if goodput_bps <= 0.0 {
        return Err("nothing was received".to_owned());
    }

    let baseline = Baseline {
        is_reverse: true,
        streams: CONNECTIONS,
        goodput_bps,
        ..Baseline::default()
    };

    Ok(Some(baseline))
}

/// `TCP server to client, 4 streams: 941 Mbit/s`
pub(super) fn text(found: &Baseline) -> String {
    let path = if found.is_reverse {
        "server to client"
    } else {
        "client to server"
    };
    format!(
        "TCP {path}, {} streams: {:.0} Mbit/s",
        found.streams,
        found.goodput_bps / 1e6
    )
}

/// True if a thread of a test was always busy, or full CPUs did much of its work.
fn is_limited_by_cpu(stats: &BothSides) -> bool {
    let ends = || stats.client.iter().chain(&stats.server);
    let used =
        |end: &EndpointStats| end.process_cpu_ns.unwrap_or(0) as f64 / end.window_ns.max(1) as f64;
    let programs: f64 = ends().map(used).sum();

    let is_full = |end: &EndpointStats| {
        let cpus = f64::from(end.cpus.unwrap_or(1));
        let softirq = end.cpu_softirq.unwrap_or(0.0);
        // Soft interrupts process the segments of the test, so they count as its work.
        let is_own = programs + softirq * cpus >= OWN_SHARE_MIN * cpus;
        end.cpu_busy.is_some_and(|busy| busy >= CPU_FULL) && is_own
    };
    ends().any(|end| is_full(end) || end.busiest_thread_busy.is_some_and(|busy| busy >= CPU_FULL))
}

/// Runs a test against the iperf3 server beside the one under test.
pub(super) fn iperf3_test(
    host: &str,
    port: u16,
    test: TestSpec,
    interrupts: &dyn Interrupts,
) -> ClientResult {
    let local = LocalOptions {
        port,
        ..LocalOptions::default()
    };
    let spec = ClientSpec {
        connect_timeout: Some(CONNECT_TIMEOUT),
        ..ClientSpec::new(host, local, test)
    };

    let result = client::run(&spec, &mut (), interrupts);
    match &result.outcome {
        Ok(()) => tracing::debug!("test ended"),
        Err(failure) => tracing::debug!(%failure, "test ended"),
    }

    result
}

/// Longest time to set up the control connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// CPUs and threads are full from here on.
const CPU_FULL: f64 = 0.9;
/// Share of full CPUs that a test limited by them exceeds, whatever else runs.
const OWN_SHARE_MIN: f64 = 0.4;
